"""Where the files of messages are: asked anew each time, as the addresses that came with a message expire."""

import json
from collections.abc import Mapping
from typing import Any

from channels_app.channels import FetchError
from channels_app.http import download
from channels_app.messages import Attachment
from channels_app.milky.client import MilkyClient
from channels_app.milky.segments import text


def fetch(client: MilkyClient, attachment: Attachment, *, limit: int) -> bytes:
    """Download a file of at most `limit` bytes. Raises `FetchError`."""
    where = _where(attachment.platform_id)
    match where:
        case {"group_id": group, "file_id": file}:
            asked = {"group_id": group, "file_id": file}
            return client.fetch("get_group_file_download_url", limit=limit, **asked)
        case {"user_id": user, "file_id": file}:
            asked = {"user_id": user, "file_id": file, "file_hash": text(where, "file_hash")}
            return client.fetch("get_private_file_download_url", limit=limit, **asked)
    return _resource(client, where, limit=limit)


def _where(platform_id: str) -> Mapping[str, Any]:
    try:
        where = json.loads(platform_id)
    except ValueError:
        where = None
    if not isinstance(where, dict):
        raise FetchError("nobody knows where it is", permanent=True)
    return where


def _resource(client: MilkyClient, where: Mapping[str, Any], *, limit: int) -> bytes:
    """Some ends find no resource by its id, and then the address that came with the message may still do."""
    try:
        return client.fetch(
            "get_resource_temp_url", limit=limit, resource_id=text(where, "resource_id")
        )
    except FetchError as error:
        if not error.permanent or not text(where, "temp_url"):
            raise
        return download(text(where, "temp_url"), limit=limit)
