from __future__ import annotations

import json

import pytest

from hitchpost import __version__, settings
from hitchpost.errors import BadSettings, UsageError
from hitchpost.fleet.manifests import Wanted, claim, label, merged, name_of, pod, secret
from hitchpost.fleet.profiles import FleetOptions, Profile, options
from hitchpost.settings import Settings
from tests.ground import Ground

SESSION = "k3v9q0x2m7ab"
FLEET = FleetOptions(image="registry/hitchpost:1")


def wanted(profile: Profile | None = None, **changes: object) -> Wanted:
    usual: dict[str, object] = {"session": SESSION, "run": 3, "profile": profile or FLEET.chosen("")}
    return Wanted(**usual | changes)  # type: ignore[arg-type]


def test_a_pod_is_the_keeper_of_one_session_with_its_own_volume_and_no_rights() -> None:
    unprivileged = {"allowPrivilegeEscalation": False, "privileged": False, "capabilities": {"drop": ["ALL"]}}
    gone = {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
    assert pod(wanted(owner="ann"), FLEET) == {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "hitch-k3v9q0x2m7ab",
            "labels": {
                "app.kubernetes.io/name": "hitchpost",
                "app.kubernetes.io/component": "session",
                "hitchpost/session": SESSION,
                "hitchpost/run": "3",
                "hitchpost/owner": "ann",
            },
            "annotations": {"hitchpost/owner": "ann", "cluster-autoscaler.kubernetes.io/safe-to-evict": "false"},
        },
        "spec": {
            "restartPolicy": "Never",
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "terminationGracePeriodSeconds": 40,
            "nodeSelector": {},
            "tolerations": [
                {"key": "node.kubernetes.io/not-ready", **gone},
                {"key": "node.kubernetes.io/unreachable", **gone},
            ],
            "imagePullSecrets": [],
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": 1000,
                "runAsGroup": 1000,
                "fsGroup": 1000,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "initContainers": [],
            "containers": [
                {
                    "name": "session",
                    "image": "registry/hitchpost:1",
                    "command": [
                        *("python", "-m", "hitchpost.pod"),
                        *(SESSION, "0.0.0.0", "8751", "/run/hitchpost/identity"),
                    ],
                    "workingDir": "/workspace",
                    "env": [
                        {"name": "HOME", "value": "/home/agent"},
                        {"name": "HITCHPOST_HOME", "value": "/home/agent/.local/state/hitchpost"},
                    ],
                    "ports": [{"name": "link", "containerPort": 8751}],
                    "resources": {
                        "requests": {"cpu": "1", "memory": "2Gi"},
                        "limits": {"cpu": "1", "memory": "2Gi"},
                    },
                    "securityContext": unprivileged,
                    "terminationMessagePolicy": "FallbackToLogsOnError",
                    "volumeMounts": [
                        {"name": "data", "mountPath": "/workspace", "subPath": "workspace"},
                        {"name": "data", "mountPath": "/home/agent", "subPath": "home"},
                        {"name": "identity", "mountPath": "/run/hitchpost/identity", "readOnly": True},
                    ],
                }
            ],
            "volumes": [
                {"name": "data", "persistentVolumeClaim": {"claimName": "hitch-k3v9q0x2m7ab"}},
                {"name": "identity", "secret": {"secretName": "hitch-k3v9q0x2m7ab", "defaultMode": 0o440}},
            ],
        },
    }


def test_a_repository_is_cloned_first_by_the_only_container_that_sees_the_credentials() -> None:
    fleet = FleetOptions(image="registry/hitchpost:1", git_secret="git-of-the-team", image_pull_secrets=("pull",))
    made = pod(wanted(repository="https://git.example/shop.git", folder="/workspace/shop"), fleet)["spec"]
    (first,), (session,) = made["initContainers"], made["containers"]
    assert first["command"] == [
        *("python", "-m", "hitchpost.pod.clone"),
        *("https://git.example/shop.git", "/workspace/shop", "/run/hitchpost/git"),
    ]
    assert {"name": "git", "mountPath": "/run/hitchpost/git", "readOnly": True} in first["volumeMounts"]
    assert "git" not in [mount["name"] for mount in session["volumeMounts"]]
    assert made["volumes"][-1] == {"name": "git", "secret": {"secretName": "git-of-the-team", "defaultMode": 0o440}}
    assert made["imagePullSecrets"] == [{"name": "pull"}]
    assert (first["securityContext"], first["image"]) == (session["securityContext"], session["image"])


def test_a_profile_says_what_a_session_gets() -> None:
    fleet = FleetOptions(
        image="registry/hitchpost:1",
        unreachable_minutes=0.5,
        profiles={
            "big": {
                "cpu": "4",
                "cpu_limit": "8",
                "memory": "16Gi",
                "storage": "100Gi",
                "storage_class": "fast",
                "image": "registry/gpu:2",
                "node_selector": {"pool": "big"},
                "tolerations": ({"key": "gpu", "operator": "Exists"},),
            }
        },
    )
    big = wanted(fleet.chosen("big"), grace_s=60.0)
    spec = pod(big, fleet)["spec"]
    (session,) = spec["containers"]
    assert session["resources"] == {
        "requests": {"cpu": "4", "memory": "16Gi"},
        "limits": {"cpu": "8", "memory": "16Gi"},
    }
    assert (session["image"], spec["nodeSelector"]) == ("registry/gpu:2", {"pool": "big"})
    assert spec["tolerations"][0] == {"key": "gpu", "operator": "Exists"}
    assert {found.get("tolerationSeconds") for found in spec["tolerations"][1:]} == {30}
    assert spec["terminationGracePeriodSeconds"] == 90
    assert claim(big) == {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {
            "name": "hitch-k3v9q0x2m7ab",
            "labels": {
                "app.kubernetes.io/name": "hitchpost",
                "app.kubernetes.io/component": "session",
                "hitchpost/session": SESSION,
            },
        },
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "100Gi"}},
            "storageClassName": "fast",
        },
    }
    assert "storageClassName" not in claim(wanted())["spec"]


def test_a_secret_has_the_files_of_an_identity_and_a_pod_has_nothing_of_them() -> None:
    made = secret(wanted(), {"key.pem": b"very secret"})
    assert (made["metadata"]["name"], made["data"]) == (name_of(SESSION), {"key.pem": "dmVyeSBzZWNyZXQ="})
    assert "secret" not in json.dumps(pod(wanted(), FLEET)["spec"]["containers"])


@pytest.mark.parametrize(
    ("owner", "text"),
    [("ann", "ann"), ("ann@example.org", "ann_example.org"), ("é", ""), ("-x-", "x"), ("a" * 80, "a" * 63), ("", "")],
)
def test_an_owner_s_label_is_what_labels_can_have(owner: str, text: str) -> None:
    made = pod(wanted(owner=owner), FLEET)["metadata"]
    assert label(owner) == text == made["labels"].get("hitchpost/owner", "")
    assert made["annotations"]["hitchpost/owner"] == owner


def test_a_patch_goes_over_the_pod_item_by_item() -> None:
    patch = {
        "metadata": {"annotations": {"a": "b"}},
        "spec": {
            "priorityClassName": "low",
            "volumes": ({"name": "usr", "hostPath": {"path": "/usr"}},),
            "containers": [
                {"name": "session", "command": ["sleep"], "volumeMounts": [{"name": "usr", "mountPath": "/u"}]}
            ],
        },
    }
    made = pod(wanted(Profile(image="x", patch=patch)), FLEET)
    (session,) = made["spec"]["containers"]
    assert made["metadata"]["annotations"]["a"] == "b"
    assert made["spec"]["priorityClassName"] == "low"
    assert [volume["name"] for volume in made["spec"]["volumes"]] == ["data", "identity", "usr"]
    assert (session["command"], session["image"], len(session["volumeMounts"])) == (["sleep"], "x", 4)
    assert merged({"a": [1]}, {"a": (2,)}) == {"a": [2]}
    assert merged({"a": []}, {"a": [{"name": "n"}]}) == {"a": [{"name": "n"}]}


def test_the_usual_profile_needs_no_settings() -> None:
    fleet = options(Settings())
    assert fleet.chosen("") == Profile(image=f"hitchpost:{__version__}", cpu_limit="1")
    with pytest.raises(UsageError, match="no profile 'huge'; choose one of: big, default") as caught:
        FleetOptions(profiles={"big": {}}).chosen("huge")
    assert caught.value.field == "profile"


def test_profiles_come_from_the_settings(ground: Ground) -> None:
    ground.configure(
        """
        [fleet]
        namespace = "agents"
        profile = "big"
        [fleet.profiles.big]
        cpu = 4
        memory = "16Gi"
        node_selector = { pool = "big" }
        tolerations = [{ key = "gpu", operator = "Exists" }]
        [fleet.profiles.big.patch.spec]
        priorityClassName = "low"
        """
    )
    found = options(settings.load())
    assert found.namespace == "agents"
    chosen = found.chosen("")
    assert (chosen.cpu, chosen.memory, chosen.node_selector) == ("4", "16Gi", {"pool": "big"})
    assert chosen.patch == {"spec": {"priorityClassName": "low"}}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("x = 1", r"expected fleet.KEY to be one of context, .*, but got 'x'"),
        ("start_minutes = 0", r"expected fleet.start_minutes to be a number from 0.05 to 1440, but got 0"),
        ("profiles = 3", r"expected fleet.profiles to be a table of profiles, but got 3"),
        ("profiles.a = 3", r"expected fleet.profiles.a to be a table, but got 3"),
        ("profiles.a.cpus = 3", r"expected fleet.profiles.a.KEY to be one of cpu, .*, but got 'cpus'"),
        ("profiles.a.cpu = 'much'", r"expected fleet.profiles.a.cpu to be an amount, such as .*, but got 'much'"),
        ("profiles.a.cpu = 0", r"expected fleet.profiles.a.cpu to be an amount"),
        ("profiles.a.memory = true", r"expected fleet.profiles.a.memory to be an amount"),
        ("profiles.a.tolerations = [{ kay = 'x' }]", r"expected fleet.profiles.a.tolerations to be a list of tables"),
        ("profiles.a.node_selector = { a = 1 }", r"expected fleet.profiles.a.node_selector to be a table of texts"),
        ("profiles.a.patch = 1", r"expected fleet.profiles.a.patch to be a table, but got 1"),
    ],
)
def test_settings_of_a_fleet_that_are_wrong_are_named(ground: Ground, text: str, problem: str) -> None:
    ground.configure(f"[fleet]\n{text}")
    with pytest.raises(BadSettings, match=problem):
        settings.load()
