"""LangGraph's long-term memory, kept by Memloom.

    from memloom.langgraph import MemloomStore

    store = MemloomStore(user_id="dana")
    graph = builder.compile(store=store)

`items` says how an item of a store is kept by the server, `filters` which items a filter lets pass, `plans` which
requests an operation takes. None of them waits for anything: `store` carries plans out, and is the only one to know of
threads and event loops.
"""

from memloom.langgraph.store import MemloomStore

__all__ = ["MemloomStore"]
