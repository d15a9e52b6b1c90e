"""Settings from ``config.toml``: ``$HITCHPOST_CONFIG``, else ``$XDG_CONFIG_HOME/hitchpost/config.toml``."""

from __future__ import annotations

import os

from hitchpost.errors import BadSettings
from hitchpost.values import fields, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

NOTHING: Mapping[str, str] = {}


@value
class Settings:
    """Every key of the file, with what holds when it is not there."""

    grace_s: float = 10.0
    quiet_s: float = 3.0
    log_cap_mib: int = 64
    survivors: str = "keep"
    detach_key: str = "ctrl-b d"
    pids_max: int = 8192
    memory_max_mib: int = 0
    on_shutdown: str = "keep"
    restart: str = "never"
    sessions_max: int = 500
    reap_idle_minutes: float = 30.0
    reap_every_minutes: float = 5.0
    image: str = "hitchpost-agent"
    network: str = "bridge"
    memory: str = "4g"
    env: Mapping[str, str] = NOTHING
    env_files: tuple[str, ...] = ()


CHOICES = {"survivors": ("keep", "kill"), "on_shutdown": ("keep", "suspend"), "restart": ("never", "on-failure")}
SMALLEST = {
    "grace_s": 0,
    "quiet_s": 0,
    "log_cap_mib": 1,
    "pids_max": 0,
    "memory_max_mib": 0,
    "sessions_max": 1,
    "reap_idle_minutes": 0,
    "reap_every_minutes": 0.001,
}


def config_path() -> str:
    if named := os.environ.get("HITCHPOST_CONFIG"):
        return named
    base = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    return os.path.join(base, "hitchpost", "config.toml")


def load(path: str | None = None) -> Settings:
    """Read the file; no file means the defaults. Raises ``BadSettings`` with the key that is wrong."""
    path = path or config_path()
    try:
        with open(path, "rb") as file:
            import tomllib

            table = tomllib.load(file)
    except FileNotFoundError:
        return Settings()
    except (OSError, ValueError) as error:
        raise BadSettings(f"cannot read {path}: {error}") from None
    known = set(fields(Settings))
    values: dict[str, object] = {}
    for key, item in table.items():
        if key not in known:
            raise BadSettings(f"{path} has an unknown key {key!r}; known are: {', '.join(sorted(known))}")
        values[key] = _checked(path, key, item)
    return Settings(**values)  # type: ignore[arg-type]


def _checked(path: str, key: str, value: object) -> object:
    def wrong(expected: str) -> BadSettings:
        return BadSettings(f"{path}: expected {key} to be {expected}, but got {value!r}")

    if key == "env":
        if not isinstance(value, dict) or not all(isinstance(item, str) for item in value.values()):
            raise BadSettings(f"{path}: expected env to be a table of texts")
        return value
    if key == "env_files":
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise wrong("a list of paths")
        return tuple(value)
    if key in CHOICES:
        if value not in CHOICES[key]:
            raise wrong(" or ".join(CHOICES[key]))
        return value
    if key in SMALLEST:
        whole = not key.endswith(("_s", "_minutes"))
        if isinstance(value, bool) or not isinstance(value, int if whole else (int, float)) or value < SMALLEST[key]:
            raise wrong(f"a {'whole ' if whole else ''}number of at least {SMALLEST[key]}")
        return value
    if not isinstance(value, str):
        raise wrong("a text")
    return value


def environment(settings: Settings) -> dict[str, str]:
    """The variables that ``env_files`` and ``[env]`` add to a run's environment. Values are never stored or shown."""
    found: dict[str, str] = {}
    for path in settings.env_files:
        try:
            with open(os.path.expanduser(path), encoding="utf-8") as file:
                lines = file.read().splitlines()
        except (OSError, ValueError) as error:
            raise BadSettings(f"cannot read the env file {path}: {error}") from None
        for number, line in enumerate(lines, 1):
            text = line.strip().removeprefix("export ")
            if not text or text.startswith("#"):
                continue
            name, equals, value = text.partition("=")
            if not equals or not name.strip():
                raise BadSettings(f"{path}, line {number}: expected NAME=value")
            found[name.strip()] = value.strip().strip("\"'")
    return {**found, **settings.env}
