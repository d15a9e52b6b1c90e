"""Settings from the file and from the environment, and files of variables."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hitchpost import settings
from hitchpost.errors import BadSettings
from hitchpost.values import fields
from tests.ground import Ground
from tests.hubs import HubProcess

NAME = "AGENT_SESSION_IDLE_TIMEOUT"


@pytest.mark.ids("D-9")
@pytest.mark.parametrize(("text", "minutes"), [("45", 45), ("0.5", 0.5), ("0", 0), ("", 7), (" ", 7), (None, 7)])
def test_the_idle_timeout_of_the_environment_counts_more_than_the_file(
    ground: Ground, monkeypatch: pytest.MonkeyPatch, text: str | None, minutes: float
) -> None:
    ground.configure("reap_idle_minutes = 7")
    monkeypatch.delenv(NAME, raising=False)
    if text is not None:
        monkeypatch.setenv(NAME, text)
    assert settings.load().reap_idle_minutes == minutes
    os.unlink(settings.config_path())
    assert settings.load().reap_idle_minutes == (30 if minutes == 7 else minutes)


@pytest.mark.ids("D-9")
@pytest.mark.parametrize("text", ["soon", "30m", "-1", "nan", "inf", "1e99"])
def test_an_idle_timeout_that_is_no_time_is_named(home: object, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv(NAME, text)
    with pytest.raises(BadSettings, match=f"the environment: expected {NAME} to be a number from 0 to 527040, but got"):
        settings.load()


@pytest.mark.ids("D-9")
def test_a_hub_reaps_after_the_time_in_its_environment(ground: Ground, hub: HubProcess) -> None:
    hub.stop()
    ground.configure("reap_every_minutes = 0.002")
    dev = ground.begin_sh("exec sleep 1000")
    hub.start(AGENT_SESSION_IDLE_TIMEOUT="0.005")
    assert dev.ended() == "stopped"
    assert dev.exit()["intent"] == "reaper"


def test_every_key_has_a_check() -> None:
    assert set(settings.CHECKS) == set(fields(settings.Settings))


TOPIC = "the URL of a topic, such as https://ntfy.sh/my-topic, without a name and password"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("idle_after = 3", "expected idle_after to be a table of seconds, but got 3"),
        ("idle_after = {aider = -1}", "expected idle_after.aider to be a number from 0 to 31622400, but got -1"),
        ("log_cap_mib = 1.5", "expected log_cap_mib to be a whole number from 1 to 1073741824, but got 1.5"),
        ("pass_env = [1]", "expected pass_env to be a list of names, but got [1]"),
        ("image = 1", "expected image to be a text, but got 1"),
        ("notify = 3", "expected notify to be a table, but got 3"),
        ("notify = {dwel_s = 3}", ", webhook_secret, webhook_url, but got 'dwel_s'"),
        ("notify = {dwell_s = -1}", "expected notify.dwell_s to be a number from 0 to 3600, but got -1"),
        (
            'notify = {kinds = ["everything"]}',
            "to be a list of permission, your-turn, error, failed, finished, hub, but got ['everything']",
        ),
        ('notify = {sessions = {a = ["x"]}}', "failed, finished, hub, but got {'a': ['x']}"),
        ('notify = {quiet_hours = "22-7"}', """to be like "22:00-07:00", or empty, but got '22-7'"""),
        (
            'notify = {command = ["tell", "hush", 3]}',
            "config.toml: expected notify.command to be a list of words, the program first",
        ),
        ("notify = {command = []}", "config.toml: expected notify.command to be a list of words, the program first"),
        *(
            (f'notify = {{ntfy_url = "{url}"}}', f"config.toml: expected notify.ntfy_url to be {TOPIC}")
            for url in ("hush", "https://me:hush@ntfy.sh/topic", "https://ntfy.sh", "https://ntfy.sh/?hush")
        ),
        *(
            (
                f"notify = {{ntfy_token = {token}}}",
                "config.toml: expected notify.ntfy_token to be a text without spaces",
            )
            for token in ("12345", '"hush\\n"')
        ),
        (
            'notify = {webhook_url = "https://me:hush@example.org", webhook_secret = "hush"}',
            "config.toml: expected notify.webhook_url to be an https:// or http:// URL without a name and password",
        ),
        (
            'notify = {webhook_url = "https://hush"}',
            "expected notify.webhook_secret to be there, too: what is sent to webhook_url is signed with it",
        ),
        ('env = {SECRET = 1, B = "hush"}', "config.toml: expected env to be a table of texts"),
        ('env = {"A=B" = "hush"}', "config.toml: expected env to be names without =, and texts without NUL"),
    ],
)
def test_a_wrong_value_is_named_and_a_variable_s_is_not(ground: Ground, text: str, problem: str) -> None:
    ground.configure(text)
    with pytest.raises(BadSettings) as caught:
        settings.load()
    assert str(caught.value).endswith(problem)


LINES = {
    "A=value": "value",
    "A = value": "value",
    "export A=value": "value",
    "A=": "",
    "A=x=y": "x=y",
    "A=two words": "two words",
    "A=it's": "it's",
    'A=5" disk': '5" disk',
    "A='value'": "value",
    'A="value"': "value",
    "A=' spaces '": " spaces ",
    "A=''": "",
    'A="it\'s"': "it's",
    "A='say \"hi\"'": 'say "hi"',
    "A='\"value\"'": '"value"',
    "A=\"'value'\"": "'value'",
    "A=''value''": None,
    "A='value": None,
    "A=\"value'": None,
    "A='a' b": None,
    "A='Let\\'s go!'": "Let's go!",
    'A="{\\"hello\\": \\"json\\"}"': '{"hello": "json"}',
    'A="a\\tb\\nc\\\\d"': "a\tb\nc\\d",
    "A='a\\tb'": "a\\tb",
    "A=a\\tb": "a\\tb",
    'A="C:\\dir"': "C:\\dir",
    "A=value # comment": "value",
    "A=value# not a comment": "value# not a comment",
    "A=#value": "#value",
    "A= # comment": "",
    "A='value # not a comment'": "value # not a comment",
    'A="value" # comment': "value",
    "A='value'# glued": None,
    "A=$HOME": "$HOME",
    'A="${HOME}"': "${HOME}",
    "A=a\u2028b": "a\u2028b",
    "A=value\r": "value",
}


@pytest.mark.parametrize(("line", "value"), LINES.items(), ids=map(repr, LINES))
def test_a_line_of_an_env_file_is_read_as_docker_compose_reads_it(line: str, value: str | None) -> None:
    if value is None:
        with pytest.raises(ValueError, match=r"the value (has no closing|continues after the closing)"):
            settings.env_line(line)
    else:
        assert settings.env_line(line) == {"A": value}


def test_comments_and_empty_lines_have_no_variable() -> None:
    assert [settings.env_line(line) for line in ("", "  ", "# A=1", "  # A=1", "\r")] == [{}] * 5


def test_a_line_that_is_wrong_is_named_without_its_value(tmp_path: Path) -> None:
    path = tmp_path / "keys.env"
    path.write_text("A=1\nB='secret\n")
    with pytest.raises(BadSettings) as caught:
        settings.environment(settings.Settings(env_files=(str(path),)))
    assert str(caught.value) == f"{path}, line 2: the value has no closing '"
