"""What is installed: locked versions with digests, known weaknesses asked for, an image that is pinned."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from packaging.utils import canonicalize_name

from script.audit import packages
from script.lock import complaints, locked

ROOT = Path(__file__).parents[1]


def test_what_is_installed_is_what_is_locked():
    lock = locked(ROOT / "requirements/dev.txt") | locked(ROOT / "requirements/pip.txt")
    installed = {canonicalize_name(found.name): found.version for found in metadata.distributions()}
    assert {name: version for name, version in installed.items() if lock.get(name, version) != version} == {}
    assert "setuptools" not in installed


def test_a_package_without_a_digest_is_refused(tmp_path: Path):
    lock = tmp_path / "base.txt"
    lock.write_text("click==8.5.1\n")
    with pytest.raises(SystemExit, match=r"expected NAME==VERSION with digests, got: click==8\.5\.1"):
        locked(lock)


def test_a_lock_that_does_not_fit_is_told():
    project = {"base.txt": ["click>=8.5,<9", "uvicorn>=0.54,<0.55", "structlog"]}
    locks = {"base.txt": {"click": "8.5.1", "uvicorn": "0.60"}}
    assert complaints(project, locks) == [
        "base.txt: uvicorn 0.60 does not meet <0.55,>=0.54",
        "base.txt: structlog is missing",
    ]


@contextmanager
def osv(answer: Any, status: int = 200) -> Iterator[tuple[str, list[Any]]]:
    """A service on loopback that gives this answer to everything, and what it was asked."""
    asked: list[Any] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            queries = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["queries"]
            asked.extend(queries)
            body = json.dumps(answer(queries) if callable(answer) else answer).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}", asked
        finally:
            server.shutdown()
            thread.join()


def audit(url: str) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-m", "script.audit"],
        cwd=ROOT,
        env={**os.environ, "OSV_URL": url},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    return done.returncode, done.stdout


def test_an_advisory_fails_the_audit():
    def answer(queries: list[Any]) -> Any:
        weak = {"vulns": [{"id": "GHSA-test"}]}
        return {"results": [weak if query["package"]["name"] == "uvicorn" else {} for query in queries]}

    with osv(answer) as (url, asked):
        code, text = audit(url)
    assert code == 1
    assert re.search(r"^uvicorn \S+ \(PyPI\): GHSA-test,", text)
    assert {(query["package"]["ecosystem"], query["package"]["name"]) for query in asked} >= {
        ("PyPI", "pyghostty"),
        ("PyPI", "pip"),
        ("npm", "@xterm/xterm"),
        ("npm", "@anthropic-ai/claude-code"),
    }


def test_an_audit_without_advisories_passes():
    with osv(lambda queries: {"results": [{} for _ in queries]}) as (url, _):
        assert audit(url) == (0, f"{len(packages())} packages audited, 0 advisories\n")


@pytest.mark.parametrize(("answer", "status"), [({"results": []}, 200), ([], 200), ("sorry", 503)])
def test_a_service_that_cannot_be_asked_is_told_and_stops_nobody(answer: Any, status: int):
    with osv(answer, status) as (url, _):
        code, text = audit(url)
    assert code == 0
    assert text.startswith(f"NOT AUDITED: {url} cannot be asked about {len(packages())} packages: ")


def test_the_image_is_pinned():
    dockerfile = (ROOT / "docker/Dockerfile").read_text()
    assert re.findall(r"^FROM (.*)$", dockerfile, re.M) == re.findall(
        r"^FROM (\S+@sha256:[0-9a-f]{64})$", dockerfile, re.M
    )
    agents = json.loads((ROOT / "docker/package.json").read_text())["dependencies"]
    lock = json.loads((ROOT / "docker/package-lock.json").read_text())["packages"]
    assert {name: lock[f"node_modules/{name}"]["version"] for name in agents} == agents
    assert [place for place, entry in lock.items() if place and "integrity" not in entry] == []


def test_the_image_of_a_fleet_is_the_agents_one_with_packages_that_are_locked():
    dockerfile = (ROOT / "docker/fleet.Dockerfile").read_text()
    assert re.findall(r"^(?:ARG|FROM) (.*)$", dockerfile, re.M) == ["AGENTS=hitchpost-agent", "${AGENTS}"]
    installs = re.findall(r"pip --no-cache-dir install (.*?)(?: \\)?$", dockerfile, re.M)
    assert [words.split()[0] for words in installs] == ["--require-hashes", "--require-hashes", "--no-deps"]
    lock = locked(ROOT / "requirements/fleet.txt")
    assert {"lightkube", "psycopg", "psycopg-binary", "uvicorn"} <= lock.keys()
    assert lock.items() <= locked(ROOT / "requirements/dev.txt").items()


def test_the_agents_of_the_tests_are_pinned_and_no_place_is_named():
    assert set(locked(ROOT / "requirements/agents.txt")) == {"claude-agent-sdk", "openai-codex-cli-bin"}
    assert locked(ROOT / "tests/agents/aider.txt")["aider-chat"]
    locks = sorted((ROOT / "tests/agents/npm").glob("*/package-lock.json"))
    assert len(locks) == 8
    for lock in locks:
        packages = json.loads(lock.read_text())["packages"]
        assert [place for place, entry in packages.items() if place and "integrity" not in entry] == []
        assert [place for place, entry in packages.items() if "resolved" in entry] == []
