"""The table of what is proven of each agent."""

from __future__ import annotations

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
    assert list(proofs.problems(page)) == [f"claude is 0.1 there, and {AGENTS['claude'].version()} is tested"]
    assert "its lines are" in next(proofs.problems(page.replace("| started |", "| begun |")))
    assert "has a cell" in list(proofs.problems(page.replace("| no |", "| perhaps |")))[-1]


def test_a_word_that_the_table_does_not_have_is_refused() -> None:
    item = SimpleNamespace(nodeid="a test", iter_markers=lambda _: [pytest.mark.proves("magic").mark])
    with pytest.raises(pytest.UsageError, match="got 'magic'"):
        proofs.claimed(cast(pytest.Item, item))


def report(when: str, words: list[str], agent: str | None, outcome: str = "passed") -> pytest.TestReport:
    told = [("proves", words), *((("agent", agent),) if agent else ())]
    return pytest.TestReport("a test", ("", 0, ""), {}, outcome, None, when, user_properties=told)  # type: ignore[arg-type]
