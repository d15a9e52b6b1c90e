"""S10: a value of the environment reaches the agent and nothing else."""

from __future__ import annotations

import secrets
from pathlib import Path

import pytest

from tests.ground import Ground, Truth
from tests.support import Process, eventually


def holders(canary: str) -> tuple[set[int], set[int]]:
    """The pids that have the canary in their environment, and those that have it in their arguments."""
    in_environment, in_arguments = set(), set()
    for process in Process.all():
        if any(canary in word for word in process.argv):
            in_arguments.add(process.pid)
        try:
            if canary.encode() in Path(f"/proc/{process.pid}/environ").read_bytes():
                in_environment.add(process.pid)
        except OSError:
            continue
    return in_environment, in_arguments


def written(canary: str, *folders: Path) -> list[Path]:
    return [
        path
        for folder in folders
        for path in folder.rglob("*")
        if path.is_file() and canary.encode() in path.read_bytes()
    ]


@pytest.mark.ids("S10")
@pytest.mark.parametrize("way", ["caller", "--env", "config", "env_files"])
def test_S10_a_secret_is_in_the_agents_environment_and_nowhere_else(ground: Ground, way: str) -> None:
    canary = f"canary-{secrets.token_hex(8)}"
    words: tuple[str, ...] = ()
    env: dict[str, str] = {}
    if way == "caller":
        env = {"SECRET": canary}
    elif way == "--env":
        words, env = ("--env", "SECRET"), {"SECRET": canary}
    elif way == "config":
        ground.configure(f'[env]\nSECRET = "{canary}"\n')
    else:
        (ground.watch.scratch / "env").write_text(f"export SECRET='{canary}'\n")
        ground.configure(f'env_files = ["{ground.watch.scratch}/env"]\n')
    script = 'printf %s "$SECRET" | cksum > sum; exec sleep 1000'
    run = ("run", "--json", *words, "--workspace", str(ground.place), "--", "sh", "-c", script)
    dev = Truth(ground.home, ground.hitch(*run, env=env).json()["id"])
    assert ground.said("sum").split()[1] == str(len(canary))
    eventually(lambda: Process.read(dev.agent_pid()).argv[0] == "sleep")  # type: ignore[union-attr]
    ground.configure("")
    other = ground.run("sleep", "1000")
    in_environment, in_arguments = holders(canary)
    assert (in_environment, in_arguments) == ({dev.agent_pid()}, set())
    assert "SECRET" in dev.run_file()["env_names"]
    for line in (("ps", "--json", "--all"), ("explain", dev.id), ("explain", "--json", dev.id)):
        assert canary not in ground.hitch(*line).out
    ground.hitch("stop", dev.id, other.id)
    assert written(canary, ground.home) == []


@pytest.mark.ids("S10")
def test_S10_a_keeper_has_next_to_nothing_of_its_starters_environment(ground: Ground) -> None:
    dev = ground.run("sleep", "1000", env={"SECRET": "x", "PYTHONPATH": "/evil", "LD_PRELOAD": ""})
    texts = Path(f"/proc/{dev.keeper_pid()}/environ").read_bytes().split(b"\0")[:-1]
    assert {text.split(b"=")[0] for text in texts} <= {b"LANG", b"LC_ALL", b"HITCHPOST_KEEPER", b"LC_CTYPE"}
    ground.end(dev)


@pytest.mark.ids("S10")
def test_S10_a_restart_tells_which_name_is_missing_and_no_value(ground: Ground) -> None:
    canary = f"canary-{secrets.token_hex(8)}"
    dev = ground.run("sleep", "1000", env={"SECRET": canary})
    answer = ground.hitch("restart", dev.id)
    assert "SECRET was set in run 1 and is not now" in answer.err
    assert canary not in answer.err + answer.out
    assert holders(canary) == (set(), set())
    ground.end(dev)
    assert written(canary, ground.home) == []


@pytest.mark.ids("S10")
def test_S10_a_secret_outlives_neither_a_failed_start_nor_a_killed_keeper(ground: Ground) -> None:
    canary = f"canary-{secrets.token_hex(8)}"
    ground.hitch("run", "--", "/no/such/program", env={"SECRET": canary}, check=1)
    dev = ground.begin("sleep", "1000", env={"SECRET": canary})
    dev.kill_keeper()
    ground.hitch("stop", dev.id)
    assert holders(canary) == (set(), set())
    assert written(canary, ground.home) == []
