"""The import contract that import-linter has no type for."""

from __future__ import annotations

import sys

from grimp import ImportGraph
from importlinter import Contract, ContractCheck, fields, output


class Closed(Contract):
    """A set of modules that import only each other and the standard library.

    A module in the set stands for all that is inside it. Importing ``a.b.c`` runs ``a`` and ``a.b`` too, so the
    packages around the set are held to the same rule. Modules that do not exist yet break nothing.
    """

    type_name = "closed"

    modules = fields.SetField(subfield=fields.StringField())

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:
        inside: set[str] = set()
        around: set[str] = set()
        for name in self.modules & graph.modules:  # type: ignore[operator]
            inside |= {name, *graph.find_descendants(name)}
            parts = name.split(".")
            around |= {".".join(parts[:length]) for length in range(1, len(parts))}
        allowed = inside | around | sys.stdlib_module_names
        strays = [
            (
                importer,
                imported,
                [detail["line_number"] for detail in graph.get_import_details(importer=importer, imported=imported)],
            )
            for importer in sorted(inside | around)
            for imported in sorted(graph.find_modules_directly_imported_by(importer) - allowed)
        ]
        return ContractCheck(kept=not strays, metadata={"strays": strays})

    def render_broken_contract(self, check: ContractCheck) -> None:
        for importer, imported, lines in check.metadata["strays"]:
            output.print_error(f"- {importer} imports {imported} (line {', '.join(map(str, lines))})", bold=False)
        output.new_line()
