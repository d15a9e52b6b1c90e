"""The options of this hub: what the settings say, and what they leave open."""

from __future__ import annotations

import os
from dataclasses import replace

from hitchpost import settings as config
from hitchpost.fleet.kube import Kube, Object, Pod
from hitchpost.fleet.profiles import FleetOptions, options
from hitchpost.ops.sessions.environment import KUBE_CONTEXT

OWN_POD = "HITCHPOST_POD"
"""In which a hub that is a pod itself finds its name."""
HUB = "hub"


def configured() -> FleetOptions:
    found = options(config.load())
    return replace(found, context=os.environ.get(KUBE_CONTEXT) or found.context)


def connected(wanted: FleetOptions) -> Kube:
    """Raises ``ClusterAway``."""
    return Kube(context=wanted.context, namespace=wanted.namespace)


def with_own_image(wanted: FleetOptions, kube: Kube) -> FleetOptions:
    """Sessions have the image of their hub, where that is a pod and the settings name none: one image serves both.

    Raises ``ClusterAway`` or ``ClusterRefused``.
    """
    name = os.environ.get(OWN_POD, "")
    if wanted.image or not name:
        return wanted
    pod = kube.get(Pod, name, kube.config.namespace)
    return wanted if pod is None else replace(wanted, image=_image(pod))


def _image(pod: Object) -> str:
    """Of the hub's container; others may be beside it."""
    containers = pod["spec"]["containers"]
    return str(next((found for found in containers if found["name"] == HUB), containers[0])["image"])
