"""Small frozen classes, for modules that must load at once: ``hitch ps`` imports nothing slower than this.

``@value`` is what ``@dataclass(frozen=True)`` is, without its import: that costs more than the start of Python itself,
and a millisecond for each class. Type checkers treat the two alike. A value's fields are set through its ``__dict__``,
all at once: one after the other, which slots would ask for, takes five times as long.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeVar, dataclass_transform

    T = TypeVar("T")
else:

    def dataclass_transform(**told):
        return lambda decorator: decorator


@dataclass_transform(frozen_default=True)
def value(cls: type[T]) -> type[T]:
    """Give ``cls`` its fields, which are its annotated names; those with a value after ``=`` may be left out."""
    names = tuple(cls.__annotations__)
    defaults = {name: cls.__dict__[name] for name in names if name in cls.__dict__}
    every = frozenset(names)

    def begin(self: object, *items: object, **named: object) -> None:
        if len(items) == len(names) and not named:
            self.__dict__.update(zip(names, items, strict=True))
            return
        given = dict(zip(names, items, strict=False)) | named
        found = defaults | given
        if found.keys() != every or len(given) < len(items) + len(named):
            missing = [name for name in names if name not in found]
            wrong = f"missing {', '.join(missing)}" if missing else f"expected {', '.join(names)}"
            raise TypeError(f"{cls.__name__}: {wrong}")
        self.__dict__.update(found)

    for name, item in {**METHODS, "__init__": begin, "__match_args__": names}.items():
        setattr(cls, name, item)
    return cls


def fields(kind: object) -> tuple[str, ...]:
    """The names of the fields of a value or of its class, in order."""
    return kind.__match_args__  # type: ignore[attr-defined, no-any-return]


def asdict(instance: object, /) -> dict[str, Any]:
    """A value's fields, and those of the values in them."""
    return {name: _plain(getattr(instance, name)) for name in fields(instance)}


def replace(instance: T, /, **changes: Any) -> T:
    """A copy of a value with other fields. An unknown name is a ``TypeError``."""
    copy, names = object.__new__(type(instance)), fields(instance)
    copy.__dict__.update(instance.__dict__, **changes)
    if len(copy.__dict__) > len(names):
        unknown = ", ".join(name for name in changes if name not in names)
        raise TypeError(f"{type(instance).__name__}: expected {', '.join(names)}, but got {unknown}")
    return copy


def _plain(item: object) -> object:
    if type(item) is tuple:
        return tuple(map(_plain, item))
    return asdict(item) if hasattr(type(item), "__match_args__") else item


def _equal(self: object, other: object) -> bool:
    return self.__dict__ == other.__dict__ if type(self) is type(other) else NotImplemented


def _hash(self: object) -> int:
    return hash(tuple(getattr(self, name) for name in fields(self)))


def _repr(self: object) -> str:
    inside = ", ".join(f"{name}={getattr(self, name)!r}" for name in fields(self))
    return f"{type(self).__name__}({inside})"


def _refuse(self: object, name: str, *_: object) -> None:
    raise AttributeError(f"{type(self).__name__} does not change: cannot set {name!r}")


METHODS = {
    "__eq__": _equal,
    "__hash__": _hash,
    "__repr__": _repr,
    "__setattr__": _refuse,
    "__delattr__": _refuse,
}
