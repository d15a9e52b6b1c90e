"""The environment of a run: the caller's, with the settings' on top. Values are passed on and forgotten."""

from __future__ import annotations

from hitchpost import wire
from hitchpost.errors import UsageError
from hitchpost.settings import IDLE_TIMEOUT, Settings, environment
from hitchpost.store.home import run_folder
from hitchpost.store.runfiles import read_run

FLEET = "HITCHPOST_FLEET"
"""In which a hub finds the address of its fleet's PostgreSQL: a secret."""
KUBE_CONTEXT = "HITCHPOST_KUBE_CONTEXT"
OF_CLUSTER = (KUBE_CONTEXT, "KUBECONFIG", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT")
"""By which a hub finds its fleet's cluster."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

NOT_OURS_TO_PASS = ("TMUX", "TMUX_PANE", "STY", "COLUMNS", "LINES", "TERM_PROGRAM", "TERM_PROGRAM_VERSION")
"""They describe the caller's terminal; the agent gets another one."""

MOST_TOLD = 5
COMES_AND_GOES = ("_", "SHLVL", "OLDPWD", "PWD", "WINDOWID", "PS1")
COMES_AND_GOES_PREFIXES = (
    "SSH_",
    "TERM",
    "XDG_",
    "LC_",
    "DBUS_",
    "HITCHPOST_",
    "BASH_FUNC_",
    "PYTEST_",
    "VTE_",
    "KITTY_",
)

OF_A_LOGIN = (
    *("HOME", "USER", "LOGNAME", "SHELL", "PATH", "LANG", "LANGUAGE", "TZ", "MAIL", "TMPDIR", "TMUX_TMPDIR"),
    *("SSH_AUTH_SOCK", "DBUS_SESSION_BUS_ADDRESS", "DOCKER_HOST", IDLE_TIMEOUT),
    *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS"),
)
"""Who this person is on this machine, where things are, and how the network is reached."""
OF_A_LOGIN_PREFIXES = ("LC_", "XDG_", "HITCHPOST_")


def of_hub(caller: Mapping[str, str], kept: tuple[str, ...]) -> dict[str, str]:
    """What a hub has, and every run that it starts: not what the shell of ``hitch up`` happened to have besides."""
    names = {*OF_A_LOGIN, *kept}
    env = {name: text for name, text in caller.items() if name in names or name.startswith(OF_A_LOGIN_PREFIXES)}
    return {name: text for name, text in env.items() if name.encode("utf-8", "surrogateescape") not in wire.MARKS}


def of_run(
    caller: Mapping[str, str], settings: Settings, extra: Mapping[str, str], session: str, run: int, folder: str
) -> dict[str, str]:
    env = {name: value for name, value in caller.items() if name not in NOT_OURS_TO_PASS}
    env |= {"TERM": "xterm-256color", "COLORTERM": "truecolor"}
    env |= environment(settings)
    env |= extra
    env |= {"PWD": folder, wire.SESSION_MARK: session, wire.RUN_MARK: str(run)}
    for mark in (wire.KEEPER_MARK, wire.HUB_MARK, FLEET):
        env.pop(mark, None)
    return env


def parse(items: tuple[str, ...], caller: Mapping[str, str]) -> dict[str, str]:
    """``NAME=value``, or ``NAME`` for the caller's own value: a secret then stands in no process list."""
    found = {}
    for item in items:
        name, equals, value = item.partition("=")
        if not name or (not equals and name not in caller):
            raise UsageError(f"expected --env NAME=value, or the name of a variable that is set, but got {name!r}")
        found[name] = value if equals else caller[name]
    return found


def missing_names(folder: str, run: int, env_names: Iterable[str]) -> list[str]:
    """The names that an earlier run had in its environment and that this one lacks."""
    if run < 1:
        return []
    earlier = read_run(run_folder(folder, run))
    names, now = () if earlier is None else earlier.env_names, set(env_names)
    return [name for name in names if name not in now and not _comes_and_goes(name)]


def told_missing(names: list[str], run: int) -> list[str]:
    """A note for the person, of few words however many these are: a hub has far fewer than a shell."""
    if not names:
        return []
    more = f" and {len(names) - MOST_TOLD} more" if len(names) > MOST_TOLD else ""
    was, is_not = ("was", "is") if len(names) == 1 else ("were", "are")
    return [f"{', '.join(names[:MOST_TOLD])}{more} {was} set in run {run} and {is_not} not now"]


def _comes_and_goes(name: str) -> bool:
    return name in COMES_AND_GOES or name in NOT_OURS_TO_PASS or name.startswith(COMES_AND_GOES_PREFIXES)
