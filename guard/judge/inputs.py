"""What a command takes from the machine besides its own text: programs, files, listings, and what nobody can pin.

A stamp binds these (their hashes, their listings), so that what a person approved is what runs. Worked out from the
record of commands that the walk left (`Judge.ran`), when somebody asks, without I/O. The rule of thumb: a file that is
named here without need costs a second question at worst; one that is forgotten lets another text run than was approved.
"""

from guard.judge import paths
from guard.judge.facts import lists_otherwise
from guard.judge.families import PROGRAMS
from guard.judge.levels import R0, R2
from guard.judge.program import MOST_FOLDERS, lookup
from guard.judge.shell.syntax import Expansion

TYPE_CHECKING = False
if TYPE_CHECKING:
    from guard.judge.engine import Judge
    from guard.judge.program import Ran
    from guard.judge.shell.syntax import Word

MAX_ITEMS = 2_000
"""More than this is no longer listed one by one; the rest is one `unbound` item."""
MAX_NAME = 4_096
"""PATH_MAX of Linux: a longer word is no file name."""


def _names(names: str) -> "frozenset[str]":
    return frozenset(names.split())


FILE_OPTIONS = frozenset(
    ("-f", "-F", "-i", "-r", "-T", "-K", "-k", "-x", "-p", "-c", "--file", "--filename", "--files-from", "--input",
        "--input-file", "--inventory", "--inventory-file", "--upload-file", "--config", "--config-file", "--values",
        "--value-files", "--var-file", "--from-file", "--from-env-file", "--env-file", "--requirement",
        "--constraint", "--script", "--init-file", "--rcfile", "--playbook", "--patch-file", "--template",
        "--template-file", "--template-body", "--cli-input-json", "--kustomize", "--chdir", "--makefile", "-init",
        "--init-command-file", "--defaults-file", "--defaults-extra-file", "--arg-file", "--files0-from", "-a",
        "--vault-password-file", "--manifest-path", "--project", "--chart", "--from", "--body-file", "--data-file",)
)  # fmt: skip
"""Options whose value is a file that is run or sent, in the programs that have them; a bare name after one counts."""
CODE_OPTIONS = frozenset(
    ("-c", "-e", "-E", "-r", "-Command", "-command", "--eval", "--execute", "--command", "--print")
)
"""Options of interpreters whose value is code, not a file's name."""
_NO_FILE_OF_THEIR_OWN = _names(
    ": [ alias bg bind break builtin caller cd command compgen complete compopt continue coproc declare dirs disown "
        "enable eval exec exit export fc fg getopts hash help history jobs let local logout mapfile popd pushd read "
        "readarray readonly return set shift shopt source . suspend times trap type typeset ulimit umask unalias "
        "unset wait"
)  # fmt: skip
"""Words that bash carries out itself and that are no program anywhere else."""
_TAKE_NO_CONTENT = _names(
    "rm rmdir shred srm scrub wipe unlink truncate touch mkdir mkfifo mknod chmod chown chgrp chattr chcon setfacl "
        "setfattr restorecon kill killall pkill systemctl service journalctl loginctl hostnamectl timedatectl ln link "
        "tar gtar bsdtar zip gzip gunzip bzip2 xz zstd lz4 7z rar compress pigz pbzip2 brotli rename prename mmv "
        "borg restic du df mount umount sqlite3 sqlite duckdb vi vim nano emacs less more man "
        "sudo doas env timeout nice ionice nohup setsid stdbuf time xargs parallel find fd su runuser ssh watch flock "
        "chroot unshare nsenter strace ltrace busybox toybox eval exec command builtin"
)  # fmt: skip
"""Known programs whose operands are objects, data or another command (recorded by itself), not something they obey."""
_MOVERS = _names("cp mv install gcp gmv dd tee sponge rsync scp patch unzip cpio ar sort ed ex")
"""Their operands count where the copy matters: when the command by itself is R2 or more (a critical path, a device)."""
_RUNNERS = _names(
    "source . bash sh dash zsh ksh ash mksh rbash yash posh ksh93 fish csh tcsh pwsh powershell nu elvish xonsh "
        "crontab ansible-playbook bc tclsh expect"
)  # fmt: skip
_SCRIPTED = _names("awk gawk mawk nawk original-awk sed gsed")
"""Their operands are data, unless a script comes from a file (`-f`)."""
_TREES = {
    "what it reads and runs from its folder": (
        "make gmake bmake dmake ninja meson cmake just task rake scons ant gradle gradlew mvn mvnw sbt lein bazel buck "
        "npm npx yarn pnpm pnpx bun bunx cargo go bundle composer tox nox pytest poetry uv pdm hatch rye dotnet mix "
        "stack cabal dub nimble turbo nx lerna rush terraform tofu terragrunt pulumi cdk serverless vagrant packer "
        "skaffold tilt fab cap capistrano invoke pre-commit configure grunt gulp webpack vite tsc sphinx-build mkdocs "
        "jekyll hugo kitchen molecule rails django-admin"
    ),
    "roles, includes and inventory": "ansible ansible-playbook ansible-pull ansible-console puppet chef-client salt",
    "images, build contexts and what its files include": (
        "docker podman nerdctl docker-compose podman-compose buildah kaniko kind k3d nomad"
    ),
    "charts, kustomizations and what they include": "helm helmfile kustomize argocd flux",
    "what its configuration includes": "nginx apachectl apache2ctl httpd haproxy named bind rsyslogd logrotate",
    "what the package source offers at that time": (
        "apt apt-get aptitude dnf dnf5 yum microdnf tdnf zypper apk pacman yay paru emerge pkg brew port snap flatpak "
        "pip pip3 pipx gem cpan cpanm luarocks conda mamba micromamba nix nix-env nix-shell opkg xbps-install choco "
        "winget scoop rustup pecl pear tlmgr do-release-upgrade"
    ),
}
_BUILDS = _names("build buildx bake run create pull compose up stack service load import deploy start job")
"""Verbs of container clients that take more than the container that is there."""
_SCHEMES = ("http://", "https://", "ftp://", "git://", "ssh://", "git@", "git+", "oci://", "s3://", "gs://", "hg+")


_LISTERS = frozenset(("xargs", "parallel", "gxargs"))
_MADE_CODE = frozenset(
    ("shell.eval", "shell.script", "shell.source", "shell.dynamic-code", "shell.dynamic-command", "shell.stdin-code",
        "interpreter.code", "interpreter.script", "program.unread")
)  # fmt: skip
"""Findings that say that code which the text does not hold is run."""


def _is_told_late(ran: "Ran") -> bool:
    """Whether a word of a command is known only when it runs, and not just as a file's name from a pattern."""
    return any(word.value is None or word.appended for word in ran.words)


def inputs(judge: "Judge", command: str) -> "tuple[tuple[str, str], ...]":
    """(kind, object) in the order of the text, each once: `program` · `file` · `glob` · `unbound`."""
    found = _Inputs(judge, command)
    elsewhere = {id(word) for ran in judge.ran if ran.away for word in ran.words}
    for ran in judge.ran:
        found.command(ran, elsewhere)
    found.code_from_reads()
    for place in judge.fed:
        found.file(place)
    for word in judge.lists:
        found.listing(word)
    if len(judge.cwds) >= MOST_FOLDERS:
        found.add("unbound", "relative names: it changes its folder too often")
    if "opaque" in judge.flags and any(finding[1] in ("shell.syntax", "shell.unread") for finding in judge.findings):
        found.add("unbound", "a part that could not be read")
    items = tuple(found.items)
    if len(items) > MAX_ITEMS:
        return (*items[:MAX_ITEMS], ("unbound", f"{len(items) - MAX_ITEMS} more names"))
    return items


class _Inputs:
    """Gathers the items of one command."""

    __slots__ = ("judge", "raw", "items", "away")

    def __init__(self, judge: "Judge", command: str) -> None:
        self.judge = judge
        self.away = {at for ran in judge.ran if ran.away for at in range(ran.first_effect, ran.end_effect)}
        self.raw = command.encode("utf-8", "replace")
        self.items: dict[tuple[str, str], None] = {}

    def add(self, kind: str, name: str) -> None:
        self.items[(kind, name)] = None

    def code_from_reads(self) -> None:
        """Where code is made when it runs (`bash -c "$(cat x)"`, `find -exec bash`), what it is made from is bound.

        Nobody can say which of the files that are read ends up in it, so all of them are.
        """
        rules = [finding[1] for finding in self.judge.findings]
        if not any(rule in _MADE_CODE for rule in rules):
            return
        dynamic = [ran for ran in self.judge.ran if not ran.away and _is_told_late(ran)]
        if not dynamic and "shell.eval" not in rules and "shell.stdin-code" not in rules:
            return
        for at, (kind, name) in enumerate(self.judge.effects):
            if at not in self.away and kind in ("read", "secret-read") and not any(char in name for char in "*?["):
                self.file(name)
        name = (dynamic[0].name if dynamic else "") or "the shell"
        self.add("unbound", f"{name}: code that is made when it runs")

    def file(self, place: str) -> None:
        if place.startswith("*"):
            self.add("unbound", f"{place.lstrip('*/')}: in a folder that the text does not tell")
        else:
            self.add("file", place)

    def command(self, ran: "Ran", elsewhere: "set[int]") -> None:
        """One simple command: its program, its listings, and what it obeys."""
        name = ran.name
        if ran.away:
            self.add("unbound", f"{name or 'a program'}: where it runs, on another machine or in a container")
            return
        self._program(ran)
        for word in ran.words[1:]:
            self.listing(word, name)
        if ran.level > R0:
            for ending in _trees_of(ran):
                self.add("unbound", f"{name}: {ending}")
        if name in _LISTERS:
            self._reads(ran)  # what is in the list is what the command gets
        if not self._obeys(ran):
            if self._feeds(ran):
                self._reads(ran)
            return
        self._reads(ran)
        self._words(ran, elsewhere)

    def _program(self, ran: "Ran") -> None:
        written = ran.words[0].value
        if not ran.name or written is None:
            self.add("unbound", f"{self.shown(ran.words[0])}: which program runs is not told by the text")
        elif "/" in written:
            for place in self.judge.places(written):
                if place.startswith("*"):
                    self.add("unbound", f"{written}: in a folder that the text does not tell")
                else:
                    self.add("program", place)
        elif ran.name not in _NO_FILE_OF_THEIR_OWN:
            self.add("program", ran.name)

    def listing(self, word: "Word", name: str = "") -> None:
        """A word that bash makes of what lies in a folder, or of what only the run will know."""
        if word.appended:
            self.add("unbound", f"{name}: words that are added when it runs" if name else "words added when it runs")
        elif word.value is None:
            self.add("unbound", f"{self.shown(word)}: told only when it runs")
        elif word.globs:
            for place, listed in self.judge.listed_places(word.value, word.patterns.get(0, word.value)):
                if place.startswith("*/"):
                    self.add("unbound", f"{word.value}: in a folder that the text does not tell")
                elif listed is None or lists_otherwise(self.judge):
                    self.add("unbound", f"{word.value}: what it lists")
                else:
                    self.add("glob", listed)

    def shown(self, word: "Word") -> str:
        """The word as the text has it where that can be told, else with its unknown pieces as `*`."""
        start, end = word.span
        source = self.raw[start:end]
        if (
            0 < len(source) < MAX_NAME
            and any(isinstance(part, Expansion) for part in word.parts)
            and all(part.encode("utf-8", "replace") in source for part in word.parts if isinstance(part, str))
        ):
            return source.decode("utf-8", "replace")
        return word.shape

    def _obeys(self, ran: "Ran") -> bool:
        """Whether what its operands hold decides what it does."""
        name = ran.name
        if name in _TAKE_NO_CONTENT:
            return False
        if name in _MOVERS:
            return ran.level >= R2
        if name in _RUNNERS:
            return True
        if name in _SCRIPTED:
            return any((word.value or "").startswith(("-f", "-E", "--file", "--exec")) for word in ran.words)
        program = lookup(name) if name else None
        return program is None or not program.plain

    def _feeds(self, ran: "Ran") -> bool:
        """Whether its output reaches a program that obeys it: `cat x.sql | psql`."""
        if not ran.pipe:
            return False
        own = self.judge.ran.index(ran)
        return any(later.pipe == ran.pipe and self._obeys(later) for later in self.judge.ran[own + 1 :])

    def _reads(self, ran: "Ran") -> None:
        for at in range(ran.first_effect, ran.end_effect):
            kind, name = self.judge.effects[at]
            if at in self.away or kind not in ("read", "secret-read") or any(char in name for char in "*?["):
                continue
            if name.startswith(("/", "~")) or not (self.judge.cwds or " " in name):
                self.file(name)

    def _words(self, ran: "Ran", elsewhere: "set[int]") -> None:
        name = ran.name
        written = {
            place for kind, place in self.judge.effects[ran.first_effect : ran.end_effect] if kind == "write"
        }  # fmt: skip
        interpreter = PROGRAMS.get(name) == "interpreters" or name.startswith("python3.")
        runs = name in _RUNNERS or (interpreter and not _trees_of(ran))
        before = ""
        script = False
        ended = False
        for word in ran.words[1:]:
            value = word.value
            if value is None or word.globs or word.appended or id(word) in elsewhere:
                before = ""
                continue
            if value == "--":
                ended, before = True, ""
                continue
            if runs and before in CODE_OPTIONS:
                script = True
                before = ""
                continue
            bare = (
                (runs and (ended or not value.startswith("-")))
                or before in FILE_OPTIONS
                or value.partition("=")[0] in FILE_OPTIONS
            )
            for candidate in _candidates(value, ended):
                if candidate.startswith(_SCHEMES) or "://" in candidate:
                    self.add("unbound", f"{candidate}: what it serves at that time")
                elif _may_be_file(candidate, bare):
                    for place in self.judge.places(candidate):
                        if place not in written:
                            self.file(place)
                            script = script or runs
            before = "" if ended else value
        if script and name not in ("bc", "crontab"):
            self.add("unbound", f"{name}: what its code loads and runs besides")


def _trees_of(ran: "Ran") -> "list[str]":
    found = [ending for ending, names in _TREES.items() if ran.name in names.split()]
    values = {word.value for word in ran.words}
    if found and found[0].startswith("images") and not values & _BUILDS:
        return []
    if ran.name in ("kubectl", "oc") and values & {"-k", "--kustomize", "kustomize"}:
        return ["kustomizations and what they include"]
    return found


def _candidates(value: str, ended: bool) -> "list[str]":
    """The texts within one word that can be a file's name: `--values=x`, `-fx`, `key=@x`, `file://x`."""
    found: list[str] = []
    head, equals, tail = value.partition("=")
    if not value.startswith("-") or ended:
        if not equals or "/" in head:
            found.append(value)
    elif not value.startswith("--") and len(value) > 2:
        found.append(value[2:].lstrip("="))
    if equals and "://" not in head:
        key, again, rest = tail.partition("=")
        found.append(rest if again and "/" not in key else tail)
    for text in list(found):
        for mark in ("fileb://", "file://", "@<", "@"):
            if text.startswith(mark):
                found.append(text[len(mark) :])
                found.remove(text)
                break
    return [text for text in found if text]


def _may_be_file(text: str, bare: bool) -> bool:
    if len(text) > MAX_NAME or "\n" in text or text in ("-", ".", "..", "/"):
        return False
    if paths.device(text):
        return False
    if "/" in text:
        return not text.startswith("-")
    if bare:
        return not text.startswith("-")
    name, dot, ending = text.rpartition(".")
    return bool(dot) and bool(name) and ending.isalnum() and not ending.isdigit() and len(ending) <= 10
