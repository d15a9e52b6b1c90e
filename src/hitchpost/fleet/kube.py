"""The API server of a cluster: asked with time limits, and followed. The only module that knows lightkube.

Objects are what JSON makes of them, so a cluster of another version has the fields that it has.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import httpx2
import structlog
from lightkube import AsyncClient, Client, KubeConfig
from lightkube.config.kubeconfig import DEFAULT_KUBECONFIG, SingleConfig
from lightkube.core.exceptions import ApiError, ConfigError
from lightkube.generic_resource import GenericGlobalResource, GenericNamespacedResource, create_api_info
from lightkube.types import PatchType

from hitchpost.errors import HitchpostError

T = TypeVar("T")
Object = dict[str, Any]
Objects = list[Object]

ANSWERS_S = 20.0
"""How long a cluster may take for an answer, with as many attempts as fit."""
ATTEMPT = httpx2.Timeout(10.0, connect=5.0)
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.1, 5.0
LIST_S, WATCH_S, SILENCE_S = 30.0, 60, 75.0
"""A watch is asked for anew every minute, and one that stays silent for longer is not believed."""
BUSY = (429, 500, 502, 503, 504)
FORBIDDEN, CONFLICT, NOT_FOUND, GONE = 403, 409, 404, 410
CHUNK = 500

log = structlog.get_logger()


class Pod(GenericNamespacedResource):
    _api_info = create_api_info("", "v1", "Pod", "pods")


class Claim(GenericNamespacedResource):
    _api_info = create_api_info("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims")


class Secret(GenericNamespacedResource):
    _api_info = create_api_info("", "v1", "Secret", "secrets")


class Event(GenericNamespacedResource):
    _api_info = create_api_info("", "v1", "Event", "events")


class Node(GenericGlobalResource):
    _api_info = create_api_info("", "v1", "Node", "nodes")


class Lease(GenericNamespacedResource):
    _api_info = create_api_info("coordination.k8s.io", "v1", "Lease", "leases")


class StorageClass(GenericGlobalResource):
    _api_info = create_api_info("storage.k8s.io", "v1", "StorageClass", "storageclasses")


class AccessReview(GenericGlobalResource):
    _api_info = create_api_info("authorization.k8s.io", "v1", "SelfSubjectAccessReview", "selfsubjectaccessreviews")


class ClusterAway(HitchpostError):
    """Raised when the cluster does not answer in time, or nobody knows where it is."""

    http_status = 503
    code = "cluster_away"


class NoCluster(ClusterAway):
    """Raised when nobody knows where a cluster is: there is no kubeconfig, and this is no pod."""


REFUSED_HINTS = {
    401: "check the hub's credentials for the cluster",
    FORBIDDEN: "give the hub's account in the cluster that right",
}


class ClusterRefused(HitchpostError):
    """Raised when the cluster refuses what it was asked for. The words are its own."""

    http_status = 502
    code = "cluster_refused"

    def __init__(self, what: str, why: str, status: int) -> None:
        super().__init__(f"the cluster refused to {what}: {why}", REFUSED_HINTS.get(status, ""))
        self.status = status


def configuration(context: str = "") -> SingleConfig:
    """Of a pod's service account, else of ``KUBECONFIG`` or ``~/.kube/config``; ``context`` names one of the file.

    Raises ``NoCluster``.
    """
    try:
        path = os.environ.get("KUBECONFIG", DEFAULT_KUBECONFIG)
        found = KubeConfig.from_file(path).get(context) if context else KubeConfig.from_env().get()
    except Exception as error:  # the file is somebody else's, and what reads it has errors of its own
        raise NoCluster(
            f"no cluster is known here: {error}",
            "name the file of one in KUBECONFIG, and its context with --kube-context",
        ) from None
    assert found is not None
    return found


class Kube:
    """One namespace of a cluster. Its calls block, and may come from any thread; ``follow`` is for an event loop."""

    def __init__(self, *, context: str = "", namespace: str = "") -> None:
        """Raises ``ClusterAway`` when nobody knows where the cluster is."""
        self.config, self.answers_s = configuration(context), ANSWERS_S
        self.namespace = namespace or self.config.namespace
        self.server = self.config.cluster.server
        try:
            self._client = Client(
                config=self.config, namespace=self.namespace, timeout=ATTEMPT, field_manager="hitchpost"
            )
        except (ConfigError, OSError, AssertionError, ValueError) as error:
            raise ClusterAway(f"the configuration of cluster {self.server} cannot be used: {error}") from None

    def close(self) -> None:
        self._client.close()

    # asking -----------------------------------------------------------------------------------------------------

    def get(self, kind: type, name: str, namespace: str | None = None, *, within_s: float = 0) -> Object | None:
        """None when there is no such thing."""
        where = {"namespace": namespace} if namespace else {}
        try:
            return self._ask(f"show {name}", lambda: self._client.get(kind, name, **where), within_s)
        except ClusterRefused as error:
            if error.status == NOT_FOUND:
                return None
            raise

    def list(
        self, kind: type, *, labels: str = "", fields: Mapping[str, str] | None = None, within_s: float = 0
    ) -> Objects:
        def found() -> Objects:
            wanted: Any = dict(fields or {})
            return [*self._client.list(kind, chunk_size=CHUNK, labels=_pairs(labels), fields=wanted)]

        return self._ask(f"list {_plural(kind)}", found, within_s)

    def create(self, kind: type, made: Object) -> Object | None:
        """None when there is one of that name already, so a second attempt does no harm."""
        name = made["metadata"]["name"]
        try:
            found: Object = self._ask(f"make {_plural(kind)} {name}", lambda: self._client.create(kind(made)))
        except ClusterRefused as error:
            if error.status == CONFLICT:
                return None
            raise
        return found

    def replace(self, kind: type, made: Object) -> None:
        """Whatever is there under its name becomes this."""
        name = made["metadata"]["name"]
        self._ask(f"change {_plural(kind)} {name}", lambda: self._client.replace(kind(made)))

    def delete(self, kind: type, name: str, *, grace_s: int | None = None) -> bool:
        """Ask for its end; False when there is no such thing."""
        try:
            self._ask(f"delete {_plural(kind)} {name}", lambda: self._client.delete(kind, name, grace_period=grace_s))
        except ClusterRefused as error:
            if error.status == NOT_FOUND:
                return False
            raise
        return True

    def patch(self, kind: type, name: str, change: Object) -> None:
        """Change some fields (a JSON merge patch)."""
        self._ask(
            f"change {_plural(kind)} {name}",
            lambda: self._client.patch(kind, name, change, patch_type=PatchType.MERGE),
        )

    def may(self, verb: str, resource: str, *, group: str = "", namespace: str | None = None, name: str = "") -> bool:
        """Whether we have this right, for all or for one of that ``name``; ``namespace`` is empty for what belongs to
        no namespace."""
        where = self.namespace if namespace is None else namespace
        resource, _, below = resource.partition("/")
        wanted = {"verb": verb, "resource": resource, "subresource": below, "group": group, "namespace": where}
        wanted |= {"name": name} if name else {}
        asked: Any = AccessReview
        review = asked({"metadata": {}, "spec": {"resourceAttributes": wanted}})
        answer = self._ask("tell our rights", lambda: self._client.create(review))
        return bool(answer["status"].get("allowed"))

    def _ask(self, what: str, call: Callable[[], T], within_s: float = 0) -> T:
        """Until the cluster answers, or ``within_s`` are over. One that is busy may say when to ask again.

        Raises ``ClusterAway`` or ``ClusterRefused``.
        """
        deadline = time.monotonic() + (within_s or self.answers_s)
        pause_s = FIRST_PAUSE_S
        while True:
            try:
                return call()
            except httpx2.HTTPStatusError as error:
                status, why = status_of(error)
                if status not in BUSY and not _is_passing(error):
                    raise ClusterRefused(what, why, status) from None
                wait_s = max(pause_s, _retry_after_s(error))
            except (httpx2.HTTPError, httpx2.InvalidURL, ConfigError, OSError, LookupError, ValueError) as error:
                why, wait_s = told(error), pause_s
            if time.monotonic() + wait_s > deadline:
                raise ClusterAway(f"the cluster {self.server} does not answer: {why}") from None
            time.sleep(wait_s)
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)

    # following --------------------------------------------------------------------------------------------------

    async def follow(
        self,
        kind: type,
        *,
        labels: str = "",
        begins: Callable[[], Any] = lambda: None,
        listed: Callable[[Objects, Any], None],
        changed: Callable[[str, Object], None],
        failed: Callable[[str], None],
    ) -> None:
        """For ever: all that there is, then each change in order. When the cluster has forgotten how far we were, or
        anything goes wrong, all that there is again: what is missing then is gone.

        ``begins`` is called before a list is asked for, and ``listed`` gets what it gave.
        """
        client = AsyncClient(config=self.config, namespace=self.namespace, timeout=ATTEMPT)
        pause_s = FIRST_PAUSE_S
        try:
            while True:
                try:
                    before = begins()
                    async with asyncio.timeout(LIST_S):
                        found: Any = client.list(kind, chunk_size=CHUNK, labels=_pairs(labels))
                        items = [item async for item in found]
                    listed(items, before)
                    failed("")
                    pause_s = FIRST_PAUSE_S
                    await self._watch(client, kind, labels, found.resourceVersion, changed)
                    continue
                except httpx2.HTTPStatusError as error:
                    status, why = status_of(error)
                    wait_s = FIRST_PAUSE_S if status == GONE else max(pause_s, _retry_after_s(error))
                    why = "" if status == GONE else why
                except (httpx2.HTTPError, ConfigError, OSError, LookupError, ValueError) as error:
                    why, wait_s = told(error), pause_s
                except Exception as error:  # of a library, or of ours: all the same somebody has to follow
                    log.error("following the cluster has failed", kind=_plural(kind), exc_info=error)
                    why, wait_s = f"{error!r}", pause_s
                if why:
                    failed(why)
                    pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
                await asyncio.sleep(wait_s)
        finally:
            await client.close()

    async def _watch(
        self, client: AsyncClient, kind: type, labels: str, version: str, changed: Callable[[str, Object], None]
    ) -> None:
        """Until it is silent for too long. The library itself asks anew when the cluster ends the watch."""
        items: Any = client.watch(kind, labels=_pairs(labels), server_timeout=WATCH_S, resource_version=version)
        try:
            while True:
                async with asyncio.timeout(SILENCE_S):
                    what, item = await anext(items)
                changed(what, item)
        except TimeoutError:
            return
        finally:
            await items.aclose()


def status_of(error: httpx2.HTTPStatusError) -> tuple[int, str]:
    """The code, and the cluster's own words."""
    if isinstance(error, ApiError):
        return error.status.code or 0, str(error.status.message or error.status.reason)
    return error.response.status_code, f"{error.response.status_code} {error.response.reason_phrase}"


def _is_passing(error: httpx2.HTTPStatusError) -> bool:
    """A conflict between two who changed the same thing at the same time, such as a quota, and not about a name."""
    is_conflict = isinstance(error, ApiError) and error.status.code == CONFLICT
    return is_conflict and isinstance(error, ApiError) and error.status.reason == "Conflict"


def told(error: Exception) -> str:
    """One line: what an attempt failed with."""
    if isinstance(error, httpx2.TimeoutException | TimeoutError):
        return "it took too long"
    return " ".join(str(error).split()) or type(error).__name__


def _retry_after_s(error: httpx2.HTTPStatusError) -> float:
    response = getattr(error, "response", None)
    text = response.headers.get("Retry-After", "") if response is not None else ""
    if not text and isinstance(error, ApiError) and error.status.details is not None:
        text = str(error.status.details.retryAfterSeconds or "")
    return float(text) if text.isascii() and text.isdigit() else 0.0


def _pairs(labels: str) -> dict[str, Any]:
    return dict(pair.split("=", 1) for pair in labels.split(",") if pair)


def _plural(kind: type) -> str:
    return str(kind._api_info.plural)  # type: ignore[attr-defined]
