"""What goes wrong with a request, as `application/problem+json` (RFC 9457) says it."""

from collections.abc import Mapping

from ninja import Field, Schema

MEDIA_TYPE = "application/problem+json"


class FieldProblem(Schema):
    field: str = Field(description="where in the request, such as body.text")
    message: str


class Problem(Schema):
    type: str = "about:blank"
    title: str
    status: int
    detail: str = Field(description="what is wrong, with the value, and the way out")
    errors: list[FieldProblem] | None = None


class RequestError(Exception):
    """A request that is not answered as asked. The API root maps each subclass to its status."""

    headers: Mapping[str, str] = {}


class InvalidRequestError(RequestError):
    """The request is well-formed but asks for something that makes no sense."""


class TooLargeError(RequestError):
    """The request holds more than is taken at once."""


class NotFoundError(RequestError):
    """There is no such row, or it belongs to somebody else: both look the same."""

    def __init__(self, what: str, name: object) -> None:
        super().__init__(f"there is no {what} {name!s} within reach of this key")


class ConflictError(RequestError):
    """What the request wants to change is no longer what the caller thinks it is."""


class ForbiddenError(RequestError):
    """The caller is known and may not do this."""


def problems(*statuses: int) -> dict[int, type[Problem]]:
    """Return the error responses of a route that wants a key: those every such route has, and `statuses`."""
    return dict.fromkeys(sorted({400, 401, 403, 429, *statuses}), Problem)
