"""Options of a command as a table, for click and for commands that must not wait for its import.

Click takes longer to load than Python itself. ``parse`` understands what is plain; help, completion and every mistake
are click's, whose command ``as_click`` makes of the same table.
"""

from __future__ import annotations

from hitchpost.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

FLAG, TEXT, NUMBER, MANY = "flag", "text", "number", "many"


@value
class Option:
    """``word`` as it is typed; ``name`` of its value when that is another. ``complete`` offers values to the shell;
    ``within`` are the least and the greatest number."""

    word: str
    help: str = ""
    kind: str = TEXT
    name: str = ""
    metavar: str | None = None
    default: Any = None
    choices: tuple[str, ...] = ()
    within: tuple[float, float] = (0, 0)
    complete: Callable[..., Any] | None = None

    @property
    def key(self) -> str:
        return self.name or self.word.removeprefix("--").replace("-", "_")

    @property
    def missing(self) -> object:
        """The value when the option is not there."""
        return {FLAG: False, MANY: ()}.get(self.kind, self.default)


def parse(options: Sequence[Option], words: Sequence[str]) -> tuple[dict[str, Any], list[str]] | None:
    """Each option's value by its key, and the other words. None when click should look at it."""
    known = {option.word: option for option in options}
    values: dict[str, Any] = {option.key: option.missing for option in options}
    rest = []
    left = iter(words)
    for word in left:
        if not word.startswith("-"):
            rest.append(word)
            continue
        name, equals, text = word.partition("=")
        option = known.get(name)
        if option is None or (equals and option.kind == FLAG):
            return None
        if option.kind == FLAG:
            values[option.key] = True
            continue
        item = text if equals else next(left, None)
        if item is None or (option.choices and item not in option.choices):
            return None
        if option.kind == NUMBER:
            try:
                values[option.key] = float(item)
            except ValueError:
                return None
            if not option.within[0] <= values[option.key] <= option.within[1]:
                return None
        else:
            values[option.key] = (*values[option.key], item) if option.kind == MANY else item
    return values, rest


def as_click(option: Option) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The decorator that gives a click command this option."""
    import click

    told: dict[str, Any] = {"help": option.help}
    if option.kind == FLAG:
        told |= {"is_flag": True}
    else:
        kind: Any = click.Choice(option.choices) if option.choices else str
        if option.kind == NUMBER:
            from hitchpost.cli.common import Number

            kind = Number(*option.within)
        told |= {"type": kind, "metavar": option.metavar, "default": option.missing, "multiple": option.kind == MANY}
        told |= {"show_default": bool(option.choices)}
    if option.complete is not None:
        told["shell_complete"] = option.complete
    return click.option(option.word, option.key, **told)
