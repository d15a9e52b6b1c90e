"""What clients send over the WebSocket."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from hitchpost.hub.http.schemas import Side

MOST_INPUT_BYTES = 1 << 20


class Message(BaseModel):
    model_config = ConfigDict(extra="ignore")
    type: str
    sessionId: str = ""


class Attach(Message):
    cols: Side = 80
    rows: Side = 24
    readOnly: bool = False
    start: int | None = Field(default=None, alias="from", ge=0)


class Input(Message):
    data: str = Field(max_length=MOST_INPUT_BYTES)

    @property
    def encoded(self) -> bytes:
        return self.data.encode("utf-8", "surrogatepass")


class Resize(Message):
    cols: Side
    rows: Side
