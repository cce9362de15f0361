"""Shell text that makes a machine on which systemd seems to run: a real dbus-daemon and the manager of one unit."""

from __future__ import annotations

import pathlib
import shlex
import sys

from tests.hands.bus_probe import CONFIG

SOCKET = "/run/dbus/system_bus_socket"
ROOT = pathlib.Path(__file__).resolve().parents[2]
BOOTED = f"""
mount -t tmpfs none /mnt; mount -t tmpfs none /run; mkdir -p /run/systemd/system /run/dbus
cat > /mnt/bus.conf <<'END'
{CONFIG.format(socket=SOCKET)}
END
dbus-daemon --config-file=/mnt/bus.conf --fork --nopidfile >/dev/null
cd {shlex.quote(str(ROOT))}
coproc {{ exec {shlex.quote(sys.executable)} -m tests.services.unit_manager {SOCKET}; }}
read -r answer <&"${{COPROC[0]}}"
[ "$answer" = READY ]
"""
