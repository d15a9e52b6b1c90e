"""``kubectl apply -k`` on the real cluster: two hubs that people reach through their Service.

One installation for all tests of this file: nobody else uses its namespace, and none takes the fixture ``cluster``.
"""

from __future__ import annotations

import json
import random
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
import pytest

from hitchpost.fleet.manifests import PORT
from hitchpost.fleet.shared_authority import NAME as AUTHORITY
from tests.deploy.manifests import HUBS, NAMESPACE, new_token, objects, overlay
from tests.ground import Ground
from tests.kube import fixtures, images
from tests.kube.cluster import Cluster
from tests.reaching import certificate
from tests.support import Answer, eventually

ECHO = 'stty -echo; echo ready; while read line; do echo "<$line>"; done'
THIEF = """
import socket, ssl, sys
folder = sys.argv[1]
context = ssl.create_default_context(cafile=folder + "authority.pem")
context.load_cert_chain(folder + "certificate.pem", folder + "key.pem")
context.check_hostname = False
try:
    with context.wrap_socket(socket.create_connection(("HOST", PORT), 10)) as there:
        print("it is", there.getpeercert()["subject"], flush=True)
        there.settimeout(10)
        there.sendall(b"x" * 100)
        print("read", there.recv(100))
except OSError as error:
    print("refused:", error)
"""
SECRETS = ("hitchpost-database", "hitchpost-owner", "hitchpost-tls")


@dataclass
class Installed:
    """``authority`` is the file that the hubs' certificate is checked with."""

    cluster: Cluster
    address: str
    token: str
    authority: str

    def kubectl(self, *words: str, **more: Any) -> str:
        return self.cluster.kubectl("-n", NAMESPACE, *words, **more)

    def hubs(self) -> list[dict[str, Any]]:
        """The pods of hubs that are to stay."""
        found = json.loads(self.kubectl("get", "pods", "-l", HUBS, "-o", "json"))["items"]
        return [pod for pod in found if "deletionTimestamp" not in pod["metadata"]]

    def are_ready(self) -> bool:
        states = [state for pod in self.hubs() for state in pod["status"].get("containerStatuses", ())]
        return [state["ready"] for state in states] == [True, True]

    def in_hub(self, *words: str, check: bool = True) -> str:
        name = self.hubs()[0]["metadata"]["name"]
        return self.kubectl("exec", name, "-c", "hub", "--", *words, check=check)

    def ask(self, path: str, token: str = "") -> httpx2.Response:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        return httpx2.get(f"https://{self.address}{path}", headers=headers, verify=_trusting(self.authority))


def _trusting(authority: str) -> Any:
    import ssl

    return ssl.create_default_context(cafile=authority)


@pytest.fixture(scope="module")
def installed() -> Iterator[Installed]:
    with ExitStack() as stack:
        cluster = stack.enter_context(fixtures.used())
        database = stack.enter_context(fixtures.fresh_database())
        folder = Path(tempfile.mkdtemp(prefix="install-"))
        stack.callback(shutil.rmtree, folder)
        address = cluster.network.at(256 * 4 + random.randrange(512, 1020))
        cert, key = certificate(folder, names=f"IP:{address},DNS:localhost")
        made = Installed(cluster, address, new_token(), cert)
        (folder / "token").write_text(f"{made.token}\n")
        (folder / "address").write_text(f"{database}\n")
        eventually(
            lambda: not cluster.exists("namespace", NAMESPACE), what="the end of an installation before this one"
        )
        cluster.kubectl("create", "namespace", NAMESPACE)
        stack.callback(_remove, cluster)
        made.kubectl("create", "secret", "generic", SECRETS[0], f"--from-file=address={folder}/address")
        made.kubectl("create", "secret", "generic", SECRETS[1], f"--from-file=token={folder}/token")
        made.kubectl("create", "secret", "tls", SECRETS[2], f"--cert={cert}", f"--key={key}")
        cluster.kubectl("apply", "-k", str(overlay(folder / "overlay", address)))
        eventually(made.are_ready, 120, what="two hubs that are ready")
        yield made


def _remove(cluster: Cluster) -> None:
    """Everything of the installation, and what is outside its namespace."""
    cluster.kubectl("delete", "pods", "--all", "-n", NAMESPACE, "--force", "--grace-period=0", "--wait=false")
    for found in objects("rights.yaml"):
        where = found["metadata"].get("namespace", NAMESPACE)
        cluster.kubectl("delete", found["kind"], found["metadata"]["name"], "-n", where, "--ignore-not-found")
    cluster.kubectl("delete", "namespace", NAMESPACE, "--wait=false")


@dataclass
class Team:
    """``hitch --context team``, from a machine outside the cluster."""

    installed: Installed
    ground: Ground

    def __call__(self, *words: str, check: bool | int = True) -> Answer:
        return self.ground.hitch("--context", "team", *words, check=check)

    def run(self, name: str, script: str) -> str:
        """The id of a new session that runs in a pod."""
        words = ("run", "--json", "--runtime", "pod", "--folder", "/workspace", "--name", name)
        return str(self(*words, "--", "sh", "-c", script).json()["id"])

    def output(self, name: str) -> str:
        """Empty while no hub answers."""
        return self("logs", name, check=False).out

    def row(self, name: str) -> dict[str, Any]:
        rows = self("ps", "--all", "--json").json()
        return next(row for row in rows if row["name"] == name)


@pytest.fixture
def team(installed: Installed, ground: Ground) -> Team:
    file = ground.watch.scratch / "token"
    file.write_text(installed.token)
    words = ("--token-file", str(file), "--ca-file", installed.authority)
    said = ground.hitch("context", "add", "team", f"https://{installed.address}", *words).out
    assert "you are owner there (owner)" in said
    return Team(installed, ground)


@pytest.fixture
def session(team: Team) -> str:
    """The id of a session that all tests share. It runs in a pod, and gives every line back."""
    rows = team("ps", "--all", "--json").json()
    made = next((str(row["id"]) for row in rows if row["name"] == "dev"), "")
    made = made or team.run("dev", f"env; ls /run/secrets /var/run/secrets; {ECHO}")
    eventually(lambda: "ready" in team.output("dev"), what="its output")
    return made


def test_two_hubs_are_ready_on_two_nodes_without_rights_on_their_machines(installed: Installed) -> None:
    pods = installed.hubs()
    assert {pod["spec"]["nodeName"] for pod in pods} == set(installed.cluster.nodes)
    assert installed.in_hub("id", "-u").strip() == "1000"
    assert "read-only file system" in installed.in_hub("sh", "-c", "touch /x 2>&1", check=False).lower()
    status = installed.in_hub("cat", "/proc/1/status")
    assert dict(line.split(":\t") for line in status.splitlines() if line.startswith(("Cap", "NoNewPrivs"))) == {
        **dict.fromkeys(("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"), "0" * 16),
        "NoNewPrivs": "1",
    }
    first = installed.in_hub("cat", "/proc/1/cmdline").split("\0")
    assert first[1:6] == ["-P", "-m", "hitchpost.hub", "0.0.0.0", "8750"]


def test_nobody_gets_in_without_the_token(installed: Installed) -> None:
    assert installed.ask("/api/sessions").status_code == 401
    assert installed.ask("/api/sessions", new_token()).status_code == 401
    assert installed.ask("/api/health", installed.token).json()["problems"] == []


def test_a_session_in_a_pod_is_seen_and_driven_through_the_service(
    installed: Installed, team: Team, session: str
) -> None:
    row = team.row("dev")
    assert (row["label"], row["node"] in installed.cluster.nodes) == ("running", True)
    team("send", "dev", "hello")
    eventually(lambda: "<hello>" in team.output("dev"), what="the answer")
    pod = installed.cluster.get("pod", f"hitch-{session}", NAMESPACE)
    assert [container["image"] for container in pod["spec"]["containers"]] == [images.HITCHPOST]


def test_nothing_in_a_session_leads_to_the_database_or_the_api_server(team: Team, session: str) -> None:
    said = team.output("dev")
    assert "HOME=/home/agent" in said
    for secret in ("postgresql://", "HITCHPOST_FLEET", "serviceaccount"):
        assert secret not in said


def test_nothing_is_started_beside_a_hub(team: Team) -> None:
    said = team("run", "--name", "here", "--folder", "/", "--", "true", check=4).err
    assert "this hub starts sessions in pods only, and the runtime local is its own machine" in said
    assert "here" not in team("ps", "--all").out


def test_a_pod_does_not_get_into_another_ones_keeper(installed: Installed, team: Team, session: str) -> None:
    """With its own certificate, which its agent can read. With a hub's, the same words get in."""
    host = installed.cluster.get("pod", f"hitch-{session}", NAMESPACE)["status"]["podIP"]
    tried = THIEF.replace("HOST", host).replace("PORT", str(PORT))
    team.run("thief", f"python -c '{tried}' /run/hitchpost/identity/; sleep 1000")
    eventually(lambda: "refused:" in team.output("thief") or "read" in team.output("thief"), what="its try")
    said = team.output("thief")
    assert session in said
    assert "alert" in said
    assert "read b" not in said
    assert "read b" in installed.in_hub("python", "-c", tried, "/home/agent/hub/identity/")
    team("stop", "thief", "--now")
    team("rm", "thief")


def test_a_hub_pod_that_is_deleted_takes_nothing_along(installed: Installed, team: Team, session: str) -> None:
    before = installed.cluster.get("pod", f"hitch-{session}", NAMESPACE)["metadata"]["uid"]
    names = sorted(pod["metadata"]["name"] for pod in installed.hubs())
    for name in names:
        installed.kubectl("delete", "pod", name, "--wait=false")
        eventually(installed.are_ready, 120, what="another hub")
        eventually(partial(_takes, team, name), what="a hub that takes a prompt")
    assert set(names).isdisjoint(pod["metadata"]["name"] for pod in installed.hubs())
    assert installed.cluster.get("pod", f"hitch-{session}", NAMESPACE)["metadata"]["uid"] == before
    row = team.row("dev")
    assert (row["label"], row["run"]) == ("running", 1)
    said = team.output("dev")
    assert [said.count(f"<after {name}>") for name in names] == [1, 1]


def _takes(team: Team, name: str) -> bool:
    return team("send", "dev", f"after {name}", check=False).code == 0


def test_doctor_in_a_hub_finds_everything_in_order_and_a_right_that_was_taken_away(installed: Installed) -> None:
    found = json.loads(installed.in_hub("hitch", "doctor", "--json"))
    of_fleet = {each["check"]: each for each in found["checks"][-5:]}
    assert list(of_fleet) == ["database", "cluster", "rights", "storage", "image"]
    assert {each["level"] for each in of_fleet.values()} == {"ok"}
    assert of_fleet["image"]["text"].startswith(f"{images.HITCHPOST} has hitchpost ")
    role = installed.cluster.get("role", "hitchpost-hub", NAMESPACE)
    kept = [rule for rule in role["rules"] if rule["resources"] != ["persistentvolumeclaims"]]
    installed.kubectl("patch", "role", "hitchpost-hub", "--type=merge", "-p", json.dumps({"rules": kept}))
    try:
        told = eventually(lambda: _problems(installed), what="what is missing")
    finally:
        installed.kubectl("patch", "role", "hitchpost-hub", "--type=merge", "-p", json.dumps({"rules": role["rules"]}))
    assert told == [
        (
            "rights",
            "not allowed: create persistentvolumeclaims, delete persistentvolumeclaims; sessions have no volume",
            "kubectl apply -k deploy/kubernetes grants them to the hubs of the cluster (docs/fleet.md)",
        )
    ]
    assert installed.cluster.exists("secret", AUTHORITY, NAMESPACE)


def _problems(installed: Installed) -> list[tuple[str, str, str]]:
    found = json.loads(installed.in_hub("hitch", "doctor", "--json", check=False))
    return [(each["check"], each["text"], each["todo"]) for each in found["checks"] if each["level"] == "problem"]


def test_a_session_is_stopped_and_removed_through_the_service(installed: Installed, team: Team, session: str) -> None:
    """The last one: the session of the others ends."""
    team("stop", "dev", "--now")
    assert team.row("dev")["label"] == "stopped"
    assert not installed.cluster.exists("pod", f"hitch-{session}", NAMESPACE)
    team("rm", "dev")
    assert team("ps", "--all", "--json").json() == []
    assert not installed.cluster.exists("secret", f"hitch-{session}", NAMESPACE)
