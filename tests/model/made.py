"""Facts for the tests of the model: one moment to look from, and every combination that hypothesis can think of."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

from hypothesis import strategies as st

from hitchpost.model import facts, record, rhythm, run
from hitchpost.model.attention import LIMIT
from hitchpost.model.facts import Exit, Facts, Pod, Report
from hitchpost.model.limits import LATE_AFTER_S, TELLING_S

NOW = datetime(2026, 11, 16, 12, 0, tzinfo=UTC)
STATES = tuple(run.TRANSITIONS)
RECORDS = tuple(record.RECORD_TRANSITIONS)
RUNTIMES = (facts.LOCAL, facts.TMUX, facts.DOCKER, "pod")


def ago(seconds: float) -> datetime:
    return NOW - timedelta(seconds=seconds)


def running(**changes: object) -> Facts:
    """A local run, ten minutes old, whose keeper lives and whose agent wrote something a second ago."""
    usual: dict[str, object] = {
        "created_at": ago(700),
        "state": run.RUNNING,
        "state_changed_at": ago(600),
        "started_at": ago(600),
        "last_activity_at": ago(1),
        "keeper_alive": True,
        "same_boot": True,
    }
    return Facts(**usual | changes)  # type: ignore[arg-type]


def ended(state: str, end: Exit | None = None, **changes: object) -> Facts:
    """``running``, after its end."""
    return running(state=state, exit=end, keeper_alive=False, **changes)


def reported(state: str) -> Report:
    return Report(state=state, source="osc 7501", at=ago(1))


# as any moment from 2020 to 2030, and several times as fast to draw as st.datetimes
moments = st.integers(0, 10 * 365 * 86_400_000_000).map(
    lambda microseconds: datetime(2020, 1, 1, tzinfo=UTC) + timedelta(microseconds=microseconds)
)
perhaps = st.none() | st.booleans()
signals = st.sampled_from((("SIGKILL", 9), ("SIGSEGV", 11), ("SIGTERM", 15)))
intents = st.none() | st.sampled_from(run.INTENTS)
errors = st.none() | st.sampled_from((run.KEEPER_LOST, run.REBOOT, "container removed", "no such program: claud"))


@st.composite
def exits(draw: st.DrawFn) -> Exit:
    """Any end: with a code, by a signal, or unseen."""
    code, (signal, number) = draw(
        st.tuples(st.integers(0, 255), st.just((None, None)))
        | st.tuples(st.none(), signals)
        | st.just((None, (None, None)))
    )
    return Exit(
        code=code,
        signal=signal,
        signal_number=number,
        core_dumped=draw(st.booleans()),
        intent=draw(intents),
        error=draw(errors),
        survivors=draw(st.integers(0, 3)),
        attention=draw(st.none() | st.just("working")),
        ended_at=draw(st.none() | moments),
        ended_at_known=draw(st.booleans()),
        torn_down_at=draw(st.none() | moments),
    )


reports = st.builds(
    Report,
    state=st.sampled_from(("idle", "working", "blocked", "done", "error", "clear", "a word of next year")),
    source=st.just("osc 7501"),
    at=moments,
)


def facts_with(**fixed: st.SearchStrategy[object]) -> st.SearchStrategy[Facts]:
    """Any facts, also such as contradict each other; ``fixed`` narrows a field."""
    fields: dict[str, st.SearchStrategy[object]] = {
        "created_at": moments,
        "state": st.sampled_from(STATES),
        "state_changed_at": st.none() | moments,
        "record": st.sampled_from(RECORDS),
        "runtime": st.sampled_from(RUNTIMES),
        "run": st.integers(1, 9),
        "started_at": st.none() | moments,
        "last_activity_at": st.none() | moments,
        "last_alive_at": st.none() | moments,
        "exit": st.none() | exits(),
        "report": st.none() | reports,
        "keeper_alive": perhaps,
        "same_boot": perhaps,
        "sandbox_alive": perhaps,
        "session_alive": perhaps,
        "sandbox_paused": st.booleans(),
        "process_stopped": st.booleans(),
        "keeper_stopped": st.booleans(),
        "doubt": st.sampled_from(["", "keeper stopped"]),
        "probe_failed": st.booleans(),
        "workspace_missing": st.booleans(),
        "supports_resume": st.booleans(),
        "idle_after_s": st.sampled_from((5.0, 30.0, 300.0)),
        "quiet_after_s": st.sampled_from((3.0, 10.0)),
        "earlier_runs_s": st.floats(0, 1e6),
    }
    return st.builds(Facts, **fields | fixed)


# Facts of which time alone changes the words, within some minutes before NOW or after it
near = st.integers(-900_000_000, 900_000_000).map(lambda microseconds: NOW + timedelta(microseconds=microseconds))


def builds_running(**fields: st.SearchStrategy[object]) -> st.SearchStrategy[Facts]:
    usual = {"started_at": st.just(ago(1000)), "state_changed_at": st.just(ago(1000))}
    return st.fixed_dictionaries(usual | fields).map(lambda found: running(**found))


@st.composite
def at_a_limit(draw: st.DrawFn) -> Facts:
    at = draw(near)
    return running(
        started_at=ago(1000),
        last_activity_at=ago(1000),
        report=Report("error", "hooks", at, kind=LIMIT, ends_at=draw(st.none() | near)),
        when_limit="wait",
        gone_on_from=draw(st.none() | st.just(at)),
        gone_on_at=draw(st.none() | near),
        gone_on_known=draw(st.booleans()),
    )


@st.composite
def at_a_limit_until_some_day(draw: st.DrawFn) -> Facts:
    """Its words name the day, unless that is today where the agent is."""
    hours = draw(st.integers(-48, 48))
    zone = timezone(timedelta(hours=draw(st.integers(-12, 14))))
    ends_at = (NOW + timedelta(hours=hours)).astimezone(zone)
    return running(
        started_at=ago(1000),
        last_activity_at=ago(1000),
        report=Report("error", "hooks", ago(900), kind=LIMIT, ends_at=ends_at),
        when_limit=draw(st.sampled_from(("wait", "stop"))),
    )


silences = {
    "last_activity_at": st.none() | near,
    "busy_since": st.none() | near,
    "idle_after_s": st.sampled_from((0.1, 30.0, 1e300)),
    "quiet_after_s": st.sampled_from((0.3, 3.0)),
    "longest_pause_s": st.sampled_from((0.0, 1.0, 7.0, 1e9)),
}
snoozed = builds_running(
    snoozed_until=near, report=st.none() | st.builds(Report, st.sampled_from(("idle", "done")), st.just("hooks"), near)
)
unreached = builds_running(
    runtime=st.just("pod"),
    keeper_alive=st.none(),
    probe_failed=st.just(True),
    pod=st.builds(Pod, st.just("pod"), uid=st.just("1"), node=st.just("n1"), unreachable_since=near),
)
FACTS_THAT_WAIT = {
    "silent": builds_running(**silences),
    "at a limit": at_a_limit(),
    "at a limit until some day": at_a_limit_until_some_day(),
    "snoozed": snoozed,
    "unreached": unreached,
    "any": facts_with(snoozed_until=near),
}


@st.composite
def around_a_turn(draw: st.DrawFn, facts: Facts) -> tuple[datetime, datetime]:
    """Two moments, one after the other, about one from which other words may count."""
    begin, report = facts.last_activity_at or facts.started_at or NOW, facts.report
    turns = [begin, facts.snoozed_until]
    waits_s = (facts.quiet_after_s, rhythm.quiet_after_s(facts), facts.idle_after_s)
    turns += [begin + timedelta(seconds=wait_s) for wait_s in waits_s if wait_s < 1e9]
    if report is not None and report.ends_at is not None:
        turns.append(report.ends_at + timedelta(seconds=LATE_AFTER_S))
        midnight = report.ends_at.replace(hour=0, minute=0, second=0, microsecond=0)
        turns += [midnight, midnight + timedelta(days=1)]
    if facts.gone_on_at is not None:
        turns.append(facts.gone_on_at + timedelta(seconds=TELLING_S))
    turn = draw(st.sampled_from([turn for turn in turns if turn is not None]))
    aside = st.sampled_from((-10_000_000, -20_000, -11, -2, -1, 0, 1, 2, 20_000, 10_000_000))
    first, later = sorted((draw(aside), draw(aside)))
    return turn + timedelta(microseconds=first), turn + timedelta(microseconds=later)
