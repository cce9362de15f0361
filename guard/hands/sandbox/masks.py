"""The finite list of secret paths that a sandboxed read cannot open, as they lie on this machine.

What another mount shows of them (a bind mount of `/etc`) is closed there as well. Names that can lie anywhere (`.env`,
`*.pem`) are not here: no rule of the kernel can find them. Hard links to a masked file in another folder, and copies
that a file system keeps (snapshots, the lower layers of an overlay), stay readable, too.
"""

from __future__ import annotations

import fnmatch
import glob
import os
import pwd
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from guard.hands.sandbox.aliases import aliases, mounts
from guard.hands.sandbox.landlock import NETWORK_FILE_SYSTEMS, mount_points

SYSTEM = (
    "/etc/shadow",
    "/etc/shadow-",
    "/etc/gshadow",
    "/etc/gshadow-",
    "/etc/security/opasswd",
    "/etc/ssh/ssh_host_*_key",
    "/etc/krb5.keytab",
    "/etc/ssl/private",
    "/etc/pki/tls/private",
    "/etc/letsencrypt/archive",
    "/etc/letsencrypt/keys",
    "/etc/kubernetes/admin.conf",
    "/etc/kubernetes/super-admin.conf",
    "/etc/kubernetes/pki",
    "/etc/rancher/k3s/k3s.yaml",
    "/etc/wireguard",
    "/etc/openvpn",
    "/etc/NetworkManager/system-connections",
    "/etc/ppp/chap-secrets",
    "/etc/ppp/pap-secrets",
    "/etc/mysql/debian.cnf",
    "/var/lib/kubelet/pki",
    "/var/lib/sss/secrets",
    "/var/lib/systemd/credential.secret",
    "/run/credentials",
    "/run/secrets",
    "/sys/kernel/debug",
    "/sys/kernel/tracing",
)
"""Passwords, keys and what consumes when it is read (trace_pipe). Globs are resolved once per worker."""

HOME = (
    ".aws",
    ".azure",
    ".boto",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".config/containers/auth.json",
    ".config/doctl",
    ".config/gcloud",
    ".config/gh/hosts.yml",
    ".config/git/credentials",
    ".config/op",
    ".config/rclone",
    ".docker/config.json",
    ".git-credentials",
    ".gnupg",
    ".kube",
    ".local/share/keyrings",
    ".my.cnf",
    ".mylogin.cnf",
    ".netrc",
    ".npmrc",
    ".oci",
    ".password-store",
    ".pgpass",
    ".pypirc",
    ".s3cfg",
    ".terraform.d/credentials.tfrc.json",
    ".vault-token",
)
"""Below each home of the passwd file."""

SSH_READABLE = ("known_hosts*", "config", "config.d", "authorized_keys*", "*.pub", "rc", "environment")
"""What a `.ssh` folder may show; all else in it is taken for a private key, new names included."""

REOPENED_BY = (
    "KUBECONFIG",
    "AWS_CONFIG_FILE",
    "AWS_SHARED_CREDENTIALS_FILE",
    "AZURE_CONFIG_DIR",
    "GOOGLE_APPLICATION_CREDENTIALS",
    "DOCKER_CONFIG",
    "PGPASSFILE",
    "NETRC",
)
"""Variables with which a command family names its own credentials. A run that is given one can open what it
names (absolute paths, `:` between several); the rest stays closed."""


PROGRAM_FOLDERS = ("/bin", "/sbin", "/usr/", "/dev")
"""Homes of daemons that have none: nobody keeps keys there, and looking takes time."""


@dataclass(frozen=True, slots=True)
class Masks:
    """What is closed on this machine."""

    present: tuple[str, ...]
    """Real paths that exist."""
    candidates: tuple[str, ...]
    """Every path without a glob that the list knows, present or not."""


def find_masks(hidden: Iterable[str], home: str = "") -> Masks:
    """Resolves the list on this machine.

    Args:
        hidden: further absolute paths (the state folder), masked like the rest.
        home: a home beside those of the passwd file: the command's HOME.
    Effects: reads passwd, stats and lists home folders. Homes on network mounts other than one's own are left
        out, because a dead server would hold up every command; root is usually nobody there anyway.
    """
    candidates: list[str] = list(hidden)
    for pattern in SYSTEM:
        candidates.extend(sorted(glob.glob(pattern)) if "*" in pattern else [pattern])
    for folder in _homes(home):
        candidates.extend(f"{folder}/{name}" for name in HOME)
        candidates.extend(_private_keys(f"{folder}/.ssh"))
    present = {os.path.realpath(path) for path in candidates if _can_be_read(path)}
    present.discard("/")
    present.update(_elsewhere(present))
    return Masks(tuple(sorted(present)), tuple(sorted(set(candidates))))


def _elsewhere(present: Iterable[str]) -> list[str]:
    """The same files and folders, and what lies in them, under the names that other mounts give them."""
    return [path for path in aliases(present, mounts()) if _can_be_read(path)]


def reopened(environment: Mapping[str, str]) -> tuple[str, ...]:
    """The real paths that this environment's variables name for their families."""
    found: set[str] = set()
    for name in REOPENED_BY:
        for path in environment.get(name, "").split(":"):
            if path.startswith("/") and os.path.lexists(path):
                found.add(os.path.realpath(path))
    return tuple(sorted(found - {"/"}))


def _can_be_read(path: str) -> bool:
    """False where the file's own permissions keep us out already: masking it would close what lies around it."""
    if os.geteuid() == 0:
        return os.path.lexists(path)
    return os.access(path, os.R_OK, effective_ids=os.access in os.supports_effective_ids)


def _homes(further: str) -> list[str]:
    network = [mount for mount, kind in mount_points() if kind.split(".")[0] in NETWORK_FILE_SYSTEMS]
    own = _own_home()
    homes = []
    for entry in pwd.getpwall():
        home = entry.pw_dir.rstrip("/")
        if not home.startswith("/") or home in homes or home.startswith(PROGRAM_FOLDERS):
            continue
        if home != own and any(home == mount or home.startswith(mount.rstrip("/") + "/") for mount in network):
            continue
        if os.path.isdir(home):
            homes.append(home)
    if further.startswith("/") and further not in homes:
        homes.append(further)
    return homes


def _own_home() -> str:
    try:
        return pwd.getpwuid(os.geteuid()).pw_dir.rstrip("/")
    except KeyError:
        return ""


def _private_keys(folder: str) -> list[str]:
    """Everything in a `.ssh` folder that is not known to be harmless; the folder itself when it is absent."""
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return [folder + "/id"]
    keys = [name for name in names if not any(fnmatch.fnmatchcase(name, shape) for shape in SSH_READABLE)]
    return [f"{folder}/{name}" for name in keys] or [folder + "/id"]
