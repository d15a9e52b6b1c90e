"""Writes ``ui/src/shapes.ts`` from the hub's own OpenAPI, WebSocket messages and words: ``script/ui shapes``.

With ``--check`` it only compares.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from hitchpost.hub.core import Hub
from hitchpost.hub.http.app import build
from hitchpost.hub.http.messages import ClientMessage, HubMessage
from hitchpost.hub.http.tokens import Tokens
from hitchpost.model import headline

FILE = Path(__file__).parents[1] / "ui" / "src" / "shapes.ts"
HEAD = """/**
 * What REST and the WebSocket take and give, and words of the model, made by `script/ui shapes`; not to be edited.
 * Fields and words that are not known here are to be ignored.
 */
"""
UNIONS: dict[str, Any] = {"ClientMessage": ClientMessage, "HubMessage": HubMessage}
"""What a client says over the WebSocket, and what the hub says."""
PLAIN = {"string": "string", "integer": "number", "number": "number", "boolean": "boolean", "null": "null"}

Schema = dict[str, Any]


def document() -> Schema:
    with tempfile.TemporaryDirectory() as home:
        app, _ = build(Hub(home), Tokens(home))
        return app.openapi()


def messages() -> tuple[dict[str, Schema], dict[str, Schema]]:
    """The unions of messages, and what they are made of."""
    unions: dict[str, Schema] = {}
    parts: dict[str, Schema] = {}
    for name, kind in UNIONS.items():
        unions[name] = TypeAdapter(kind).json_schema(ref_template="#/components/schemas/{model}")
        parts |= unions[name].pop("$defs")
    return unions, parts


def words() -> str:
    """What the page takes from the model's tables."""
    listed = ", ".join(f"{json.dumps(name)}: {json.dumps(title)}" for name, title in headline.SECTIONS.items())
    return f"""/** The parts of a list, in their order, and what they are called. */
export const SECTIONS = {{ {listed} }} as const;

/** The last rank that a person is told of. */
export const NEWS = {headline.NEWS};

/** The statuses of which a person is told no more once somebody has looked. */
export const SEEN: readonly string[] = {json.dumps(list(headline.SEEN))};
"""


def whole() -> str:
    """The text of the file. Raises ``ValueError`` when a message has the name of something else of REST."""
    rest = document()["components"]["schemas"]
    unions, parts = messages()
    clashes = sorted(name for name in parts if name in rest and fields(parts[name]) != fields(rest[name]))
    if clashes:
        raise ValueError(f"REST and the WebSocket mean different things by {', '.join(clashes)}")
    return written({**parts, **rest}, unions)


def fields(schema: Schema) -> set[str]:
    return set(schema["properties"])


def written(shapes: dict[str, Schema], unions: dict[str, Schema]) -> str:
    types = [f"export type {name} = {type_of(schema)};\n" for name, schema in unions.items()]
    return "\n".join([HEAD, *(interface(name, shapes[name]) for name in sorted(shapes)), *types, words()])


def interface(name: str, schema: Schema) -> str:
    about = schema.get("description", "").partition("\n")[0].replace("``", "`")
    lines = [f"/** {about} */"] if about else []
    lines.append(f"export interface {name} {{")
    required = schema.get("required", [])
    for field, of in schema["properties"].items():
        lines.append(f"  {field}{'' if field in required else '?'}: {type_of(of)};")
    if schema.get("additionalProperties") is True:
        lines.append("  [field: string]: unknown;")
    return "\n".join([*lines, "}\n"])


def type_of(schema: Schema) -> str:
    """Raises ``ValueError`` for what has not been needed yet."""
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "anyOf" in schema or "oneOf" in schema:
        return " | ".join(map(type_of, schema.get("anyOf") or schema["oneOf"]))
    if "const" in schema or "enum" in schema:
        return " | ".join(map(json.dumps, schema.get("enum") or [schema["const"]]))
    kind = schema.get("type")
    if kind == "array":
        of = type_of(schema["items"])
        return f"({of})[]" if " " in of else f"{of}[]"
    if kind == "object":
        values = schema.get("additionalProperties", True)
        return f"Record<string, {'unknown' if values is True else type_of(values)}>"
    if kind in PLAIN:
        return PLAIN[kind]
    raise ValueError(f"no TypeScript is known for {schema}")


def main() -> int:
    text = whole()
    if "--check" not in sys.argv[1:]:
        FILE.write_text(text)
    elif FILE.read_text() != text:
        print(f"{FILE} is not what the hub's schemas say; script/ui shapes writes it anew", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
