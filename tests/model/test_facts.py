from __future__ import annotations

from dataclasses import FrozenInstanceError

import pytest

from hitchpost.model.facts import Exit, Facts
from tests.model.made import NOW


@pytest.mark.ids("A22-8")
@pytest.mark.parametrize(
    ("end", "code"),
    [
        (Exit(code=3), 3),
        (Exit(signal="SIGSEGV", signal_number=11), 139),
        (Exit(), None),
    ],
)
def test_a_shell_would_give_the_code_or_128_and_the_signal_or_nothing(end: Exit, code: int | None) -> None:
    assert end.shell_code == code


def test_what_nobody_looked_at_is_not_known() -> None:
    facts = Facts(created_at=NOW)
    assert (facts.keeper_alive, facts.same_boot, facts.sandbox_alive, facts.session_alive) == (None, None, None, None)


@pytest.mark.ids("X25", "A31-7", "A22-10")
def test_output_is_quiet_after_3_seconds_and_shown_as_idle_after_30() -> None:
    facts = Facts(created_at=NOW)
    assert (facts.quiet_after_s, facts.idle_after_s) == (3, 30)


def test_facts_do_not_change() -> None:
    facts = Facts(created_at=NOW)
    with pytest.raises(FrozenInstanceError):
        facts.state = "completed"  # type: ignore[misc]
