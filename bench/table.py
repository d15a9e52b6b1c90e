"""The table that ``script/bench`` prints: one row for each figure, with what was wanted of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

HEADER = ["what", "ours", "anchor", "ratio", "wanted", "ok"]


@dataclass(frozen=True, slots=True)
class Wanted:
    """A limit. ``holds`` gets our figure and the anchor's; a limit on ratios has no meaning without an anchor."""

    text: str
    holds: Callable[[float, float], bool]


@dataclass(frozen=True, slots=True)
class Row:
    """One figure. ``sample`` says of how many it was made; ``note`` names the anchor."""

    what: str
    sample: str
    ours: float
    unit: str
    anchor: float | None = None
    note: str = ""
    wanted: Wanted | None = None

    @property
    def ratio(self) -> float | None:
        return self.ours / self.anchor if self.anchor else None

    @property
    def ok(self) -> bool | None:
        """None when nothing was wanted of this figure."""
        return None if self.wanted is None else self.wanted.holds(self.ours, self.anchor or 0.0)

    def as_json(self) -> dict[str, object]:
        return {
            "what": self.what,
            "sample": self.sample,
            "ours": self.ours,
            "unit": self.unit,
            "anchor": self.anchor,
            "anchor_is": self.note,
            "ratio": self.ratio,
            "wanted": self.wanted.text if self.wanted else None,
            "ok": self.ok,
        }


def at_most(limit: float, unit: str) -> Wanted:
    return Wanted(f"≤ {limit:g} {unit}", lambda ours, anchor: ours <= limit)


def exactly(count: float) -> Wanted:
    return Wanted(f"{count:g}", lambda ours, anchor: ours == count)


def at_most_times(factor: float) -> Wanted:
    return Wanted(f"≤ {factor:g} × anchor", lambda ours, anchor: ours <= factor * anchor)


def at_least_share(share: float) -> Wanted:
    return Wanted(f"≥ {share:.0%} of anchor", lambda ours, anchor: ours >= share * anchor)


def at_most_more(extra: float, unit: str) -> Wanted:
    return Wanted(f"≤ anchor + {extra:g} {unit}", lambda ours, anchor: ours <= anchor + extra)


def rendered(rows: list[Row]) -> str:
    lines = [HEADER]
    for row in rows:
        anchor = "" if row.anchor is None else figure(row.anchor, row.unit) + (f" ({row.note})" if row.note else "")
        lines.append(
            [
                f"{row.what} [{row.sample}]",
                figure(row.ours, row.unit),
                anchor,
                "" if row.ratio is None else f"{row.ratio:.2f}",
                row.wanted.text if row.wanted else "",
                {True: "ok", False: "over", None: ""}[row.ok],
            ]
        )
    return aligned(lines)


def aligned(lines: list[list[str]]) -> str:
    """A table whose first line is its header."""
    widths = [max(map(len, cells)) for cells in zip(*lines, strict=True)]
    padded = [" | ".join(cell.ljust(size) for cell, size in zip(line, widths, strict=True)).rstrip() for line in lines]
    padded.insert(1, "-|-".join("-" * size for size in widths))
    return "\n".join(padded)


def figure(value: float, unit: str) -> str:
    """Three digits are enough to compare."""
    if unit == "":
        return f"{value:g}"
    if value == 0 or abs(value) >= 100:
        return f"{value:,.0f} {unit}"
    return f"{value:.{2 if abs(value) < 10 else 1}f} {unit}"
