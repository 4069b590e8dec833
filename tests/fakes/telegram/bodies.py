"""From the bytes of a request to parameters that fit the Bot API."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import aiogram.methods
from aiogram.methods import TelegramMethod
from django.core.files.uploadedfile import UploadedFile
from django.http import HttpRequest
from django.test import RequestFactory
from pydantic import BaseModel, ValidationError

from tests.fakes.telegram.answers import bad_request

Params = dict[str, Any]

# Every method of the Bot API with its parameters, as somebody else has written them down.
TYPED: dict[str, type[TelegramMethod[Any]]] = {
    made.__api_method__.lower(): made
    for name in aiogram.methods.__all__
    if name not in ("TelegramMethod", "Request", "Response")
    for made in [getattr(aiogram.methods, name)]
}

# What a form, which knows text only, carries as JSON.
_OBJECTS = (
    "allowed_updates",
    "caption_entities",
    "commands",
    "entities",
    "link_preview_options",
    "reaction",
    "reply_markup",
    "reply_parameters",
    "scope",
)

# What the server says where these are not there at all.
_EMPTY = {"text": "message text is empty", "chat_id": "chat_id is empty"}


@dataclass(frozen=True, slots=True)
class Upload:
    """A file of a multipart body."""

    name: str
    kind: str
    content: bytes


def read(
    method: str, path: str, content_type: str, body: bytes
) -> tuple[Params, dict[str, Upload]]:
    """Return parameters and uploads of one request, unchecked; those of a form are still text."""
    if content_type.startswith("application/json"):
        return _json(body), {}
    request = RequestFactory().generic(method, path, body, content_type)
    return _form(request), _uploads(request)


def checked(method: str, params: Params) -> Params:
    """Return the parameters in their types. Raises for one that the Bot API does not know or no longer wants."""
    typed = TYPED[method.lower()]
    for name in params:
        _require_current(typed, name)
    try:
        call = typed.model_validate(params)
    except ValidationError as error:
        raise bad_request(_complaint(typed, error)) from error
    for unknown in _unknown_fields(call):
        raise bad_request(f"unknown field {unknown} in {typed.__api_method__}")
    return call.model_dump(exclude_unset=True, exclude_none=True, by_alias=True)


def _require_current(typed: type[TelegramMethod[Any]], name: str) -> None:
    field = typed.model_fields.get(name)
    extra = field.json_schema_extra if field else None
    if field is None or (isinstance(extra, dict) and extra.get("deprecated")):
        raise bad_request(f"unknown parameter {name} in {typed.__api_method__}")


def _complaint(typed: type[TelegramMethod[Any]], error: ValidationError) -> str:
    first = error.errors()[0]
    place = ".".join(str(part) for part in first["loc"])
    if first["type"] == "missing" and place in _EMPTY:
        return _EMPTY[place]
    return f"can't parse {typed.__api_method__}: {place}: {first['msg']}"


def _unknown_fields(value: Any) -> Iterator[str]:
    if isinstance(value, list):
        for item in value:
            yield from _unknown_fields(item)
    if isinstance(value, BaseModel):
        yield from value.model_extra or {}
        for name in value.model_fields_set:
            yield from _unknown_fields(getattr(value, name))


def _json(body: bytes) -> Params:
    try:
        params = json.loads(body)
    except ValueError as error:
        raise bad_request("can't parse JSON object") from error
    if not isinstance(params, dict):
        raise bad_request("can't parse JSON object")
    return params


def _form(request: HttpRequest) -> Params:
    fields = {**request.GET.dict(), **request.POST.dict()}
    return {
        name: _object(name, text) if name in _OBJECTS else text for name, text in fields.items()
    }


def _object(name: str, text: Any) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise bad_request(f"can't parse {name} JSON object") from error


def _uploads(request: HttpRequest) -> dict[str, Upload]:
    return {
        name: Upload(file.name or "", file.content_type or "", file.read())
        for name, file in request.FILES.dict().items()
        if isinstance(file, UploadedFile)
    }
