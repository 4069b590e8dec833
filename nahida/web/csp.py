"""What a browser may load for our own pages: this site's files, and nothing written into the page itself."""

from collections.abc import Callable
from functools import wraps

from django.http import HttpRequest, HttpResponseBase

View = Callable[..., HttpResponseBase]

POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "font-src 'self'",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)


def own_files_only(view: View) -> View:
    """Send the page with the policy. The admin's pages cannot have it: their Alpine evaluates text."""

    @wraps(view)
    def with_policy(request: HttpRequest, *args: object, **kwargs: object) -> HttpResponseBase:
        response = view(request, *args, **kwargs)
        response["Content-Security-Policy"] = POLICY
        return response

    return with_policy
