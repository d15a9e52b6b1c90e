"""What goes over the WebSocket, both ways, for validation and for the page's types."""

from __future__ import annotations

from base64 import b64decode
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from hitchpost.hub.http.schemas import ChatLine, Session, Side
from hitchpost.ops.sessions.create import LONGEST_NAME

MOST_INPUT_BYTES = 1 << 20

# What a client says -----------------------------------------------------------------------------------------------


class Message(BaseModel):
    """Of a client. Fields that are not known are ignored."""

    model_config = ConfigDict(extra="ignore")
    sessionId: str = Field(max_length=LONGEST_NAME)


class Attach(Message):
    """Look at a session; ``from`` is the offset of the first byte that is wanted.

    A ``picture`` is read-only, has no history, and is sent what is new a few times a second.
    """

    type: Literal["session.attach"]
    cols: Side = 80
    rows: Side = 24
    readOnly: bool = False
    picture: bool = False
    start: int | None = Field(default=None, alias="from", ge=0)


class Detach(Message):
    type: Literal["session.detach"]


class Input(Message):
    """What a person types; or, as an answer, what a client's terminal says by itself when the program asks it."""

    type: Literal["terminal.input", "terminal.answer"]
    data: str = Field(max_length=MOST_INPUT_BYTES)
    encoding: Literal["utf-8", "base64"] = "utf-8"
    """Terminals send bytes that are no letters, too: those are sent in base64."""

    @property
    def encoded(self) -> bytes:
        """Raises ``ValueError`` for what is no base64."""
        if self.encoding == "base64":
            return b64decode(self.data, validate=True)
        return self.data.encode("utf-8", "surrogatepass")


class Resize(Message):
    type: Literal["terminal.resize"]
    cols: Side
    rows: Side


class Resume(Message):
    """Start the next run of a session that has ended."""

    type: Literal["session.resume"]


class Seen(Message):
    """A person has this session before their eyes now."""

    type: Literal["session.seen"]


class Watch(Message):
    """Tell when files of the session's worktree change, or stop telling."""

    type: Literal["workspace.watch", "workspace.unwatch"]


class FollowChat(Message):
    """Send what is said in the session over ACP, from the byte ``from`` on, and each further line as it comes."""

    type: Literal["chat.follow"]
    start: int = Field(default=0, alias="from", ge=0)


class LeaveChat(Message):
    type: Literal["chat.leave"]


ClientMessage = Annotated[
    Attach | Detach | Input | Resize | Resume | Seen | Watch | FollowChat | LeaveChat, Field(discriminator="type")
]


# What the hub says ------------------------------------------------------------------------------------------------


class HubEvent(BaseModel):
    """For the page's types and for tests. The hub does not check what it says itself, so it builds none of these."""

    model_config = ConfigDict(defer_build=True)


class Attached(HubEvent):
    """Binary frames of this view carry ``channel``."""

    type: Literal["session.attached"]
    sessionId: str
    channel: int
    run: int
    cols: int
    rows: int
    offset: int


class SessionChanged(HubEvent):
    type: Literal["session.created", "session.updated", "session.removed"]
    sessionId: str
    session: Session


class StatusChanged(HubEvent):
    """``status`` is active, waiting, idle, error or stopped. ``reason`` goes with ``error``."""

    type: Literal["session.status"]
    sessionId: str
    status: str
    reason: str | None = None
    session: Session


class Ended(HubEvent):
    """``exitCode`` is 128 and the number for a signal; null when nobody saw the end."""

    type: Literal["terminal.exit"]
    sessionId: str
    exitCode: int | None
    signal: str | None = None
    signalNumber: int | None = None
    run: int


class Size(HubEvent):
    type: Literal["terminal.size"]
    sessionId: str
    cols: int
    rows: int


class WorkspaceChanged(HubEvent):
    type: Literal["workspace.changed"]
    sessionId: str


class ChatLines(HubEvent):
    """A part of a chat that is followed: ``from`` is the offset of its first byte, ``next`` that behind its last.

    The first part is told even when it is empty. Who comes back asks for what begins at ``next``.
    """

    type: Literal["chat.lines"]
    sessionId: str
    start: int = Field(alias="from")
    lines: list[ChatLine]
    next: int


class NotificationMessage(HubEvent):
    """A person is to be told; ``to`` says by whom: a page that may show notifications, or an attached terminal.

    ``sessionId`` is empty when it is about several sessions, or the hub. What has the same ``id`` is shown once.
    """

    type: Literal["notification"]
    sessionId: str
    to: Literal["browser", "terminal"]
    id: str
    title: str
    body: str


class ErrorMessage(HubEvent):
    """What the client asked for was not done."""

    type: Literal["error"]
    code: str
    message: str
    sessionId: str | None = None


HubMessage = Annotated[
    Attached
    | SessionChanged
    | StatusChanged
    | Ended
    | Size
    | WorkspaceChanged
    | ChatLines
    | NotificationMessage
    | ErrorMessage,
    Field(discriminator="type"),
]
