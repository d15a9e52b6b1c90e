"""How long an agent of which only its output tells is silent until it counts as quiet.

One that prints every few seconds has pauses that are longer than a short silence. They say nothing: it is quiet once it
is silent for clearly longer than it was lately. A pause in which somebody typed is that person's.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from hitchpost.model.facts import Facts

CLEARLY = 2.0
"""So many times the longest pause is longer than any that was usual."""
RECENT_S = 120.0
"""Pauses that ended so long before the last output tell how it prints now."""
MOST_PAUSES = 4096
"""So many are looked at: some hours of one that prints slowly."""
LONGEST_S = 30.0
"""After such a silence, output is something new, however long the threshold for idle is."""


def break_s(quiet_after_s: float, idle_after_s: float) -> float:
    """A silence that ends what was going on, whatever the pauses before it were."""
    return max(quiet_after_s, min(idle_after_s, LONGEST_S))


def quiet_after_s(facts: Facts) -> float:
    """How long the silence has to last."""
    return allowed_s(facts.longest_pause_s, facts.quiet_after_s, facts.idle_after_s)


def allowed_s(longest_pause_s: float, quiet_after_s: float, idle_after_s: float) -> float:
    """The same, from the longest recent pause and the two thresholds."""
    return max(quiet_after_s, min(CLEARLY * longest_pause_s, break_s(quiet_after_s, idle_after_s)))


def stretch(
    times_s: Iterable[tuple[float, bool]], quiet_after_s: float, idle_after_s: float
) -> tuple[float | None, float]:
    """Since when it is no longer quiet, and its longest recent pause. ``times_s`` has the moments of output, the last
    one first, and whether somebody typed in the pause before; pauses that are too short to count may be left out.
    Nothing is known of a beginning where they end without one, or after ``MOST_PAUSES``."""
    silence_s, short_s = break_s(quiet_after_s, idle_after_s), quiet_after_s / CLEARLY
    begun = newest = later = None
    is_asked = False
    pauses: list[tuple[float, float, bool]] = []
    for at, follows_input in times_s:
        if newest is None or later is None:
            newest, later, is_asked = at, at, follows_input
            continue
        pause_s = later - at
        if pause_s >= silence_s:
            begun = later
            break
        if pause_s >= short_s:
            pauses.append((at, pause_s, not is_asked))
            if len(pauses) > MOST_PAUSES:
                break
        later, is_asked = at, follows_input
    # what came before the first of them may have been as slow
    known_from = pauses[-1][0] + RECENT_S if len(pauses) > MOST_PAUSES else 0.0
    for number, (at, pause_s, _) in enumerate(pauses):
        is_end = pause_s >= quiet_after_s and not _is_usual(pause_s, at, pauses, number + 1)
        if is_end and at >= known_from:
            begun = at + pause_s
            break
    own = ((at, pause_s) for at, pause_s, is_own in pauses if is_own)
    recent = (pause_s for at, pause_s in own if newest is not None and newest - at - pause_s <= RECENT_S)
    return begun, max(recent, default=0.0)


def _is_usual(pause_s: float, at: float, pauses: list[tuple[float, float, bool]], first: int) -> bool:
    """Whether one of its own pauses before was not clearly shorter."""
    for number in range(first, len(pauses)):
        before, before_s, is_own = pauses[number]
        if at - before - before_s > RECENT_S:
            return False
        if is_own and pause_s < CLEARLY * before_s:
            return True
    return False
