"""What ``deploy/kubernetes`` holds, and an overlay of it for the test cluster."""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]

from hitchpost.fleet.rights import NO_NAMESPACE, NODE_LEASES, OURS
from tests.kube import images
from tests.kube.cluster import STORAGE
from tests.kube.programs import ROOT

BASE = ROOT / "deploy/kubernetes"
CORDON = "../examples/cordon.yaml"
NAMESPACE, ACCOUNT = "hitchpost", "hitchpost-hub"
HUBS = "app.kubernetes.io/component=hub"

Object = dict[str, Any]
Granted = tuple[str, str, str, str | None, str]
"""Verb, group, resource, namespace and name, as ``fleet.rights`` has them."""


def objects(name: str) -> list[Object]:
    """Of one file."""
    return [found for found in yaml.safe_load_all((BASE / name).read_text()) if found]


def granted(file: str = "rights.yaml") -> list[Granted]:
    """What a file allows."""
    where = {NAMESPACE: OURS, NODE_LEASES: NODE_LEASES, None: NO_NAMESPACE}
    return [
        (verb, group, resource, where[role["metadata"].get("namespace")], name)
        for role in objects(file)
        for rule in role.get("rules", ())
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
        for name in rule.get("resourceNames", [""])
    ]


def rights_for(namespace: str, *files: str) -> list[Object]:
    """The account and its rights in another namespace; what belongs to none has a name of its own."""
    made = [found for name in ("account.yaml", "rights.yaml", *files) for found in objects(name)]
    for found in made:
        meta = found["metadata"]
        if meta.get("namespace") == NAMESPACE:
            meta["namespace"] = namespace
        else:
            meta["name"] = f"{meta['name']}-{namespace}"
            if "roleRef" in found:
                found["roleRef"]["name"] = meta["name"]
        for subject in found.get("subjects", ()):
            subject["namespace"] = namespace
    return made


def overlay(folder: Path, address: str, settings: str = "") -> Path:
    """An overlay as a team has one: the image, the settings, and the address of the Service."""
    folder.mkdir()
    text = (BASE / "config.toml").read_text()
    text = text.replace("https://hitchpost.example.org", f"https://{address}")
    for usual, small in (('cpu = "1"', 'cpu = "50m"\ncpu_limit = "1"'), ("2Gi", "128Mi"), ("10Gi", "64Mi")):
        assert usual in text
        text = text.replace(usual, small)
    (folder / "config.toml").write_text(f'{text}storage_class = "{STORAGE}"\n{settings}')
    image, _, tag = images.HITCHPOST.rpartition(":")
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "hitchpost", "namespace": NAMESPACE},
        "spec": {"clusterIP": address},
    }
    (folder / "service.yaml").write_text(yaml.safe_dump(service))
    made = {
        "bases": [os.path.relpath(BASE, folder)],  # since Kubernetes 1.21 "resources" takes folders, too
        "images": [{"name": "hitchpost", "newName": image, "newTag": tag}],
        "configMapGenerator": [
            {
                "name": "hitchpost-settings",
                "namespace": NAMESPACE,
                "behavior": "replace",
                "files": ["config.toml"],
            }
        ],
        "patchesStrategicMerge": ["service.yaml"],
    }
    (folder / "kustomization.yaml").write_text(yaml.safe_dump(made))
    return folder


def new_token() -> str:
    return secrets.token_urlsafe(32)
