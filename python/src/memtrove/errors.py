"""What can go wrong with a call.

    MemtroveError
    ├── ApiError            the server answered, and said no
    ├── TransportError      there was no answer: the network, a timeout
    ├── DecodeError         there was an answer of success that cannot be understood
    └── InvalidInputError   nothing was sent: the call itself is wrong

No message holds a credential or stored content that the server did not put into it.
"""

from __future__ import annotations

import json
from typing import Any

RAW_BODY_CHARS = 1024


class MemtroveError(Exception):
    """Whatever this package raises on its own account."""


class TransportError(MemtroveError):
    """The server could not be reached, or did not answer in time. A change may have been made, or not."""


class DecodeError(MemtroveError):
    """An answer of success that is not what was expected."""


class InvalidInputError(MemtroveError, ValueError):
    """What was asked for cannot be right; no request was sent."""


class ApiError(MemtroveError):
    """An answer that is not success."""

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        *,
        request_id: str | None = None,
        details: dict[str, Any] | None = None,
        raw_body: str = "",
        retry_after: float | None = None,
    ) -> None:
        super().__init__(status, code, message)
        self.status = status
        """The HTTP status."""
        self.code = code
        """What went wrong, as a word: `DOCUMENT_NOT_FOUND`, `conflict`; `HTTP_<status>` where nothing said it."""
        self.message = message
        """The same as a sentence."""
        self.request_id = request_id
        """By which the request is found in the server's log."""
        self.details = details or {}
        """What belongs to this code, such as `latest_etag`."""
        self.raw_body = raw_body[:RAW_BODY_CHARS]
        """The first 1024 characters of the answer."""
        self.retry_after = retry_after
        """After how many seconds the server wants to be asked again."""

    def __str__(self) -> str:
        request = f" (request {self.request_id})" if self.request_id else ""
        return f"{self.status} {self.code}: {self.message}{request}"

    def __reduce__(self) -> Any:
        # Without it, an error that crosses processes (pytest-xdist, multiprocessing) could not be made again.
        return _again, (self.status, self.code, self.message, self.__dict__)

    @property
    def is_not_found(self) -> bool:
        """Whether there is no such thing, or none for this caller."""
        return self.status == 404

    @property
    def is_conflict(self) -> bool:
        """Whether somebody else was faster: the thing has another version than the one named."""
        return self.status == 412 and self.code == "ETAG_MISMATCH"

    @property
    def latest_etag(self) -> str | None:
        """With a conflict: the version there is now."""
        latest = self.details.get("latest_etag")
        return latest if isinstance(latest, str) else None


def _again(status: int, code: str, message: str, state: dict[str, Any]) -> ApiError:
    error = ApiError(status, code, message)
    error.__dict__.update(state)
    return error


def api_error(status: int, reason: str, text: str, request_id: str | None, retry_after: float | None) -> ApiError:
    """Reads an answer that is not success. Each surface has its shape; whatever has none is told as it is."""
    code, message = f"HTTP_{status}", text.strip()[:RAW_BODY_CHARS] or reason or f"status {status}"
    details: Any = {}
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    told = value.get("error") if isinstance(value, dict) else None
    if isinstance(told, dict) and isinstance(told.get("message"), str):
        # Files and memories. The knowledge provider has numbers for codes, and names beside them.
        word = told.get("name", told.get("code"))
        code, message = word if isinstance(word, str) else code, told["message"]
        details = told.get("details")
        request_id = told.get("request_id") or value.get("request_id") or request_id
    elif isinstance(told, str) and isinstance(value.get("code"), str):
        # Conversations: a title, a code, and details that may have a sentence.
        code, details = value["code"], value.get("details")
        details = dict(details) if isinstance(details, dict) else {}
        message = _sentence(told, details)
        if "existingTransferId" in value:
            details["existingTransferId"] = value["existingTransferId"]
    elif isinstance(told, str) and isinstance(value.get("message"), str):
        # A way to search that is not available.
        code, message = told, value["message"]
        details = {"availableTypes": value.get("availableTypes")}
    return ApiError(
        status,
        code,
        message,
        request_id=request_id,
        details=details if isinstance(details, dict) else {},
        raw_body=text,
        retry_after=retry_after,
    )


def _sentence(title: str, details: dict[str, Any]) -> str:
    """The title of an error with what its details say."""
    violations = details.get("violations")
    if isinstance(violations, list):
        told = [f"{one.get('field')}: {one.get('message')}" for one in violations if isinstance(one, dict)]
        return f"{title}: {'; '.join(told)}"
    if isinstance(details.get("message"), str):
        return f"{title}: {details['message']}"
    if "resource" in details:
        return f"{title}: {details.get('resource')} {details.get('id')}"
    return title
