"""Sessions in containers: from the agent's exit to stale, from a removal by hand to stopped, and twenty at once."""

from __future__ import annotations

import os
import signal
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

from bench.stage import Stage, percentile
from bench.table import Row, at_most
from hitchpost.model.compat import agent_state
from hitchpost.model.status import status
from hitchpost.ops.sessions.create import create
from hitchpost.ops.sessions.spec import SessionSpec
from hitchpost.ops.sessions.start import start
from hitchpost.ops.sessions.stop import stop
from hitchpost.ops.views.observe import observe
from hitchpost.runtimes import container_file, engine
from hitchpost.store.sandbox import StoredSandbox
from tests.boxes import DOCKER, PLAIN, Engine, the_engine, why_not

ARGV = ("sh", "-c", "read line; exit 1")
AT_ONCE = 20
SANDBOX = StoredSandbox(image=PLAIN, network="none", memory_bytes=64 << 20)


def measure(*, quick: bool) -> list[Row]:
    if why := why_not(DOCKER):
        print(f"bench: no containers: {why}", file=sys.stderr)
        return []
    made = the_engine()
    os.environ["DOCKER_HOST"] = made.url
    with Stage(quick=quick) as stage:
        count = 3 if quick else 30
        rows = [*exits(stage, count), *removals(stage, made, 2 if quick else 10)]
        return [*rows, *at_once(stage, 3 if quick else AT_ONCE)]


def begun(stage: Stage) -> str:
    spec = SessionSpec(stage.work, command=ARGV, runtime="docker")
    session = create(stage.home, spec, stage.settings, actor="test", sandbox=SANDBOX).id
    start(stage.home, session, stage.settings, caller=os.environ, actor="test")
    return session


def until(stage: Stage, session: str, word: str, cr070_word: str) -> float:
    began = time.perf_counter()
    while True:
        facts = observe(stage.home, session).facts
        if status(facts, datetime.now(UTC)).word == word or (cr070_word and agent_state(facts) == cr070_word):
            return (time.perf_counter() - began) * 1000
        time.sleep(0.0005)


def exits(stage: Stage, count: int) -> list[Row]:
    took_ms = []
    session = begun(stage)
    for _ in range(count):
        os.kill(agent(stage, session), signal.SIGKILL)
        took_ms.append(until(stage, session, "stale", ""))
        start(stage.home, session, stage.settings, caller=os.environ, actor="test")
    stop(stage.home, session, grace_s=0, actor="test")
    return [
        Row(f"agent's exit → stale, p{share * 100:g}", f"{count} exits", percentile(took_ms, share), "ms", None, "",
            at_most(100, "ms") if share > 0.5 else None)
        for share in (0.5, 0.99)
    ]  # fmt: skip


def removals(stage: Stage, made: Engine, count: int) -> list[Row]:
    took_ms = []
    for _ in range(count):
        session = begun(stage)
        box = container_file.read_box(observe(stage.home, session).folder)
        assert box is not None
        engine.ask(box.engine, lambda asked, box=box: engine.remove(asked, box.id))  # type: ignore[misc]
        took_ms.append(until(stage, session, "", "stopped"))
    return [
        Row("container removed by hand → stopped, most", f"{count} removals", max(took_ms), "ms", None, "",
            at_most(5000, "ms"))
    ]  # fmt: skip


def at_once(stage: Stage, count: int) -> list[Row]:
    with ThreadPoolExecutor(count) as pool:
        began = time.perf_counter()
        sessions = list(pool.map(lambda _: begun(stage), range(count)))
        started_s = time.perf_counter() - began
        words = {status(observe(stage.home, session).facts, datetime.now(UTC)).word for session in sessions}
        assert words == {"running"}, words
        began = time.perf_counter()
        list(pool.map(lambda session: stop(stage.home, session, grace_s=0, actor="test"), sessions))
        ended_s = time.perf_counter() - began
    sample = f"{count} at once"
    return [
        Row("containers started, the agents run", sample, started_s, "s", None, "", None),
        Row("containers stopped and removed", sample, ended_s, "s", None, "", None),
    ]


def agent(stage: Stage, session: str) -> int:
    import json

    with open(os.path.join(observe(stage.home, session).run_folder, "run.json")) as file:
        return int(json.load(file)["agent"]["pid"])
