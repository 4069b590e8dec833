"""The description at /api/docs, held against what the API does."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from django.core.cache import cache
from django.core.signals import request_finished, request_started
from django.db import close_old_connections
from django.test import Client
from hypothesis import HealthCheck, Phase, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from nahida.gateway import keys
from nahida.wsgi import application
from tests.gateway.cast import ALICE, GROUP, GatewayTestCase, say

schema = schemathesis.openapi.from_wsgi("/api/openapi.json", application)


@pytest.fixture
def bearer(db: None) -> Iterator[str]:
    cache.clear()
    say(ALICE, "hello")
    say(GROUP, "hello")
    # As Django's own test client does: the connection holds the test's transaction.
    for signal in (request_started, request_finished):
        signal.disconnect(close_old_connections)
    yield "Bearer " + keys.create("contract", scopes=keys.SCOPES)[1]
    for signal in (request_started, request_finished):
        signal.connect(close_old_connections)


@schema.parametrize()
@settings(
    max_examples=15,
    deadline=None,
    derandomize=True,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
def test_it_does_what_it_says(case: Any, bearer: str) -> None:
    """Neither a 500 nor a status or shape that the description does not have."""
    if case.path == "/api/chat" and isinstance(case.body, dict):
        case.body |= {"wait_s": 0, "stream": False}  # nobody is there to answer

    case.call_and_validate(
        headers={"Authorization": bearer},
        checks=[
            not_a_server_error,
            status_code_conformance,
            content_type_conformance,
            response_schema_conformance,
        ],
    )


class DescriptionTest(GatewayTestCase):
    def described(self) -> Any:
        return json.loads(Client().get("/api/openapi.json").content)

    def test_it_describes_the_errors_of_every_route(self) -> None:
        for path, operations in self.described()["paths"].items():
            for method, operation in operations.items():
                errors = set(operation["responses"]) - {"200", "202"}
                assert {"400", "401", "403", "429"} <= errors, (method, path)
                for status in errors:
                    content = operation["responses"][status]["content"]
                    assert list(content) == ["application/problem+json"]

    def test_it_wants_a_key_on_every_route(self) -> None:
        for path, operations in self.described()["paths"].items():
            for method, operation in operations.items():
                assert operation["security"], (method, path)
                url = path.replace("{key}", "x").replace("{turn_id}", "1")
                assert self.client.generic(method.upper(), url).status_code == 401, (method, path)

    def test_it_serves_its_pages_without_anything_from_outside(self) -> None:
        page = self.client.get("/api/docs")

        assert page.status_code == 200
        assert b"//cdn" not in page.content

    def test_it_answers_a_strange_path_with_a_problem(self) -> None:
        for path in ("/api/nothing", "/api/sessions/", "/api/chat/1/2"):
            response = self.client.get(path)
            assert response.status_code in (401, 404), path
            assert response["Content-Type"] == "application/problem+json", path
