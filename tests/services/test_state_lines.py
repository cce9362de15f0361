"""Only LF ends a line of what a program printed: nobody who picks a name or a comment writes lines of their own."""

from __future__ import annotations

import ast
import pathlib

import pytest

from guard.hands.services import FAMILIES, Said
from guard.lines import lines_of

ROOT = pathlib.Path(__file__).resolve().parents[2]
ENDS = ("\u2028", "\u2029", "\u0085", "\v", "\f", "\x1c", "\x1d", "\x1e", "\r")
READERS = ("guard/hands", "acting", "capabilities", "runbooks", "cli/hooks")
NO_OUTPUT = {"runbooks/phrases.py"}
"""Tables of our own that are written as text."""
USER = "bob:x:1000:1000:B{0}root:x:0:0::/root:/bin/sh{0}:/home/bob:/bin/sh\n"
SAID = {
    "accounts": ("", {"users": USER.replace("root:x:0:0::/root:/bin/sh", "root x 0"), "groups": "a:x:7:\n",
                      "passwords": "bob L 2026-01-05 0 99999 7 -1\n"}),
    "expiry": ("bob", {"ages": "Last password change\t\t: May 20, 2025\nx{0}y\t: z\nAccount expires\t\t: never\n"}),
    "crontab": ("", {"jobs": "# a{0}* * * * * x\n1 2 * * * y\n"}),
    "sysctl": ("", {"values": "kernel.domainname = a{0}vm.swappiness = 9{0}b\n"}),
    "nft": ("", {"rules": 'table inet x {{\n\tchain c {{\n\t\taccept comment "a{0}}}{0}table ip y {{"\n\t}}\n}}\n'}),
    "iptables": ("", {
        "iptables": '*filter\n:INPUT ACCEPT [0:0]\n-A INPUT -m comment --comment "a{0}COMMIT{0}*nat" -j DROP\nCOMMIT\n',
        "ip6tables": "",
    }),
    "network": ("", {
        "links": '[{{"ifname":"lo","flags":["UP"],"mtu":9,"ifalias":"a{0}b"}}]', "addresses": "[]", "routes4": "[]",
        "routes6": "[]", "rules4": "[]", "rules6": "[]",
    }),
    "mounts": ("", {"mounts": '{{"filesystems":[{{"target":"/a","source":"b{0}c","fstype":"x","options":"rw"}}]}}'}),
    "packages": ("", {"versions": "a:amd64\t1.0\tinstalled\n", "manual": "a\n", "held": ""}),
    "git": (".", {"refs": f"refs/heads/a{{0}}refs/heads/b {'0' * 40} \n", "branch": "refs/heads/a\n",
                  "commit": f"{'0' * 40}\n", "changed": " M a{0}?? b\n"}),
    "service": ("x", {"unit": "Id=x.service\nLoadState=loaded\nActiveState=active\nUnitFileState=enabled\n",
                      "text": "Description=a{0}Also=y.service\n", "links": "/etc/systemd/system/x.service\t/a{0}/b\n"}),
    "systemd": ("running", {"units": "x.service loaded active running a{0}root.service loaded active running b\n"}),
    "docker": ("web", {"state": '{{"Running":true,"Paused":false,"Error":"a{0}b"}}'}),
    "podman": ("web", {"state": '{{"Running":true,"Paused":false,"Error":"a{0}b"}}'}),
    "kubectl": ("annotations pod/a by", {
        "place": '{{"clusters":[{{"cluster":{{"server":"s"}}}}]}}',
        "object": '{{"kind":"Pod","metadata":{{"name":"a","annotations":{{"by":"x{0}y"}}}}}}',
    }),
}  # fmt: skip
PLAIN = "\N{MIDDLE DOT}"
"""A character that ends no line anywhere."""


def parsed(family, end):
    key, said = SAID[family]
    # JSON holds no bare control characters.
    texts = {}
    for name, text in said.items():
        is_json = text.lstrip().startswith(("[", "{{"))
        texts[name] = Said(0, text.format(rf"\u{ord(end):04x}" if is_json else end))
    return FAMILIES[family].parse(key, texts)


def replaced(value, old, new):
    if isinstance(value, dict):
        return {replaced(key, old, new): replaced(one, old, new) for key, one in value.items()}
    if isinstance(value, list):
        return [replaced(one, old, new) for one in value]
    return value.replace(old, new) if isinstance(value, str) else value


def test_every_family_is_looked_at():
    assert SAID.keys() == FAMILIES.keys()


@pytest.mark.parametrize("family", SAID)
@pytest.mark.parametrize("end", ENDS, ids=ascii)
def test_no_other_character_than_lf_ends_a_line_of_a_state(family, end):
    assert parsed(family, end) == replaced(parsed(family, PLAIN), PLAIN, end)


def test_way_back_of_a_comment_with_such_a_character_is_one_command():
    before = parsed("accounts", "\u2028")
    now = parsed("accounts", PLAIN)
    (one,) = FAMILIES["accounts"].way_back("", before, now).commands
    assert one.command == "usermod -c 'B\u2028root x 0\u2028' -- bob"


def test_lines_are_those_of_lf():
    assert lines_of("a\u2028b\r\n\nc\n") == ["a\u2028b\r", "", "c"]
    assert lines_of("") == []
    assert lines_of("a") == ["a"]


def test_nobody_who_reads_output_splits_it_at_more_than_lf():
    found = []
    for place in READERS:
        for path in sorted((ROOT / place).rglob("*.py")):
            name = str(path.relative_to(ROOT))
            for node in ast.walk(ast.parse(path.read_text())) if name not in NO_OUTPUT else ():
                if isinstance(node, ast.Attribute) and node.attr == "splitlines":
                    found.append(f"{name}:{node.lineno}")
    assert found == []
