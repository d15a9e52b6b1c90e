"""``hitch doctor`` for a fleet: what is missing is told, each with what to do."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest

from hitchpost.fleet.checkup import Tried, judged
from hitchpost.fleet.database import Database
from hitchpost.fleet.migrations import STEPS, Step
from tests.fleet.kubernetes import SMALL
from tests.ground import Ground
from tests.kube import images
from tests.kube.cluster import NEVER, STORAGE, Cluster
from tests.postgres import OWNER, SUPERUSER, Server
from tests.reaching import free_port

CHECKS = ("database", "cluster", "rights", "storage", "image")
Told = tuple[str, str, str]
"""Level, text and what to do."""


@dataclass
class Doctor:
    ground: Ground
    env: dict[str, str]

    def configure(self, namespace: str, profiles: dict[str, dict[str, str]], **fleet: str) -> None:
        lines = ["[fleet]", f'namespace = "{namespace}"', *(f'{key} = "{text}"' for key, text in fleet.items())]
        for name, profile in profiles.items():
            lines += [f"[fleet.profiles.{name}]", *(f"{key} = {json.dumps(text)}" for key, text in profile.items())]
        self.ground.configure("\n".join(lines) + "\n")

    def __call__(self, *checks: str) -> list[Told]:
        answer = self.ground.hitch("doctor", "--json", check=False, env=self.env)
        found = answer.json()
        assert answer.code == (0 if found["ok"] else 1)
        return [(each["level"], each["text"], each["todo"]) for each in found["checks"] if each["check"] in checks]


@pytest.fixture
def doctor(ground: Ground, tmp_path: Path) -> Doctor:
    """Without a cluster: nobody listens where its kubeconfig leads to."""
    return Doctor(ground, {"KUBECONFIG": str(tmp_path / "no.kubeconfig")})


@pytest.fixture
def space(cluster: Cluster, doctor: Doctor) -> Iterator[str]:
    doctor.env |= {"KUBECONFIG": str(cluster.kubeconfig), "HITCHPOST_FLEET": "postgresql://x@127.0.0.1:1/x"}
    with cluster.namespace() as name:
        yield name


# The database


def test_a_machine_without_a_fleet_is_not_asked_for_one(ground: Ground, doctor: Doctor) -> None:
    assert doctor(*CHECKS) == []


def test_a_database_that_is_new_and_one_with_tables_are_in_order(doctor: Doctor, database: str) -> None:
    doctor.env["HITCHPOST_FLEET"] = database
    ((level, text, _),) = doctor("database")
    assert (level, text.endswith("; the first hub makes its tables")) == ("ok", True)
    assert "password" not in text
    made = Database(database)
    made.open()
    made.close()
    ((level, text, _),) = doctor("database")
    assert level == "ok"
    assert text.startswith("PostgreSQL ")
    assert "tables" not in text


def test_a_database_that_is_away_or_refuses_the_password_is_told(doctor: Doctor, database: str) -> None:
    port = free_port()
    doctor.env["HITCHPOST_FLEET"] = f"postgresql://hitch:secret@127.0.0.1:{port}/team"
    ((level, text, todo),) = doctor("database")
    assert level == "problem"
    assert text.startswith(f"PostgreSQL at 127.0.0.1:{port}/team cannot be used: ")
    assert "refused" in text.lower()
    assert "see that it runs, that this machine reaches it, and that name and password" in todo
    parts = psycopg.conninfo.conninfo_to_dict(database)
    doctor.env["HITCHPOST_FLEET"] = database.replace(str(parts["password"]), "wrong")
    ((level, text, _),) = doctor("database")
    assert (level, "password authentication failed" in text) == ("problem", True)
    assert "wrong" not in text


def test_an_address_that_is_none_is_told(doctor: Doctor) -> None:
    doctor.env["HITCHPOST_FLEET"] = "postgresql://[x"
    ((level, text, todo),) = doctor("database")
    assert (level, todo) == ("problem", "correct the address in HITCHPOST_FLEET")
    assert text.startswith("expected an address like postgresql://user@host/name")


def test_a_user_that_may_not_make_tables_is_told(doctor: Doctor, postgres: Server) -> None:
    with postgres.fresh() as name:
        with postgres.connect(SUPERUSER, name) as asking:
            asking.execute(f"alter database {name} owner to postgres")
            asking.execute(f"revoke create on schema public from public; revoke create on schema public from {OWNER}")
        doctor.env["HITCHPOST_FLEET"] = postgres.address(name)
        ((level, text, todo),) = doctor("database")
    assert level == "problem"
    assert text.endswith("has no tables of this version, and its user may not make any")
    assert "grant create on schema public" in todo


def test_a_database_of_a_newer_version_is_told(doctor: Doctor, database: str) -> None:
    newest = STEPS[-1].number + 1
    made = Database(database, steps=(*STEPS, Step(newest, newest, "select 1")))
    made.open()
    made.close()
    doctor.env["HITCHPOST_FLEET"] = database
    ((level, text, todo),) = doctor("database")
    assert (level, todo) == ("problem", "upgrade hitchpost")
    assert "was changed by a newer hitchpost" in text


# The cluster


def test_no_cluster_and_one_that_does_not_answer_are_told(doctor: Doctor, cluster: Cluster, tmp_path: Path) -> None:
    doctor.env["HITCHPOST_FLEET"] = "postgresql://x@127.0.0.1:1/x"
    ((level, text, todo),) = doctor("cluster")
    assert (level, todo) == (
        "problem",
        "name the file of one in KUBECONFIG, and its context with --kube-context",
    )
    assert text.startswith("no cluster is known here: ")
    file = tmp_path / "stranger.kubeconfig"
    cluster.write_kubeconfig(file, cluster.server, token="nobody")
    doctor.env["KUBECONFIG"] = str(file)
    ((level, text, todo),) = doctor("cluster")
    assert (level, "Unauthorized" in text) == ("problem", True)
    assert todo == "see that the kubeconfig's user, or the hub's account, is known there"
    assert doctor("image") == []


def test_an_account_without_rights_is_told_each_of_them(
    doctor: Doctor, cluster: Cluster, space: str, tmp_path: Path
) -> None:
    file = tmp_path / "default.kubeconfig"
    cluster.write_kubeconfig(file, cluster.server, token=cluster.account_token("default", space))
    doctor.env["KUBECONFIG"] = str(file)
    doctor.configure(space, {"default": SMALL}, image=images.HITCHPOST)
    told = doctor("rights")
    assert [level for level, _, _ in told] == ["problem"] * 3 + ["note"] + ["problem"] * 4 + ["note"] * 2
    assert ("not allowed: create pods, delete pods; no session can be started or ended") in [
        text for _, text, _ in told
    ]
    assert all("kubectl apply -k deploy/kubernetes" in todo for _, _, todo in told)
    assert doctor("image") == []


def test_a_storage_class_that_is_missing_is_told(doctor: Doctor, space: str) -> None:
    usual = {"image": images.HITCHPOST}
    profiles = {
        "default": {**usual, "storage_class": STORAGE},
        "fast": {**usual, "storage_class": "fast"},
        "plain": usual,
    }
    doctor.configure(space, profiles)
    known = f"{NEVER}, {STORAGE}"
    assert doctor("storage") == [
        ("ok", f"class {STORAGE} (profile default)", ""),
        (
            "problem",
            "no storage class fast, which profile fast names",
            f"set storage_class in [fleet.profiles.fast] to one that the cluster has: {known}",
        ),
        (
            "problem",
            "profile plain names no storage class, and the cluster has no usual one",
            f"set storage_class in [fleet.profiles.plain] to one that the cluster has: {known}",
        ),
    ]


def test_an_image_that_is_missing_or_has_no_hitchpost_is_told(doctor: Doctor, cluster: Cluster, space: str) -> None:
    absent = "hitchpost.test/absent:1"
    doctor.configure(space, {"default": SMALL, "empty": {**SMALL, "image": images.SESSION}}, image=absent)
    (first, text, todo), (second, other, _) = doctor("image")
    assert (first, second) == ("problem", "problem")
    assert text.startswith(f"{absent} cannot be used: ")
    assert todo.startswith("correct image in [fleet] or [fleet.profiles.default], or image_pull_secrets")
    assert other.startswith(f"{images.SESSION} cannot be used: ")
    assert '"python": executable file not found' in other
    assert cluster.kubectl("get", "pods", "-n", space, "-o", "name") == ""


def test_a_pod_that_tries_an_image_is_judged_by_what_is_known() -> None:
    assert judged({"status": {"phase": "Pending"}}) == Tried(why="its pod is pending", sure=False)
    full = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/2 nodes"}
    waiting = judged({"status": {"phase": "Pending", "conditions": [full]}})
    assert waiting == Tried(why="Unschedulable: 0/2 nodes", sure=False)
    assert judged({"status": {"phase": "Failed", "reason": "Evicted"}}) == Tried(why="Evicted")

    def ended(**how: object) -> Tried:
        return judged({"status": {"phase": "Failed", "containerStatuses": [{"state": {"terminated": how}}]}})

    assert ended(exitCode=0, message="1.2\n") == Tried(version="1.2")
    assert ended(exitCode=1, message="a\nNo module named x\n") == Tried(why="No module named x")
    assert ended(exitCode=137, reason="OOMKilled") == Tried(why="hitchpost does not start in it (OOMKilled)")
