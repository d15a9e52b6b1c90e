"""The page as an app: it can be installed, opens without the hub, and is never older than the hub."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import hitchpost
from tests.browser.windows import Window, expect
from tests.ground import Ground
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
    scripts = list((web / "assets").glob("*.js"))
    names = {script.name: f"{script.name.partition('-')[0]}-newer.js" for script in scripts}
    for file in (web / "index.html", web / "sw.js", *scripts):
        text = file.read_text().replace("`page ", "`newer page ")
        for name, newer in names.items():
            text = text.replace(name, newer)
        file.write_text(text)
    for script in scripts:
        script.rename(script.with_name(names[script.name]))
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


ASKED = "performance.getEntriesByType('resource').map(one => new URL(one.name).pathname)"
FETCHED = "path => fetch(path).then(answer => answer.status, () => 'refused')"


def look_at_all_parts(window: Window) -> None:
    """Each of those that are not in the first load."""
    page = window.page
    page.get_by_role("button", name="Diff").click()
    expect(page.locator("[data-panel=diff] .panel-body")).to_contain_text("no git repository")
    page.get_by_role("button", name="Why").click()
    expect(page.locator("[data-panel=explain] .panel-body")).to_contain_text("running")
    page.get_by_role("button", name="Timeline").click()
    page.locator("[data-panel=timeline] .timeline button").first.click()
    expect(page.locator(".player")).to_be_visible()
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Settings and keys").click()
    expect(page.get_by_role("dialog").get_by_role("region", name="Notifications")).to_be_visible()
    page.keyboard.press("Escape")
    page.locator(".row .open-session").focus()
    page.keyboard.press("Control+k")
    page.keyboard.type("Usage")
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog", name="Usage").get_by_text("Sum by")).to_be_attached()
    page.keyboard.press("Escape")


@pytest.mark.keeps_page
def test_a_tab_that_outlives_an_upgrade_has_all_its_parts_and_nothing_of_the_network(
    ground: Ground, hub: HubProcess, tmp_path: Path, windows: Callable[..., Window]
) -> None:
    dev = ground.begin_sh("exec cat", name="dev")
    window = windows()
    window.sign_in()
    page = window.page
    page.evaluate(READY)
    page.reload()
    window.open_session("dev")
    eventually(lambda: any("/Player-" in path for path in page.evaluate(ASKED)), what="the parts that come later")
    (name,) = kept(window)
    port = int(hub.url.rpartition(":")[2])
    hub.kill()
    expect(page.locator(".lost-link")).to_contain_text("lost")
    hub.start(port=port, PYTHONPATH=newer_hub(tmp_path))
    eventually(lambda: page.evaluate("caches.keys()") == [f"newer {name}"], 60, what="the newer files only")
    expect(page.locator(".link.open")).to_be_attached()
    look_at_all_parts(window)
    # what the worker does not keep is nobody's to answer
    (script,) = (path for path in page.evaluate(ASKED) if "/index-" in path and path.endswith(".js"))
    assert page.evaluate(FETCHED, script) == "refused"
    assert page.evaluate(FETCHED, "/assets/index-newer.js") == 200
    icons = [path for path in kept(window)[f"newer {name}"] if path.endswith(".png")]
    assert [page.evaluate(FETCHED, path) for path in icons] == [200, 200, 200]
    ground.end(dev)


def test_a_part_that_cannot_be_loaded_says_so_in_its_place_and_comes_with_the_hub(
    hub: HubProcess, windows: Callable[..., Window]
) -> None:
    window = windows()
    page = window.page
    page.route("**/assets/Usage*.js", lambda route: route.abort())
    page.goto(f"{hub.url}/?usage=day#{window.link().partition('#')[2]}")
    dialog = page.get_by_role("dialog", name="Usage")
    expect(dialog).to_be_visible()
    expect(dialog.get_by_role("alert")).to_contain_text("could not be loaded")
    page.unroute_all()
    port = int(hub.url.rpartition(":")[2])
    hub.kill()
    expect(page.locator(".lost-link")).to_contain_text("lost")
    hub.start(port=port)
    expect(dialog.get_by_text("Sum by")).to_be_attached()
    expect(dialog.get_by_role("alert")).to_have_count(0)


def test_no_part_is_taken_from_whoever_has_the_port_while_the_hub_is_away(
    ground: Ground, hub: HubProcess, windows: Callable[..., Window]
) -> None:
    window = windows()
    page = window.page
    asked: list[str] = []
    page.add_init_script("window.requestIdleCallback = () => 0")
    page.on("request", lambda request: asked.append(request.url))
    window.sign_in()
    hub.kill()
    expect(page.locator(".lost-link")).to_contain_text("lost")
    page.get_by_role("button", name="Settings and keys").click()
    expect(page.get_by_role("dialog").get_by_role("alert")).to_contain_text("could not be loaded")
    assert [url for url in asked if "/NotificationSettings-" in url] == []
