"""Sessions in pods of the real cluster: how they live, what they wait for, and ways in which they end."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from hitchpost.errors import StartFailed
from hitchpost.fleet.kube import Claim, Pod, Secret
from hitchpost.ops.sessions.remove import remove
from hitchpost.ops.views.explain import explain
from hitchpost.ops.views.moments import now
from hitchpost.terminal.recording import MARK, events
from tests.fleet.kubernetes import SMALL, KubeFleet, fleet_on
from tests.ground import Ground, Truth
from tests.kube.cluster import NEVER, Cluster
from tests.pod.test_clone import PASSWORD, served
from tests.repos import Repo
from tests.support import eventually

FOREVER = "echo hello; exec sleep 1000"


@pytest.fixture
def kube(ground: Ground, cluster: Cluster) -> Iterator[KubeFleet]:
    with fleet_on(ground, cluster) as made:
        yield made


def facts_of(kube: KubeFleet, session: Truth) -> dict[str, tuple[str, str]]:
    """What explain tells: by the fact, its value and where it is from."""
    return {fact.fact: (fact.value, fact.source) for fact in explain(kube.seen(session), now()).facts}


def started_in_thread(kube: KubeFleet, session: Truth) -> tuple[threading.Thread, list[str]]:
    """For a start that waits, and why it failed in the end."""
    failures: list[str] = []

    def begin() -> None:
        try:
            kube.start(session)
        except StartFailed as error:
            failures.append(error.why)

    thread = threading.Thread(target=begin)
    thread.start()
    return thread, failures


# Living


def test_a_session_lives_in_a_pod_and_leaves_none_when_it_is_stopped(kube: KubeFleet) -> None:
    session = kube.sh(FOREVER)
    eventually(lambda: b"hello" in session.output(), what="its output")
    assert kube.label(session) == "running"
    pod = kube.pod(session)
    assert pod.node in kube.real.nodes
    assert kube.leases.holders == {pod.name: (pod.uid, 1)}
    told = facts_of(kube, session)
    assert told["pod"][0] == f"{pod.name} (uid {pod.uid}): Running"
    assert told["node"][0].startswith(f"{pod.node}: ready")
    assert told["link"] == ("up", "pod.json")
    assert told["in the cluster"] == (f"pod {pod.name}: Running", kube.real.server)
    kube.stop(session)
    assert kube.label(session) == "stopped"
    assert not kube.real.exists("pod", pod.name, kube.namespace)
    assert kube.real.exists("pvc", pod.name, kube.namespace)
    assert kube.leases.holders == {}


def test_an_agent_that_leaves_makes_the_session_stale_and_a_restart_goes_on_in_the_same_pod(kube: KubeFleet) -> None:
    session = kube.sh("echo one >> ../kept; cat ../kept; test $(wc -l < ../kept) -lt 2 || exec sleep 1000")
    kube.until(session, "stale (pod running, session dead)")
    before = kube.pod(session)
    kube.restart(session)
    kube.until(session, "running")
    after = kube.pod(session)
    assert (after.uid, after.run) == (before.uid, 2)
    eventually(lambda: b"one\r\none" in session.output(2), what="both lines")


def test_a_stopped_session_comes_back_in_another_pod_with_the_same_files(kube: KubeFleet) -> None:
    session = kube.sh("date >> ../kept; wc -l < ../kept; exec sleep 1000")
    before = kube.pod(session)
    kube.stop(session)
    kube.start(session)
    eventually(lambda: b"2" in session.output(2), what="two lines in the file")
    after = kube.pod(session)
    assert after.uid != before.uid
    assert (after.run, after.name) == (2, before.name)


def test_a_removed_session_leaves_nothing_in_the_cluster(kube: KubeFleet) -> None:
    session = kube.sh(FOREVER)
    remove(kube.home, session.id, actor="test", force=True)
    kinds = ("pod", "secret", "pvc")
    eventually(
        lambda: [kind for kind in kinds if kube.real.exists(kind, kube.name(session), kube.namespace)] == [],
        what="the end of all that it had",
    )


def test_the_same_run_ordered_twice_at_once_gives_one_pod(kube: KubeFleet) -> None:
    session = kube.create("sh", "-c", FOREVER)
    wanted = kube.wanted(session)
    found: list[str] = []

    def order() -> None:
        found.append(kube.pods._ready(wanted, str(session.folder)).uid)

    threads = [threading.Thread(target=order) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 3
    assert len(set(found)) == 1
    assert len(kube.pods.kube.list(Pod)) == len(kube.pods.kube.list(Claim)) == 1


def test_a_pod_has_no_rights_and_no_account(kube: KubeFleet) -> None:
    session = kube.sh(
        "id -u; ls /var/run/secrets 2>&1; grep -E '^(CapEff|NoNewPrivs|Seccomp):' /proc/self/status; exec sleep 1000"
    )
    eventually(lambda: b"Seccomp" in session.output(), what="its answers")
    said = session.output().decode().split()
    assert said[0] == "1000"
    assert "cannot access" in session.output().decode()
    assert said[said.index("CapEff:") + 1] == "0" * 16
    assert said[said.index("NoNewPrivs:") + 1] == "1"
    assert said[said.index("Seccomp:") + 1] == "2"


# A repository


def test_a_repository_is_cloned_with_credentials_that_are_nowhere_else(
    ground: Ground, cluster: Cluster, repo: Repo
) -> None:
    repo.commit("a.txt", "first\n")
    script = "git log --oneline -1; cat a.txt; git branch --show-current; env; exec sleep 1000"
    with (
        fleet_on(ground, cluster, git_secret="git") as kube,
        served(repo.path, PASSWORD, host=cluster.network.host) as url,
    ):
        secret = {"username": "team", "password": PASSWORD}
        cluster.apply(
            {
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": {"name": "git", "namespace": kube.namespace},
                "type": "kubernetes.io/basic-auth",
                "stringData": secret,
            }
        )
        session = kube.sh(script, repository=url, branch="fix-auth")
        eventually(lambda: b"fix-auth" in session.output(), what="the branch")
        assert b"first" in session.output()
        assert kube.seen(session).record.repository == url, "what the next pod clones is nothing that this one says"
        name = kube.name(session)
        everything = cluster.kubectl("get", "pod", name, "-n", kube.namespace, "-o", "yaml")
        everything += cluster.kubectl("logs", name, "-n", kube.namespace, "-c", "clone")
        everything += cluster.kubectl("logs", name, "-n", kube.namespace, "-c", "session")
        everything += session.output().decode()
        assert PASSWORD not in everything
        assert "hitchpost.pod.clone" in everything
        kept = b"".join(path.read_bytes() for path in cluster.volume(name, kube.namespace).rglob("*") if path.is_file())
        assert PASSWORD.encode() not in kept


def test_a_repository_that_cannot_be_cloned_is_told_with_git_s_own_words(kube: KubeFleet) -> None:
    session = kube.create("sh", repository=f"http://{kube.real.network.host}:1/shop.git")
    with pytest.raises(StartFailed, match=r"repository not cloned \(.*Failed to connect"):
        kube.start(session)
    assert kube.label(session).startswith("failed: repository not cloned (")


# Waiting


def test_a_session_that_no_node_has_room_for_says_so_and_starts_when_there_is_some(
    ground: Ground, cluster: Cluster
) -> None:
    with fleet_on(
        ground, cluster, profiles={"huge": {**SMALL, "cpu": "64", "cpu_limit": "64"}}, start_minutes=0.3
    ) as kube:
        session = kube.create("sh", "-c", FOREVER, profile="huge")
        thread, failures = started_in_thread(kube, session)
        label = kube.until(session, "starting (no node has room: ")
        assert "Insufficient cpu" in label
        assert facts_of(kube, session)["its reason"][1] == "condition PodScheduled"
        thread.join(120)
        assert "no node has room" in failures[0]
        assert kube.label(session).startswith("failed: no node has room: ")
        eventually(lambda: kube.pods.kube.list(Pod) == [], what="the end of the pod that did not start")


def test_an_image_that_is_nowhere_fails_the_start_by_its_name(ground: Ground, cluster: Cluster) -> None:
    absent = {**SMALL, "image": "hitchpost.test/nothing:1"}
    never = {"spec": {"containers": [{"name": "session", "imagePullPolicy": "Never"}]}}
    with fleet_on(ground, cluster, profiles={"absent": {**absent, "patch": never}}) as kube:
        session = kube.create("sh", profile="absent")
        with pytest.raises(StartFailed, match=r"image not found: hitchpost\.test/nothing:1"):
            kube.start(session)
        assert kube.label(session) == "failed: image not found: hitchpost.test/nothing:1"
        eventually(lambda: ", removed" in facts_of(kube, session)["pod"][0], what="the end of its pod")
        facts = facts_of(kube, session)
        told = [value for value, _ in facts.values()]
        assert any("image not found: hitchpost.test/nothing:1" in value for value in told), told
        assert "its reason" not in facts, "it was deleted because of that, and not the other way round"
        assert not any("deleted" in value.lower() for value in told), told


def test_an_image_that_cannot_be_pulled_is_waited_for(ground: Ground, cluster: Cluster) -> None:
    absent = {**SMALL, "image": "hitchpost.test/nothing:1"}
    with fleet_on(ground, cluster, profiles={"absent": absent}, start_minutes=0.3) as kube:
        session = kube.create("sh", profile="absent")
        thread, failures = started_in_thread(kube, session)
        kube.until(session, "starting (image cannot be pulled: ")
        thread.join(120)
        assert "image cannot be pulled" in failures[0]


def test_a_volume_that_there_is_not_is_told(ground: Ground, cluster: Cluster) -> None:
    never = {**SMALL, "storage_class": NEVER}
    with fleet_on(ground, cluster, profiles={"never": never}, start_minutes=0.2) as kube:
        session = kube.create("sh", profile="never")
        thread, failures = started_in_thread(kube, session)
        kube.until(session, "starting (volume cannot be attached: ")
        thread.join(120)
        assert "volume cannot be attached" in failures[0]


def test_a_volume_that_cannot_be_mounted_is_told_and_the_start_goes_on_when_it_can(kube: KubeFleet) -> None:
    session = kube.sh(FOREVER)
    kube.stop(session)
    kube.real.break_volume(kube.name(session), kube.namespace)
    thread, failures = started_in_thread(kube, session)
    try:
        kube.until(session, "starting (volume cannot be attached: ")
        assert facts_of(kube, session)["its reason"][1] == "event FailedMount"
    finally:
        kube.real.mend_volume(kube.name(session), kube.namespace)
        thread.join(300)
    assert failures == []
    kube.until(session, "running")


# Ending


def test_a_pod_that_somebody_deletes_ends_its_session_with_its_keeper_s_word(kube: KubeFleet) -> None:
    session = kube.sh(FOREVER)
    kube.real.kubectl("delete", "pod", kube.name(session), "-n", kube.namespace, "--wait=false")
    kube.until(session, "stopped")
    assert kube.seen(session).facts.exit is not None


def test_a_pod_that_is_gone_at_once_is_told_as_deleted(kube: KubeFleet) -> None:
    session = kube.sh("trap '' TERM; echo hello; while :; do sleep 1; done")
    uid = kube.pod(session).uid
    words = ("delete", "pod", kube.name(session), "-n", kube.namespace, "--grace-period=0", "--force", "--wait=false")
    kube.real.kubectl(*words)
    assert kube.label(session).startswith(("running", "stopping"))  # its keeper still speaks
    kube.until(session, "failed: pod deleted")
    seen = kube.recovered(session)
    assert (seen.facts.state, seen.record.record) == ("failed", "active")
    assert kube.leases.holders == {}
    evidence = next(line["evidence"] for line in reversed(session.story()) if line.get("to") == "failed")
    assert evidence["pod"]["uid"] == uid
    assert evidence["pod"]["reason"] == "Deleted"
    assert facts_of(kube, session)["its reason"][0] == "Deleted"
    gaps = [event.data for event in events(str(session.run() / "output")) if event.code == MARK]
    assert gaps == ["some output is missing here (amount unknown)"], "nobody saw the end"


def test_a_pod_that_uses_more_than_its_disk_is_evicted(ground: Ground, cluster: Cluster) -> None:
    little = {
        "spec": {
            "volumes": [{"name": "little", "emptyDir": {"sizeLimit": "1Mi"}}],
            "containers": [{"name": "session", "volumeMounts": [{"name": "little", "mountPath": "/little"}]}],
        }
    }
    with fleet_on(ground, cluster, profiles={"little": {**SMALL, "patch": little}}) as kube:
        session = kube.sh(
            "echo hello; trap '' TERM; head -c 5000000 /dev/zero > /little/x; while :; do sleep 1; done",
            profile="little",
        )
        eventually(lambda: kube.pod(session).ended, 120, "the end of the pod")
        assert kube.pod(session).reason == "Evicted"
        assert "exceeds the limit" in kube.pod(session).message
        label = kube.label(session)
        assert label.startswith(("failed: evicted (", "stopped"))
        told = facts_of(kube, session)
        assert ", ended: evicted (" in told["pod"][0]
        assert told["its reason"][0].startswith("Evicted: ")
        assert told["its reason"][1] == "the pod's status"


def test_an_agent_that_uses_more_memory_than_its_pod_has_is_told_so(kube: KubeFleet) -> None:
    session = kube.sh("echo hello; sleep 1; exec tail /dev/zero")
    eventually(lambda: kube.seen(session).facts.exit is not None, 120, "its end")
    assert kube.label(session) == "stale (pod running, session dead)"
    assert kube.status(session).reason == "command killed by SIGKILL (out of memory)"


def test_a_pod_whose_first_process_runs_out_of_memory_is_told_so(ground: Ground, cluster: Cluster) -> None:
    hog = {"spec": {"containers": [{"name": "session", "command": ["tail", "/dev/zero"]}]}}
    with fleet_on(ground, cluster, profiles={"hog": {**SMALL, "patch": hog}}) as kube:
        session = kube.create("sh", profile="hog")
        with pytest.raises(StartFailed, match="out of memory"):
            kube.start(session)
        kube.until(session, "failed: out of memory")
        assert facts_of(kube, session)["its reason"] == ("OOMKilled", "container session")


def test_certificates_of_a_session_are_its_own(kube: KubeFleet) -> None:
    first, second = kube.sh(FOREVER), kube.sh(FOREVER)
    found = [kube.pods.kube.get(Secret, kube.name(session)) for session in (first, second)]
    assert all(found)
    assert found[0]["data"]["key.pem"] != found[1]["data"]["key.pem"]  # type: ignore[index]
    assert sorted(found[0]["data"]) == ["authority.pem", "certificate.pem", "key.pem"]  # type: ignore[index]
