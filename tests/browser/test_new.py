"""A new session: its prompt first, its project, its worktree, its agent; and what is wrong beside its field."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, Route

from hitchpost.agents import catalog
from tests.browser.test_barriers import AXE, EVERY_RULE, PHONE, WIDE, barriers
from tests.browser.windows import Window, expect, style
from tests.cli.own_agents import describe, own_agent
from tests.ground import Ground
from tests.hubs import HubProcess
from tests.repos import Repo
from tests.support import eventually

ECHO = 'stty -echo; while read line; do echo "<$line>"; done'
CUT = "names => names.filter(name => name.scrollWidth > name.clientWidth).map(name => name.textContent)"
SHOWN = "sh -c 'echo \"one  word\"; exec cat'"


class NewDialog:
    """The dialog as a person sees it."""

    def __init__(self, window: Window) -> None:
        self.window, self.page = window, window.page
        self.box = window.page.get_by_role("dialog")
        self.prompt = self.box.get_by_label("What should be done?")
        self.project = self.box.get_by_label("Project", exact=True)
        self.worktree = self.box.get_by_label("Own worktree")
        self.branch = self.box.get_by_label("on branch")
        self.command = self.box.get_by_label("Command", exact=True).and_(self.page.locator("input:not([type=radio])"))
        self.name = self.box.get_by_label("Name", exact=True)
        self.start = self.box.get_by_role("button", name="Start")
        self.offers = self.box.locator("#folder-list [role=option]")

    def open(self) -> NewDialog:
        self.page.get_by_role("button", name=re.compile("^New")).first.click()
        expect(self.prompt).to_be_focused()
        return self

    def agent(self, name: str) -> Locator:
        return self.box.locator(".tile").filter(has=self.page.locator(".tile-name", has_text=re.compile(f"^{name}$")))

    def choose(self, name: str) -> None:
        self.agent(name).get_by_role("radio").check()

    def chip(self, name: str) -> Locator:
        return self.box.get_by_role("button", name=name, exact=True)

    def about(self, field: str) -> Locator:
        return self.box.locator(f"#{field}-about.trouble")

    def more(self) -> None:
        self.box.locator(".more > summary").click()
        expect(self.name).to_be_visible()

    def values(self) -> dict[str, str]:
        return self.box.locator("form").evaluate("form => Object.fromEntries(new FormData(form))")


@pytest.fixture
def dialog(window: Window) -> NewDialog:
    return NewDialog(window)


def other_repo(repo: Repo, name: str) -> Repo:
    repo.git("clone", "-q", repo.path, repo.path.parent / name)
    return Repo(repo.path.parent / name)


def test_a_session_starts_in_a_worktree_whose_branch_is_named_from_its_prompt(
    repo: Repo, hub: HubProcess, window: Window, dialog: NewDialog
) -> None:
    page = window.page
    dialog.open()
    page.keyboard.type("Fix the login test!\nIt fails on Mondays.")
    dialog.project.fill(str(repo.path))
    expect(dialog.worktree).to_be_checked()
    expect(dialog.branch).to_have_value("fix-the-login-test")
    dialog.choose("Command")
    dialog.command.fill(SHOWN)
    dialog.more()
    dialog.name.fill("fixer")
    dialog.prompt.press("Control+Enter")
    expect(page.locator(".pane")).to_have_attribute("aria-label", "fixer")
    window.expect_shown("one  word")
    window.expect_shown("It fails on Mondays.")
    made = hub.ask("GET", "/api/sessions/fixer")
    assert made["workspace"]["branch"] == "fix-the-login-test"
    assert made["workspace"]["repository"] == str(repo.path)

    # the same again: the form is empty, the project is offered, and the branch is another one
    dialog.open()
    expect(dialog.prompt).to_have_value("")
    expect(dialog.chip("shop")).to_have_attribute("aria-pressed", "true")
    dialog.prompt.fill("Fix the login test")
    expect(dialog.branch).to_have_value("fix-the-login-test-2")
    dialog.choose("Command")
    dialog.command.fill("cat")
    dialog.command.press("Enter")
    expect(page.locator(".pane")).to_have_attribute("aria-label", "cat-fix-the-login-test-2")
    for name in ("fixer", "cat-fix-the-login-test-2"):
        hub.ask("POST", f"/api/sessions/{name}/stop")


def test_a_branch_is_free_even_when_nobody_has_waited_for_its_name(
    repo: Repo, hub: HubProcess, dialog: NewDialog
) -> None:
    repo.git("branch", "go")
    dialog.open()
    dialog.project.fill(str(repo.path))
    dialog.choose("Command")
    dialog.command.fill("cat")
    dialog.prompt.fill("Go")
    dialog.prompt.press("Control+Enter")
    expect(dialog.page.locator(".pane")).to_have_attribute("aria-label", "cat-go-2")
    hub.ask("POST", "/api/sessions/cat-go-2/stop")


def test_values_survive_every_switch(repo: Repo, dialog: NewDialog) -> None:
    other = other_repo(repo, "other")
    dialog.open()
    dialog.project.fill(str(repo.path))
    dialog.prompt.fill("hello")
    expect(dialog.branch).to_have_value("hello")
    dialog.branch.fill("fix-auth")
    dialog.more()
    assert style(dialog.box.locator(".more"), "margin-left") == "0px"
    dialog.name.fill("fixer")
    dialog.choose("Bash")
    before = dialog.values()
    assert [before[name] for name in ("folder", "branch", "name", "prompt")] == [
        str(repo.path),
        "fix-auth",
        "fixer",
        "hello",
    ]
    dialog.choose("Command")
    dialog.command.fill("sleep 1")
    assert dialog.values() == {**before, "agent": "/", "command": "sleep 1"}
    dialog.choose("Bash")
    assert dialog.values() == before
    dialog.choose("Command")
    expect(dialog.command).to_have_value("sleep 1")
    dialog.project.fill(str(other.path))
    expect(dialog.worktree).to_be_enabled()
    assert dialog.values() == {**before, "agent": "/", "command": "sleep 1", "folder": str(other.path)}
    dialog.worktree.uncheck()
    dialog.worktree.check()
    expect(dialog.branch).to_have_value("fix-auth")
    dialog.project.fill(str(repo.path.parent))
    expect(dialog.worktree).to_be_disabled()
    expect(dialog.box).to_contain_text("Not a git repository")
    dialog.project.fill(str(repo.path))
    expect(dialog.branch).to_have_value("fix-auth")
    # a branch that nobody names is named from the prompt again
    dialog.branch.fill("")
    dialog.prompt.focus()
    expect(dialog.branch).to_have_value("hello")


def test_what_is_wrong_is_said_beside_its_field(ground: Ground, repo: Repo, dialog: NewDialog) -> None:
    dev = ground.begin_sh(ECHO, name="dev")
    dialog.open()
    dialog.choose("Command")
    dialog.project.fill(str(repo.path))
    dialog.start.click()
    expect(dialog.about("command")).to_have_text("Say which command to run.")
    expect(dialog.command).to_be_focused()
    dialog.command.fill("cat")
    expect(dialog.about("command")).to_have_count(0)
    for folder, text in (
        (f"{repo.path}/nowhere", "There is no such folder on the hub's machine."),
        ("shop", "The folder has to be a full path, such as /src/shop or ~/shop."),
        ("", "Say in which folder to work."),
    ):
        dialog.project.fill(folder)
        dialog.project.press("Enter")
        expect(dialog.about("folder")).to_have_text(text)
    dialog.project.fill(str(repo.path))
    for branch, text in (
        ("main", f"Branch main is checked out in {repo.path}. Choose another branch, or work there."),
        ("a..b", "'a..b' cannot be the name of a branch; see git help check-ref-format."),
    ):
        dialog.branch.fill(branch)
        dialog.branch.press("Enter")
        expect(dialog.about("branch")).to_have_text(text)
    dialog.worktree.uncheck()
    dialog.more()
    dialog.name.fill("dev")
    dialog.box.locator(".more > summary").click()
    dialog.start.click()
    expect(dialog.about("name")).to_have_text("Another session has this name. Choose another one.")
    expect(dialog.name).to_be_focused()
    dialog.name.fill("7")
    dialog.name.press("Enter")
    expect(dialog.about("name")).to_contain_text("only digits")
    assert not re.search(r"--\w", dialog.box.inner_text())
    assert dialog.window.names() == ["dev"]
    ground.end(dev)


def test_what_is_not_installed_says_how_to_get_it(ground: Ground, dialog: NewDialog) -> None:
    """By its whole name: two ways to start one agent differ at its end."""
    programs = ground.place / "programs"
    programs.mkdir()
    for name in ("bash", "cat"):
        (programs / name).symlink_to(f"/bin/{name}")
    ground.configure(f'[env]\nPATH = "{programs}"')
    dialog.open()
    dialog.project.fill(str(ground.place))
    expect(dialog.agent("Bash").get_by_role("radio")).to_be_checked()
    assert dialog.box.locator(".tile-name").all_inner_texts()[:2] == ["Bash", "Command"]
    expect(dialog.box.locator(".tile.missing")).to_have_count(len(catalog.names()) - 1)
    assert dialog.box.locator(".tile-name").evaluate_all(CUT) == []
    dialog.choose("aider")
    expect(dialog.box.locator(".install")).to_have_text("pip install aider-chat")
    dialog.start.click()
    expect(dialog.about("agent")).to_have_text("aider is not installed on the hub's machine.")
    assert dialog.window.names() == []


def test_an_agent_is_asked_only_for_what_it_takes(ground: Ground, dialog: NewDialog) -> None:
    dialog.open()
    dialog.choose("Claude Code")
    dialog.more()
    dialog.box.get_by_label("Model").fill("opus")
    dialog.box.get_by_label("Permission mode").fill("plan")
    dialog.choose("Bash")
    expect(dialog.box.get_by_label("Model")).to_have_count(0)
    dialog.choose("Claude Code")
    expect(dialog.box.get_by_label("Model")).to_have_value("opus")
    expect(dialog.box.get_by_label("Image")).to_have_count(0)
    dialog.box.get_by_label("Runtime").select_option("docker")
    dialog.box.get_by_label("Image").fill("box")
    dialog.box.get_by_label("Runtime").select_option("local")
    dialog.box.locator(".more > summary").click()
    expect(dialog.box.locator(".said")).to_have_text("local · opus · plan")


def test_a_path_is_completed_and_a_tilde_understood(
    repo: Repo, hub: HubProcess, windows: Callable[..., Window]
) -> None:
    top = repo.path.parent
    for name in ("shelf", ".secret", "shop/src"):
        (top / name).mkdir()
    hub.stop()
    hub.start(HOME=str(top))
    window = windows()
    window.sign_in()
    page, dialog = window.page, NewDialog(window).open()
    expect(dialog.project).to_have_value("~/")
    dialog.project.focus()
    page.keyboard.type("sh")
    expect(dialog.offers).to_have_text(["~/shelf", "~/shopgit"])
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    expect(dialog.project).to_have_attribute("aria-activedescendant", "folder-1")
    page.keyboard.press("Enter")
    expect(dialog.project).to_have_value("~/shop/")
    expect(dialog.offers).to_have_text(["~/shop/src"])
    page.keyboard.press("Tab")
    expect(dialog.project).to_have_value("~/shop/src/")
    expect(dialog.worktree).to_be_enabled()
    expect(dialog.offers).to_have_count(0)
    dialog.project.fill("~/.")
    expect(dialog.offers.filter(has_text="~/.secret")).to_have_count(1)
    page.keyboard.press("Escape")
    expect(dialog.offers).to_have_count(0)
    expect(dialog.box).to_be_visible()
    dialog.project.fill("~/sh")
    dialog.offers.filter(has_text="~/shop").click()
    expect(dialog.project).to_be_focused()
    expect(dialog.project).to_have_value("~/shop/")
    dialog.choose("Command")
    dialog.command.fill("sleep 1000")
    dialog.worktree.uncheck()
    dialog.project.focus()
    page.keyboard.press("Enter")
    expect(page.locator(".pane")).to_have_attribute("aria-label", "sleep-shop")
    assert hub.ask("GET", "/api/sessions/sleep-shop")["workspace"]["path"] == str(repo.path)
    hub.ask("POST", "/api/sessions/sleep-shop/stop")


def test_agent_and_worktree_are_remembered_for_each_project(
    ground: Ground, repo: Repo, hub: HubProcess, window: Window, dialog: NewDialog
) -> None:
    other = other_repo(repo, "other")
    own_agent(ground.place, "mine", "exec cat")
    for place, agent, own in ((repo, "Bash", False), (other, "Mine", True)):
        dialog.open()
        dialog.project.fill(str(place.path))
        expect(dialog.worktree).to_be_enabled()
        dialog.worktree.set_checked(own)
        dialog.choose(agent)
        dialog.more()
        dialog.name.fill(place.path.name)
        dialog.start.click()
        expect(window.page.locator(".pane")).to_have_attribute("aria-label", place.path.name)
    window.page.reload()
    dialog.open()
    expect(dialog.box.locator(".tile-name").first).to_have_text("Mine")
    for place, agent, own in ((other, "Mine", True), (repo, "Bash", False), (other, "Mine", True)):
        dialog.chip(place.path.name).click()
        expect(dialog.worktree).to_be_checked(checked=own)
        expect(dialog.agent(agent).get_by_role("radio")).to_be_checked()
    # what a person has chosen stays
    dialog.choose("Command")
    dialog.chip("shop").click()
    expect(dialog.agent("Command").get_by_role("radio")).to_be_checked()
    # what was begun elsewhere since is what was used last
    hub.ask("POST", "/api/sessions", {"agent": "bash", "folder": str(ground.place), "name": "third"})
    window.page.goto(f"{hub.url}/?new=1")
    expect(dialog.project).to_have_value(str(ground.place))
    expect(dialog.agent("Bash").get_by_role("radio")).to_be_checked()
    for name in ("shop", "other", "third"):
        hub.ask("POST", f"/api/sessions/{name}/stop")


def test_the_dialog_has_an_address_and_back_closes_it(hub: HubProcess, window: Window, dialog: NewDialog) -> None:
    page = window.page
    dialog.open()
    assert page.url == f"{hub.url}/?new=1"
    dialog.prompt.fill("half a thought")
    dialog.project.fill("/some/where")
    page.go_back()
    expect(dialog.box).to_have_count(0)
    expect(page).to_have_url(f"{hub.url}/")
    page.go_forward()
    expect(dialog.prompt).to_have_value("half a thought")
    expect(dialog.project).to_have_value("/some/where")
    dialog.prompt.press("Escape")
    expect(dialog.box).to_have_count(0)
    expect(page).to_have_url(f"{hub.url}/")
    dialog.open()
    expect(dialog.prompt).to_have_value("half a thought")
    dialog.box.get_by_role("button", name="Cancel").click()
    expect(dialog.box).to_have_count(0)
    page.goto(f"{hub.url}/?new=1")
    expect(dialog.prompt).to_be_focused()
    page.keyboard.press("Escape")
    expect(dialog.box).to_have_count(0)
    expect(page).to_have_url(f"{hub.url}/")


def test_who_may_only_look_starts_nothing(hub: HubProcess, windows: Callable[..., Window]) -> None:
    window = windows()
    window.sign_in(role="viewer")
    window.page.goto(f"{hub.url}/?new=1")
    expect(window.page.locator(".link.open")).to_be_attached()
    expect(window.page.get_by_role("dialog")).to_have_count(0)


def test_a_session_whose_prompt_was_not_delivered_is_not_started_twice(
    ground: Ground, hub: HubProcess, window: Window, dialog: NewDialog
) -> None:
    dialog.open()
    dialog.prompt.fill("hello")
    dialog.project.fill(str(ground.place))
    dialog.choose("Command")
    dialog.command.fill("sleep 1000")
    dialog.start.click()
    expect(window.page.locator(".notice")).to_contain_text("was started, but its first prompt was not delivered")
    expect(dialog.box).to_have_count(0)
    expect(window.row("sleep-place")).to_be_visible()
    assert window.names() == ["sleep-place"]
    dialog.open()
    expect(dialog.prompt).to_have_value("")
    # its words are not lost
    dialog.page.keyboard.press("Escape")
    expect(dialog.box).to_have_count(0)
    field = window.page.get_by_label("Prompt for sleep-place")
    field.press("ArrowUp")
    expect(field).to_have_value("hello")
    hub.ask("POST", "/api/sessions/sleep-place/stop")


def slow_agent(ground: Ground, script: str, name: str = "slow") -> None:
    """One that is not ready for as long as it says nothing."""
    program = ground.place / f"{name}-program"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    describe(name, f'title = "{name.title()}"\nargv = ["{program}"]\nready_after_s = 600\n')


def test_a_session_opens_when_its_run_has_begun_not_when_its_agent_is_ready(
    ground: Ground, hub: HubProcess, window: Window, dialog: NewDialog
) -> None:
    go_on = ground.place / "go-on"
    slow_agent(ground, f"while [ ! -e {go_on} ]; do sleep 0.1; done; echo oh; exit 3")
    dialog.open()
    dialog.project.fill(str(ground.place))
    dialog.choose("Slow")
    dialog.start.click()
    expect(window.page.locator(".pane")).to_have_attribute("aria-label", "slow-place")
    expect(dialog.box).to_have_count(0)
    assert hub.ask("GET", "/api/sessions/slow-place")["state"] == "running"
    go_on.touch()
    expect(window.page.locator(".end-bar")).to_contain_text("Process exited with code 3")
    window.expect_shown("oh")


def test_an_agent_that_fails_before_it_is_ready_is_told_where_its_session_is(
    ground: Ground, window: Window, dialog: NewDialog
) -> None:
    go_on = ground.place / "go-on"
    slow_agent(ground, f"while [ ! -e {go_on} ]; do sleep 0.1; done; exit 3")
    dialog.open()
    dialog.project.fill(str(ground.place))
    dialog.choose("Slow")
    dialog.start.click()
    expect(window.page.locator(".pane")).to_have_attribute("aria-label", "slow-place")
    go_on.touch()
    expect(window.page.locator(".notice")).to_contain_text("ended at once: command exited with code 3")
    expect(window.page.locator(".end-bar")).to_contain_text("Process exited with code 3")
    expect(dialog.box).to_have_count(0)


def begin_held(ground: Ground, dialog: NewDialog) -> Route:
    """Start one whose request is on its way."""
    held: list[Route] = []
    dialog.page.route("**/api/sessions", lambda route: held.append(route))
    dialog.open()
    dialog.prompt.fill("keep these words")
    dialog.project.fill(str(ground.place))
    dialog.choose("Command")
    dialog.command.fill("cat")
    dialog.start.click()
    expect(dialog.box.get_by_role("button", name="Starting…")).to_be_visible()
    eventually(lambda: held or dialog.page.evaluate("0"), what="the request")
    return held[0]


@pytest.mark.parametrize("how", ["Cancel", "Close", "Escape", "Back"])
def test_cancel_while_it_starts_stops_and_archives_it(
    ground: Ground, hub: HubProcess, window: Window, dialog: NewDialog, how: str
) -> None:
    held = begin_held(ground, dialog)
    if how == "Escape":
        window.page.keyboard.press(how)
    elif how == "Back":
        window.page.go_back()
    else:
        dialog.box.get_by_role("button", name=how, exact=True).click()
    expect(dialog.box).to_have_count(0)
    held.continue_()
    expect(window.page.locator(".notice")).to_have_text(re.compile("Cancelled: cat-place was stopped and archived."))
    expect(window.page.locator(".pane")).to_have_count(0)
    assert hub.ask("GET", "/api/sessions/cat-place")["record"] == "archived"
    dialog.open()
    expect(dialog.prompt).to_have_value("keep these words")


CLICK_NOTIFICATION = """session => navigator.serviceWorker.dispatchEvent(
    new MessageEvent("message", { data: { open: session } })
)"""


def test_a_notification_that_leads_elsewhere_while_it_starts_cancels_nothing(
    ground: Ground, hub: HubProcess, window: Window, dialog: NewDialog
) -> None:
    dev = ground.begin_sh(ECHO, name="dev")
    held = begin_held(ground, dialog)
    window.page.evaluate(CLICK_NOTIFICATION, dev.id)
    expect(dialog.box).to_have_count(0)
    held.continue_()
    expect(window.row("cat-place")).to_be_visible()
    expect(window.page.locator(".pane")).to_have_attribute("aria-label", "dev")
    expect(window.page.locator(".notice", has_text="cat-place was started.")).to_be_visible()
    made = hub.ask("GET", "/api/sessions/cat-place")
    assert (made["record"], made["state"]) == ("active", "running")
    dialog.open()
    expect(dialog.prompt).to_have_value("")
    hub.ask("POST", "/api/sessions/cat-place/stop")
    ground.end(dev)


def test_no_tile_moves_while_the_dialog_is_open(ground: Ground, hub: HubProcess, dialog: NewDialog) -> None:
    own_agent(ground.place, "mine", "exec cat")
    own_agent(ground.place, "other", "exec cat")
    hub.ask("POST", "/api/sessions", {"agent": "mine", "folder": str(ground.place), "name": "first"})
    dialog.open()
    names = dialog.box.locator(".tile-name")
    expect(names.first).to_have_text("Mine")
    before = names.all_inner_texts()
    hub.ask("POST", "/api/sessions", {"agent": "other", "folder": str(ground.place), "name": "second"})
    expect(dialog.page.locator(".row")).to_have_count(2)
    assert names.all_inner_texts() == before
    dialog.page.keyboard.press("Escape")
    dialog.open()
    expect(names.first).to_have_text("Other")
    for name in ("first", "second"):
        hub.ask("POST", f"/api/sessions/{name}/stop")


def test_a_session_is_started_on_a_phone(repo: Repo, hub: HubProcess, windows: Callable[..., Window]) -> None:
    window = windows(**PHONE)
    window.sign_in()
    page, dialog = window.page, NewDialog(window)
    page.get_by_role("button", name=re.compile("^New")).first.tap()
    expect(dialog.prompt).to_be_focused()
    assert dialog.box.bounding_box() == {"x": 0, "y": 0, "width": 390, "height": 844}
    dialog.prompt.fill("Say hello")
    dialog.project.fill(str(repo.path))
    dialog.agent("Command").tap()
    dialog.command.fill("sh -c 'echo hello; exec cat'")
    dialog.box.locator(".more > summary").tap()
    small = dialog.box.locator("input:not([type=radio], [type=checkbox]), textarea, select").evaluate_all(
        "fields => fields.filter(field => parseFloat(getComputedStyle(field).fontSize) < 16).map(field => field.name)"
    )
    assert small == []
    assert dialog.box.locator(".parts").evaluate("parts => parts.scrollWidth <= parts.clientWidth")
    expect(dialog.branch).to_have_value("say-hello")
    expect(dialog.start).to_be_in_viewport()
    dialog.start.tap()
    expect(page.locator(".pane")).to_have_attribute("aria-label", "sh-say-hello")
    window.expect_shown("hello")
    hub.ask("POST", "/api/sessions/sh-say-hello/stop")


@pytest.mark.parametrize("size", [WIDE, PHONE], ids=["wide", "phone"])
def test_nothing_keeps_people_out_of_the_dialog(
    ground: Ground, repo: Repo, windows: Callable[..., Window], size: dict[str, object]
) -> None:
    dev = ground.begin_sh(ECHO, name="dev", place=repo.path)
    window = windows(**size)
    window.sign_in()
    page, dialog = window.page, NewDialog(window).open()
    page.evaluate(AXE.read_text())
    found = []

    def look(screen: str) -> None:
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            found.extend(barriers(page, f"{screen} in {scheme}", EVERY_RULE))

    look("empty")
    dialog.prompt.fill("Fix the login test")
    dialog.project.fill(f"{repo.path.parent}/s")
    expect(dialog.offers.first).to_be_visible()
    look("folders")
    dialog.project.fill(str(repo.path))
    dialog.box.locator(".tile.missing").first.get_by_role("radio").check()
    dialog.more()
    look("not installed")
    dialog.start.click()
    expect(dialog.about("agent")).to_be_visible()
    look("trouble")
    assert found == []
    ground.end(dev)


def test_what_a_usage_limit_does_is_chosen_for_agents_of_which_it_is_known(
    ground: Ground, hub: HubProcess, window: Window, dialog: NewDialog
) -> None:
    rules = "[rules]\nversion = 1\n[[screen]]\nstate = 'idle'\nfind = ['talker>']\n"
    own_agent(ground.place, "talker", "printf 'talker> '; exec cat", rules)
    own_agent(ground.place, "plain", "exec sleep 1000")
    dialog.open()
    dialog.project.fill(str(ground.place))
    limit = dialog.box.get_by_label("At a usage limit")
    dialog.choose("Plain")
    dialog.more()
    expect(limit).to_have_count(0)
    dialog.choose("Talker")
    expect(limit).to_have_value("")
    limit.select_option("Wait for its end, and go on")
    expect(dialog.box.locator(".more .said")).to_contain_text("waits out usage limits")
    dialog.name.fill("dev")
    dialog.start.click()
    expect(window.page.locator(".pane")).to_have_attribute("aria-label", "dev")
    assert hub.ask("GET", "/api/sessions/dev")["when_limit"] == "wait"
    ground.hitch("stop", "dev")
