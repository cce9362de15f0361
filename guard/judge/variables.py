"""Names of variables: which change what programs do, which point them elsewhere, and which do neither."""

HARMLESS_VARIABLES = frozenset(
    ("LC_ALL", "LANG", "LANGUAGE", "TZ", "COLUMNS", "LINES", "TERM", "NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE",
        "GREP_COLOR", "GREP_COLORS", "LS_COLORS", "BLOCKSIZE", "BLOCK_SIZE", "POSIXLY_CORRECT", "SYSTEMD_COLORS",
        "GIT_TERMINAL_PROMPT", "GIT_OPTIONAL_LOCKS", "DEBIAN_FRONTEND", "TIMEFORMAT", "OPTIND",
        "OPTARG", "REPLY", "SECONDS", "RANDOM", "AWS_DEFAULT_OUTPUT", "AWS_REGION", "AWS_DEFAULT_REGION", "CI",
        "COLORTERM", "FORCE_COLOR", "PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED", "PYTHONIOENCODING", "PYTHONUTF8",
        "GODEBUG", "HISTTIMEFORMAT", "HISTCONTROL", "PS1", "PS2", "PS3", "LIBVIRT_DEFAULT_URI",
        "COMPOSE_PROJECT_NAME", "USER", "LOGNAME", "GOMAXPROCS", "GOOS", "GOARCH", "RUST_LOG", "RUST_BACKTRACE",
        "PYTHONHASHSEED", "PS_FORMAT", "PS_PERSONALITY", "LESSCHARSET", "LESSSECURE", "NO_PROXY", "no_proxy",
        "DPKG_COLORS", "MANWIDTH", "APT_LISTCHANGES_FRONTEND", "SYSTEMD_URLIFY", "SYSTEMD_PAGERSECURE",
        "SYSTEMD_LOG_LEVEL",)
)  # fmt: skip
AMBIENT_VARIABLES = frozenset(
    ("KUBECONFIG", "AWS_PROFILE", "AWS_CONFIG_FILE", "DOCKER_CONTEXT", "DOCKER_CONFIG", "PGHOST", "PGPORT", "PGUSER",
        "PGDATABASE", "PGPASSFILE", "CLOUDSDK_CONFIG", "CLOUDSDK_CORE_PROJECT", "HELM_NAMESPACE", "TF_WORKSPACE",
        "ANSIBLE_CONFIG", "GIT_DIR", "GIT_WORK_TREE",)
)  # fmt: skip
"""Point a client at another target by literal path or name: a helper (law 8), named in `ambient`."""
POINTING = AMBIENT_VARIABLES | {"DOCKER_HOST"}
"""Whose literal value says where a client goes, whatever the level of setting it."""
AMBIENT_PATHS = frozenset(
    ("KUBECONFIG", "AWS_CONFIG_FILE", "DOCKER_CONFIG", "PGPASSFILE", "CLOUDSDK_CONFIG", "ANSIBLE_CONFIG", "GIT_DIR",
        "GIT_WORK_TREE",)
)  # fmt: skip
"""Those of them whose values are paths."""
DANGEROUS_VARIABLES = frozenset(
    ("PATH", "BASH_ENV", "ENV", "IFS", "PAGER", "MANPAGER", "EDITOR", "VISUAL", "LESSOPEN", "LESSCLOSE", "BROWSER",
        "SHELL", "PROMPT_COMMAND", "CDPATH", "SHELLOPTS", "BASHOPTS", "TAR_OPTIONS", "PERL5OPT", "PERL5LIB",
        "RUBYOPT", "RUBYLIB", "PYTHONPATH", "PYTHONSTARTUP", "PYTHONHOME", "PYTHONINSPECT", "NODE_OPTIONS",
        "NODE_PATH", "HOME", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "CLASSPATH", "GCONV_PATH", "HOSTALIASES",
        "LOCALDOMAIN", "RES_OPTIONS", "TMPDIR", "HISTFILE", "MAILCHECK", "MAILPATH", "GLOBIGNORE", "FCEDIT",
        "INPUTRC", "TERMINFO", "TERMCAP", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy",
        "all_proxy", "DOCKER_HOST", "SSH_ASKPASS", "RSYNC_RSH", "SUDO_ASKPASS", "XDG_CONFIG_HOME",
        "BASH_LOADABLES_PATH", "BASH_CMDS", "BASH_ALIASES", "FUNCNEST", "POSIX_PEDANTIC", "LESS", "MORE", "MANOPT",
        "GZIP", "ZIPOPT", "UNZIP", "GREP_OPTIONS", "RIPGREP_CONFIG_PATH", "MYSQL_HOME", "PSQLRC", "PSQL_PAGER",
        "SYSTEMD_PAGER", "SYSTEMD_EDITOR", "KUBE_EDITOR", "AWS_PAGER", "CC", "CXX", "MAKEFLAGS", "OPENSSL_CONF",
        "BASH_COMPAT", "PS4",
        "CURL_HOME", "WGETRC", "RUSTC_WRAPPER", "GOFLAGS", "MANPATH", "NLSPATH", "ZDOTDIR", "XAUTHORITY", "DISPLAY",)
)  # fmt: skip
DANGEROUS_PREFIXES = (
    "LD_", "DYLD_", "GIT_", "BASH_FUNC_", "MALLOC_", "OPSAGENT_", "NPM_CONFIG_", "npm_config_", "PIP_", "TF_",
    "ANSIBLE_",
    "AWS_", "AZURE_", "CLOUDSDK_", "GOOGLE_", "CARGO_", "SSH_", "KUBE", "HELM_", "PG", "MYSQL_",
)  # fmt: skip
WITH_FILES = frozenset(("LC_ALL", "LANG", "LANGUAGE", "TZ"))
"""With a slash in them they name files: catalogues with formats of printf, locales, zones (setlocale(3), tzset(3))."""
ZONES = ("/usr/share/zoneinfo/", ":/usr/share/zoneinfo/", "/etc/localtime", ":/etc/localtime")
"""Where a zone of the system lies."""
_OBEYED = frozenset(
    ("LOCPATH", "TEXTDOMAINDIR", "GETCONF_DIR", "GLIBC_TUNABLES", "APT_CONFIG", "SSLKEYLOGFILE", "PHPRC", "MAVEN_OPTS",
        "ANT_OPTS", "SBT_OPTS", "JAVACMD", "RUSTFLAGS", "TCLLIBPATH", "GDBINIT", "MANLESS", "MANROFFOPT", "INFOPATH",
        "MAGIC", "BAT_PAGER", "DELTA_PAGER", "FZF_DEFAULT_COMMAND", "GPG_AGENT_INFO", "GNUPGHOME", "SCREENRC",
        "XDG_DATA_HOME", "XDG_DATA_DIRS", "XDG_RUNTIME_DIR", "XDG_CACHE_HOME", "XDG_STATE_HOME",)
)  # fmt: skip
_OBEYED_PREFIXES = (
    "DBUS_", "DPKG_", "DEBUGINFOD_", "SYSTEMD_", "LESS", "OPENSSL_", "GIO_", "GTK_", "QT_", "GST_", "PYTHON", "PERL",
    "RUBY", "NODE_", "JAVA_", "JDK_", "GO", "RUSTC", "RUSTUP_", "PHP_", "LUA", "R_", "GUILE_", "AWK", "GAWK", "ERL_",
    "JULIA_", "MAVEN_", "GRADLE_", "TERMINFO", "GROFF_", "MAN", "RESOLV_", "SUDO_", "KRB5", "LDAP", "XDG_CONFIG",
)  # fmt: skip
_OBEYED_ENDINGS = (
    "_ADDR", "_ADDRESS", "_HOST", "_HOSTS", "_URL", "_URI", "_ENDPOINT", "_ENDPOINTS", "_SERVER", "_SERVERS", "_PROXY",
    "_SOCKET", "_proxy",
)  # fmt: skip
"""Ends of names that say where a client goes."""
PAGER_VARIABLES = frozenset(("PAGER", "MANPAGER", "GIT_PAGER", "SYSTEMD_PAGER", "AWS_PAGER", "PSQL_PAGER", "LESS"))
KNOWN_ENVIRONMENT = {"HOME": "~"}
"""Variables whose value at run time is known in kind: the caller's home."""


def dangerous(name: str) -> bool:
    """Whether a variable of this name changes what programs do, or where they look, when its value is not known."""
    return name in DANGEROUS_VARIABLES or name in AMBIENT_VARIABLES or name.startswith(DANGEROUS_PREFIXES)


def obeyed(name: str) -> bool:
    """Whether a program that gets this variable loads, runs or writes what it names, or goes where it says.

    As a variable of the shell alone such a name means nothing.
    """
    return name not in HARMLESS_VARIABLES and (
        name in _OBEYED or name.startswith(_OBEYED_PREFIXES) or name.endswith(_OBEYED_ENDINGS)
    )
