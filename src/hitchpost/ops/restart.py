"""Restarting: a live run is stopped first; then the next run starts in the same folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from hitchpost.model import run as runs
from hitchpost.ops.recover import recover
from hitchpost.ops.start import Begun, check_place, start
from hitchpost.ops.stop import stop
from hitchpost.settings import Settings, environment


def restart(
    home: str,
    session: str,
    settings: Settings,
    *,
    caller: Mapping[str, str],
    size: tuple[int, int] = (80, 24),
    progress: Callable[[float], None] = lambda waited_s: None,
) -> Begun:
    """Raises what ``stop`` and ``start`` raise. A folder that is gone, or settings that are wrong, stop nothing.

    What an ended run left behind is ended too: it would work in the same folder as the next run.
    """
    seen = recover(home, session)
    check_place(seen)
    environment(settings)
    if seen.facts.state != runs.CREATED:
        stop(home, session, by=runs.RESTART, reason="restart", progress=progress)
    return start(home, session, settings, caller=caller, size=size, reason="restart")
