"""A binding is equal as long as everything that the request depends on is, and names what is not."""

from __future__ import annotations

import os
import shutil

import pytest

from acting import approving
from acting.world import Guard
from guard.bound import CHANGED, Stamp
from guard.errors import CannotRun
from guard.hands import binding as binding_module
from guard.hands.binding import asked_environment, bind
from guard.judge.classify import check
from guard.ledger.answers import ToApprove
from guard.redact import Redactor
from guard.types import BUILTIN, Level, PlanItem, Policy, Request
from tests.fakes import FakeTarget, FixedClock
from tests.ledger.world import CONSENT, Judged, ledger_in

pytestmark = pytest.mark.guarantee("G-EXACT")


class Inputs(Judged):
    """An assessment that names what the test says."""

    __slots__ = ("inputs", "ambient", "env", "snapshot_plan", "target")

    def __init__(self, command, *inputs, level=Level.R2, env=(), ambient=None):
        super().__init__(command, level)
        self.inputs = tuple(PlanItem(kind, name) for kind, name in inputs)
        self.ambient = ambient or {}
        self.env = env
        self.snapshot_plan = ()
        self.target = "local"


@pytest.fixture
def work(tmp_path):
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


def bound(work, *inputs, command="bash fix.sh", plan="p", policy=BUILTIN, version="1", environ=None, **more):
    return bind(
        Request(command, cwd=str(work)),
        Inputs(command, *inputs, **more),
        plan_digest=plan,
        policy_version=version,
        policy=policy,
        environ={"HOME": str(work / "home"), **(environ or {})},
    )


def differences(one, other):
    return [name for name in {**one.parts, **other.parts} if one.parts.get(name) != other.parts.get(name)]


def test_nothing_changed_is_the_same_digest(work):
    (work / "fix.sh").write_text("true\n")
    inputs = [("program", "bash"), ("file", "fix.sh"), ("glob", "*.sh"), ("unbound", "what it loads")]
    assert bound(work, *inputs).digest == bound(work, *inputs).digest


def test_one_byte_of_a_script(work):
    (work / "fix.sh").write_text("true\n")
    then = bound(work, ("file", "fix.sh"))
    (work / "fix.sh").write_text("true \n")
    assert differences(then, bound(work, ("file", "fix.sh"))) == ["file fix.sh"]


def test_script_that_appears_or_goes(work):
    then = bound(work, ("file", "fix.sh"))
    (work / "fix.sh").write_text("true\n")
    now = bound(work, ("file", "fix.sh"))
    assert differences(then, now) == ["file fix.sh"]
    assert then.fields["file fix.sh"] == ["absent"]


def test_same_content_by_another_editor_is_no_change(work):
    (work / "fix.sh").write_text("true\n")
    then = bound(work, ("file", "fix.sh"))
    (work / "new").write_text("true\n")
    os.replace(work / "new", work / "fix.sh")
    assert then.digest == bound(work, ("file", "fix.sh")).digest


def test_swapped_link(work):
    for name in ("a", "b"):
        (work / name).write_text("same\n")
    (work / "link").symlink_to("a")
    then = bound(work, ("file", "link"))
    (work / "link").unlink()
    (work / "link").symlink_to("b")
    assert differences(then, bound(work, ("file", "link"))) == ["file link"]


def test_another_folder_of_the_same_name(work):
    then = bound(work)
    work.rename(work.with_name("old"))
    work.mkdir()
    assert differences(then, bound(work)) == ["folder"]
    shutil.rmtree(work)
    with pytest.raises(CannotRun):
        bound(work)


def test_user_level_policy_plan_and_command(work, monkeypatch):
    then = bound(work)
    assert differences(then, bound(work, level=Level.R3)) == ["level"]
    assert differences(then, bound(work, version="2")) == ["policy"]
    assert differences(then, bound(work, plan="q")) == ["snapshot plan"]
    assert differences(then, bound(work, command="bash  fix.sh")) == ["command"]
    monkeypatch.setattr(os, "geteuid", lambda: 4711)
    assert differences(then, bound(work)) == ["user"]


def test_own_rules_are_part_of_the_policy(work):
    from guard.types import UserRule

    rule = UserRule("no-foo", "foo", ("bar",), Level.R3, "no", False, "mine.toml")
    assert differences(bound(work), bound(work, policy=Policy(rules=(rule,)))) == ["policy"]


def test_passed_variables_by_name_and_the_way_out_by_value(work):
    then = bound(work)
    assert differences(then, bound(work, environ={"https_proxy": "http://p"})) == ["variable https_proxy"]
    for name in ("https_proxy", "HTTPS_PROXY", "SSL_CERT_FILE", "GIT_SSL_CAINFO"):
        one, other = (bound(work, environ={name: f"/srv/{value}"}) for value in "ab")
        assert differences(one, other) == [f"variable {name}"]
    one, other = (bound(work, env=("PG*",), environ={"PGAPPNAME": value}) for value in "ab")
    assert one.digest == other.digest


def test_mark_in_place_of_a_value_stands_for_no_proxy_that_can_be_used(work):
    kept = bound(work, environ={"https_proxy": "http://p"}).fields["variable https_proxy"]
    assert isinstance(kept, str) and "://" not in kept
    assert bound(work, environ={"https_proxy": kept}).fields["variable https_proxy"] == kept


def test_program_elsewhere_by_content_and_in_path_by_identity(work):
    tool = work / "tool"
    tool.write_text("#!/bin/sh\ntrue\n")
    tool.chmod(0o755)
    stat = tool.stat()
    then = bound(work, ("program", "./tool"))
    tool.write_text("#!/bin/sh\nfals\n")
    os.utime(tool, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert differences(then, bound(work, ("program", "./tool"))) == ["program ./tool"]
    assert bound(work, ("program", "no-such-program")).fields["program no-such-program"] == ["absent"]
    shown = bound(work, ("program", "ls")).fields["program ls"]
    assert (os.path.basename(shown[0]), len(shown)) == ("ls", 6)


def test_glob_binds_its_listing(work):
    (work / "a.log").write_text("1")
    then = bound(work, ("program", "rm"), ("glob", "*.log"))
    (work / "a.log").write_text("2")
    assert then.digest == bound(work, ("program", "rm"), ("glob", "*.log")).digest
    (work / "b.log").write_text("1")
    assert differences(then, bound(work, ("program", "rm"), ("glob", "*.log"))) == ["listing *.log"]


def test_glob_for_a_program_that_obeys_binds_the_contents_too(work):
    (work / "a.yaml").write_text("1")
    inputs = [("program", "kubectl"), ("glob", "*.yaml")]
    then = bound(work, *inputs)
    (work / "a.yaml").write_text("2")
    assert differences(then, bound(work, *inputs)) == ["listing *.yaml"]


@pytest.mark.parametrize("pattern", ["[^z]1", "[!z]1", "[[:alpha:]]1", "./[^z]1", "\\\\[a-z]1", "?1"])
def test_a_pattern_binds_what_bash_lists_for_it(work, pattern):
    names = {True: ("\\f1", "\\g1"), False: ("f1", "g1")}[pattern.startswith("\\")]
    (work / names[0]).write_text("a")
    (work / "z1").write_text("a")
    then = bound(work, ("program", "rm"), ("glob", pattern))
    assert then.unbound == ()
    assert differences(then, bound(work, ("program", "rm"), ("glob", pattern))) == []
    (work / names[1]).write_text("a")
    assert differences(then, bound(work, ("program", "rm"), ("glob", pattern))) == [f"listing {pattern}"]


def test_what_cannot_be_held_is_said(work):
    os.mkfifo(work / "pipe")
    (work / "tree").mkdir()
    found = bound(work, ("file", "pipe"), ("file", "tree"), ("glob", "[[=a=]]*"), ("unbound", "https://x/"))
    text = "\n".join(found.unbound)
    for part in ("pipe says", "what lies in", "[[=a=]]*: what it lists", "https://x/"):
        assert part in text
    assert differences(found, bound(work, ("file", "pipe")))[-1] == "what is not bound"


def test_file_that_is_too_large_to_hash_is_held_by_size_and_times(work, monkeypatch):
    monkeypatch.setattr(binding_module, "HASHED_FILE_BYTES", 10)
    (work / "big").write_text("x" * 11)
    then = bound(work, ("file", "big"))
    assert "each byte of" in then.unbound[0]
    with open(work / "big", "r+b") as file:
        file.write(b"y")
    os.utime(work / "big", ns=(1, 1))
    assert differences(then, bound(work, ("file", "big"))) == ["file big"]


def test_unreadable_file_is_said_and_held_by_identity(work, monkeypatch):
    (work / "secret").write_text("x")
    real_open = os.open

    def refusing(path, *arguments, **more):
        if os.fspath(path).endswith("secret"):
            raise PermissionError(13, "Permission denied", path)
        return real_open(path, *arguments, **more)

    monkeypatch.setattr(os, "open", refusing)
    then = bound(work, ("file", "secret"))
    assert "Permission denied" in then.unbound[0]
    assert then.fields["file secret"][3] == 1


def test_many_files_are_bound_as_well(work):
    for number in range(500):
        (work / f"f{number}").write_text("1")
    inputs = [("file", f"f{number}") for number in range(500)]
    then = bound(work, *inputs)
    assert len(then.fields) <= 410
    (work / "f499").write_text("2")
    assert differences(then, bound(work, *inputs)) == ["further files"]


def test_file_system_that_does_not_answer_runs_nothing(work, monkeypatch):
    import threading

    gate = threading.Event()
    monkeypatch.setattr(binding_module, "PATIENCE_S", 0.05)
    monkeypatch.setattr(binding_module, "_bound", lambda *_: gate.wait())
    with pytest.raises(CannotRun, match="does not answer"):
        bound(work)
    gate.set()


# ── ambient ──────────────────────────────────────────────────────────────────────────────────────────────────────

KUBECONFIG = """apiVersion: v1
kind: Config
current-context: prod
contexts:
- context:
    cluster: c1
    namespace: web
    user: admin
  name: prod
- name: "test"
  context: {cluster}
clusters:
- cluster:
    certificate-authority-data: LS0tCg==
    server: https://10.0.0.1:6443
  name: c1
users:
- name: admin
  user:
    token: t0ken
preferences: {}
"""


def kube(text):
    return text.replace("{cluster}", "\n    cluster: c1")


def test_kube_context_namespace_and_server(work):
    (work / "home" / ".kube").mkdir(parents=True)
    config = work / "home" / ".kube" / "config"
    config.write_text(kube(KUBECONFIG))
    then = bound(work, ("program", "kubectl"))
    assert then.shown == {
        "kubernetes context": "prod",
        "kubernetes namespace": "web",
        "kubernetes server": "https://10.0.0.1:6443",
        "kubernetes user": "admin",
    }
    config.write_text(kube(KUBECONFIG).replace("token: t0ken", "token: other"))
    assert bound(work, ("program", "kubectl")).digest == then.digest
    config.write_text(kube(KUBECONFIG).replace("current-context: prod", "current-context: test"))
    assert "ambient kubernetes context" in differences(then, bound(work, ("program", "kubectl")))
    config.write_text(kube(KUBECONFIG).replace("10.0.0.1", "10.0.0.2"))
    assert differences(then, bound(work, ("program", "kubectl"))) == ["ambient kubernetes server"]
    named = bound(work, ("program", "kubectl"), ambient={"kubernetes context": "test"})
    assert named.shown["kubernetes namespace"] == "default"


def test_each_of_two_kubeconfigs_in_one_text_is_bound(work):
    for name, server in (("a", "10.0.0.1"), ("b", "10.0.0.9")):
        (work / name).write_text(kube(KUBECONFIG).replace("10.0.0.1", server))
    text = f"KUBECONFIG={work}/a kubectl delete pod x; KUBECONFIG={work}/b kubectl delete pod x"
    ambient = check(text, cwd=str(work)).ambient
    assert ambient == {"KUBECONFIG": f"{work}/a", "KUBECONFIG (2)": f"{work}/b"}
    then = bound(work, ("program", "kubectl"), ambient=ambient)
    assert then.shown["kubernetes server"] == "https://10.0.0.1:6443"
    assert then.shown["kubernetes server (2)"] == "https://10.0.0.9:6443"
    for name, changed in (("a", "ambient kubernetes server"), ("b", "ambient kubernetes server (2)")):
        before = (work / name).read_text()
        (work / name).write_text(before.replace("server: https://10", "server: https://11"))
        assert differences(then, bound(work, ("program", "kubectl"), ambient=ambient)) == [changed]
        (work / name).write_text(before)


def test_contexts_and_configurations_that_are_named_twice_are_all_looked_up(work):
    (work / "home" / ".kube").mkdir(parents=True)
    (work / "home" / ".kube" / "config").write_text(kube(KUBECONFIG))
    ambient = check("kubectl --context prod delete pod x; kubectl --context=test delete pod x", cwd=str(work)).ambient
    then = bound(work, ("program", "kubectl"), ambient=ambient)
    assert (then.shown["kubernetes context"], then.shown["kubernetes context (2)"]) == ("prod", "test")
    assert (then.shown["kubernetes namespace"], then.shown["kubernetes namespace (2)"]) == ("web", "default")


def test_what_a_client_without_a_pointer_goes_to_is_bound_beside_what_the_text_names(work):
    (work / "a").write_text(kube(KUBECONFIG))
    (work / "home" / ".kube").mkdir(parents=True)
    default = work / "home" / ".kube" / "config"
    default.write_text(kube(KUBECONFIG).replace("10.0.0.1", "10.0.0.9"))
    text = f"KUBECONFIG={work}/a kubectl delete pod x; kubectl delete pod y"
    then = bound(work, ("program", "kubectl"), ambient=check(text, cwd=str(work)).ambient)
    assert then.shown["kubernetes server"] == "https://10.0.0.1:6443"
    assert then.shown["kubernetes server (2)"] == "https://10.0.0.9:6443"
    default.write_text(default.read_text().replace("10.0.0.9", "10.0.0.8"))
    now = bound(work, ("program", "kubectl"), ambient=check(text, cwd=str(work)).ambient)
    assert differences(then, now) == ["ambient kubernetes server (2)"]


def test_too_many_places_are_said_not_to_be_bound(work):
    many = {f"KUBECONFIG ({number})": f"/k/{number}" for number in range(2, 40)}
    found = bound(work, ("program", "kubectl"), ambient={"KUBECONFIG": "/k/1", **many})
    assert "what it points at: it names too many places" in found.unbound


def test_kubeconfig_in_another_form_is_held_by_its_hash(work):
    path = work / "kc"
    path.write_text("current-context: &a prod\ncontexts: [{name: x}]\n")
    found = bound(work, ("program", "kubectl"), env=("KUBECONFIG",), environ={"KUBECONFIG": str(path)})
    assert found.shown["kubernetes configuration"].startswith(f"{path} ")
    path.write_text("current-context: &a test\ncontexts: [{name: x}]\n")
    now = bound(work, ("program", "kubectl"), env=("KUBECONFIG",), environ={"KUBECONFIG": str(path)})
    assert differences(found, now) == ["ambient kubernetes configuration"]


def test_git_branch_and_remote(work):
    git = work / ".git"
    (git / "objects").mkdir(parents=True)
    (git / "HEAD").write_text("ref: refs/heads/main\n")
    (git / "config").write_text('[core]\n\tbare = false\n[remote "origin"]\n\turl = git@example.org:a.git\n')
    sub = work / "deep" / "er"
    sub.mkdir(parents=True)
    then = bound(sub, ("program", "git"))
    assert then.shown["git branch"] == "main"
    assert then.shown["git remote origin url"] == "git@example.org:a.git"
    (git / "HEAD").write_text("ref: refs/heads/other\n")
    assert differences(then, bound(sub, ("program", "git"))) == ["ambient git branch"]


def test_docker_aws_gcloud_terraform_and_databases(work):
    home = work / "home"
    for path, text in {
        ".docker/config.json": '{"currentContext": "remote"}',
        ".aws/config": "[default]\nregion = eu-1\n[profile p]\nregion = us-9\nrole_arn = arn:x\n",
        ".config/gcloud/active_config": "work\n",
        ".config/gcloud/configurations/config_work": "[core]\naccount = a@b\nproject = prod\n",
        ".my.cnf": "[client]\nhost = db1\nuser = root\npassword = hunter2\n",
    }.items():
        (home / path).parent.mkdir(parents=True, exist_ok=True)
        (home / path).write_text(text)
    (work / ".terraform").mkdir()
    (work / ".terraform" / "environment").write_text("staging")
    names = ("docker", "aws", "gcloud", "terraform", "mysql", "psql")
    shown = bound(
        work,
        *(("program", name) for name in names),
        env=("AWS_*", "PG*"),
        environ={"AWS_PROFILE": "p", "PGHOST": "db2"},
    ).shown
    expected = {
        "docker context": "remote",
        "aws profile": "p",
        "aws region": "us-9",
        "aws role_arn": "arn:x",
        "gcloud project": "prod",
        "terraform workspace": "staging",
        "PGHOST": "db2",
    }
    assert expected.items() <= shown.items()
    assert "hunter2" not in str(shown)


def test_configuration_that_cannot_be_understood_is_not_bound_and_said(work):
    (work / "home" / ".docker").mkdir(parents=True)
    (work / "home" / ".docker" / "config.json").write_text("{")
    found = bound(work, ("program", "docker"))
    assert found.unbound == ("what docker points at: its configuration is not understood (JSONDecodeError)",)


def test_asker_elsewhere_is_bound_to_the_askers_environment(work):
    path = work / "kc"
    path.write_text(kube(KUBECONFIG))
    secretive = {
        "HOME": str(work / "home"),
        "KUBECONFIG": str(path),
        "https_proxy": "http://u:hunter2@p",
        "PGPASSWORD": "hunter2",
    }
    assessment = Inputs("kubectl apply", ("program", "kubectl"), env=("KUBECONFIG", "PG*"))
    kept = asked_environment(assessment, BUILTIN, secretive)
    assert "hunter2" not in str(kept)
    there = bound(work, ("program", "kubectl"), env=("KUBECONFIG", "PG*"), environ=secretive)
    here = bound(work, ("program", "kubectl"), env=("KUBECONFIG", "PG*"), environ=kept)
    assert here.digest == there.digest
    assert here.shown["kubernetes context"] == "prod"


# ── through the real judge ───────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def guard(tmp_path):
    return Guard(FakeTarget(), ledger_in(tmp_path / "state"), Redactor(), FixedClock())


def stamp_and_answer(guard, request, change):
    import execution

    assessment = execution.assess(request, guard)
    then = approving.bind(request, assessment, guard)
    guard.ledger.answers.approve([ToApprove(request, assessment, then, forced=True)], CONSENT)
    assert isinstance(approving.stamp_for(then, guard), Stamp)
    change()
    assessment = execution.assess(request, guard)
    return approving.stamp_for(approving.bind(request, assessment, guard), guard)


@pytest.mark.parametrize(
    ("command", "changed"),
    [
        ("bash fix.sh", "fix.sh"),
        ("bash < fix.sh", "fix.sh"),
        ("cat fix.sh | bash", "fix.sh"),
        ("sudo bash ./fix.sh", "fix.sh"),
        ("source fix.sh", "fix.sh"),
        ("./fix.sh", "fix.sh"),
        ("python3 fix.py", "fix.py"),
        ("kubectl apply -f deploy.yaml", "deploy.yaml"),
        ("ansible-playbook site.yml", "site.yml"),
        ("psql -f change.sql", "change.sql"),
        ("kubectl apply -f k/*.yaml", "k/a.yaml"),
        ("crontab tab", "tab"),
    ],
)
def test_one_byte_of_what_a_command_obeys_refuses_it(guard, work, command, changed):
    (work / "k").mkdir()
    (work / changed).write_text("echo 1\n")
    (work / changed).chmod(0o755)
    request = Request(command, cwd=str(work))
    answer = stamp_and_answer(guard, request, lambda: (work / changed).write_text("echo 2\n"))
    assert answer.code == CHANGED
    assert any(os.path.basename(changed) in name or "k/*.yaml" in name for name in answer.differences)


def test_long_command_is_bound_byte_for_byte(guard, work):
    command = "touch " + "'a \"$b\" `c` 中文\n'" * 200
    assert len(command.encode()) > 4000
    request = Request(command, cwd=str(work))
    assert isinstance(stamp_and_answer(guard, request, lambda: None), Stamp)
    other = Request(command.replace("中", "丰", 1), cwd=str(work))
    import execution

    found = approving.stamp_for(approving.bind(other, execution.assess(other, guard), guard), guard)
    assert found.code == "missing"


POINTED = [
    "KUBECONFIG={file} kubectl scale deploy/x --replicas=2",
    "export KUBECONFIG={file}; kubectl scale deploy/x --replicas=2",
    "env KUBECONFIG={file} kubectl scale deploy/x --replicas=2",
    "sudo KUBECONFIG={file} kubectl scale deploy/x --replicas=2",
    "kubectl --kubeconfig {file} scale deploy/x --replicas=2",
]


@pytest.mark.guarantee("G-EXACT")
@pytest.mark.parametrize("command", POINTED)
def test_context_of_a_configuration_that_the_command_names_is_bound(work, command):
    """Whatever way the command has of naming its own configuration, the one that is read is that one."""
    import core

    file = work / "kc"
    file.write_text(kube(KUBECONFIG))
    command = command.format(file=file)
    assessment = core.check(command, cwd=str(work), actor="agent")

    def now():
        return bind(
            Request(command, cwd=str(work)),
            assessment,
            plan_digest="p",
            policy_version="1",
            policy=BUILTIN,
            environ={"HOME": str(work / "home"), "KUBECONFIG": "/nonexistent"},
        )

    then = now()
    assert (then.shown["kubernetes context"], then.shown["kubernetes server"]) == ("prod", "https://10.0.0.1:6443")
    file.write_text(kube(KUBECONFIG).replace("current-context: prod", "current-context: test"))
    assert "ambient kubernetes context" in differences(then, now())


def test_docker_host_that_the_command_names_is_shown(work):
    import core

    for command in ("DOCKER_HOST=tcp://db:2375 docker rm x", "env DOCKER_HOST=tcp://db:2375 docker rm x"):
        found = bind(
            Request(command, cwd=str(work)),
            core.check(command, cwd=str(work), actor="agent"),
            plan_digest="p",
            policy_version="1",
            policy=BUILTIN,
            environ={"HOME": str(work / "home")},
        )
        assert found.shown["DOCKER_HOST"] == "tcp://db:2375"
        assert "docker context" not in found.shown
