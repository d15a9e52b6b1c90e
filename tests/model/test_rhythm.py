from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from hitchpost.model.facts import Facts
from hitchpost.model.rhythm import MOST_PAUSES, quiet_after_s, stretch
from hitchpost.model.status import status
from tests.model.made import NOW, ago, running

QUIET_S, IDLE_S = 3.0, 30.0


def printed(*ago_s: float, asked: tuple[float, ...] = ()) -> Facts:
    """What is known of a run that has printed so many seconds ago, the last time last; ``asked``: after keys."""
    times = [(NOW.timestamp() - each, each in asked) for each in reversed(ago_s)]
    since, longest_s = stretch(times, QUIET_S, IDLE_S)
    begun = None if since is None else ago(NOW.timestamp() - since)
    return running(last_activity_at=ago(ago_s[-1]), busy_since=begun, longest_pause_s=longest_s)


def headlines(times: list[float], every_s: float = 0.5) -> list[str]:
    """What is said from the first output to the last, about an agent that prints at these seconds."""
    said = []
    now_s = times[0]
    while now_s <= times[-1]:
        said.append(status(printed(*(now_s - at for at in times if at <= now_s)), NOW).headline)
        now_s += every_s
    return [said[0], *(new for old, new in pairwise(said) if new != old)]


def test_an_agent_that_prints_every_eight_seconds_is_quiet_once_at_first_and_then_works() -> None:
    assert headlines([8.0 * number for number in range(20)]) == ["Working", "Quiet", "Working"]


@given(st.lists(st.floats(3.1, 10.0), min_size=30, max_size=30))
def test_an_agent_that_prints_every_three_to_ten_seconds_works(pauses: list[float]) -> None:
    times = [0.0, 6.0, 12.0]
    for pause_s in pauses:
        times.append(times[-1] + pause_s)
    assert headlines(times) == ["Working", "Quiet", "Working"]


def test_it_works_since_it_was_quiet_last() -> None:
    shown = status(printed(600, 40, 30, 22, 14, 6), NOW)
    assert (shown.headline, shown.since) == ("Working", ago(30)), "the pause before was the first of its kind"
    shown = status(printed(600, 40, 39, 1), NOW)
    assert shown.since == ago(1)


def test_of_a_very_long_time_only_the_end_is_looked_at() -> None:
    steadily = [float(second) for second in range(5 * MOST_PAUSES + 400, 0, -5)]
    times = [(NOW.timestamp() - each, False) for each in reversed(steadily)]
    assert stretch(times, QUIET_S, IDLE_S) == (None, 5.0)
    assert printed(*steadily, 0.0).busy_since is None
    later = [*(each + 20 for each in steadily), 3.0]
    assert printed(*later).busy_since == ago(3)


def test_it_is_quiet_once_the_silence_is_clearly_longer_than_its_pauses_were() -> None:
    for silent_s, headline in ((13.9, "Working"), (14, "Quiet")):
        shown = status(printed(silent_s + 14, silent_s + 7, silent_s), NOW)
        assert (shown.headline, shown.section) == (headline, headline.lower())
    assert shown.since == ago(14)


def test_one_that_never_paused_is_quiet_after_a_short_silence() -> None:
    facts = printed(5, 4.5, 4, 3.5, 3)
    assert quiet_after_s(facts) == 3
    assert status(facts, NOW).headline == "Quiet"


def test_a_pause_of_long_ago_does_not_count() -> None:
    steadily = [float(second) for second in range(130, 0, -1)]
    assert quiet_after_s(printed(150, *steadily)) == 3
    assert quiet_after_s(printed(95, *steadily[50:])) == 30, "one of lately does"


def test_a_pause_in_which_somebody_typed_is_not_the_agents() -> None:
    facts = printed(17, 16, 4, asked=(4,))
    assert (quiet_after_s(facts), status(facts, NOW).headline) == (3, "Quiet"), "it answered a prompt 4 s ago"
    assert printed(17, 16, 2, asked=(2,)).busy_since == ago(2)
    assert printed(17, 16, 2, 1, asked=(2,)).busy_since == ago(2)
    every_time = (50.0, 38.0, 25.0, 13.0, 4.0)
    assert status(printed(*every_time, asked=every_time), NOW).headline == "Quiet"


def test_who_types_within_its_usual_pauses_ends_nothing() -> None:
    facts = printed(40, 30, 20, 16, 15, 5, asked=(16,))
    assert (facts.busy_since, facts.longest_pause_s) == (ago(30), 10)


def test_no_silence_is_longer_than_the_threshold_for_idle() -> None:
    assert quiet_after_s(running(longest_pause_s=25.0)) == 30
    assert quiet_after_s(running(longest_pause_s=25.0, idle_after_s=20.0)) == 20
    assert quiet_after_s(running(longest_pause_s=900.0, idle_after_s=3600.0)) == 30
    assert quiet_after_s(running(longest_pause_s=25.0, idle_after_s=0.1)) == 3


def test_nothing_is_known_of_what_printed_nothing() -> None:
    assert stretch([], QUIET_S, IDLE_S) == (None, 0.0)
    assert stretch([(7.0, True)], QUIET_S, IDLE_S) == (None, 0.0)
