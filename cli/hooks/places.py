"""Which files a host's model may not write: opsagent's own, and the settings in which the hosts keep their hooks.

Names are compared without regard to case, as written and after links were followed: a file system may ignore case,
and a wrong match only means that a person does it.
"""

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

SETTINGS = (
    "/.claude/settings.json", "/.claude/settings.local.json", "/.claude.json", "/.codex/config.toml",
    "/.codex/hooks.json", "/.gemini/settings.json", "/.gemini/trustedfolders.json",
)  # fmt: skip
"""Where the hosts look for hooks, in a home or in any project."""
SETTINGS_FOLDERS = (
    "/etc/claude-code", "/library/application support/claudecode", "/etc/codex", "/etc/gemini-cli",
    "/library/application support/geminicli",
)  # fmt: skip
"""Where the administrator's settings are."""
HOMES = (".claude", ".codex", ".gemini")
"""The hosts' own folders; what is moved, linked or unpacked over one of them replaces its settings."""
MOVED_HOMES = (("CLAUDE_CONFIG_DIR", ("settings.json", "settings.local.json", ".claude.json", "hooks/hooks.json")),
    ("CODEX_HOME", ("config.toml", "hooks.json")),
    ("GEMINI_CLI_HOME", (".gemini/settings.json",)),
    ("GEMINI_CLI_SYSTEM_SETTINGS_PATH", ("",)),)  # fmt: skip
"""Variables that put a host's own folder or file elsewhere, and what in it matters."""


def hook_settings(path: str, environ: "Mapping[str, str]") -> bool:
    """Whether this absolute path holds a host's hooks, or is the folder that holds them."""
    low = path.lower().rstrip("/")
    if low.endswith(SETTINGS) or os.path.basename(low) in HOMES:
        return True
    if low.endswith("/hooks.json") and any(f"/{home}/" in low for home in HOMES):
        return True  # plugins and extensions bring their own
    if any(low == folder or low.startswith(folder + "/") for folder in SETTINGS_FOLDERS):
        return True
    for variable, names in MOVED_HOMES:
        folder = environ.get(variable, "").lower().rstrip("/")
        if folder and any(low in (f"{folder}/{name}".rstrip("/"), folder) for name in names):
            return True
    return False


def below(path: str, folders: "Iterable[str]") -> bool:
    """Whether the path is one of these folders or lies in one."""
    low = path.lower()
    return any(low == folder.lower() or low.startswith(folder.lower().rstrip("/") + "/") for folder in folders)


def readings(path: str, cwd: str, home: str) -> "list[str]":
    """The absolute paths that a host can mean by `path`: as written, trimmed, and with links followed."""
    found = []
    for text in dict.fromkeys((path, path.strip())):
        if text == "~" or text.startswith("~/"):
            text = home + text[1:]
        lexical = os.path.normpath(os.path.join(cwd, text))
        found += [lexical, os.path.realpath(lexical)]
        # normpath takes `..` out before links are followed, the kernel after.
        found.append(os.path.realpath(os.path.join(cwd, text)))
    return list(dict.fromkeys(found))


def project_folder(named: str, cwd: str, home: str) -> str:
    """The folder whose ordinary files the host's person has opened to it; "" when it is none of a project's.

    The root, a home and whatever lies above one, and the system's folders are no projects: work that starts there is
    an administrator's, and "inside" would mean everything.
    """
    from guard.judge import paths

    folder = os.path.realpath(named or cwd)
    above_home = (os.path.realpath(home) + "/").startswith(folder.rstrip("/") + "/")
    system = ("/etc", "/usr", "/var", "/boot", "/bin", "/sbin", "/lib", "/proc", "/sys", "/dev", "/run")
    if above_home or paths.critical(folder) or folder in ("/home", "/root", "/opt", "/srv", "/mnt", "/tmp"):  # noqa: S108
        return ""
    if below(folder, system) and not below(folder, ("/var/tmp", "/usr/src", "/usr/local/src", "/var/www")):  # noqa: S108
        return ""
    return folder
