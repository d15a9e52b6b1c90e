"""The API does what its OpenAPI document says: made-up requests, right and wrong, to every operation, over TCP."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings

from tests.ground import Ground
from tests.hubs import HubProcess
from tests.support import eventually

TYPE_CHECKING = False
if TYPE_CHECKING:
    import schemathesis

EXAMPLES = 50 if "LONG" in os.environ else 3
TOO_LARGE = 413
REJECTED = [400, 401, 403, 404, 405, 409, 415, 422, TOO_LARGE]
CHECKS = {
    "checks": {"negative_data_rejection": {"expected-statuses": REJECTED}},
    # No schema can say which folders and programs there are: what fits it may still be refused.
    "operations": [
        {"include-name": name, "checks": {"positive_data_acceptance": {"expected-statuses": ["2xx", 404, 409, 422]}}}
        # nor which addresses are those of push services
        for name in (
            "POST /api/sessions",
            "POST /api/workspaces",
            "GET /api/folders",
            "POST /api/notifications/subscriptions",
        )
    ],
}


@pytest.fixture
def lonely_hub(ground: Ground) -> Iterator[HubProcess]:
    """A hub whose sessions find no program but git, so that a made-up command is none that does harm."""
    programs = ground.watch.scratch / "programs"
    programs.mkdir()
    git = shutil.which("git")
    assert git is not None
    os.symlink(git, programs / "git")
    hub = HubProcess(ground)
    hub.start(PATH=str(programs))
    yield hub
    hub.stop()


def operations(hub: HubProcess) -> list[schemathesis.APIOperation]:
    """Every operation of the document. One that cannot be tested is an error, not a gap."""
    import schemathesis  # two seconds, in every process that collects the tests
    from schemathesis.core.result import Ok

    document = hub.ask("GET", "/api/openapi.json")
    schema = schemathesis.openapi.from_dict(document, config=schemathesis.Config.from_dict(CHECKS))
    schema.config.update(base_url=hub.url)
    found = []
    for one in schema.get_all_operations():
        assert isinstance(one, Ok), one
        found.append(one.ok())
    assert len(found) == sum(len(methods) for methods in document["paths"].values())
    return found


def can_be_wrong(operation: schemathesis.APIOperation) -> bool:
    """Whether a request can break the document's rules: not where nothing is asked for, or any text will do."""
    told = operation.definition.raw
    rules = [{key: rule for key, rule in one["schema"].items() if key != "title"} for one in told.get("parameters", [])]
    return "requestBody" in told or any(rule != {"type": "string"} for rule in rules)


@pytest.mark.long
@pytest.mark.timeout(600)
def test_made_up_requests_are_answered_as_the_document_says(lonely_hub: HubProcess) -> None:
    import schemathesis

    signed = {"Authorization": f"Bearer {lonely_hub.token()}"}
    for operation in operations(lonely_hub):
        for mode in schemathesis.GenerationMode:
            if mode == schemathesis.GenerationMode.NEGATIVE and not can_be_wrong(operation):
                continue

            @settings(
                max_examples=EXAMPLES,
                derandomize=True,
                database=None,
                deadline=None,
                suppress_health_check=list(HealthCheck),
            )
            @given(operation.as_strategy(generation_mode=mode))
            def send(case: schemathesis.Case) -> None:
                case.call_and_validate(headers=signed)

            send()
    assert "Traceback" not in lonely_hub.log()


def test_the_answers_about_a_real_session_are_as_the_document_says(ground: Ground, hub: HubProcess) -> None:
    dev = ground.begin_sh("echo hello; exit 3", name="dev")
    dev.ended()
    eventually(lambda: [row["state"] for row in hub.ask("GET", "/api/sessions")] == ["failed"])
    signed = {"Authorization": f"Bearer {hub.token()}"}
    asked = []
    for operation in operations(hub):
        if operation.method != "get":
            continue
        named = {name: dev.id for name in ("session", "agent", "image", "node") if f"{{{name}}}" in operation.path}
        answer = operation.Case(path_parameters=named).call_and_validate(headers=signed)
        asked.append((operation.path, answer.status_code))
    refused = {
        "/api/find": 422,  # a query has to say which session, or since when
        "/api/wait": 422,
        "/api/sessions/{session}/outcome": 422,
        "/api/sessions/{session}/diff": 409,
        "/api/sessions/{session}/diff/text": 409,
        "/api/sessions/{session}/finish": 409,
        "/api/sessions/{session}/images/{image}": 404,
        "/api/fleet": 404,  # the hub serves one machine
        "/api/fleet/nodes/{node}": 404,
    }
    assert {path: status for path, status in asked if status != 200} == refused
