"""What a keeper does later: each thing once, at a moment of the monotonic clock, and under a name."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Timer = Callable[[float], None]


class Timers:
    def __init__(self) -> None:
        self._set: dict[str, tuple[float, Timer]] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._set

    def at(self, name: str, moment: float, call: Timer) -> None:
        """One of the same name is replaced."""
        self._set[name] = (moment, call)

    def cancel(self, *names: str) -> None:
        for name in names:
            self._set.pop(name, None)

    def next_in_s(self, now: float) -> float:
        """Seconds until the next one, as epoll takes them: -1 when there is none."""
        return max(0.0, min(moment for moment, _ in self._set.values()) - now) if self._set else -1

    def due(self, now: float) -> Iterator[Timer]:
        """Those whose moment has come, each taken out as it is given: one may cancel another, or put it off."""
        for name in [name for name, (moment, _) in self._set.items() if moment <= now]:
            if name in self._set and self._set[name][0] <= now:
                yield self._set.pop(name)[1]
