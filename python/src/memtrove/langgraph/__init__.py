"""LangGraph's long-term memory, kept by Memtrove.

    from memtrove.langgraph import MemtroveStore

    store = MemtroveStore(user_id="dana")
    graph = builder.compile(store=store)

`items` says how an item of a store is kept by the server, `filters` which items a filter lets pass, `plans` which
requests an operation takes. None of them waits for anything: `store` carries plans out, and is the only one to know of
threads and event loops.
"""

try:
    from langgraph.store.base import BaseStore as _needed  # noqa: F401
except ModuleNotFoundError as missing:
    raise ModuleNotFoundError(
        "memtrove.langgraph needs langgraph: install memtrove[langgraph]", name=missing.name
    ) from missing

from memtrove.langgraph.store import MemtroveStore

__all__ = ["MemtroveStore"]
