"""What a link tells those who keep the fleet's files: what has just come into a hub's copy, and how the link is."""

from __future__ import annotations

from collections.abc import Callable

from hitchpost.values import value

UP, DOWN, FILE, OUTPUT, KEPT, OVER = "up", "down", "file", "output", "kept", "over"


@value
class News:
    """``FILE``: ``name`` in the session's folder has changed. ``OUTPUT``: so has ``name`` of ``run``'s output.
    ``KEPT``: a keeper has ``run``. ``OVER``: it is gone, and everything it has written is here. ``DOWN``: ``why`` the
    pod cannot be reached."""

    kind: str
    run: int = 0
    name: str = ""
    why: str = ""


OnNews = Callable[[News], None]
"""Called in a thread of the link's, in order, when the copy has it. The link waits: who is slow slows the pod down."""


def ignore(news: News) -> None:
    """For a copy that nobody else is made of."""
