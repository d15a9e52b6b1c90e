"""Commands that a hub elsewhere proposes, as they have to be typed here: with the context that they are for."""

from __future__ import annotations

import re

from hitchpost.cli.remote import contexts
from hitchpost.errors import HitchpostError

UNKNOWN = 401
"""The status of an answer to somebody whose token is not known."""


def elsewhere(text: str, context: str) -> str:
    """``text`` with the context in each command of it that can be for a hub elsewhere, unless every command is."""
    choice, _ = contexts.chosen(())
    if "hitch " not in text or choice.name == context:
        return text
    from hitchpost.cli.remote.acts import ACTS
    from hitchpost.cli.remote.table import ASKED

    names = "|".join(sorted({*ASKED, *(name.partition(" ")[0] for name in ACTS)}))
    return re.sub(rf"\bhitch (?=(?:{names})\b)", f"hitch {contexts.OPTION} {context} ", text)


def with_context(error: HitchpostError, context: str) -> HitchpostError:
    """A hub's error, whose hints can be followed here, or say where. Whom it does not know it answers nothing else."""
    from hitchpost.cli.remote.table import REFUSED

    def hint(text: str) -> str:
        if error.http_status == UNKNOWN and "hitch " in text:
            return f"on the machine of the hub, {text}"
        is_for_there = re.search(rf"\bhitch (?:{'|'.join(REFUSED)})\b", text)
        return elsewhere(f"on the machine of the hub, {text}" if is_for_there else text, context)

    error.hint, error.cli_hint = hint(error.hint), hint(error.cli_hint)
    return error
