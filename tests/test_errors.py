"""Every error of ours has one root, which says how a command ends and what the hub answers."""

from __future__ import annotations

import ast
from importlib import import_module
from pathlib import Path

import pytest

import hitchpost
from hitchpost.errors import HitchpostError, NameTaken, NoSuchSession, StartFailed, UsageError, WorkspaceBusy
from hitchpost.hub.http.errors import code_and_text, status_and_body
from hitchpost.hub.http.grants import OWNER, Grant
from hitchpost.ops.sessions.remove import NotEnded
from hitchpost.ops.sessions.send import NotNow
from hitchpost.store.files import NewerSchema, Unreadable, WrongRun
from hitchpost.store.locks import LockTimeout, Removed

SOURCE = Path(hitchpost.__file__).parent
SIGNALS = {"cli.watch.Ended", "cli.watch.Resized"}
"""Not errors: raised by a signal handler, anywhere, so nothing that handles errors may catch them."""
EXIT_CODES = {1, 2, 3, 4, 5}


def exceptions() -> dict[str, type[BaseException]]:
    """Every exception class that the source defines, by its name."""
    found: dict[str, type[BaseException]] = {}
    for path in sorted(SOURCE.rglob("*.py")):
        where = ".".join(path.relative_to(SOURCE).with_suffix("").parts)
        classes = [node.name for node in ast.parse(path.read_text()).body if isinstance(node, ast.ClassDef)]
        if not classes or "inside" in path.parts or where.endswith("__main__"):
            continue
        module = import_module(f"hitchpost.{where}")
        kinds = {name: getattr(module, name) for name in classes}
        found |= {f"{where}.{name}": kind for name, kind in kinds.items() if issubclass(kind, BaseException)}
    return found


def test_every_error_has_the_one_root():
    found = exceptions()
    assert len(found) > 30
    assert {name for name, kind in found.items() if not issubclass(kind, HitchpostError)} == SIGNALS


@pytest.mark.parametrize(
    ("name", "kind"), [(name, kind) for name, kind in exceptions().items() if issubclass(kind, HitchpostError)]
)
def test_every_error_says_how_a_command_ends_and_what_the_hub_answers(name: str, kind: type[HitchpostError]):
    assert kind.exit_code in EXIT_CODES
    assert 400 <= kind.http_status < 600
    assert kind.code.isidentifier()


@pytest.mark.parametrize(
    ("error", "exit_code", "status", "code"),
    [
        (Unreadable("state.json", "no object"), 1, 409, "unreadable"),
        (NewerSchema("state.json", 9), 4, 409, "newer_schema"),
        (LockTimeout("lock", 10), 1, 503, "busy"),
        (WrongRun(1, 2), 4, 409, "wrong_state"),
        (Removed("k3v9q0x2m7ab"), 3, 404, "not_found"),
    ],
)
def test_what_files_tell_is_an_answer_and_not_a_fault(error: HitchpostError, exit_code: int, status: int, code: str):
    assert error.exit_code == exit_code
    answered, body = status_and_body(error, Grant(OWNER))
    assert (answered, body["error"]["code"]) == (status, code)


def test_what_to_do_is_in_the_text_and_on_its_own():
    error = NoSuchSession("dev")
    assert str(error) == "no session 'dev'; hitch ps --all lists them"
    assert status_and_body(error, Grant(OWNER)) == (
        404,
        {"error": {"code": "not_found", "message": "no session 'dev'", "hint": "hitch ps --all lists them"}},
    )


def test_an_error_without_a_hint_is_its_message():
    assert (str(HitchpostError("no")), HitchpostError("no").hint) == ("no", "")


@pytest.mark.parametrize(
    ("error", "field"),
    [
        (NameTaken("dev", "k3v9q0x2m7ab"), "name"),
        (StartFailed("dev", "no such image", "sandbox.image"), "sandbox.image"),
        (StartFailed("dev", "program not found"), "command"),
        (UsageError("no such branch", field="branch"), "branch"),
        (UsageError("no"), None),
    ],
)
def test_an_error_about_one_field_names_it(error: HitchpostError, field: str | None):
    assert status_and_body(error, Grant(OWNER))[1]["error"].get("field") == field


@pytest.mark.parametrize(
    ("error", "typed", "shown"),
    [
        (WorkspaceBusy("shop", ["dev"]), "in use by dev; --share joins as a reader", "in use by dev"),
        (NotEnded("dev", "running"), "dev is running; stop it first, or use --force", "dev is running; stop it first"),
        (NotNow("dev", "it asks"), "it asks; see to that first, or use --force", "it asks; see to that first"),
    ],
)
def test_only_the_command_line_hears_of_its_options(error: HitchpostError, typed: str, shown: str):
    assert typed in str(error)
    told = code_and_text(error, Grant(OWNER))[1]
    assert shown in told
    assert "--" not in told
