"""Started instead of an agent as ``python -I -m hitchpost.acp RUN_FOLDER WORD…``: starts it, and is its client.

It shows the conversation in the session's terminal, takes the lines that are typed there as prompts, keeps the chat,
and opens the door for the watcher. It ends when the agent ends, in the same way; the agent never outlives it.
"""

from __future__ import annotations

import asyncio
import os
import resource
import signal
import sys
from asyncio.subprocess import PIPE, Process
from base64 import b64encode
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from hitchpost.acp.chat import Chat
from hitchpost.acp.conversation import Asked, AskFailed, Conversation, Cost, Json, Ways
from hitchpost.acp.door import Door
from hitchpost.acp.pipe import ErrorAnswer, Pipe, PipeClosed
from hitchpost.acp.terminal import Terminal
from hitchpost.agents import catalog
from hitchpost.agents.acp import CONVERSATION
from hitchpost.errors import UsageError
from hitchpost.model.attention import BLOCKED, ERROR, WORKING
from hitchpost.store import files, images
from hitchpost.store.session import Session
from hitchpost.system import process
from hitchpost.text import visible

MOST_LINE = 64 << 20
"""Of the agent: an image, or a file that it has read, is one line."""
END_S = 1.0
"""How long each request to end may take before the next, firmer one."""
WRITTEN = 4096
QUEUE = {"queued": "waits", "taken_back": "taken back", "not_sent": "not sent"}
"""What becomes of a prompt that is not sent at once, in the terminal."""
LONGEST_ERROR = 2000


class Client:
    """Holds the parts together: what the conversation tells goes to the terminal, the chat and the door."""

    def __init__(self, run_folder: str, agent: catalog.Agent) -> None:
        self.session_folder = os.path.dirname(os.path.dirname(run_folder))
        self.agent = agent
        self.terminal = Terminal(sys.stdout.fileno())
        self.chat = Chat(self.session_folder, int(os.path.basename(run_folder)))
        self.door = Door(run_folder, self._carry_out)
        self.conversation: Conversation
        self.leave: Callable[[], None] = lambda: None
        self._asked: Asked | None = None
        self._line = b""
        self._typed = ""
        self._tools: dict[str, str] = {}

    # what the conversation tells ------------------------------------------------------------------------------------

    def on_state(self, state: str, kind: str = "", message: str = "", asked: Asked | None = None) -> None:
        self._asked = asked
        if asked is not None:
            choices = ", ".join(f"{number} {name}" for number, name in enumerate(asked.names.values(), 1))
            self.terminal.line(f"{asked.text} — type {choices}", mark="?")
        elif state == ERROR:
            self.terminal.line(message or "the turn has failed", mark="✗")
        self.terminal.report(state, kind, message)
        number, options = (asked.number, list(asked.options)) if asked is not None else ("", [])
        self.door.tell("state", state=state, kind=kind, message=message, request=number, options=options)
        if state not in (BLOCKED, WORKING):
            self.terminal.prompt()

    def on_conversation(self, conversation: str, *, begun: bool) -> None:
        self.door.tell("conversation", id=conversation, begun=begun)

    def on_said(self, kind: str, details: Json) -> None:
        self.chat.add(kind, **details)
        if kind == "user":
            self._show_prompt(_shown(details))
        elif kind in QUEUE:
            self.terminal.line(f"{QUEUE[kind]}: {_shown(details)}", faint=True)
        elif kind in ("agent", "thought"):
            self.terminal.stream(details["text"], faint=kind == "thought")
        elif kind == "tool":
            self._show_tool(details)
        elif kind == "plan":
            for entry in details["entries"]:
                self.terminal.line(f"{entry['text']} ({entry['status']})", mark="▪", faint=True)
        elif kind == "notice":
            self.terminal.line(details["text"], faint=True)

    def _show_prompt(self, text: str) -> None:
        """One that was typed here, and did not wait, stands there already."""
        if text == self._typed:
            self._typed = ""
        else:
            self.terminal.prompted(text)

    def _show_tool(self, tool: Json) -> None:
        """One line when it is named, and one when it has ended."""
        title = tool.get("title") or self._tools.get(tool["id"], "")
        if title and self._tools.get(tool["id"]) != title:
            self._tools[tool["id"]] = title
            self.terminal.line(title, mark="●", faint=True)
        if tool.get("status") in ("completed", "failed"):
            self.terminal.line(f"{tool['status']}: {title}", mark="└", faint=True)

    def on_answer(self, text: str) -> None:
        self.door.tell("answer", standing=False, text=text)

    def on_used(self, tokens: Json, cost: Cost | None) -> None:
        told = {} if cost is None else {"cost": {"usd": cost.usd, "before_usd": cost.before_usd}}
        self.door.tell("used", standing=False, usage=tokens, **told)

    # what is asked of it ----------------------------------------------------------------------------------------------

    async def _carry_out(self, asked: Json) -> Json:
        op = asked["op"]
        if op == "prompt":
            images = tuple(map(str, asked.get("images") or ()))
            if why := self.conversation.refusal(images):
                return {"ok": False, "why": why, "unsent": True}
            return {"ok": True, "waits": self.conversation.prompt(str(asked["text"]), images)}
        if op == "take_back":
            why = self.conversation.take_back(str(asked["prompt"]))
            return {"ok": not why, "why": why}
        if op == "cancel":
            return {"ok": True, "was_working": await self.conversation.cancel()}
        if op == "answer":
            why = self.conversation.answer(str(asked["request"]), str(asked["choice"]))
            return {"ok": not why, "why": why}
        return {"ok": False, "why": f"unknown op {op}"}

    def on_typed(self) -> None:
        """A person types: the terminal hands over whole lines."""
        try:
            data = os.read(sys.stdin.fileno(), WRITTEN)
        except OSError:
            data = b""
        if not data:  # Ctrl-D
            asyncio.get_running_loop().remove_reader(sys.stdin.fileno())
            self.leave()
            return
        self._line += data
        while b"\n" in self._line:
            line, _, self._line = self._line.partition(b"\n")
            self._on_line(line.decode("utf-8", "replace").strip())

    def _on_line(self, text: str) -> None:
        if not text:
            return
        if self._asked is None:
            if why := self.conversation.refusal():
                self.terminal.line(why, mark="!")
            elif not self.conversation.prompt(text):
                self._typed = text
            return
        words = list(self._asked.options)
        word = words[int(text) - 1] if text.isdecimal() and 0 < int(text) <= len(words) else text
        if why := self.conversation.answer(self._asked.number, word):
            self.terminal.line(why, mark="!")


async def converse(run_folder: str, agent: catalog.Agent, words: list[str]) -> int:
    """The wait status of the agent's process, or the signal that ended us, as a negative number."""
    loop = asyncio.get_running_loop()
    before, argv = _taken_out(words)
    client = Client(run_folder, agent)
    child = await asyncio.create_subprocess_exec(
        *argv,
        stdin=PIPE,
        stdout=PIPE,
        start_new_session=True,
        limit=MOST_LINE,
        preexec_fn=lambda: process.die_with_parent(signal.SIGKILL),
    )
    assert child.stdin is not None
    assert child.stdout is not None
    asked_to_end: asyncio.Future[int] = loop.create_future()

    def ask_to_end(number: int) -> None:
        if not asked_to_end.done():
            asked_to_end.set_result(number)

    client.leave = lambda: ask_to_end(0)
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        loop.add_signal_handler(number, ask_to_end, number)
    pipe = Pipe(child.stdout, child.stdin, lambda method, params: client.conversation.hear(method, params))

    async def ask(method: str, params: Json) -> Json:
        try:
            return await pipe.ask(method, params)
        except ErrorAnswer as error:
            raise AskFailed(visible(": ".join(filter(None, (str(error), error.details))))[:LONGEST_ERROR]) from None
        except PipeClosed:
            raise AskFailed("the agent has ended") from None

    client.conversation = Conversation(ask, pipe.tell, client, ways_of(agent), partial(_image, client.session_folder))
    loop.add_signal_handler(signal.SIGINT, lambda: loop.create_task(client.conversation.cancel()))

    async def listen() -> None:
        await pipe.listen()
        client.conversation.close()

    await client.door.open()
    tasks = [loop.create_task(listen()), loop.create_task(_begin(client, before))]
    ended = loop.create_task(child.wait())
    await asyncio.wait((asked_to_end, ended), return_when=asyncio.FIRST_COMPLETED)
    with suppress(OSError):  # the terminal may be gone
        client.conversation.close()
    await client.door.close()
    if not ended.done():
        await _end(child)
    for task in tasks:
        task.cancel()
    code = await ended
    return -asked_to_end.result() if asked_to_end.done() else code


async def _begin(client: Client, before: str) -> None:
    client.terminal.line(f"{client.agent.title}: Ctrl-C interrupts it, Ctrl-D ends it", faint=True)
    try:
        await client.conversation.begin(os.getcwd(), before)
    except AskFailed as error:
        client.terminal.line(f"it cannot be started: {error}", mark="✗")
        client.on_state(ERROR, "", str(error))
        return
    asyncio.get_running_loop().add_reader(sys.stdin.fileno(), client.on_typed)


async def _end(child: Process) -> None:
    """Its pipe is closed first: so an agent on pipes is asked to end. Then it is signalled, with its children."""
    assert child.stdin is not None
    child.stdin.close()
    for number in (0, signal.SIGTERM, signal.SIGKILL):
        if number:
            try:
                os.killpg(child.pid, number)
            except ProcessLookupError:
                pass
        try:
            async with asyncio.timeout(END_S):
                await child.wait()
        except TimeoutError:
            continue
        break
    try:
        os.killpg(child.pid, signal.SIGKILL)  # what it has started
    except ProcessLookupError:
        pass


def _image(session_folder: str, name: str) -> Json:
    """A kept image as a block of the protocol. Raises ``AskFailed``."""
    try:
        data, kind = images.read(session_folder, name)
    except (files.CannotRead, OSError) as error:
        raise AskFailed(f"an image of this prompt cannot be read: {error}") from None
    return {"type": "image", "mimeType": kind, "data": b64encode(data).decode()}


def _shown(prompt: Json) -> str:
    """A prompt as the terminal shows it."""
    count = len(prompt.get("images") or ())
    pictures = f"[{count} image{'s' if count > 1 else ''}]" if count else ""
    return " ".join(filter(None, (prompt["text"], pictures)))


def _taken_out(words: list[str]) -> tuple[str, list[str]]:
    """The conversation to go on with, and the words of the agent itself."""
    before = [word.removeprefix(CONVERSATION) for word in words if word.startswith(CONVERSATION)]
    return (before[0] if before else ""), [word for word in words if not word.startswith(CONVERSATION)]


def ways_of(agent: catalog.Agent) -> Ways:
    try:
        told = catalog.table(agent.name).get("acp", {})
    except UsageError:
        told = {}
    found = told if isinstance(told, dict) else {}
    return Ways(
        tuple(map(str, found.get("errors", ()))),
        refuses_first=found.get("refuses_first") is True,
        loses_loaded=found.get("loses_loaded") is True,
        proposes_edits=found.get("proposes_edits") is True,
    )


def main() -> None:
    run_folder, *words = sys.argv[1:]
    agent = Session(os.path.dirname(os.path.dirname(run_folder)), actor="agent").record().agent
    try:
        code = asyncio.run(converse(run_folder, catalog.load(agent), words))
    except OSError as error:
        print(f"{words[0]}: {(error.strerror or '').lower()}")
        sys.exit(127)
    if code < 0:
        end_like(-code)
    sys.exit(code)


def end_like(number: int) -> None:
    """End by the signal that ended the agent, or was meant for it."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if number not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    sys.exit(128 + number)


main()
