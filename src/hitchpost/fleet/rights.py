"""What a hub asks of its cluster, and so has to be allowed. ``deploy/kubernetes/rights.yaml`` grants exactly this."""

from __future__ import annotations

from dataclasses import dataclass

from hitchpost.fleet.shared_authority import NAME as AUTHORITY

OURS = None
"""The namespace of sessions."""
NODE_LEASES = "kube-node-lease"
NO_NAMESPACE = ""


@dataclass(frozen=True, slots=True)
class Right:
    """``namespace`` is None for that of sessions and empty for what belongs to none; ``name`` limits it to one thing.

    ``without`` is what cannot be done without it. One that is not ``needed`` only makes hubs tell less.
    """

    verb: str
    resource: str
    without: str
    group: str = ""
    namespace: str | None = OURS
    name: str = ""
    needed: bool = True

    def __str__(self) -> str:
        named = f" {self.name}" if self.name else ""
        where = f" in {self.namespace}" if self.namespace else ""
        return f"{self.verb} {self.resource}{named}{where}"


RIGHTS = (
    *(Right(verb, "pods", "pods are not seen") for verb in ("get", "list", "watch")),
    *(Right(verb, "pods", "no session can be started or ended") for verb in ("create", "delete")),
    *(Right(verb, "persistentvolumeclaims", "sessions have no volume") for verb in ("create", "delete")),
    Right("get", "persistentvolumeclaims", "a session with a new volume starts a second later", needed=False),
    Right("get", "secrets", "hubs have no certificates", name=AUTHORITY),
    *(Right(verb, "secrets", "pods have no certificates") for verb in ("create", "update", "delete")),
    *(Right(verb, "events", "nobody learns why a pod waits") for verb in ("list", "watch")),
    *(Right(verb, "nodes", "a lost node is not told", namespace=NO_NAMESPACE) for verb in ("list", "watch")),
    Right(
        "get",
        "leases",
        "nobody learns when a lost node gave its last sign of life",
        "coordination.k8s.io",
        NODE_LEASES,
        needed=False,
    ),
    Right("list", "storageclasses", "storage classes are not checked", "storage.k8s.io", NO_NAMESPACE, needed=False),
)
