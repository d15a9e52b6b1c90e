"""The page as an app: it can be installed, opens without the hub, and is never older than the hub."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import hitchpost
from tests.browser.windows import Window, expect
from tests.hubs import HubProcess
from tests.support import eventually

KEPT = """async () => {
    const kept = {};
    for (const name of await caches.keys())
        kept[name] = (await (await caches.open(name)).keys()).map(one => new URL(one.url).pathname);
    return kept;
}"""
READY = "navigator.serviceWorker.ready.then(worker => new URL(worker.scope).pathname)"


def kept(window: Window) -> dict[str, list[str]]:
    """The paths of all that the browser keeps for the page, by the name of the cache."""
    return window.page.evaluate(KEPT)


def newer_hub(folder: Path) -> str:
    """A copy of the package whose page is another one; the folder to import it from."""
    package = folder / "hitchpost"
    shutil.copytree(Path(hitchpost.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    web = package / "web"
    (script,) = (web / "assets").glob("index-*.js")
    script.rename(script.with_name("index-newer.js"))
    for name in ("index.html", "sw.js"):
        text = (web / name).read_text().replace(script.name, "index-newer.js").replace("`page ", "`newer page ")
        (web / name).write_text(text)
    return str(folder)


@pytest.mark.keeps_page
def test_the_page_is_an_app_that_opens_without_the_hub(
    hub: HubProcess, tmp_path: Path, windows: Callable[..., Window]
) -> None:
    window = windows()
    window.sign_in()
    page = window.page

    # it can be installed: a manifest, icons that are there, and a worker
    manifest: dict[str, Any] = page.evaluate("fetch('/manifest.webmanifest').then(answer => answer.json())")
    assert (manifest["display"], manifest["start_url"]) == ("standalone", "/")
    sizes: dict[str, set[str]] = {"any": set(), "maskable": set()}
    for icon in manifest["icons"]:
        drawn = "new Promise(done => { const one = new Image(); one.onload = () => done(one.width); one.src = %r })"
        width = page.evaluate(drawn % icon["src"])
        assert icon["sizes"] in ("any", f"{width}x{width}")
        sizes[icon["purpose"]].add(icon["sizes"])
    assert sizes == {"any": {"any", "192x192", "512x512"}, "maskable": {"512x512"}}
    assert page.evaluate(READY) == "/"

    # only the page's own files are kept, whatever was asked for meanwhile
    page.reload()
    expect(page.locator(".link.open")).to_be_attached()
    ((name, paths),) = kept(window).items()
    assert [path for path in paths if path != "/" and not path.startswith("/assets/")] == []
    assert len(paths) >= 3

    # without the hub it opens, and says what is the matter
    port = int(hub.url.rpartition(":")[2])
    hub.kill()
    page.reload()
    expect(page.get_by_role("status").first).to_contain_text("Cannot reach the hub.")

    # a newer hub has its own page at once, and the older one is forgotten
    hub.start(port=port, PYTHONPATH=newer_hub(tmp_path))
    page.goto(window.link())
    page.reload()
    expect(page.locator(".link.open")).to_be_attached()
    expect(page.locator("script[src='/assets/index-newer.js']")).to_have_count(1)
    # only asked for by name: to look into the older ones could make them again
    eventually(lambda: page.evaluate("caches.keys()") == [f"newer {name}"], 60, what="the newer files only")
    hub.kill()
    page.reload()
    expect(page.get_by_role("status").first).to_contain_text("Cannot reach the hub.")
    assert page.locator("script[src='/assets/index-newer.js']").count() == 1
