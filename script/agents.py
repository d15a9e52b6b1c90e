"""Installs real agents for the tests: ``script/agents``. What is to be installed is in ``INSTALLABLE``."""

from __future__ import annotations

import fcntl
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import venv
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from script.lock import locked

ROOT = Path(__file__).parents[1]
WHEELS = ROOT / "requirements/agents.txt"
AIDER = ROOT / "tests/agents/aider.txt"
NODE = ROOT / "tests/agents/npm"
USUAL = ("claude", "codex")
"""Those that every run of the tests drives in a terminal."""
USUAL_OVER_ACP = ("opencode", "claude-acp", "codex-acp")
"""What it drives over ACP, where there is a package for the machine; else those tests are skipped."""


class NotInstalled(Exception):
    """Raised when an agent cannot be installed."""


def cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "hitchpost/agents"


@dataclass(frozen=True, slots=True)
class Agent:
    name: str
    command: str
    version: Callable[[], str]
    install: Callable[[Agent, Path], None]
    """Puts the agent into a folder, with ``bin/COMMAND``."""

    @property
    def folder(self) -> Path:
        return cache() / f"{self.name}-{self.version()}"

    @property
    def path(self) -> Path:
        return self.folder / "bin" / self.command


def wheel(name: str, package: str, inside: str) -> Agent:
    """An agent that is a program inside a wheel; ``inside`` is the part of the wheel that is kept."""

    def install(agent: Agent, into: Path) -> None:
        text = WHEELS.read_text().replace("\\\n", " ").splitlines()
        only = into / "only.txt"
        only.write_text("".join(line + "\n" for line in text if line.startswith(f"{package}==")))
        pip(
            sys.executable,
            "download",
            "--no-deps",
            "--only-binary=:all:",
            "--require-hashes",
            "--requirement",
            only,
            "--dest",
            into / "wheel",
        )
        (found,) = (into / "wheel").iterdir()
        with zipfile.ZipFile(found) as opened:
            for entry in opened.infolist():
                if entry.filename.startswith(inside) and not entry.is_dir():
                    place = into / entry.filename.removeprefix(inside)
                    place.parent.mkdir(parents=True, exist_ok=True)
                    with opened.open(entry) as source, place.open("wb") as target:
                        shutil.copyfileobj(source, target)
                    place.chmod(0o755 if entry.external_attr >> 16 & 0o100 else 0o644)
        shutil.rmtree(into / "wheel")
        only.unlink()
        if not (into / "bin" / name).exists():
            (into / "bin").mkdir(exist_ok=True)
            (into / name).rename(into / "bin" / name)

    return Agent(name, name, lambda: locked(WHEELS)[package], install)


def package(name: str, program: str, command: str = "", node: str = "") -> Agent:
    """An agent from npm. ``program`` and the ``node`` that runs it, if it needs its own, lie in ``node_modules``."""
    source = NODE / name

    def install(agent: Agent, into: Path) -> None:
        for file in ("package.json", "package-lock.json"):
            shutil.copy(source / file, into)
        run("npm", "ci", "--silent", "--ignore-scripts", "--no-audit", "--no-fund", folder=into)
        link = into / "bin" / agent.command
        link.parent.mkdir()
        target = found(into, program)
        if node:
            words = shlex.join([str(agent.folder / found(into, node)), str(agent.folder / target)])
            link.write_text(f'#!/bin/sh\nexec {words} "$@"\n')
            link.chmod(0o755)
        else:
            link.symlink_to(Path("..") / target)

    def version() -> str:
        wanted = json.loads((source / "package.json").read_text())
        return str(wanted["version"])

    return Agent(name, command or name, version, install)


def found(into: Path, pattern: str) -> Path:
    places = sorted((into / "node_modules").glob(pattern))
    if not places:
        raise NotInstalled(f"expected {pattern} in node_modules; this machine's kind may have no such package")
    return places[0].relative_to(into)


def environment(name: str, package: str, lock: Path) -> Agent:
    """An agent in a virtual environment of its own."""

    def install(agent: Agent, into: Path) -> None:
        venv.create(into, with_pip=True)
        python = into / "bin/python"
        pip(python, "install", "--require-hashes", "--no-deps", "--requirement", lock)
        # What pip has written names the folder where it was made.
        launcher = into / "bin" / name
        launcher.write_text(f'#!/bin/sh\nexec {shlex.quote(str(agent.folder / "bin/python"))} -m {name} "$@"\n')

    return Agent(name, name, lambda: locked(lock)[package], install)


AGENTS = {
    agent.name: agent
    for agent in (
        wheel("claude", "claude-agent-sdk", "claude_agent_sdk/_bundled/"),
        wheel("codex", "openai-codex-cli-bin", "codex_cli_bin/"),
        package("codex-0.166", "@openai/codex-linux-*/vendor/*/bin/codex", command="codex"),
        package("gemini", ".bin/gemini"),
        package("opencode", "opencode-linux-*/bin/opencode"),
        package("qwen", "@qwen-code/qwen-code/cli.js", node="node-linux-*/bin/node"),
        package("copilot", ".bin/copilot"),
        package("goose", "@aaif/goose-binary-*/bin/goose"),
        environment("aider", "aider-chat", AIDER),
    )
}
ADAPTERS = {
    agent.name: agent
    for agent in (
        # The Claude Code that it brings along is left out: CLAUDE_CODE_EXECUTABLE names that of the tests.
        package(
            "claude-acp",
            "@agentclientprotocol/claude-agent-acp/dist/index.js",
            command="claude-agent-acp",
            node="node-linux-*/bin/node",
        ),
        package("codex-acp", "@zed-industries/codex-acp-linux-*/bin/codex-acp"),
    )
}
"""Programs that speak ACP for an agent that does not."""
INSTALLABLE = AGENTS | ADAPTERS


def pip(python: str | Path, *words: str | Path) -> None:
    run(python, "-m", "pip", "--disable-pip-version-check", "-qq", *words)


def run(*argv: str | Path, folder: Path | None = None) -> None:
    done = subprocess.run(argv, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode:
        raise NotInstalled(
            f"{shlex.join(map(str, argv))} ended with code {done.returncode}:\n{done.stdout}{done.stderr}"
        )


def ensure(agent: Agent) -> None:
    """Installs the agent unless it is there. One at a time: a second caller waits and finds the work done."""
    if agent.path.exists():
        return
    cache().mkdir(parents=True, exist_ok=True)
    with (cache() / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if agent.path.exists():
            return
        print(f"Installing {agent.name} {agent.version()} into {agent.folder}", file=sys.stderr, flush=True)
        scratch = Path(tempfile.mkdtemp(prefix=".new-", dir=cache()))
        try:
            agent.install(agent, scratch)
            scratch.chmod(0o755)
            scratch.rename(agent.folder)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)


def main(words: list[str]) -> int:
    names = [word for word in words if word != "--where"]
    if names == ["all"]:
        names = list(INSTALLABLE)
    needed = names or USUAL
    names = names or [*USUAL, *USUAL_OVER_ACP]
    unknown = [name for name in names if name not in INSTALLABLE]
    if unknown:
        print(f"script/agents: expected all, {', '.join(INSTALLABLE)}, got '{unknown[0]}'", file=sys.stderr)
        return 2
    code = 0
    for agent in map(INSTALLABLE.__getitem__, names):
        try:
            if "--where" not in words:
                ensure(agent)
        except NotInstalled as error:
            print(f"script/agents: {agent.name}: {error}", file=sys.stderr)
            code = 1 if agent.name in needed else code
        if agent.path.exists():
            print(f"{agent.name} {agent.path}")
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
