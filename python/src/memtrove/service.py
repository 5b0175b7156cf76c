"""What a server says of itself."""

from __future__ import annotations

from dataclasses import dataclass

from memtrove._wire import Model


@dataclass(kw_only=True, repr=False)
class ServiceStatus(Model):
    """What it is."""

    service: str
    """Its name: `memtrove`."""
    status: str
    """How it is: `ok`."""
    version: str | None = None
    """Which one it is."""
    docs: str | None = None
    """Where people read about it."""
    openapi: str | None = None
    """Where programs do."""


@dataclass(kw_only=True, repr=False)
class ServiceHealth(Model):
    """That it answers."""

    status: str
    """How it is: `ok`."""


@dataclass(kw_only=True, repr=False)
class ServiceReadiness(Model):
    """That it is ready for requests."""

    status: str
    """How it is: `ok`. One that is not is an `ApiError` with the status 503."""
