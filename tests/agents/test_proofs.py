"""The table of what is proven of each agent."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from script.agents import AGENTS
from tests.agents import proofs


def test_the_table_has_the_words_and_versions_of_today() -> None:
    assert list(proofs.problems(proofs.PAGE.read_text())) == []


def test_a_word_is_proven_when_all_tests_that_claim_it_have_passed() -> None:
    run = proofs.Collecting(cast(pytest.Config, None))
    for agent, words, outcome in (
        ("claude", ["working", "started"], "passed"),
        ("claude", ["started"], "failed"),
        ("codex", ["started"], "passed"),
        ("codex", ["question"], "skipped"),
    ):
        run.pytest_runtest_logreport(report("setup", words, agent))
        run.pytest_runtest_logreport(report("call", words, agent, outcome))
    assert run.results == {
        "claude": {"working": True, "started": False},
        "codex": {"started": True, "question": False},
    }
    run.pytest_runtest_logreport(report("setup", ["started"], None, "failed"))
    assert run.lost == ["a test"]


def test_only_the_agents_that_ran_have_new_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(proofs.NOT_POSSIBLE, ("codex", "question"), "it asks none")
    monkeypatch.setitem(proofs.NOT_PROVEN, ("codex", "usage limit"), "it says nothing")
    page = f"before\n{proofs.BEGIN}\n{proofs.END}\nafter\n"
    page = proofs.updated(page, {"codex": {"started": True}}, {"codex": AGENTS["codex"].version()})
    page = proofs.updated(page, {"claude": {"started": False}}, {"claude": "0.1"})
    assert (page.startswith("before\n"), page.endswith("\nafter\n")) == (True, True)
    table = proofs.columns(page)
    below = ("version", *proofs.WORDS)
    codex, claude = (dict(zip(below, table[agent], strict=True)) for agent in ("codex", "claude"))
    assert (codex["started"], codex["question"], codex["working"]) == ("yes", "not possible: it asks none", "")
    assert codex["usage limit"] == "not proven: it says nothing"
    assert (claude["started"], claude["version"]) == ("no", "0.1")
    assert list(proofs.problems(page, (proofs.IN_TERMINAL,))) == [
        f"claude is 0.1 there, and {AGENTS['claude'].version()} is tested"
    ]
    assert "its lines are" in next(proofs.problems(page.replace("| started |", "| begun |"), (proofs.IN_TERMINAL,)))
    assert "has a cell" in list(proofs.problems(page.replace("| no |", "| perhaps |"), (proofs.IN_TERMINAL,)))[-1]


@pytest.mark.parametrize(
    ("paths", "chosen", "expected"),
    [
        (["tests/agents"], {}, True),
        (["tests/agents/test_smoke.py"], {}, False),
        (["tests/agents/test_smoke.py", "tests/agents"], {}, False),
        (["tests/agents"], {"keyword": "codex"}, False),
        (["tests/agents"], {"markexpr": "all_agents"}, False),
        (["tests/agents"], {"deselect": ["tests/agents/test_smoke.py"]}, False),
    ],
)
def test_only_a_run_of_every_test_is_a_whole_one(paths: list[str], chosen: dict[str, object], expected: bool) -> None:
    assert proofs.is_whole(asked(paths, **chosen)) is expected


def test_a_run_that_was_cut_short_writes_no_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "agents.md"
    page.write_text("as it was")
    monkeypatch.setattr(proofs, "PAGE", page)
    run = proofs.Collecting(asked(["tests/agents"]))
    run.pytest_xdist_node_collection_finished(ids=["one", "two"])
    run.pytest_runtest_logfinish("one")
    run.results = {"codex": {"started": True}}
    run.pytest_sessionfinish(pytest.ExitCode.TESTS_FAILED)
    assert page.read_text() == "as it was"


def asked(paths: list[str], **chosen: object) -> pytest.Config:
    """What pytest was told."""
    option = SimpleNamespace(**{"keyword": "", "markexpr": "", "deselect": None, "table": False, **chosen})
    where = SimpleNamespace(dir=proofs.PAGE.parents[1])
    return cast(pytest.Config, SimpleNamespace(option=option, args=paths, invocation_params=where))


def test_a_word_that_the_table_does_not_have_is_refused() -> None:
    item = SimpleNamespace(nodeid="a test", iter_markers=lambda _: [pytest.mark.proves("magic").mark])
    with pytest.raises(pytest.UsageError, match="got 'magic'"):
        proofs.claimed(cast(pytest.Item, item))


def report(when: str, words: list[str], agent: str | None, outcome: str = "passed") -> pytest.TestReport:
    told = [("proves", words), *((("agent", agent),) if agent else ())]
    return pytest.TestReport("a test", ("", 0, ""), {}, outcome, None, when, user_properties=told)  # type: ignore[arg-type]
