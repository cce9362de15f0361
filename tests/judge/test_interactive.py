"""What waits for somebody at a terminal is told before anybody is asked, with the spelling that does not."""

import pytest

import core
import execution
from cli import surroundings
from guard.errors import NeedsTerminal
from guard.judge.interactive import _RULES, waits_for_a_person
from guard.types import Request

WAITS = (
    "vim x", "sudo vi /etc/hosts", "sudo -e x", "nano -w x", "emacs x", "visudo", "visudo -f x", "vipw", "crontab -e",
    "crontab -u a -e", "top", "top -p 1", "htop", "passwd", "passwd root", "git rebase -i HEAD~2", "git add -p",
    "git -c a=b checkout -p", "systemctl edit nginx", "systemctl edit --full nginx", "kubectl edit deploy/x",
    "kubectl -n a exec -it x -- bash", "docker exec -it x bash", "docker run --rm -ti alpine sh", "podman attach x",
    "docker exec -i -t x sh", "kubectl exec x -it -- /bin/sh",
    "mysql", "mysql -h db shop", "psql", "psql -h db", "bash", "sh -l", "sudo -i", "sudo -s", "fdisk /dev/sdb",
    "cfdisk /dev/sdb", "mc", "cd /tmp && vim x", "timeout 5 top", "sudo -u a top", "nohup htop",
)  # fmt: skip
GOES_ON = (
    "vim -es -c '%s/a/b/' -c wq x", "vim --version", "emacs --batch -l x", "visudo -c", "visudo -cf x", "crontab -l",
    "crontab x", "echo '* * * * * x' | crontab -", "crontab - < x", "top -b -n 1", "top -bn1", "passwd -l a",
    "passwd -S a", "passwd --status a", "git rebase main", "git add x", "git commit -m x", "systemctl edit --stdin x",
    "systemctl cat x", "kubectl exec x -- ls", "kubectl exec -i x -- sh < f", "docker exec x ls -t",
    "docker run -d x top", "docker exec x top", "mysql -e 'SELECT 1'", "mysql < x", "echo 'SELECT 1' | mysql",
    "psql -c 'SELECT 1'", "psql -l", "psql -At -c x", "bash x", "bash -c ls", "sh -lc ls", "sudo ls", "sudo -u a ls",
    "sudo -i ls", "fdisk -l", "fdisk -l /dev/sdb", "echo vim x", "grep -r vim .", "which vim", "less x", "man ls",
    "ssh h vim x", 'EDITOR=vim git commit -m "top"', "passwd $x", "vim --help", "bash <<< ls", "find . -name top",
)  # fmt: skip


@pytest.mark.parametrize("command", WAITS)
def test_what_waits_is_told_with_another_spelling(command):
    program, spelling = waits_for_a_person(core.check(command))
    assert program in _RULES and spelling


@pytest.mark.parametrize("command", GOES_ON)
def test_what_waits_for_nobody_is_not_held_up(command):
    assert waits_for_a_person(core.check(command)) == ("", "")


def test_every_program_of_the_table_is_in_a_row():
    """But for those that have a neighbour's rule."""
    told = {rule for row in WAITS if (rule := _RULES.get(waits_for_a_person(core.check(row))[0]))}
    assert {rule for name, rule in _RULES.items() if rule not in told} <= {_RULES["nmtui"], _RULES["mc"]}


@pytest.mark.parametrize("command", ["vim x", "top"])
def test_neither_a_read_nor_a_change_begins_and_nothing_is_kept(tmp_path, command):
    guard = execution.open_guard(surroundings.policy())
    with pytest.raises(NeedsTerminal, match="waits for somebody") as told:
        execution.run(Request(command, cwd=str(tmp_path)), guard)
    assert told.value.hint and told.value.not_done == "nothing was run or kept"
    assert list(core.pending(guard.ledger)) == []
