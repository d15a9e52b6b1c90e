"""``session.json``: the record of a session, what a person keeps. Reading and finding; ``session.py`` writes."""

from __future__ import annotations

import os

from hitchpost.errors import MALFORMED
from hitchpost.model.record import ACTIVE, ARCHIVED, RECORD_TRANSITIONS
from hitchpost.store import files
from hitchpost.store.home import is_id
from hitchpost.store.migrations import RECORD_STEPS, migrated
from hitchpost.values import fields, replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hitchpost.store.sandbox import StoredSandbox

RECORD = "session.json"


@value
class StoredTree:
    """The worktree that a session's folder is in, as it was before an agent worked there. ``workspaces/tree.py`` says
    what the fields mean. ``keep`` and ``inside`` are empty here: where those are is found out at each use."""

    top: str
    top_id: str
    common: str
    common_id: str
    objects_id: str
    own: str = ""
    keep: str = ""
    inside: str = ""


@value
class Record:
    """One session. Times are RFC 3339 texts; ``argv`` is what its runs execute."""

    id: str
    index: int
    name: str
    agent: str
    argv: tuple[str, ...]
    folder: str
    folder_dev: int
    folder_ino: int
    created_at: str
    description: str = ""
    runtime: str = "local"
    record: str = ACTIVE
    record_changed_at: str = ""
    last_active_at: str = ""
    workspace_id: str | None = None
    branch: str | None = None
    repository: str = ""
    """The folder of the repository that it works for, also where its worktree is elsewhere; empty outside git. On
    another machine: the address that it was cloned from."""
    profile: str = ""
    """What of the settings' profiles its pod is made by; empty for the usual one."""
    owner: str = ""
    """The person whose session it is; empty where there is one person only."""
    conversation_id: str | None = None
    conversation_begun: bool = False
    """Whether the conversation has a turn, so that the agent can find it again."""
    resumes: str = ""
    """The conversation that the run was started to go on with, until its agent says which one it is in."""
    fork_of: str = ""
    """The conversation that this one branches off, as long as it has no turn of its own."""
    can_resume: bool = False
    """Whether this kind of agent can go on with a conversation. ``supports_resume``: there is one to go on with."""
    supports_resume: bool = False
    permission_mode: str = ""
    model: str = ""
    when_limit: str = "stop"
    """What happens at a usage limit: nothing, or (``wait``) the hub goes on when it has ended."""
    gone_on_from: str = ""
    """When the usage limit was told after which the hub told the agent to go on: it does so once for each."""
    gone_on_at: str = ""
    gone_on_known: bool = True
    """When it set about that, and whether the agent is known to have been told."""
    pinned: bool = False
    """A person wants it at the top of its list."""
    snoozed_until: str = ""
    idle_after_s: float = 30.0
    quiet_after_s: float = 3.0
    ready_after_s: float = 0.05
    shows_prompt: bool = False
    chat: bool = False
    """Whether its agent is spoken to over ACP, so that what is said is kept as a chat."""
    grace_s: float = 10.0
    quit_signal: str = "SIGTERM"
    quit_group: bool = False
    survivors: str = "keep"
    restart: str = "never"
    exclusive: bool = False
    share: bool = False
    base: str | None = None
    earlier_runs_s: float = 0.0
    earlier_survivors: int = 0
    """Processes that earlier runs left behind, as far as anybody has looked since."""
    sandbox: StoredSandbox | None = None
    git: StoredTree | None = None
    """None for the folder of a workspace, whose own record has it."""

    @property
    def word(self) -> str:
        """What a person types into a shell to mean this session: its name, where that is plain and its own."""
        letters = self.name.replace("-", "").replace("_", "").replace(".", "").replace("/", "")
        plain = letters.isascii() and letters.isalnum() and self.name[0] not in "-.~"
        return self.name if plain and self.record != ARCHIVED else self.id


_TYPES: dict[str, tuple[type, ...]] = {
    "int": (int,),
    "str": (str,),
    "bool": (bool,),
    "float": (int, float),
    "str | None": (str, type(None)),
    "tuple[str, ...]": (list, tuple),
    "StoredTree | None": (dict, type(None)),
    "StoredSandbox | None": (dict, type(None)),
}


NOBODY = Record("", 0, "", "", (), "", 0, 0, "")
"""What is known of a session whose record can be read nowhere."""


def read(folder: str) -> Record:
    """Raises ``files.CannotRead``. Unknown keys are ignored."""
    path = os.path.join(folder, RECORD)
    return _checked(path, folder, migrated(files.read_object(path), RECORD_STEPS))


def told(folder: str, value: dict[str, object]) -> Record:
    """A record that somebody else has read, as ``read`` gives it. Raises ``files.Unreadable``."""
    return _checked(os.path.join(folder, RECORD), folder, value)


def from_story(folder: str) -> Record:
    """The record as the story has it; a nameless one when the story does not have it either."""
    from hitchpost.store import story

    found = replace(NOBODY, id=os.path.basename(folder))
    for line in story.read(folder):
        told, new = line.get("record"), line.get("to")
        if line["event"] == "created" and isinstance(told, dict):
            try:
                found = _checked(os.path.join(folder, files.STORY), folder, {**told, "id": found.id})
            except files.Unreadable:
                continue
        elif line["event"] == "record" and isinstance(new, str) and new in RECORD_TRANSITIONS:
            found = replace(found, record=new, record_changed_at=story.since(line))
        elif line["event"] == "edited":
            found = replace(found, name=str(line.get("name")), description=str(line.get("description")))
            found = replace(found, index=index) if isinstance(index := line.get("index"), int) else found
            after_s = line.get("idle_after_s")
            found = replace(found, idle_after_s=after_s) if isinstance(after_s, (int, float)) else found
            found = replace(found, pinned=line.get("pinned") is True, snoozed_until=str(line.get("snoozed_until", "")))
    return found


def _checked(path: str, folder: str, value: dict[str, object]) -> Record:
    known = {}
    for name, kind in Record.__annotations__.items():
        if name not in value:
            continue
        item = value[name]
        allowed = _TYPES[kind]
        if not isinstance(item, allowed) or (isinstance(item, bool) and bool not in allowed):
            raise files.Unreadable(path, f"expected {name} to be {kind}, but got {item!r}")
        known[name] = tuple(str(text) for text in item) if isinstance(item, list) else item
    try:
        if isinstance(box := known.get("sandbox"), dict):
            from hitchpost.store import sandbox

            known["sandbox"] = sandbox.from_json(box)
        if isinstance(tree := known.get("git"), dict):
            known["git"] = _tree(tree)
        record = Record(**known)  # type: ignore[arg-type]
    except MALFORMED as error:
        raise files.Unreadable(path, str(error)) from None
    if record.record not in RECORD_TRANSITIONS:
        raise files.Unreadable(path, f"expected a record state, but got {record.record!r}")
    if record.id != os.path.basename(folder):
        raise files.Unreadable(path, f"expected id {os.path.basename(folder)}, but got {record.id!r}")
    return record


def _tree(stored: dict[str, object]) -> StoredTree | None:
    """None when it does not name a worktree and its repository: then it is looked for again."""
    given = {name: stored.get(name, "") for name in fields(StoredTree)}
    if not all(isinstance(text, str) for text in given.values()) or not given["top"] or not given["common"]:
        return None
    return StoredTree(**given)  # type: ignore[arg-type]


def ids(home: str) -> list[str]:
    """The ids of all session folders, made or half broken; what is being made or removed is not among them."""
    try:
        names = os.listdir(os.path.join(home, "sessions"))
    except FileNotFoundError:
        return []
    return sorted(name for name in names if is_id(name))
