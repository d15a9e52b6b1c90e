"""``@value``: small frozen classes without the cost of ``dataclasses``."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

import hitchpost
from hitchpost.values import asdict, fields, replace, value


@value
class Point:
    x: int
    y: int = 0

    @property
    def sum(self) -> int:
        return self.x + self.y


@value
class Line:
    begin: Point
    name: str = ""


def test_fields_are_given_by_place_or_name_and_some_may_be_left_out() -> None:
    assert (Point(1).x, Point(1).y, Point(1, 2).y, Point(y=3, x=1).sum) == (1, 0, 2, 4)
    assert fields(Point) == ("x", "y") == fields(Point(1))


@pytest.mark.parametrize(("given", "named"), [((), {}), ((1, 2, 3), {}), ((1,), {"x": 1}), ((1,), {"z": 1})])
def test_anything_else_is_refused(given: tuple[int, ...], named: dict[str, int]) -> None:
    with pytest.raises(TypeError, match="Point: "):
        Point(*given, **named)


def test_a_value_does_not_change() -> None:
    point = Point(1)
    for deed in (lambda: setattr(point, "x", 2), lambda: setattr(point, "z", 2), lambda: delattr(point, "x")):
        with pytest.raises(AttributeError, match="Point does not change"):
            deed()
    assert point == Point(1)


def test_values_are_equal_by_their_fields_and_kind() -> None:
    assert Point(1, 2) == Point(1, 2) != Point(1, 3)
    different: object = Line(Point(1))
    assert Point(1) != different
    assert len({Point(1), Point(1, 0), Point(2)}) == 2
    assert repr(Line(Point(1))) == "Line(begin=Point(x=1, y=0), name='')"


def test_a_copy_with_other_fields_and_the_fields_as_a_dictionary() -> None:
    assert replace(Point(1, 2), y=5) == Point(1, 5)
    for unknown in ("z", "sum"):
        with pytest.raises(TypeError, match=f"Point: expected x, y, but got {unknown}"):
            replace(Point(1), **{unknown: 1})
    assert asdict(Line(Point(1), "a")) == {"begin": {"x": 1, "y": 0}, "name": "a"}


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])  # noqa: S301
def test_values_can_be_copied_and_sent(again) -> None:
    assert again(Line(Point(1), "a")) == Line(Point(1), "a")


def test_what_ps_needs_to_look_at_a_session_imports_nothing_slow() -> None:
    code = (
        f"import sys; sys.path.insert(0, {str(Path(hitchpost.__file__).parents[1])!r}); "
        "import hitchpost.cli.ps, hitchpost.ops.views.listing, hitchpost.ops.views.session_json; "
        "import hitchpost.runtimes.local; "
        "print(*sys.modules)"
    )
    answer = subprocess.run([sys.executable, "-I", "-S", "-c", code], check=True, capture_output=True, text=True)
    loaded = answer.stdout.split()
    slow = {"dataclasses", "inspect", "typing", "re", "logging", "secrets", "json", "pathlib", "subprocess", "click"}
    assert slow & set(loaded) == set()
