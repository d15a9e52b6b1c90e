from __future__ import annotations

import pytest

from hitchpost.hub.http.ws_connection import MESSAGES
from script.shapes import FILE, interface, messages, type_of, whole


def test_the_page_has_the_shapes_that_the_hub_has() -> None:
    assert FILE.read_text() == whole(), "script/ui shapes writes them anew"


def test_the_page_knows_every_message_that_the_hub_takes() -> None:
    unions, parts = messages()
    types = {name: type_of(part["properties"]["type"]) for name, part in parts.items() if "type" in part["properties"]}
    taken = [types[name] for name in type_of(unions["ClientMessage"]).split(" | ")]
    assert sorted(" | ".join(taken).split(" | ")) == sorted(f'"{kind}"' for kind in MESSAGES)
    assert types["Input"] == '"terminal.input" | "terminal.answer"'
    assert types["Attached"] == '"session.attached"'


def test_every_kind_of_field_gets_its_type() -> None:
    schema = {
        "description": "What ``one`` is.\n\nMore of it.",
        "properties": {
            "id": {"type": "string"},
            "exit": {"anyOf": [{"$ref": "#/components/schemas/Exit"}, {"type": "null"}]},
            "sizes": {"type": "array", "items": {"anyOf": [{"type": "integer"}, {"type": "null"}]}},
            "counts": {"type": "object", "additionalProperties": {"type": "number"}},
        },
        "required": ["id", "exit"],
        "additionalProperties": True,
    }
    assert interface("One", schema).splitlines() == [
        "/** What `one` is. */",
        "export interface One {",
        "  id: string;",
        "  exit: Exit | null;",
        "  sizes?: (number | null)[];",
        "  counts?: Record<string, number>;",
        "  [field: string]: unknown;",
        "}",
    ]
    with pytest.raises(ValueError, match="no TypeScript"):
        type_of({"type": "whatever"})
