"""Leases of volumes: which pod, with which run, may work on a session's files. Never two."""

from __future__ import annotations

from dataclasses import dataclass

from hitchpost.errors import Refused
from hitchpost.fleet.database import Database


@dataclass(frozen=True, slots=True)
class Lease:
    """``pod`` is the pod's uid: another pod of the same name is another one."""

    volume: str
    session: str
    pod: str
    run: int


class VolumeBusy(Refused):
    """Raised when another pod may still work on the volume."""

    def __init__(self, holder: Lease) -> None:
        super().__init__(
            f"volume {holder.volume} is leased to pod {holder.pod} for run {holder.run} of session {holder.session}",
            "it is given back when that pod is known to be gone",
        )
        self.holder = holder


def take(database: Database, lease: Lease, *, force: bool = False) -> Lease | None:
    """Lease the volume; the same pod may take it again, for the same run or the next. Raises ``VolumeBusy``.

    ``force`` takes it from whoever has it: two agents may work on the same files then. Who had it, if another did.
    """
    with database.transaction() as held:
        words = (lease.volume, lease.session, lease.pod, lease.run)
        taken = held.execute(
            "insert into leases (volume, session, pod, run) values (%s, %s, %s, %s) on conflict do nothing returning 1",
            words,
        ).fetchone()
        if taken is not None:
            return None
        row = held.execute(
            "select volume, session, pod, run from leases where volume = %s for update", (lease.volume,)
        ).fetchone()
        before = None if row is None else Lease(*row)
        is_ours = before is not None and before.pod == lease.pod and before.run <= lease.run
        if before is not None and not is_ours and not force:
            raise VolumeBusy(before)
        held.execute(
            "insert into leases (volume, session, pod, run) values (%s, %s, %s, %s) on conflict (volume) do update"
            " set session = excluded.session, pod = excluded.pod, run = excluded.run, taken_at = now()",
            words,
        )
        return None if is_ours else before


def give_back(database: Database, volume: str, pod: str) -> bool:
    """The pod is known to be gone, or to have ended its run. False when the lease is not that pod's."""
    with database.transaction() as held:
        found = held.execute("delete from leases where volume = %s and pod = %s returning 1", (volume, pod)).fetchone()
    return found is not None


def holder(database: Database, volume: str) -> Lease | None:
    with database.connections.connection() as asking:
        row = asking.execute("select volume, session, pod, run from leases where volume = %s", (volume,)).fetchone()
    return None if row is None else Lease(*row)
