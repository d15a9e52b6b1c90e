"""What agents have used: tokens, and money where an agent tells it. Facts of single turns, and sums of them."""

from __future__ import annotations

from hitchpost.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

COUNTS = ("input", "cached", "cache_write", "output")
MOST_USD = 1e6
"""What an agent says of money beyond this is no amount."""


@value
class Tokens:
    """``input`` was read anew, ``cached`` from the provider's cache, ``cache_write`` was read and put there.

    ``cost_usd`` is what the agent itself says that it cost; None when it says nothing of it.
    """

    input: int = 0
    cached: int = 0
    cache_write: int = 0
    output: int = 0
    cost_usd: float | None = None

    def __add__(self, other: Tokens) -> Tokens:
        costs = [cost for cost in (self.cost_usd, other.cost_usd) if cost is not None]
        return Tokens(
            self.input + other.input,
            self.cached + other.cached,
            self.cache_write + other.cache_write,
            self.output + other.output,
            sum(costs) if costs else None,
        )

    def __sub__(self, other: Tokens) -> Tokens:
        """What came to ``other`` since. Never less than nothing: an agent may begin to count anew."""
        cost = self.cost_usd
        return Tokens(
            max(0, self.input - other.input),
            max(0, self.cached - other.cached),
            max(0, self.cache_write - other.cache_write),
            max(0, self.output - other.output),
            None if cost is None else max(0.0, cost - (other.cost_usd or 0.0)),
        )

    @property
    def total(self) -> int:
        return self.input + self.cached + self.cache_write + self.output


NOTHING = Tokens()


def amount(found: object) -> float | None:
    """Money as an agent tells it; None for what is no amount."""
    if isinstance(found, bool) or not isinstance(found, int | float) or not 0 <= found <= MOST_USD:
        return None
    return float(found)


def came_to(told: float, before: float) -> float:
    """What an agent that tells sums has added to the one that it told before. A smaller one begins anew."""
    return told - before if told >= before else told


@value
class Turn:
    """What one turn has used of one model, and whose turn it was. ``at`` is when its end was told."""

    at: str
    session: str
    name: str
    agent: str
    project: str
    run: int
    model: str
    tokens: Tokens


@value
class Sum:
    """``key`` is what all its turns have in common, such as a day."""

    key: str
    turns: int
    tokens: Tokens


def summed(turns: Iterable[Turn], key: Callable[[Turn], str]) -> list[Sum]:
    """One sum for each key, in the order of the keys. Two models in one turn are one turn."""
    tokens: dict[str, Tokens] = {}
    different: dict[str, set[tuple[str, str]]] = {}
    for turn in turns:
        name = key(turn)
        tokens[name] = tokens.get(name, NOTHING) + turn.tokens
        different.setdefault(name, set()).add((turn.session, turn.at))
    return [Sum(name, len(different[name]), tokens[name]) for name in sorted(tokens)]
