"""The page's files over HTTP, and what is said when there are none."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from hitchpost.hub.http.static import serve_page
from tests.hubs import HubProcess

MOST_FIRST_BYTES = 250_000
MOST_FONT_BYTES = 120_000


@pytest.fixture
def built(tmp_path: Path) -> Path:
    folder = tmp_path / "web"
    (folder / "assets").mkdir(parents=True)
    (folder / "index.html").write_text("<!doctype html>")
    (folder / "favicon.svg").write_text("<svg/>")
    (folder / "manifest.webmanifest").write_text("{}")
    (folder / "assets" / "index-a1b2.js").write_text("1")
    (folder / "assets" / "index-a1b2.css").write_text("a{}")
    (folder / "assets" / "notes.txt").write_text("no type of ours")
    (tmp_path / "secret.js").write_text("secret")
    return folder


def client(folder: Path) -> TestClient:
    app = FastAPI()
    serve_page(app, str(folder))
    return TestClient(app)


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/", "text/html; charset=utf-8"),
        ("/favicon.svg", "image/svg+xml"),
        ("/manifest.webmanifest", "application/manifest+json"),
        ("/assets/index-a1b2.js", "text/javascript; charset=utf-8"),
        ("/assets/index-a1b2.css", "text/css; charset=utf-8"),
    ],
)
def test_each_file_has_its_type(built: Path, path: str, kind: str) -> None:
    answer = client(built).get(path)
    assert (answer.status_code, answer.headers["content-type"]) == (200, kind)
    assert ("immutable" in answer.headers.get("cache-control", "")) == path.startswith("/assets/")


@pytest.mark.parametrize(
    "path",
    ["/assets/..%2f..%2fsecret.js", "/assets/%2e%2e/%2e%2e/secret.js", "/assets/notes.txt", "/assets/", "/sw.js", "/x"],
)
def test_nothing_else_is_served(built: Path, path: str) -> None:
    answer = client(built).get(path)
    assert answer.status_code == 404
    assert "secret" not in answer.text


def test_the_page_stays_as_it_was_when_the_hub_started(built: Path) -> None:
    hub = client(built)
    (built / "index.html").write_text("another version")
    (built / "assets" / "index-a1b2.js").unlink()
    assert hub.get("/").text == "<!doctype html>"
    assert hub.get("/assets/index-a1b2.js").text == "1"


def test_a_page_that_was_not_built_says_so(tmp_path: Path) -> None:
    answer = client(tmp_path / "nowhere").get("/")
    assert answer.status_code == 503
    assert "script/ui builds it" in answer.text


def test_the_first_load_is_small(hub: HubProcess) -> None:
    with hub.http(None) as anybody:
        page = anybody.get("/").text
        first = {path: anybody.get(path).content for path in re.findall(r"/assets/[^\"]+", page)}
        styles = b"".join(content for path, content in first.items() if path.endswith(".css")).decode()
        fonts = {path: anybody.get(path).content for path in re.findall(r"/assets/[\w.-]+\.woff2", styles)}
    assert len(first) >= 2
    assert len(fonts) == 3
    assert all(font.startswith(b"wOF2") for font in fonts.values())
    assert sum(map(len, fonts.values())) < MOST_FONT_BYTES
    assert sum(len(gzip.compress(one)) for one in (first | fonts).values()) < MOST_FIRST_BYTES


def test_over_the_gate_a_hashed_file_is_kept_and_the_page_is_not(hub: HubProcess) -> None:
    with hub.http(None) as anybody:
        page = anybody.get("/")
        assert page.headers.get_list("cache-control") == ["no-store"]
        asset = re.search(r"/assets/[^\"]+\.js", page.text)
        assert asset is not None, page.text
        kept = anybody.get(asset.group())
        assert kept.headers.get_list("cache-control") == ["public, max-age=31536000, immutable"]
        assert kept.headers["x-content-type-options"] == "nosniff"
