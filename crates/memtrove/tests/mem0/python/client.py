"""What mem0's own client makes of the server at $MEMTROVE_URL, sync and async."""

import asyncio
import os
import uuid

import httpx
from mem0 import AsyncMemoryClient, MemoryClient
from mem0.client.types import AddMemoryOptions, GetAllMemoryOptions, SearchMemoryOptions, UpdateMemoryOptions
from mem0.exceptions import MemoryNotFoundError, ValidationError

URL = os.environ["MEMTROVE_URL"]


def fresh(role):
    return f"{role}-{uuid.uuid4().hex[:8]}"


def texts(answer):
    return [one["memory"] for one in answer["results"]]


def refused(error, part, call, *args, **kwargs):
    try:
        call(*args, **kwargs)
    except error as refusal:
        assert part in str(refusal), f"{part!r} is not in {refusal!r}"
        return
    raise AssertionError(f"{call} was not refused")


def sync():
    client = MemoryClient(api_key="m0-sync", host=URL)
    user = fresh("user")

    refused(ValidationError, "no language model is configured", client.add, "I live in Lisbon", user_id=user)
    refused(ValidationError, "infer=False", client.add, "I live in Lisbon", user_id=user, infer=True)
    assert client.get_all(filters={"user_id": user})["count"] == 0

    added = client.add(
        [{"role": "user", "content": "I live in Lisbon"}, {"role": "assistant", "content": "You have a dog called Rex"}],
        user_id=user, infer=False, metadata={"source": "chat", "topic": "home"},
    )
    assert [one["event"] for one in added["results"]] == ["ADD", "ADD"], added
    home, dog = (one["id"] for one in added["results"])
    client.add("Prefers trains", AddMemoryOptions(filters={"user_id": user, "run_id": "trip"}, infer=False))
    client.add("Speaks to me in verse", user_id=user, agent_id="poet", infer=False)

    memory = client.get(home)
    assert (memory["memory"], memory["user_id"], memory["metadata"]) == (
        "I live in Lisbon", user, {"source": "chat", "topic": "home"}), memory

    found = client.search("what is the dog called?", filters={"user_id": user}, top_k=2)
    assert texts(found)[0] == "You have a dog called Rex", found
    assert 0 < found["results"][0]["score"] <= 1
    narrow = SearchMemoryOptions(filters={"AND": [{"user_id": user}, {"run_id": "trip"}]}, threshold=0.0, rerank=True)
    assert texts(client.search("travel", narrow)) == ["Prefers trains"]
    either = {"AND": [{"user_id": user}, {"OR": [{"agent_id": "poet"}, {"topic": "home"}]}, {"NOT": [{"role": "x"}]}]}
    assert len(texts(client.search("anything", filters=either, threshold=0))) == 3

    everything = client.get_all(filters={"user_id": user})
    assert everything["count"] == 4 and len(everything["results"]) == 4, everything
    first = client.get_all(GetAllMemoryOptions(filters={"user_id": user}, page=1, page_size=3))
    second = client.get_all(filters={"user_id": user}, page=2, page_size=3)
    assert first["next"] and not second["next"]
    assert sorted(texts(first) + texts(second)) == sorted(texts(everything))

    updated = client.update(home, text="I live in Porto", metadata={"topic": "city"})
    assert updated["memory"] == "I live in Porto" and updated["metadata"] == {"source": "chat", "topic": "city"}
    client.update(home, UpdateMemoryOptions(metadata={"sure": True}))
    history = [(one["event"], one["old_memory"], one["new_memory"]) for one in client.history(home)]
    assert history == [("ADD", None, "I live in Lisbon"), ("UPDATE", "I live in Lisbon", "I live in Porto")], history

    assert "2" in client.batch_update([{"memory_id": home, "text": "Home: Porto"}, {"memory_id": dog, "text": "Dog: Rex"}])["message"]
    assert len(client.history(dog)) == 2
    assert "1" in client.batch_delete([{"memory_id": dog}])["message"]
    refused(MemoryNotFoundError, "no such memory", client.get, dog)
    client.delete(home)
    refused(MemoryNotFoundError, "no such memory", client.history, home)
    refused(MemoryNotFoundError, "no such memory", client.delete, home)

    entities = {(one["type"], one["name"]) for one in client.users()["results"]}
    assert {("user", user), ("agent", "poet"), ("run", "trip")} <= entities, entities
    client.delete_all(user_id=user, run_id="trip")
    assert texts(client.get_all(filters={"user_id": user})) == ["Speaks to me in verse"]
    client.delete_users(user_id=user)
    assert client.get_all(filters={"user_id": user})["results"] == []

    model = "no language model is configured"
    refused(ValidationError, model, client.get_summary, {"user_id": user})
    refused(ValidationError, model, client.create_memory_export, "{}", user_id=user)
    refused(ValidationError, model, client.get_profile, user)
    refused(ValidationError, "no webhooks", client.get_webhooks, "p")
    refused(ValidationError, "feedback is not taken", client.feedback, home, "POSITIVE")
    refused(ValidationError, "at least one of user_id", client.search, "q", filters={"topic": "home"})
    refused(ValueError, "credentials", MemoryClient, api_key="x" * 300, host=URL)

    # What deletes everybody in turn finds some of them gone with others.
    for everything in client.reset, client.delete_users:
        client.add("of a user", user_id=user, infer=False)
        client.add("of an agent and a user", user_id=user, agent_id="bot", infer=False)
        client.add("of a run, an agent and a user", user_id=user, run_id="trip", agent_id="bot", app_id="shop", infer=False)
        client.add("of an agent", agent_id="bot", infer=False)
        client.add("of an app", app_id="shop", infer=False)
        client.add("of a run", run_id="trip", infer=False)
        assert {one["type"] for one in client.users()["results"]} == {"user", "agent", "app", "run"}
        everything()
        assert client.users()["results"] == []
    client.delete_users(user_id=user)

    client.add("of an agent and a user", user_id=user, agent_id="bot", infer=False)
    client.delete_all(agent_id="bot")
    assert client.get_all(filters={"user_id": user})["count"] == 0

    call = [{"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}]
    transcript = [
        {"role": "user", "content": "How warm is it?"},
        {"role": "assistant", "content": None, "tool_calls": call},
        {"role": "tool", "tool_call_id": "call_1", "content": "21 degrees"},
    ]
    added = client.add(transcript, user_id=user, infer=False)
    assert texts(added) == ["How warm is it?", "21 degrees"] and "1 message(s)" in added["message"], added
    assert len(client.search("warm", filters={"user_id": user}, show_expired=True)["results"]) > 0
    assert client.history(added["results"][1]["id"])[0]["role"] == "tool"
    refused(ValidationError, "is not known here", client.add, "x", user_id=user, infer=False, metadat={})
    client.delete_all(user_id=user)


async def asynchronous():
    client = AsyncMemoryClient(api_key="m0-async", host=URL)
    user = fresh("user")
    added = await client.add("I play the cello", user_id=user, infer=False)
    memory = added["results"][0]["id"]
    found = await client.search("which instrument?", filters={"user_id": user})
    assert texts(found) == ["I play the cello"], found
    await client.update(memory, text="I play the viola")
    assert (await client.get(memory))["memory"] == "I play the viola"
    assert (await client.get_all(filters={"user_id": user}))["count"] == 1
    assert [one["event"] for one in await client.history(memory)] == ["ADD", "UPDATE"]
    await client.batch_update([{"memory_id": memory, "text": "I play the violin"}])
    assert {one["name"] for one in (await client.users())["results"]} == {user}
    await client.delete(memory)
    try:
        await client.get(memory)
        raise AssertionError("a deleted memory is there")
    except MemoryNotFoundError:
        pass
    for _ in range(2):
        await client.add("again", user_id=user, infer=False)
    left = await client.get_all(filters={"user_id": user})
    await client.batch_delete([{"memory_id": left["results"][0]["id"]}])
    await client.delete_all(user_id=user)
    assert (await client.get_all(filters={"user_id": user}))["count"] == 0
    await client.async_client.aclose()


def published():
    """The routes of the server that mem0 publishes, as its documentation calls them."""
    with httpx.Client(base_url=URL, headers={"X-API-Key": "m0-rest"}, timeout=60) as rest:
        def ok(answer):
            assert answer.status_code == 200, (answer.request.url, answer.status_code, answer.text)
            return answer.json()

        user = fresh("user")
        body = {"messages": [{"role": "user", "content": "I collect stamps"}], "user_id": user}
        assert "infer=False" in rest.post("/memories", json=body).json()["detail"]
        memory = ok(rest.post("/memories", json={**body, "infer": False}))["results"][0]["id"]
        assert texts(ok(rest.get("/memories", params={"user_id": user}))) == ["I collect stamps"]
        assert texts(ok(rest.post("/search", json={"query": "stamps", "user_id": user}))) == ["I collect stamps"]
        ok(rest.put(f"/memories/{memory}", json={"text": "I collect coins"}))
        assert ok(rest.get(f"/memories/{memory}"))["memory"] == "I collect coins"
        assert [one["event"] for one in ok(rest.get(f"/memories/{memory}/history"))] == ["ADD", "UPDATE"]
        ok(rest.delete(f"/memories/{memory}"))
        assert rest.get(f"/memories/{memory}").status_code == 404
        ok(rest.post("/memories", json={**body, "infer": False}))
        ok(rest.delete("/memories", params={"user_id": user}))
        ok(rest.post("/reset"))
        assert rest.post("/configure", json={}).status_code == 400


sync()
asyncio.run(asynchronous())
published()
print("mem0: the client and the routes of the server work")
