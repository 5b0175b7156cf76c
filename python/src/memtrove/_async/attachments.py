"""Files that belong to what was said."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from typing import BinaryIO
from urllib.parse import unquote, urlsplit

import httpx

from memtrove._async.group import AsyncGroup
from memtrove._async.transport import AsyncTransport
from memtrove._wire import body
from memtrove.content import Content, byte_range
from memtrove.errors import InvalidInputError
from memtrove.models import Attachment, DownloadUrl


class AsyncAttachments(AsyncGroup):
    """Uploads files and reads them. Name one in an entry by its id, within an hour, and it lives as long as that."""

    async def upload(
        self,
        data: bytes | BinaryIO,
        *,
        filename: str,
        content_type: str = "application/octet-stream",
        expires_in: str | None = None,
    ) -> Attachment:
        """Uploads bytes, or an open file as it is read. `expires_in` is a duration such as `PT10M`."""
        files = {"file": (filename, data, content_type)}
        return await self._transport.model(
            "create_attachment", Attachment, files=files, query={"expiresIn": expires_in}
        )

    async def fetch(
        self,
        source_url: str,
        *,
        content_type: str | None = None,
        name: str | None = None,
        expires_in: str | None = None,
    ) -> Attachment:
        """Lets the server fetch a file from the web."""
        wire = body(sourceUrl=source_url, contentType=content_type, name=name)
        return await self._transport.model("create_attachment", Attachment, body=wire, query={"expiresIn": expires_in})

    async def download(
        self,
        attachment_id: str,
        *,
        start: int | None = None,
        end: int | None = None,
        if_none_match: str | None = None,
    ) -> Content | None:
        """The bytes, or those from `start` to before `end`; `None` if they are those of `if_none_match`."""
        path = {"attachmentId": attachment_id}
        return await download(self._transport, "get_attachment", path, start, end, if_none_match)

    async def stream(self, attachment_id: str) -> AsyncGenerator[bytes]:
        """The bytes piece by piece, for files that should not be in memory as a whole."""
        path = {"attachmentId": attachment_id}
        async with self._transport.open("get_attachment", retry=True, path=path) as response:
            if response.status_code == 307:
                async with self._transport.open_elsewhere(location(response)) as found:
                    async for chunk in found.aiter_bytes():
                        yield chunk
            else:
                async for chunk in response.aiter_bytes():
                    yield chunk

    async def download_url(self, attachment_id: str) -> DownloadUrl:
        """A link that works without credentials for a while."""
        return await self._transport.model("download_url", DownloadUrl, path={"attachmentId": attachment_id})

    async def download_signed(self, url: str) -> Content:
        """What such a link of this server leads to."""
        parts = urlsplit(url).path.split("/v1/attachments/download/")
        token, _, filename = parts[-1].partition("/")
        if len(parts) != 2 or not filename:
            raise InvalidInputError("this is not a link that download_url gave")
        path = {"token": unquote(token), "filename": unquote(filename)}
        found = await download(self._transport, "download_signed", path, None, None, None)
        assert found is not None, "there is no 304 without If-None-Match"
        return found

    async def delete(self, attachment_id: str) -> None:
        """Deletes a file that no entry refers to."""
        await self._transport.call("delete_attachment", path={"attachmentId": attachment_id})


async def download(
    transport: AsyncTransport,
    operation: str,
    path: Mapping[str, str],
    start: int | None,
    end: int | None,
    if_none_match: str | None,
    query: Mapping[str, str | None] | None = None,
) -> Content | None:
    """The bytes of a file, wherever the server keeps them."""
    asked = {"Range": byte_range(start, end), "If-None-Match": if_none_match}
    headers = {name: value for name, value in asked.items() if value is not None}
    response = await transport.call(operation, path=path, query=query, headers=headers)
    if response.status_code == 307:
        # Credentials are for the server, not for the object store.
        response = await transport.get_elsewhere(location(response), headers)
    if response.status_code == 304:
        return None
    return Content(
        response.content,
        response.headers.get("content-type"),
        response.headers.get("etag"),
        partial=response.status_code == 206,
    )


def location(response: httpx.Response) -> str:
    """Where a redirect leads."""
    return str(response.request.url.join(response.headers["location"]))
