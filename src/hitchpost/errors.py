"""Errors that a person reads. Each says what was expected, what came and what to do.

Every error of ours derives from ``HitchpostError``. The keeper imports this module, so it imports nothing.
"""

from __future__ import annotations


class HitchpostError(Exception):
    """The base of every error. Its text, for the command line, is the message and, where there is one, the hint."""

    exit_code = 1
    http_status = 500
    code = "failed"
    hint = ""
    """What to do about it."""
    cli_hint = ""
    """The same for who typed a command, where that speaks of its options. The page and scripts get ``hint``."""
    field = ""
    """The field of a request that it is about, where it is about one."""
    to_some = ""
    """The message for who may see some sessions only, where the usual one names others."""

    def __init__(self, message: str = "", hint: str = "", *, field: str = "", cli_hint: str = "") -> None:
        super().__init__(message)
        self.message, self.hint, self.field = message, hint, field or self.field
        self.cli_hint = cli_hint or self.cli_hint

    def __str__(self) -> str:
        return "; ".join(filter(None, (self.message, self.cli_hint or self.hint)))


FAILURES = (HitchpostError, OSError)
"""What an operation may fail with: a reason of ours, or one of the machine below. Anything else is a bug."""


MALFORMED = (ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError)
"""What taking apart text or JSON of others may fail with, when it is not what was expected. Only around the parsing."""
NOT_READ = (OSError, *MALFORMED)
"""The same, around reading it, too."""


class UsageError(HitchpostError):
    """Raised when the words of a command do not fit together."""

    exit_code = 2
    http_status = 422
    code = "bad_input"


class NoSuchSession(HitchpostError):
    """Raised when no session answers to what was typed."""

    exit_code = 3
    http_status = 404
    code = "not_found"

    def __init__(self, word: str) -> None:
        super().__init__(f"no session {word!r}", "hitch ps --all lists them")
        self.word = word


class AmbiguousSession(HitchpostError):
    """Raised when the beginning of an id fits several sessions."""

    exit_code = 3
    http_status = 404
    code = "ambiguous"

    def __init__(self, word: str, ids: list[str]) -> None:
        super().__init__(
            f"{word!r} matches {len(ids)} sessions: {', '.join(ids[:8])}", "type more of the id, or a name"
        )
        self.word, self.ids = word, ids


class NoSuchRun(HitchpostError):
    """Raised when a session has no run of that number."""

    exit_code = 3
    http_status = 404
    code = "not_found"

    def __init__(self, name: str, run: int, current: int) -> None:
        super().__init__(f"{name} has no run {run}", f"its runs are 1 to {current}")


class Refused(HitchpostError):
    """Raised when the state of a session, or who asks, does not allow the operation."""

    exit_code = 4
    http_status = 409
    code = "wrong_state"


class WorkspaceBusy(Refused):
    """Raised when every slot of a workspace is leased."""

    cli_hint = "--share joins as a reader"
    field = "workspace"
    to_some = "the workspace is in use"

    def __init__(self, workspace: str, holders: list[str]) -> None:
        super().__init__(f"workspace {workspace!r} is in use by {', '.join(holders) or 'another process'}")
        self.workspace, self.holders = workspace, holders


class NoSuchWorkspace(HitchpostError):
    """Raised when no workspace answers to what was typed."""

    exit_code = 3
    http_status = 404
    code = "not_found"
    field = "workspace"

    def __init__(self, word: str) -> None:
        super().__init__(f"no workspace {word!r}", "hitch workspace ls --all lists them")
        self.word = word


class NoSuchToken(HitchpostError):
    """Raised when no token and no signed-in browser has the id that was typed."""

    exit_code = 3
    http_status = 404
    code = "not_found"

    def __init__(self, token_id: str) -> None:
        super().__init__(f"no token {token_id!r}", "hitch token ls lists them")
        self.token_id = token_id


class AmbiguousWorkspace(HitchpostError):
    """Raised when the beginning of an id fits several workspaces."""

    exit_code = 3
    http_status = 404
    code = "ambiguous"
    field = "workspace"

    def __init__(self, word: str, ids: list[str]) -> None:
        super().__init__(
            f"{word!r} matches {len(ids)} workspaces: {', '.join(ids[:8])}", "type more of the id, or a name"
        )
        self.word, self.ids = word, ids


class WorkspaceExists(HitchpostError):
    """Raised when a branch of a repository has its workspace already."""

    exit_code = 5
    http_status = 409
    code = "exists"

    def __init__(self, name: str, path: str) -> None:
        super().__init__(f"workspace {name!r} already exists, at {path}")
        self.name, self.path = name, path


class NotARepository(Refused):
    """Raised when git is needed in a folder that belongs to no repository."""

    field = "folder"

    def __init__(self, folder: str) -> None:
        super().__init__(f"{folder} is not in a git repository", "go to one, or make one with git init")
        self.folder = folder


class GitFailed(HitchpostError):
    """Raised when git cannot do what it was asked for. ``why`` is its own last word."""

    http_status = 409
    code = "git_failed"

    def __init__(self, what: str, why: str) -> None:
        super().__init__(f"git {what} failed: {why}")
        self.what, self.why = what, why


class GitLocked(GitFailed):
    """Raised when a lock file of git is in the way. It is never deleted here."""

    exit_code = 4

    def __init__(self, what: str, lock: str) -> None:
        why = f"{lock} is there: another git command is at work, or was killed; when none is, delete that file"
        super().__init__(what, why)
        self.lock = lock


class SetupFailed(HitchpostError):
    """Raised when a command of ``.hitchpost.toml`` fails. The workspace stays as it is."""

    http_status = 409
    code = "setup_failed"

    def __init__(self, kind: str, command: str, how: str, log: str) -> None:
        super().__init__(f"{kind} failed: {command} {how}; its output is in {log}")
        self.command, self.log = command, log


class NameTaken(HitchpostError):
    """Raised when another session that is not archived has the name."""

    exit_code = 5
    http_status = 409
    code = "name_taken"
    field = "name"
    to_some = "this name cannot be used; choose another one"

    def __init__(self, name: str, holder: str) -> None:
        cancel = f"hitch cancel {holder} ends and archives that one"
        super().__init__(f"session {holder} is already named {name!r}", f"choose another name, or {cancel}")
        self.name, self.holder = name, holder


class StartFailed(HitchpostError):
    """Raised when a run could not be started. The session is there, with the reason in its story."""

    http_status = 422
    code = "start_failed"
    field = "command"

    def __init__(self, name: str, why: str, field: str = "") -> None:
        super().__init__(f"{name} failed to start: {why}", field=field)
        self.why = why


class EndedAtOnce(StartFailed):
    """Raised when the agent was started and has ended with an error before it was ready.

    One that was ``resumed`` may not have its conversation any more.
    """

    def __init__(self, name: str, word: str, why: str, *, resumed: bool = False) -> None:
        hint = f"hitch logs {word} shows what it printed"
        if resumed:
            hint += f"; hitch restart {word} begins another conversation"
        HitchpostError.__init__(self, f"{name} ended at once: {why}", hint)
        self.why = why


class NotDelivered(HitchpostError):
    """Raised when a session was started and its first prompt did not reach the agent."""

    http_status = 503
    code = "not_delivered"
    field = "prompt"

    def __init__(self, name: str, word: str, why: str) -> None:
        super().__init__(f"{name} was started, but its first prompt was not delivered: {why}", f"see hitch logs {word}")


class HomeRefused(HitchpostError):
    """Raised when the state folder is not safe to use: a link, another owner, or open to others."""

    exit_code = 4
    http_status = 409
    code = "home_refused"

    def __init__(self, path: str, why: str, what_to_do: str) -> None:
        super().__init__(f"will not use {path}: {why}", what_to_do)
        self.path = path


class BadSettings(HitchpostError):
    """Raised when the configuration file holds something that it should not."""

    exit_code = 2
    http_status = 409
    code = "bad_settings"


class KeeperSilent(HitchpostError):
    """Raised when a keeper is alive and does not answer in time."""

    http_status = 503
    code = "busy"

    def __init__(self, name: str, timeout_s: float) -> None:
        super().__init__(f"the keeper of {name} is alive but did not answer within {timeout_s:g} s", "see hitch doctor")


class NotStopped(HitchpostError):
    """Raised when a session that should be stopped may still run."""

    http_status = 503
    code = "not_stopped"

    def __init__(self, name: str, why: str, what_to_do: str) -> None:
        super().__init__(f"{name} was not stopped: {why}", what_to_do)


class RuntimeMissing(HitchpostError):
    """Raised when this machine lacks what a runtime needs."""

    http_status = 422
    code = "runtime_missing"
    field = "runtime"


class DatabaseAway(HitchpostError):
    """Raised when the fleet's PostgreSQL does not answer, or takes nothing. What was asked may be done or not."""

    http_status = 503
    code = "database_away"

    def __init__(self, where: str, why: str) -> None:
        super().__init__(
            f"the fleet's PostgreSQL at {where} cannot be used now: {why}",
            "sessions go on, and what is shown may be old; try again when it is back",
        )
        self.where, self.why = where, why
