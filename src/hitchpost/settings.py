"""Settings from ``config.toml``: ``$HITCHPOST_CONFIG``, else ``$XDG_CONFIG_HOME/hitchpost/config.toml``."""

from __future__ import annotations

import os

from hitchpost.errors import MALFORMED, BadSettings, HitchpostError
from hitchpost.store import files
from hitchpost.store.home import settings_folder
from hitchpost.values import replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from urllib.parse import SplitResult

    Check = Callable[[object], object]
    """Returns the value as ``Settings`` has it. Raises ``_Unexpected``."""

NOTHING: Mapping[str, str] = {}
NO_TABLE: Mapping[str, object] = {}
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
    detach_key: str = ""
    pids_max: int = 8192
    memory_max_mib: int = 0
    on_shutdown: str = "keep"
    restart: str = "never"
    resume_after_reboot: bool = False
    when_limit: str = "stop"
    limit_prompt: str = "continue"
    sessions_max: int = 500
    reap_idle_minutes: float = 30.0
    reap_every_minutes: float = 5.0
    image: str = "hitchpost-agent"
    network: str = "bridge"
    memory: str = "4g"
    env: Mapping[str, str] = NOTHING
    env_files: tuple[str, ...] = ()
    pass_env: tuple[str, ...] = ()
    host: str = "127.0.0.1"
    port: int = 8750
    tls_cert: str = ""
    tls_key: str = ""
    public_urls: tuple[str, ...] = ()
    owner_token_file: str = ""
    notify: Mapping[str, object] = NO_TABLE
    """Only what the file has: ``notify.options`` knows what holds otherwise."""
    mcp: Mapping[str, object] = NO_TABLE
    """The same; ``mcp.limits`` knows."""
    fleet: Mapping[str, object] = NO_TABLE
    """The same; ``fleet.profiles`` knows."""
    people: Mapping[str, object] = NO_TABLE
    """The same; ``hub.http.proxy`` knows."""


YEAR_S, MANY = 366 * 86400, 1 << 30
BOUNDS: Mapping[str, tuple[float, float]] = {
    "grace_s": (0, YEAR_S),
    "quiet_s": (0, YEAR_S),
    "idle_after_s": (0, YEAR_S),
    "log_cap_mib": (1, MANY),
    "pids_max": (0, MANY),
    "memory_max_mib": (0, MANY),
    "sessions_max": (1, MANY),
    "reap_idle_minutes": (0, YEAR_S // 60),
    "reap_every_minutes": (0.001, YEAR_S // 60),
    "port": (0, 65535),
}
OF_NOTIFY = ("ntfy_url", "ntfy_token", "webhook_url", "webhook_secret", "command")
SECRETS = ("env", *(f"notify.{key}" for key in OF_NOTIFY))
"""Keys whose values no message repeats."""
NEWS_KINDS = ("permission", "your-turn", "error", "failed", "finished", "hub")
"""What notifications are about: a headline by its rank, from 1 on, and the hub itself."""
NOTIFY_CHANNELS = ("browser", "push", "ntfy", "webhook", "command", "desktop", "terminal")
ESCAPES = {"n": "\n", "r": "\r", "t": "\t", "\\": "\\"}
"""In double quotes, after a backslash."""


def config_path() -> str:
    if named := os.environ.get("HITCHPOST_CONFIG"):
        return named
    return os.path.join(settings_folder(), "config.toml")


def load(path: str | None = None) -> Settings:
    """The file and what the environment says. Without a file the defaults hold. Raises ``BadSettings``."""
    settings = _read(path)
    minutes = os.environ.get(IDLE_TIMEOUT, "").strip()
    if not minutes:
        return settings
    try:
        number: object = float(minutes)
    except ValueError:
        number = minutes
    key = "reap_idle_minutes"
    return replace(settings, **{key: _checked("the environment", IDLE_TIMEOUT, number, CHECKS[key])})


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
    except MALFORMED as error:
        raise BadSettings(f"cannot read {path}: {error}") from None
    values: dict[str, object] = {}
    for key, item in table.items():
        if key not in CHECKS:
            raise BadSettings(f"{path} has an unknown key {key!r}; choose one of: {', '.join(sorted(CHECKS))}")
        values[key] = _checked(path, key, item, CHECKS[key])
    return Settings(**values)  # type: ignore[arg-type]


class _Unexpected(HitchpostError):
    """Raised by a check with what it expected; in a table, of which item, and what that is."""

    def __init__(self, expected: str, item: str = "", value: object = None) -> None:
        super().__init__(expected)
        self.item, self.value = item, value


def _checked(where: str, name: str, value: object, check: Check) -> object:
    """The value as ``Settings`` has it. Raises ``BadSettings``; the values of variables are not named."""
    try:
        return check(value)
    except _Unexpected as expected:
        if expected.item:
            name, value = f"{name}.{expected.item}", expected.value
        got = "" if name in SECRETS else f", but got {value!r}"
        raise BadSettings(f"{where}: expected {name} to be {expected}{got}") from None


def _text(value: object) -> object:
    if not isinstance(value, str):
        raise _Unexpected("a text")
    return value


def _truth(value: object) -> object:
    if not isinstance(value, bool):
        raise _Unexpected("true or false")
    return value


def _choice(*choices: str) -> Check:
    def check(value: object) -> object:
        if value not in choices:
            raise _Unexpected(" or ".join(choices))
        return value

    return check


def _list_of(items: str) -> Check:
    def check(value: object) -> object:
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise _Unexpected(f"a list of {items}")
        return tuple(value)

    return check


def _number(bounds: tuple[float, float], *, whole: bool = False) -> Check:
    least, most = bounds
    kinds = int if whole else (int, float)

    def check(value: object) -> object:
        if isinstance(value, bool) or not isinstance(value, kinds) or not least <= value <= most:
            raise _Unexpected(f"a {'whole ' if whole else ''}number from {least} to {most}")
        return value

    return check


def _variables(value: object) -> object:
    if not isinstance(value, dict) or not all(isinstance(item, str) for item in value.values()):
        raise _Unexpected("a table of texts")
    if any(not name or "=" in name or "\0" in name + text for name, text in value.items()):
        raise _Unexpected("names without =, and texts without NUL")
    return value


def _idle_after(value: object) -> object:
    if not isinstance(value, dict):
        raise _Unexpected("a table of seconds")
    for name, seconds in value.items():
        try:
            CHECKS["idle_after_s"](seconds)
        except _Unexpected as expected:
            raise _Unexpected(str(expected), name, seconds) from None
    return {**IDLE_AFTER, **value}


def _words(*choices: str) -> Check:
    def check(value: object) -> object:
        if not isinstance(value, list) or not all(item in choices for item in value):
            raise _Unexpected(f"a list of {', '.join(choices)}")
        return tuple(value)

    return check


def _kinds_of_sessions(value: object) -> object:
    if not isinstance(value, dict):
        raise _Unexpected("a table of sessions, each with a list of kinds")
    return {name: _words(*NEWS_KINDS)(kinds) for name, kinds in value.items()}


def quiet_hours(text: str) -> tuple[tuple[int, int], tuple[int, int]] | None:
    """Hours and minutes of both ends; None when it is not like ``22:00-07:00``."""
    numbers = text.replace("-", ":").split(":")
    if len(text) != 11 or text[5] != "-" or len(numbers) != 4 or not all(map(str.isdecimal, numbers)):
        return None
    begin_hour, begin, end_hour, end = map(int, numbers)
    fits = max(begin_hour, end_hour) < 24 and max(begin, end) < 60
    return ((begin_hour, begin), (end_hour, end)) if fits else None


def _quiet_hours(value: object) -> object:
    if not isinstance(value, str) or (value and quiet_hours(value) is None):
        raise _Unexpected('like "22:00-07:00", or empty')
    return value


def address(url: str) -> SplitResult | None:
    """The parts of a whole http or https URL of printable ASCII, without a name and password; None of anything else."""
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(url)
        fine = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0 and parts.username is None
    except ValueError:
        return None
    return parts if fine and url.isascii() and url.isprintable() and " " not in url else None


def _address(value: object) -> object:
    if not isinstance(value, str) or address(value) is None:
        raise _Unexpected("an https:// or http:// URL without a name and password")
    return value


def _topic(value: object) -> object:
    parts = address(value) if isinstance(value, str) else None
    if parts is None or not parts.path.strip("/") or parts.query or parts.fragment:
        raise _Unexpected("the URL of a topic, such as https://ntfy.sh/my-topic, without a name and password")
    return value


def _token(value: object) -> object:
    if not isinstance(value, str) or not value.isascii() or not value.isprintable() or " " in value:
        raise _Unexpected("a text without spaces")
    return value


def _command(value: object) -> object:
    words = _list_of("words, the program first")(value)
    if not words:
        raise _Unexpected("a list of words, the program first")
    return words


NOTIFY_CHECKS: dict[str, Check] = {
    "kinds": _words(*NEWS_KINDS),
    "sessions": _kinds_of_sessions,
    "dwell_s": _number((0, 3600)),
    "cooldown_s": _number((0, 86400)),
    "group_s": _number((0, 3600)),
    "grace_s": _number((0, 3600)),
    "quiet_hours": _quiet_hours,
    "off": _words(*NOTIFY_CHANNELS),
    "ntfy_url": _topic,
    "ntfy_token": _token,
    "webhook_url": _address,
    "webhook_secret": _text,
    "command": _command,
    "desktop": _truth,
    "push_hosts": _list_of("hosts, such as push.example.org"),
    "push_contact": _text,
}
"""The same for the table ``notify``."""


MCP_DEEDS = ("list", "read", "wait", "start", "prompt", "answer", "stop", "workspace")
"""What an agent may ask for through ``hitch mcp``."""
MCP_CHECKS: dict[str, Check] = {
    "may": _words(*MCP_DEEDS),
    "reach": _choice("own", "all"),
    "sessions_max": _number((0, MANY), whole=True),
    "agents": _list_of("agents, such as claude"),
    "folders": _list_of("folders"),
    "permission_modes": _list_of("permission modes, such as plan"),
}
"""The same for the table ``mcp``."""


def _quantity(value: object) -> object:
    """As Kubernetes writes them; nothing that it rounds to zero."""
    import re

    text = str(value) if isinstance(value, (int, str)) and not isinstance(value, bool) else ""
    if not re.fullmatch(r"(?=.*[1-9])\d{1,15}(\.\d{1,3})?(m|k|M|G|T|P|Ki|Mi|Gi|Ti|Pi)?", text, re.ASCII):
        raise _Unexpected('an amount, such as "500m", "2" or "4Gi"')
    return text


def _texts(value: object) -> object:
    if not isinstance(value, dict) or not all(isinstance(item, str) for item in value.values()):
        raise _Unexpected("a table of texts")
    return value


def _tolerations(value: object) -> object:
    known = ("key", "operator", "value", "effect", "tolerationSeconds")
    if not isinstance(value, list) or not all(isinstance(item, dict) and item.keys() <= set(known) for item in value):
        raise _Unexpected(f"a list of tables with {', '.join(known)}")
    return tuple(value)


def _any_table(value: object) -> object:
    if not isinstance(value, dict):
        raise _Unexpected("a table")
    return value


PROFILE_CHECKS: dict[str, Check] = {
    "cpu": _quantity,
    "cpu_limit": _quantity,
    "memory": _quantity,
    "storage": _quantity,
    "storage_class": _text,
    "image": _text,
    "node_selector": _texts,
    "tolerations": _tolerations,
    "patch": _any_table,
}
"""The same for each table of ``fleet.profiles``."""


def _profiles(value: object) -> object:
    if not isinstance(value, dict):
        raise _Unexpected("a table of profiles")
    found = {}
    for name, item in value.items():
        try:
            found[name] = _table(item, PROFILE_CHECKS)
        except _Unexpected as expected:
            inside = f"{name}.{expected.item}" if expected.item else name
            raise _Unexpected(str(expected), inside, expected.value if expected.item else item) from None
    return found


FLEET_CHECKS: dict[str, Check] = {
    "namespace": _text,
    "context": _text,
    "image": _text,
    "image_pull_secrets": _list_of("names of Secrets"),
    "git_secret": _text,
    "profile": _text,
    "profiles": _profiles,
    "only_pods": _truth,
    "start_minutes": _number((0.05, 1440)),
    "unreachable_minutes": _number((0, 525600)),
    "drain": _choice("rest", "suspend", "move"),
}
"""The same for the table ``fleet``."""


def _header(value: object) -> object:
    """Headers that a proxy sets, and no client: with others, anybody could say who they are."""
    if not isinstance(value, str) or value.lower() not in PROXY_HEADERS:
        raise _Unexpected(f"one of {', '.join(PROXY_HEADERS.values())}")
    return value


PROXY_HEADERS = {
    f"{start}-{end}".lower(): f"{start}-{end}"
    for start in ("X-Forwarded", "X-Auth-Request")
    for end in ("User", "Email", "Preferred-Username")
}
PEOPLE_CHECKS: dict[str, Check] = {
    "proxy_secret_file": _text,
    "proxy_header": _header,
    "proxy_role": _choice("", "member", "viewer"),
    "member_runtimes": _words("pod", "docker", "tmux", "local"),
}
"""The same for the table ``people``."""


def _table(value: object, checks: Mapping[str, Check]) -> dict[str, object]:
    if not isinstance(value, dict):
        raise _Unexpected("a table")
    table = {}
    for key, item in value.items():
        if key not in checks:
            raise _Unexpected(f"one of {', '.join(sorted(checks))}", "KEY", key)
        try:
            table[key] = checks[key](item)
        except _Unexpected as expected:
            inside = f"{key}.{expected.item}" if expected.item else key
            raise _Unexpected(str(expected), inside, expected.value if expected.item else item) from None
    return table


def _notify(value: object) -> object:
    table = _table(value, NOTIFY_CHECKS)
    if "webhook_url" in table and not table.get("webhook_secret"):
        raise _Unexpected("there, too: what is sent to webhook_url is signed with it", "webhook_secret")
    return table


CHECKS: dict[str, Check] = {
    **{key: _number(bounds, whole=not key.endswith(("_s", "_minutes"))) for key, bounds in BOUNDS.items()},
    "survivors": _choice("keep", "kill"),
    "on_shutdown": _choice("keep", "suspend"),
    "restart": _choice("never", "on-failure"),
    "resume_after_reboot": _truth,
    "when_limit": _choice("stop", "wait"),
    "limit_prompt": _text,
    "detach_key": _text,
    "image": _text,
    "network": _text,
    "memory": _text,
    "idle_after": _idle_after,
    "env": _variables,
    "env_files": _list_of("paths"),
    "pass_env": _list_of("names"),
    "host": _text,
    "tls_cert": _text,
    "tls_key": _text,
    "public_urls": _list_of("URLs"),
    "owner_token_file": _text,
    "notify": _notify,
    "mcp": lambda value: _table(value, MCP_CHECKS),
    "fleet": lambda value: _table(value, FLEET_CHECKS),
    "people": lambda value: _table(value, PEOPLE_CHECKS),
}
"""For every key of the file: what it has to be."""


def environment(settings: Settings) -> dict[str, str]:
    """The variables that ``env_files`` and ``[env]`` add to a run's environment. Values are never stored or shown."""
    variables: dict[str, str] = {}
    for path in settings.env_files:
        try:
            text = files.read_bytes(os.path.expanduser(path), follow=True).decode()
        except OSError as error:
            raise BadSettings(f"cannot read the env file {path}: {(error.strerror or '').lower()}") from None
        except ValueError as error:
            raise BadSettings(f"cannot read the env file {path!r}: {error}") from None
        for number, line in enumerate(text.split("\n"), 1):
            try:
                variables.update(env_line(line))
            except ValueError as error:
                raise BadSettings(f"{path}, line {number}: {error}") from None
    return {**variables, **settings.env}


def env_line(line: str) -> dict[str, str]:
    """The variable of a line in an env file; none in a comment. Raises ``ValueError`` without the line's text.

    The syntax is Docker Compose's, without variables in values and without values over several lines.
    """
    text = line.strip().removeprefix("export ")
    if not text or text.startswith("#"):
        return {}
    name, equals, value = text.partition("=")
    if not equals or not name.strip() or "\0" in text:
        raise ValueError("expected NAME=value")
    quoted = value.lstrip()
    return {name.strip(): _quoted(quoted) if quoted[:1] in ("'", '"') else _unquoted(value)}


def _unquoted(text: str) -> str:
    """Up to a comment: a # after white space."""
    for at in range(1, len(text)):
        if text[at] == "#" and text[at - 1].isspace():
            return text[:at].strip()
    return text.strip()


def _quoted(text: str) -> str:
    """What is between the quotes. A backslash escapes the quote; double quotes have ``ESCAPES`` too."""
    quote, value, at = text[0], "", 1
    escapes = {quote: quote, **(ESCAPES if quote == '"' else {})}
    while at < len(text) and text[at] != quote:
        if text[at] == "\\" and text[at + 1 : at + 2] in escapes:
            at += 1
            value += escapes[text[at]]
        else:
            value += text[at]
        at += 1
    after = text[at + 1 :]
    if at >= len(text):
        raise ValueError(f"the value has no closing {quote}")
    if after.strip() and not (after[0].isspace() and after.lstrip().startswith("#")):
        raise ValueError(f"the value continues after the closing {quote}")
    return value
