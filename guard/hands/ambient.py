"""What a client program points at on this machine: read from its own configuration, without network and without it.

Kube context, docker context, cloud profile and region, terraform workspace, git remote and branch, database host. What
cannot be read is named as not bound; a configuration in a form that is not understood is bound by its hash instead.
"""

from __future__ import annotations

import configparser
import hashlib
import json
import os
from itertools import islice, product
from typing import TYPE_CHECKING, Any

from guard.pointers import OUTSIDE, add_pointer, alternatives

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

MAX_CONFIG_BYTES = 4 * 1024 * 1024
"""The largest kubeconfig seen in the field has a few hundred clusters with certificates: under 2 MiB."""

_FAMILIES = {
    "kubernetes": "kubectl oc helm k9s kubecolor k helmfile argocd flux istioctl cilium velero skaffold kn kubeadm "
    "kubens kubectx stern krew kustomize linkerd tkn",
    "docker": "docker docker-compose docker-buildx",
    "aws": "aws eksctl sam cdk copilot awslocal aws-vault s3cmd",
    "gcloud": "gcloud gsutil bq",
    "azure": "az azd func",
    "terraform": "terraform tofu terragrunt",
    "git": "git gh glab hub git-lfs tig",
    "postgres": "psql pg_dump pg_dumpall pg_restore createdb dropdb createuser dropuser vacuumdb reindexdb clusterdb "
    "pgbench pg_basebackup",
    "mysql": "mysql mariadb mysqldump mariadb-dump mysqladmin mariadb-admin mysqlcheck mysqlimport",
}
_FAMILY_OF = {program: family for family, programs in _FAMILIES.items() for program in programs.split()}

_VARIABLES = {
    "docker": ("DOCKER_HOST", "DOCKER_CONTEXT"),
    "aws": ("AWS_PROFILE", "AWS_DEFAULT_PROFILE", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ENDPOINT_URL"),
    "gcloud": (
        "CLOUDSDK_CORE_PROJECT",
        "CLOUDSDK_ACTIVE_CONFIG_NAME",
        "CLOUDSDK_CORE_ACCOUNT",
        "GOOGLE_CLOUD_PROJECT",
    ),
    "azure": ("AZURE_SUBSCRIPTION_ID", "AZURE_TENANT_ID"),
    "terraform": ("TF_WORKSPACE", "TF_DATA_DIR"),
    "git": ("GIT_DIR", "GIT_WORK_TREE"),
    "postgres": ("PGHOST", "PGPORT", "PGUSER", "PGDATABASE", "PGSERVICE"),
    "mysql": ("MYSQL_HOST", "MYSQL_TCP_PORT"),
    "kubernetes": ("HELM_KUBECONTEXT", "HELM_NAMESPACE", "HELM_KUBEAPISERVER"),
}
"""Variables that name a target, not a secret; each is bound by its value."""

MOST_CHOICES = 16
"""Combinations of places that one text names for the same clients; all are looked up."""

POINTERS = frozenset(
    (
        *(name for names in _VARIABLES.values() for name in names),
        *("KUBECONFIG", "AWS_CONFIG_FILE", "DOCKER_CONFIG", "CLOUDSDK_CONFIG", "AZURE_CONFIG_DIR"),
    )
)
"""Variables whose values decide what is pointed at: what has to be known of an asker's environment."""


class _Unread(Exception):
    """A configuration is there and cannot be read; the text says which."""


def ambient_of(
    programs: Iterable[str], named: Mapping[str, str], env: Mapping[str, str], cwd: str
) -> tuple[dict[str, str], tuple[str, ...]]:
    """What the programs point at, as name → text, and what could not be told.

    Args:
        programs: names or paths of what runs on this machine.
        named: what the text itself says (`Assessment.ambient`): a context, a configuration file.
        env: the environment that the command gets.
    """
    found: dict[str, str] = {name: text for name, text in named.items() if text}
    untold: list[str] = []
    values = alternatives(named)
    choices = list(islice(product(*values.values()), MOST_CHOICES + 1))
    if len(choices) > MOST_CHOICES:
        untold.append("what it points at: it names too many places")
    for choice in choices[:MOST_CHOICES]:
        chosen = {name: text for name, text in zip(values, choice, strict=True) if text != OUTSIDE}
        # What the text sets for a command decides there, whatever our own environment says.
        pointed = {**env, **{name: text for name, text in chosen.items() if name in POINTERS}}
        for name, text in _pointed(programs, chosen, pointed, cwd, untold).items():
            add_pointer(found, name, text)
    return found, tuple(dict.fromkeys(untold))


def _pointed(
    programs: Iterable[str], named: Mapping[str, str], env: Mapping[str, str], cwd: str, untold: list[str]
) -> dict[str, str]:
    """What the programs point at where each name has one value; what could not be told goes into `untold`."""
    found: dict[str, str] = {}
    families = dict.fromkeys(
        family for program in programs if (family := _FAMILY_OF.get(os.path.basename(program))) is not None
    )
    for family in families:
        for name in _VARIABLES.get(family, ()):
            if env.get(name):
                found[name] = env[name]
        try:
            found.update(_READERS[family](named, env, cwd))
        except _Unread as error:
            untold.append(str(error))
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            untold.append(f"what {family} points at: its configuration is not understood ({type(error).__name__})")
    return found


# ── kubernetes ───────────────────────────────────────────────────────────────────────────────────────────────────


def _kubernetes(named: Mapping[str, str], env: Mapping[str, str], cwd: str) -> dict[str, str]:
    chosen = next((text for name, text in named.items() if name.endswith("--kubeconfig")), "") or env.get(
        "KUBECONFIG", ""
    )
    paths = [_placed(part, env, cwd) for part in chosen.split(":") if part] or [_placed("~/.kube/config", env, cwd)]
    contexts: dict[str, dict[str, Any]] = {}
    clusters: dict[str, dict[str, Any]] = {}
    current, hashes = "", []
    for path in paths:
        text = _text_of(path)
        if text is None:
            continue
        try:
            config = json.loads(text) if text.lstrip().startswith("{") else simple_yaml(text)
            current = current or str(config.get("current-context") or "")
            for into, key, inner in ((contexts, "contexts", "context"), (clusters, "clusters", "cluster")):
                for item in config.get(key) or ():
                    into.setdefault(str(item["name"]), item.get(inner) or {})
        except (ValueError, KeyError, TypeError, AttributeError):
            hashes.append(f"{path} {hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()}")
    if hashes:
        return {"kubernetes configuration": ", ".join(hashes)}
    name = named.get("kubernetes context") or env.get("HELM_KUBECONTEXT") or current
    if not name:
        return {"kubernetes context": "none"}
    context = contexts.get(name, {})
    cluster = clusters.get(str(context.get("cluster", "")), {})
    return {
        "kubernetes context": name,
        "kubernetes namespace": str(context.get("namespace") or "default"),
        "kubernetes server": str(cluster.get("server") or "not in the configuration"),
        "kubernetes user": str(context.get("user") or ""),
    }


def simple_yaml(text: str) -> Any:
    """The value of a YAML text in the plain block style that clients write: maps, lists, scalars on one line.

    Raises ValueError for anything else (anchors, tags, flow collections, scalars of several lines): a reader that
    guesses could be shown one target while the client takes another.
    """
    lines: list[tuple[int, str]] = []
    for number, raw in enumerate(text.split("\n")):
        line = raw.rstrip("\r ")
        bare = line.lstrip(" ")
        if not bare or bare.startswith("#"):
            continue
        if "\t" in line[: len(line) - len(bare) + 1]:
            raise ValueError("tabs as indentation")
        if bare in ("---", "...") or bare.startswith("%"):
            if number == 0 or not lines:
                continue
            raise ValueError("several documents")
        lines.append((len(line) - len(bare), bare))
    if not lines:
        return {}
    value, end = _yaml_block(lines, 0, lines[0][0], 0)
    if end != len(lines):
        raise ValueError("indentation")
    return value


def _yaml_block(lines: list[tuple[int, str]], at: int, indent: int, depth: int) -> tuple[Any, int]:
    if depth > 20:
        raise ValueError("too deep")
    if lines[at][1] == "-" or lines[at][1].startswith("- "):
        items: list[Any] = []
        while at < len(lines) and lines[at][0] == indent and (lines[at][1] == "-" or lines[at][1].startswith("- ")):
            rest = lines[at][1][1:].lstrip(" ")
            if not rest:
                raise ValueError("an empty list item")
            inner = indent + len(lines[at][1]) - len(rest)
            if _key_of(rest) is None:
                items.append(_scalar(rest))
                at += 1
                continue
            lines[at] = (inner, rest)
            item, at = _yaml_block(lines, at, inner, depth + 1)
            items.append(item)
        return items, at
    mapping: dict[str, Any] = {}
    while at < len(lines) and lines[at][0] == indent:
        split = _key_of(lines[at][1])
        if split is None:
            raise ValueError("no key")
        key, rest = split
        if key in mapping:
            raise ValueError("a repeated key")
        at += 1
        if rest:
            mapping[key] = _scalar(rest)
        elif at < len(lines) and (
            lines[at][0] > indent or (lines[at][0] == indent and (lines[at][1] + " ").startswith("- "))
        ):
            mapping[key], at = _yaml_block(lines, at, lines[at][0], depth + 1)
        else:
            mapping[key] = None
    if at < len(lines) and lines[at][0] > indent:
        raise ValueError("a line that goes on")
    return mapping, at


def _key_of(line: str) -> tuple[str, str] | None:
    """Key and rest of `key: rest`; None when the line is no such thing."""
    if line[:1] in "\"'":
        end = line.find(line[0], 1)
        if end < 0 or line[end + 1 : end + 2] != ":" or line[end + 2 : end + 3] not in ("", " "):
            return None
        return line[1:end], line[end + 2 :].strip(" ")
    end = line.find(": ")
    if end < 0:
        return (line[:-1], "") if line.endswith(":") else None
    return line[:end].rstrip(" "), line[end + 2 :].strip(" ")


def _scalar(text: str) -> Any:
    if text[:1] in "\"'":
        end = text.find(text[0], 1)
        if end < 0 or "\\" in text or (text[end + 1 :].strip(" ") and not text[end + 1 :].lstrip(" ").startswith("#")):
            raise ValueError("a quoted scalar that is not simple")
        return text[1:end]
    if text in ("{}", "[]", "null", "~"):
        return None
    if text[:1] in "&*!|>{[%@`,?":
        raise ValueError("a form that is not simple")
    return text.partition(" #")[0].rstrip(" ")


# ── the others ───────────────────────────────────────────────────────────────────────────────────────────────────


def _docker(named: Mapping[str, str], env: Mapping[str, str], cwd: str) -> dict[str, str]:
    if env.get("DOCKER_HOST"):
        return {}
    folder = named.get("docker --config") or env.get("DOCKER_CONFIG") or "~/.docker"
    text = _text_of(os.path.join(_placed(folder, env, cwd), "config.json"))
    current = str(json.loads(text).get("currentContext") or "default") if text else "default"
    return {"docker context": env.get("DOCKER_CONTEXT") or current}


def _aws(named: Mapping[str, str], env: Mapping[str, str], cwd: str) -> dict[str, str]:
    profile = named.get("aws context") or env.get("AWS_PROFILE") or env.get("AWS_DEFAULT_PROFILE") or "default"
    text = _text_of(_placed(env.get("AWS_CONFIG_FILE") or "~/.aws/config", env, cwd)) or ""
    section = _ini(text).get("default" if profile == "default" else f"profile {profile}", {})
    found = {"aws profile": profile}
    for key in ("region", "role_arn", "sso_account_id", "source_profile", "endpoint_url"):
        if section.get(key):
            found[f"aws {key}"] = section[key]
    return found


def _gcloud(named: Mapping[str, str], env: Mapping[str, str], cwd: str) -> dict[str, str]:
    folder = _placed(env.get("CLOUDSDK_CONFIG") or "~/.config/gcloud", env, cwd)
    active = (
        env.get("CLOUDSDK_ACTIVE_CONFIG_NAME") or (_text_of(os.path.join(folder, "active_config")) or "default").strip()
    )
    if "/" in active:
        raise _Unread("the gcloud configuration: its name holds a slash")
    config = _ini(_text_of(os.path.join(folder, "configurations", f"config_{active}")) or "")
    found = {"gcloud configuration": active}
    for section, key in (("core", "account"), ("core", "project"), ("compute", "region"), ("compute", "zone")):
        if value := config.get(section, {}).get(key):
            found[f"gcloud {key}"] = value
    return found


def _azure(named: Mapping[str, str], env: Mapping[str, str], cwd: str) -> dict[str, str]:
    text = _text_of(os.path.join(_placed(env.get("AZURE_CONFIG_DIR") or "~/.azure", env, cwd), "azureProfile.json"))
    if not text:
        return {"azure subscription": "none"}
    for one in json.loads(text.removeprefix("\ufeff")).get("subscriptions", ()):
        if one.get("isDefault"):
            return {"azure subscription": f"{one.get('name', '')} {one.get('id', '')}".strip()}
    return {"azure subscription": "none"}


def _terraform(named: Mapping[str, str], env: Mapping[str, str], cwd: str) -> dict[str, str]:
    if env.get("TF_WORKSPACE"):
        return {}
    folder = _placed(env.get("TF_DATA_DIR") or ".terraform", env, cwd)
    return {"terraform workspace": (_text_of(os.path.join(folder, "environment")) or "default").strip()}


def _git(named: Mapping[str, str], env: Mapping[str, str], cwd: str) -> dict[str, str]:
    start = next((text for name, text in named.items() if name in ("git -C", "git --work-tree")), "") or cwd
    chosen = named.get("git --git-dir") or env.get("GIT_DIR") or ""
    folder = _placed(chosen, env, cwd) if chosen else _git_folder(_placed(start, env, cwd))
    if not folder:
        return {"git repository": "none"}
    head = (_text_of(os.path.join(folder, "HEAD")) or "").strip()
    common = (_text_of(os.path.join(folder, "commondir")) or "").strip()
    config_folder = os.path.normpath(os.path.join(folder, common)) if common else folder
    found = {
        "git repository": folder,
        "git branch": head.removeprefix("ref: refs/heads/") if head.startswith("ref: ") else f"detached at {head[:40]}",
    }
    section = ""
    for line in (_text_of(os.path.join(config_folder, "config")) or "").split("\n"):
        text = line.strip()
        if text.startswith("["):
            section = text
        elif section.lower().startswith('[remote "') and "=" in text:
            key, _, value = text.partition("=")
            if key.strip().lower() in ("url", "pushurl"):
                name = section[9:].rstrip('"] ')
                found[f"git remote {name} {key.strip().lower()}"] = value.strip()
    return found


def _git_folder(start: str) -> str:
    folder = os.path.realpath(start)
    for _ in range(256):
        place = os.path.join(folder, ".git")
        if os.path.isdir(place):
            return place
        if os.path.isfile(place):
            pointer = (_text_of(place) or "").strip()
            if pointer.startswith("gitdir:"):
                return os.path.normpath(os.path.join(folder, pointer[7:].strip()))
        if os.path.isfile(os.path.join(folder, "HEAD")) and os.path.isdir(os.path.join(folder, "objects")):
            return folder  # bare
        parent = os.path.dirname(folder)
        if parent == folder:
            return ""
        folder = parent
    return ""


def _postgres(named: Mapping[str, str], env: Mapping[str, str], cwd: str) -> dict[str, str]:
    found = {
        "database host": env.get("PGHOST") or "the local socket",
        "database user": env.get("PGUSER") or env.get("USER", ""),
    }
    return found | ({"database name": env["PGDATABASE"]} if env.get("PGDATABASE") else {})


def _mysql(named: Mapping[str, str], env: Mapping[str, str], cwd: str) -> dict[str, str]:
    client = _ini(_text_of(_placed("~/.my.cnf", env, cwd)) or "").get("client", {})
    found = {"database host": env.get("MYSQL_HOST") or client.get("host") or "the local socket"}
    for key in ("port", "user", "database"):
        if client.get(key):
            found[f"database {key}"] = client[key]
    return found


_READERS: dict[str, Callable[[Mapping[str, str], Mapping[str, str], str], dict[str, str]]] = {
    "kubernetes": _kubernetes,
    "docker": _docker,
    "aws": _aws,
    "gcloud": _gcloud,
    "azure": _azure,
    "terraform": _terraform,
    "git": _git,
    "postgres": _postgres,
    "mysql": _mysql,
}


def _placed(path: str, env: Mapping[str, str], cwd: str) -> str:
    if path == "~" or path.startswith("~/"):
        path = env.get("HOME", "/") + path[1:]
    return os.path.normpath(os.path.join(cwd, path))


def _text_of(path: str) -> str | None:
    """A configuration file's text; None when there is none. Raises _Unread when it cannot be read."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise _Unread(f"what {path} says: {error.strerror}") from None
    try:
        data = b""
        while len(data) <= MAX_CONFIG_BYTES and (block := os.read(fd, 1 << 16)):
            data += block
    except OSError as error:
        raise _Unread(f"what {path} says: {error.strerror}") from None
    finally:
        os.close(fd)
    if len(data) > MAX_CONFIG_BYTES:
        raise _Unread(f"what {path} says: it is larger than {MAX_CONFIG_BYTES} bytes")
    return data.decode("utf-8", "replace")


def _ini(text: str) -> dict[str, dict[str, str]]:
    """Sections of an INI file; a file that is not one raises ValueError."""
    parser = configparser.RawConfigParser(strict=False, allow_no_value=True, interpolation=None)
    try:
        parser.read_string(text)
    except configparser.Error as error:
        raise ValueError(str(error)) from None
    return {name: {key: value or "" for key, value in parser.items(name)} for name in parser.sections()}
