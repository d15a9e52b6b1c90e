from __future__ import annotations

from pathlib import Path

from hitchpost.ops.sessions.create import create
from hitchpost.ops.sessions.handover import handed_over
from hitchpost.ops.sessions.spec import SessionSpec
from hitchpost.settings import Settings
from hitchpost.values import replace


def test_a_session_that_is_handed_over_to_acp_is_a_chat_and_back_in_its_terminal_none(home: Path, tmp_path: Path):
    made = create(str(home), SessionSpec(str(tmp_path), agent="opencode"), Settings(), actor="test")
    record = replace(made, conversation_id="ses_1", conversation_begun=True)
    over_acp = handed_over(record, "opencode-acp")
    assert (record.chat, over_acp.chat, handed_over(over_acp, "opencode").chat) == (False, True, False)
