"""opencode: its own server says what it does, takes prompts byte for byte, and takes answers."""

from __future__ import annotations

import asyncio
import os
import re
import time
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from hitchpost.agents.opencode import PASSWORD, PORT, USER
from hitchpost.model.attention import BLOCKED, DONE, ERROR, IDLE, LIMIT, PERMISSION, QUESTION, UNKNOWN, WORKING, plain
from hitchpost.store import runfiles
from hitchpost.store.session import Session
from hitchpost.watcher.adapter import PROOF_S, SCREEN, Adapter
from hitchpost.watcher.http import LocalServer, ServerSilent
from hitchpost.watcher.looks import LOOK_S, NothingSeen
from hitchpost.watcher.prompts import NOT_READY, START_S, not_sent

SERVER = "server"
REPLIES = {"yes": "once", "always": "always", "no": "reject"}
PAUSE_S, LONGEST_PAUSE_S = 0.1, 2.0
"""Between two tries to reach the server: it takes seconds to start."""
LONG_RETRY_S = 60.0
"""It tries again by itself. When that is later than this, a person should know that it waits."""
LOST = "its own server does not answer"
PROMPT, FIRST_PAGE = re.compile(r"\b(?:commands|interrupt)\b|Ask anything"), re.compile(r'Ask anything\.\.\. "')
"""On its screen: that it takes keys, and that it shows no conversation."""
DRAWN_S, SHOWN_S = 60.0, 8.0
"""How long its screen may take to be drawn, and to show another conversation; it may be one that we do not know."""
SELECT_EVERY_S = 1.0
COPIED_S = 180.0
"""How long a copy of a conversation may take: its server looks at the whole folder of the other one first."""
MOVE = "/experimental/control-plane/move-session"
TAKEN_S = 30.0
"""How long its server may take to say that it has a prompt. Before the first one it gets ready."""
SENT = "sent"
"""What a conversation is that has a prompt of ours, until its server says what it does with it."""


class Opencode(Adapter):
    sources = (SERVER, SCREEN)

    def __init__(self, watching: Any) -> None:
        super().__init__(watching)
        port = int(os.environ.get(PORT) or 0)
        self.server = LocalServer(port, os.environ.get(USER, ""), os.environ.get(PASSWORD, "")) if port else None
        record = Session(watching.session_folder, actor="agent").record()
        self._conversation, self._folder = record.conversation_id or "", os.path.realpath(record.folder)
        self._fork_of = "" if self._conversation else record.fork_of
        self._connected, self._begun = asyncio.Event(), False
        self._busy: dict[str, dict[str, Any]] = {}
        self._asked: dict[str, dict[str, Any]] = {}
        self._parents: dict[str, str] = {}
        self._roles: dict[str, str] = {}
        self._ended = IDLE
        self._said = ""
        self._as: dict[str, Any] = _chosen(watching.run_folder)

    async def run(self) -> None:
        """Listen to its server for as long as it is there."""
        if self.server is None:
            self.watching.put(SERVER, UNKNOWN, message="it has no server of its own: no port was free")
            return await super().run()
        self.watching.start(self._begin())
        pause_s = PAUSE_S
        while True:
            try:
                async for event in self.server.events("/global/event"):
                    pause_s = PAUSE_S
                    told = event.get("payload") or {}
                    await self._on_event(str(told.get("type")), told.get("properties") or {})
            except ServerSilent:
                pass
            if SERVER in self.watching.evidence:
                self.watching.put(SERVER, UNKNOWN, message=LOST)
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)

    async def _begin(self) -> None:
        """Its server answers before its screen is there. It is at its prompt when it shows one, and takes keys."""
        await self._connected.wait()
        await self._shows(PROMPT.search, DRAWN_S)
        if self._fork_of and (why := await self._fork()) is not None:
            self.watching.put(SERVER, UNKNOWN, message=why)
            return
        if self._conversation:
            await self._show(self._conversation, SHOWN_S)
        self.watching.screen.close()
        self._begun = True
        self._tell()

    async def _fork(self) -> str | None:
        """Begin with a copy of another conversation, and in the folder of this session: its server leaves a copy in the
        folder of the other one. Why it cannot be done, if so."""
        assert self.server is not None
        try:
            status, made = await self.server.ask("POST", f"/session/{self._fork_of}/fork", {}, within_s=COPIED_S)
            if status != 200:
                return f"its server made no copy of conversation {self._fork_of} (status {status})"
            session = str(made["id"])
            place = {"sessionID": session, "destination": {"directory": self._folder}}
            status, _ = await self.server.ask("POST", MOVE, place, within_s=COPIED_S)
            _, made = await self.server.ask("GET", f"/session/{session}")
        except ServerSilent as error:
            return error.message
        if made.get("directory") != self._folder:
            return f"its server keeps the copy of the conversation in {made.get('directory')} (status {status})"
        self._fork_of = ""
        self._converse(session, begun=True)
        return None

    async def _shows(self, condition: Any, within_s: float) -> bool:
        """Wait until its screen is so. False when time is up."""
        deadline = time.monotonic() + within_s
        while True:
            with suppress(NothingSeen):
                if condition(await self.watching.screen.text()):
                    return True
            if time.monotonic() > deadline:
                return False
            await asyncio.sleep(LOOK_S)

    # what its server says -----------------------------------------------------------------------------------------

    async def _on_event(self, kind: str, told: dict[str, Any]) -> None:
        session = str(told.get("sessionID") or "")
        if kind == "server.connected":
            await self._catch_up()
            self._connected.set()
            self.on_verdict()
        elif kind == "session.created":
            info = told.get("info") or {}
            self._parents[session] = str(info.get("parentID") or "")
            if not self._parents[session]:
                self._converse(session, begun=False)
        elif kind == "session.status":
            self._on_status(session, told.get("status") or {})
        elif kind in ("permission.asked", "question.asked"):
            self._asked[str(told.get("id"))] = told
        elif kind in ("permission.replied", "question.replied", "question.rejected"):
            self._asked.pop(str(told.get("requestID")), None)
            if told.get("reply") == "reject" or kind == "question.rejected":
                self._ended = IDLE
        elif kind == "session.error":
            self._on_error(session, told.get("error") or {})
        elif kind == "message.updated":
            await self._on_message(session, told.get("info") or {})
            return
        elif kind == "message.part.updated":
            self._on_part(told.get("part") or {})
            return
        else:
            return
        self._tell()

    async def _catch_up(self) -> None:
        assert self.server is not None
        _, busy = await self.server.ask("GET", "/session/status")
        _, permissions = await self.server.ask("GET", "/permission")
        _, questions = await self.server.ask("GET", "/question")
        self._busy = {name: item for name, item in (busy or {}).items() if item.get("type") != "idle"}
        self._asked = {str(item["id"]): item for item in (*(permissions or ()), *(questions or ()))}

    def _on_status(self, session: str, status: dict[str, Any]) -> None:
        if status.get("type") == "idle":
            before = self._busy.pop(session, {})
            if before.get("type") == "retry" and self._ended == DONE:  # interrupted while it waited to try again
                self._ended = IDLE
            return
        if session not in self._busy or status.get("type") == "busy":
            self._ended = DONE
        self._busy[session] = status

    def _on_error(self, session: str, error: dict[str, Any]) -> None:
        if self._busy.get(session, {}).get("type") == SENT:  # it does not even begin
            del self._busy[session]
        if error.get("name") == "MessageAbortedError":
            self._ended = IDLE
            return
        details = error.get("data") or {}
        self._ended, self._said = ERROR, str(details.get("message") or error.get("name") or "")

    async def _on_message(self, session: str, info: dict[str, Any]) -> None:
        """A prompt, or the beginning of an answer. What a sub-agent is told is no conversation of the person's."""
        if len(self._roles) > 500:
            self._roles.clear()
        self._roles[str(info.get("id"))] = str(info.get("role"))
        if info.get("role") == "user" and not await self._parent(session):
            self._as = {name: info[name] for name in ("agent", "model") if name in info}
            self._converse(session, begun=True)

    def _on_part(self, part: dict[str, Any]) -> None:
        if part.get("type") != "text":
            return
        role = self._roles.get(str(part.get("messageID")))
        if role == "user":
            self.prompted(str(part.get("text")), "message")
        elif role == "assistant":
            self._said = str(part.get("text")).strip().split("\n")[0]

    async def _parent(self, session: str) -> str:
        """The session that a sub-agent works for; empty for one of the person's."""
        if session not in self._parents:
            assert self.server is not None
            _, info = await self.server.ask("GET", f"/session/{session}")
            self._parents[session] = str((info or {}).get("parentID") or "")
        return self._parents[session]

    def _converse(self, session: str, *, begun: bool) -> None:
        self._conversation = session
        self.watching.conversation(session, begun=begun)

    def _tell(self) -> None:
        """Put what is known together: what it asks, else what it works at, else how it ended."""
        if self._asked:
            number, asked = next(iter(self._asked.items()))
            is_question = "questions" in asked
            self._say(
                BLOCKED,
                kind=QUESTION if is_question else PERMISSION,
                message=_question(asked) if is_question else _permission(asked),
                request=number,
                options=_answers(asked) if is_question else tuple(REPLIES),
                takes_text=is_question and _takes_text(asked),
            )
        elif any(not self._parents.get(session) for session in self._busy):
            retry = next((item for item in self._busy.values() if item.get("type") == "retry"), {})
            due = float(retry.get("next") or 0) / 1000
            if due - time.time() > LONG_RETRY_S:
                until = datetime.fromtimestamp(due, UTC).isoformat(timespec="seconds")
                self._say(BLOCKED, kind=LIMIT, message=str(retry.get("message")), until=until)
            else:
                self._say(WORKING, message=f"it tries again: {retry['message']}" if retry.get("message") else "")
        elif self._begun or self._ended != IDLE:
            # a sub-agent works in its turn, or in the background, which is an experiment of its own
            told = self._said if self._ended in (DONE, ERROR) else ""
            self._say(self._ended, message=told, background=len(self._busy))

    def _say(self, state: str, **more: Any) -> None:
        said = self.watching.evidence.get(SERVER)
        same = said is not None and said.state == state and all(getattr(said, name) == more[name] for name in more)
        if not same:
            self.watching.put(SERVER, state, **more)

    # prompts ------------------------------------------------------------------------------------------------------

    async def send(self, text: str, *, enter: bool) -> dict[str, Any]:
        """Through its server: nothing is typed, so it does not matter what its screen shows."""
        if not enter:
            return await super().send(text, enter=enter)
        if (why := await self.refusal()) is not None:
            return not_sent(why)
        assert self.server is not None
        fresh = not self._conversation
        if fresh:
            status, made = await self.server.ask("POST", "/session", {})
            if status != 200:
                return not_sent(f"expected a new conversation from its server, but got status {status}")
            self._converse(str(made["id"]), begun=False)
        session, offset = self._conversation, self.watching.end
        if self._begun:  # else it is shown when there is a screen
            await self._show(session, SHOWN_S if fresh else 0)
            self.watching.screen.close()
        self._proof = None
        body = {"parts": [{"type": "text", "text": text}], **_spoken(self._as)}
        before = self._ended
        if session not in self._busy:  # its turn may be over before its answer to this is read
            self._on_status(session, {"type": SENT})
        handing = self.watching.start(self._hand(session, body, before))
        handing.add_done_callback(lambda _: self.on_verdict())
        await self.until(lambda: handing.done() or self._proof_of(text), TAKEN_S + PROOF_S)
        if handing.done() and handing.result() is not None:
            refused: dict[str, Any] = handing.result()
            return refused
        self._tell()
        await self.until(lambda: self._proof_of(text), PROOF_S)
        return {"ok": True, "offset": offset, "proof": self._proof_of(text)}

    async def _hand(self, session: str, body: dict[str, Any], before: str) -> dict[str, Any] | None:
        """The answer when its server has not taken a prompt; None when it has, or may have, or may yet."""
        assert self.server is not None
        status, refused = 0, None
        try:
            status, told = await self.server.ask("POST", f"/session/{session}/prompt_async", body, within_s=TAKEN_S)
            why = f"its server did not take the prompt (status {status}): {told}"
            if status != 204:
                refused = not_sent(why) if 400 <= status < 500 else {"ok": False, "why": why}
        except ServerSilent as error:
            refused = None if error.sent else not_sent(error.message)
        if status != 204 and self._busy.get(session, {}).get("type") == SENT:
            del self._busy[session]
            self._ended = before
            self._tell()
        return refused

    async def refusal(self) -> str | None:
        """Its server takes a prompt before its screen is drawn, but a fork has none before it has its conversation."""
        await self.until(lambda: self._is_listening or self.watching.verdict is not None, START_S)
        if self.watching.verdict is None:
            return None if self._is_listening else NOT_READY.format(START_S)
        return await super().refusal()

    @property
    def _is_listening(self) -> bool:
        return self._connected.is_set() and not self._fork_of

    def _proof_of(self, text: str) -> str:
        """What has shown that the agent has this very text; empty when nothing has yet."""
        return self._proof[1] if self._proof is not None and self._proof[0] == text else ""

    async def _show(self, session: str, within_s: float) -> None:
        """Whoever attaches sees the conversation that the prompt goes to, and can interrupt it.

        A screen that does not listen yet is asked again, until it has left its first page.
        """
        assert self.server is not None
        deadline = time.monotonic() + within_s
        while True:
            with suppress(ServerSilent):
                await self.server.ask("POST", "/tui/select-session", {"sessionID": session})
            if time.monotonic() >= deadline or await self._shows(
                lambda text: not FIRST_PAGE.search(text), SELECT_EVERY_S
            ):
                return

    # answers ------------------------------------------------------------------------------------------------------

    async def answer(self, request: str, choice: str, message: str) -> dict[str, Any]:
        body: dict[str, Any]
        number = request or next(iter(self._asked), "")
        asked = self._asked.get(number)
        if asked is None or self.server is None:
            return {"ok": False, "why": "nothing is asked that can be answered here, or it was answered already"}
        if "questions" in asked:
            label = next((label for label in _answers(asked) if plain(label) == choice), choice)
            path, body = f"/question/{number}/reply", {"answers": [[label]]}
            if len(asked["questions"]) != 1:
                return {"ok": False, "why": "it asks several questions at once: hitch attach, and answer them"}
        elif choice in REPLIES:
            path, body = f"/permission/{number}/reply", {"reply": REPLIES[choice]}
            body |= {"message": message} if message and choice == "no" else {}
        else:
            return {"ok": False, "why": f"expected one of {', '.join(REPLIES)}, but got {choice}"}
        began = time.monotonic()
        status, _ = await self.server.ask("POST", path, body)
        if status == 404:
            return {"ok": False, "why": "it was answered already"}
        if status != 200:
            return {"ok": False, "why": f"its server did not take the answer (status {status})"}
        self.watching.delivered(began)
        if self._asked.pop(number, None) is not None:
            self._tell()
        return {"ok": True, "request": number, "choice": choice}


def _chosen(run_folder: str) -> dict[str, Any]:
    """The model and the agent that its command line chooses, for the first prompt: its server does not know them."""
    run = runfiles.read_run(run_folder)
    words = run.argv if run is not None else ()
    found: dict[str, Any] = {}
    for word, after in zip(words, (*words[1:], ""), strict=True):
        name, equals, text = word.partition("=")
        if name in ("--model", "-m"):
            found["model"] = text if equals else after
        elif name == "--agent":
            found["agent"] = text if equals else after
    return found


def _spoken(chosen: dict[str, Any]) -> dict[str, Any]:
    """As a prompt has it: a model is its provider and its name."""
    model = chosen.get("model")
    if isinstance(model, str) and "/" in model:
        provider, _, name = model.partition("/")
        model = {"providerID": provider, "modelID": name}
    said = {"agent": chosen["agent"]} if chosen.get("agent") else {}
    if isinstance(model, dict) and {"providerID", "modelID"} <= model.keys():
        said["model"] = {name: model[name] for name in ("providerID", "modelID")}
    return said


def _permission(asked: dict[str, Any]) -> str:
    """``bash: touch q``, as a person would read it."""
    details = asked.get("metadata") or {}
    text = details.get("command") or details.get("filepath") or ", ".join(map(str, asked.get("patterns") or ()))
    return f"{asked.get('permission')}: {text}" if text else str(asked.get("permission"))


def _question(asked: dict[str, Any]) -> str:
    return " / ".join(str(item.get("question")) for item in asked["questions"])


def _answers(asked: dict[str, Any]) -> tuple[str, ...]:
    first = asked["questions"][0] if asked["questions"] else {}
    return tuple(str(option.get("label")) for option in first.get("options") or ())


def _takes_text(asked: dict[str, Any]) -> bool:
    """One question takes a person's own words, unless it says otherwise; several are answered in the terminal only."""
    return len(asked["questions"]) == 1 and asked["questions"][0].get("custom") is not False
