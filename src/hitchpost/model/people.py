"""People: their roles, and how much each may use. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace

from hitchpost.errors import HitchpostError, UsageError

OWNER, MEMBER, VIEWER = "owner", "member", "viewer"
ROLES = (OWNER, MEMBER, VIEWER)
NAME = re.compile(r"[a-z0-9][a-z0-9._@+-]{0,99}", re.ASCII)
NOT_NAMES = ("agent", "browser", "cli", "doctor", "hub", "keeper", "mcp", "pod", "recovery", "top")
"""Who else a story names as having done something."""
UNITS = {
    "": 1.0, "m": 1e-3, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15,
    "Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40, "Pi": 2.0**50,
}  # fmt: skip
AMOUNT = re.compile(r"(\d{1,15}(?:\.\d{1,3})?)(m|k|M|G|T|P|Ki|Mi|Gi|Ti|Pi)?", re.ASCII)
SHOWN_UNITS = ("Pi", "Ti", "Gi", "Mi", "Ki")
CPU = "cpu"


class QuotaReached(HitchpostError):
    """Raised when a person would use more than is allowed."""

    exit_code = 4
    http_status = 409
    code = "quota"

    def __init__(self, person: str, what: list[str]) -> None:
        super().__init__(
            f"{person} would use more than is allowed: {'; '.join(what)}",
            "stop or remove a session that is not needed; an owner can allow more",
        )
        self.person, self.what = person, what


@dataclass(frozen=True, slots=True)
class Amounts:
    """Sessions, processors, and bytes of memory and storage, that are used."""

    sessions: int = 0
    cpu: float = 0.0
    memory: float = 0.0
    storage: float = 0.0

    def __add__(self, other: Amounts) -> Amounts:
        return Amounts(*(getattr(self, each.name) + getattr(other, each.name) for each in fields(self)))

    def shape(self) -> dict[str, object]:
        return {name: shown(name, getattr(self, name)) for name in KINDS}


@dataclass(frozen=True, slots=True)
class Quota:
    """What a person may use at once; None where there is no limit."""

    sessions: int | None = None
    cpu: float | None = None
    memory: float | None = None
    storage: float | None = None

    @property
    def is_any(self) -> bool:
        return any(getattr(self, name) is not None for name in KINDS)

    def check(self, person: str, used: Amounts, wanted: Amounts) -> None:
        """Raises ``QuotaReached`` when what is wanted does not fit beside what is used.

        What is not wanted at all is not counted: who is over a limit already may still use what needs none of it.
        """
        over = []
        for name in KINDS:
            most, has, more = getattr(self, name), getattr(used, name), getattr(wanted, name)
            if most is not None and more > 0 and has + more > most:
                over.append(f"{name}: {shown(name, has)} used of {shown(name, most)}, {shown(name, more)} more wanted")
        if over:
            raise QuotaReached(person, over)

    def shape(self) -> dict[str, object]:
        """As it is written and shown; only what has a limit."""
        limits = {name: getattr(self, name) for name in KINDS}
        return {name: shown(name, most) for name, most in limits.items() if most is not None}

    def changed(self, wanted: Mapping[str, object]) -> Quota:
        """With these limits instead; ``none`` takes one away. Raises ``UsageError``."""
        return replace(self, **{name: _limit(name, text) for name, text in wanted.items()})  # type: ignore[arg-type]


KINDS = tuple(each.name for each in fields(Amounts))
NO_QUOTA = Quota()


@dataclass(frozen=True, slots=True)
class Person:
    """``role`` is what somebody may do at most: a token or a browser of theirs may have less."""

    name: str
    role: str
    quota: Quota = NO_QUOTA
    created_at: str = ""

    def shape(self) -> dict[str, object]:
        return {"name": self.name, "role": self.role, "quota": self.quota.shape(), "created_at": self.created_at}


def checked_name(text: str) -> str:
    """The name as it is stored. Raises ``UsageError``."""
    name = text.lower()
    if NAME.fullmatch(name) is None:
        raise UsageError(
            f"expected a name of letters, digits and ._@+-, such as anna or anna@example.org, but got {text[:100]!r}",
            field="name",
        )
    if name in NOT_NAMES:
        raise UsageError(f"{name!r} cannot be a person's name: stories call something else that", field="name")
    return name


def least(role: str, other: str) -> str:
    """The role that may do less."""
    return max(role, other, key=ROLES.index)


def amount(text: str) -> float:
    """What an amount is, as Kubernetes writes it: ``500m``, ``2`` or ``4Gi``. Raises ``ValueError``."""
    found = AMOUNT.fullmatch(text)
    if found is None:
        raise ValueError(text)
    return float(found[1]) * UNITS[found[2] or ""]


def shown(kind: str, value: float) -> int | float | str:
    """An amount for people, and for files: a number, or bytes in the largest unit that fits."""
    if kind == "sessions":
        return int(value)
    if kind == CPU:
        return int(value) if value == int(value) else round(value, 3)
    for unit in SHOWN_UNITS:
        if value >= UNITS[unit]:
            number = value / UNITS[unit]
            return f"{number:.0f}{unit}" if number == int(number) else f"{number:.3f}".rstrip("0") + unit
    return f"{value:.0f}"


def _natural(number: float) -> float:
    if not 0 <= number < float("inf"):
        raise ValueError(number)
    return number


def _limit(kind: str, text: object) -> float | int | None:
    if text is None or text == "none":
        return None
    try:
        if isinstance(text, bool):
            raise ValueError
        if kind == "sessions":
            return _natural(int(str(text)))
        return _natural(float(text)) if isinstance(text, (int, float)) else amount(str(text))
    except ValueError:
        expected = "a whole number, such as 5" if kind == "sessions" else "an amount, such as 2, 500m or 4Gi"
        raise UsageError(f"expected {kind} to be {expected}, or none, but got {str(text)[:40]!r}", field=kind) from None
