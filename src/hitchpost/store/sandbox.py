"""What a record says about its session's container. ``ops/sessions/sandbox.py`` makes it; each run starts from it."""

from __future__ import annotations

from hitchpost.values import fields, value


@value
class MountSource:
    """A folder or file that a person named with --config or --mount. ``given`` is the path as it was typed, ``path``
    where it led at that moment."""

    given: str
    path: str
    dev: int
    ino: int
    target: str = ""
    """Where it is in the container, and how, as in ``--mount``; empty for ``--config``."""

    @property
    def what(self) -> str:
        return f"--mount {self.given}{self.target}" if self.target else f"--config {self.given}"

    @property
    def is_writable(self) -> bool:
        """Whether the container can write there."""
        return bool(self.target) and not self.target.endswith(":ro")


@value
class StoredSandbox:
    """Empty and None mean what the settings say. ``sources`` is None where an older version has not written it."""

    image: str = ""
    mounts: tuple[str, ...] = ()
    network: str = ""
    memory_bytes: int | None = None
    cpus: float | None = None
    config: str | None = None
    sources: tuple[MountSource, ...] | None = None
    env_names: tuple[str, ...] = ()
    keep_failed: bool = False


_KINDS: dict[str, tuple[type, ...]] = {
    "str": (str,),
    "bool": (bool,),
    "str | None": (str, type(None)),
    "int | None": (int, type(None)),
    "float | None": (int, float, type(None)),
    "tuple[str, ...]": (list, tuple),
    "tuple[MountSource, ...] | None": (list, tuple, type(None)),
}


def from_json(stored: dict[str, object]) -> StoredSandbox:
    """Raises ``ValueError`` with the first thing that is wrong. Unknown keys are ignored."""
    known: dict[str, object] = {}
    for name, kind in StoredSandbox.__annotations__.items():
        if name not in stored:
            continue
        item = stored[name]
        if not isinstance(item, _KINDS[kind]) or (isinstance(item, bool) and kind != "bool"):
            raise ValueError(f"expected sandbox.{name} to be {kind}, but got {item!r}")
        if isinstance(item, (list, tuple)):
            item = tuple(map(_source if name == "sources" else str, item))
        known[name] = item
    return StoredSandbox(**known)  # type: ignore[arg-type]


def _source(item: object) -> MountSource:
    if not isinstance(item, dict) or not set(fields(MountSource)) <= item.keys():
        raise ValueError(f"expected sandbox.sources to be {', '.join(fields(MountSource))}, but got {item!r}")
    return MountSource(**{name: item[name] for name in fields(MountSource)})
