"""What check and exec answer shows no secret of the command, wherever a word of it turns up again."""

import json

import pytest

from capabilities.shapes import check_object
from guard.judge.classify import check

SECRET = "Zx81qLmv7Rw2Kd"
LONG = "ghp_" + "a1B2c3D4" * 4 + "e5F6"


@pytest.mark.parametrize(
    ("command", "secret"),
    [
        (f"cat /tmp/{LONG}/x", LONG),
        (f"rm /tmp/{LONG}/x", LONG),
        (f"echo x > /tmp/{LONG}", LONG),
        (f"{LONG} now", LONG),
        (f"ftp ftp://a:{SECRET}@h", SECRET),
        (f"lftp -u u,{SECRET} h", SECRET),
        (f"smbclient -U u%{SECRET} //h/s", SECRET),
        (f"ncftp -p {SECRET} h", SECRET),
        (f"curl -u a:{SECRET} https://x.example/", SECRET),
        (f"git clone https://u:{SECRET}@x.example/r.git", SECRET),
        (f"mysql -p{SECRET} -e 'drop table t'", SECRET),
        (f"useradd -p {SECRET} bob", SECRET),
        (f"touch password={SECRET}", SECRET),
        (f"./tool --token={SECRET} /srv", SECRET),
        (f"rabbitmqctl add_user a {SECRET}", SECRET),
        (f"sudo -S ls <<< {SECRET}", SECRET),
    ],
)
def test_no_field_shows_a_secret_of_the_command(command, secret):
    for cwd in ("/srv", None):
        assert secret not in json.dumps(check_object(check(command, cwd=cwd)))


def test_folder_that_is_named_like_a_secret_is_redacted():
    assert LONG not in json.dumps(check_object(check("rm x", cwd=f"/tmp/{LONG}")))


def test_plain_command_is_told_as_it_is_and_loads_no_rules():
    import sys

    before = {name for name in sys.modules if name.startswith("guard.redaction")}
    answer = check_object(check("rm notes.txt", cwd="/srv/app"))
    assert answer["effects"] == [{"kind": "delete", "object": "/srv/app/notes.txt"}]
    assert {name for name in sys.modules if name.startswith("guard.redaction")} == before
