"""The one JSON shape of a session, used by ``--json``, REST, WebSocket and MCP alike."""

from __future__ import annotations

from hitchpost.model import run as runs
from hitchpost.model.compat import event_reason, event_status
from hitchpost.model.facts import Facts
from hitchpost.model.status import Status, as_told, settle, status, survivors
from hitchpost.ops.views.moments import moment, rfc3339, utc_text
from hitchpost.ops.views.observe import Observation
from hitchpost.text import readable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime
    from typing import Any

    from hitchpost.ops.views.session_types import Exit as ExitJson
    from hitchpost.ops.views.session_types import Report as ReportJson
    from hitchpost.ops.views.session_types import Session as SessionJson
    from hitchpost.ops.views.session_types import SizeOfChanges


def to_json(seen: Observation, now: datetime, words: Status | None = None) -> SessionJson:
    record, facts = seen.record, settle(seen.facts)
    words = words or status(facts, now)
    return {
        "id": record.id,
        "index": record.index,
        "name": readable(record.name),
        "owner": readable(record.owner) or None,
        "description": readable(record.description),
        "agent": readable(record.agent),
        "runtime": record.runtime,
        "node": readable(facts.pod.node) or None if facts.pod is not None else None,
        "record": facts.record,
        "workspace": {
            "id": record.workspace_id,
            "path": readable(record.folder),
            "branch": readable(record.branch),
            "repository": readable(record.repository) or None,
        },
        "run": facts.run,
        "state": words.state,
        "status": words.word,
        "label": words.label if not seen.problem else f"{words.label} (unreadable file, see hitch doctor)",
        "quiet_since": rfc3339(words.quiet_since),
        "attention": words.attention,
        "headline": words.headline,
        "detail": readable(words.detail),
        "report": report_shape(facts),
        "since": rfc3339(words.since),
        "rank": words.rank,
        "glyph": words.glyph,
        "colour": words.colour,
        "section": words.section,
        "actions": list(words.actions),
        "changes": changes_shape(facts),
        "pinned": record.pinned,
        "snoozed_until": rfc3339(facts.snoozed_until),
        "seen_at": rfc3339(facts.seen_at),
        "live": words.live,
        "takes_prompt": words.takes_prompt,
        "refusal": words.refusal,
        "sandbox_alive": facts.sandbox_alive,
        "session_alive": words.session_alive,
        "exit": exit_shape(facts),
        "survivors": survivors(facts),
        "created_at": rfc3339(facts.created_at),
        "started_at": rfc3339(facts.started_at),
        "state_changed_at": rfc3339(as_told(facts).state_changed_at),
        "last_activity_at": rfc3339(facts.last_activity_at),
        "last_active_at": rfc3339(moment(record.last_active_at)),
        "idle_after_s": record.idle_after_s,
        "supports_resume": record.supports_resume,
        "conversation": record.conversation_id,
        "chat": record.chat,
        "when_limit": record.when_limit,
    }


def exported(seen: Observation, now: datetime) -> dict[str, Any]:
    """A session as the exported file has it, with the words of ``session.status``, and the whole shape beside them."""
    made, end = to_json(seen, now), as_told(seen.facts).exit
    word = event_status(seen.facts, now)
    return {
        "sessionId": made["id"],
        "name": made["name"],
        "status": word,
        "reason": event_reason(seen.facts) if word == "error" else None,
        "worktreePath": made["workspace"]["path"],
        "branch": made["workspace"]["branch"],
        "createdAt": made["created_at"],
        "lastActivity": made["last_activity_at"],
        "exitCode": end.shell_code if made["exit"] is not None and end is not None else None,
        "signal": end.signal if made["exit"] is not None and end is not None else None,
        "session": made,
    }


def report_shape(facts: Facts) -> ReportJson | None:
    """What the agent is doing, who says so, and what it asks; None where nothing but its output tells."""
    report = facts.report
    if report is None or facts.state != runs.RUNNING:
        return None
    return {
        "state": report.state,
        "kind": report.kind,
        "message": None if report.message is None else readable(report.message),
        "request": report.request,
        "options": list(report.options),
        "takes_text": report.takes_text,
        "background": report.background,
        "until": report.until,
        "ends_at": rfc3339(report.ends_at),
        "source": report.source,
        "at": utc_text(report.at),
    }


def changes_shape(facts: Facts) -> SizeOfChanges | None:
    found = facts.changes
    if found is None:
        return None
    return {"files": found.files, "added": found.added, "deleted": found.deleted, "at": utc_text(found.at)}


def exit_shape(facts: Facts) -> ExitJson | None:
    """The end of the run; None while it lives."""
    end = facts.exit
    if end is None or facts.state not in runs.TERMINAL:
        return None
    return {
        "code": end.code,
        "signal": end.signal,
        "core_dumped": end.core_dumped,
        "intent": end.intent,
        "ended_at": rfc3339(end.ended_at),
        "ended_at_known": end.ended_at_known and end.ended_at is not None,
    }
