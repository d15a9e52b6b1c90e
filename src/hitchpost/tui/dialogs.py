"""The dashboard's dialogs: a question, a line of text, a new session, the keys."""

from __future__ import annotations

import os
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input, Label, Static

from hitchpost.text import visible

CLOSE = Binding("escape", "dismiss_with_nothing", "Close", show=False)


class Confirm(ModalScreen[bool]):
    """True when the person says yes."""

    BINDINGS: ClassVar = [
        CLOSE,
        Binding("y,enter", "yes", "Yes", show=False),
        Binding("n", "dismiss_with_nothing", "No", show=False),
    ]

    def __init__(self, question: str) -> None:
        super().__init__()
        self.question = question

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield Label(visible(self.question), markup=False)
            yield Label("y  yes    n  no", classes="hint", markup=False)

    def action_yes(self) -> None:
        self.dismiss(True)

    def action_dismiss_with_nothing(self) -> None:
        self.dismiss(False)


class Line(ModalScreen[str]):
    """One line of text; empty when the person closes it."""

    BINDINGS: ClassVar = [CLOSE]

    def __init__(self, question: str, detail: str = "") -> None:
        super().__init__()
        self.question, self.detail = question, detail

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield Label(visible(self.question), markup=False)
            if self.detail:
                yield Label(visible(self.detail, keep_newlines=True), classes="hint", markup=False)
            yield Input()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self.dismiss(event.value)

    def action_dismiss_with_nothing(self) -> None:
        self.dismiss("")


class NewSession(ModalScreen[dict[str, str]]):
    """The fields of ``deeds.new``; empty when the person closes it. Enter starts from any field."""

    BINDINGS: ClassVar = [CLOSE]
    FIELDS: ClassVar = {
        "text": "Prompt",
        "what": "Agent or command",
        "branch": "Branch of an own worktree",
        "folder": "Folder",
    }

    def __init__(self, what: str) -> None:
        super().__init__()
        self.before = {"what": what, "folder": os.getcwd()}

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield Label("New session", classes="title")
            for field, label in self.FIELDS.items():
                yield Label(label, classes="hint")
                yield Input(self.before.get(field, ""), id=field)
            yield Label("Enter starts it, Esc closes", classes="hint")

    def on_input_submitted(self, event: Input.Submitted) -> None:
        given = {field: self.query_one(f"#{field}", Input).value.strip() for field in self.FIELDS}
        if given["what"]:
            self.dismiss(given)
        else:
            self.query_one("#what", Input).focus()

    def action_dismiss_with_nothing(self) -> None:
        self.dismiss({})


class Keys(ModalScreen[None]):
    """Every key, until another is pressed."""

    def __init__(self, keys: str) -> None:
        super().__init__()
        self.keys = keys

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield Static(self.keys, markup=False)

    def on_key(self) -> None:
        self.dismiss(None)
