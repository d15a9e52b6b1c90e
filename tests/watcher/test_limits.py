"""When a usage limit ends, as the agent's text says it."""

from __future__ import annotations

import pytest

from hitchpost.watcher.limits import ends_at


@pytest.mark.parametrize(
    ("text", "when"),
    [
        ("no credits are left. Try again at 18:30.", "18:30"),
        ("Rate limit exceeded: please try again in 6.5 seconds, or later", "6.5 seconds"),
        ("Your limit resets on Nov 20 at 3pm (UTC)", "Nov 20 at 3pm"),
        ("Try again in a while.", ""),
        ("Try again later or check your quotas.", ""),
        ("", ""),
    ],
)
def test_a_text_says_when_a_limit_ends(text: str, when: str) -> None:
    assert ends_at(text) == when
