"""Pods: what their cluster and the link to them tell becomes facts, one event after the other, and words.

An end is believed to nobody but the cluster: a pod that cannot be reached, and a node that is silent, may be well.
"""

from __future__ import annotations

from hitchpost.model import run
from hitchpost.model.facts import Facts, Pod
from hitchpost.values import replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime

PENDING, RUNNING, SUCCEEDED, FAILED = "Pending", "Running", "Succeeded", "Failed"
OVER = (SUCCEEDED, FAILED)
LONGEST_WORDS = 160

DELETED, DRAINED, NODE_GONE, NODE_REBOOTED = "Deleted", "Drained", "NodeLost", "NodeRebooted"
"""Reasons of our own, for ends that the cluster gives none for."""
BACK_OFF = "ImagePullBackOff"
OF_IMAGE = ("ErrImagePull", "ImageNotFound", BACK_OFF)
"""They are told in turns, and the last says least."""
STARTING_UP = ("", "ContainerCreating", "PodInitializing")
"""Reasons that say nothing is wrong."""
OF_VOLUME = ("FailedAttachVolume", "FailedMount", "FailedBinding", "ProvisioningFailed")
"""Only events tell them; the pod itself is starting up meanwhile."""
GOES_ON = ("SuccessfulAttachVolume", "Pulling", "Pulled", "Created", "Started")
"""Events that say that its volumes are there."""
LASTING = ("Preempted", "TaintManagerEviction", NODE_REBOOTED)
"""What says why a pod ends, before it does, and is said once only."""
WAITS: dict[str, str] = {
    "Unschedulable": "no node has room",
    "FailedAttachVolume": "volume cannot be attached",
    "FailedMount": "volume cannot be attached",
    "NoVolume": "volume cannot be attached",
    "FailedBinding": "volume cannot be attached",
    "ProvisioningFailed": "volume cannot be attached",
    "ErrImageNeverPull": "image not found",
    "InvalidImageName": "image not found",
    "ImageNotFound": "image not found",
    "ErrImagePull": "image cannot be pulled",
    BACK_OFF: "image cannot be pulled",
    "CreateContainerConfigError": "its container cannot be made",
    "CreateContainerError": "its container cannot be made",
    "FailedCreatePodSandBox": "its container cannot be made",
}
"""Why a pod does not start, by the cluster's reason. Its message goes with it."""
HOPELESS = ("image not found",)
"""What does not mend itself: nobody waits for it."""
ENDS: dict[str, str] = {
    "Evicted": "evicted",
    "TaintManagerEviction": "evicted",
    "DeletionByTaintManager": "evicted",
    "EvictionByEvictionAPI": "evicted",
    "TerminationByKubelet": "evicted",
    DRAINED: "evicted",
    "Preempted": "preempted",
    "Preempting": "preempted",
    "PreemptionByScheduler": "preempted",
    "PreemptionByKubeScheduler": "preempted",
    "OOMKilled": "out of memory",
    "CloneFailed": "repository not cloned",
    DELETED: "pod deleted",
    "DeletionByPodGC": run.NODE_LOST,
    NODE_GONE: run.NODE_LOST,
    NODE_REBOOTED: run.REBOOT,
    "NodeShutdown": run.NODE_SHUT_DOWN,
    "Shutdown": run.NODE_SHUT_DOWN,
    "Terminated": run.NODE_SHUT_DOWN,
}
"""Why a pod has ended. An interruption needs no more words than these."""


# Events ---------------------------------------------------------------------------------------------------------


class Event:
    """Something that was seen of a pod, its node or the link to it."""


@value
class PodTold(Event):
    """The cluster describes the pod."""

    at: datetime
    uid: str
    phase: str
    reason: str = ""
    message: str = ""
    source: str = ""
    node: str = ""
    leaving: bool = False


@value
class PodGone(Event):
    """The cluster has no such pod any more."""

    at: datetime
    uid: str


@value
class Noted(Event):
    """An event of the cluster about the pod."""

    at: datetime
    uid: str
    reason: str
    message: str


@value
class NodeTold(Event):
    """The cluster describes a node. It is not ``ready`` when it says so, and when it says nothing any more."""

    at: datetime
    node: str
    ready: bool
    cordoned: bool = False
    boot: str = ""
    seen_at: datetime | None = None


@value
class NodeRemoved(Event):
    """The cluster has no such node any more. What ran there may run on."""

    at: datetime
    node: str


@value
class LinkUp(Event):
    at: datetime


@value
class LinkDown(Event):
    at: datetime


def made(before: Pod | None, name: str, uid: str, at: datetime) -> Pod:
    """A pod was made for the session, in the place of the one before; the same one is as it was."""
    if before is not None and before.uid == uid:
        return before
    return Pod(name, uid, 0 if before is None else before.run, PENDING, since=at)


def given(pod: Pod, number: int) -> Pod:
    """A run is about to be given to the pod."""
    return replace(pod, run=number)


def handle(pod: Pod, event: Event) -> Pod:
    """The pod after ``event``. An end is final, and what is told of another pod, or of another node, changes nothing.

    A pod of the same name follows one that has ended only.
    """
    match event:
        case PodTold():
            return _told(pod, event)
        case PodGone():
            return _gone(pod, event) if event.uid == pod.uid and not pod.ended else pod
        case Noted():
            return _noted(pod, event) if event.uid == pod.uid and not pod.ended else pod
        case NodeTold():
            return _of_node(pod, event) if event.node == pod.node and not pod.ended else pod
        case NodeRemoved():
            is_its = event.node == pod.node and not pod.ended
            return replace(pod, node_ready=False) if is_its else pod
        case LinkUp():
            return replace(pod, unreachable_since=None)
        case LinkDown():
            is_new = not pod.ended and pod.unreachable_since is None
            return replace(pod, unreachable_since=event.at) if is_new else pod
    raise TypeError(f"expected an event of a pod, but got {event!r}")


def _told(pod: Pod, event: PodTold) -> Pod:
    if event.uid != pod.uid:
        if pod.uid and not pod.ended:
            return pod
        pod = Pod(pod.name, event.uid, pod.run, since=event.at)
    elif pod.ended:
        return pod
    said: Pod | PodTold = pod if _says_more(pod, event) else event
    is_same = (event.phase, said.reason) == (pod.phase, pod.reason)
    told = replace(
        pod,
        phase=event.phase,
        reason=said.reason,
        message=said.message,
        source=said.source,
        since=pod.since if is_same else event.at,
        node=event.node or pod.node,
        leaving=event.leaving,
    )
    if event.phase not in OVER:
        return told
    return _left(told) if event.leaving else _ended(told, told.reason)


def _says_more(pod: Pod, event: PodTold) -> bool:
    """Whether what was told before says more of what is wrong."""
    if pod.reason in LASTING:
        return event.reason not in ENDS
    if event.phase != PENDING:
        return False
    if event.reason == BACK_OFF:
        return pod.reason in OF_IMAGE
    return event.reason in STARTING_UP and pod.reason in OF_VOLUME


def _gone(pod: Pod, event: PodGone) -> Pod:
    return _left(replace(pod, since=event.at))


def _left(pod: Pod) -> Pod:
    """It has ended because somebody asked for it: how its processes ended then says nothing."""
    reason = pod.reason
    if pod.node_ready is False:
        reason = NODE_GONE
    elif reason not in ENDS:
        reason = DRAINED if pod.cordoned else DELETED
    return _ended(replace(pod, message=pod.message if reason == pod.reason else ""), reason)


def _ended(pod: Pod, reason: str) -> Pod:
    return replace(pod, ended=True, reason=reason, unreachable_since=None)


def _noted(pod: Pod, event: Noted) -> Pod:
    """What the pod's own description does not have: why it waits for its volume, or has to leave."""
    if pod.reason in OF_VOLUME and event.reason in GOES_ON:
        return replace(pod, reason="", message="", source="", since=event.at)
    is_told = event.reason in LASTING or (pod.phase == PENDING and event.reason in OF_VOLUME)
    if not is_told or pod.reason in LASTING:
        return pod
    return replace(pod, reason=event.reason, message=event.message, source=f"event {event.reason}", since=event.at)


def _of_node(pod: Pod, event: NodeTold) -> Pod:
    found = replace(pod, node_ready=event.ready, cordoned=event.cordoned)
    signs = [at for at in (pod.node_seen_at, event.seen_at) if at is not None]
    found = replace(found, node_seen_at=max(signs, default=None))
    if event.boot and not pod.node_boot:
        return replace(found, node_boot=event.boot)
    if event.boot and event.boot != pod.node_boot and pod.reason not in LASTING:
        return replace(found, reason=NODE_REBOOTED, message="", source=f"node {pod.node}", since=event.at)
    return found


def is_news(before: Pod | None, after: Pod) -> bool:
    """Whether there is something to write down. The signs of life of a node that is ready are not: it gives one every
    few seconds, and each would be a change of every session there."""
    if before is None or after.node_ready is not True:
        return after != before
    return replace(after, node_seen_at=before.node_seen_at) != before


# Words ----------------------------------------------------------------------------------------------------------


def is_up(pod: Pod | None) -> bool | None:
    """Whether the pod is there to run something in it; None while it is not known, or not yet so."""
    if pod is None or not pod.uid or pod.ended:
        return False
    return True if pod.phase == RUNNING and pod.unreachable_since is None else None


def why_waits(pod: Pod | None) -> str:
    """Why a pod does not start; empty where nothing is wrong."""
    if pod is None or pod.phase != PENDING or pod.reason not in WAITS:
        return ""
    return _cut(": ".join(filter(None, (WAITS[pod.reason], _clean(pod.message)))))


def is_hopeless(pod: Pod) -> bool:
    return pod.phase == PENDING and WAITS.get(pod.reason) in HOPELESS


def why_ended(pod: Pod) -> str:
    words = ENDS.get(pod.reason)
    if words in run.INTERRUPTIONS:
        return words
    if pod.reason == DRAINED:
        return f"evicted (node {pod.node} is cordoned)"
    if words is None:
        words = "pod ended" if not pod.reason else f"pod ended: {pod.reason}"
    return _cut(f"{words} ({_clean(pod.message)})" if pod.message else words)


def unreachable_since(facts: Facts) -> datetime | None:
    """Since when nobody has reached its pod, where that is why nothing is certain."""
    return None if facts.doubt or facts.pod is None else facts.pod.unreachable_since


def doubt_of(facts: Facts) -> str:
    """Why nothing is certain; empty where everything is, or nobody knows why."""
    return facts.doubt or (_doubt(facts.pod) if facts.pod is not None else "")


def _doubt(pod: Pod) -> str:
    if pod.unreachable_since is None:
        return ""
    if not pod.node:
        return "pod unreachable"
    return f"pod on {pod.node} unreachable" if pod.node_ready else f"node {pod.node} unreachable"


def _clean(message: str) -> str:
    return " ".join(message.split()).rstrip(".")


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST_WORDS else text[: LONGEST_WORDS - 1] + "…"
