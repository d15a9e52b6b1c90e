"""Runs each failed test once more, alone, when all others have ended: ``pytest -p tests.rerun``.

A test that passes then is flaky: the run passes, says so last, and keeps the first failure in ``flaky.log``.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

MOST = 10
"""More failures than these are no accident, and are not run again."""
LOG = "flaky.log"


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Rerun(config))


class Rerun:
    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.flaky: dict[str, str] = {}

    @property
    def terminal(self) -> pytest.TerminalReporter:
        reporter = self.config.pluginmanager.get_plugin("terminalreporter")
        assert isinstance(reporter, pytest.TerminalReporter)
        return reporter

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        reports = [*self.terminal.stats.get("failed", []), *self.terminal.stats.get("error", [])]
        failures: dict[str, str] = {}
        for report in reports:
            if not isinstance(report, pytest.TestReport):
                return  # a file that cannot be read
            failures.setdefault(report.nodeid, report.longreprtext)
        # pytest stopped at the first failures: what it did not run is not known
        stopped = exitstatus != pytest.ExitCode.TESTS_FAILED or self.config.getoption("maxfail")
        if stopped or not 0 < len(failures) <= MOST:
            return
        self.terminal.section("run once more, alone")
        self.flaky = {test: text for test, text in failures.items() if self.passes(test)}
        if self.flaky:
            self.move_reports()
            self.write_log()
        if len(self.flaky) == len(failures):
            session.exitstatus = pytest.ExitCode.OK

    def passes(self, test: str) -> bool:
        argv = [sys.executable, "-m", "pytest", "-n", "0", "-p", "no:cacheprovider", test]
        if self.config.getoption("--all-agents", default=False):
            argv.append("--all-agents")  # else it would be skipped
        done = subprocess.run(
            argv,
            cwd=self.config.rootpath,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
            check=False,
        )
        last = done.stdout.rstrip().rpartition("\n")[2]
        passed = done.returncode == 0 and " passed" in last  # a skipped test ends with 0 too
        self.terminal.write_line(f"{'PASSED' if passed else 'FAILED'} {test}")
        if not passed:
            self.terminal.write_line(done.stdout)
        return passed

    def move_reports(self) -> None:
        """Count each flaky test as such, and once."""
        stats = self.terminal.stats
        first = {report.nodeid: report for report in [*stats.get("error", []), *stats.get("failed", [])]}
        for outcome in ("failed", "error", "passed"):
            if outcome in stats:
                stats[outcome] = [report for report in stats[outcome] if report.nodeid not in self.flaky]
        stats["flaky"] = [first[test] for test in self.flaky]

    def write_log(self) -> None:
        now = datetime.now(UTC).isoformat(timespec="seconds")
        with (self.config.rootpath / LOG).open("a", encoding="utf-8", errors="backslashreplace") as log:
            for test, text in self.flaky.items():
                log.write(f"{now} {test}\n{text}\n\n")

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_terminal_summary(self) -> Iterator[None]:
        for test, text in self.flaky.items():
            self.terminal.section(f"first failure of {test}", "_")
            self.terminal.write_line(text)
        yield
        if self.flaky:
            self.terminal.section("FLAKY: failed at first, passed alone", yellow=True, bold=True)
            for test in self.flaky:
                self.terminal.write_line(f"FLAKY {test}", yellow=True)
            self.terminal.write_line(f"A flaky test is a bug. The first failures are kept in {LOG}.", yellow=True)
