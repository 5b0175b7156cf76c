from __future__ import annotations

import asyncio
import json
import re
from typing import Any, cast

import pytest

import memloom
from conftest import Blocking, Connect
from fake import HANG_UP, Answer, fake
from memloom import (
    AnthropicMemoryTool,
    AsyncAgentMemory,
    AsyncAnthropicMemoryTool,
    AsyncToolbox,
    EventDigest,
    MemloomClient,
    RetryPolicy,
    Scope,
    Toolbox,
    TransportError,
)


def toolbox(client: MemloomClient, loop: asyncio.AbstractEventLoop | None, scope: Scope) -> Toolbox:
    if loop is None:
        return Toolbox(memloom.AgentMemory(client), scope)
    return cast(Toolbox, Blocking(AsyncToolbox(AsyncAgentMemory(cast(Any, client)._inner), scope), loop))


@pytest.fixture
def box(agent: MemloomClient, loop: asyncio.AbstractEventLoop | None, scope: Scope) -> Toolbox:
    return toolbox(agent, loop, scope)


@pytest.fixture
def tool(agent: MemloomClient, loop: asyncio.AbstractEventLoop | None, scope: Scope) -> AnthropicMemoryTool:
    if loop is None:
        return AnthropicMemoryTool(agent, scope)
    return cast(AnthropicMemoryTool, Blocking(AsyncAnthropicMemoryTool(cast(Any, agent)._inner, scope), loop))


def test_there_are_five_tools_with_closed_schemas() -> None:
    names = [tool.name for tool in memloom.tools()]
    assert names == ["memory_recall", "memory_list_files", "memory_load_file", "memory_patch_file", "memory_write_file"]
    for tool in memloom.tools():
        assert tool.parameters["additionalProperties"] is False
        assert "tenant" not in json.dumps(tool.parameters) and "user" not in json.dumps(tool.parameters)
    edits = memloom.tools()[3].parameters["properties"]["edits"]
    assert (edits["minItems"], edits["maxItems"]) == (1, 100)


def test_tools_are_rendered_for_everybody() -> None:
    first = memloom.tools()[0]
    chat = memloom.openai_chat_tools()[0]
    assert chat["type"] == "function" and chat["function"]["parameters"] == first.parameters
    responses = memloom.openai_responses_tools()[0]
    assert (responses["name"], responses["parameters"], responses["strict"]) == (first.name, first.parameters, False)
    assert memloom.anthropic_tools()[0]["input_schema"] == first.parameters
    assert memloom.mcp_tools()[0]["inputSchema"] == first.parameters
    # What is given out is a copy.
    memloom.anthropic_tools()[0]["input_schema"].clear()
    assert memloom.anthropic_tools()[0]["input_schema"] == first.parameters


def test_a_model_works_with_its_memory(box: Toolbox, agent: MemloomClient, scope: Scope) -> None:
    written = box.call_tool(
        "memory_write_file", {"path": "profile.md", "content": "likes tea, likes tea", "reason": "told"}
    )
    assert written["content"] == "likes tea, likes tea" and written["etag"]
    assert box.call_tool("memory_load_file", '{"path": "profile.md"}') == written
    edits = [{"old_text": "tea", "new_text": "coffee", "occurrence": 1}]
    assert (
        box.call_tool("memory_patch_file", {"path": "profile.md", "edits": edits})["content"]
        == "likes coffee, likes tea"
    )
    flat = {"path": "profile.md", "old_text": "likes tea", "new_text": "and mate", "occurrence": None}
    assert box.call_tool("memory_patch_file", flat)["content"] == "likes coffee, and mate"
    listed = box.call_tool("memory_list_files", {"prefix": None, "limit": 100000})
    assert [one["path"] for one in listed] == ["profile.md"] and listed[0]["last_modified_utc"].endswith("Z")
    event = EventDigest(
        event_id="e", tenant_id=scope.tenant_id, user_id=scope.user_id, digest="bought tea", keywords=["tea"]
    )
    agent.events.write(scope, event)
    for arguments in ({"query": "tea", "top_k": 0}, {"query": "tea", "topK": 99.5}, {"query": "tea", "top_k": "5"}):
        recalled = box.call_tool("memory_recall", arguments)
        assert [one["event_id"] for one in recalled] == ["e"]
        assert recalled[0].keys() == {"event_id", "timestamp", "source_type", "digest", "keywords", "project_ids"}
    json.dumps([written, listed, recalled])
    reasons = [record.reason for record in agent.audit.list(scope).records]
    assert reasons == ["told", "memory_patch_file", "memory_patch_file"]


def test_errors_help_the_model(box: Toolbox) -> None:
    def refused(name: str, arguments: Any) -> dict[str, Any]:
        answer = box.call_tool(name, arguments)
        assert answer.keys() == {"error"} and answer["error"].keys() >= {"code", "message", "hint"}
        return cast(dict[str, Any], answer["error"])

    missing = refused("memory_load_file", {"path": "none.md"})
    assert missing["code"] == "DOCUMENT_NOT_FOUND" and "memory_write_file" in missing["hint"]
    box.call_tool("memory_write_file", {"path": "a.md", "content": "x x x"})
    twice = refused("memory_patch_file", {"path": "a.md", "edits": [{"old_text": "x", "new_text": "y"}]})
    assert twice["code"] == "PATCH_MATCH_AMBIGUOUS" and twice["match_count"] == 3 and "3 times" in twice["hint"]
    nowhere = refused("memory_patch_file", {"path": "a.md", "edits": [{"old_text": "z", "new_text": "y"}]})
    assert nowhere["code"] == "PATCH_MATCH_NOT_FOUND" and "memory_load_file" in nowhere["hint"]
    past = {"path": "a.md", "edits": [{"old_text": "x", "new_text": "y", "occurrence": 9}]}
    assert refused("memory_patch_file", past)["hint"] == "Give an occurrence from 1 to 3."
    for path in ("../x", "", "a//b"):
        assert refused("memory_load_file", {"path": path})["code"] == "INVALID_PATH"
    unknown = refused("no_such_tool", {})
    assert unknown["code"] == "UNKNOWN_TOOL" and "memory_recall" in unknown["hint"]
    for name, arguments in [
        ("memory_load_file", {}),
        ("memory_load_file", "not json"),
        ("memory_load_file", [1]),
        ("memory_patch_file", {"path": "a.md"}),
        ("memory_patch_file", {"path": "a.md", "edits": ["x"]}),
        ("memory_patch_file", {"path": "a.md", "edits": [{"old_text": "x"}]}),
        ("memory_patch_file", {"path": "a.md", "edits": [{"old_text": "", "new_text": "x"}]}),
        ("memory_write_file", {"path": "a.md", "content": 7}),
        ("memory_recall", {"query": None}),
        ("memory_recall", {"query": "x", "top_k": "many"}),
    ]:
        wrong = refused(name, arguments)
        assert wrong["code"] == "INVALID_ARGUMENTS" and wrong["hint"].startswith(f"{name} takes {{")


def test_a_defect_is_told_and_silence_is_raised(
    connect: Connect, loop: asyncio.AbstractEventLoop | None, scope: Scope
) -> None:
    never = RetryPolicy(max_retries=0)
    defect = Answer(
        500, b'{"error": {"code": "UNHANDLED_ERROR", "message": "a defect", "request_id": "r", "details": {}}}'
    )
    with fake(defect, HANG_UP) as server:
        box = toolbox(connect(url=server.url, retry=never), loop, scope)
        told = box.call_tool("memory_load_file", {"path": "a.md"})["error"]
        assert told["code"] == "UNHANDLED_ERROR" and "Go on without it" in told["hint"]
        with pytest.raises(TransportError):
            box.call_tool("memory_load_file", {"path": "a.md"})


def test_the_commands_of_the_memory_tool(tool: AnthropicMemoryTool) -> None:
    def call(command: str, **arguments: Any) -> str:
        return tool.call({"command": command, **arguments})

    assert call("view", path="/memories").splitlines()[1:] == ["0B\t/memories"]
    text = "# Sam\nPrices: without tax.\nTone: brief.\n"
    assert (
        call("create", path="/memories/prefs.md", file_text=text) == "File created successfully at: /memories/prefs.md"
    )
    assert call("create", path="/memories/prefs.md", file_text="x") == "Error: File /memories/prefs.md already exists"
    viewed = call("view", path="/memories/prefs.md")
    assert viewed.splitlines()[:3] == [
        "Here's the content of /memories/prefs.md with line numbers:",
        "     1\t# Sam",
        "     2\tPrices: without tax.",
    ]
    assert call("view", path="/memories/prefs.md", view_range=[2, 2]).splitlines()[1:] == [
        "     2\tPrices: without tax."
    ]
    assert "range of lines of the file: [1, 4]" in call("view", path="/memories/prefs.md", view_range=[9, 10])
    edited = call("str_replace", path="/memories/prefs.md", old_str="without", new_str="with")
    assert "     2\tPrices: with tax." in edited.splitlines()
    assert "did not appear verbatim" in call("str_replace", path="/memories/prefs.md", old_str="without", new_str="x")
    assert "in lines: 2, 3" in call("str_replace", path="/memories/prefs.md", old_str=": ", new_str="=")
    assert call("insert", path="/memories/prefs.md", insert_line=1, insert_text="Likes crime.\n").endswith(
        "has been edited."
    )
    assert "[0, 4]" in call("insert", path="/memories/prefs.md", insert_line=9, insert_text="x")
    assert call("view", path="/memories/prefs.md", view_range=[1, 3]).splitlines()[1:] == [
        "     1\t# Sam",
        "     2\tLikes crime.",
        "     3\tPrices: with tax.",
    ]
    assert "does not exist" in call("str_replace", path="/memories/none.md", old_str="x", new_str="y")
    assert "does not exist" in call("view", path="/memories/none.md")


def test_the_memory_tool_renames_and_deletes(tool: AnthropicMemoryTool) -> None:
    def call(command: str, **arguments: Any) -> str:
        return tool.call({"command": command, **arguments})

    for path in ("a.md", "people/ana/notes.md", "people/bo.md", "people/x/y/z/deep.md", ".hidden/x.md"):
        call("create", path=f"/memories/{path}", file_text=path)
    assert call("view", path="/memories").splitlines()[1:] == [
        "55B\t/memories",
        "4B\t/memories/a.md",
        "51B\t/memories/people/",
        "19B\t/memories/people/ana/",
        "12B\t/memories/people/bo.md",
        "20B\t/memories/people/x/",
    ]
    assert "already exists" in call("create", path="/memories/people", file_text="x")
    assert "already exists" in call("rename", old_path="/memories/a.md", new_path="/memories/people/bo.md")
    assert "already exists" in call("rename", old_path="/memories/a.md", new_path="/memories/people")
    assert "does not exist" in call("rename", old_path="/memories/none.md", new_path="/memories/b.md")
    assert "which is inside it" in call("rename", old_path="/memories/people", new_path="/memories/people/here")
    assert call("rename", old_path="/memories/people", new_path="/memories/friends") == (
        "Successfully renamed /memories/people to /memories/friends"
    )
    assert "ana" in call("view", path="/memories/friends/ana/notes.md")
    assert call("rename", old_path="/memories/a.md", new_path="/memories/b.md").startswith("Successfully")
    assert call("delete", path="/memories/friends") == "Successfully deleted /memories/friends"
    assert "does not exist" in call("delete", path="/memories/friends")
    assert call("view", path="/memories").splitlines()[1:] == ["4B\t/memories", "4B\t/memories/b.md"]


def test_a_rename_that_cannot_be_finished_is_undone(tool: AnthropicMemoryTool) -> None:
    """The new path of one of the files is too long to be one."""
    deep = "/".join(["d" * 200] * 4)
    for path in ("a/1.md", "a/2.md", f"a/{deep}/3.md"):
        tool.call({"command": "create", "path": f"/memories/{path}", "file_text": path})
    answer = tool.call({"command": "rename", "old_path": "/memories/a", "new_path": f"/memories/{'b' * 250}"})
    assert answer.startswith("Error:") and answer.endswith("Nothing was moved."), answer
    for path in ("a/1.md", "a/2.md"):
        assert path in tool.call({"command": "view", "path": f"/memories/{path}"})


def test_directories_mind_the_letter_case(tool: AnthropicMemoryTool) -> None:
    for path in ("Notes/a.md", "notes/b.md"):
        tool.call({"command": "create", "path": f"/memories/{path}", "file_text": "x"})
    tool.call({"command": "delete", "path": "/memories/notes"})
    assert tool.call({"command": "view", "path": "/memories/Notes/a.md"}).endswith("     1\tx")


def test_edits_keep_what_else_a_file_holds(tool: AnthropicMemoryTool, agent: MemloomClient, scope: Scope) -> None:
    document = {"doc_id": "d", "schema_id": "s", "schema_version": "1", "content": {"text": "one\n", "tags": ["x"]}}
    agent.files.write(scope, "memories/a.md", document, if_match="*")
    tool.call({"command": "str_replace", "path": "/memories/a.md", "old_str": "one", "new_str": "two"})
    tool.call({"command": "insert", "path": "/memories/a.md", "insert_line": 1, "insert_text": "three"})
    assert agent.files.get(scope, "memories/a.md").document.content == {"text": "two\nthree\n", "tags": ["x"]}
    agent.files.write(scope, "memories/b.json", {**document, "content": {"a": 1}}, if_match="*")
    edit = {"command": "insert", "path": "/memories/b.json", "insert_line": 0, "insert_text": "x"}
    assert "holds no text" in tool.call(edit)


@pytest.mark.parametrize(
    "path",
    ["/etc/passwd", "/memories/../profile.md", "/memoriesx", "profile.md", None, "/memories/%2e%2e/x", "/memories\\x"],
)
def test_the_memory_tool_stays_where_it_belongs(
    tool: AnthropicMemoryTool, agent: MemloomClient, scope: Scope, path: Any
) -> None:
    for command in ("view", "create", "str_replace", "insert", "delete"):
        arguments = {"command": command, "path": path, "file_text": "x", "old_str": "x", "new_str": "y"}
        assert tool.call({**arguments, "insert_line": 0, "insert_text": "x"}).startswith("Error:"), command
    assert tool.call({"command": "rename", "old_path": path, "new_path": "/memories/x"}).startswith("Error:")
    assert list(agent.files.list_all(scope)) == []


def test_the_memory_tool_refuses_what_it_does_not_know(tool: AnthropicMemoryTool) -> None:
    assert tool.definition == {"type": "memory_20250818", "name": "memory"}
    assert re.match("Error: There is no command fly", tool.call({"command": "fly"}))
    assert tool.call({"command": "create", "path": "/memories/x"}).startswith("Error:")
    for command in ("delete", "create"):
        assert tool.call({"command": command, "path": "/memories", "file_text": "x"}).startswith("Error:")
