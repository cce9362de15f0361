"""Package managers of distributions and languages. Source: the manual of each."""

from guard.judge.levels import R2
from guard.judge.options import Grammar
from guard.judge.program import Call, Program
from guard.judge.rules import custom, many, reader, table, verbs
from guard.judge.shell.syntax import Word

EXAMPLES = {
    "R0": ("apt list --installed", "apt-cache policy nginx", "apt show nginx", "dpkg -l", "dpkg -S /bin/ls",
        "dpkg-query -W", "rpm -qa", "rpm -qi bash", "rpm -ql bash", "dnf list installed", "yum info x", "apk info",
        "pacman -Q", "pacman -Qi x", "snap list", "flatpak list", "pip list", "pip show x", "pip freeze", "npm ls",
        "npm view x version", "gem list", "cargo tree", "go version", "go list ./...", "brew list", "zypper lr",
        "apt-get -s install x", "rpm -V bash", "conda list", "npm root", "cargo --version",),
    "R2": ("apt install x", "apt-get update", "apt upgrade", "dpkg -i x.deb", "rpm -i x.rpm", "rpm -e x",
        "dnf install x", "yum remove x", "apk add x", "pacman -S x", "pacman -Syu", "snap install x",
        "pip install x", "npm install", "npm run build", "npx x", "gem install x", "cargo build", "go run x.go",
        "brew install x", "apt-get autoremove", "yarn", "npm exec x", "cargo run", "pip foo", "apt foo",
        "dpkg --configure -a", "rpm -qE %(id)", "rpm -qD 'a %(id)' bash",
        "go list -toolexec=x ./...", "go list -mod=mod ./...",
        "go list -overlay=x -json ./...", "apt-key add x", "go build", "apt -o APT::Update::Pre-Invoke::=id list",),
    "R3": ("apt purge x", "apt-get purge x", "dpkg -P x", "npm unpublish x", "cargo yank x"),
}  # fmt: skip


def _dpkg(call: Call) -> None:
    reads = ("-l", "-L", "-s", "-S", "-p", "-V", "-C", "--list", "--listfiles", "--status", "--search",
        "--print-avail", "--verify", "--audit", "--get-selections", "--print-architecture",
        "--print-foreign-architectures",
        "-I", "-c", "--info", "--contents", "--compare-versions", "--version", "--help", "-W", "--show",
        "--assert-support-predepends", "--field", "-f")  # fmt: skip
    seen = skip = False
    for word in call.args:
        value = word.value
        if skip or value is None or not value.startswith("-"):
            skip = False
            continue
        head = value.partition("=")[0]
        # `--root --no-act`: the second word is the first one's value.
        skip = head == value and head in ("--root", "--admindir", "--instdir", "--log", "--show-format")
        if head in ("-P", "--purge"):
            call.note(3, "packages.dpkg.purge", "removes a package with its configuration", word, "dpkg(1)")
            return
        if head in reads or (len(head) > 2 and head[1] != "-" and head[:2] in ("-l", "-L", "-s", "-S", "-W", "-f")):
            seen = True
        elif head in ("--no-pager", "--root", "--admindir", "--show-format", "--no-act", "--dry-run", "--simulate"):
            if head in ("--no-act", "--dry-run", "--simulate"):
                seen = True
                break
        elif not seen:
            call.note(R2, "packages.dpkg", "changes installed packages", word, "dpkg(1)")
            return
    if not seen:
        call.note(R2, "packages.dpkg", "changes installed packages", None, "dpkg(1)")


def _rpm(call: Call) -> None:
    letters = [word.value or "?" for word in call.args]
    options = [value for value in letters if value.startswith("-")]
    bad = (
        "--pipe",
        "--eval",
        "--define",
        "-D",
        "-E",
        "--import",
        "--rebuilddb",
        "--initdb",
        "--setperms",
        "--setugids",
        "--restore",
        "--load",
        "--macros",
        "--rcfile",
        "--root",
        "--dbpath",
        "-e",
        "--erase",
        "-i",
        "--install",
        "-U",
        "--upgrade",
        "-F",
        "--freshen",
    )
    asks = any(value.startswith(("-q", "--query", "-V", "--verify")) for value in options)
    if asks:
        options = [value for value in options if value not in ("-i", "-F", "-e", "--install")]
    # -E and -D expand and define macros, which can run commands, in a bundle as well (`-qE`).
    macros = any(value[1:2] != "-" and not {"E", "D"}.isdisjoint(value) for value in options)
    if (
        macros
        or any(value.partition("=")[0] in bad for value in options)
        or any(value.startswith(("--spec", "--predefine", "--undefine")) for value in options)
    ):
        call.note(R2, "packages.rpm", "changes installed packages or runs macros", None, "rpm(8)")
        return
    if any("://" in value for value in letters):
        call.note(R2, "packages.rpm.fetch", "fetches a package from an address", None, "law 10")
    if any(
        value in ("--version", "--help", "--querytags", "--showrc", "-K", "--checksig")
        or value.startswith(("-q", "-V", "--query", "--verify"))
        for value in options
    ):
        return
    call.note(R2, "packages.rpm", "changes installed packages", None, "rpm(8)")


def _pacman(call: Call) -> None:
    if any(
        (word.value or "").startswith(
            ("--refresh", "-y", "--sysupgrade", "--hookdir", "--config", "--root", "--dbpath", "--sysroot", "--gpgdir")
        )
        for word in call.args
    ):
        call.note(R2, "packages.pacman", "brings the package lists up to date", None, "pacman(8)")
    for word in call.args:
        value = word.value or ""
        if (
            value.startswith(("-Q", "--query", "-F", "--files", "-T", "--deptest", "-V", "-h", "--version", "--help"))
            and "y" not in value[2:]
        ):
            return
        if value.startswith("-S") and not value.startswith("--") and set(value[2:]) <= set("siglq") and value[2:]:
            return
        if value.startswith("-"):
            break
    call.note(R2, "packages.pacman", "changes installed packages", None, "pacman(8)")


def _simulated(call: Call) -> bool:
    """A simulation is asked for as an option (not as another's value), and nothing takes it back."""
    if not any(option.name == "-s" for option in _SIMULATION.parse(call.args).options):
        return False
    for at, word in enumerate(call.args):
        value = word.value if word.value is not None else word.prefix or "-"
        name, equals, _ = value.partition("=")
        following = call.args[at + 1].value if at + 1 < len(call.args) else ""
        simulates = name in _SIMULATES or (name[1:2] != "-" and name[:1] == "-" and "s" in name)
        taken_back = name.startswith("--no-") and "-" + name[4:] in _SIMULATES
        if taken_back or (len(value) > 2 and value[0] == "-" and value[-1] == "-"):
            return False
        if simulates and (equals or following in ("no", "false", "off", "0", "without", "disable")):
            return False
    return True


_SIMULATES = frozenset(("--simulate", "--just-print", "--dry-run", "--recon", "--no-act"))


def _apt(call: Call) -> None:
    for at, word in enumerate(call.args):
        value = word.value or ""
        if value in ("-o", "--option", "-c", "--config-file") or value.startswith(
            ("-o", "--option=", "-c=", "--config-file=")
        ):
            text = (
                value
                if len(value) > 2 and value not in ("--option", "--config-file")
                else (call.args[at + 1].value or "?" if at + 1 < len(call.args) else "?")
            )
            if (
                not text.lower()
                .lstrip("-o=")
                .startswith(("dpkg::use-pty", "apt::get::show", "apt::color", "debug::", "dir::cache_"))
            ):
                call.note(R2, "packages.apt.option", "the setting can name programs to run", word, "law 8")
    if call.name != "apt-cache" and _simulated(call):
        return
    APT.judge(call)


_APT_OPTIONS = (
    "-q,--quiet? -qq -y,--yes,--assume-yes -s,--simulate -o,--option: -c,--config-file: "
    "-t,--target-release,--default-release: -a,--all-versions -i -n,--names-only -f,--fix-broken -V "
    "-v,--version -h,--help --installed --upgradable -d,--download-only -m --no-install-recommends "
    "--allow-downgrades --full --no-all-versions --force-yes -u --purge!R3"
)
_SIMULATION = Grammar(
    _APT_OPTIONS.replace("-q,--quiet?", "-q --quiet?").replace("-s,--simulate", "-s," + ",".join(sorted(_SIMULATES)))
)
APT = verbs(
    _APT_OPTIONS,
    """R0 list|show|search|policy|showsrc|depends|rdepends|madison|showpkg|stats|dumpavail|unmet|pkgnames|dotty|
        showhold|
        showmanual|showauto|changelog|check|indextargets|why|why-not|versions|dump|help|moo
    R2 install|update|upgrade|full-upgrade|dist-upgrade|remove|autoremove|auto-remove|clean|autoclean|auto-clean|
        source|build-dep|download|edit-sources|hold|unhold|mark|satisfy|reinstall|add|key|gencaches
    R3 purge""",
    danger="--purge!R3", plain=False,
)  # fmt: skip
_DNF = """R0 list|info|search|provides|whatprovides|repolist|repoinfo|check-update|check|deplist|repoquery|history list|
        history info|history userinstalled|history|grouplist|groupinfo|group list|group info|module list|module "
        "info|updateinfo|
        updateinfo list|updateinfo info|version|help|lr|repos|se|packages|pa|patches|lu|list-updates|if|wp|
        what-provides|patterns|products|ls|services|locks|ll|patch-check|targetos|lp|list-patches|advisory list|
        advisory info
R2 install|update|upgrade|remove|erase|autoremove|clean|makecache|reinstall|downgrade|history undo|history rollback|
        history redo|history replay|history store|history new|history sync|groupinstall|group install|module "
        "enable|module install|module disable|config-manager|copr|swap|
        distro-sync|system-upgrade|up|dup|in|rm|ref|refresh|ar|rr|patch|addrepo|removerepo|addlock|removelock|
        mark"""


def _version(call: Call, verb: str, rest: "list[Word]") -> None:
    """poetry, hatch, uv and rye: with a word behind it, `version` sets the project's version."""
    for word in rest:
        if not (word.value or "x").startswith("-") or (word.value or "").startswith("--bump"):
            call.note(R2, f"{call.name}.version", "sets the project's version", word)


def _go_env(call: Call, verb: str, rest: "list[Word]") -> None:
    for word in rest:
        if (word.value or "-u").startswith(("-u", "--u")):
            call.note(R2, "go.env", "changes go's settings", word)


def _npm_config(call: Call, verb: str, rest: "list[Word]") -> None:
    for word in rest:
        if "_" in (word.value or "_") and any(
            item in (word.value or "").lower() for item in ("auth", "password", "token")
        ):
            call.note(R2, "npm.secret", "shows a credential", word, "law 4")


PROGRAMS: dict[str, Program] = {
    **many("apt apt-get apt-cache aptitude apt-mark", custom(_apt)),
    **many("apt-config", verbs("", "R0 dump|shell")),
    **many("apt-file", verbs("", "R0 search|find|list|show\nR2 update")),
    **many("apt-key add-apt-repository apt-add-repository ppa-purge dpkg-reconfigure dpkg-divert "
        "dpkg-statoverride do-release-upgrade unattended-upgrade debconf-set-selections needrestart " "tasksel",
        custom(lambda call: call.note(R2, f"packages.{call.name}", "changes packages or where they come from"))),
    **many("dpkg dpkg-query dpkg-deb", custom(_dpkg)),
    **many("popularity-contest debconf-show", reader("", operands="data")),
    "dlocate": reader("-L -S -s -l -ls -du -conf -md5sum -md5check -man -lsman -lsbin -k -K -h -V", operands="data",
        unknown="R2"),
    "debsums": reader("-a,--all -e,--config -c,--changed -l,--list-missing -s,--silent -m,--md5sums: -r,--root: "
    "-d,--admindir: "
        "-x,--report-mismatches -p,--deb-path: --ignore-permissions --ignore-obsolete --no-prelink --no-locale-purge "
        "--help --version -g,--generate:!write", operands="data", unknown="R2"),
    "deborphan": reader("-a,--all-packages -n,--nice-mode -P,--show-priority -s,--show-section -z,--show-size "
    "-H,--ignore-recommends "
        "--libdevel --guess-all -f,--status-file: -h,--help -v,--version -L,--list-keep", operands="data",
            unknown="R2"),
    "apt-listchanges": table("", operands="data", level="R2", text="mails, shows or records what changed"),
    **many("rpm", custom(_rpm)),
    **many("dnf dnf5 yum microdnf zypper tdnf", verbs(
            "-q,--quiet -y,--assumeyes -v,--verbose -C,--cacheonly -d: -e: -c,--config:!R2 --enablerepo: "
            "--disablerepo: --repo,--repoid: --installroot:!R2 --releasever: --setopt:!R2 --nogpgcheck "
            "--showduplicates -n,--non-interactive -x,--exclude: -h,--help --version --refresh --noplugins "
            "--all --installed --available -s --no-refresh -R,--root:!R2", _DNF, anywhere=True,
            danger="--export:!write -e:!write")),
    "apk": verbs("-q -v -X,--repository: -p,--root:!R2 -U,--update-cache!R2 --no-cache -h,--help --version",
        """R0 info|search|list|version|policy|stats|dot|audit|manifest
        R2 add|del|update|upgrade|fix|fetch|cache"""),
    **many("pacman yay paru", custom(_pacman)),
    "snap": verbs("-h,--help --version",
        """R0 list|info|find|version|changes|tasks|connections|interfaces|services|logs|known|model|warnings|get|whoami|
        interface|help
        R1 start|restart
        R3 remove_"""),
    "flatpak": verbs("--user --system --verbose --version -h,--help --installation:",
        "R0 list|info|search|remotes|remote-ls|remote-info|history|ps|permissions|permission-show|documents"),
    **many("pip pip3 pipx uv poetry pdm pipenv conda mamba micromamba virtualenv pyenv rye hatch", verbs(
            "-q,--quiet -v,--verbose --no-color --disable-pip-version-check --no-input --isolated "
            "--python:!exec -h,--help -V,--version --no-cache-dir --require-virtualenv --timeout: "
            "--no-interaction -n --log:!write --proxy:!R2 --directory:!R2 --project:!R2 --offline --no-config",
            """R0 list|show|freeze|check|debug|inspect|help|index versions|config list|config get|cache dir|cache info|
        cache list|pip list|pip show|pip freeze|pip tree|pip check|tree|env info|env list|info|search|version|
        versions|which|whence|root|prefix|completion|python list|python find|tool list|tool dir|package show|graph|
        environment|about|source show
        R3 cache purge|env remove""", flags=("helper",), anywhere=True, details={"version": _version},
            danger="--log:!write --index-url:!R2 -i:!R2 --extra-index-url:!R2 --find-links:!R2 --proxy:!R2")),
    **many("npm pnpm yarn bun corepack nvm fnm volta n lerna nx turbo rush", verbs(
            "-g,--global --prefix:!R2 -s,--silent --loglevel: --json --no-color -C,--dir:!R2 -h,--help "
            "-v,--version --cwd:!R2 -w,--workspace: --workspaces --registry:!R2 --userconfig:!R2 --offline -q " "-d",
            """R0 ls|list|ll|la|view|v|show|info|outdated|root|prefix|bin|help|help-search|search|explain|why|
                ping|whoami|
        config list|config ls|config get|get|query|fund|owner ls|dist-tag ls|team ls|access list|profile get|
        licenses list|pkg get|audit signatures|store path|current|ls-remote|which|list-remote|pm ls|stars|cache ls|
        diff
        R3 unpublish|cache clean|deprecate""", flags=("helper",), none="R2",
            danger="-g,--global --script-shell:!exec --registry:!R2 --userconfig:!R2 --globalconfig:!R2 "
            "--node-options:!exec --fix!R2 --prefix:!R2 --git:!exec",
            details=dict.fromkeys(("config get", "get", "config list", "config ls"), _npm_config))),
    **many("npx bunx pnpx uvx", custom(lambda call: call.note(R2, f"packages.{call.name}",
                "fetches and runs code that is not read", None, "law 2"))),
    **many("gem bundle bundler rbenv rvm", verbs("-V -h,--help -v,--version --verbose -q",
            """R0 list|info|search|environment|env|contents|dependency|specification|outdated|which|query|help|
                show|platform|
        check|versions|version|licenses|whence|root
        R3 yank|cleanup""", flags=("helper",), none="R2")),
    **many("cargo", verbs(
            "-q -v --color: --offline --frozen --locked --manifest-path:!config -C:!R2 -Z: --config:!R2 "
            "-h,--help -V,--version --list --explain:",
            """R0 tree|metadata|search|version|locate-project|pkgid|read-manifest|info|help|verify-project
        R3 yank|clean""", flags=("helper",), danger="--target-dir:!write --config:!R2 --manifest-path:!config")),
    **many("rustup", verbs("-v -q -h,--help -V,--version",
            "R0 show|check|toolchain list|target list|component list|which|override list\nR3 self uninstall")),
    **many("go", verbs("-C:!R2 -h,--help",
            "R0 version|env|list|doc|mod graph|mod why|help|mod verify|buildid\nR3 clean", flags=("helper",),
            details={"env": _go_env},
            danger="-w,--w:!R2 -toolexec,--toolexec:!exec -exec,--exec:!exec -vettool,--vettool:!exec "
            "-http,--http?!R2 -overlay,--overlay:!R2 -mod,--mod:!R2 -export,--export!R2 -modfile,--modfile:!R2")),
    "gofmt": reader("-w!R1 -l -d -e -s -r: -cpuprofile:!write -h --help", plain=False),
    **many("composer", verbs("-n -q -v -d,--working-dir:!R2 --no-plugins --no-ansi -h,--help -V,--version",
            "R0 show|info|outdated|search|licenses|diagnose|depends|why|why-not|prohibits|status|suggests|"
            "validate|about|audit|fund|check-platform-reqs|list|help", flags=("helper",))),
    **many("brew port", verbs("-v -q -h,--help --version --prefix --cellar --repository --cache --env --caskroom -d",
            "R0 list|ls|info|search|deps|uses|outdated|doctor|config|leaves|desc|log|cat|options|missing|"
            "commands|formulae|casks|tap-info|services list|services info|installed|contents|variants|"
            "dependents|help|abv|--version|--prefix|--cellar", flags=("helper",), none="R0")),
    **many("nix nix-env nix-shell nix-build nix-store nix-channel nixos-rebuild guix emerge equery eselect "
        "xbps-install xbps-remove eopkg swupd opkg pkg pkg_add pkg_delete pkgin slackpkg tlmgr opam "
        "luarocks ghcup nuget asdf mise sdk cs vcpkg conan dub nimble raco cpan cpanm pear pecl helmfile "
        "choco winget scoop mas", verbs("-h,--help --version -q -v -V",
            """R0 list|search|show|info|version|--version|belongs|depgraph|repo list|list-installed|
                profile list|store ls|help|
        current|which|where|plugin list|plugins|outdated|doctor
        R3 clean|clobber|collect-garbage""", default="R2", none="R2", flags=("helper",))),
    **many("cabal stack mix rebar3 dotnet mvn mvnw gradle gradlew sbt lein ant bazel buck pants leiningen", verbs(
            "-h,--help --version -version -v -V", "R0 --version|--list-sdks|--list-runtimes|--info|version",
            none="R2", flags=("helper",))),
    **many("qlist xbps-query", reader("", operands="data")),
}  # fmt: skip
