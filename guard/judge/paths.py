"""What a path means by its name alone: secret, critical, device, our own. Lexical; links are for the facts."""

SECRET_NAMES = frozenset(
    (
        "shadow", "gshadow", "shadow-", "gshadow-", "opasswd", "sudoers.dist", ".pgpass", ".my.cnf", ".mylogin.cnf",
        ".netrc", "_netrc", ".git-credentials", ".env", ".htpasswd", "htpasswd", ".npmrc", ".pypirc", ".dockercfg",
        "credentials", "credentials.json", "credentials.db", "access_tokens.db", "application_default_credentials.json",
        "accesstokens.json", "id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "id_ecdsa_sk", "id_ed25519_sk", "identity",
        "ssh_host_rsa_key", "ssh_host_dsa_key", "ssh_host_ecdsa_key", "ssh_host_ed25519_key", "krb5.keytab",
        "master.key", "secrets.yml", "secrets.yaml", "secrets.json", "secret.yaml", "vault-token", ".vault-token",
        "wallet.dat", "keystore.jks", "rclone.conf", ".s3cfg", ".boto", "kubeconfig", "admin.conf",
        "kubelet.conf", "terraform.tfstate", ".terraformrc", "credentials.tfrc.json", "sa.key", "ca.key",
        "logins.json", "key4.db", "cookies.sqlite", "tls.key", "server.key", "private.key", "privkey.pem",
        "wg0.conf", "ssl-cert-snakeoil.key", "debian.cnf", "sam.ldb", "secrets.tdb", "auth.json", ".bash_history",
        ".zsh_history", ".mysql_history", ".psql_history", ".rediscli_history", ".python_history", "hosts.yml",
        "login.keychain-db", "master.passwd", "environ", "id_rsa.bak", "token", ".cargo-credentials",
    )
)  # fmt: skip
"""Files that hold credentials by convention (the programs' own manuals)."""

SECRET_SUFFIXES = (
    ".key", ".pem", ".p12", ".pfx", ".jks", ".keystore", ".kdbx", ".keytab", ".ppk", ".gpg", ".asc", ".ovpn",
    ".env", ".tfstate", ".tfvars", ".pgpass", ".kdb", ".agekey", ".keychain", "_rsa", "_ed25519", "_ecdsa", "_dsa",
)  # fmt: skip

SECRET_FOLDERS = (
    "/.ssh/", "/.aws/", "/.gnupg/", "/.kube/", "/.docker/config", "/.azure/", "/.config/gcloud/", "/.password-store/",
    "/etc/ssl/private/", "/etc/letsencrypt/archive/", "/etc/letsencrypt/live/", "/etc/letsencrypt/accounts/",
    "/etc/kubernetes/pki/", "/etc/sudoers.d/", "/run/secrets/", "/var/run/secrets/", "/etc/wireguard/",
    "/etc/ipsec.d/private/", "/etc/pki/tls/private/", "/etc/pki/private/", "/.config/gh/hosts", "/.mozilla/",
    "/.config/google-chrome/", "/.config/op/", "/.terraform.d/credentials", "/etc/netplan/",
    "/etc/networkmanager/system-connections/", "/var/lib/kubelet/pki/", "/etc/openvpn/", "/.local/share/keyrings/",
    "/etc/security/opasswd", "/.config/rclone/", "/.oci/", "/.m2/settings-security", "/.config/helm/registry",
    "/etc/rancher/k3s/k3s.yaml", "/etc/wpa_supplicant/", "/var/lib/private/", "/etc/krb5.keytab", "/.vault",
)  # fmt: skip

SECRET_EXCEPTIONS = (
    "/.ssh/known_hosts", "/.ssh/config", "/.ssh/authorized_keys", "/.aws/config", ".pub", "/.docker/config.d",
    ".example", ".sample", ".template", ".dist", "fullchain.pem", "chain.pem", "cert.pem", "ca.pem", "cacert.pem",
    "/.ssh", "/.ssh/", "ca-bundle.pem", "dhparam.pem", "dhparams.pem", "ca-certificates.crt", "/cert.pem",
)  # fmt: skip

HARMLESS_DEVICES = frozenset(("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"))
STREAMS = frozenset(("/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/fd/0", "/dev/fd/1", "/dev/fd/2"))

CRITICAL_PREFIXES = (
    "/boot", "/bin", "/sbin", "/lib", "/lib64", "/usr/bin", "/usr/sbin", "/usr/lib", "/usr/lib64", "/usr/local/bin",
    "/usr/local/sbin", "/usr/local/lib", "/usr/libexec", "/snap", "/etc/ssh", "/etc/pam.d", "/etc/security",
    "/etc/sudoers", "/etc/cron", "/etc/anacrontab", "/etc/systemd", "/etc/init", "/etc/rc", "/etc/network",
    "/etc/netplan", "/etc/sysconfig", "/etc/sysctl", "/etc/modprobe", "/etc/modules", "/etc/udev", "/etc/ld.so",
    "/etc/apt", "/etc/yum", "/etc/dnf", "/etc/pki", "/etc/ssl", "/etc/kubernetes", "/etc/docker", "/etc/containerd",
    "/etc/nftables", "/etc/iptables", "/etc/firewalld", "/etc/ufw", "/etc/selinux", "/etc/apparmor", "/etc/grub",
    "/etc/default/grub", "/etc/profile", "/etc/bash", "/etc/zsh", "/etc/environment", "/etc/dbus-1", "/etc/polkit-1",
    "/etc/postgresql", "/etc/mysql", "/etc/redis", "/etc/audit", "/etc/logrotate", "/etc/rsyslog", "/etc/resolvconf",
    "/var/spool/cron", "/var/lib/dpkg", "/var/lib/rpm", "/var/lib/docker", "/var/lib/kubelet", "/var/lib/etcd",
    "/var/lib/mysql", "/var/lib/postgresql", "/proc", "/sys", "/run/systemd", "/var/run/docker", "/efi",
    "/etc/letsencrypt",
    "/etc/alternatives", "/etc/xdg/autostart", "/etc/update-motd.d", "/etc/dpkg", "/etc/rpm", "/etc/nginx/ssl",
)  # fmt: skip

CRITICAL_FILES = frozenset(
    (
        "/etc/passwd", "/etc/group", "/etc/shadow", "/etc/gshadow", "/etc/fstab", "/etc/crypttab", "/etc/hosts",
        "/etc/hostname", "/etc/resolv.conf", "/etc/nsswitch.conf", "/etc/login.defs", "/etc/shells", "/etc/exports",
        "/etc/hosts.allow", "/etc/hosts.deny", "/etc/localtime", "/etc/machine-id", "/etc/mtab", "/etc/inittab",
        "/etc/subuid", "/etc/subgid", "/etc/securetty", "/etc/at.allow", "/etc/at.deny", "/etc/krb5.conf", "/etc/issue",
        "/etc/ssh", "/etc/motd.d", "/etc/rc.local", "/etc/doas.conf", "/etc/host.conf", "/etc/services",
        "/etc/nologin", "/run/nologin", "/var/run/nologin", "/etc/suauth", "/etc/porttime", "/etc/login.access",
        "/etc/pam.conf", "/etc/sudo.conf", "/forcefsck", "/fastboot", "/.autorelabel", "/etc/gitconfig", "/etc/aliases",
        "/system-update", "/etc/system-update", "/etc/inetd.conf", "/etc/xinetd.conf", "/etc/csh.cshrc",
        "/etc/csh.login",
    )
)  # fmt: skip

CRITICAL_NAMES = frozenset(
    (
        ".bashrc", ".bash_profile", ".bash_login", ".profile", ".bash_logout", ".zshrc", ".zshenv", ".zprofile",
        ".zlogin", ".inputrc", ".gitconfig", ".vimrc", ".exrc", ".netrc", ".ssh", "authorized_keys", ".npmrc",
        ".pypirc", ".curlrc", ".wgetrc", ".pam_environment", ".xinitrc", ".xsession", ".forward", ".rhosts", ".shosts",
        ".my.cnf", ".pgpass", ".psqlrc", ".screenrc", ".tmux.conf", ".kshrc", ".cshrc", ".tcshrc", ".login", ".envrc",
        ".mcp.json", "crontab", "sudoers", ".gitmodules", ".git-credentials",
    )
)  # fmt: skip
CRITICAL_INSIDE = (
    "/.ssh/", "/.gnupg/", "/.aws/", "/.kube/", "/.config/systemd/", "/.config/autostart/", "/.git/hooks/",
    "/.git/config",
    "/.config/fish/", "/.claude/", "/.codex/", "/.gemini/", "/.local/bin/", "/.docker/", "/.config/git/",
    "/autostart/",
    "/.config/environment.d/", "/.vscode/", "/.cursor/", "/launchagents/", "/launchdaemons/", "/.config/opencode/",
)  # fmt: skip

OWN = (
    "/var/lib/opsagent", "/etc/opsagent", "/.config/opsagent", "/.local/state/opsagent", "/.local/share/opsagent",
    "/library/application support/opsagent",
)  # fmt: skip
"""Where opsagent keeps state and configuration, by name; the shell adds the real places (`Policy.own_paths`)."""

SHARED_FOLDERS = ("/tmp", "/var/tmp", "/dev/shm")  # noqa: S108
"""Where everybody can write: a configuration from there is as good as a program."""

SYSTEM_FOLDERS = frozenset(
    (
        "/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin", "/snap/bin",
        "/opt/homebrew/bin", "/opt/homebrew/sbin", "/home/linuxbrew/.linuxbrew/bin",
    )
)  # fmt: skip
"""Folders whose programs are what their names say; a program elsewhere may be anything under any name."""


def normal(path: str, cwd: "str | None" = None) -> str:
    """The path with `.`, `..` and doubled slashes taken out, against `cwd` when it is relative."""
    if not path.startswith(("/", "~")) and cwd:
        path = f"{cwd}/{path}"
    if "/." not in path and "//" not in path and not path.startswith(".") and not path.endswith("/"):
        return path
    parts: list[str] = []
    absolute = path.startswith("/")
    for part in path.split("/"):
        if part == ".." and parts and parts[-1] != "..":
            parts.pop()
        elif part == ".." and absolute:
            continue
        elif part not in ("", "."):
            parts.append(part)
    return ("/" if absolute else "") + "/".join(parts) or ("/" if absolute else ".")


def shared(path: str) -> bool:
    """Whether an absolute path is, or lies in, a folder in which everybody can write."""
    if not path.startswith("/"):
        return False
    path = normal(path)
    return any(path == folder or path.startswith(f"{folder}/") for folder in SHARED_FOLDERS)


def places(path: str, cwds: "list[str]") -> "list[str]":
    """Every absolute path that a written one can be, against each folder that the text can be in.

    Text takes `..` out with the name before it, the kernel goes up from where a link before it leads. Without knowing
    which names are links both readings count (`k/../t` is `t` and also `k/../t` as the kernel walks it). The first of
    `cwds` is where the command starts and is real, so what goes up from there directly has one reading.
    """
    if path.startswith(("/", "~")) or not cwds:
        return [normal(path)] if "/.." not in path else _readings(path, "")
    if ".." not in path:
        return [normal(path, cwd) for cwd in cwds]
    found: list[str] = []
    for number, cwd in enumerate(cwds):
        found += _readings(path, cwd) if number else _from_start(path, cwd)
    return list(dict.fromkeys(found))


def _from_start(path: str, cwd: str) -> "list[str]":
    while path.startswith(("../", "./")) or path == "..":
        name, _, path = path.partition("/")
        if name == "..":
            cwd = normal(f"{cwd}/..")
    return _readings(path or ".", cwd)


def _readings(path: str, cwd: str) -> "list[str]":
    whole = f"{cwd}/{path}" if cwd else path
    text = normal(whole)
    parts = [part for part in whole.split("/") if part not in ("", ".")]
    while parts and parts[0] == ".." and whole.startswith("/"):
        parts.pop(0)
    if ".." not in parts or (not whole.startswith("/") and parts == [".."] * len(parts)):
        return [text]
    walked = ("/" if whole.startswith("/") else "") + "/".join(parts)
    return [text] if walked == text else [text, walked]


def above(path: str, own_paths: "tuple[str, ...]") -> bool:
    """Whether opsagent's own files lie below the path."""
    folder = path.rstrip("/") + "/"
    return any(place.startswith(folder) for place in own_paths)


def _globbed(pattern: str) -> bool:
    return any(char in pattern for char in "*?[")


def escaped(text: str) -> str:
    """The shell pattern that means exactly this text, where it does not stand in brackets."""
    for char in "\\*?[":
        text = text.replace(char, "\\" + char)
    return text


def glob_match(pattern: str, name: str) -> bool:
    """Whether a shell pattern of `*`, `?` and `[…]` (read as any one character) can name this."""
    star = mark = -1
    p = n = 0
    while n < len(name):
        char = pattern[p] if p < len(pattern) else ""
        if char == "[":
            close = _bracket_end(pattern, p + 1)
            if close > 0:
                p, n = close + 1, n + 1
                continue
        if char == "*":
            star, mark = p, n
            p += 1
        elif char and (char == "?" or char == name[n]):
            p, n = p + 1, n + 1
        elif star >= 0:
            mark += 1
            p, n = star + 1, mark
        else:
            return False
    return all(char == "*" for char in pattern[p:])


def _bracket_end(pattern: str, at: int) -> int:
    """Where the bracket expression whose first character is at `at` has its `]`; -1 when nothing closes it."""
    if pattern[at : at + 1] in ("!", "^"):
        at += 1
    first = at
    while at < len(pattern):
        mark = pattern[at + 1 : at + 2]
        if pattern[at] == "]" and at > first:
            return at
        if pattern[at] == "[" and mark and mark in ":=." and (close := pattern.find(f"{mark}]", at + 2)) > 0:
            at = close + 1
        at += 1
    return -1


def _unbracketed(pattern: str) -> str:
    """A shell pattern without its `[…]`, which name any of several characters."""
    start = pattern.find("[")
    while start >= 0:
        end = _bracket_end(pattern, start + 1)
        pattern = pattern[:start] + (pattern[end + 1 :] if end > 0 else "")
        start = pattern.find("[")
    return pattern


def secret(path: str) -> bool:
    """Whether the name says that a credential lies there. `path` may be a shell pattern."""
    low = path.lower()
    name = low.rsplit("/", 1)[-1]
    if (
        low.startswith("/proc/")
        and name in ("environ", "mem", "auxv", "maps")
        and not low.startswith("/proc/self/maps")
    ):
        return name in ("environ", "mem")
    if low.endswith(SECRET_EXCEPTIONS) and not _globbed(low):
        return False
    if name in SECRET_NAMES or (name.endswith(SECRET_SUFFIXES) and len(name) > 4):
        return True
    if name.startswith(".env.") or (name.startswith("id_") and not name.endswith(".pub") and "." not in name and
                                    name[3:] in ("rsa", "dsa", "ecdsa", "ed25519")):  # fmt: skip
        return True
    rooted = low if low.startswith("/") else "/" + low
    if "/.ssh/" in rooted:
        return not (name.startswith(("config", "known_hosts", "authorized_keys")) or name.endswith((".txt", ".md"))
                    or "/config.d/" in rooted or "/authorized_keys" in rooted) and name != ""  # fmt: skip
    if any(folder in rooted for folder in SECRET_FOLDERS) and name not in ("", "known_hosts", "config"):
        return True
    if rooted.endswith(("/.kube/config", "/.docker/config.json")):
        return True
    if name.startswith("*.") and not _globbed(name[2:]):
        return False  # a kind of files such as `*.conf` or `*.json`; endings of credentials were looked at above
    if _globbed(name):
        # A glob in an ordinary place (`*`, `*.log`) may meet a secret file too; that is the mask's work. Here only
        # patterns count that say what they are after.
        fixed = _unbracketed(name).replace("*", "").replace("?", "")
        if len(fixed.strip(".")) >= (1 if fixed[:1] == "." else 2):
            return any(glob_match(name, known) for known in SECRET_NAMES)
    return False


_NO_DEVICES = ("/dev/shm", "/dev/fd/")  # noqa: S108


def device(path: str) -> str:
    """What kind of device or kernel file a path names: `stream` · `harmless` · `network` · `device` · ""."""
    if path in HARMLESS_DEVICES:
        return "harmless"
    if path in STREAMS:
        return "stream"
    if path.startswith(("/dev/tcp/", "/dev/udp/")):
        return "network"
    if path.startswith(_NO_DEVICES) or path in ("/dev", "/dev/mapper", "/dev/disk"):
        return ""
    if path.startswith("/dev/"):
        return "device"
    if path in ("/proc/kmsg", "/proc/kcore") or path.startswith(("/sys/kernel/tracing/", "/sys/kernel/debug/")):
        return "device"
    return ""


def critical(path: str) -> bool:
    """Whether a wrong byte there can lock people out, stop the machine or run code later."""
    low = path.lower()
    if low in CRITICAL_FILES:
        return True
    if low.startswith("/"):
        for prefix in CRITICAL_PREFIXES:
            if low.startswith(prefix):
                return True
    if low.rsplit("/", 1)[-1] in CRITICAL_NAMES:
        return True
    rooted = low if low.startswith("/") else "/" + low
    return any(inside in rooted for inside in CRITICAL_INSIDE)


def own(path: str, own_paths: "tuple[str, ...]") -> bool:
    """Whether the path is opsagent's own code, state or configuration, or lies in it."""
    low = path.lower()
    rooted = low if low.startswith("/") else "/" + low
    if any(rooted.endswith(place) or f"{place}/" in rooted for place in OWN):
        return True
    return any(path == place or path.startswith(place.rstrip("/") + "/") for place in own_paths)
