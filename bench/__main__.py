"""``script/bench``: measure, print one table, and leave with 1 when a figure is over its limit."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from importlib import import_module

from bench import turns
from bench.table import Row, rendered
from tests.undisturbed import leave_when_asked

MEASUREMENTS = {
    "exits": "exit → final state on disk, and → subscriber told",
    "transitions": "durable transitions per second",
    "ps": "hitch ps with 100, 1,000 and 10,000 sessions",
    "memory": "memory of 100 keepers",
    "starts": "start and restart → first output",
    "flood": "a PTY flood through the keeper into the log",
    "echo": "echo through the log, idle and beside floods",
    "idle": "forks, wake-ups and CPU of 100 idle sessions",
    "truth": "1,000 exits of all kinds, counted",
    "hub": "the hub: streams, crashes told, resumes, adoption, stalled clients",
    "containers": "sessions in containers: exit → stale, removal → stopped, twenty at once",
    "page": "the page: frames beside 50 talking sessions, and a key until its echo is painted",
    "rail": "the page's list of 300 sessions: painted, a change painted, and frames while fifty change each second",
    "top": "hitch top beside 300 sessions: processor while idle, and a key until it is drawn",
    "signin": "signing in: a link and a reload until the page can be used, and a request",
    "diffs": "hitch diff of a worktree with 10,000 files, against git diff",
    "agents": "watched agents: a permission asked → told, a report → ps, exits, and what watching costs",
    "acp": "a chat over ACP: a prompt until its first words are in the page, and memory, beside the adapter alone",
    "notify": "being told: an agent asks or ends → the message is at its receiver",
    "fleet": "sessions in pods beside kubectl, 100 pods, and 1,000 keepers under two hubs",
    "tmux": "200 sessions in tmux: one round of status, idle forks, and 1,000 exits",
}


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="script/bench",
        description="Measure hitch beside its anchors.",
        epilog="\n".join(f"{name:12} {text}" for name, text in MEASUREMENTS.items()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of the table")
    parser.add_argument("--only", nargs="+", metavar="NAME", choices=MEASUREMENTS, default=list(MEASUREMENTS))
    parser.add_argument("--quick", action="store_true", help="small samples: to see that it runs, not how fast")
    parser.add_argument("--against", metavar="REVISION", help="measure in turns with another version")
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="with --against: how often (3)")
    arguments = parser.parse_args()
    leave_when_asked()

    if arguments.against:
        return against(arguments)
    rows: list[Row] = []
    try:
        for name in arguments.only:
            began = time.monotonic()
            print(f"bench: {MEASUREMENTS[name]} …", file=sys.stderr, flush=True)
            rows += import_module(f"bench.{name}").measure(quick=arguments.quick)
            print(f"bench: {name} took {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
    finally:
        # who is interrupted still says what is known by then
        show(rows, as_json=arguments.json, quick=arguments.quick)
    return 1 if any(row.ok is False for row in rows) else 0


def against(arguments: argparse.Namespace) -> int:
    pairs = turns.in_turns(arguments.against, arguments.only, rounds=arguments.rounds, quick=arguments.quick)
    if arguments.json:
        print(json.dumps({"load": os.getloadavg()[0], "pairs": [pair.as_json() for pair in pairs]}, indent=1))
    else:
        print(turns.rendered(pairs))
    return 0 if all(pair.ok for pair in pairs) else 1


def show(rows: list[Row], *, as_json: bool, quick: bool) -> None:
    load = os.getloadavg()[0]
    if as_json:
        print(json.dumps({"load": load, "cores": os.cpu_count(), "rows": [row.as_json() for row in rows]}, indent=1))
    else:
        print(rendered(rows))
        print(f"\n{os.cpu_count()} cores, load average {load:.1f}{', quick' if quick else ''}")


if __name__ == "__main__":
    sys.exit(main())
