"""Counting what an agent has used. How far it was counted stays in the session's folder: no turn counts twice."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from hitchpost.errors import FAILURES
from hitchpost.model.usage import Tokens, Turn
from hitchpost.store import files, usage
from hitchpost.store.home import home_of
from hitchpost.store.session import Session

COUNTED = "counted.json"
MOST_MARKS = 100
"""Conversations that are remembered: the oldest go first."""


class Usage:
    """``mark``: how far a conversation was counted, in what its agent counts: bytes of a file, or tokens."""

    def __init__(self, session_folder: str, run: int) -> None:
        self._folder, self._run = session_folder, run

    def mark(self, conversation: str) -> Any:
        return self._marks().get(conversation)

    def count(self, conversation: str, mark: object, used: Mapping[str, Tokens]) -> None:
        """Write down what a turn has used, by model. A crash between the two files loses a turn; none is doubled."""
        marks = self._marks()
        marks.pop(conversation, None)
        kept = {**dict(list(marks.items())[-MOST_MARKS:]), conversation: mark}
        files.write_object(
            os.path.join(self._folder, COUNTED), {"schema": files.SCHEMA, "counted": kept}, durable=False
        )
        record, at = Session(self._folder, actor="agent").record(), files.stamp()
        for model, tokens in used.items():
            if tokens.total or tokens.cost_usd:
                project = record.repository or record.folder
                turn = Turn(at, record.id, record.name, record.agent, project, self._run, model, tokens)
                usage.note(home_of(self._folder), turn)

    def began(self) -> str:
        """When the session was made: what a conversation used before belongs to another."""
        return Session(self._folder, actor="agent").record().created_at

    def _marks(self) -> dict[str, Any]:
        try:
            found = files.read_object(os.path.join(self._folder, COUNTED)).get("counted")
        except (files.Unreadable, *FAILURES):
            return {}
        return found if isinstance(found, dict) else {}
