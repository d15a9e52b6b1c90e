"""What each person uses of a fleet, counted in PostgreSQL, and the check before one uses more.

The check is made in the transaction that makes the start of a run durable, whichever hub it is at: two starts at once
cannot both have the last place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from hitchpost import lightjson
from hitchpost import settings as config
from hitchpost.errors import MALFORMED, UsageError
from hitchpost.fleet.connections import Connection
from hitchpost.fleet.migrations import LOCK
from hitchpost.fleet.profiles import FleetOptions, Profile, options
from hitchpost.fleet.stored import WHOLE, Change
from hitchpost.model import run as runs
from hitchpost.model.people import NO_QUOTA, Amounts, Quota, amount
from hitchpost.store import files, records

PEOPLE = LOCK + 1
"""Of PostgreSQL's advisory locks with two numbers: the first one, where the second is a person's."""
BEGINNING = (runs.CREATED, runs.STARTING)
USING = (runs.CREATED, *runs.LIVE)
"""States in which a session uses a place, processors and memory: also before its first run, which comes at once."""
IN_PODS = "pod"
OWNED = (
    "select owned.session, owned.data, state.data from files owned"
    " left join files state on state.session = owned.session and state.name = %s"
    " where owned.name = %s and owned.data is not null and convert_from(owned.data, 'UTF8')::json ->> 'owner' = any(%s)"
)


class Quotas:
    """``quota_of`` says what a person may use. It is asked in the threads of operations."""

    def __init__(self) -> None:
        self.quota_of: Callable[[str], Quota] = lambda name: NO_QUOTA
        self.options: Callable[[], FleetOptions] = lambda: options(config.load())

    def admit(self, held: Connection, session: str, folder: str, found: list[Change]) -> None:
        """Before the changes are written. Raises ``QuotaReached`` when they begin a run that its owner may not have."""
        if _state(found) not in BEGINNING:
            return
        record = records.read(folder)
        quota = self.quota_of(record.owner) if record.owner else NO_QUOTA
        if not quota.is_any:
            return
        held.execute("select pg_advisory_xact_lock(%s, hashtext(%s))", (PEOPLE, record.owner))
        used = self.used(held, [record.owner], besides=session).get(record.owner, Amounts())
        quota.check(record.owner, used, _cost(record.runtime, record.profile, True, self.options()))

    def used(self, asking: Connection, people: Iterable[str], besides: str = "") -> dict[str, Amounts]:
        """What each of them uses. Volumes stay when a run ends: their storage counts until the session is removed."""
        found: dict[str, Amounts] = {}
        profiles = self.options()
        for session, record, state in asking.execute(OWNED, (files.STATE, records.RECORD, [*people])).fetchall():
            if session == besides:
                continue
            told, now = _read(record), _read(state)
            cost = _cost(str(told.get("runtime")), str(told.get("profile") or ""), now.get("state") in USING, profiles)
            owner = str(told.get("owner"))
            found[owner] = found.get(owner, Amounts()) + cost
        return found


def _state(found: list[Change]) -> object:
    state = next((change for change in found if change.name == files.STATE and change.kind == WHOLE), None)
    return None if state is None else _read(state.data).get("state")


def _read(data: bytes | None) -> dict[str, object]:
    try:
        value = lightjson.loads(bytes(data or b"{}"))
    except MALFORMED:
        return {}
    return value if isinstance(value, dict) else {}


def _cost(runtime: str, profile: str, is_using: bool, profiles: FleetOptions) -> Amounts:
    """Of a session that is there. A profile that the settings have no more counts as the usual one."""
    cost = Amounts(sessions=1)
    if runtime == IN_PODS:
        try:
            chosen = profiles.chosen(profile)
        except UsageError:
            chosen = Profile()
        cost = Amounts(1, amount(chosen.cpu), amount(chosen.memory), amount(chosen.storage))
    return cost if is_using else replace(Amounts(), storage=cost.storage)
