"""An agent in two sessions, with the official client: it is told something, its process ends, and the next one knows it.

    agent.py <memtrove> <home folder>
"""

import asyncio
import sys

from mcp import ClientSession, StdioServerParameters, stdio_client


def server(memtrove, home):
    environment = {"HOME": home, "USER": "alice", "PATH": "/usr/bin:/bin"}
    return StdioServerParameters(command=memtrove, args=["mcp"], env=environment)


async def session(parameters, script):
    """Runs one session: tools are looked up as an agent would, then the script calls them."""
    async with stdio_client(parameters) as (read, write), ClientSession(read, write) as client:
        greeting = await client.initialize()
        assert "recall" in (greeting.instructions or ""), greeting
        tools = {tool.name for tool in (await client.list_tools()).tools}

        async def call(name, **arguments):
            assert name in tools, f"{name} is not among {sorted(tools)}"
            result = await client.call_tool(name, arguments)
            text = "\n".join(block.text for block in result.content)
            failed = getattr(result, "is_error", None) or getattr(result, "isError", None)
            assert not failed, f"{name}: {text}"
            return text

        await script(client, call)


async def told(_, call):
    assert (await call("remember", text="Alice is allergic to peanuts.")).startswith("remembered")
    assert (await call("remember", text="Alice is allergic to peanuts.")).startswith("already remembered")
    await call("remember_fact", subject="Alice", predicate="lives_in", object="Lisbon")
    await call("memory_write_file", path="travel/lisbon.md", content="# Lisbon\n\n- tram 28\n")
    await call("memory_log_event", digest="Booked a table for Friday", keywords=["dinner"])
    await call("append_message", role="user", text="Please plan the trip to Lisbon.")


async def asked(client, call):
    found = await call("recall", query="Which food must Alice avoid, is she allergic to anything?")
    assert "peanuts" in found, found
    assert "Lisbon" in await call("query_facts", subject="Alice", predicate="lives_in")
    assert "tram 28" in await call("memory_load_file", path="travel/lisbon.md")
    assert "Booked a table" in await call("memory_recall", query="dinner")
    assert "plan the trip" in await call("search_conversations", query="trip to Lisbon")
    resources = (await client.list_resources()).resources
    assert [resource.name for resource in resources] == ["travel/lisbon.md"], resources
    contents = (await client.read_resource(resources[0].uri)).contents
    assert contents[0].text == "# Lisbon\n\n- tram 28\n", contents


async def main(memtrove, home):
    await session(server(memtrove, home), told)
    await session(server(memtrove, home), asked)
    print("agent.py: what it was told in one session, it knew in the next")


asyncio.run(main(*sys.argv[1:]))
