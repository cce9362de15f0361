"""A package made on the spot whose postinst waits at a FIFO, and a package database of its own to install it in."""

from __future__ import annotations

import contextlib
import os
import subprocess

from tests.waiting import until

CONTROL = (
    "Package: opsslow\nVersion: 1.0\nArchitecture: all\nMaintainer: nobody <nobody@example.org>\nDescription: a probe\n"
)


class SlowPackage:
    """`command` installs it below `folder`, for any user; the postinst goes on when it is released."""

    def __init__(self, folder):
        self.folder = folder / "place"
        self.gate = self.folder / "gate"
        self._writes = -1
        admin, root, build = (self.folder / name for name in ("admin", "root", "build"))
        for path in (admin / "info", admin / "updates", root, build / "DEBIAN", build / "opt"):
            path.mkdir(parents=True)
        for name in ("status", "available"):
            (admin / name).touch()
        os.mkfifo(self.gate)
        (build / "opt/opsslow").write_text("1.0\n")
        (build / "DEBIAN/control").write_text(CONTROL)
        script = build / "DEBIAN/postinst"
        script.write_text(f'#!/bin/sh\nread -r word < "{self.gate}"\n[ "$word" = go ]\n')
        for path in (build, *build.rglob("*")):
            path.chmod(0o755 if path.is_dir() or path == script else 0o644)
        archive = self.folder / "opsslow.deb"
        subprocess.run(["dpkg-deb", "--build", str(build), str(archive)], check=True, capture_output=True)
        self._admin = f"--admindir={admin}"
        forced = "--force-not-root,script-chrootless,bad-path"
        self.command = f"dpkg {forced} {self._admin} --instdir={root} --log={self.folder}/log -i {archive}"

    def wait_until_at_work(self):
        """Returns when the postinst is at its gate."""

        def reader():
            with contextlib.suppress(OSError):  # nobody reads yet
                self._writes = os.open(self.gate, os.O_WRONLY | os.O_NONBLOCK)
            return self._writes >= 0

        until(reader, "the postinst")

    def release(self):
        """Lets the postinst go on; once is enough."""
        if self._writes >= 0:
            os.write(self._writes, b"go\n")
            os.close(self._writes)
            self._writes = -1

    def audit(self):
        """What `dpkg --audit` finds unfinished; "" when all is well."""
        done = subprocess.run(["dpkg", self._admin, "--audit"], capture_output=True, text=True, check=False)
        return done.stdout + done.stderr

    def state(self):
        """The package's state as dpkg has it."""
        query = ["dpkg-query", self._admin, "-W", "-f=${Status}", "opsslow"]
        return subprocess.run(query, capture_output=True, text=True, check=True).stdout
