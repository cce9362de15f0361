"""Levels become decisions by enforcement, peers, actor and policy."""

import pytest

from guard.judge.classify import check
from guard.types import Actor, Enforcement, Facts, Level, Mode, Policy, Profile

STRICT = Enforcement(("local", "net", "bus", "observe", "netadm", "block"), "strict", 4, True)


def _verdict(command, **more):
    assessment = check(command, **more)
    return assessment.decision.verdict, assessment.decision.code


def test_a_plain_reader_runs_where_nothing_is_enforced():
    assert _verdict("df -h | tail -n +2") == ("run", "plain-reader")


@pytest.mark.parametrize(
    "command",
    [
        "git status",
        "grep -r x .",
        "sort *",
        "rg x",
        "x=$y; echo $((x + 1))",
        "cat x | xargs sort",
        "lsof -i",
        "man ls",
        "KUBECONFIG=/srv/k ls",
        "cat $f",
    ],
)
def test_a_read_that_is_not_plain_needs_a_stamp_where_nothing_is_enforced(command):
    assert check(command).level == Level.R0
    assert _verdict(command)[0] == "needs_stamp"


@pytest.mark.parametrize(
    "command",
    ["git status", "grep -r x .", "sort *", "x=$y; echo $((x + 1))", "cat x | xargs sort", "lsof -i", "man ls"],
)
def test_the_same_read_runs_inside_the_sandbox(command):
    assert _verdict(command, enforcement=STRICT) == ("run", "read")


def test_profiles_follow_what_the_command_needs():
    assert check("df -h").profile == Profile.LOCAL
    assert check("systemctl status nginx | head").profile == Profile.BUS
    assert check("curl -s http://localhost:8080/").profile == Profile.NET
    assert check("curl -s http://localhost:8080/").ports == (8080,)
    assert check("lsof -i").profile == Profile.OBSERVE
    assert check("iptables -S").profile == Profile.NETADM
    assert check("fdisk -l /dev/sda").profile == Profile.BLOCK
    assert check("ssh web1 uptime").profile == Profile.REMOTE


def test_whose_a_socket_is_needs_another_sandbox_than_the_socket_itself():
    assert check("ss -tln").profile == check("netstat -tln").profile == Profile.LOCAL
    for command in ("ss -tlnp", "ss --processes", "netstat -plant", "netstat --program"):
        assert check(command).profile == Profile.OBSERVE
    # Where no sandbox fits, plain readers still answer as they always did.
    assert _verdict("ss -tlnp; df -h", enforcement=STRICT) == ("run", "plain-reader")
    assert _verdict("ss -tlnp; git status", enforcement=STRICT)[0] == "needs_stamp"


def test_without_landlock_a_read_of_a_whole_tree_is_asked_about():
    seccomp = Enforcement(("local", "bus", "observe", "netadm", "block"), "seccomp", 0, True)
    assert _verdict("git status", enforcement=seccomp) == ("run", "read")
    assert _verdict("grep -rn x .", enforcement=seccomp) == ("needs_stamp", "cannot-enforce")


def test_a_namespace_closes_what_a_read_of_a_whole_tree_must_not_see():
    space = Enforcement(("local", "bus", "observe", "netadm", "block"), "userns", 0, True)
    assert _verdict("git status", enforcement=space) == ("run", "read")
    assert _verdict("grep -rn x .", enforcement=space) == ("run", "read-masked")
    # Of the profiles with one right more, none can be in it.
    assert _verdict("curl -s http://127.0.0.1/x", enforcement=space)[0] == "needs_stamp"


def test_the_bus_is_open_only_beside_plain_readers():
    assert check("sudo systemctl status nginx | grep Active").profile == Profile.BUS
    assert check("docker ps | sort").profile == Profile.BUS
    assert check("systemctl status nginx; git status").profile == Profile.NONE
    assert check("systemctl status nginx; lsof").profile == Profile.NONE


def test_an_extra_right_is_for_one_program_only():
    for command in (
        "fdisk -l /dev/sda; cat x",
        "lsof $x",
        "cat x | lsof -i",
        "lsof | xargs lsof",
        "env lsof",
        "lsof -i *",
    ):
        assert check(command).profile == Profile.NONE
    for command in ("lsof -i | grep ssh", "ss -tlnp | awk '{print $4}' | sort -u", "sudo lsof -i 2>/dev/null"):
        assert check(command).profile == Profile.OBSERVE
        assert _verdict(command.removeprefix("sudo "), enforcement=STRICT) == ("run", "read")
    assert check("iptables -L -n | head").profile == Profile.NETADM
    assert check("systemctl status x | lsof").profile == Profile.NONE
    assert check("iptables -S | sh").level >= Level.R2
    assert _verdict("fdisk -l /dev/sda; cat x", enforcement=STRICT)[0] == "needs_stamp"


@pytest.mark.parametrize(
    ("command", "right"),
    [
        ("smartctl -a /dev/sda", "CAP_SYS_RAWIO"),
        ("smartctl -H /dev/sda | tail -n 1", "CAP_SYS_RAWIO"),
        ("nvme smart-log /dev/nvme0", "CAP_SYS_ADMIN"),
        ("pvs", "device mapper"),
        ("vgs; lvs -a", "device mapper"),
    ],
)
def test_what_no_sandbox_can_give_is_said_with_why(command, right):
    assessment = check(command)
    assert (assessment.level, assessment.decision.verdict) == (Level.R0, "needs_stamp")
    assert right in assessment.decision.text
    assert "--uses N" in assessment.decision.text


def test_a_peer_that_nobody_named_needs_a_stamp():
    command = "curl -s https://example.org/x"
    assert _verdict(command, enforcement=STRICT) == ("needs_stamp", "egress")
    assert _verdict(command, enforcement=STRICT, policy=Policy(peers=["example.org"])) == ("run", "read")
    assert _verdict(command, enforcement=STRICT, policy=Policy(person_peers=["example.org:443"])) == ("run", "read")
    assert _verdict("curl -s http://127.0.0.1/x", enforcement=STRICT) == ("run", "read")


def test_a_kernel_that_cannot_limit_ports_does_not_enforce_net():
    weak = Enforcement(("local", "net"), "strict", 3, True)
    assert _verdict("curl -s http://127.0.0.1/x", enforcement=weak) == ("needs_stamp", "cannot-enforce")


def test_a_read_on_a_named_machine_runs():
    assert _verdict("ssh web1 uptime", policy=Policy(peers=["web1"])) == ("run", "read")
    assert _verdict("ssh web1 uptime") == ("needs_stamp", "egress")
    assert _verdict("ssh web1 git status", policy=Policy(peers=["web1"]))[0] == "needs_stamp"


def test_a_read_in_a_container_runs_when_a_person_named_the_target():
    docker, kube = Policy(contexts=["docker"]), Policy(contexts=["kubernetes", "prod"])
    assert check("docker exec web ps aux").profile == Profile.REMOTE
    assert _verdict("docker exec web ps aux", policy=docker) == ("run", "read")
    assert _verdict("docker exec web ps aux") == ("needs_stamp", "egress")
    assert _verdict("kubectl exec web -- ls /srv", policy=kube) == ("run", "read")
    assert _verdict("kubectl --context prod exec web -- ls /srv", policy=kube) == ("run", "read")
    assert _verdict("kubectl --context other exec web -- ls /srv", policy=kube) == ("needs_stamp", "egress")
    assert _verdict("docker exec web ps aux | head; ls", policy=docker) == ("run", "read")
    assert _verdict("docker exec web ps aux; git status", policy=docker) == ("needs_stamp", "cannot-enforce")
    assert _verdict("docker exec web git status", policy=docker) == ("needs_stamp", "cannot-enforce")


def test_levels_above_r0_need_a_person():
    assert _verdict("touch x") == ("needs_stamp", "level")
    assert _verdict("apt install x") == ("needs_stamp", "level")
    decision = check("rm -rf x").decision
    assert (decision.verdict, decision.forceable) == ("refuse", True)


def test_modes_change_what_is_allowed_at_most():
    read_only, lab = Policy(mode=Mode.READ_ONLY), Policy(mode=Mode.LAB)
    assert check("touch x", policy=read_only).decision.forceable is False
    assert _verdict("touch x", policy=read_only) == ("refuse", "mode")
    assert _verdict("ls", policy=read_only)[0] == "run"
    assert _verdict("touch x", policy=lab) == ("run", "mode")
    assert _verdict("apt install x", policy=lab)[0] == "needs_stamp"
    assert _verdict("rm -rf x", policy=lab)[0] == "refuse"


def test_a_freeze_stops_everything_above_r0():
    frozen = Policy(frozen="maintenance")
    assert _verdict("touch x", policy=frozen) == ("refuse", "frozen")
    assert _verdict("ls", policy=frozen)[0] == "run"


@pytest.mark.parametrize(
    "command",
    ["opsx approve a-1", "sudo opsx approve a-1", "bash -c 'opsx approve a-1'", "x=approve; opsx $x a-1",
        "opsagent -p hi", "opsagent-mcp", "opsx approve --force -- rm -rf x", "OPSAGENT_HOME=/tmp/x ls",
        "export OPSAGENT_HOME=/tmp/x", "env OPSAGENT_HOME=/tmp/x ls", "opsx list --config x",
        "opsx exec --actor person -- ls", "echo x > ~/.config/opsagent/config.toml", "rm -rf /var/lib/opsagent",
        "sed -i s/a/b/ /opt/opsagent/core.py", "cd /opt/opsagent && touch core.py",
        "cp x /opt/opsagent/.venv/lib/x.py", "mv /opt/opsagent /tmp/x", "opsx rules trust x", "opsx thaw",
        "find /opt/opsagent -delete", "yes | opsx approve a-1", "tar -xf x -C /opt/opsagent",
        "chmod -R 777 /opt/opsagent",],
)  # fmt: skip
def test_nobody_below_a_person_approves(command):
    policy = Policy(own_paths=["/opt/opsagent"])
    for actor in (Actor.AGENT, Actor.RUNBOOK, Actor.HOOK):
        decision = check(command, cwd="/srv", actor=actor, policy=policy).decision
        assert (decision.verdict, decision.code, decision.forceable) == ("refuse", "law-6", False)


@pytest.mark.parametrize(
    "command",
    ["opsx check -- 'rm -rf x'", "opsx explain -- ls", "opsx executions", "opsx list", "opsx show e-1", "opsx audit"],
)
def test_an_agent_may_look_at_what_opsagent_knows(command):
    assert check(command).level == Level.R0


def test_a_person_may_approve():
    assert check("opsx approve a-1", actor=Actor.PERSON).decision.verdict == "needs_stamp"


def test_facts_raise_and_never_lower():
    linked = Facts({"/srv/link": "/etc/shadow"}, {})
    assert check("cat /srv/link").level == Level.R0
    assert check("cat link", cwd="/srv", facts=linked).level == Level.R2
    device = Facts({}, {"/srv/x": "device"})
    assert check("cat /srv/x", facts=device).level == Level.R2
    assert check("echo a > /srv/x", facts=device).level == Level.R3
    assert (
        check("cat /etc/shadow", facts=Facts({"/etc/shadow": "/srv/plain"}, {"/srv/plain": "file"})).level == Level.R2
    )


def test_questions_name_what_facts_would_matter():
    assert check("cat link > out", cwd="/srv").questions == ("/srv/out", "/srv/link")


def test_what_has_a_right_of_its_own_is_asked_about_for_users_and_not_for_root():
    for command in ("crontab -l", "atq", "chage -l root"):
        assert _verdict(command, enforcement=STRICT) == ("needs_stamp", "privilege")
        assert _verdict(command, enforcement=STRICT, policy=Policy(is_root=True)) == ("run", "read")


def test_sudo_is_held_only_as_root_and_without_options():
    root = Policy(is_root=True)
    command = "sudo systemctl status nginx"
    assert check(command).level == Level.R0
    assert _verdict(command, enforcement=STRICT) == ("needs_stamp", "privilege")
    assert _verdict(command, enforcement=STRICT, policy=root) == ("run", "read")
    assert _verdict("sudo df -h | sudo tail -n 1", enforcement=STRICT, policy=root) == ("run", "read")
    for other in ("sudo -n df -h", "sudo -u postgres ls /srv", "sudo LC_ALL=C df", "doas df -h", "df; su -c df bob"):
        assert check(other).level == Level.R0
        assert _verdict(other, enforcement=STRICT, policy=root) == ("needs_stamp", "privilege")
    assert "as root" in check(command, enforcement=STRICT).decision.text


@pytest.mark.parametrize(
    ("command", "setting"),
    [
        ("kubectl get pods", 'contexts = ["kubernetes"]'),
        ("kubectl --context prod get pods", 'contexts = ["prod"]'),
        ("curl -s https://example.org/x", 'peers = ["example.org"]'),
        ("ssh web1 uptime", 'peers = ["web1"]'),
    ],
)
def test_an_egress_decision_says_how_to_allow_it_for_good(command, setting):
    decision = check(command, enforcement=STRICT).decision
    assert decision.code == "egress" and f"[policy] {setting} in config.toml" in decision.text


def test_configured_variables_are_asked_for_by_every_command():
    assert "VAULT_ADDR" in check("ls", policy=Policy(env=["VAULT_ADDR"])).env


@pytest.mark.parametrize(
    "command",
    ["systemctl restart nginx", "kubectl delete pod web", "docker stop web", "apt-get install nginx", "kill 1"],
)
def test_names_of_objects_are_no_files_of_our_own_folder(command):
    decision = check(command, cwd="/opt/opsagent", policy=Policy(own_paths=["/opt/opsagent"])).decision
    assert decision.code == "level"


@pytest.mark.parametrize(
    "command", ["touch core.py", "rm core.py", "git checkout main", "sed -i s/a/b/ core", "cp /x core"]
)
def test_files_of_our_own_folder_are_not_for_an_agent_to_change(command):
    decision = check(command, cwd="/opt/opsagent", policy=Policy(own_paths=["/opt/opsagent"])).decision
    assert decision.code == "law-6"


@pytest.mark.parametrize("command", ["cat README.md", "head -c 1G f", "grep -rn def .", "git log", "sed -n 1p core.py"])
def test_our_own_code_may_be_read(command):
    policy = Policy(own_paths=["/opt/opsagent", "/var/lib/opsagent"], own_private=["/var/lib/opsagent"])
    assessment = check(command, cwd="/opt/opsagent", enforcement=STRICT, policy=policy)
    assert (assessment.level.name, assessment.decision.verdict) == ("R0", "run")
    assert check("cat /var/lib/opsagent/key", enforcement=STRICT, policy=policy).level.name == "R2"


def test_a_value_that_holds_for_one_command_only_is_not_what_its_words_get():
    assert _verdict("x=a; cat $x") == ("run", "plain-reader")
    assert _verdict("x=a cat $x")[0] == "needs_stamp"
