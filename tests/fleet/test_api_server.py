"""An API server that is slow, busy, forgetful or breaks off: nothing doubles, nothing is told dead, nothing hangs."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator

import pytest

from hitchpost.errors import StartFailed
from hitchpost.fleet import kube as api
from hitchpost.fleet.kube import ClusterAway, ClusterRefused, Kube, Pod
from tests.fleet.kubernetes import KubeFleet, fleet_on
from tests.ground import Ground
from tests.kube.cluster import Cluster
from tests.kube.front import Fault, Front, front_of
from tests.support import eventually

FOREVER = "echo hello; exec sleep 1000"


@pytest.fixture
def front(ground: Ground, cluster: Cluster) -> Iterator[Front]:
    with front_of(cluster, ground.watch.scratch) as made:
        yield made


@pytest.fixture
def kube(ground: Ground, cluster: Cluster, front: Front) -> Iterator[KubeFleet]:
    with fleet_on(ground, cluster, front.kubeconfig) as made:
        eventually(lambda: made.pods.view.is_listed, what="the first list")
        yield made


def watches(front: Front) -> int:
    return sum("watch=true" in asked and "/pods" in asked for asked in front.requests)


def test_a_busy_api_server_is_asked_again_when_it_says_so(kube: KubeFleet, front: Front) -> None:
    busy = front.add(Fault(429, times=2, methods=("POST",), part="/pods", retry_after_s=1))
    began = time.monotonic()
    session = kube.sh(FOREVER)
    assert time.monotonic() - began >= 2
    assert busy.times == 0
    assert kube.label(session) == "running"
    assert len(kube.pods.kube.list(Pod)) == 1


@pytest.mark.parametrize("code", [409, 500, 503])
def test_a_passing_refusal_is_tried_again_and_makes_one_pod(kube: KubeFleet, front: Front, code: int) -> None:
    front.add(Fault(code, times=2, methods=("POST",), part="/pods"))
    session = kube.sh(FOREVER)
    assert kube.label(session) == "running"
    assert len(kube.pods.kube.list(Pod)) == 1


def test_a_slow_api_server_makes_a_slow_start_and_one_pod(kube: KubeFleet, front: Front) -> None:
    front.add(Fault(slow_s=1.5, methods=("POST", "GET"), part="/pods"))
    session = kube.sh(FOREVER)
    front.mend()
    assert kube.label(session) == "running"
    assert len(kube.pods.kube.list(Pod)) == 1


def test_an_answer_that_does_not_come_ends_a_start_and_leaves_nothing_running(kube: KubeFleet, front: Front) -> None:
    session = kube.create("sh", "-c", FOREVER)
    kube.pods.kube.answers_s = 2
    front.add(Fault(503, part="/persistentvolumeclaims"))
    with pytest.raises(StartFailed, match=r"the cluster https://127.0.0.1:.* does not answer: made up by a test"):
        kube.start(session)
    assert kube.label(session).startswith("failed: the cluster https://127.0.0.1:")
    front.mend()
    kube.start(session)
    assert kube.label(session) == "running"


def test_a_watch_that_is_too_old_is_followed_by_a_list_and_nothing_is_missed(kube: KubeFleet, front: Front) -> None:
    session, other = kube.sh(FOREVER), kube.sh(FOREVER)
    before = watches(front)
    front.add(Fault(410, in_stream=True, times=1, part="watch=true"))
    front.add(Fault(410, times=2, part="watch=true"))
    front.break_off()
    words = ("delete", "pod", kube.name(session), "-n", kube.namespace, "--grace-period=1", "--wait=false")
    kube.real.kubectl(*words)
    kube.until(session, ("stopped", "failed: pod deleted"))
    assert kube.label(other) == "running"
    eventually(lambda: watches(front) > before, what="another watch")


def test_connections_that_break_off_all_the_time_lose_nothing(kube: KubeFleet, front: Front) -> None:
    session = kube.sh(FOREVER)
    for _ in range(4):
        before = watches(front)
        front.break_off()
        eventually(lambda before=before: watches(front) > before, what="another watch")  # type: ignore[misc]
    assert kube.label(session) == "running"
    kube.stop(session)
    assert kube.label(session) == "stopped"
    assert kube.pods.kube.list(Pod) == []


def test_a_slow_api_server_keeps_word_of_no_link_waiting(kube: KubeFleet, front: Front) -> None:
    """A pod that is not among those that are followed is asked for. Meanwhile another one's link goes down."""
    asked, other = kube.sh(FOREVER), kube.sh(FOREVER)
    kube.pods.view._pods.pop(asked.id)
    slow = front.add(Fault(slow_s=8, methods=("GET",), part=f"/pods/{kube.name(asked)}"))
    asking = threading.Thread(target=kube.pods.refresh, args=(str(asked.folder),))
    asking.start()
    try:
        eventually(lambda: any(slow.part in request for request in front.requests), what="the question")
        began = time.monotonic()
        assert kube.pods.note_link(str(other.folder), up=False)
        assert time.monotonic() - began < 3
        assert kube.label(other).startswith("unknown (pod on n")
        assert asking.is_alive()
    finally:
        front.mend()
        asking.join()
    assert kube.label(asked) == "running"


def test_following_goes_on_whatever_goes_wrong(front: Front, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", str(front.kubeconfig))
    asked = Kube(namespace="default")
    problems: list[str] = []
    failures = [RuntimeError("a bug"), TypeError("another"), AttributeError("a third")]

    def listed(found: object, before: object) -> None:
        if failures:
            raise failures.pop()

    async def follow() -> None:
        following = asked.follow(Pod, listed=listed, changed=lambda what, item: None, failed=problems.append)
        task = asyncio.create_task(following)
        await asyncio.to_thread(eventually, lambda: problems[-1:] == [""], what="it to be followed")
        task.cancel()
        await asyncio.wait([task])

    try:
        asyncio.run(follow())
    finally:
        asked.close()
    assert problems == ["AttributeError('a third')", "TypeError('another')", "RuntimeError('a bug')", ""]


def test_a_silent_api_server_keeps_nobody_waiting(front: Front, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", str(front.kubeconfig))
    front.add(Fault(slow_s=60))
    asked = Kube(namespace="default")
    began = time.monotonic()
    try:
        with pytest.raises(ClusterAway, match="does not answer: it took too long"):
            asked.list(Pod, within_s=1.0)
    finally:
        asked.close()
    assert time.monotonic() - began < api.ATTEMPT.read + 3  # type: ignore[operator]


def test_a_refusal_is_told_in_the_cluster_s_words(front: Front, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", str(front.kubeconfig))
    asked = Kube(namespace="default")
    try:
        with pytest.raises(ClusterRefused, match=r"the cluster refused to make pods x: .*Required value"):
            asked.create(Pod, {"metadata": {"name": "x"}, "spec": {"containers": [{"name": "x"}]}})
    finally:
        asked.close()


def test_a_cluster_that_nobody_knows_is_told_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", "/nowhere/config")
    with pytest.raises(ClusterAway, match=r"no cluster is known here: .*; name the file of one in KUBECONFIG"):
        Kube()
