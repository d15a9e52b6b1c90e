"""What the objects of a cluster say, as events of ``model.pods``. Pure: they are what JSON makes of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from hitchpost.fleet.manifests import CLONE, SESSION
from hitchpost.model.pods import OVER, PENDING, NodeTold, Noted, PodTold

Object = Mapping[str, Any]

IMAGE_REASONS = ("ErrImagePull", "ImagePullBackOff")
NOT_THERE = ("not found", "notfound", "manifest unknown", "does not exist", "repository unknown")
"""What registries and engines say of an image that there is not."""
CLONE_FAILED, IMAGE_NOT_FOUND, NO_VOLUME = "CloneFailed", "ImageNotFound", "NoVolume"
CLAIM = "PersistentVolumeClaim"
USUAL_CLASS = "storageclass.kubernetes.io/is-default-class"


def session_of(found: Object) -> str:
    """The session that an object of ours belongs to; empty for any other."""
    return str(_part(found, "metadata", "labels").get(SESSION, ""))


def uid_of(found: Object) -> str:
    return str(_part(found, "metadata").get("uid", ""))


def address_of(pod: Object) -> str:
    """The pod's address in its cluster; empty while it has none."""
    return str(_part(pod, "status").get("podIP") or "")


def is_leaving(found: Object) -> bool:
    return _part(found, "metadata").get("deletionTimestamp") is not None


def told(pod: Object, at: datetime) -> PodTold:
    status, spec = _part(pod, "status"), _part(pod, "spec")
    phase = str(status.get("phase", ""))
    reason, message, source = _why(status, phase)
    return PodTold(
        at=at,
        uid=uid_of(pod),
        phase=phase,
        reason=reason,
        message=message,
        source=source,
        node=str(spec.get("nodeName") or ""),
        leaving=is_leaving(pod),
    )


def conditions(pod: Object) -> list[tuple[str, str]]:
    """Each condition of a pod: what it is, and whether it holds, with the cluster's reason."""
    found = []
    for item in _part(pod, "status").get("conditions") or ():
        words = [str(item[key]) for key in ("reason", "message") if item.get(key)]
        found.append((str(item.get("type")), ": ".join([str(item.get("status")), *words])))
    return found


def _why(status: Object, phase: str) -> tuple[str, str, str]:
    """Reason, message, and where they are: the most telling first."""
    if status.get("reason"):
        return str(status["reason"]), str(status.get("message", "")), "the pod's status"
    disruption = _condition(status, "DisruptionTarget")
    if disruption.get("status") == "True":
        return str(disruption.get("reason", "")), str(disruption.get("message", "")), "condition DisruptionTarget"
    if phase in OVER:
        return _of_end(status)
    if phase != PENDING:
        return "", "", ""
    scheduled = _condition(status, "PodScheduled")
    if scheduled.get("status") == "False" and scheduled.get("reason"):
        reason, message = str(scheduled["reason"]), str(scheduled.get("message", ""))
        if "persistentvolumeclaim" in message.lower() or "volume node affinity" in message.lower():
            reason = NO_VOLUME
        return reason, message, "condition PodScheduled"
    return _of_waiting(status)


def _of_end(status: Object) -> tuple[str, str, str]:
    for container in _containers(status):
        ended = _part(container, "state", "terminated")
        if not ended or (ended.get("reason") == "Completed" and ended.get("exitCode") == 0):
            continue
        name, message = str(container.get("name", "")), str(ended.get("message", ""))
        where = f"container {name}"
        if name == CLONE:
            return CLONE_FAILED, message or f"exit code {ended.get('exitCode')}", where
        last = f"exit code {ended.get('exitCode')}" if ended.get("reason") != "OOMKilled" else ""
        return str(ended.get("reason", "")), last, where
    return "", "", ""


def _of_waiting(status: Object) -> tuple[str, str, str]:
    for container in _containers(status):
        waiting = _part(container, "state", "waiting")
        if not waiting:
            continue
        reason, message = str(waiting.get("reason", "")), str(waiting.get("message", ""))
        if reason in IMAGE_REASONS and any(words in message.lower() for words in NOT_THERE):
            reason, message = IMAGE_NOT_FOUND, str(container.get("image", ""))
        elif reason in ("ErrImageNeverPull", "InvalidImageName"):
            message = str(container.get("image", ""))
        return reason, message, f"container {container.get('name', '')}"
    return "", "", ""


def _containers(status: Object) -> list[Object]:
    found = [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]
    return [item for item in found if isinstance(item, Mapping)]


def node_told(node: Object, at: datetime) -> NodeTold:
    status = _part(node, "status")
    ready = _condition(status, "Ready")
    return NodeTold(
        at=at,
        node=str(_part(node, "metadata").get("name", "")),
        ready=ready.get("status") == "True",
        cordoned=_part(node, "spec").get("unschedulable") is True,
        boot=str(_part(status, "nodeInfo").get("bootID", "")),
        seen_at=moment(ready.get("lastHeartbeatTime")),
    )


def binds_at_once(classes: Iterable[Object], name: str) -> bool:
    """Whether a claim of that storage class gets its volume before there is a pod; no name: of the usual class."""
    for found in classes:
        about = _part(found, "metadata")
        is_usual = (about.get("annotations") or {}).get(USUAL_CLASS) == "true"
        if about.get("name") == name if name else is_usual:
            return str(found.get("volumeBindingMode") or "Immediate") == "Immediate"
    return False


def noted(event: Object, at: datetime) -> Noted:
    """Of an event about a claim the uid is the claim's."""
    return Noted(
        at=moment(event.get("lastTimestamp")) or moment(event.get("eventTime")) or at,
        uid=str(_part(event, "involvedObject").get("uid", "")),
        reason=str(event.get("reason", "")),
        message=str(event.get("message", "")),
    )


def about(event: Object) -> tuple[str, str]:
    """Kind and name of what an event is about."""
    found = _part(event, "involvedObject")
    return str(found.get("kind", "")), str(found.get("name", ""))


def moment(text: object) -> datetime | None:
    try:
        return datetime.fromisoformat(str(text))
    except ValueError:
        return None


def _condition(status: Object, kind: str) -> Object:
    found = status.get("conditions") or ()
    return next((item for item in found if isinstance(item, Mapping) and item.get("type") == kind), {})


def _part(found: Object, *path: str) -> Object:
    """What is below ``path``; nothing where there is no such thing."""
    for key in path:
        below = found.get(key)
        if not isinstance(below, Mapping):
            return {}
        found = below
    return found
