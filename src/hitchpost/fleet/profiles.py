"""What a fleet's pods are like: the table ``[fleet]`` of the settings, and the profiles in it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from hitchpost import __version__
from hitchpost.errors import UsageError
from hitchpost.model.draining import REST
from hitchpost.settings import Settings

USUAL = "default"
IMAGE = f"hitchpost:{__version__}"


@dataclass(frozen=True, slots=True)
class Profile:
    """What a session gets. Amounts are as Kubernetes writes them; ``cpu_limit`` is ``cpu`` when it is empty.

    No ``storage_class``: the cluster's own. ``patch`` is merged into the pod, for what has no key of its own.
    """

    cpu: str = "1"
    cpu_limit: str = ""
    memory: str = "2Gi"
    storage: str = "10Gi"
    storage_class: str = ""
    image: str = ""
    node_selector: Mapping[str, str] = field(default_factory=dict)
    tolerations: tuple[Mapping[str, object], ...] = ()
    patch: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FleetOptions:
    """``namespace`` and ``context`` are empty for what the configuration of the cluster says.

    ``git_secret`` is the Secret that repositories are cloned with. Nobody waits longer than ``start_minutes`` for a
    pod; a node may be silent for ``unreachable_minutes`` before Kubernetes is to give its pods up. With ``only_pods``,
    nothing is started on the machine of a hub. ``drain`` is what becomes of the sessions of a node that is drained
    (``model.draining``).
    """

    namespace: str = ""
    context: str = ""
    image: str = ""
    image_pull_secrets: tuple[str, ...] = ()
    git_secret: str = ""
    profile: str = USUAL
    profiles: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    start_minutes: float = 10.0
    unreachable_minutes: float = 5.0
    only_pods: bool = False
    drain: str = REST

    def chosen(self, name: str) -> Profile:
        """The profile of that name, or the usual one. Raises ``UsageError``."""
        name = name or self.profile
        if name not in self.profiles and name != USUAL:
            known = sorted({USUAL, *self.profiles})
            raise UsageError(f"no profile {name!r}; choose one of: {', '.join(known)}", field="profile")
        profile = Profile(**self.profiles.get(name, {}))  # type: ignore[arg-type]
        return replace(profile, image=profile.image or self.image or IMAGE, cpu_limit=profile.cpu_limit or profile.cpu)


def options(settings: Settings) -> FleetOptions:
    return FleetOptions(**settings.fleet)  # type: ignore[arg-type]
