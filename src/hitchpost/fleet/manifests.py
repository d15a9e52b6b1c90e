"""What a session has in its cluster: a pod, a volume claim, and a secret with the pod's certificate. Pure.

Only fields of core/v1 that Kubernetes 1.20 has, too. Nothing that is secret stands in a pod's description.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hitchpost.fleet.profiles import FleetOptions, Profile

Object = dict[str, Any]

PORT = 8751
HOME, WORKSPACE, IDENTITY, GIT = "/home/agent", "/workspace", "/run/hitchpost/identity", "/run/hitchpost/git"
USER = 1000
SESSION, RUN, OWNER = "hitchpost/session", "hitchpost/run", "hitchpost/owner"
NAME, COMPONENT = "app.kubernetes.io/name", "app.kubernetes.io/component"
OURS = {NAME: "hitchpost", COMPONENT: "session"}
CONTAINER, CLONE = "session", "clone"
LEAVE_S = 30
"""Beside the agent's own grace: until the keeper has written everything down, and the hubs have it."""
LONGEST_LABEL = 63
TRIAL_S = 120
SAY_VERSION = (
    "import hitchpost.pod.first as first, hitchpost;open('/dev/termination-log', 'w').write(hitchpost.__version__)"
)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a pod is made for: ``repository`` is cloned into ``folder``. ``grace_s`` is how long its agent may take to
    end."""

    session: str
    run: int
    profile: Profile
    owner: str = ""
    repository: str = ""
    folder: str = ""
    grace_s: float = 10.0


def name_of(session: str) -> str:
    """Of the pod, the claim and the secret: so the cluster itself has one of each for a session."""
    return f"hitch-{session}"


def selector() -> str:
    return ",".join(f"{key}={text}" for key, text in OURS.items())


def pod(wanted: Wanted, options: FleetOptions) -> Object:
    profile = wanted.profile
    made: Object = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name_of(wanted.session),
            "labels": labels(wanted),
            "annotations": {
                OWNER: wanted.owner,
                # a session is not moved to another node to save one
                "cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
            },
        },
        "spec": {
            "restartPolicy": "Never",
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "terminationGracePeriodSeconds": int(wanted.grace_s) + LEAVE_S,
            "nodeSelector": dict(profile.node_selector),
            "tolerations": [*map(dict, profile.tolerations), *_patience(options)],
            "imagePullSecrets": [{"name": name} for name in options.image_pull_secrets],
            "securityContext": _user(),
            "initContainers": [_clone(wanted, options)] if wanted.repository else [],
            "containers": [_session(wanted)],
            "volumes": [
                {"name": "data", "persistentVolumeClaim": {"claimName": name_of(wanted.session)}},
                {"name": "identity", "secret": {"secretName": name_of(wanted.session), "defaultMode": 0o440}},
                *_git_volume(wanted, options),
            ],
        },
    }
    patched: Object = merged(made, profile.patch)
    return patched


def trial(name: str, profile: Profile, options: FleetOptions) -> Object:
    """A pod that says which hitchpost the image of a profile has, where sessions of the profile would run."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {NAME: "hitchpost", COMPONENT: "trial"}},
        "spec": {
            "restartPolicy": "Never",
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "activeDeadlineSeconds": TRIAL_S,
            "nodeSelector": dict(profile.node_selector),
            "tolerations": [*map(dict, profile.tolerations)],
            "imagePullSecrets": [{"name": name} for name in options.image_pull_secrets],
            "securityContext": _user(),
            "containers": [
                {
                    "name": CONTAINER,
                    "image": profile.image,
                    "command": ["python", "-c", SAY_VERSION],
                    "resources": {
                        "requests": {"cpu": "50m", "memory": "64Mi"},
                        "limits": {"cpu": "1", "memory": "128Mi"},
                    },
                    "securityContext": _unprivileged(),
                    "terminationMessagePolicy": "FallbackToLogsOnError",
                }
            ],
        },
    }


def labels(wanted: Wanted) -> dict[str, str]:
    found = {**OURS, SESSION: wanted.session, RUN: str(wanted.run)}
    owner = label(wanted.owner)
    return {**found, OWNER: owner} if owner else found


def label(text: str) -> str:
    """``text`` as a label can have it; its annotation has it whole."""
    plain = "".join(letter if letter.isascii() and (letter.isalnum() or letter in "-_.") else "_" for letter in text)
    return plain[:LONGEST_LABEL].strip("-_.")


def _session(wanted: Wanted) -> Object:
    profile = wanted.profile
    return {
        "name": CONTAINER,
        "image": profile.image,
        "command": ["python", "-m", "hitchpost.pod", wanted.session, "0.0.0.0", str(PORT), IDENTITY],
        "workingDir": WORKSPACE,
        "env": [
            {"name": "HOME", "value": HOME},
            {"name": "HITCHPOST_HOME", "value": f"{HOME}/.local/state/hitchpost"},
        ],
        "ports": [{"name": "link", "containerPort": PORT}],
        "resources": {
            "requests": {"cpu": profile.cpu, "memory": profile.memory},
            "limits": {"cpu": profile.cpu_limit or profile.cpu, "memory": profile.memory},
        },
        "securityContext": _unprivileged(),
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [*_data(), {"name": "identity", "mountPath": IDENTITY, "readOnly": True}],
    }


def _clone(wanted: Wanted, options: FleetOptions) -> Object:
    """The only container that sees the credentials of git, which come from their own secret."""
    profile = wanted.profile
    git = [{"name": "git", "mountPath": GIT, "readOnly": True}] if options.git_secret else []
    return {
        "name": CLONE,
        "image": profile.image,
        "command": ["python", "-m", "hitchpost.pod.clone", wanted.repository, wanted.folder, GIT],
        "workingDir": WORKSPACE,
        "env": [{"name": "HOME", "value": "/tmp"}],  # noqa: S108 - of a container of its own
        "resources": {
            "requests": {"cpu": profile.cpu, "memory": profile.memory},
            "limits": {"cpu": profile.cpu_limit or profile.cpu, "memory": profile.memory},
        },
        "securityContext": _unprivileged(),
        "volumeMounts": [_data()[0], *git],
    }


def _data() -> list[Object]:
    return [
        {"name": "data", "mountPath": WORKSPACE, "subPath": "workspace"},
        {"name": "data", "mountPath": HOME, "subPath": "home"},
    ]


def _git_volume(wanted: Wanted, options: FleetOptions) -> list[Object]:
    if not wanted.repository or not options.git_secret:
        return []
    return [{"name": "git", "secret": {"secretName": options.git_secret, "defaultMode": 0o440}}]


def _user() -> Object:
    return {
        "runAsNonRoot": True,
        "runAsUser": USER,
        "runAsGroup": USER,
        "fsGroup": USER,
        "seccompProfile": {"type": "RuntimeDefault"},
    }


def _unprivileged() -> Object:
    return {"allowPrivilegeEscalation": False, "privileged": False, "capabilities": {"drop": ["ALL"]}}


def _patience(options: FleetOptions) -> list[Object]:
    """A node that is cut off for a while loses no session: its pods are given up only after this time."""
    return [
        {
            "key": f"node.kubernetes.io/{taint}",
            "operator": "Exists",
            "effect": "NoExecute",
            "tolerationSeconds": round(options.unreachable_minutes * 60),
        }
        for taint in ("not-ready", "unreachable")
    ]


def claim(wanted: Wanted) -> Object:
    profile = wanted.profile
    spec: Object = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": profile.storage}},
    }
    if profile.storage_class:
        spec["storageClassName"] = profile.storage_class
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name_of(wanted.session), "labels": _lasting(wanted)},
        "spec": spec,
    }


def secret(wanted: Wanted, files: Mapping[str, bytes]) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "Opaque",
        "metadata": {"name": name_of(wanted.session), "labels": _lasting(wanted)},
        "data": {name: base64.b64encode(text).decode() for name, text in files.items()},
    }


def _lasting(wanted: Wanted) -> dict[str, str]:
    """The labels of what outlives a run."""
    return {key: text for key, text in labels(wanted).items() if key != RUN}


def merged(made: Any, patch: Any) -> Any:
    """``made`` with ``patch`` on top. Lists whose items have names, or mount paths, are merged item by item."""
    if isinstance(made, dict) and isinstance(patch, Mapping):
        return {**made, **{key: merged(made.get(key), item) for key, item in patch.items()}}
    key = _key(made) or _key(patch)
    if isinstance(made, list) and isinstance(patch, list | tuple) and key:
        known = {item[key]: item for item in made}
        for item in patch:
            known[item[key]] = merged(known.get(item[key], {}), item)
        return list(known.values())
    return list(patch) if isinstance(patch, tuple) else patch


def _key(items: Any) -> str:
    """What tells the items of a list apart; empty for a list whose items are nothing of their own."""
    if not isinstance(items, list | tuple) or not items:
        return ""
    kinds = ("mountPath", "name")
    return next((kind for kind in kinds if all(isinstance(item, Mapping) and kind in item for item in items)), "")
