# ruff: noqa: E501 - one row of a table is one line
"""The Redactor: planted secrets go, ordinary output stays, and cutting a text into pieces changes nothing."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from guard.redact import LINE_CHARS, MASK, Redactor
from tests.redact.secret_forms import FORMS

REDACTOR = Redactor()


def survives(secret: str, shown: str) -> bool:
    """Whether six characters in a row (or all, if there are fewer) of a line of the secret can still be read."""
    for line in secret.split("\n"):
        size = max(1, min(len(line), 6))
        if any(line[at : at + size] in shown for at in range(len(line) - size + 1)):
            return True
    return False


def streamed(redactor: Redactor, text: str, sizes: list[int]) -> str:
    stream, out, at, turn = redactor.stream(), [], 0, 0
    while at < len(text):
        size = max(1, sizes[turn % len(sizes)])
        out.append(stream.feed(text[at : at + size]))
        at, turn = at + size, turn + 1
    return "".join(out) + stream.flush()


@pytest.mark.parametrize(("name", "text", "secret"), FORMS, ids=[name for name, _, _ in FORMS])
def test_planted_secret_is_gone_from_text_and_stream(name, text, secret):
    shown = REDACTOR.text(text)
    assert not survives(secret, shown)
    assert MASK in shown
    assert REDACTOR.text(shown) == shown
    for size in (1, 7, 40):
        assert streamed(REDACTOR, text, [size]) == shown


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.sampled_from(FORMS), min_size=1, max_size=4),
    st.sampled_from(["", "plain line\n", "a: 1\n  b\n", "磁盘 90%\n"]),
    st.lists(st.integers(1, 90), min_size=1, max_size=6),
)
def test_planted_secrets_survive_no_chunking(forms, between, sizes):
    text = "".join(f"{text}\n\n{between}" for _, text, _ in forms)
    shown = streamed(REDACTOR, text, sizes)
    # What stands in the text beside the secrets may look like a piece of one.
    beside = text
    for _, _, secret in forms:
        beside = beside.replace(secret, "\0")
    for _, _, secret in forms:
        for line in secret.split("\n"):
            size = max(1, min(len(line), 6))
            windows = {line[at : at + size] for at in range(len(line) - size + 1)}
            assert not [window for window in windows if window in shown and window not in beside]
    once = REDACTOR.text(text)
    assert REDACTOR.text(once) == once


@pytest.mark.parametrize(("text", "secret"), [form[1:] for form in FORMS], ids=[form[0] for form in FORMS])
def test_key_that_was_cut_off_hides_no_secret_after_it(text, secret):
    both = f"-----BEGIN OPENSSH PRIVATE KEY-----\n{'b3BlbnNzaC1rZXk' * 4}\n\n{text}\n"
    shown = REDACTOR.text(both)
    assert not survives(secret, shown)
    assert not survives(secret, streamed(REDACTOR, both, [1]))


PIECES = st.sampled_from(
    ["password", "token", "=", ": ", '"', "'", "\n", "  ", "-", "\\", "[REDACTED]", "://", "@", "a", "7x", "|", "data:", "kéy",
     "\x1b[1m", "密码", "-----BEGIN PRIVATE KEY-----", "value", "name", "$", ",", "Bearer ", "secret", "<", ">", "{", "}", "\udcff"]
)  # fmt: skip


@settings(max_examples=400, deadline=None)
@given(st.lists(PIECES, max_size=40).map("".join))
def test_redacting_twice_is_redacting_once(text):
    once = REDACTOR.text(text)
    assert REDACTOR.text(once) == once


KNOWN = "Zr4!k/Q+w9 \"é'7p"


def disguised() -> dict[str, str]:
    raw = KNOWN.encode()
    return {
        "plain": KNOWN,
        "base64": base64.b64encode(raw).decode(),
        "base64 behind a user": base64.b64encode(b"admin:" + raw).decode(),
        "base64 behind one more": base64.b64encode(b"xadmin:" + raw + b"tail").decode(),
        "base64 for URLs": base64.urlsafe_b64encode(b"ab" + raw).decode(),
        "URL": quote(KNOWN, safe=""),
        "URL with slashes": quote(KNOWN),
        "form": quote(KNOWN, safe="").replace("%20", "+"),
        "JSON": json.dumps(KNOWN),
        "JSON in UTF-8": json.dumps(KNOWN, ensure_ascii=False),
        "shell": "'" + KNOWN.replace("'", "'\\''") + "'",
        "XML": KNOWN.replace("&", "&amp;").replace('"', "&quot;"),
        "hex": raw.hex(),
        "coloured": KNOWN[:5] + "\x1b[31m" + KNOWN[5:],
        "zero width": KNOWN[:5] + "\u200b" + KNOWN[5:],
    }


@pytest.mark.parametrize("how", disguised())
def test_known_value_is_found_in_every_disguise(how):
    text = f"note {disguised()[how]} end"
    shown = Redactor([KNOWN]).text(text)
    assert MASK in shown
    assert shown.startswith("note ")
    assert not survives(disguised()[how][12:-8], shown)


def test_known_value_split_by_quotes_is_found():
    assert Redactor(["abcd1234efgh5678"]).text('echo abcd1234""efgh5678') == f"echo {MASK}"


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(1, 9), min_size=1, max_size=8), st.text(alphabet="ab \n", max_size=30))
def test_known_value_survives_no_chunking(sizes, around):
    shown = streamed(Redactor(["qK8-unlabelled"]), around + "qK8-unlabelled" + around, sizes)
    assert not survives("qK8-unlabelled", shown)


def test_known_value_of_several_lines_is_found_line_by_line():
    key = "first-line-0123456789ab\nsecond-line-9876543210zy"
    shown = Redactor([key]).text("a second-line-9876543210zy b\n" + json.dumps(key))
    assert not survives("second-line-9876543210zy", shown)
    assert not survives("first-line-0123456789ab", shown)


def test_weak_known_values_are_named_but_neither_shown_nor_replaced():
    redactor = Redactor({"A_PW": "short", "B_PW": "production", "C_PW": "v9K#long-enough"})
    assert redactor.text("short production v9K#long-enough") == f"short production {MASK}"
    assert redactor.weak == ("A_PW: shorter than 8 characters", "B_PW: plain words")
    assert Redactor(["tiny1"]).weak == ("a value of 5 characters: shorter than 8 characters",)


def test_a_value_added_later_counts_for_open_streams():
    redactor = Redactor()
    stream = redactor.stream()
    redactor.add("late-4711-value")
    assert stream.feed("x late-4711-value\n") == f"x {MASK}\n"


ORDINARY = """\
Dec 01 02:11:31 web1 sshd[4242]: Failed password for invalid user admin from 203.0.113.7 port 4711 ssh2
Dec 01 02:11:31 web1 sshd[4242]: Accepted publickey for deploy from 10.0.0.9 port 22 ssh2: ED25519 SHA256:Zm9vYmFyYmF6cXV4cXV1eGNvcmdlZ3JhdWx0Z2FycGx5
Dec 01 02:11:31 web1 sshd[4242]: pam_unix(sshd:auth): authentication failure; logname= uid=0 euid=0 tty=ssh ruser= rhost=10.0.0.9
PasswordAuthentication no
PermitRootLogin prohibit-password
password_encryption = scram-sha-256
passwd: files systemd
shadow: files
kpasswd         464/tcp
# Max number of login retries if password is bad.
  -W, --password           force password prompt (should happen automatically)
     --oauth2-bearer <token> OAuth 2 Bearer Token
Password required: yes; password: ******** ; token: <redacted> ; secret: ${VAULT_SECRET}
password=$DB_PASSWORD token={{ vault_token }} secret_file=/run/secrets/db
password: "{{ lookup('env', 'X') }}"
      secretName: app-tls-12
      tokenReview: enabled
level=info msg="password policy loaded" tokens=912 max_tokens=4096 next_token=AAQA1b2c3d4e5
prompt_tokens: 811, completion_tokens: 12, total_tokens: 823
commit 3f2a9b0c4d5e6f708192a3b4c5d6e7f801234567
9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08  ./pkg/libx.so
d41d8cd98f00b204e9800998ecf8427e  backup-2026-11-01.tar.gz
UUID=0a1b2c3d-4e5f-6789-abcd-ef0123456789 /boot ext4 defaults 0 2
ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJm0Zm9vYmFyYmF6cXV4cXV1eGNvcmdlZ3Jh deploy@ci
-----BEGIN CERTIFICATE-----
MIIDdzCCAl+gAwIBAgIEAgAAuTANBgkqhkiG9w0BAQUFADBaMQswCQYDVQQGEwJJ
-----END CERTIFICATE-----
primary_key=id foreign_key=user_id sort_key: created_at public_key_algorithm: rsaEncryption
key: user:1234:profile  author: bob  authority: ca.local
git@git.test:org/repo.git (fetch)  https://user@host.test/path  ssh://git@h:22/x
http://10.0.0.1:8080/path?user=a@b.test
root:x:0:0:root:/root:/bin/bash
systemd-ask-password-console.service loaded inactive dead Dispatch Password Requests to Console
ii  libpam-modules  1.5.2-6  amd64  Pluggable Authentication Modules for PAM
GET https://api.test/v1/users/0a1b2c3d-4e5f-6789-abcd-ef0123456789?page=2&sort=key HTTP/1.1 200
--- PASS: TestLogin2 (0.00s)
location / { proxy_pass http://127.0.0.1:8080; }
磁盘使用率 91%，密码策略：定期更换，令牌有效期 12 小时
data:
  mode: production
  backend: postgres
  sha: 3f2a9b0c4d5e6f708192a3b4c5d6e7f801234567
30 2 * * * /usr/bin/backup
def win_getpass(prompt='Password: ', stream=None):
                password = lexer.get_token()
                                  password combination.
"""


@pytest.mark.parametrize("line", ORDINARY.splitlines())
def test_ordinary_output_is_left_alone(line):
    assert REDACTOR.text(line) == line


def test_ordinary_output_is_left_alone_as_a_whole():
    assert REDACTOR.text(ORDINARY) == ORDINARY
    assert streamed(REDACTOR, ORDINARY, [13]) == ORDINARY


def test_labels_and_surroundings_stay():
    assert REDACTOR.text("user=bob password=hunter2 host=db") == f"user=bob password={MASK} host=db"
    assert REDACTOR.text('{"token": "a1b2c3d4e5f6", "n": 1}') == f'{{"token": "{MASK}", "n": 1}}'
    assert REDACTOR.text("PGPASSWORD=x1 psql -h db") == f"PGPASSWORD={MASK} psql -h db"


def test_text_behind_a_mask_is_no_safer():
    assert "hunter2" not in REDACTOR.text("password=[REDACTED]hunter2")


def test_long_line_is_written_in_bounded_memory_without_leaking():
    stream = REDACTOR.stream()
    filler = "word " * 13_000
    written = 0
    secrets = 0
    for _ in range(20):
        out = stream.feed(filler + "password=Hq7-secret-9 ")
        assert "Hq7-secret" not in out
        secrets += out.count(MASK)
        written += len(out)
        assert len(stream._buffer) <= 2 * LINE_CHARS
    out = stream.flush()
    assert "Hq7-secret" not in out
    assert secrets + out.count(MASK) == 20
    assert written + len(out) == 20 * (len(filler) + len(f"password={MASK} "))


def test_secret_longer_than_the_buffer_is_swallowed_to_its_end():
    stream = REDACTOR.stream()
    out = stream.feed("client-key-data: ")
    for _ in range(40):
        out += stream.feed("aB3d" * 2_000)
        assert len(stream._buffer) <= 2 * LINE_CHARS
    out += stream.feed(" next\nafter\n") + stream.flush()
    assert out == f"client-key-data: {MASK} next\nafter\n"


@settings(max_examples=60, deadline=None)
@given(st.integers(LINE_CHARS - 200, LINE_CHARS + 200), st.integers(1, 400))
def test_secret_at_the_edge_of_the_buffer_is_seen_whole(offset, size):
    text = "x" * (offset - 1) + " password=Hq7-secret-9 " + "y" * 30_000
    stream = REDACTOR.stream()
    out = stream.feed(text[: offset + size]) + stream.feed(text[offset + size :]) + stream.flush()
    assert "Hq7-" not in out
    assert "ret-9" not in out


def test_bytes_that_are_no_text_pass_through_and_split_nothing():
    stream = REDACTOR.byte_stream()
    data = b"\xff\xfe pass\xc3\xa9 password=Hq7-se\xffcret9 \xe7\xa3\n\x80tail"
    out = b"".join(stream.feed(data[at : at + 1]) for at in range(len(data))) + stream.flush()
    assert out == b"\xff\xfe pass\xc3\xa9 password=" + MASK.encode() + b" \xe7\xa3\n\x80tail"


def test_importing_it_loads_no_rules():
    code = "import sys; before = set(sys.modules); import guard.redact; print(sorted(set(sys.modules) - before))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.strip() == "['guard', 'guard.redact']"


HOSTILE = [
    "a",
    "password=",
    '"\\',
    "-----BEGIN PRIVATE KEY-----",
    "name: password\n",
    "\x1b[",
    '""',
    "password“$(",
    'token "',
    "eyJhbGciOiJ.",
]


@pytest.mark.parametrize("unit", HOSTILE)
def test_hostile_text_takes_linear_work(unit):
    import time

    def cost(size: int) -> float:
        start = time.process_time()
        REDACTOR.text((unit * (size // len(unit) + 1))[:size])
        return time.process_time() - start

    cost(20_000)
    small, large = min(cost(20_000) for _ in range(3)), min(cost(160_000) for _ in range(2))
    assert large < 8 * small * 4 + 0.05


def test_a_quick_look_finds_known_values_in_their_usual_spellings():
    redactor = Redactor(["Tr0ub4dor&3/x"])
    for spelled in ("Tr0ub4dor&3/x", quote("Tr0ub4dor&3/x", safe=""), json.dumps("Tr0ub4dor&3/x"), "Tr0ub4dor&amp;3/x"):
        assert redactor.mentions(f"a {spelled} b")
    assert not redactor.mentions("Tr0ub4dor&3")
    assert not Redactor().mentions("password=Tr0ub4dor&3/x")
