from __future__ import annotations

import pytest

from hitchpost.model import draining, record, run
from hitchpost.model.draining import END, POD, STAYS, WAYS, intent_of, is_on, step_of, was_drained
from hitchpost.model.facts import Facts, Pod
from hitchpost.settings import FLEET_CHECKS
from hitchpost.values import replace
from tests.model.made import ago, running

UP = Pod("hitch-a", "u1", 1, "Running", since=ago(60), node="n2", node_ready=True)


def on(pod: Pod = UP, **changes: object) -> Facts:
    return running(runtime="pod", pod=pod, **changes)


def test_a_session_is_on_the_node_of_its_pod_while_that_is_there():
    assert is_on(on(), "n2")
    assert not is_on(on(), "n1")
    assert not is_on(on(replace(UP, ended=True)), "n2")
    assert not is_on(running(), "n2")


@pytest.mark.parametrize("way", WAYS)
def test_what_is_live_is_ended_as_was_asked(way: str):
    assert step_of(on(), way) == draining.Step(END, WAYS[way])


def test_a_pod_without_a_run_is_ended_whatever_was_asked():
    assert step_of(replace(on(), state=run.FAILED), draining.MOVE).kind == POD


def test_what_nobody_reaches_stays_and_the_plan_says_why():
    lost = on(replace(UP, unreachable_since=ago(8), node_ready=False))
    assert step_of(lost, draining.REST) == draining.Step(STAYS, "it stays: node n2 unreachable")


def test_only_what_is_not_suspended_starts_with_the_next_prompt():
    assert {way: intent_of(way) for way in WAYS} == {"rest": run.REAPER, "suspend": run.SHUTDOWN, "move": run.REAPER}


def test_the_settings_know_the_same_ways():
    for way in WAYS:
        assert FLEET_CHECKS["drain"](way) == way


@pytest.mark.parametrize(
    ("changes", "why", "node", "drained"),
    [
        ({}, "node n2 is drained, asked by cli", "n2", True),
        ({"record": record.SUSPENDED}, "node n2 is drained", "n2", True),
        ({}, "node n2 is drained, asked by cli", "n1", False),
        ({}, "node n20 is drained, asked by cli", "n2", False),
        ({}, "asked by cli", "n2", False),
        ({"state": run.RUNNING}, "node n2 is drained, asked by cli", "n2", False),
        ({"record": record.ARCHIVED}, "node n2 is drained, asked by cli", "n2", False),
    ],
)
def test_what_a_drain_has_ended_is_known_until_it_begins_again(
    changes: dict[str, object], why: str, node: str, drained: bool
):
    facts = replace(on(replace(UP, ended=True)), **{"state": run.STOPPED, **changes})
    assert was_drained(facts, why, node) is drained
