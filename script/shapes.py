"""Writes ``ui/src/shapes.ts`` from the hub's own OpenAPI: ``script/ui shapes``. With ``--check`` it only compares."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

from hitchpost.hub.core import Hub
from hitchpost.hub.http.app import build
from hitchpost.hub.http.tokens import Tokens

FILE = Path(__file__).parents[1] / "ui" / "src" / "shapes.ts"
HEAD = """/**
 * What REST takes and gives, made by `script/ui shapes` from the hub's OpenAPI; not to be edited.
 * Fields and words that are not known here are to be ignored.
 */
"""
PLAIN = {"string": "string", "integer": "number", "number": "number", "boolean": "boolean", "null": "null"}

Schema = dict[str, Any]


def document() -> Schema:
    with tempfile.TemporaryDirectory() as home:
        app, _ = build(Hub(home), Tokens(home))
        return app.openapi()


def written(schemas: dict[str, Schema]) -> str:
    return "\n".join([HEAD, *(interface(name, schemas[name]) for name in sorted(schemas))])


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
    if "anyOf" in schema:
        return " | ".join(map(type_of, schema["anyOf"]))
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
    text = written(document()["components"]["schemas"])
    if "--check" not in sys.argv[1:]:
        FILE.write_text(text)
    elif FILE.read_text() != text:
        print(f"{FILE} is not what the hub's OpenAPI says; script/ui shapes writes it anew", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
