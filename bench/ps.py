"""``hitch ps`` without a hub, against the bare start of the same Python."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from itertools import pairwise

from bench.stage import Stage, command_s, hitch, median, program, wait_until
from bench.table import Row, at_most_times
from hitchpost import lightjson
from hitchpost.model import run as runs
from hitchpost.store import files, home, statefile
from hitchpost.store.index import INDEX
from hitchpost.system import process

LIVE = 5
COUNTS = (100, 1_000, 10_000)
TIMES_BARE, TIMES_BARE_WITH_HUB = 10, 6
AGE_S = 86_400.0


def measure(*, quick: bool) -> list[Row]:
    counts = COUNTS[:1] if quick else COUNTS
    cold_times, warm_times = (1, 3) if quick else (3, 15)
    rows = []
    with Stage(quick=quick) as stage:
        stage.sessions(2 if quick else LIVE, program(), "sleep")
        made = 0
        for count in counts:
            write_sessions(stage, made, count - made)
            made = count
            stored = os.path.join(stage.home, INDEX)
            bare_s, table_s, json_s, cold_s = [], [], [], []
            for _ in range(cold_times):
                files.discard(stored)
                cold_s.append(command_s(hitch(), "ps"))
            command_s(hitch(), "ps")
            for _ in range(warm_times):
                bare_s.append(command_s(sys.executable, "-c", "pass"))
                table_s.append(command_s(hitch(), "ps"))
                json_s.append(command_s(hitch(), "ps", "--json"))
            bare_ms = median(bare_s) * 1000
            wanted = at_most_times(TIMES_BARE)
            hub_s, hub_json_s, adopted_s = with_hub(stage, warm_times)
            for what, values, limit in (
                ("warm", table_s, wanted),
                ("--json, warm", json_s, wanted),
                ("with the hub", hub_s, at_most_times(TIMES_BARE_WITH_HUB)),
                ("--json, with the hub", hub_json_s, at_most_times(TIMES_BARE_WITH_HUB)),
                ("index rebuilt", cold_s, None),
            ):
                rows.append(
                    Row(
                        f"ps, {count:,} sessions, {what}",
                        f"median of {len(values)}",
                        median(values) * 1000,
                        "ms",
                        bare_ms,
                        "python -c pass",
                        limit,
                    )
                )
            what, sample = f"start of the hub beside {count:,} sessions", "once"
            rows.append(Row(what, sample, adopted_s * 1000, "ms", bare_ms, "python -c pass"))
    return rows


def with_hub(stage: Stage, times: int) -> tuple[list[float], list[float], float]:
    """Seconds of ``ps`` and ``ps --json`` beside a hub, and until the hub had adopted every session."""
    began = time.monotonic()
    hub = subprocess.Popen(
        [sys.executable, "-m", "hitchpost.hub", "127.0.0.1", "0"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_until(lambda: os.path.exists(os.path.join(stage.home, "hub.json")), "the hub")
        adopted_s = time.monotonic() - began
        tables, texts = [], []
        for _ in range(times):
            tables.append(command_s(hitch(), "ps"))
            texts.append(command_s(hitch(), "ps", "--json"))
        return tables, texts, adopted_s
    finally:
        hub.terminate()
        hub.wait()


def write_sessions(stage: Stage, first: int, count: int) -> None:
    """Sessions that have ended, with all the files that real ones have, written without forcing them to the disk."""
    chance = random.Random(first)
    here = os.stat(stage.work)
    for number in range(first, first + count):
        ended = time.time() - AGE_S - chance.randrange(10_000_000)
        session = "".join(chance.choices(home.ID_LETTERS, k=home.ID_LENGTH))
        code = chance.choice((0, 0, 1, 130))
        state, reason = runs.verdict(code, None, None)
        created_at = files.stamp(ended - 4_000)
        record: dict[str, object] = {
            "schema": files.SCHEMA,
            "id": session,
            "index": 1_000 + number,
            "name": f"claude-shop-{number}",
            "description": chance.choice(("", "", "fix the sign-in page, then the tests of it")),
            "agent": chance.choice(("claude", "codex", "bash")),
            "argv": ["claude", "--dangerously-skip-permissions"],
            "folder": f"{stage.work}/shop-{number}",
            "folder_dev": here.st_dev,
            "folder_ino": here.st_ino,
            "created_at": created_at,
            "branch": chance.choice((None, f"fix-{number}")),
        }
        value = statefile.new_state(session, "", 1, files.stamp(ended)) | {"state": state}
        end = {"schema": files.SCHEMA, "code": code, "signal": None, "intent": None, "ended_at": files.stamp(ended)}
        run = {"schema": files.SCHEMA, "run": 1, "argv": record["argv"], "boot_id": process.boot_id()}
        run |= {
            "started_at": files.stamp(ended - 3_900),
            "keeper": {"pid": 1, "start": 1},
            "agent": {"pid": 1, "start": 1},
        }
        steps = [runs.CREATED, runs.STARTING, runs.RUNNING, state]
        told = [
            statefile.story_line("state", 1, "keeper", files.stamp(ended), {"from": old, "to": new, "reason": reason})
            for old, new in pairwise(steps)
        ]
        created = statefile.story_line("created", 1, "cli", created_at, {"record": record})
        folder = os.path.join(stage.home, "sessions", session)
        os.makedirs(os.path.join(folder, "runs", "1", "output"), 0o700)
        for name, text in (
            ("session.json", lightjson.dumps(record)),
            ("state.json", lightjson.dumps(value)),
            ("lock", ""),
            ("story.jsonl", "\n".join((created, *told))),
            ("runs/1/run.json", lightjson.dumps(run)),
            ("runs/1/exit.json", lightjson.dumps(end)),
            ("runs/1/exit_status", str(code)),
            ("runs/1/keeper.lock", "1 1 x"),
            ("runs/1/keeper.log", ""),
            ("runs/1/output/times.bin", "x" * 34),
            ("runs/1/output/00000000000000000000.log", "good bye\r\n"),
        ):
            fd = os.open(os.path.join(folder, name), os.O_WRONLY | os.O_CREAT, 0o600)
            os.write(fd, f"{text}\n".encode())
            os.close(fd)
        os.utime(os.path.join(folder, "runs/1/output/00000000000000000000.log"), (ended, ended))
        os.utime(folder, (ended, ended))
