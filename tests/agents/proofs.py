"""What is proven of each real agent: ``docs/agents.md`` has a table of it, made from the results of a run.

A test says with ``@pytest.mark.proves("working", "turn finished")`` what it proves, in the words of ``WORDS``; of which
agent, it says by asking for the agent's home. ``script/test --all-agents`` writes the table, when every test of this
folder has run. After a part of them (``-k``, a file, ``-x``) it is written only if ``--table`` is given, and then only
for the agents that ran. What a run has not proven is not in it.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from script.agents import AGENTS
from tests.agents import installed, ways

PAGE = Path(__file__).parents[2] / "docs/agents.md"
BEGIN, END = "<!-- what is proven: made by script/test --all-agents -->", "<!-- end of what is proven -->"
WORDS = (
    "started",
    "start-up dialog",
    "working",
    "long silent tool",
    "permission asked",
    "question",
    "refused with Esc",
    "interrupted with Esc",
    "interrupted with Ctrl-C",
    "turn finished",
    "API error",
    "usage limit",
    "background work",
    "cleared",
    "exit: quit",
    "exit: Ctrl-C",
    "exit: Ctrl-D",
    "exit: TERM",
    "exit: HUP",
    "exit: KILL",
    "no tool left",
    "prompt byte-exact",
    "prompt byte-exact: /word",
    "prompt refused",
    "answered from the API",
    "answered from the terminal",
    "after kill: mid-stream",
    "after kill: at a permission",
    "after kill: mid-tool",
    "restarted afresh",
    "forked",
)
"""One line of the table each. Events are told alike by ps, API, WebSocket and story: ``tests.agents.everywhere``."""
ACP_WORDS = (
    "started",
    "working",
    "permission asked",
    "answered from the API",
    "answered from the terminal",
    "prompt refused",
    "interrupted with Ctrl-C",
    "interrupted at a permission",
    "interrupted in a tool",
    "turn finished",
    "API error",
    "exit: KILL",
    "after kill: mid-stream",
)
"""The same for agents over ACP."""


@dataclass(frozen=True, slots=True)
class Table:
    """One of the page: its agents, and its lines."""

    begin: str
    agents: tuple[str, ...]
    words: tuple[str, ...]


IN_TERMINAL = Table(BEGIN, tuple(AGENTS), WORDS)
OVER_ACP = Table(
    "<!-- what is proven over ACP: made by script/test --all-agents -->",
    tuple(f"{name}{installed.OVER_ACP}" for name in installed.NAMES_OVER_ACP),
    ACP_WORDS,
)
TABLES = (IN_TERMINAL, OVER_ACP)
NOT_POSSIBLE: dict[tuple[str, str], str] = {
    ("claude", "prompt byte-exact: /word"): "it would be a command, so it is refused",
    ("gemini-acp", "after kill: mid-stream"): "it deletes what it loads; a new conversation begins, and that is said",
    **ways.NOT_POSSIBLE,
}
"""(agent, word) → why there is no such thing."""
NOT_PROVEN = ways.NOT_PROVEN
"""(agent, word) → why no test proves it, although there is such a thing."""
YES, NO = "yes", "no"
VERSION = re.compile(r"\d+(?:\.\d+)+")

Results = dict[str, dict[str, bool]]
"""For each agent and word: whether all tests that claim it have passed."""


def claimed(item: pytest.Item) -> list[str]:
    words = [word for mark in item.iter_markers("proves") for word in mark.args]
    unknown = [word for word in words if word not in (*WORDS, *ACP_WORDS)]
    if unknown:
        raise pytest.UsageError(f"{item.nodeid}: expected a word of tests/agents/proofs.py, got {unknown[0]!r}")
    return words


# the table --------------------------------------------------------------------------------------------------------


def rows(page: str, table: Table) -> list[list[str]]:
    """The cells of the table, its line of dashes left out. The first column has the words."""
    text = page.partition(table.begin)[2].partition(END)[0].strip().splitlines()
    lines = [line for line in text if line.startswith("|") and not line.startswith("|---")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def columns(page: str, table: Table = IN_TERMINAL) -> dict[str, list[str]]:
    """For each agent what stands below its name: its version, then a cell for each word."""
    cells = rows(page, table)
    heads = cells[0][1:] if cells else []
    return {agent: [row[number] for row in cells[1:]] for number, agent in enumerate(heads, 1)}


def updated(page: str, results: Results, versions: dict[str, str]) -> str:
    """``page`` with new columns for the agents of ``results``; those of the others stay."""
    for table in TABLES:
        if table.begin in page:
            page = _with(page, table, results, versions)
    return page


def _with(page: str, table: Table, results: Results, versions: dict[str, str]) -> str:
    before = columns(page, table)
    found = {}
    for agent in table.agents:
        if agent in results:
            found[agent] = [versions[agent], *(cell(agent, word, results[agent]) for word in table.words)]
        else:
            found[agent] = before.get(agent, [""] * (1 + len(table.words)))
    words = ("version", *table.words)
    below = [[word, *(column[number] for column in found.values())] for number, word in enumerate(words)]
    head, *lines = (f"| {' | '.join(line)} |" for line in ([" ", *found], *below))
    made = "\n".join((head, "|---" * (1 + len(found)) + "|", *lines))
    above, _, rest = page.partition(table.begin)
    return f"{above}{table.begin}\n{made}\n{END}{rest.partition(END)[2]}"


def cell(agent: str, word: str, proven: dict[str, bool]) -> str:
    if word in proven:
        return YES if proven[word] else NO
    if why := NOT_POSSIBLE.get((agent, word)):
        return f"not possible: {why}"
    return f"not proven: {why}" if (why := NOT_PROVEN.get((agent, word))) else ""


def version(name: str) -> str:
    """As it is locked; and as the program says it, where that is another."""
    agent = installed.program(name)
    done = subprocess.run([agent.path, "--version"], capture_output=True, text=True, timeout=60, check=False)
    said = VERSION.search(done.stdout)
    locked = agent.version()
    return locked if said is None or said[0] == locked else f"{said[0]} (locked as {locked})"


def problems(page: str, tables: tuple[Table, ...] = TABLES) -> Iterator[str]:
    """Why the tables are not of today's words and versions."""
    for table in tables:
        found = columns(page, table)
        if tuple(row[0] for row in rows(page, table)[2:]) != table.words:
            yield "its lines are not the words of tests/agents/proofs.py"
        if tuple(found) != table.agents:
            yield "its columns are not the agents of script/agents"
        for agent, (said, *cells) in found.items():
            if any(cells) and agent in table.agents:
                tested = installed.program(agent).version()
                if tested not in VERSION.findall(said):
                    yield f"{agent} is {said} there, and {tested} is tested"
            if any(
                text not in (YES, NO, "") and not text.startswith(("not possible: ", "not proven: ")) for text in cells
            ):
                yield f"{agent} has a cell that is neither {YES} nor {NO}"


# the run ----------------------------------------------------------------------------------------------------------


def is_whole(config: pytest.Config) -> bool:
    """Whether every test of this folder was asked for."""
    chosen = config.option.keyword or config.option.markexpr or config.option.deselect
    return not chosen and [config.invocation_params.dir / path for path in config.args] == [Path(__file__).parent]


class Collecting:
    """Of the process that all results come to. ``lost`` are failures of which no agent is known."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.results: Results = {}
        self.lost: list[str] = []
        self.left: set[str] = set()
        """Tests that have not ended."""

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self.left |= {item.nodeid for item in session.items}

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: list[str]) -> None:
        self.left |= set(ids)

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        self.left.discard(nodeid)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        told: dict[str, Any] = dict(report.user_properties)
        words, agent = told.get("proves"), told.get("agent")
        if not words or (report.when == "setup" and report.passed):
            return
        if agent is None:
            self.lost += [report.nodeid] if report.failed else []
            return
        proven = self.results.setdefault(agent, {})
        for word in words:
            if (agent, word) in NOT_POSSIBLE:
                continue
            proven[word] = proven.get(word, True) and report.passed

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, exitstatus: int) -> None:
        config = self.config
        whole = is_whole(config) and not self.left
        if exitstatus not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED) or not (whole or config.option.table):
            return
        reporter = config.pluginmanager.get_plugin("terminalreporter")
        assert isinstance(reporter, pytest.TerminalReporter)
        if self.lost:
            reporter.write_line(f"\n{PAGE.name} was not written: {self.lost[0]} failed before its agent was known")
            return
        versions = {agent: version(agent) for agent in self.results}
        PAGE.write_text(updated(PAGE.read_text(), self.results, versions))
        reporter.write_line(f"\n{PAGE.name}: what is proven of {', '.join(self.results)} was written")
