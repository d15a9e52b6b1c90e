"""A new session at a hub that runs them in pods: a repository instead of a folder, for members too."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser

from tests.browser.test_barriers import AXE, EVERY_RULE, PHONE, WIDE, barriers
from tests.browser.test_new import NewDialog
from tests.browser.windows import Window, expect
from tests.fleet.process_pods import AWAY, hub_with_pods
from tests.ground import Ground
from tests.hubs import HubProcess
from tests.people import People
from tests.repos import Repo
from tests.support import eventually

SETTINGS = """
[fleet]
only_pods = true
[fleet.profiles.default]
cpu = "100m"
[fleet.profiles.large]
cpu = "4"
memory = "16Gi"
storage = "50Gi"
"""
SHOW = "sh -c 'git log --format=%s -1; echo pwd: $PWD; exec cat'"


@pytest.fixture
def hub(ground: Ground, database: str) -> Iterator[HubProcess]:
    ground.configure(SETTINGS)
    with hub_with_pods(ground, database) as made:
        yield made


@pytest.fixture
def windows(browser: Browser, hub: HubProcess) -> Iterator[Callable[..., Window]]:
    opened: list[Window] = []

    def window(**options: object) -> Window:
        opened.append(Window.open(browser, hub, service_workers="block", **options))
        return opened[-1]

    yield window
    for one in opened:
        one.close()
    assert [error for one in opened for error in one.errors] == []


class PodDialog(NewDialog):
    def __init__(self, window: Window) -> None:
        super().__init__(window)
        self.repo = self.box.get_by_label("Repository", exact=True)
        self.branch = self.box.get_by_label("Branch", exact=True)
        self.profile = self.box.get_by_label("Profile", exact=True)


def cancel(hub: HubProcess, name: str) -> None:
    hub.ask("POST", f"/api/sessions/{name}/cancel")
    eventually(lambda: hub.ask("GET", f"/api/sessions/{name}")["state"] == "stopped", what="its end")


def test_a_member_starts_a_session_in_a_clone_of_a_repository(
    hub: HubProcess, repo: Repo, windows: Callable[..., Window]
) -> None:
    people = People(hub)
    people.add("anna")
    people.add("vera", "viewer")
    window = windows()
    window.sign_in(user="anna", role="member")
    dialog = PodDialog(window)
    dialog.open()
    for gone in (dialog.project, dialog.worktree, dialog.box.get_by_label("Runtime")):
        expect(gone).to_have_count(0)
    dialog.choose("Command")
    dialog.command.fill(SHOW)
    dialog.branch.fill("fix")
    dialog.start.click()
    expect(dialog.about("repo")).to_have_text("Say of which repository that is a branch.")
    dialog.repo.fill("not an address")
    dialog.start.click()
    expect(dialog.about("repo")).not_to_be_empty()
    address = f"file://{repo.path}"
    dialog.repo.fill(address)
    expect(dialog.profile.locator("option")).to_have_text(["default", "large"])
    dialog.profile.select_option("large")
    expect(dialog.box.locator("#profile-about")).to_have_text("4 CPU, 16Gi memory, 50Gi storage")
    dialog.more()
    dialog.name.fill("fixer")
    dialog.prompt.fill("Fix it")
    dialog.prompt.press("Control+Enter")
    expect(window.page.locator(".pane")).to_have_attribute("aria-label", "fixer")
    window.expect_shown("pwd: ")
    window.expect_shown("Fix it")
    made = hub.ask("GET", "/api/sessions/fixer")
    assert (made["owner"], made["runtime"]) == ("anna", "pod")
    assert hub.ask("GET", "/api/sessions/fixer/story")[0]["record"]["profile"] == "large"
    assert (made["workspace"]["repository"], made["workspace"]["branch"]) == (address, "fix")

    # what was used is offered again, from the dialog and from the page's first view
    dialog.open()
    expect(dialog.repo).to_have_value(address)
    expect(dialog.chip("shop")).to_have_attribute("aria-pressed", "true")
    window.page.keyboard.press("Escape")
    cancel(hub, "fixer")

    looks = windows()
    looks.sign_in(user="vera", role="viewer")
    looks.page.goto(f"{hub.url}/?new=1")
    expect(looks.page.locator(".link.open")).to_be_attached()
    expect(looks.page.get_by_role("dialog")).to_have_count(0)
    expect(looks.page.get_by_role("button", name="New")).to_have_count(0)


def test_an_owner_starts_a_session_in_an_empty_folder_of_a_pod(hub: HubProcess, windows: Callable[..., Window]) -> None:
    window = windows()
    window.sign_in()
    dialog = PodDialog(window)
    dialog.open()
    expect(dialog.repo).to_have_value("")
    dialog.choose("Command")
    dialog.command.fill("sh -c 'ls -A; echo ready; exec cat'")
    dialog.start.click()
    window.expect_shown("ready")
    (made,) = hub.ask("GET", "/api/sessions")
    assert (made["runtime"], made["workspace"]["repository"]) == ("pod", None)
    cancel(hub, made["id"])


@pytest.mark.parametrize("role", ["owner", "member"])
def test_a_form_stays_as_it_is_while_the_cluster_is_away_and_says_why_nothing_starts(
    ground: Ground, hub: HubProcess, windows: Callable[..., Window], role: str
) -> None:
    People(hub).add("anna", role)
    window = windows()
    window.page.clock.install()
    window.sign_in(user="anna", role=role)
    dialog = PodDialog(window)
    dialog.open()
    dialog.prompt.fill("Fix it")
    away = ground.watch.scratch / "pods" / AWAY
    away.touch()
    with window.page.expect_response("**/api/catalog"):
        window.page.clock.run_for(11_000)
    dialog.choose("Command")
    dialog.command.fill("sh -c 'echo ready; exec cat'")
    dialog.repo.fill("https://git.example.org/team/app.git")
    dialog.repo.fill("")
    dialog.start.click()
    expect(dialog.box.locator(".parts > .trouble")).to_contain_text("The cluster cannot be used: it is away.")
    away.unlink()
    dialog.start.click()
    window.expect_shown("ready")
    (made,) = hub.ask("GET", "/api/sessions")
    cancel(hub, made["id"])


@pytest.mark.parametrize("size", [WIDE, PHONE], ids=["wide", "phone"])
def test_nothing_keeps_people_out_of_the_dialog_for_pods(
    hub: HubProcess, windows: Callable[..., Window], size: dict[str, object]
) -> None:
    people = People(hub)
    people.add("anna")
    window = windows(**size)
    window.sign_in(user="anna", role="member")
    page, dialog = window.page, PodDialog(window)
    dialog.open()
    page.evaluate(AXE.read_text())
    dialog.prompt.fill("Fix the login test")
    dialog.repo.fill("https://git.example.org/team/app.git")
    dialog.more()
    assert dialog.box.locator(".parts").evaluate("parts => parts.scrollWidth <= parts.clientWidth")
    found = []
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        found.extend(barriers(page, f"in {scheme}", EVERY_RULE))
    assert found == []
    dialog.box.locator(".parts").evaluate("parts => parts.scrollTo(0, 0)")
