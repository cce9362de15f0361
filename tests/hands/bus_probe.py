"""Starts a real dbus-daemon and the stub manager, runs commands under a profile, prints the results as JSON.

Usage: python bus_probe.py FOLDER SOCKET COMMANDS (a JSON list of [profile, command]).
"""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))

from guard.hands.environment import build_environment
from guard.hands.targets.local import LocalTarget

CONFIG = """<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <type>system</type>
  <listen>unix:path={socket}</listen>
  <auth>EXTERNAL</auth>
  <policy context="default">
    <allow send_destination="*" eavesdrop="true"/><allow receive_sender="*"/><allow own="*"/><allow user="*"/>
  </policy>
</busconfig>
"""


def main() -> None:
    folder, path = pathlib.Path(sys.argv[1]), sys.argv[2]
    (folder / "bus.conf").write_text(CONFIG.format(socket=path))
    notes = folder / "notes"
    notes.touch()
    daemon = subprocess.Popen(["dbus-daemon", f"--config-file={folder}/bus.conf", "--nofork", "--nopidfile"])
    while not pathlib.Path(path).exists():
        time.sleep(0.01)
    stub_file = pathlib.Path(__file__).with_name("stub_manager.py")
    stub = subprocess.Popen([sys.executable, str(stub_file), path, str(notes)], stdout=subprocess.PIPE, text=True)
    assert stub.stdout is not None
    assert stub.stdout.readline() == "READY\n"
    env = {**build_environment().env, "DBUS_SYSTEM_BUS_ADDRESS": f"unix:path={path}"}
    target = LocalTarget()
    results = []
    try:
        for profile, command in json.loads(sys.argv[3]):
            result = target.run(command, cwd="/", profile=profile, env=env, timeout_s=30)
            results.append(
                {
                    "exit_code": result.exit_code,
                    "stdout": result.stdout.text,
                    "stderr": result.stderr.text,
                    "enforced": result.enforced,
                    "unlimited": result.unlimited,
                    "interference": [[each.operation, each.path] for each in result.interference or ()],
                    "calls": notes.read_text().split(),
                }
            )
    finally:
        stub.kill()
        daemon.kill()
        stub.wait()
        daemon.wait()
    print(json.dumps(results))


if __name__ == "__main__":
    main()
