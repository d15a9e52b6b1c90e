"""The pod runtime: the agent and its keeper in a pod of their session, on another machine.

It knows no cluster: a hub gives it one (``connect``). What is known of a pod is in the session's folder (``pod.json``),
so a look needs nobody. Only two things end a run: its keeper's own word, and the cluster's that the pod is gone.
"""

from __future__ import annotations

from hitchpost.errors import FAILURES, HitchpostError, RuntimeMissing
from hitchpost.model import pods
from hitchpost.runspec import RunSpec
from hitchpost.runtimes.base import Health, Leftovers, OwnClient, Sandbox, Started
from hitchpost.runtimes.pod_file import read_pod
from hitchpost.store import runfiles
from hitchpost.store.home import run_folder
from hitchpost.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Protocol

    class Cluster(Protocol):
        """Where pods are. Its calls block, and have time limits; they come from the threads of operations."""

        def start(self, order: Order) -> Started:
            """The pod is there, its link is up, and the run in it has begun; or why not.

            ``kept`` is False when the run was never given to the pod. Raises ``HitchpostError`` or ``OSError`` then.
            """

        def health(self, session_folder: str, run: int) -> Health:
            """Without asking anybody: ``health_of`` is enough where ``pod.json`` is kept up to date."""

        def explain(self, session_folder: str, run: int) -> list[tuple[str, str, str]]:
            """What the cluster says now: fact, value, and where it was read. Nothing when it does not answer."""

        def ask(self, session_folder: str, request: dict[str, object]) -> dict[str, Any]:
            """Something that only the pod can see, such as what has changed in its folder. Raises ``NotReached``."""

        def tear_down(self, session_folder: str) -> None:
            """No pod; the volume stays. Returns when the cluster has confirmed it, or raises ``HitchpostError``."""

        def clear_away(self, session_folder: str) -> None:
            """No pod, no volume, no secret."""

        def abandon(self, session_folder: str) -> None:
            """From now on, the pod counts as gone, although nobody has confirmed it. Raises ``HitchpostError``."""

        def check(self) -> None:
            """Raise ``RuntimeMissing`` when the cluster cannot be used."""


@value
class Order:
    """A run that is to begin in its session's pod.

    ``spec`` is what the session adds, and no more: the arguments before the agent's hooks, the variables of the
    settings and of the person, folders of the hub's copy. The pod has its own environment, folders and hooks. Its
    ``lock_fd`` is the keeper's lock in the copy; who takes the keeper's place there keeps a duplicate of it.
    """

    spec: RunSpec


_connected: list[Cluster] = []
_awaited: list[str] = []


def connect(cluster: Cluster | None, why_not: str = "") -> None:
    """From now on, the pods of this process are in ``cluster``; None for nowhere, or for nowhere yet: ``why_not``."""
    _connected[:] = [] if cluster is None else [cluster]
    _awaited[:] = [why_not] if why_not else []


def has_cluster() -> bool:
    """Whether pods are the place of sessions here, although their cluster may not answer yet."""
    return bool(_connected or _awaited)


def connected() -> Cluster:
    """Raises ``RuntimeMissing`` when there is none."""
    if _awaited:
        raise RuntimeMissing(
            f"the cluster cannot be used: {_awaited[0]}", "check that the cluster answers, and the hub's access to it"
        )
    if not _connected:
        raise RuntimeMissing(
            "no cluster is connected here",
            "hitch up --fleet ADDRESS starts a hub of a fleet, hitch context add NAME URL adds one that runs elsewhere",
        )
    return _connected[0]


LONGEST_WORDS = 4096


class RefusedThere(HitchpostError):
    """Raised when a pod refuses what it was asked for: it is the error that was raised there.

    An agent can write a pod's answers: an error it stays, whatever the numbers in it say.
    """

    def __init__(self, answer: dict[str, Any]) -> None:
        super().__init__(_words(answer.get("message") or answer.get("error")), _words(answer.get("hint")))
        self.field, self.code = _words(answer.get("field")), _words(answer.get("code")) or self.code
        for name, numbers in (("http_status", range(400, 600)), ("exit_code", range(1, 126))):
            if isinstance(number := answer.get(name), int) and number in numbers:
                setattr(self, name, number)


def _words(told: object) -> str:
    return str(told or "")[:LONGEST_WORDS]


class NoAnswer(HitchpostError):
    """Raised when what a pod answers makes no sense."""

    http_status = 502
    code = "bad_answer"

    def __init__(self, op: str, why: BaseException) -> None:
        super().__init__(f"the pod's answer to {op} makes no sense: {why!r}")


def ask(session_folder: str, op: str, **request: object) -> dict[str, Any]:
    """Raises ``RefusedThere``, ``NotReached`` or ``RuntimeMissing``."""
    answer = connected().ask(session_folder, {"op": op, **request})
    if answer.get("ok") is not True:
        raise RefusedThere(answer)
    return answer


def health_of(session_folder: str, run: int) -> Health:
    """As it is written down. A run is taken to live until its end is known; one whose pod nobody reaches, perhaps."""
    pod = read_pod(session_folder)
    up = pods.is_up(pod)
    if runfiles.has_exit(run_folder(session_folder, run)):
        return Health(keeper_alive=False, sandbox_alive=up, session_alive=False)
    if pod is None or pod.run < run:
        return Health(keeper_alive=True, sandbox_alive=up, session_alive=None)
    if pod.ended:
        return Health(keeper_alive=False, sandbox_alive=False, session_alive=False, lost=pods.why_ended(pod))
    reached = None if pod.unreachable_since is not None else True
    return Health(keeper_alive=reached, sandbox_alive=up, session_alive=reached)


class InPod:
    name = "pod"
    ends_with_keeper = False
    cannot_start_again = ""
    has_own_screen = False
    rests_in_place = False

    def start(self, spec: RunSpec, sandbox: Sandbox | None = None) -> Started:
        try:
            return connected().start(Order(spec))
        except FAILURES as error:
            return Started(None, str(error), kept=False, field=getattr(error, "field", ""))

    def health(self, session_folder: str, run: int, *, session: str) -> Health:
        return _connected[0].health(session_folder, run) if _connected else health_of(session_folder, run)

    def attach_command(self, session_folder: str, run: int, read_only: bool) -> OwnClient | None:
        return None

    def explain(self, session_folder: str, run: int, *, over: bool) -> list[tuple[str, str, str]]:
        return connected().explain(session_folder, run) if _connected else []

    def check(self, session_folder: str = "") -> None:
        connected().check()

    def clear_away(self, session_folder: str) -> None:
        if read_pod(session_folder) is not None:
            connected().clear_away(session_folder)

    def tear_down(self, session_folder: str) -> None:
        pod = read_pod(session_folder)
        if pod is not None and not pod.ended:
            connected().tear_down(session_folder)

    def give_up(self, session_folder: str) -> None:
        connected().abandon(session_folder)

    def unpause(self, session_folder: str) -> None:
        """Nobody pauses pods."""

    def take_over(self, spec: RunSpec) -> Started:
        return Started(None, "its keeper is in its pod", kept=False)

    def leftovers(self, session_folder: str, run: int) -> Leftovers:
        """What is left in a pod is counted there."""
        return Leftovers(0)

    def end_leftovers(self, session_folder: str, run: int, *, session: str) -> Leftovers:
        return Leftovers(0)
