"""Between Python values and the JSON on the wire.

Models are plain dataclasses with snake_case members, whatever a surface calls them. What a model does not know it
keeps in `extra`, so that a newer server does no harm and nothing is lost when a document is read and written.
"""

from __future__ import annotations

import dataclasses
import json
import re
import types
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from enum import Enum
from typing import Any, ClassVar, Literal, TypeAlias, TypeVar, Union

from memtrove.errors import DecodeError, InvalidInputError

T = TypeVar("T")
M = TypeVar("M", bound="Model")

JsonObject: TypeAlias = Mapping[str, Any]
"""A JSON object, as it goes over the wire."""


class Unset(Enum):
    """The type of `UNSET`."""

    UNSET = "UNSET"

    def __repr__(self) -> str:
        return "UNSET"


UNSET = Unset.UNSET
"""Says nothing about a member, where `None` would remove it."""


@dataclass(kw_only=True, repr=False)
class Model:
    """What the server answers with: a JSON object with members that are known, and maybe others."""

    _wire_names: ClassVar[dict[str, str]] = {}

    extra: dict[str, Any] = field(default_factory=dict)
    """Members that this version does not know, or that the caller added."""

    def __repr__(self) -> str:
        # Most members of most answers are absent; nobody wants to read that.
        given = {name: value for name, value in vars(self).items() if value is not None and value != {}}
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in given.items())})"

    @classmethod
    def from_wire(cls: type[M], value: object) -> M:
        """Reads it; raises `DecodeError` where a member is missing or of another type."""
        found: M = decode(cls, value)
        return found

    def to_wire(self) -> dict[str, Any]:
        """The JSON object it stands for; members that are `None` are left out."""
        known = {
            wire: encode(getattr(self, member))
            for member, (wire, _) in _members(type(self)).items()
            if getattr(self, member) is not None
        }
        return {**self.extra, **known}


_MEMBERS: dict[type[Model], dict[str, tuple[str, Any]]] = {}


def _members(model: type[Model]) -> dict[str, tuple[str, Any]]:
    """Every member with its name on the wire and its type; looked up once, because types are slow to ask."""
    if model not in _MEMBERS:
        _MEMBERS[model] = _find_members(model)
    return _MEMBERS[model]


def _find_members(model: type[Model]) -> dict[str, tuple[str, Any]]:
    hints = typing.get_type_hints(model)
    # An ETag that takes no part in comparisons came as a header, and is not a member of the JSON object.
    names = [one.name for one in dataclasses.fields(model) if one.name != "extra" and one.compare]
    return {name: (model._wire_names.get(name, name), hints[name]) for name in names}


def encode(value: Any) -> Any:
    """The JSON value of a Python value."""
    if isinstance(value, Model):
        return value.to_wire()
    if isinstance(value, datetime):
        return timestamp(value)
    if isinstance(value, Mapping):
        return {key: encode(inner) for key, inner in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
        return [encode(inner) for inner in value]
    return value


def body(**members: Any) -> dict[str, Any]:
    """A JSON object of the members that are neither `None` nor `UNSET`, under the names given."""
    return {name: encode(value) for name, value in members.items() if value is not None and value is not UNSET}


def changes(**members: Any) -> dict[str, Any]:
    """A JSON object of the members that are not `UNSET`; `None` goes along, because it removes what there was."""
    return {name: encode(value) for name, value in members.items() if value is not UNSET}


def dumps(value: Any) -> bytes:
    """JSON as it is sent. What JSON cannot say is refused here, not by the server."""
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInputError(f"this cannot be sent as JSON: {error}") from None


def decode(kind: Any, value: object, at: str = "$") -> Any:
    """The Python value of a JSON value."""
    if kind is Any:
        return value
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin in (Union, types.UnionType):
        return _decode_union(inner, value, at)
    if origin is Literal:
        # A word that is newer than this package is passed on as it is.
        return _expect(str, value, at)
    if origin is list:
        return [decode(inner[0], item, f"{at}[{index}]") for index, item in enumerate(_expect(list, value, at))]
    if origin is dict:
        return {key: decode(inner[1], item, f"{at}.{key}") for key, item in _expect(dict, value, at).items()}
    if kind is datetime:
        return _decode_time(_expect(str, value, at), at)
    if kind is float:
        return float(_expect((int, float), value, at))
    if isinstance(kind, type) and issubclass(kind, Model):
        return _decode_model(kind, _expect(dict, value, at), at)
    return _expect(kind, value, at)


def _decode_union(kinds: Sequence[Any], value: object, at: str) -> Any:
    if value is None and type(None) in kinds:
        return None
    kinds = [kind for kind in kinds if kind is not type(None)]
    for kind in kinds[:-1]:
        try:
            return decode(kind, value, at)
        except DecodeError:
            continue
    return decode(kinds[-1], value, at)


def _decode_model(kind: type[Model], value: dict[str, Any], at: str) -> Any:
    known, rest = {}, dict(value)
    for member, (wire, hint) in _members(kind).items():
        if wire in rest:
            known[member] = decode(hint, rest.pop(wire), f"{at}.{wire}")
    try:
        return kind(**known, extra=rest)
    except TypeError:
        missing = [wire for wire, _ in _members(kind).values() if wire not in value]
        raise DecodeError(
            f"the answer has no {' or '.join(missing)} at {at}, where a {kind.__name__} was expected"
        ) from None


def _expect(kind: Any, value: Any, at: str) -> Any:
    # In Python a bool is an int, in JSON it is not.
    if isinstance(value, kind) and not (isinstance(value, bool) and kind is not bool):
        return value
    raise DecodeError(f"the answer has a {type(value).__name__} at {at}, where something else was expected")


_TIME = re.compile(r"(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d:\d\d)(?:\.(\d+))?([Zz]|[+-]\d\d:\d\d)$")


def _decode_time(text: str, at: str) -> datetime:
    found = _TIME.match(text)
    if not found:
        raise DecodeError(f"the answer has at {at} what is no date with a time")
    day, clock, fraction, zone = found.groups()
    if day.startswith("0000"):
        # RFC 3339 has a year 0 and Python has not.
        return datetime.min.replace(tzinfo=timezone.utc)
    # Python counts microseconds; whatever is finer is cut off.
    fraction = (fraction or "").ljust(6, "0")[:6]
    try:
        return datetime.fromisoformat(f"{day}T{clock}.{fraction}{'+00:00' if zone in 'Zz' else zone}")
    except ValueError:
        raise DecodeError(f"the answer has at {at} what is no date with a time") from None


def timestamp(value: datetime | str) -> str:
    """A time as RFC 3339. One without a zone is refused: nobody knows what it means to the server."""
    if isinstance(value, str):
        return value
    if value.tzinfo is None:
        raise InvalidInputError(
            f"the time {value.isoformat()} has no time zone; use datetime.now(timezone.utc), for example"
        )
    return value.astimezone(timezone.utc).isoformat(timespec="microseconds").replace("+00:00", "Z")


def query_text(value: Any) -> str:
    """A parameter of an address."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return timestamp(value) if isinstance(value, datetime) else str(value)
