"""The cluster of the tests: what it does, and what can be done to it."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from typing import Any

import psycopg

from tests.kube.cluster import NEVER, STORAGE, Cluster
from tests.kube.images import HITCHPOST, PYTHON
from tests.support import eventually

COUNTING = 'i=0; while true; do i=$((i+1)); echo "$i"; sleep 0.2; done'

ASKS = """
import os, ssl, sys, urllib.request
for _ in range(50):
    print(urllib.request.urlopen(sys.argv[1], timeout=10).read().decode())
trusted = ssl.create_default_context(cafile="/var/run/secrets/kubernetes.io/serviceaccount/ca.crt")
urllib.request.urlopen(f"https://{os.environ['KUBERNETES_SERVICE_HOST']}/version", timeout=10, context=trusted)
"""


def claim(name: str, namespace: str, storage: str = STORAGE) -> dict[str, object]:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": storage,
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }


def with_claim(name: str) -> dict[str, Any]:
    return {
        "volumes": [{"name": "work", "persistentVolumeClaim": {"claimName": name}}],
        "container": {"volumeMounts": [{"name": "work", "mountPath": "/work"}]},
    }


def until(cluster: Cluster, pod: str, namespace: str, phase: str) -> None:
    eventually(lambda: cluster.phase(pod, namespace) == phase, what=f"{pod} to be {phase}")


def counted(cluster: Cluster, pod: str, namespace: str) -> int:
    return int(cluster.kubectl("logs", pod, "-n", namespace, "--tail=1") or 0)


def test_a_pod_runs_and_prints(cluster: Cluster) -> None:
    with cluster.namespace() as space:
        cluster.run_pod("hello", "sh", "-c", "echo hello; hostname", namespace=space)
        until(cluster, "hello", space, "Succeeded")
        assert cluster.kubectl("logs", "hello", "-n", space) == "hello\nhello\n"


def test_a_pod_has_the_project_and_the_programs_of_the_machine(cluster: Cluster) -> None:
    script = "import hitchpost, psycopg, lightkube, sys; print(hitchpost.__version__, sys.prefix)"
    user = {"securityContext": {"runAsUser": 1000}}
    with cluster.namespace() as space:
        command = f"{PYTHON} -c '{script}' && git --version && hitch --version && ! touch /usr/x 2>/dev/null"
        cluster.run_pod("ours", "sh", "-c", command, namespace=space, image=HITCHPOST, container=user)
        eventually(lambda: cluster.phase("ours", space) in ("Succeeded", "Failed"), what="the end of the pod")
        said = cluster.kubectl("logs", "ours", "-n", space).splitlines()
        assert cluster.phase("ours", space) == "Succeeded", said
        assert said[0].endswith("/opt/hitchpost")
        assert said[1].startswith("git version")


def test_a_node_that_is_cut_off_is_unknown_and_its_pod_goes_on(whole_cluster: Cluster) -> None:
    cluster = whole_cluster
    with cluster.namespace() as space:
        cluster.run_pod("counts", "sh", "-c", COUNTING, namespace=space, nodeName="n2")
        until(cluster, "counts", space, "Running")
        before = counted(cluster, "counts", space)
        cluster.cut("n2")
        eventually(lambda: cluster.ready("n2") == "Unknown", what="a node that is missed")
        assert cluster.phase("counts", space) == "Running"
        cluster.heal("n2")
        eventually(lambda: cluster.ready("n2") == "True", what="a node that is back")
        assert counted(cluster, "counts", space) > before
        assert cluster.get("pod", "counts", space)["status"]["containerStatuses"][0]["restartCount"] == 0


def test_a_pod_survives_the_daemons_of_its_node(whole_cluster: Cluster) -> None:
    cluster = whole_cluster
    with cluster.namespace() as space:
        cluster.run_pod("counts", "sh", "-c", COUNTING, namespace=space, nodeName="n1")
        until(cluster, "counts", space, "Running")
        eventually(lambda: counted(cluster, "counts", space) > 0, what="a line")
        for daemon in ("kubelet", "containerd"):
            cluster.kill(daemon, "n1")
            assert not cluster.runs(daemon, "n1")
        for daemon in ("containerd", "kubelet"):
            cluster.begin(daemon, "n1")
        before = eventually(lambda: counted(cluster, "counts", space), what="its log")
        eventually(lambda: counted(cluster, "counts", space) > before, what="one more line")
        assert cluster.get("pod", "counts", space)["status"]["containerStatuses"][0]["restartCount"] == 0


def test_a_claim_is_bound_and_goes_with_its_pod_to_another_node(cluster: Cluster) -> None:
    with cluster.namespace() as space:
        cluster.apply(claim("work", space), claim("waits", space, NEVER))
        cluster.run_pod("one", "sh", "-c", "hostname > /work/who", namespace=space, nodeName="n1", **with_claim("work"))
        until(cluster, "one", space, "Succeeded")
        cluster.run_pod("two", "cat", "/work/who", namespace=space, nodeName="n2", **with_claim("work"))
        until(cluster, "two", space, "Succeeded")
        assert cluster.kubectl("logs", "two", "-n", space) == "one\n"
        assert cluster.get("pvc", "waits", space)["status"]["phase"] == "Pending"
        cluster.break_volume("work", space)
        cluster.run_pod("three", "true", namespace=space, **with_claim("work"))
        reasons = ("get", "events", "-n", space, "-o", "jsonpath={.items[*].reason}")
        eventually(lambda: "FailedMount" in cluster.kubectl(*reasons), what="a volume that cannot be mounted")
        cluster.mend_volume("work", space)
        folder = cluster.volume("work", space)
    eventually(lambda: not folder.exists(), what="the end of the volume")


def test_services_lead_to_pods_from_this_machine_and_from_pods(cluster: Cluster) -> None:
    with cluster.namespace() as space:
        serve = "mkdir /www && hostname > /www/index.html && httpd -f -p 8080 -h /www"
        for node in cluster.nodes:
            cluster.run_pod(f"web-{node}", "sh", "-c", serve, namespace=space, nodeName=node)
            cluster.kubectl("label", "pod", f"web-{node}", "-n", space, "app=web")
        ports = {"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": 8080}]}
        meta = {"name": "web", "namespace": space}
        cluster.apply({"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": ports})
        address = cluster.get("service", "web", space)["spec"]["clusterIP"]
        wanted = {f"web-{node}" for node in cluster.nodes}
        seen: set[str] = set()

        def all_from_here() -> bool:
            try:
                with urllib.request.urlopen(f"http://{address}/", timeout=2) as answer:
                    seen.add(answer.read().decode().strip())
            except OSError:
                pass
            return seen == wanted

        eventually(all_from_here, what="both pods")
        cluster.run_pod("asks", PYTHON, "-c", ASKS, f"http://{address}/", namespace=space, image=HITCHPOST)
        until(cluster, "asks", space, "Succeeded")
        assert set(cluster.kubectl("logs", "asks", "-n", space).split()) == wanted


def test_memory_that_a_pod_may_not_have_ends_it(cluster: Cluster) -> None:
    limit = {"resources": {"limits": {"memory": "32Mi"}, "requests": {"memory": "32Mi"}}}
    with cluster.namespace() as space:
        cluster.run_pod("greedy", "tail", "/dev/zero", namespace=space, container=limit)
        cluster.run_pod("evicted", "sleep", "1000", namespace=space)
        until(cluster, "greedy", space, "Failed")
        state = cluster.get("pod", "greedy", space)["status"]["containerStatuses"][0]["state"]
        assert state["terminated"]["reason"] == "OOMKilled"
        until(cluster, "evicted", space, "Running")
        cluster.evict("evicted", space)
        eventually(lambda: not cluster.exists("pod", "evicted", space), what="the end of the pod")


def test_a_node_is_cordoned_tainted_and_lost_and_all_is_mended(whole_cluster: Cluster) -> None:
    cluster = whole_cluster
    with cluster.namespace() as space:
        cluster.cordon("n1")
        cluster.run_pod("goes", "sleep", "1000", namespace=space)
        until(cluster, "goes", space, "Running")
        assert cluster.get("pod", "goes", space)["spec"]["nodeName"] == "n2"
        cluster.taint("n2", "test/leave")
        eventually(lambda: not cluster.exists("pod", "goes", space), what="the pod to be put out")
        cluster.untaint("n2", "test/leave")
        cluster.run_pod("lost", "sleep", "1000", namespace=space)
        until(cluster, "lost", space, "Running")
        cluster.taint("n1", "test/stays")
        cluster.lose("n2")
        cluster.mend()
        assert [cluster.ready(node) for node in cluster.nodes] == ["True", "True"]


def test_the_database_of_the_cluster_is_reached_from_here_and_from_pods(
    cluster: Cluster, cluster_database: str
) -> None:
    with psycopg.connect(cluster_database) as asking:
        asking.execute("create table seen (who text)")
    script = (
        "import psycopg, socket, sys\n"
        "with psycopg.connect(sys.argv[1]) as asking:\n"
        "    asking.execute('insert into seen values (%s)', [socket.gethostname()])\n"
    )
    words = ("-c", script, cluster_database)
    subprocess.run([*cluster.inside("out"), sys.executable, *words], check=True, timeout=60)
    with cluster.namespace() as space:
        cluster.run_pod("asks", PYTHON, *words, namespace=space, image=HITCHPOST)
        until(cluster, "asks", space, "Succeeded")
    with psycopg.connect(cluster_database) as asking:
        assert asking.execute("select who from seen order by who").fetchall() == [("asks",), ("out",)]


def test_the_api_server_forgets_the_past(whole_cluster: Cluster) -> None:
    cluster = whole_cluster
    with cluster.namespace() as space:
        old = json.loads(cluster.kubectl("get", "--raw", "/api/v1/pods"))["metadata"]["resourceVersion"]
        cluster.apply(claim("more", space))
        cluster.forget_past()
        said = cluster.kubectl("get", "--raw", f"/api/v1/pods?watch=1&timeoutSeconds=5&resourceVersion={old}")
        assert json.loads(said.splitlines()[0])["object"]["code"] == 410
