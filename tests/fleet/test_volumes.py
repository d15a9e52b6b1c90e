"""The volume of a new session is there before its pod, where the cluster makes it without one."""

from __future__ import annotations

import json

import pytest

from hitchpost.fleet.reading import USUAL_CLASS, Object, binds_at_once
from tests.fleet.kubernetes import KubeFleet, fleet_on
from tests.ground import Ground, Truth
from tests.kube.cluster import Cluster


def storage_class(name: str, mode: str | None = None, *, usual: bool = False) -> Object:
    found: Object = {"metadata": {"name": name, "annotations": {USUAL_CLASS: str(usual).lower()}}}
    return found if mode is None else {**found, "volumeBindingMode": mode}


CLASSES = [
    storage_class("slow", "WaitForFirstConsumer"),
    storage_class("fast", "Immediate", usual=True),
    storage_class("old"),
]


@pytest.mark.parametrize(
    ("name", "at_once"), [("slow", False), ("fast", True), ("old", True), ("", True), ("unknown", False)]
)
def test_what_binds_at_once_is_known_by_its_class(name: str, at_once: bool) -> None:
    assert binds_at_once(CLASSES, name) is at_once


def test_without_a_usual_class_nobody_waits() -> None:
    assert not binds_at_once(CLASSES[:1], "")
    assert not binds_at_once([], "")


def put_aside(kube: KubeFleet, session: Truth) -> list[str]:
    """Why the scheduler has not taken the session's pod at first."""
    events = json.loads(kube.real.kubectl("get", "events", "-n", kube.namespace, "-o", "json"))["items"]
    ours = [event for event in events if event["involvedObject"].get("name") == kube.name(session)]
    return [event["message"] for event in ours if event["reason"] == "FailedScheduling"]


def test_a_scheduler_does_not_put_a_new_pod_aside_because_of_its_volume(ground: Ground, cluster: Cluster) -> None:
    with fleet_on(ground, cluster) as kube:
        session = kube.sh("exec sleep 1000")
        kube.until(session, "running")
        assert put_aside(kube, session) == []
