"""What happens to machines and daemons of the real cluster under sessions: told by its name, and nobody is told dead
who is not."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from click.testing import CliRunner

from hitchpost.cli.restart import command as restart
from hitchpost.errors import StartFailed
from hitchpost.fleet.cluster import NotConfirmed
from hitchpost.fleet.kube import ANSWERS_S
from hitchpost.ops.sessions.stop import Unreached
from hitchpost.ops.views.explain import explain
from hitchpost.ops.views.moments import now
from hitchpost.store.locks import is_held
from hitchpost.terminal import output
from tests.cli.advice import proposed
from tests.fleet.kubernetes import SMALL, KubeFleet, fleet_on
from tests.ground import Ground, Truth
from tests.kube import images
from tests.kube.cluster import Cluster
from tests.support import eventually

COUNTS = "n=0; while :; do n=$((n+1)); echo tick $n; sleep 0.2; done"


@pytest.fixture
def kube(ground: Ground, whole_cluster: Cluster) -> Iterator[KubeFleet]:
    with fleet_on(ground, whole_cluster) as made:
        yield made


def ticks(session: Truth, run: int = 1) -> int:
    return session.output(run).count(b"tick")


def goes_on(session: Truth, run: int = 1) -> None:
    before = ticks(session, run)
    eventually(lambda: ticks(session, run) > before + 2, what="more output")


def rule(kube: KubeFleet, session: Truth) -> str:
    return explain(kube.seen(session), now()).rule


def told_of(kube: KubeFleet, session: Truth) -> dict[str, str]:
    """What explain tells, by the fact."""
    return {fact.fact: fact.value for fact in explain(kube.seen(session), now()).facts}


def test_a_node_that_is_cut_off_is_unknown_and_when_it_is_back_the_same_run_goes_on(kube: KubeFleet) -> None:
    session = kube.sh(COUNTS)
    goes_on(session)
    pod = kube.pod(session)
    cut_at = time.monotonic()
    kube.real.cut(pod.node)
    kube.until(session, "unknown (")
    assert time.monotonic() - cut_at < 5
    kube.until(session, f"unknown (node {pod.node} unreachable ")
    assert kube.status(session).state == "running"
    assert rule(kube, session).startswith(f"node {pod.node} unreachable, so its status is unknown")
    told = told_of(kube, session)
    assert told["node"].startswith(f"{pod.node}: not ready; last sign of life ")
    assert told["link"].startswith("down")
    kube.real.heal(pod.node)
    kube.until(session, "running")
    goes_on(session)
    after = kube.pod(session)
    assert (after.uid, after.run, after.ended) == (pod.uid, 1, False)
    assert [line["to"] for line in session.story() if line.get("event") == "state"] == ["starting", "running"]


def test_a_lost_node_suspends_its_sessions_and_restart_brings_them_back_on_another_one(kube: KubeFleet) -> None:
    session = kube.sh(f"date >> ../kept; wc -l < ../kept; {COUNTS}")
    pod = kube.pod(session)
    kube.switch_off(pod.node)
    kube.until(session, f"unknown (node {pod.node} unreachable ")
    kube.until(session, "suspended: node lost", 180)
    seen = kube.recovered(session)
    assert (seen.facts.state, seen.record.record) == ("failed", "suspended")
    assert seen.facts.exit is not None
    assert seen.facts.exit.error == "node lost"
    assert told_of(kube, session)["its reason"] == "NodeLost"
    assert output.told_end(str(session.run() / "output")) > output.bounds(str(session.run() / "output"))[1]
    assert rule(kube, session) == "the record is suspended, and the record comes first, whatever became of the run"
    began = time.monotonic()
    kube.restart(session)
    assert time.monotonic() - began < 20
    assert kube.pod(session).node != pod.node
    eventually(lambda: b"2" in session.output(2), what="the file that the first run has left")
    assert kube.label(session) == "running"


def test_a_restart_while_nobody_knows_whether_the_agent_lives_is_refused(kube: KubeFleet) -> None:
    session = kube.sh(COUNTS)
    pod = kube.pod(session)
    kube.real.cut(pod.node)
    kube.until(session, f"unknown (node {pod.node} unreachable ")
    kube.real.kubectl("delete", "pod", pod.name, "-n", kube.namespace, "--wait=false")
    with pytest.raises(NotConfirmed, match=r"has not confirmed that pod .* on node n\d is gone, and node n\d does not"):
        kube.pods._standing(session.id, str(session.folder))
    assert kube.label(session).startswith("unknown (")
    kube.pods.abandon(str(session.folder))
    assert kube.label(session) == "suspended: node lost"
    with pytest.raises(StartFailed, match="run 1 is not over yet"):
        kube.restart(session)  # the agent lives, and here its volume tells
    kube.real.heal(pod.node)
    eventually(lambda: not is_held(str(kube.volume(session, 1) / "keeper.lock")), 120, "the end of the agent")
    kube.restart(session)
    kube.until(session, "running")


def test_what_is_proposed_for_a_pod_that_nobody_reaches_starts_it_on_another_node(kube: KubeFleet) -> None:
    session = kube.sh(COUNTS)
    pod = kube.pod(session)
    kube.switch_off(pod.node)
    kube.until(session, f"unknown (node {pod.node} unreachable ")
    with pytest.raises(Unreached) as refused:
        kube.stop(session)
    said = str(refused.value)
    words = proposed(said, "hitch restart --force {}", 4)
    asked = CliRunner().invoke(restart, words[2:], input="y\n")
    assert f"may still be running on node {pod.node}, which nobody reaches" in asked.output
    assert (asked.exit_code, "running (run 2)" in asked.output) == (0, True), asked.output
    assert kube.pod(session).node != pod.node
    goes_on(session, 2)


def test_sessions_survive_the_death_of_their_node_s_daemons_and_nobody_is_told_dead(kube: KubeFleet) -> None:
    session = kube.sh(COUNTS)
    pod = kube.pod(session)
    for daemon in ("kubelet", "containerd"):
        kube.real.kill(daemon, pod.node)
    eventually(lambda: kube.pod(session).node_ready is False, 60, "what Kubernetes says of the node")
    assert kube.label(session) == "running"
    goes_on(session)
    for daemon in ("containerd", "kubelet"):
        kube.real.begin(daemon, pod.node)
    eventually(lambda: kube.pod(session).node_ready, 120, "the node to be ready")
    assert kube.label(session) == "running"
    assert kube.pod(session).uid == pod.uid
    goes_on(session)


def test_a_cordoned_node_is_told_and_draining_it_evicts(kube: KubeFleet) -> None:
    session = kube.sh(f"trap '' TERM; {COUNTS}")
    pod = kube.pod(session)
    kube.real.cordon(pod.node)
    kube.until(session, f"running (node {pod.node} is cordoned)")
    words = ("delete", "pod", pod.name, "-n", kube.namespace, "--grace-period=1", "--wait=false")
    kube.real.kubectl(*words)
    kube.until(session, f"failed: evicted (node {pod.node} is cordoned)")
    assert told_of(kube, session)["its reason"] == "Drained"
    assert ", cordoned" in told_of(kube, session)["node"]


def test_a_pod_that_has_to_make_room_is_told_as_preempted(ground: Ground, whole_cluster: Cluster) -> None:
    first = {**SMALL, "cpu": "1200m", "cpu_limit": "1500m", "node_selector": {"kubernetes.io/hostname": "n1"}}
    quick = {"spec": {"terminationGracePeriodSeconds": 1}}
    priority = {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "first"},
        "value": 1000,
    }
    with fleet_on(ground, whole_cluster, profiles={"first": {**first, "patch": quick}}) as kube:
        session = kube.sh(f"trap '' TERM; {COUNTS}", profile="first")
        whole_cluster.apply(priority)
        try:
            resources = {"requests": {"cpu": "1200m"}}
            whole_cluster.run_pod(
                "urgent",
                *("sleep", "1000"),
                namespace=kube.namespace,
                image=images.SESSION,
                container={"resources": resources},
                nodeSelector={"kubernetes.io/hostname": "n1"},
                priorityClassName="first",
            )
            label = kube.until(session, "failed: preempted (", 120)
            assert f"Preempted by {kube.namespace}/urgent on node n1" in label
            assert told_of(kube, session)["its reason"].startswith("Preempted: Preempted by ")
        finally:
            whole_cluster.kubectl("delete", "priorityclass", "first")


def test_an_api_server_that_is_away_ends_nothing(kube: KubeFleet) -> None:
    session = kube.sh(COUNTS)
    kube.real.kill("apiserver")
    eventually(lambda: kube.pods.problems, what="word of it")
    assert "cannot be followed" in kube.pods.problems[0]
    assert kube.label(session) == "running"
    goes_on(session)
    kube.pods.kube.answers_s = 2
    with pytest.raises(StartFailed, match="does not answer"):
        kube.sh(COUNTS)
    kube.pods.kube.answers_s = ANSWERS_S
    kube.real.begin("apiserver", "cp")
    eventually(lambda: not kube.pods.problems, 120, "it to be followed again")
    assert kube.label(session) == "running"
    again = kube.sh(COUNTS)
    assert kube.label(again) == "running"


def test_what_was_missed_while_nobody_followed_is_seen_from_the_list(kube: KubeFleet) -> None:
    session, other = kube.sh(COUNTS), kube.sh(COUNTS)
    kube.real.kill("apiserver")
    eventually(lambda: kube.pods.problems, what="word of it")
    kube.real.begin("apiserver", "cp")
    kube.real.until_served()
    kube.real.forget_past()
    words = ("delete", "pod", kube.name(session), "-n", kube.namespace, "--grace-period=1", "--wait=false")
    kube.real.kubectl(*words)
    kube.until(session, ("stopped", "failed: pod deleted"))
    assert kube.label(other) == "running"
