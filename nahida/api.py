"""The HTTP API: its routers, and the status of every error."""

from collections.abc import Mapping
from functools import partial
from http import HTTPStatus
from typing import Any

from django.core.exceptions import RequestDataTooBig
from django.db import DataError, InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.http.request import UnreadablePostError
from ninja import NinjaAPI, Router
from ninja.errors import HttpError, ValidationError
from ninja.openapi.schema import OpenAPISchema

from channels_app.addresses import AddressError
from channels_app.channels import VerificationError
from channels_app.media import MissingFileError
from nahida import __version__
from nahida.agent.tools.base import ToolError
from nahida.gateway import chat, chats, health, hooks, messages, sessions
from nahida.gateway.auth import TooManyFailuresError, UnauthenticatedError
from nahida.gateway.idempotency import IdempotencyMismatchError
from nahida.gateway.problems import (
    MEDIA_TYPE,
    ConflictError,
    FieldProblem,
    ForbiddenError,
    InvalidRequestError,
    NotFoundError,
    Problem,
    TooLargeError,
)

STATUS: Mapping[type[Exception], int] = {
    AddressError: 400,
    ToolError: 400,
    InvalidRequestError: 400,
    ValidationError: 400,
    UnreadablePostError: 400,
    DataError: 400,
    UnauthenticatedError: 401,
    VerificationError: 401,
    ForbiddenError: 403,
    NotFoundError: 404,
    MissingFileError: 404,
    ConflictError: 409,
    RequestDataTooBig: 413,
    TooLargeError: 413,
    IdempotencyMismatchError: 422,
    TooManyFailuresError: 429,
    OperationalError: 503,
    InterfaceError: 503,
}
# What an error's own text should not or cannot say.
DETAIL: Mapping[type[Exception], str] = {
    RequestDataTooBig: "the request is too big: send less at once",
    UnreadablePostError: "the request ended before its body did",
    DataError: "a value is longer than its column or holds what the database cannot",
    OperationalError: "the database does not answer: try again later",
    InterfaceError: "the database does not answer: try again later",
}

DESCRIPTION = """\
Send `Authorization: Bearer <key>`; the owner makes keys with `manage.py create_api_key`. Errors are
[problem details](https://www.rfc-editor.org/rfc/rfc9457): `detail` says what is wrong and the way out. Lists come in pages: pass
`next_cursor` as `cursor` for the next one. Keys in paths are percent-encoded, and once more where they hold a `%`. A write with an
`Idempotency-Key` may be sent again: it is done once and answered the same.
"""


class Api(NinjaAPI):
    def get_openapi_schema(self, **kwargs: Any) -> OpenAPISchema:
        schema = super().get_openapi_schema(**kwargs)
        for path in schema["paths"].values():
            for operation in path.values():
                _describe_errors(operation["responses"])
        return schema


def _describe_errors(responses: dict[int, dict[str, Any]]) -> None:
    for status, response in responses.items():
        if int(status) >= 400 and "application/json" in response.get("content", {}):
            response["content"] = {MEDIA_TYPE: response["content"].pop("application/json")}


def problem(
    request: HttpRequest,
    error: Exception,
    *,
    status: int,
    detail: str = "",
    errors: list[FieldProblem] | None = None,
) -> HttpResponse:
    body = Problem(
        title=HTTPStatus(status).phrase,
        status=status,
        detail=detail or str(error),
        errors=errors,
    )
    return JsonResponse(
        body.model_dump(exclude_none=True),
        status=status,
        content_type=MEDIA_TYPE,
        headers=dict(getattr(error, "headers", {})),
    )


def invalid(request: HttpRequest, error: ValidationError, *, status: int) -> HttpResponse:
    """Say which fields are wrong, without repeating their values."""
    errors = [
        FieldProblem(field=_field(item["loc"]), message=_message(item["msg"]))
        for item in error.errors
    ]
    detail = "; ".join(f"{item.field}: {item.message}" for item in errors)
    return problem(request, error, status=status, detail=detail, errors=errors)


def _field(loc: tuple[int | str, ...]) -> str:
    # ninja names the argument of our function after its place: body.payload.text.
    return ".".join(str(part) for part in loc if part not in ("payload", "filters", "page"))


def _message(text: str) -> str:
    return text.removeprefix("Value error, ")


api = Api(
    title="Nahida",
    version=__version__,
    description=DESCRIPTION,
    urls_namespace="api",
)
api.add_router("/chat", chat.router)
api.add_router("/send", messages.router)
api.add_router("/sessions", sessions.router)
api.add_router("/chats", chats.router)
api.add_router("/health", health.router)
api.add_router("/hooks", hooks.router)


rest_of_paths = Router()


@rest_of_paths.api_operation(
    ["GET", "POST", "PUT", "PATCH", "DELETE"], "/{path:rest}", include_in_schema=False
)
def nothing_here(request: HttpRequest, rest: str) -> HttpResponse:
    raise NotFoundError("path", f"/api/{rest}")


api.add_router("", rest_of_paths)  # the last one, as it takes every path

for error_type, code in STATUS.items():
    if error_type is ValidationError:
        api.add_exception_handler(error_type, partial(invalid, status=code))
    else:
        detail = DETAIL.get(error_type, "")
        api.add_exception_handler(error_type, partial(problem, status=code, detail=detail))


@api.exception_handler(HttpError)
def refused(request: HttpRequest, error: HttpError) -> HttpResponse:
    """Answer what ninja itself refuses, such as a body that is no JSON."""
    return problem(request, error, status=error.status_code)
