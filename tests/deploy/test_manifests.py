"""The files of ``deploy``: what they may hold, and that they fit to the code and to each other."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]

from hitchpost import settings
from hitchpost.fleet import manifests
from hitchpost.fleet.profiles import options
from hitchpost.hub.address import Address, host_of
from tests.deploy.manifests import BASE, NAMESPACE, Object, objects
from tests.kube.cluster import Cluster
from tests.kube.programs import ROOT

EXAMPLES = ROOT / "deploy/examples"
STABLE = {"v1", "apps/v1", "rbac.authorization.k8s.io/v1", "networking.k8s.io/v1"}


def base() -> list[Object]:
    listed = yaml.safe_load((BASE / "kustomization.yaml").read_text())["resources"]
    return [found for name in listed for found in objects(name)]


def example(name: str) -> list[Object]:
    return list(yaml.safe_load_all((EXAMPLES / name).read_text()))


def only(kind: str, name: str) -> Any:
    (found,) = [each for each in base() if (each["kind"], each["metadata"]["name"]) == (kind, name)]
    return found


def test_only_apis_that_old_and_new_clusters_have_are_used() -> None:
    assert {found["apiVersion"] for found in base()} == STABLE
    listed = {
        f"{name}.yaml" for name in ("kustomization", "namespace", "account", "rights", "network", "hub", "service")
    }
    assert {path.name for path in BASE.iterdir()} == {*listed, "config.toml"}


def test_no_secret_is_in_the_repository() -> None:
    assert "Secret" not in {found["kind"] for found in base()}
    values = [text for secret in example("secrets.yaml") for text in secret["stringData"].values()]
    assert values[1:] == ["TOKEN", "CERTIFICATE", "KEY"]
    assert "hitchpost:PASSWORD@" in values[0]
    spec = only("Deployment", "hitchpost-hub")["spec"]["template"]["spec"]
    needed = {volume["secret"]["secretName"] for volume in spec["volumes"] if "secret" in volume}
    needed |= {env["valueFrom"]["secretKeyRef"]["name"] for env in spec["containers"][0]["env"][-1:]}
    assert needed == {secret["metadata"]["name"] for secret in example("secrets.yaml")}


def test_the_settings_and_the_ports_fit_to_the_hub_and_to_the_code() -> None:
    found = settings.load(str(BASE / "config.toml"))
    assert options(found).only_pods
    hub = only("Deployment", "hitchpost-hub")["spec"]["template"]["spec"]["containers"][0]
    (port,) = hub["ports"]
    assert (port["containerPort"], found.host) == (found.port, "0.0.0.0")
    hosts = {
        host_of(origin) for origin in Address("0.0.0.0", found.port, "c", "k", found.public_urls).origins(found.port)
    }
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        asked = hub[probe]["httpGet"]
        assert (asked["scheme"], asked["port"], asked["path"]) == ("HTTPS", port["name"], "/")
        assert asked["httpHeaders"][0]["value"] in hosts
    (outside,) = only("Service", "hitchpost")["spec"]["ports"]
    assert outside["targetPort"] == port["name"]
    assert settings.load(str(EXAMPLES / "overlay/config.toml")) == found


def test_into_a_session_come_hubs_only_and_to_its_keeper_only() -> None:
    policy = only("NetworkPolicy", "hitchpost-session")["spec"]
    assert policy["podSelector"]["matchLabels"] == manifests.OURS
    (way,) = policy["ingress"]
    (who,) = way["from"]
    hubs = only("Deployment", "hitchpost-hub")["spec"]["template"]["metadata"]["labels"]
    assert who == {"podSelector": {"matchLabels": hubs}}
    assert way["ports"] == [{"protocol": "TCP", "port": manifests.PORT}]
    assert policy["policyTypes"] == ["Ingress", "Egress"]
    assert [part["port"] for part in policy["egress"][0]["ports"]] == [53, 53]
    assert "to" in policy["egress"][1]


def test_the_examples_are_taken_by_a_real_api_server(cluster: Cluster, tmp_path: Path) -> None:
    with cluster.namespace() as namespace:
        for name in ("ingress.yaml", "secrets.yaml", "disruption-budget.yaml", "cordon.yaml"):
            text = (EXAMPLES / name).read_text().replace(f"namespace: {NAMESPACE}", f"namespace: {namespace}")
            text = text.replace("policy/v1\n", "policy/v1beta1\n")  # this cluster is older than that
            text = text.replace("type: kubernetes.io/tls\n", "")  # with words instead of a certificate
            assert "dry run" in cluster.kubectl("apply", "--dry-run=server", "-f", "-", stdin=text)
    shutil.copytree(ROOT / "deploy", tmp_path / "deploy")
    file = tmp_path / "deploy/examples/overlay/kustomization.yaml"
    file.write_text(file.read_text().replace("resources:", "bases:"))  # so does its kustomize want it
    made = list(yaml.safe_load_all(cluster.kubectl("kustomize", str(file.parent))))
    (hub,) = [found for found in made if found["kind"] == "Deployment"]
    spec = hub["spec"]["template"]["spec"]
    assert spec["containers"][0]["image"] == "registry.example.org/hitchpost:1"
    (chosen,) = [found for found in made if found["kind"] == "ConfigMap"]
    (mounted,) = [volume["configMap"]["name"] for volume in spec["volumes"] if "configMap" in volume]
    assert mounted == chosen["metadata"]["name"]
    assert len(made) == len(base()) + 1
