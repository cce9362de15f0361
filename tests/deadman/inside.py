"""A machine of its own with a real sshd: a session that may cut itself off, and what becomes of it.

Usage: python -m tests.deadman.inside ORDER (JSON: folder, change, seconds, confirm). Prints one JSON object.
"""

from __future__ import annotations

import json
import os
import pathlib
import shlex
import signal
import subprocess
import sys
import time

import execution
from acting import deadman

PORT = 2222
ROOT = pathlib.Path(__file__).resolve().parents[2]
PATIENCE_S = 40.0


def sshd(folder: pathlib.Path) -> subprocess.Popen[bytes]:
    for name in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)], check=True)
    (folder / "keys").write_bytes((folder / "user.pub").read_bytes())
    (folder / "sshd_config").write_text(
        f"Port {PORT}\nListenAddress 127.0.0.1\nHostKey {folder}/host\nAuthorizedKeysFile {folder}/keys\n"
        "StrictModes no\nUsePAM no\nPermitRootLogin yes\nPidFile none\n"
        f"SetEnv OPSAGENT_HOME={os.environ['OPSAGENT_HOME']}\n"
    )
    os.makedirs("/run/sshd", exist_ok=True)
    return subprocess.Popen(
        ["/usr/sbin/sshd", "-D", "-f", str(folder / "sshd_config")],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def over_ssh(folder: pathlib.Path, command: str, *, terminal: bool = False, wait: bool = True):
    argv = ["ssh", *(["-tt"] if terminal else []), "-p", str(PORT), "-i", str(folder / "user"), "-F", "none"]
    for option in ("StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null", "ConnectTimeout=2", "LogLevel=ERROR"):
        argv += ["-o", option]
    argv += ["root@127.0.0.1", command]
    if wait:
        return subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False)
    return subprocess.Popen(
        argv, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )


def until(found, what: str):
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        if value := found():
            return value
        time.sleep(0.1)
    name = what.rpartition(" ")[2]
    raise AssertionError(f"waited in vain for {what}\n{pathlib.Path(name).read_text() if os.path.isfile(name) else ''}")


def kill_all_but(*spared: int) -> None:
    """SIGKILL to every process of this pid namespace but these and the first ones."""
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) not in {1, os.getpid(), os.getppid(), *spared}:
            try:
                os.kill(int(name), signal.SIGKILL)
            except ProcessLookupError:
                continue


def rules() -> str:
    return subprocess.run(["iptables-save"], capture_output=True, text=True, check=True).stdout


def main() -> None:
    order = json.loads(sys.argv[1])
    folder = pathlib.Path(order["folder"])
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    server = sshd(folder)
    python = shlex.quote(sys.executable)
    until(lambda: over_ssh(folder, "true").returncode == 0, "sshd")
    inside = f"cd {shlex.quote(str(ROOT))} && exec {python} -m tests.deadman.session"
    words = " ".join(shlex.quote(str(word)) for word in (folder, order["change"], order["seconds"]))
    faults = folder / "session.err"
    first = over_ssh(folder, f"{inside} {words} 2> {shlex.quote(str(faults))}", wait=False)
    until((folder / "answer.json").exists, f"the change: {faults}")
    answer = json.loads((folder / "answer.json").read_text())
    guard = execution.open_guard()
    changed = "--dport" in rules()
    told = {"answer": answer, "changed": changed}
    armed = deadman.armed_for(answer["execution"], guard)
    assert armed is not None, answer
    if order["confirm"]:
        code = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from cli import opsx; sys.exit(opsx.main(sys.argv[1:]))"
        confirm = f"cd / && {python} -c {shlex.quote(code)} confirm {answer['execution']}"
        done = over_ssh(folder, confirm, terminal=True)
        told["confirmed"] = [done.returncode, done.stdout]
    else:
        told["cut"] = over_ssh(folder, "true").returncode != 0
        kill_all_but(server.pid, armed.pid)
        first.wait()
    told["ended"] = until(lambda: deadman.ended_as(answer["execution"], guard), "the end")
    until(lambda: not deadman.is_alive(armed), "the helper's end")
    told["still_changed"] = "--dport" in rules()
    told["comes_in"] = over_ssh(folder, "true").returncode == 0
    entries = list(guard.ledger.entries())
    told["entries"] = [
        [entry["kind"], entry.get("result") or entry.get("status")]
        for entry in entries
        if str(entry["kind"]).startswith("deadman") or entry["kind"] in ("started", "ended", "rollback_planned")
    ]
    print(json.dumps(told))
    kill_all_but()


if __name__ == "__main__":
    main()
