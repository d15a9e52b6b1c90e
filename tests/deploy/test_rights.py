"""A hub has the rights that it uses, and no other."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from hitchpost.fleet.checkup import checkup
from hitchpost.fleet.kube import ClusterRefused
from hitchpost.fleet.rights import NO_NAMESPACE, RIGHTS
from hitchpost.fleet.shared_authority import NAME as AUTHORITY
from hitchpost.fleet.shared_authority import SharedAuthority
from hitchpost.ops.doctor.finding import OK
from hitchpost.ops.sessions.remove import remove
from hitchpost.values import replace
from tests.deploy.manifests import ACCOUNT, CORDON, Granted, Object, granted, rights_for
from tests.fleet.kubernetes import SMALL, KubeFleet
from tests.ground import Ground
from tests.kube import images
from tests.kube.cluster import Cluster
from tests.kube.front import front_of
from tests.support import eventually

VERBS = {"GET": "get", "POST": "create", "PUT": "update", "DELETE": "delete"}


def asked(request: str, namespace: str) -> Granted:
    """The right that a request needs."""
    method, _, whole = request.partition(" ")
    url = urlsplit(whole)
    kind, *path = url.path.strip("/").split("/")
    group = path.pop(0) if kind == "apis" else ""
    path.pop(0)  # the version
    where: str | None = ""
    if path[0] == "namespaces" and len(path) > 2:
        where = None if path[1] == namespace else path[1]
        path = path[2:]
    resource, name = path[0], path[1] if len(path) > 1 else ""
    verb = VERBS[method]
    if verb == "get" and not name:
        verb = "watch" if "watch" in parse_qs(url.query) else "list"
    return verb, group, resource, where, name if name == AUTHORITY and verb == "get" else ""


def test_what_the_manifests_grant_is_what_the_code_says_that_it_needs() -> None:
    needed = [(right.verb, right.group, right.resource, right.namespace, right.name) for right in RIGHTS]
    assert len(set(needed)) == len(needed)
    assert sorted(granted(), key=str) == sorted(needed, key=str)
    assert granted(CORDON) == [("patch", "", "nodes", NO_NAMESPACE, "")]


@contextmanager
def applied(cluster: Cluster, namespace: str, *things: Object) -> Iterator[None]:
    """What belongs to the namespace goes with it."""
    cluster.apply(*things)
    try:
        yield
    finally:
        for found in things:
            if found["metadata"].get("namespace") != namespace:
                where = found["metadata"].get("namespace", "default")
                cluster.kubectl("delete", found["kind"], found["metadata"]["name"], "-n", where)


@pytest.fixture
def account(cluster: Cluster) -> Iterator[str]:
    """A namespace where the account of a hub has its rights."""
    with cluster.namespace() as namespace, applied(cluster, namespace, *rights_for(namespace)):
        yield namespace


def test_a_whole_life_under_the_account_of_a_hub_works_and_uses_each_of_its_rights(
    ground: Ground, cluster: Cluster, account: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    profile = "\n".join(f'{key} = "{text}"' for key, text in SMALL.items())
    ground.configure(
        f'[fleet]\nnamespace = "{account}"\nimage = "{images.HITCHPOST}"\n[fleet.profiles.default]\n{profile}\n'
    )
    token = cluster.account_token(ACCOUNT, account)
    with front_of(cluster, tmp_path, token) as front:
        with closing(KubeFleet(ground, cluster, account, front.kubeconfig)) as kube:
            SharedAuthority(kube.pods.kube)
            session = kube.sh("echo hello; exec sleep 1000")
            eventually(lambda: b"hello" in session.output(), what="its output")
            eventually(lambda: not kube.pods.problems, what="a cluster that is followed")
            seen = kube.pod(session)
            assert kube.pods.explain(str(session.folder), 1)[0][1].endswith("Running")
            lost = replace(seen, node_ready=False)
            seen_at = kube.pods._with_node(lost).node_seen_at
            assert seen_at is not None
            assert seen_at > datetime(2020, 1, 1, tzinfo=UTC)
            kube.stop(session)
            kube.start(session)
            kube.stop(session)
            remove(kube.home, session.id, actor="test")
        monkeypatch.setenv("KUBECONFIG", str(front.kubeconfig))
        found = [finding for finding in checkup() if finding.check != "database"]
        assert {finding.level for finding in found} == {OK}, found
        used = {asked(request, account) for request in front.requests if "selfsubjectaccessreviews" not in request}
    assert used == set(granted())


def test_a_node_is_cordoned_with_the_right_of_the_example_and_without_it_the_error_names_that(
    ground: Ground, cluster: Cluster, account: str, tmp_path: Path
) -> None:
    """The node takes pods as before: to say so again needs the same right."""
    ground.configure(f'[fleet]\nnamespace = "{account}"\nimage = "{images.HITCHPOST}"\n')
    node, token = cluster.nodes[0], cluster.account_token(ACCOUNT, account)
    with (
        front_of(cluster, tmp_path, token) as front,
        closing(KubeFleet(ground, cluster, account, front.kubeconfig)) as kube,
    ):
        with pytest.raises(ClusterRefused, match=f"refused to change nodes {node}: .*forbidden") as refused:
            kube.pods.cordon(node, on=False)
        assert "kubectl apply -f deploy/examples/cordon.yaml" in refused.value.hint
        assert f"kubectl uncordon {node}" in refused.value.hint
        more = [found for found in rights_for(account, CORDON) if "cordon" in found["metadata"]["name"]]
        with applied(cluster, account, *more):
            eventually(lambda: kube.pods.kube.may("patch", "nodes", namespace=NO_NAMESPACE), what="the right")
            kube.pods.cordon(node, on=False)
