"""Which files of a session's folder a pod sends to hubs, and in which way. Nothing else leaves a pod, or enters a copy.

Names are those in the session's folder or, for files of a run, in the run's.
"""

from __future__ import annotations

from hitchpost import wire
from hitchpost.store import files

RECORD, CHAT, ANSWER = "session.json", "chat.jsonl", "answer.json"
TIMES = f"{wire.OUTPUT}/{wire.TIMES}"
WHOLE = (wire.RUN, wire.INTENT, wire.ATTENTION, ANSWER, wire.EXIT_STATUS, wire.EXIT)
"""Files of a run that are replaced, in the order in which they come about."""
GROWN = (wire.KEEPER_LOG, TIMES)
"""Files of a run that grow. One that was made anew is sent whole."""
LINES = (files.STORY, CHAT)
"""Files of the session to which the hub's copy gets lines from its hub, too."""
STATES = (RECORD, files.STATE)
"""Files of the session of which the hub's copy takes only what is true of the run."""
FOR_WATCHER = (wire.KEEPER_LOG, *LINES)
"""Other hubs have them from PostgreSQL: of what both sides write, one hub makes one."""
OF_SESSION, OF_RUN = (*LINES, *STATES), (*GROWN, *WHOLE)
MOST_WHOLE_BYTES = 16 << 20
MOST_GROWN_BYTES = 64 << 20
MOST_LINE_BYTES = 32 << 20
"""Of a file of lines, in a copy. It is half of what every hub can read, so hubs can always add theirs."""


def segment(start: int) -> str:
    return f"{wire.OUTPUT}/{wire.segment_name(start)}"


def segment_start(name: str) -> int | None:
    """The offset of the first byte of a part of the output log; None when the name is not that of one."""
    folder, _, file = name.rpartition("/")
    return wire.segment_offset(file) if folder == wire.OUTPUT else None
