"""Which values a filter of a search lets pass: what `InMemoryStore` does, made total.

Where LangGraph's own stores disagree (the one in memory raises when a number is compared with something that is none,
the ones in databases do not find the item) a value that cannot be compared does not pass.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from memtrove.errors import InvalidInputError

_ORDERED: dict[str, Callable[[Any, Any], bool]] = {
    "$gt": lambda value, bound: bool(value > bound),
    "$gte": lambda value, bound: bool(value >= bound),
    "$lt": lambda value, bound: bool(value < bound),
    "$lte": lambda value, bound: bool(value <= bound),
}


def passes(value: Mapping[str, Any], conditions: Mapping[str, Any] | None) -> bool:
    """Whether a value meets all conditions on its members."""
    return all(_meets(value.get(member), condition) for member, condition in (conditions or {}).items())


def _meets(value: Any, condition: Any) -> bool:
    if isinstance(condition, Mapping):
        if any(name.startswith("$") for name in condition):
            return all(_operator(value, name, operand) for name, operand in condition.items())
        return isinstance(value, Mapping) and passes(value, condition)
    if isinstance(condition, (list, tuple)):
        return (
            isinstance(value, list)
            and len(value) == len(condition)
            and all(_meets(item, wanted) for item, wanted in zip(value, condition, strict=True))
        )
    return bool(value == condition)


def _operator(value: Any, name: str, operand: Any) -> bool:
    if name == "$eq":
        return bool(value == operand)
    if name == "$ne":
        return bool(value != operand)
    if name not in _ORDERED:
        raise InvalidInputError(f"Unsupported operator: {name}")
    try:
        return _ORDERED[name](float(value), float(operand))
    except OverflowError:
        # A whole number that no float is as large as.
        return isinstance(value, (int, float)) and isinstance(operand, (int, float)) and _ORDERED[name](value, operand)
    except (TypeError, ValueError):
        # Texts that are no numbers, dates above all, have an order too.
        return isinstance(value, str) and isinstance(operand, str) and _ORDERED[name](value, operand)
