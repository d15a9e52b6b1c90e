from __future__ import annotations

from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hitchpost.model import pods, record, run
from hitchpost.model.compat import agent_state
from hitchpost.model.facts import DOCKER, LOCAL, POD, Exit, Facts, Pod, has_container, has_sandbox, is_elsewhere
from hitchpost.model.pods import (
    LinkDown,
    LinkUp,
    NodeRemoved,
    NodeTold,
    Noted,
    PodGone,
    PodTold,
    handle,
    is_hopeless,
    is_news,
    is_up,
    made,
    why_ended,
    why_waits,
)
from hitchpost.model.status import settle, status
from hitchpost.values import replace
from tests.model.made import NOW, ago, ended, facts_with, moments, running

UP = Pod("hitch-a", "u1", 1, "Running", since=ago(60), node="n2", node_ready=True, node_boot="b1")


def after(*events: pods.Event, pod: Pod = UP) -> Pod:
    for event in events:
        pod = handle(pod, event)
    return pod


def told(pod: Pod = UP, **changes: object) -> Facts:
    """What is seen of a running session whose pod this is, as the runtime sees it."""
    seen: dict[str, object] = {"keeper_alive": True, "session_alive": True}
    if pod.ended:
        seen = {"keeper_alive": False, "session_alive": False, "lost": why_ended(pod)}
    elif pod.unreachable_since is not None:
        seen = {"keeper_alive": None, "session_alive": None, "probe_failed": True}
    usual = {"runtime": POD, "pod": pod, "same_boot": None, "sandbox_alive": is_up(pod)}
    return running(**usual | seen | changes)


def words(pod: Pod, **changes: object) -> tuple[str, str, str]:
    found = status(told(pod, **changes), NOW)
    return found.label, found.headline, found.detail


# Where things are


def test_a_pod_is_a_sandbox_on_another_machine() -> None:
    found = [(has_sandbox(name), has_container(name), is_elsewhere(name)) for name in (LOCAL, DOCKER, POD)]
    assert found == [(False, False, False), (True, True, False), (True, False, True)]


def test_a_new_pod_follows_the_one_before_and_the_same_one_is_as_it_was() -> None:
    gone = after(PodGone(ago(1), "u1"))
    assert made(gone, "hitch-a", "u2", NOW) == Pod("hitch-a", "u2", 1, "Pending", since=NOW)
    assert made(UP, "hitch-a", "u1", NOW) == UP
    assert made(None, "hitch-a", "u1", NOW) == Pod("hitch-a", "u1", 0, "Pending", since=NOW)
    assert pods.given(UP, 2).run == 2


def test_a_pod_of_the_same_name_follows_one_that_has_ended_only() -> None:
    second = PodTold(ago(1), "u2", "Pending")
    assert after(second) == UP
    assert after(PodGone(ago(5), "u1"), second) == Pod("hitch-a", "u2", 1, "Pending", since=ago(1))
    late = PodTold(ago(1), "u1", "Running")
    gone = after(PodGone(ago(5), "u1"))
    assert after(late, pod=gone) == gone


# Unreachable


def test_a_node_that_does_not_answer_is_unknown_with_its_name_and_the_time() -> None:
    silent = after(NodeTold(ago(3), "n2", False), LinkDown(ago(8)), LinkDown(ago(2)))
    assert words(silent) == ("unknown (node n2 unreachable 8s)", "Unknown", "node n2 unreachable")
    found = status(told(silent), NOW)
    assert (found.state, found.since, found.quiet_since) == ("running", ago(8), ago(8))


def test_a_pod_that_does_not_answer_on_a_node_that_does_is_told_as_that() -> None:
    silent = after(LinkDown(ago(4)))
    assert words(silent)[0] == "unknown (pod on n2 unreachable 4s)"
    assert words(replace(silent, node=""))[0] == "unknown (pod unreachable 4s)"


def test_a_pod_that_answers_again_is_running_again() -> None:
    assert words(after(LinkDown(ago(8)), LinkUp(ago(1))))[0] == "running"


def test_another_doubt_is_told_without_a_time() -> None:
    doubted = replace(told(after(LinkDown(ago(8)))), doubt="keeper stopped")
    assert status(doubted, NOW).label == "unknown (keeper stopped)"
    assert status(doubted, NOW).quiet_since is None


def test_a_silent_node_under_a_pod_that_answers_changes_nothing() -> None:
    assert words(after(NodeTold(ago(30), "n2", False)))[0] == "running"


def test_a_cordoned_node_is_told_where_nothing_else_is() -> None:
    cordoned = after(NodeTold(ago(30), "n2", True, cordoned=True))
    assert words(cordoned)[0] == "running (node n2 is cordoned)"
    assert words(cordoned, last_activity_at=ago(90))[0] == "running (idle 1m 30s)"


# Ends


GONE = PodGone(ago(5), "u1")


@pytest.mark.parametrize(
    ("events", "why"),
    [
        ([GONE], "pod deleted"),
        ([NodeTold(ago(9), "n2", False), GONE], "node lost"),
        ([NodeRemoved(ago(9), "n2"), GONE], "node lost"),
        ([NodeTold(ago(9), "n2", True, cordoned=True), GONE], "evicted (node n2 is cordoned)"),
        (
            [Noted(ago(9), "u1", "Preempted", "Preempted by a/b on node n2"), GONE],
            "preempted (Preempted by a/b on node n2)",
        ),
        (
            [Noted(ago(9), "u1", "TaintManagerEviction", "Marking for deletion Pod a/b"), GONE],
            "evicted (Marking for deletion Pod a/b)",
        ),
        (
            [Noted(ago(9), "u1", "TaintManagerEviction", "…"), NodeTold(ago(9), "n2", False), GONE],
            "node lost",
        ),
        (
            [PodTold(ago(5), "u1", "Failed", "Evicted", "The node was low on resource: memory. ")],
            "evicted (The node was low on resource: memory)",
        ),
        ([PodTold(ago(5), "u1", "Failed", "OOMKilled")], "out of memory"),
        ([PodTold(ago(5), "u1", "Failed", "Error", "exit code 3")], "pod ended: Error (exit code 3)"),
        ([PodTold(ago(5), "u1", "Succeeded")], "pod ended"),
        ([PodTold(ago(5), "u1", "Failed", "Error", "exit code 137", leaving=True)], "pod deleted"),
        ([PodTold(ago(5), "u1", "Failed", "OOMKilled", leaving=True)], "out of memory"),
        ([PodTold(ago(5), "u1", "Failed", "Terminated", "Pod was terminated")], "node shut down"),
        (
            [NodeTold(ago(9), "n2", True, boot="b2"), PodTold(ago(5), "u1", "Failed", "Error", "x")],
            "interrupted by reboot",
        ),
        ([Noted(ago(9), "u1", "Preempted", "…"), PodTold(ago(5), "u1", "Failed", "OOMKilled")], "out of memory"),
    ],
)
def test_an_end_has_its_name(events: list[pods.Event], why: str) -> None:
    pod = after(*events)
    assert (pod.ended, pod.since, why_ended(pod)) == (True, ago(5), why)


def test_an_end_that_the_cluster_tells_is_a_failed_run() -> None:
    evicted = after(PodTold(ago(5), "u1", "Failed", "Evicted", "The node was low on resource: memory."))
    why = "evicted (The node was low on resource: memory)"
    assert words(evicted) == (f"failed: {why}", "Failed", why)
    assert agent_state(told(evicted)) == "stopped"


def test_a_lost_node_suspends_the_record_and_restart_brings_it_back() -> None:
    lost = told(after(NodeTold(ago(9), "n2", False), GONE), supports_resume=True)
    settled = settle(lost)
    assert (settled.state, settled.record, settled.exit and settled.exit.error) == ("failed", "suspended", "node lost")
    found = status(lost, NOW)
    assert (found.word, found.label, found.state, found.reason) == (
        "suspended",
        "suspended: node lost",
        "failed",
        "node lost",
    )
    assert found.actions[:2] == ("resume", "restart")


def test_the_keepers_own_word_counts_more_than_the_clusters() -> None:
    gone = told(after(GONE), exit=Exit(code=0, ended_at=ago(6)))
    assert status(gone, NOW).label == "completed"


def test_a_long_message_is_cut() -> None:
    found = why_ended(after(PodTold(ago(5), "u1", "Failed", "Evicted", "low " * 100)))
    assert len(found) == pods.LONGEST_WORDS
    assert found.endswith("…")


# Stale


def test_an_agent_that_left_its_pod_is_stale_and_its_way_back_is_in_the_same_pod() -> None:
    left = ended(run.COMPLETED, Exit(code=0), runtime=POD, pod=UP, sandbox_alive=True, session_alive=False)
    found = status(left, NOW)
    assert (found.label, found.detail) == ("stale (pod running, session dead)", "pod still up")
    assert found.actions[0] == "restart-in-container"


# Waiting


PENDING = Pod("hitch-a", "u1", 0, "Pending", since=ago(60))


@pytest.mark.parametrize(
    ("events", "why"),
    [
        ([], ""),
        ([PodTold(ago(5), "u1", "Pending", "ContainerCreating")], ""),
        (
            [PodTold(ago(5), "u1", "Pending", "Unschedulable", "0/2 nodes are available: 2 Insufficient cpu.")],
            "no node has room: 0/2 nodes are available: 2 Insufficient cpu",
        ),
        (
            [PodTold(ago(5), "u1", "Pending", "ImagePullBackOff", 'Back-off pulling image "a/b:1"')],
            'image cannot be pulled: Back-off pulling image "a/b:1"',
        ),
        ([PodTold(ago(5), "u1", "Pending", "ImageNotFound", "a/b:1")], "image not found: a/b:1"),
        (
            [Noted(ago(9), "u1", "FailedMount", "timed out"), PodTold(ago(5), "u1", "Pending", "ContainerCreating")],
            "volume cannot be attached: timed out",
        ),
        ([Noted(ago(9), "u1", "FailedAttachVolume", "Multi-Attach")], "volume cannot be attached: Multi-Attach"),
        ([Noted(ago(9), "u1", "Pulling", "pulling the image")], ""),
        ([Noted(ago(9), "u1", "FailedMount", "x"), Noted(ago(5), "u1", "Pulled", "is there")], ""),
        (
            [
                PodTold(ago(9), "u1", "Pending", "Unschedulable", "x"),
                PodTold(ago(5), "u1", "Pending", "ContainerCreating"),
            ],
            "",
        ),
        (
            [
                PodTold(ago(9), "u1", "Pending", "ImageNotFound", "a/b:1"),
                PodTold(ago(5), "u1", "Pending", "ImagePullBackOff"),
            ],
            "image not found: a/b:1",
        ),
        ([Noted(ago(9), "u1", "FailedMount", "x"), PodTold(ago(5), "u1", "Running")], ""),
    ],
)
def test_what_a_start_waits_for_has_its_name(events: list[pods.Event], why: str) -> None:
    pod = after(*events, pod=PENDING)
    assert why_waits(pod) == why
    label = f"starting ({why})" if why else "starting"
    assert words(pod, state=run.STARTING)[::2] == (label, why)
    assert why_waits(None) == ""


def test_only_an_image_that_is_nowhere_is_not_waited_for() -> None:
    reasons = ("ImageNotFound", "ErrImageNeverPull", "ImagePullBackOff", "Unschedulable")
    assert [is_hopeless(replace(PENDING, reason=reason)) for reason in reasons] == [True, True, False, False]
    assert not is_hopeless(replace(UP, reason="ImageNotFound"))


def test_why_a_pod_must_leave_is_not_forgotten_when_it_is_described_again() -> None:
    noted = Noted(ago(9), "u1", "Preempted", "by a/b")
    again = (Noted(ago(8), "u1", "FailedMount", "x"), PodTold(ago(7), "u1", "Running", leaving=True, node="n2"))
    pod = after(noted, *again)
    assert (pod.reason, pod.message, pod.leaving, pod.ended) == ("Preempted", "by a/b", True, False)


# Nodes


def test_of_a_node_its_newest_sign_of_life_counts() -> None:
    pod = after(NodeTold(ago(9), "n2", True, seen_at=ago(9)), NodeTold(ago(5), "n2", False, seen_at=ago(20)))
    assert (pod.node_seen_at, pod.node_ready) == (ago(9), False)


def test_a_sign_of_life_of_a_node_that_is_ready_is_no_news():
    before = after(NodeTold(ago(9), "n2", True, seen_at=ago(9)))
    beat = handle(before, NodeTold(ago(5), "n2", True, seen_at=ago(5)))
    assert (beat.node_seen_at, is_news(before, beat)) == (ago(5), False)
    assert is_news(None, before)
    assert is_news(before, handle(beat, NodeTold(ago(4), "n2", True, cordoned=True, seen_at=ago(4))))
    silent = handle(beat, NodeTold(ago(1), "n2", False, seen_at=ago(5)))
    assert is_news(beat, silent)
    assert is_news(silent, handle(silent, NodeTold(ago(0), "n2", False, seen_at=ago(3))))


def test_a_pod_on_its_node_remembers_its_boot() -> None:
    pod = after(PodTold(ago(5), "u1", "Running", node="n1"), NodeTold(ago(4), "n1", True, boot="b7"), pod=PENDING)
    assert (pod.node, pod.node_boot, pod.reason) == ("n1", "b7", "")
    assert after(NodeTold(ago(3), "n1", True, boot="b7"), pod=pod) == pod


def test_there_are_no_other_events() -> None:
    with pytest.raises(TypeError, match="expected an event of a pod"):
        handle(UP, pods.Event())


# Whatever comes, and in whatever order


uids = st.sampled_from(("u1", "u2"))
nodes = st.sampled_from(("n1", "n2"))
reasons = st.sampled_from(("", *pods.WAITS, *pods.ENDS, *pods.STARTING_UP, "a reason of next year"))
not_ends = st.one_of(
    st.builds(PodTold, moments, uids, st.sampled_from(("Pending", "Running", "Unknown", "")), reasons, st.just("why")),
    st.builds(Noted, moments, uids, reasons, st.just("why")),
    st.builds(NodeTold, moments, nodes, st.booleans(), st.booleans(), st.sampled_from(("", "b1", "b2"))),
    st.builds(NodeRemoved, moments, nodes),
    st.builds(LinkUp, moments),
    st.builds(LinkDown, moments),
    st.builds(PodGone, moments, st.just("u2")),
)
ends = st.builds(PodGone, moments, uids) | st.builds(
    PodTold, moments, uids, st.sampled_from(pods.OVER), reasons, st.just("why")
)


@given(st.lists(not_ends, max_size=12), st.sampled_from(run.LIVE))
def test_no_order_of_events_makes_failed_of_a_pod_whose_end_nobody_confirmed(
    events: list[pods.Event], state: str
) -> None:
    pod = after(*events)
    found = status(told(pod, state=state), NOW)
    assert not pod.ended
    assert found.state == state
    assert found.word in (state, "unknown")


@given(st.lists(not_ends | ends, max_size=12))
def test_an_end_is_final_and_only_another_pod_follows_it(events: list[pods.Event]) -> None:
    pod = UP
    for event in events:
        before, pod = pod, handle(pod, event)
        if before.ended:
            assert pod.ended or pod.uid != before.uid


@given(st.lists(not_ends | ends, max_size=12))
def test_what_is_told_of_another_pod_changes_nothing_while_this_one_lives(events: list[pods.Event]) -> None:
    others = [event for event in events if getattr(event, "uid", "") == "u2"]
    assert after(*others) == UP


@given(st.lists(not_ends | ends, max_size=12), st.sampled_from(tuple(run.TRANSITIONS)))
def test_whatever_happens_there_are_words(events: list[pods.Event], state: str) -> None:
    pod = after(*events)
    assert why_ended(pod)
    found = status(told(pod, state=state), NOW)
    assert found.label


@given(facts_with(record=st.just(record.ACTIVE), pod=st.none() | st.just(UP)), moments)
def test_every_session_has_a_status_with_and_without_a_pod(facts: Facts, now: datetime) -> None:
    assert status(facts, now).label
