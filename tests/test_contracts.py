from __future__ import annotations

from typing import Any

from grimp import ImportGraph

from script.contracts import Closed


def strays(*imports: tuple[str, str]) -> list[Any]:
    graph = ImportGraph()
    for name in ("a", "a.keeper", "a.keeper.log", "a.model", "a.model.run", "a.model.facts", "a.cli"):
        graph.add_module(name)
    for name in ("os", "click"):
        graph.add_module(name, is_squashed=True)
    for importer, imported in imports:
        graph.add_import(importer=importer, imported=imported, line_number=7, line_contents="…")
    contract = Closed("light", {}, {"modules": ["a.keeper", "a.model.run", "a.not_yet"]})
    check = contract.check(graph, verbose=False)
    assert check.kept == (not check.metadata["strays"])
    return check.metadata["strays"]


def test_a_closed_set_may_import_itself_its_packages_and_the_standard_library():
    assert strays(("a.keeper.log", "a.model.run"), ("a.keeper", "os"), ("a.keeper.log", "a.model")) == []


def test_a_closed_set_imports_no_sibling():
    assert strays(("a.keeper.log", "a.model.facts")) == [("a.keeper.log", "a.model.facts", [7])]


def test_a_closed_set_imports_no_third_party():
    assert strays(("a.model.run", "click")) == [("a.model.run", "click", [7])]


def test_the_packages_around_a_closed_set_are_as_light_as_the_set():
    assert strays(("a.model", "a.model.facts"), ("a", "a.cli")) == [
        ("a", "a.cli", [7]),
        ("a.model", "a.model.facts", [7]),
    ]


def test_modules_outside_a_closed_set_import_what_they_like():
    assert strays(("a.cli", "click"), ("a.cli", "a.keeper.log"), ("a.model.facts", "click")) == []
