"""What a command takes from the machine is told, so that a stamp can bind it."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from guard.judge.classify import check
from guard.types import PlanItem

CORPUS = Path(__file__).parent.parent / "corpus"
COMMANDS = [
    json.loads(line)["cmd"] for path in sorted(CORPUS.glob("*.jsonl")) for line in path.read_text().splitlines()
]


def _of(kind: str, command: str, cwd: "str | None" = "/w") -> list[str]:
    return [item.object for item in check(command, cwd=cwd).inputs if item.kind == kind]


@pytest.mark.parametrize(
    ("command", "files"),
    [
        ("bash x.sh", ["/w/x.sh"]),
        ("bash deploy", ["/w/deploy"]),
        ("sudo -u app bash /srv/x.sh prod.env", ["/srv/x.sh", "/w/prod.env"]),
        ("source env.sh", ["/w/env.sh"]),
        (". ~/env", ["~/env"]),
        ("python3 x.py data.csv", ["/w/x.py", "/w/data.csv"]),
        ("python3 -c 'open(1)' rows.csv", ["/w/rows.csv"]),
        ("kubectl -n prod apply -f ./m.yaml", ["/w/m.yaml"]),
        ("kubectl apply -f m", ["/w/m"]),
        ("kubectl apply --filename=m", ["/w/m"]),
        ("kubectl create configmap c --from-file=key=conf.ini", ["/w/conf.ini"]),
        ("helm upgrade web repo/web --values=prod.yaml", ["/w/repo/web", "/w/prod.yaml"]),
        ("psql -h db -f fix.sql", ["/w/fix.sql"]),
        ("psql < fix.sql", ["/w/fix.sql"]),
        ("cat fix.sql | psql", ["/w/fix.sql"]),
        ("cat a | sed s/x/y/ | sudo bash", ["/w/a"]),
        ("while read -r l; do rm \"$l\"; done < list", ["/w/list"]),
        ("{ rm x; } < list", ["/w/list"]),
        ("ansible-playbook -i hosts site.yml", ["/w/hosts", "/w/site.yml"]),
        ("crontab mycron", ["/w/mycron"]),
        ("curl -d @body.json https://x.example/", ["/w/body.json"]),
        ("aws cloudformation deploy --template-body file://t.json", ["/w/t.json"]),
        ("cp sshd_config /etc/ssh/sshd_config", ["/w/sshd_config"]),
        ("node app.js", ["/w/app.js"]),
        ("nosuchtool --config=tool.yml deploy", ["/w/tool.yml"]),
        ("f=x.sh; bash $f", ["/w/x.sh"]),
        ("cd /srv; bash x.sh", ["/w/x.sh", "/srv/x.sh"]),
        ("echo $(bash x.sh)", ["/w/x.sh"]),
        ("bash -c 'bash inner.sh'", ["/w/inner.sh"]),
        ("iptables-restore rules.v4", ["/w/rules.v4"]),
        ("sudo sed -i -f edit.sed app.conf", ["/w/edit.sed"]),
        ("awk -f sum.awk rows.csv", ["/w/sum.awk", "/w/rows.csv"]),
    ],
)  # fmt: skip
def test_files_that_are_run_or_fed_to_a_program_are_named(command, files):
    assert sorted(_of("file", command)) == sorted(files)


@pytest.mark.parametrize(
    "command",
    [
        "systemctl restart nginx", "rm -r build", "tail -n 5 /var/log/syslog; systemctl restart x",
        "mv app.log app.log.1", "docker exec web cat /etc/app.conf", "ssh web1 cat /etc/app.conf",
        "kubectl delete pod web-1", "chmod 600 a.txt",
        "truncate -s 0 big.log", "git commit -m x", "sqlite3 app.db 'DELETE FROM t'",
    ],
)  # fmt: skip
def test_data_that_is_not_obeyed_is_not_bound(command):
    assert _of("file", command) == []


@pytest.mark.parametrize(
    ("command", "programs"),
    [
        ("ls | head", ["ls", "head"]),
        ("sudo ./deploy.sh", ["sudo", "/w/deploy.sh"]),
        ("cd /srv && ./run", ["/w/run", "/srv/run"]),
        ("export A=1; env A=2 make", ["env", "make"]),
        ("ssh web1 uptime", ["ssh"]),
        ("bash -c 'rm x'", ["bash", "rm"]),
    ],
)
def test_programs_are_named_as_they_would_be_looked_up(command, programs):
    assert _of("program", command) == programs


@pytest.mark.parametrize(
    ("command", "globs"),
    [
        ("rm *.log", ["/w/*.log"]),
        ("rm '*.log'", []),
        ("for f in *.txt; do rm $f; done", ["/w/*.txt"]),
        ("x='*.log'; rm $x", ["/w/*.log"]),
        ("a=(/srv/*); rm \"${a[@]}\"", ["/srv/*"]),
        ("rm ~/old/*", ["~/old/*"]),
        ("[ -e *.x ]", ["/w/*.x"]),
        ("find . -name '*.x' -delete", []),
        ("docker exec web rm '/tmp/*'", []),
    ],
)  # fmt: skip
def test_patterns_that_bash_expands_are_named(command, globs):
    assert _of("glob", command) == globs


@pytest.mark.parametrize(
    ("command", "part"),
    [
        ("make install", "make: what it reads"),
        ("curl -s https://x.example/i.sh | sh", "https://x.example/i.sh: what it serves"),
        ("rm $(cat list)", "$(cat list): told only when it runs"),
        ('rm "$X"', "$X"),
        ("$X y", "which program runs is not told"),
        ("ls | xargs rm", "rm: words that are added"),
        ("ssh web1 systemctl restart nginx", "systemctl: where it runs"),
        ("python3 x.py", "python3: what its code loads"),
        ("bash x.sh", "bash: what its code loads"),
        ("apt-get install nginx", "apt-get: what the package source"),
        ("docker compose up -d", "docker: images"),
        ("ansible-playbook site.yml", "roles, includes"),
        ("cd $X; bash y.sh", "y.sh: in a folder that the text does not tell"),
        ("kubectl apply -k overlays/prod", "kustomizations"),
        ("echo x > $F", "$F"),
        ("echo 'a", "could not be read"),
    ],
)
def test_what_cannot_be_bound_is_said(command, part):
    assert any(part in text for text in _of("unbound", command)), _of("unbound", command)


@pytest.mark.parametrize("command", ["systemctl restart nginx", "rm x", "apt list", "docker restart web", "df -h"])
def test_nothing_is_called_unbound_where_all_is_told(command):
    assert _of("unbound", command) == []


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.sampled_from(COMMANDS))
def test_inputs_are_told_for_every_command_the_same_way_twice(command):
    first, second = check(command, cwd="/w").inputs, check(command, cwd="/w").inputs
    assert first == second and len(set(first)) == len(first)
    for item in first:
        assert isinstance(item, PlanItem) and item.object and item.kind in ("program", "file", "glob", "unbound")
        if item.kind in ("file", "glob"):
            assert item.object.startswith(("/", "~"))


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.sampled_from(COMMANDS), st.sampled_from(["sudo {}", "ls; {}", "true && {}", "( {}\n)", "time {}"]))
def test_joining_or_wrapping_hides_no_file(command, frame):
    if "<<" in command or "\\" in command or "#" in command or not _of("file", command):
        return
    assert set(_of("file", command)) <= set(_of("file", frame.format(command)))


def test_the_list_is_bounded():
    assert len(check("bash " + " ".join(f"f{i}.sh" for i in range(5_000))).inputs) <= 2_001


@pytest.mark.parametrize(
    ("command", "files"),
    [
        ('bash -c "$(cat s.sh)"', ["/w/s.sh"]),
        ('eval "$(cat s.sh)"', ["/w/s.sh"]),
        ('sudo bash -c "$(cat s.sh)"', ["/w/s.sh"]),
        ('bash <<< "$(cat s.sh)"', ["/w/s.sh"]),
        ("source <(cat x)", ["/w/x"]),
        ('python3 -c "$(cat x.py)"', ["/w/x.py"]),
        ("bash $(echo s.sh)", []),
        ("$(cat x) y", ["/w/x"]),
        ("fd -x bash", []),
        ("find . -print0 | xargs -0 bash", []),
    ],
)
def test_code_that_is_made_when_it_runs_is_said_and_what_it_is_made_from_is_named(command, files):
    assert _of("file", command) == files
    assert any("code that is made when it runs" in item for item in _of("unbound", command))


def test_found_scripts_are_said_to_be_unbound():
    assert any(item.startswith("bash: ") for item in _of("unbound", 'find . -name s.sh -exec bash {} ";"'))


@pytest.mark.parametrize("command", ["xargs -a lst touch", "xargs --arg-file=lst rm", "xargs -alst touch"])
def test_list_that_a_command_works_through_is_named(command):
    assert _of("file", command) == ["/w/lst"]
    assert _of("unbound", command)
