"""Real graphs that remember: from one thread to another, and from one server to the next."""

from __future__ import annotations

import asyncio
import os
import pathlib
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.config import get_store
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.store.base import BaseStore

from conftest import SECONDS, binary
from memtrove.langgraph import MemtroveStore


def place(config: RunnableConfig) -> tuple[str, ...]:
    return "memories", config["configurable"]["user_id"]


def answer(state: MessagesState, found: list[Any]) -> dict[str, Any]:
    """What a model would say, without one."""
    known = "; ".join(item.value["text"] for item in found) or "nothing"
    return {"messages": [AIMessage(f"{len(state['messages'])} messages here; I know: {known}")]}


def told(state: MessagesState) -> str | None:
    """What the user wants to be remembered."""
    text = str(state["messages"][-1].text)
    return text.removeprefix("remember: ") if text.startswith("remember: ") else None


def respond(state: MessagesState, config: RunnableConfig, *, store: BaseStore) -> dict[str, Any]:
    if text := told(state):
        store.put(place(config), text, {"text": text})
    return answer(state, store.search(place(config), query=str(state["messages"][-1].text), limit=1))


async def arespond(state: MessagesState, config: RunnableConfig, *, store: BaseStore) -> dict[str, Any]:
    # Where it is awaited LangGraph can tell that only since Python 3.11.
    if sys.version_info >= (3, 11):
        store = get_store()
    if text := told(state):
        await store.aput(place(config), text, {"text": text})
    return answer(state, await store.asearch(place(config), query=str(state["messages"][-1].text), limit=1))


def graph(node: Any, store: MemtroveStore) -> CompiledStateGraph[Any, Any, Any, Any]:
    builder = StateGraph(MessagesState)
    builder.add_node("respond", node)
    builder.add_edge(START, "respond")
    builder.add_edge("respond", END)
    return builder.compile(checkpointer=InMemorySaver(), store=store)


def ask(text: str, thread: str, user: str) -> tuple[Any, RunnableConfig]:
    return {"messages": [("user", text)]}, {"configurable": {"thread_id": thread, "user_id": user}}


def test_a_graph_remembers_across_threads(url: str, user: str) -> None:
    with MemtroveStore(url, project_id=user) as store:
        app = graph(respond, store)
        app.invoke(*ask("remember: I prefer window seats", "1", "dana"))
        app.invoke(*ask("remember: I have two cats", "1", "dana"))
        there = app.invoke(*ask("which seat would I like?", "2", "dana"))
        assert there["messages"][-1].text == "1 messages here; I know: I prefer window seats"
        # The thread is the checkpointer's, and knows what was said in it.
        here = app.invoke(*ask("how many cats?", "1", "dana"))
        assert here["messages"][-1].text == "5 messages here; I know: I have two cats"
        other = app.invoke(*ask("which seat would I like?", "3", "ravi"))
        assert other["messages"][-1].text == "1 messages here; I know: nothing"


def test_an_awaited_graph_remembers_across_threads_and_event_loops(url: str, user: str) -> None:
    async def turn(text: str, thread: str) -> str:
        async with MemtroveStore(url, user_id=user) as store:
            state = await graph(arespond, store).ainvoke(*ask(text, thread, "dana"))
            return str(state["messages"][-1].text)

    asyncio.run(turn("remember: I prefer window seats", "1"))
    assert asyncio.run(turn("which seat?", "2")) == "1 messages here; I know: I prefer window seats"


def test_many_threads_of_a_graph_run_at_once(url: str, user: str) -> None:
    async def run() -> list[str]:
        async with MemtroveStore(url, user_id=user) as store:
            app = graph(arespond, store)
            turns = (app.ainvoke(*ask(f"remember: I own cat {n}", str(n), f"user {n}")) for n in range(12))
            return [str(state["messages"][-1].text) for state in await asyncio.gather(*turns)]

    assert asyncio.run(run()) == [f"1 messages here; I know: I own cat {n}" for n in range(12)]


@contextmanager
def serving(folder: pathlib.Path) -> Iterator[str]:
    """A server with the data of a folder."""
    log = folder / f"log-{time.monotonic_ns()}"
    command = [str(binary()), "serve", "--listen", "127.0.0.1:0", "--data-dir", str(folder / "data")]
    environment = {key: value for key, value in os.environ.items() if not key.startswith("MEMTROVE_")}
    with log.open("w") as output:
        server = subprocess.Popen(command, cwd=folder, env=environment, stdout=output, stderr=subprocess.STDOUT)
    try:
        deadline = time.monotonic() + SECONDS
        while not (found := re.search(r"http://127\.0\.0\.1:\d+", log.read_text())):
            assert server.poll() is None and time.monotonic() < deadline, log.read_text()
            time.sleep(0.05)
        yield found[0]
    finally:
        server.terminate()
        server.wait(SECONDS)


@pytest.mark.parametrize("node", [respond, arespond], ids=["sync", "async"])
def test_a_graph_remembers_when_the_server_was_restarted(tmp_path: pathlib.Path, node: Any) -> None:
    def turn(text: str) -> str:
        """One turn, with a server, a store and a thread of its own."""
        with serving(tmp_path) as url, MemtroveStore(url, user_id="dana") as store:
            app = graph(node, store)
            if node is respond:
                return str(app.invoke(*ask(text, "t", "dana"))["messages"][-1].text)

            async def awaited() -> str:
                state = await app.ainvoke(*ask(text, "t", "dana"))
                await store.aclose()
                return str(state["messages"][-1].text)

            return asyncio.run(awaited())

    turn("remember: I prefer window seats")
    assert turn("which seat?") == "1 messages here; I know: I prefer window seats"
