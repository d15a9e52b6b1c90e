"""What a fleet needs, looked at from here: database, cluster, rights, storage classes and images.

It only looks, but for a pod that tries each image, and is removed again.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Iterator
from dataclasses import dataclass

from hitchpost.errors import FAILURES, DatabaseAway, HitchpostError
from hitchpost.fleet import manifests, reading
from hitchpost.fleet.configured import configured, connected, with_own_image
from hitchpost.fleet.connections import Connections, NotADatabase
from hitchpost.fleet.kube import ClusterAway, ClusterRefused, Kube, NoCluster, Object, Pod, StorageClass
from hitchpost.fleet.migrations import STEPS, OtherVersion, may_write
from hitchpost.fleet.profiles import FleetOptions, Profile
from hitchpost.fleet.rights import RIGHTS, Right
from hitchpost.fleet.view import utc_now
from hitchpost.model import pods
from hitchpost.ops.doctor.finding import Finding, note, ok, problem
from hitchpost.ops.sessions.environment import FLEET

DATABASE, CLUSTER, ACCESS, STORAGE, IMAGE = "database", "cluster", "rights", "storage", "image"
ASK_S = 5.0
TRY_S = 60.0
"""So long an image may take to be pulled and to start. One that needs longer is told as that."""
LOOK_S = 0.5
GRANT = "kubectl apply -k deploy/kubernetes grants them to the hubs of the cluster (docs/fleet.md)"
NOT_USABLE = (
    *reading.IMAGE_REASONS,
    reading.IMAGE_NOT_FOUND,
    "ErrImageNeverPull",
    "InvalidImageName",
    "CreateContainerError",
    "RunContainerError",
    "CrashLoopBackOff",
)
"""Why a pod waits when its image is to blame."""
USUAL_CLASS = "storageclass.kubernetes.io/is-default-class"


def checkup() -> Iterator[Finding]:
    yield from _database(os.environ.get(FLEET, "").strip())
    wanted = configured()
    try:
        kube = connected(wanted)
    except NoCluster as error:
        yield problem(CLUSTER, error.message, error.hint)
        return
    except ClusterAway as error:
        yield problem(CLUSTER, error.message, "correct its kubeconfig")
        return
    try:
        yield from _cluster(kube, wanted)
    finally:
        kube.close()


# The database ---------------------------------------------------------------------------------------------------


def _database(address: str) -> Iterator[Finding]:
    if not address:
        yield note(DATABASE, f"not looked at, because {FLEET} is not set here", f"set {FLEET} to its address")
        return
    try:
        connections = Connections(address, 1)
    except NotADatabase as error:
        yield problem(DATABASE, error.message, f"correct the address in {FLEET}")
        return
    where = connections.where
    try:
        with connections.connection() as asking:
            version = asking.info.parameter_status("server_version") or ""
            row = asking.execute(
                "select to_regclass('versions') is not null, has_schema_privilege(current_schema(), 'create')"
            ).fetchone()
            assert row is not None
            has_tables, may_make = row
            step = 0
            if has_tables:
                may_write(asking, where)
                found = asking.execute("select coalesce(max(version), 0) from versions").fetchone()
                step = 0 if found is None else found[0]
    except DatabaseAway as error:
        yield problem(
            DATABASE,
            f"PostgreSQL at {where} cannot be used: {error.why}",
            f"see that it runs, that this machine reaches it, and that name and password in {FLEET} are right",
        )
    except (OtherVersion, NotADatabase) as error:
        yield problem(DATABASE, error.message, error.hint or "see that its user may read and write its tables")
    else:
        if step < STEPS[-1].number and not may_make:
            yield problem(
                DATABASE,
                f"{where} has no tables of this version, and its user may not make any",
                "let the user own the database, or: grant create on schema public to the user",
            )
        else:
            text = f"PostgreSQL {version.partition(' ')[0]} at {where}"
            yield ok(DATABASE, text if step else f"{text}; the first hub makes its tables")
    finally:
        connections.close()


# The cluster ----------------------------------------------------------------------------------------------------


def _cluster(kube: Kube, wanted: FleetOptions) -> Iterator[Finding]:
    where = f"{kube.server}, namespace {kube.namespace}"
    try:
        missing = [right for right in RIGHTS if not _has(kube, right)]
        wanted = with_own_image(wanted, kube)
    except ClusterAway as error:
        yield problem(CLUSTER, error.message, "see that its API server runs, and that this machine reaches it")
        return
    except ClusterRefused as error:
        yield problem(CLUSTER, error.message, "see that the kubeconfig's user, or the hub's account, is known there")
        return
    yield ok(CLUSTER, where)
    yield from _rights(missing, kube)
    profiles = _profiles(wanted)
    lacks = {(right.verb, right.resource) for right in missing}
    if ("list", "storageclasses") not in lacks:
        yield from _storage(kube, profiles)
    if not {("create", "pods"), ("get", "pods"), ("delete", "pods")} & lacks:
        yield from _images(kube, profiles, wanted)


def _has(kube: Kube, right: Right) -> bool:
    return kube.may(right.verb, right.resource, group=right.group, namespace=right.namespace, name=right.name)


def _rights(missing: list[Right], kube: Kube) -> Iterator[Finding]:
    needed = [right for right in missing if right.needed]
    for without in dict.fromkeys(right.without for right in missing):
        rights = [right for right in missing if right.without == without]
        tell = problem if rights[0].needed else note
        yield tell(ACCESS, f"not allowed: {', '.join(map(str, rights))}; {without}", GRANT)
    if not needed:
        yield ok(ACCESS, f"all that a hub needs in namespace {kube.namespace}")


def _profiles(wanted: FleetOptions) -> dict[str, Profile]:
    return {name: wanted.chosen(name) for name in dict.fromkeys((wanted.profile, *wanted.profiles))}


def _of(profiles: dict[str, Profile], key: str) -> dict[str, str]:
    """What profiles have under this key, and the first of them that has it."""
    found: dict[str, str] = {}
    for name, profile in profiles.items():
        found.setdefault(getattr(profile, key), name)
    return found


def _storage(kube: Kube, profiles: dict[str, Profile]) -> Iterator[Finding]:
    try:
        classes = {item["metadata"]["name"]: item for item in kube.list(StorageClass, within_s=ASK_S)}
    except HitchpostError as error:
        yield problem(STORAGE, error.message, error.hint)
        return
    known = ", ".join(sorted(classes)) or "none"
    usual = [name for name, item in classes.items() if _is_usual(item)]
    for name, profile in _of(profiles, "storage_class").items():
        set_it = f"set storage_class in [fleet.profiles.{profile}] to one that the cluster has: {known}"
        if name in classes:
            yield ok(STORAGE, f"class {name} (profile {profile})")
        elif name:
            yield problem(STORAGE, f"no storage class {name}, which profile {profile} names", set_it)
        elif usual:
            yield ok(STORAGE, f"class {usual[0]}, the cluster's usual one (profile {profile})")
        else:
            yield problem(
                STORAGE, f"profile {profile} names no storage class, and the cluster has no usual one", set_it
            )


def _is_usual(item: Object) -> bool:
    return (item["metadata"].get("annotations") or {}).get(USUAL_CLASS) == "true"


# Images ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Tried:
    """What became of a pod that tries an image: ``version`` of hitchpost in it, or ``why`` there is none.

    Not ``sure``: it may yet come.
    """

    version: str = ""
    why: str = ""
    sure: bool = True


def _images(kube: Kube, profiles: dict[str, Profile], wanted: FleetOptions) -> Iterator[Finding]:
    for image, name in _of(profiles, "image").items():
        try:
            tried = _try(kube, profiles[name], wanted)
        except HitchpostError as error:
            yield problem(IMAGE, f"{image} could not be tried: {error.message}", error.hint)
            continue
        if tried.version:
            yield ok(IMAGE, f"{image} has hitchpost {tried.version} (profile {name})")
        elif tried.sure:
            yield problem(
                IMAGE,
                f"{image} cannot be used: {tried.why}",
                f"correct image in [fleet] or [fleet.profiles.{name}], or image_pull_secrets;"
                " docs/fleet.md says how the image is built",
            )
        else:
            yield note(IMAGE, f"{image} has not started within {TRY_S:g} s: {tried.why}", "try again later")


def _try(kube: Kube, profile: Profile, wanted: FleetOptions) -> Tried:
    """Start a pod with the image, see what it says, and remove it."""
    name = f"hitch-doctor-{secrets.token_hex(4)}"
    kube.create(Pod, manifests.trial(name, profile, wanted))
    try:
        deadline = time.monotonic() + TRY_S
        while True:
            item = kube.get(Pod, name, within_s=ASK_S)
            tried = Tried(why="its pod was deleted") if item is None else judged(item)
            if tried.sure or time.monotonic() > deadline:
                return tried
            time.sleep(LOOK_S)
    finally:
        _remove(kube, name)


def judged(item: Object) -> Tried:
    """What a pod that tries an image has told so far."""
    told = reading.told(item, utc_now())
    ended = _ended(item)
    if ended is not None:
        said = str(ended.get("message") or "").strip()
        if ended.get("exitCode") == 0 and said:
            return Tried(version=said.splitlines()[-1])
        return Tried(why=said.splitlines()[-1] if said else f"hitchpost does not start in it ({ended.get('reason')})")
    why = ": ".join(filter(None, (told.reason, told.message)))
    if told.phase in pods.OVER or (told.phase == pods.PENDING and told.reason in NOT_USABLE):
        return Tried(why=why or "its pod has ended")
    return Tried(why=why or f"its pod is {told.phase.lower() or 'new'}", sure=False)


def _ended(item: Object) -> Object | None:
    for status in (item.get("status") or {}).get("containerStatuses") or []:
        ended = (status.get("state") or {}).get("terminated")
        if isinstance(ended, dict):
            return ended
    return None


def _remove(kube: Kube, name: str) -> None:
    try:
        kube.delete(Pod, name, grace_s=0)
    except FAILURES:
        pass  # it has a deadline of its own
