"""LangGraph's long-term memory, kept by Memloom.

    from memloom.langgraph import MemloomStore

    store = MemloomStore(user_id="dana")
    graph = builder.compile(store=store)

`items` says how an item of a store is kept by the server, `filters` which items a filter lets pass, `plans` which
requests an operation takes. None of them waits for anything: `store` carries plans out, and is the only one to know of
threads and event loops.
"""

try:
    from langgraph.store.base import BaseStore as _needed  # noqa: F401
except ModuleNotFoundError as missing:
    raise ModuleNotFoundError(
        "memloom.langgraph needs langgraph: install memloom-client[langgraph]", name=missing.name
    ) from missing

from memloom.langgraph.store import MemloomStore

__all__ = ["MemloomStore"]
