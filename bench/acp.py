"""A chat over ACP: from Enter in the page to the agent's first words in it, and what a session costs while idle.

The anchor is the same agent alone: on pipes, in the same run, in turns with ours. What an idle session costs is also
measured beside real adapters, as far as ``script/agents`` has installed them, against a scripted model.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from bench.agents import watcher
from bench.hub import hub
from bench.idle import SETTLE_S
from bench.memory import pss_kb
from bench.page import SIZE, chromium
from bench.stage import Session, Stage, end_children, percentile, wait_until
from bench.table import Row, at_most_more
from hitchpost.agents import catalog
from hitchpost.hub import client as hub_client
from hitchpost.ops.sessions.create import create
from hitchpost.ops.sessions.prompt import prompt
from hitchpost.ops.sessions.spec import SessionSpec
from hitchpost.store import runfiles
from hitchpost.system import process

AGENT = Path(__file__).parents[1] / "tests" / "acp" / "agent.py"
FILE = """
title = "A scripted agent"
argv = {argv}
adapter = "acp"
ready_after_s = 3
shows_prompt = true
[rules]
version = 1
"""
MORE_MS = 30.0
REAL = ("opencode-acp", "claude-acp")
PROMPT = "hello"

# From Enter until the first words of the answer are in the page, and until after the frame that shows them.
FIRST_WORDS = """
() => {
    window.told = [];
    window.painted = [];
    const answers = () => document.querySelectorAll(".chat .markdown").length;
    let [pressed, known] = [undefined, 0];
    const press = (event) => event.key === "Enter" && ([pressed, known] = [event.timeStamp, answers()]);
    addEventListener("keydown", press, true);
    const observer = new MutationObserver(() => {
        if (pressed === undefined || answers() === known) return;
        const [began, after] = [pressed, new MessageChannel()];
        pressed = undefined;
        told.push(performance.now() - began);
        after.port1.onmessage = () => painted.push(performance.now() - began);
        requestAnimationFrame(() => after.port2.postMessage(0));
    });
    observer.observe(document.querySelector(".chat"), { subtree: true, childList: true });
}
"""
IS_PAINTED = "count => painted.length > count && document.querySelector('.prompt-box textarea').value === ''"


def measure(*, quick: bool) -> list[Row]:
    count, idle = (5, 2) if quick else (100, 10)
    with Stage(quick=quick) as stage:
        remembered = Path(stage.folder, "remembered")
        remembered.mkdir()
        argv = [sys.executable, str(AGENT), str(remembered)]
        Path(stage.folder, "agents").mkdir()
        Path(stage.folder, "agents", "bench-acp.toml").write_text(FILE.format(argv=json.dumps(argv)))
        rows = latency(stage, argv, count) + memory(stage, argv, idle)
    return rows + [row for name in REAL for row in beside_real(name, 1 if quick else 3, quick=quick)]


def latency(stage: Stage, argv: list[str], count: int) -> list[Row]:
    alone = Adapter(argv)
    alone_ms = []
    with hub(stage), chromium() as browser:
        session = begun(stage)
        page = browser.new_page(viewport=SIZE)
        page.goto(hub_client.ask(stage.home, "POST", "/api/launch-code")["launch_url"])
        page.wait_for_selector(".link.open", state="attached")
        page.locator(f"[data-session='{session.id}'] .open-session").click()
        page.wait_for_selector(".chat")
        page.evaluate(FIRST_WORDS)
        for number in range(count):
            alone_ms.append(alone.first_words_ms())
            page.locator(".prompt-box textarea").fill(PROMPT)
            page.keyboard.press("Enter")
            page.wait_for_function(IS_PAINTED, arg=number, polling=20)
            wait_until(lambda: is_in_state(session, "done"), "the end of the turn")
        told_ms, painted_ms = page.evaluate("told"), page.evaluate("painted")
    alone.end()
    rows = []
    for what, values in (("in the page", told_ms), ("painted", painted_ms)):
        for share in (0.5, 0.95):
            wanted = at_most_more(MORE_MS, "ms") if (what, share) == ("in the page", 0.5) else None
            figures = (percentile(values, share), "ms", percentile(alone_ms, share))
            title = f"prompt → first words {what}, p{share * 100:g}"
            rows.append(Row(title, f"{count} prompts", *figures, "its adapter on pipes", wanted))
    return rows


def memory(stage: Stage, argv: list[str], count: int) -> list[Row]:
    alone = [Adapter(argv) for _ in range(count)]
    sessions = [begun(stage) for _ in range(count)]
    agents_kb = sum(pss_kb(adapter.child.pid) for adapter in alone) / count
    ours = {"keeper": 0, "watcher": 0, "client": 0}
    for session in sessions:
        for name, pid in parts(session).items():
            ours[name] += pss_kb(pid)
    for adapter in alone:
        adapter.end()
    sample = f"mean of {count}"
    rows = [(f"memory of the {name} of an idle ACP session, PSS", size) for name, size in ours.items()]
    rows.append(("memory of an idle ACP session without its adapter, PSS", sum(ours.values())))
    return [
        Row(what, sample, size / count / 1024, "MB", agents_kb / 1024, "its adapter alone, a bare Python")
        for what, size in rows
    ]


def beside_real(name: str, count: int, *, quick: bool) -> list[Row]:
    """What is ours of sessions that have had a turn and are idle, beside all that belongs to their adapters."""
    from script.agents import INSTALLABLE
    from tests.agents import homes
    from tests.agents.modelserver import ModelServer

    program = (INSTALLABLE.get(name) or INSTALLABLE[name.removesuffix("-acp")]).path
    if not program.exists():
        print(f"bench: {name} is left out: it is not installed; script/agents installs it", file=sys.stderr)
        return []
    ours_kb = theirs_kb = 0
    with ModelServer() as model, Stage(quick=quick) as stage:
        made = [homes.make(name, program, Path(stage.folder, f"{name}-{number}"), model) for number in range(count)]
        for home in made:
            os.environ.update(home.env)  # the stage puts it back
            session = begun(stage, name, str(home.place))
            sent = prompt(stage.home, session.id, "[[say hello]]", actor="test", caller=os.environ)
            assert sent.receipt.proof == "session/prompt"
            wait_until(lambda session=session: is_in_state(session, "done"), "the end of the turn")  # type: ignore[misc]
            time.sleep(SETTLE_S)
            found = parts(session)
            ours_kb += sum(map(pss_kb, found.values()))
            theirs_kb += sum(map(kb_of_living, below(found["client"])))
    what = f"memory of an idle session of {catalog.title(name)} without its adapter, PSS"
    figures = (ours_kb / count / 1024, "MB", theirs_kb / count / 1024)
    return [Row(what, f"mean of {count}, after a turn", *figures, "its adapter and what that has started")]


def parts(session: Session) -> dict[str, int]:
    """The processes of ours."""
    wait_until(lambda: watcher(session) > 0, "a watcher")
    keeper, watching = session.keeper(), watcher(session)
    (client,) = (pid for pid in process.children(keeper) if pid != watching)
    return {"keeper": keeper, "watcher": watching, "client": client}


def below(pid: int) -> list[int]:
    return [found for child in process.children(pid) for found in (child, *below(child))]


def kb_of_living(pid: int) -> int:
    """Agents look around with small programs even while they are idle: one may have ended since it was listed."""
    try:
        return pss_kb(pid)
    except ProcessLookupError:
        return 0


def begun(stage: Stage, agent: str = "bench-acp", folder: str = "") -> Session:
    spec = SessionSpec(folder or stage.work, agent=agent)
    session = Session(stage, create(stage.home, spec, stage.settings, actor="test").id)
    session.start()
    wait_until(lambda: is_in_state(session, "idle"), "its prompt")
    return session


def is_in_state(session: Session, state: str) -> bool:
    return runfiles.read_report(session.run_folder).get("state") == state


class Adapter:
    """The agent alone, spoken to on its pipes."""

    def __init__(self, argv: list[str]) -> None:
        self.child = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._ask("initialize", {"protocolVersion": 1})
        self._session = self._ask("session/new", {"cwd": "/", "mcpServers": []})["sessionId"]

    def first_words_ms(self) -> float:
        """From a prompt to its first chunk. The turn has ended then."""
        began = time.perf_counter()
        self._write("session/prompt", {"sessionId": self._session, "prompt": [{"type": "text", "text": PROMPT}]})
        assert self._read()["method"] == "session/update"
        took_ms = (time.perf_counter() - began) * 1000
        while "result" not in self._read():
            pass
        return took_ms

    def end(self) -> None:
        end_children([self.child])

    def _ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        self._write(method, params)
        found: dict[str, Any] = self._read()["result"]
        return found

    def _write(self, method: str, params: dict[str, Any]) -> None:
        assert self.child.stdin is not None
        self.child.stdin.write(
            json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode() + b"\n"
        )
        self.child.stdin.flush()

    def _read(self) -> dict[str, Any]:
        assert self.child.stdout is not None
        found: dict[str, Any] = json.loads(self.child.stdout.readline())
        return found
