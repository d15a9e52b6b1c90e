"""Settings from ``config.toml``: ``$HITCHPOST_CONFIG``, else ``$XDG_CONFIG_HOME/hitchpost/config.toml``."""

from __future__ import annotations

import os

from hitchpost.errors import BadSettings
from hitchpost.store import files
from hitchpost.values import fields, replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

NOTHING: Mapping[str, str] = {}
IDLE_TIMEOUT = "AGENT_SESSION_IDLE_TIMEOUT"
"""A variable that counts more than ``reap_idle_minutes``."""
IDLE_AFTER: Mapping[str, float] = {"compile": 300.0, "aider": 60.0}
"""Seconds without output after which an agent, or a kind of program, is idle; ``idle_after_s`` is for all others."""


@value
class Settings:
    """Every key of the file, with what holds when it is not there."""

    grace_s: float = 10.0
    quiet_s: float = 3.0
    idle_after_s: float = 30.0
    idle_after: Mapping[str, float] = IDLE_AFTER
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
    pass_env: tuple[str, ...] = ()


CHOICES = {"survivors": ("keep", "kill"), "on_shutdown": ("keep", "suspend"), "restart": ("never", "on-failure")}
LISTS = {"env_files": "paths", "pass_env": "names"}
YEAR_S, MANY = 366 * 86400, 1 << 30
BOUNDS = {
    "grace_s": (0, YEAR_S),
    "quiet_s": (0, YEAR_S),
    "idle_after_s": (0, YEAR_S),
    "log_cap_mib": (1, MANY),
    "pids_max": (0, MANY),
    "memory_max_mib": (0, MANY),
    "sessions_max": (1, MANY),
    "reap_idle_minutes": (0, YEAR_S // 60),
    "reap_every_minutes": (0.001, YEAR_S // 60),
}


def config_path() -> str:
    if named := os.environ.get("HITCHPOST_CONFIG"):
        return named
    base = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    return os.path.join(base, "hitchpost", "config.toml")


def load(path: str | None = None) -> Settings:
    """The file and what the environment says. No file means the defaults. Raises ``BadSettings`` with what is wrong."""
    settings = _read(path)
    minutes = os.environ.get(IDLE_TIMEOUT, "").strip()
    if not minutes:
        return settings
    try:
        number: object = float(minutes)
    except ValueError:
        number = minutes
    key = "reap_idle_minutes"
    return replace(settings, **{key: _number("the environment", IDLE_TIMEOUT, number, BOUNDS[key])})


def _read(path: str | None) -> Settings:
    path = path or config_path()
    try:
        text = files.read_bytes(path, follow=True).decode() if path != os.devnull else ""
        import tomllib

        table = tomllib.loads(text)
    except FileNotFoundError:
        return Settings()
    except OSError as error:
        raise BadSettings(f"cannot read {path}: {(error.strerror or '').lower()}") from None
    except (ValueError, RecursionError) as error:
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
        if any(not name or "=" in name or "\0" in name + text for name, text in value.items()):
            raise BadSettings(f"{path}: expected env to be names without =, and texts without NUL")
        return value
    if key in LISTS:
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise wrong(f"a list of {LISTS[key]}")
        return tuple(value)
    if key == "idle_after":
        if not isinstance(value, dict):
            raise wrong("a table of seconds")
        return {
            **IDLE_AFTER,
            **{name: _number(path, f"{key}.{name}", item, BOUNDS["idle_after_s"]) for name, item in value.items()},
        }
    if key in CHOICES:
        if value not in CHOICES[key]:
            raise wrong(" or ".join(CHOICES[key]))
        return value
    if key in BOUNDS:
        return _number(path, key, value, BOUNDS[key], whole=not key.endswith(("_s", "_minutes")))
    if not isinstance(value, str):
        raise wrong("a text")
    return value


def _number(path: str, key: str, value: object, bounds: tuple[float, float], *, whole: bool = False) -> float:
    least, most = bounds
    kinds = int if whole else (int, float)
    if isinstance(value, bool) or not isinstance(value, kinds) or not least <= value <= most:
        expected = f"a {'whole ' if whole else ''}number from {least} to {most}"
        raise BadSettings(f"{path}: expected {key} to be {expected}, but got {value!r}")
    return value


def environment(settings: Settings) -> dict[str, str]:
    """The variables that ``env_files`` and ``[env]`` add to a run's environment. Values are never stored or shown."""
    found: dict[str, str] = {}
    for path in settings.env_files:
        try:
            lines = files.read_bytes(os.path.expanduser(path), follow=True).decode().splitlines()
        except OSError as error:
            raise BadSettings(f"cannot read the env file {path}: {(error.strerror or '').lower()}") from None
        except ValueError as error:
            raise BadSettings(f"cannot read the env file {path!r}: {error}") from None
        for number, line in enumerate(lines, 1):
            text = line.strip().removeprefix("export ")
            if not text or text.startswith("#"):
                continue
            name, equals, value = text.partition("=")
            if not equals or not name.strip() or "\0" in text:
                raise BadSettings(f"{path}, line {number}: expected NAME=value")
            found[name.strip()] = value.strip().strip("\"'")
    return {**found, **settings.env}
