"""An agent can write everything that its pod sends. That reaches its own session only, and ends nothing of a hub."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from hitchpost import lightjson, wire
from hitchpost.errors import HitchpostError
from hitchpost.fleet import frames, pod_copy, shipped
from hitchpost.fleet.links import _note_place
from hitchpost.fleet.pod_copy import Copy, NotFitting
from hitchpost.ops.views.diff import changed
from hitchpost.ops.views.observe import observe
from hitchpost.runtimes.pod import NoAnswer, RefusedThere
from hitchpost.store import files, records
from hitchpost.terminal import output
from tests.fleet.hostile import HostilePod, taken_over
from tests.fleet.processes import Fleet
from tests.support import eventually

LINE = b'{"at": "2026-01-01T00:00:00.000Z", "event": "%s", "run": 1, "actor": "%s", "reason": "%s"}\n'


@pytest.fixture
def pod(fleet: Fleet) -> Iterator[HostilePod]:
    with taken_over(fleet) as made:
        yield made


@pytest.fixture
def copy(pod: HostilePod) -> Iterator[Copy]:
    """As the link has it, with limits that a test can reach."""
    made = Copy(str(pod.session.folder), most_log_bytes=100_000, most_line_bytes=10_000)
    yield made
    made.close()


def named(kind: bytes, run: int, name: str, *parts: bytes, flag: int = frames.LAST) -> tuple[bytes, bytes]:
    return kind, frames.name_bytes(run, name, flag) + b"".join(parts)


def part(run: int, name: str, at: int, data: bytes) -> tuple[bytes, bytes]:
    return named(frames.PART, run, name, frames.offset(at), frames.offset(0), data)


def everything(top: Path) -> set[str]:
    return {os.path.join(folder, name) for folder, _, names in os.walk(top) for name in names}


# files ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        *("../state.json", "../../other/state.json", "/etc/passwd", "output/../../../x.log", "output", "", ".", ".."),
        *(
            "output/../run.json",
            "run.json/",
            "keeper.lock",
            "ctl.sock",
            "pod.json",
            "session.json\0",
            "runs/1/run.json",
        ),
        *("output/0000000000000000000x.log", "output//00000000000000000000.log", "output/00000000000000000000.log/x"),
    ],
)
def test_a_pod_writes_no_file_but_those_that_pods_send(pod: HostilePod, copy: Copy, name: str) -> None:
    before = everything(pod.fleet.ground.home)
    for kind, payload in (named(frames.FILE, 1, name, b"{}"), part(1, name, 0, b"x")):
        with pytest.raises(NotFitting):
            copy.apply(kind, payload)
    assert everything(pod.fleet.ground.home) - before <= {str(pod.session.folder / "lock")}


@pytest.mark.parametrize("run", [0, 2, 4_000_000_000])
def test_a_pod_speaks_of_no_run_that_there_is_not(pod: HostilePod, copy: Copy, run: int) -> None:
    number = frames.number(run)
    for kind, payload in (
        named(frames.FILE, run, wire.RUN, b"{}"),
        part(run, shipped.segment(0), 0, b"x"),
        (frames.REACHED, number + frames.offset(10)),
    ):
        with pytest.raises(NotFitting, match=rf"run {run}\b"):
            copy.apply(kind, payload)
    assert copy.ends == {}
    assert not (pod.session.folder / "runs" / str(run)).exists()


def test_a_log_whose_segments_never_end_is_no_log(copy: Copy) -> None:
    for at in (0, 50_000):
        copy.apply(*part(1, shipped.segment(0), at, bytes(50_000)))
    with pytest.raises(NotFitting, match="more than 100000 bytes"):
        copy.apply(*part(1, shipped.segment(0), 100_000, b"x"))
    assert output.bounds(copy._output(1))[1] == 100_000


def test_a_segment_of_a_log_begins_with_its_first_bytes_behind_the_others(copy: Copy) -> None:
    copy.apply(*part(1, shipped.segment(0), 0, bytes(10)))
    for start, at in ((5, 5), (10, 12), (20, 30)):
        with pytest.raises(NotFitting):
            copy.apply(*part(1, shipped.segment(start), at, b"x"))
    assert output.segments(copy._output(1)) == [0]


def test_of_very_many_segments_the_newest_are_kept(copy: Copy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pod_copy, "MOST_SEGMENTS", 5)
    for at in range(20):
        copy.apply(*part(1, shipped.segment(at), at, b"x"))
    assert output.segments(copy._output(1)) == [15, 16, 17, 18, 19]


def test_a_file_that_is_far_too_long_is_not_taken(copy: Copy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shipped, "MOST_WHOLE_BYTES", 100_000)
    copy.apply(*named(frames.FILE, 1, wire.RUN, bytes(60_000), flag=frames.MORE))
    with pytest.raises(NotFitting, match="more than 100000 bytes"):
        copy.apply(*named(frames.FILE, 1, wire.RUN, bytes(60_000), flag=frames.MORE))
    assert not copy._part


def test_a_log_that_ends_beyond_all_numbers_does_not(copy: Copy) -> None:
    with pytest.raises(NotFitting, match="cannot reach"):
        copy.apply(frames.REACHED, frames.number(1) + frames.offset((1 << 64) - 1))


# the story ------------------------------------------------------------------------------------------------------------


def test_a_pod_tells_what_becomes_of_its_run_and_nothing_in_the_name_of_people(pod: HostilePod, copy: Copy) -> None:
    before = pod.session.story()
    told = [
        *(LINE % (b"state", b"keeper", b"true"), LINE % (b"attention", b"ada", b"as somebody else")),
        *(LINE % (event, b"ada", b"forged") for event in (b"record", b"edited", b"created", b"given up", b"prompt")),
        *(b"no line\n", b"[]\n", b'"state"\n', b'{"event": ["state"]}\n', b"[" * 5000 + b"\n"),
    ]
    copy.apply(*part(0, files.STORY, 0, b"".join(told)))
    new = [(line["event"], line["actor"], line["reason"]) for line in pod.session.story()[len(before) :]]
    assert new == [("state", "keeper", "true"), ("attention", "pod", "as somebody else")]
    assert lightjson.loads((pod.session.folder / "from_pod.json").read_bytes())["story.jsonl"] == len(b"".join(told))  # type: ignore[index]


@pytest.mark.parametrize("name", shipped.LINES)
def test_a_story_without_end_ends(pod: HostilePod, copy: Copy, name: str) -> None:
    """Also of a pod that begins anew each time."""
    line = LINE % (b"state", b"keeper", b"x" * 1000)
    at = 0
    for number in range(40):
        copy.apply(*part(0, name, 0 if number % 2 else at, line))
        at = len(line) if number % 2 else at + len(line)
    assert (pod.session.folder / name).stat().st_size <= 10_000
    assert b"x" * 1000 in (pod.session.folder / name).read_bytes()


# what it says ---------------------------------------------------------------------------------------------------------


NONSENSE = {
    "an end without its run": frames.json_frame(frames.OVER, {}),
    "an end of another kind": frames.json_frame(frames.OVER, {"run": [1]}),
    "an end of a run that there is not": frames.json_frame(frames.OVER, {"run": 7}),
    "a file without a name": frames.frame(frames.FILE, b"\0"),
    "a name that is none": frames.frame(frames.FILE, frames.number(1), b"\0\x02\xff\xff"),
    "a list in the place of a state": frames.frame(frames.FILE, frames.name_bytes(1, "state.json"), b"[]"),
    "a state that is none": frames.frame(frames.FILE, frames.name_bytes(1, "state.json"), b'{"state": {}}'),
    "a record that is none": frames.frame(frames.FILE, frames.name_bytes(1, "session.json"), b'{"id": 1}'),
    "very deep JSON": frames.frame(frames.OVER, b"[" * 100_000),
    "too large a frame": b"\xff\xff\xff\xff" + frames.OVER,
    "a refusal that is none": frames.frame(frames.REFUSED, b"[]"),
}


@pytest.mark.parametrize("what", NONSENSE)
def test_whatever_a_pod_says_its_link_is_made_again(pod: HostilePod, what: str) -> None:
    pod.says = [NONSENSE[what]]
    link = pod.link()
    eventually(lambda: pod.links >= 2, what="another link")
    pod.says = []
    eventually(lambda: link.up_since is not None and not link.why_down, what="a link that stays")
    assert observe(pod.fleet.home, pod.session.id).facts.state == "created"


def test_a_pod_that_says_nonsense_all_the_time_costs_little(pod: HostilePod) -> None:
    """Each link is a handshake: they become rarer."""
    pod.says = [NONSENSE["an end without its run"]]
    link = pod.link()
    pauses: list[float] = []
    for number in range(2, 7):
        before = pod.fleet.loop.time()
        eventually(lambda number=number: pod.links >= number, what="another link")  # type: ignore[misc]
        pauses.append(pod.fleet.loop.time() - before)
    assert sum(pauses) > 0.05 + 0.1 + 0.2 + 0.4, pauses
    assert "makes no sense" in link.why_down or "nobody understands" in link.why_down


def test_answers_that_nobody_has_asked_for_are_not_kept(pod: HostilePod) -> None:
    link = pod.link()
    replies = [
        frames.frame(frames.REPLY, frames.number(number), bytes((frames.MORE,)), bytes(50_000))
        for number in range(1000, 1050)
    ]
    pod.say(*replies)
    assert pod.fleet.links.ask(str(pod.session.folder), {"op": "ping"}) == {"ok": True}
    assert link._replies == {}


def test_what_a_keeper_would_not_say_reaches_no_reader(pod: HostilePod) -> None:
    for said in (
        {"event": "exit"},
        {"event": "exit", "state": "failed", "reason": "", "end": "7", "exit": {}},
        {"event": "exit", "state": "failed", "reason": "", "end": -1, "exit": {}},
        {"event": "exit", "state": "failed", "reason": "", "end": 7, "exit": []},
        {"event": "resize", "cols": None, "rows": 1, "offset": 0},
        {"event": ["exit"]},
    ):
        event = wire.frame(wire.EVENT, lightjson.dumps(said).encode())
        with pytest.raises(wire.BadFrame):
            frames.of_keeper(event)
    whole = wire.frame(wire.EVENT, b'{"event": "attention", "report": null}')
    assert frames.of_keeper(whole) == whole
    for broken in (whole[:-1], whole + b"x", b"", wire.frame(wire.INPUT, b"x"), wire.frame(wire.POKE, b"x")):
        with pytest.raises(wire.BadFrame):
            frames.of_keeper(broken)


# what it answers ------------------------------------------------------------------------------------------------------


def test_a_pod_does_not_choose_what_the_next_one_clones(pod: HostilePod) -> None:
    folder = str(pod.session.folder)
    before = records.read(folder)
    _note_place(folder, {"repository": "https://evil.example/x.git", "folder": "/workspace/x", "branch": "b"})
    after = records.read(folder)
    assert (after.repository, after.folder, after.branch) == (before.repository, "/workspace/x", "b")
    for wrong in ({"folder": "x"}, {"folder": "/" + "x" * 5000}, {"branch": 7}, {"base": "\0"}, ["folder"], None):
        _note_place(folder, wrong)
        assert records.read(folder) == after


def test_a_refusal_stays_one_whatever_it_says(pod: HostilePod) -> None:
    refused = RefusedThere({"error": "no", "http_status": 200, "exit_code": 0, "hint": ["x"], "code": {}})
    assert (refused.http_status, refused.exit_code, refused.code) == (500, 1, HitchpostError.code)
    assert RefusedThere({"error": "x" * 100_000}).message == "x" * 4096
    assert RefusedThere({"error": "no", "http_status": 409, "exit_code": 3}).http_status == 409


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"patch": "", "stat": "", "files": [1], "base": None, "head": None, "branch": None},
        {"patch": "", "stat": "", "files": [{"path": "x"}], "base": None, "head": None, "branch": None},
        {"patch": "", "stat": "", "files": None, "base": None, "head": None, "branch": None},
    ],
)
def test_a_difference_that_makes_no_sense_is_told_so(pod: HostilePod, answer: dict[str, object]) -> None:
    pod.answers["diff"] = {"ok": True, **answer}
    pod.link()
    with pytest.raises(NoAnswer, match="the pod's answer to diff makes no sense"):
        changed(pod.fleet.home, observe(pod.fleet.home, pod.session.id).record)
