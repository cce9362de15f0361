"""Says at the end of a test run how old the recorded frames of each host are."""

from __future__ import annotations

import datetime

from tests.hosts import frames


def pytest_terminal_summary(terminalreporter):
    ran = {report.nodeid for key in ("passed", "failed") for report in terminalreporter.stats.get(key, ())}
    if any("test_host_frames" in name for name in ran):
        today = datetime.date.today()
        for one in frames.recordings():
            terminalreporter.write_line(one.age(today))
