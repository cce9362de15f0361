"""Kinds of option that turn a read into something else hold for every program that has them."""

import pytest

from guard.judge import families
from guard.judge.classify import check
from guard.judge.families.gitkin import dry
from guard.judge.policy import is_named
from guard.judge.rules import Table
from guard.judge.shell.syntax import Word
from guard.types import Enforcement, Level, Policy

STRICT = Enforcement(("local", "net", "bus", "observe", "netadm", "block"), "strict", 4, True)


def _readers() -> "list[str]":
    found = []
    for name, module in sorted(families.PROGRAMS.items()):
        program = families.load(module)[name]
        if isinstance(program, Table) and not program.level:
            found.append(name)
    return found


def _words(*values):
    return [Word((0, 0), value, (), True) for value in values]


@pytest.mark.parametrize("name", _readers())
def test_an_option_value_that_names_a_credential_is_a_read_of_it(name):
    assert check(f"{name} --zz-source=/etc/shadow f").level >= Level.R2


def _acting_readers() -> "list[str]":
    """Readers with an option that acts, and a letter of no option that any of them has."""
    found = []
    for name in _readers():
        program = families.load(families.PROGRAMS[name])[name]
        grammar = program.grammar
        if grammar.table is None:
            grammar.compile()
        if grammar.dangerous:
            found.append(name)
    return found


@pytest.mark.parametrize("name", _acting_readers())
def test_a_reader_with_an_option_that_acts_takes_no_short_option_that_it_lacks(name):
    """An option nobody listed can be one that acts, as well as an ordinary one."""
    program = families.load(families.PROGRAMS[name])[name]
    spare = next(letter for letter in "0Yyqj9\u00e9" if f"-{letter}" not in program.grammar.table)
    if not program.grammar.digits or not spare.isdigit():
        assert check(f"{name} -{spare} f").level >= Level.R2
    assert check(f"{name} -- f").level == check(f"{name} f").level


OPEN_NAMES = ("ag", "ack", "ack-grep", "pt", "ugrep", "ug")
"""Searchers with a long option for each language."""


@pytest.mark.parametrize("name", _acting_readers())
def test_long_options_are_closed_where_names_are_not_open(name):
    level = check(f"{name} --zz-nothing f").level
    assert level == Level.R0 if name in OPEN_NAMES else level >= Level.R2


@pytest.mark.parametrize(
    "command",
    [
        "ag root {}", "ack root {}", "ugrep -W 3 root {}", "man {}", "man -l {}", "info {}", "shellcheck {}",
        "shfmt {}", "jsonlint {}", "objdump -t {}", "readelf -e {}", "objdump -x {}", "addr2line -e {} 0", "more -p {}",
        "most -b {}", "diff -q {} f", "colordiff {} f", "sdiff f {}", "csvsort -r {}", "yamllint -s {}",
    ],
)  # fmt: skip
def test_no_option_in_front_hides_a_file_that_is_shown(command):
    assert check(command.format("/etc/shadow")).level == Level.R2
    assert check(command.format("/srv/f")).level == Level.R0


@pytest.mark.parametrize(
    "command",
    [
        "zstdcat -o out f.zst", "zstdcat --train a b", "zstdcat --trace t f", "lz4cat --rm f", "xzcat --fi=/etc/shadow",
        "jps -J-agentpath:/srv/x.so", "jps -lvJ-agentpath:/srv/x.so", "jstat -J-agentpath:/srv/x.so -gc 1",
        "curl -w @f http://localhost/", "curl --write-out=@f http://localhost/", "curl -E pkcs11:x http://localhost/",
        "curl --key pkcs11:x http://localhost/", "ansible-doc -M /tmp/x y", "cargo tree --manifest-path /tmp/x",
        "hg --cwd /tmp/x log", "hg log --cwd /tmp/x", "pacman -Q --config f", "pacman -Q --root=/srv",
    ],
)  # fmt: skip
def test_what_manuals_say_of_options_that_act_is_known(command):
    assert check(command, enforcement=STRICT).level >= Level.R1


@pytest.mark.parametrize(
    "command",
    ["zcat f.gz", "xzcat -T0 f.xz", "zstdcat f.zst", "jps -lvm", "jstat -gcutil 1 1000 5", "ansible-doc -l",
     "curl -w '%{http_code}' http://localhost/", "cargo tree --manifest-path Cargo.toml"],
)  # fmt: skip
def test_and_what_only_reads_stays_a_read(command):
    assert check(command, enforcement=STRICT).level == Level.R0


@pytest.mark.parametrize("command", ["pkill -l nginx", "killall -l nginx", "pkill -lx nginx", "skill -l u"])
def test_a_letter_that_elsewhere_lists_keeps_nobody_from_ending_processes(command):
    assert check(command).level == Level.R2
    assert check(f"{command.split()[0]} -l").level == Level.R0


@pytest.mark.parametrize("verb", ["clean", "push", "commit", "rm", "fetch", "add", "prune"])
def test_a_dry_run_holds_only_while_nothing_takes_it_back(verb):
    assert dry(verb, _words("--dry-run"))
    for later in ("--no-dry-run", "--no-dry", "--no-d"):
        assert not dry(verb, _words("--dry-run", later))
    assert not dry(verb, _words("--", "--dry-run"))
    assert not dry(verb, [*_words("--dry-run"), Word((0, 0), None, (), False)])


@pytest.mark.parametrize(
    ("verb", "words"),
    [
        ("clean", ("-e", "-n")),
        ("clean", ("-fen",)),
        ("commit", ("-m", "--dry-run")),
        ("push", ("-o", "-n")),
        ("push", ("--repo", "--dry-run")),
        ("rm", ("--pathspec-from-file", "-n")),
        ("fetch", ("--depth", "--dry-run")),
        ("fetch", ("-n",)),
    ],
)
def test_an_option_that_is_another_ones_value_is_no_dry_run(verb, words):
    assert not dry(verb, _words(*words))


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.255.0.9", "::1", "[::1]", "LOCALHOST"])
def test_this_machine_is_named_by_its_whole_name(host):
    assert is_named(host, 80, Policy())


@pytest.mark.parametrize(
    "host",
    ["localhost.example.org", "localhost-x.org", "127.example.org", "127.0.0.1.example.org", "127.0.0.999", "::1.x",
     "::12", "127.0.0", "", "128.0.0.1"],
)  # fmt: skip
def test_a_name_that_only_begins_like_this_machine_is_not_this_machine(host):
    assert not is_named(host, 80, Policy())


@pytest.mark.parametrize(
    "command",
    [
        "curl http://localhost.example.org/x",
        "curl http://127.example.org/",
        "ping -c 1 localhost-x.org",
        "nc -z 127.example.org 22",
        "ssh localhost.example.org ls",
        "ssh -J bastion.example.org localhost ls",
        "ssh -J localhost,ops@hop.example.org:2222 localhost ls",
        "ssh localhost -J hop.example.org ls",
        "openssl s_client hop.example.org:443 < /dev/null",
        "openssl s_client -host hop.example.org < /dev/null",
        "openssl s_client --connect=hop.example.org:443 < /dev/null",
        "openssl s_client -connect localhost:443 -connect hop.example.org:443 < /dev/null",
    ],
)
def test_a_peer_that_nobody_named_is_asked_for_wherever_it_stands(command):
    assessment = check(command, enforcement=STRICT)
    assert (assessment.level, assessment.decision.code) == (Level.R0, "egress")


@pytest.mark.parametrize(
    "command",
    ["flock /tmp/l ls", "find . -exec head -c 20 {} +", "ls | xargs head -c 20", "tar cf - d", "xmllint --noent f"],
)
def test_reads_that_only_a_sandbox_can_hold_ask_where_there_is_none(command):
    assert check(command).decision.verdict == "needs_stamp"
    assert check(command, enforcement=STRICT).decision.verdict == "run"


@pytest.mark.parametrize("command", ["find . -name x -exec ls -l {} +", "ls | xargs stat", "ls | xargs -n1 echo"])
def test_names_alone_run_with_nothing_enforced(command):
    assert check(command).decision.verdict == "run"


@pytest.mark.parametrize(
    "command",
    [
        "iptables -L --zer",
        "iptables -L -nZ",
        "iptables -nL -vZ INPUT",
        "ip6tables -S --z",
        "nft --fil=/tmp/x",
        "nft --f /tmp/x",
        "nft -ai",
        "nft -jaf /tmp/x",
        "nft --inter",
        "nft --in",
        "hdparm -A 0 /dev/sda",
        "hdparm -r 1 /dev/sda",
        "hdparm -I /dev/sda -r 1",
        "hdparm -W $x /dev/sda",
        "hdparm -N p100 /dev/sda",
        "cryptsetup luksDump --external-tokens-path /tmp/x /dev/sda",
        "cryptsetup luksDump --external-tokens-path=/tmp/x /dev/sda",
    ],
)
def test_no_spelling_of_a_change_gets_a_profile_with_one_right_more(command):
    assert check(command, enforcement=STRICT).level >= Level.R2


@pytest.mark.parametrize(
    "command",
    [
        "iptables -nvL",
        "iptables -L INPUT -n --line-numbers",
        "nft -a list ruleset",
        "nft -j list ruleset",
        "nft --stateless list ruleset",
        "hdparm -I /dev/sda",
        "hdparm -tT /dev/sd?",
        "hdparm -A -W /dev/sda",
        "cryptsetup luksDump /dev/sda",
    ],
)
def test_what_only_asks_keeps_it(command):
    assert check(command, enforcement=STRICT).level == Level.R0
