from __future__ import annotations

import asyncio
import json
from typing import Any, cast

import pytest

import memtrove
from conftest import Blocking, Connect
from fake import HANG_UP, Answer, fake
from memtrove import (
    AnthropicMemoryTool,
    AsyncAgentMemory,
    AsyncAnthropicMemoryTool,
    AsyncToolbox,
    EventDigest,
    MemtroveClient,
    RetryPolicy,
    Scope,
    Toolbox,
    ToolOutput,
    TransportError,
)
from memtrove.tool_calls import ListFilesCall, RecallCall, WriteFileCall, read_call
from memtrove.tool_output import ToolFailure


def toolbox(client: MemtroveClient, loop: asyncio.AbstractEventLoop | None, scope: Scope) -> Toolbox:
    if loop is None:
        return Toolbox(memtrove.AgentMemory(client), scope)
    return cast(Toolbox, Blocking(AsyncToolbox(AsyncAgentMemory(cast(Any, client)._inner), scope), loop))


@pytest.fixture
def box(agent: MemtroveClient, loop: asyncio.AbstractEventLoop | None, scope: Scope) -> Toolbox:
    return toolbox(agent, loop, scope)


@pytest.fixture
def tool(agent: MemtroveClient, loop: asyncio.AbstractEventLoop | None, scope: Scope) -> AnthropicMemoryTool:
    if loop is None:
        return AnthropicMemoryTool(agent, scope)
    return cast(AnthropicMemoryTool, Blocking(AsyncAnthropicMemoryTool(cast(Any, agent)._inner, scope), loop))


def value(box: Toolbox, name: str, arguments: Any) -> Any:
    """What a tool answers; an error says so in both ways."""
    output = box.call_tool(name, arguments)
    assert output.is_error == (isinstance(output.value, dict) and "error" in output.value)
    return output.value


def said(tool: AnthropicMemoryTool, arguments: Any) -> str:
    """What a command of the memory tool answers; an error says so in both ways."""
    output = tool.call(arguments)
    errors = ("Error: ", "No replacement was performed", "The path ")
    assert output.is_error == output.text().startswith(errors), output
    return output.text()


def test_there_are_five_tools_with_closed_schemas() -> None:
    names = [tool.name for tool in memtrove.tools()]
    assert names == ["memory_recall", "memory_list_files", "memory_load_file", "memory_patch_file", "memory_write_file"]
    for tool in memtrove.tools():
        assert tool.parameters["additionalProperties"] is False
        assert "tenant" not in json.dumps(tool.parameters) and "user" not in json.dumps(tool.parameters)
    edits = memtrove.tools()[3].parameters["properties"]["edits"]
    assert (edits["minItems"], edits["maxItems"]) == (1, 100)


def test_tools_are_rendered_for_everybody() -> None:
    first = memtrove.tools()[0]
    chat = memtrove.openai_chat_tools()[0]
    assert chat["type"] == "function" and chat["function"]["parameters"] == first.parameters
    responses = memtrove.openai_responses_tools()[0]
    assert (responses["name"], responses["parameters"], responses["strict"]) == (first.name, first.parameters, False)
    assert memtrove.anthropic_tools()[0]["input_schema"] == first.parameters
    assert memtrove.mcp_tools()[0]["inputSchema"] == first.parameters
    # What is given out is a copy.
    memtrove.anthropic_tools()[0]["input_schema"].clear()
    assert memtrove.anthropic_tools()[0]["input_schema"] == first.parameters


def test_a_model_works_with_its_memory(box: Toolbox, agent: MemtroveClient, scope: Scope) -> None:
    written = value(
        box, "memory_write_file", {"path": "profile.md", "content": "likes tea, likes tea", "reason": "told"}
    )
    assert written["content"] == "likes tea, likes tea" and written["etag"]
    assert value(box, "memory_load_file", '{"path": "profile.md"}') == written
    edits = [{"old_text": "tea", "new_text": "coffee", "occurrence": 1}]
    assert (
        value(box, "memory_patch_file", {"path": "profile.md", "edits": edits})["content"] == "likes coffee, likes tea"
    )
    flat = {"path": "profile.md", "old_text": "likes tea", "new_text": "and mate", "occurrence": None}
    assert value(box, "memory_patch_file", flat)["content"] == "likes coffee, and mate"
    listed = value(box, "memory_list_files", {"prefix": None, "limit": 100000})
    assert [one["path"] for one in listed] == ["profile.md"] and listed[0]["last_modified_utc"].endswith("Z")
    event = EventDigest(
        event_id="e", tenant_id=scope.tenant_id, user_id=scope.user_id, digest="bought tea", keywords=["tea"]
    )
    agent.events.write(scope, event)
    for arguments in ({"query": "tea", "top_k": 0}, {"query": "tea", "topK": 99.0}, {"query": "tea", "top_k": "5"}):
        recalled = value(box, "memory_recall", arguments)
        assert [one["event_id"] for one in recalled] == ["e"]
        assert recalled[0].keys() == {"event_id", "timestamp", "source_type", "digest", "keywords", "project_ids"}
    json.dumps([written, listed, recalled])
    reasons = [record.reason for record in agent.audit.list(scope).records]
    assert reasons == ["told", "memory_patch_file", "memory_patch_file"]


def test_errors_help_the_model(box: Toolbox) -> None:
    def refused(name: str, arguments: Any) -> dict[str, Any]:
        answer = value(box, name, arguments)
        assert answer.keys() == {"error"} and answer["error"].keys() >= {"code", "message", "hint"}
        return cast(dict[str, Any], answer["error"])

    missing = refused("memory_load_file", {"path": "none.md"})
    assert missing["code"] == "DOCUMENT_NOT_FOUND" and "memory_write_file" in missing["hint"]
    value(box, "memory_write_file", {"path": "a.md", "content": "x x x"})
    twice = refused("memory_patch_file", {"path": "a.md", "edits": [{"old_text": "x", "new_text": "y"}]})
    assert twice["code"] == "PATCH_MATCH_AMBIGUOUS" and twice["match_count"] == 3 and "3 times" in twice["hint"]
    nowhere = refused("memory_patch_file", {"path": "a.md", "edits": [{"old_text": "z", "new_text": "y"}]})
    assert nowhere["code"] == "PATCH_MATCH_NOT_FOUND" and "memory_load_file" in nowhere["hint"]
    past = {"path": "a.md", "edits": [{"old_text": "x", "new_text": "y", "occurrence": 9}]}
    assert refused("memory_patch_file", past)["hint"] == "Give an occurrence from 1 to 3."
    for path in ("../x", "a//b", "a/\n"):
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


LONG = "x" * 2001


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        # The same cases as those of the Rust crate.
        ("memory_recall", {}, "'query' is missing"),
        ("memory_recall", {"query": "  "}, "'query' is blank"),
        ("memory_recall", {"query": LONG}, "'query' has 2001 characters; at most 2000 are taken"),
        ("memory_recall", {"query": 4}, "'query' is not a string"),
        ("memory_list_files", {"prefix": LONG}, "'prefix' has 2001 characters; at most 1024 are taken"),
        ("memory_list_files", {"prefix": 5}, "'prefix' is not a string"),
        ("memory_load_file", {"path": ""}, "'path' is blank"),
        ("memory_load_file", {"path": "a.md", "user_id": "bob"}, "there is no argument 'user_id'"),
        ("memory_patch_file", {"path": "a"}, "'edits' is missing"),
        ("memory_patch_file", {"path": "a", "edits": []}, "'edits' is empty"),
        ("memory_patch_file", {"path": "a", "edits": "x"}, "'edits' is not a list"),
        ("memory_patch_file", {"path": "a", "edits": [None]}, "edit 0: 'old_text' is missing"),
        (
            "memory_patch_file",
            {"path": "a", "edits": [{"old_text": "", "new_text": ""}]},
            "edit 0: 'old_text' is empty",
        ),
        ("memory_patch_file", {"path": "a", "edits": [{"old_text": "x"}]}, "edit 0: 'new_text' is missing"),
        (
            "memory_patch_file",
            {"path": "a", "edits": [{"old_text": "x", "new_text": "y", "count": 1}]},
            "edit 0: there is no argument 'count'",
        ),
        ("memory_patch_file", {"path": "a", "old_text": "x"}, "'new_text' is missing"),
        (
            "memory_patch_file",
            {"path": "a", "old_text": "x", "new_text": "y", "edits": [{"old_text": "x", "new_text": "y"}]},
            "there is an edit both in 'edits' and beside it",
        ),
        ("memory_write_file", {"path": "a"}, "'content' is missing"),
        ("memory_write_file", {"path": "a", "content": "", "mode": "append"}, "there is no argument 'mode'"),
        ("memory_write_file", {"path": "a", "content": "\ud800"}, "half of a character"),
        ("memory_write_file", '{"path": "a", "content": "\\ud800"}', "half of a character"),
        ("memory_write_file", '{"path": NaN}', "the arguments are not JSON"),
        ("memory_write_file", "[" * 100_000, "the arguments are not JSON"),
        ("memory_write_file", "[1]", "the arguments are not a JSON object"),
        *(
            ("memory_list_files", {"limit": limit}, "'limit' is not a whole number")
            for limit in (1.5, 7.5, "--5", "²", "١", "1_0", "many", [3], True, "NaN", "inf", float("inf"), 10**400)
        ),
    ],
)
def test_what_cannot_be_read_says_what_the_tool_takes(name: str, arguments: Any, message: str) -> None:
    with pytest.raises(ToolFailure) as failed:
        read_call(name, arguments)
    assert failed.value.code == "INVALID_ARGUMENTS" and failed.value.hint.startswith(f"{name} takes {{")
    assert message in failed.value.message


def test_what_can_be_read_is() -> None:
    for nothing in ({}, None, "", " ", "{}", {"prefix": None, "limit": None}, {"prefix": "  "}):
        assert read_call("memory_list_files", nothing) == ListFilesCall(None, 100)
    for given, taken in [
        (0, 1),
        (-5, 1),
        (20, 20),
        (21, 20),
        (1e30, 20),
        (7.0, 7),
        ("7", 7),
        (" +7.0 ", 7),
        (10**30, 20),
    ]:
        assert read_call("memory_recall", {"query": "tea", "top_k": given}) == RecallCall("tea", taken), given
    assert read_call("memory_recall", {"query": "tea", "topK": 3, "top_k": 5}) == RecallCall("tea", 5)
    assert read_call("memory_recall", {"query": "tea", "topK": 3}) == RecallCall("tea", 3)
    written = read_call("memory_write_file", {"path": "a", "content": "", "reason": "é" * 300})
    assert written == WriteFileCall("a", "", "é" * 256)
    flat = read_call("memory_patch_file", {"path": "a", "old_text": "x", "new_text": "", "occurrence": 0})
    assert flat == read_call(
        "memory_patch_file", {"path": "a", "edits": [{"old_text": "x", "new_text": "", "occurrence": 1}]}
    )
    with pytest.raises(ToolFailure) as many:
        read_call("memory_patch_file", {"path": "a", "edits": [{"old_text": "x", "new_text": "y"}] * 101})
    assert many.value.code == "PATCH_TOO_LARGE"


def test_strict_schemas_require_everything_and_allow_null() -> None:
    patch = memtrove.openai_chat_tools(strict=True)[3]["function"]
    assert patch["strict"] is True and patch["parameters"]["required"] == ["path", "edits", "reason"]
    edit = patch["parameters"]["properties"]["edits"]["items"]
    assert edit["required"] == ["old_text", "new_text", "occurrence"]
    assert edit["properties"]["occurrence"]["type"] == ["integer", "null"]
    assert patch["parameters"]["properties"]["path"] == {"type": "string"}
    recall = memtrove.openai_responses_tools(strict=True)[0]
    assert recall["strict"] is True and recall["parameters"]["properties"]["top_k"] == {
        "type": ["integer", "null"],
        "minimum": 1,
        "maximum": 20,
    }
    hints = [tool["annotations"]["readOnlyHint"] for tool in memtrove.mcp_tools()]
    assert hints == [True, True, True, False, False]
    assert "strict" not in memtrove.openai_chat_tools()[0]["function"]


def test_outputs_are_rendered_for_everybody() -> None:
    output = ToolOutput({"a": "é"}, is_error=True)
    assert output.text() == '{"a":"é"}'
    assert output.openai_message("c") == {"role": "tool", "tool_call_id": "c", "content": output.text()}
    assert output.openai_item("c") == {"type": "function_call_output", "call_id": "c", "output": output.text()}
    block = {"type": "tool_result", "tool_use_id": "c", "content": output.text(), "is_error": True}
    assert output.anthropic_block("c") == block
    assert output.mcp_result() == {"content": [{"type": "text", "text": output.text()}], "isError": True}
    assert ToolOutput("plain").mcp_result() == {"content": [{"type": "text", "text": "plain"}], "isError": False}


def test_a_defect_is_told_and_silence_is_raised(
    connect: Connect, loop: asyncio.AbstractEventLoop | None, scope: Scope
) -> None:
    never = RetryPolicy(max_retries=0)
    defect = Answer(
        500, b'{"error": {"code": "UNHANDLED_ERROR", "message": "a defect", "request_id": "r", "details": {}}}'
    )
    with fake(defect, HANG_UP) as server:
        box = toolbox(connect(url=server.url, retry=never), loop, scope)
        told = value(box, "memory_load_file", {"path": "a.md"})["error"]
        assert told["code"] == "UNHANDLED_ERROR" and "Go on without it" in told["hint"]
        with pytest.raises(TransportError):
            value(box, "memory_load_file", {"path": "a.md"})


def test_the_commands_of_the_memory_tool(tool: AnthropicMemoryTool) -> None:
    def call(command: str, **arguments: Any) -> str:
        return said(tool, {"command": command, **arguments})

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


def test_the_memory_tool_is_patient_with_what_models_send(tool: AnthropicMemoryTool) -> None:
    said(tool, '{"command": "create", "path": "/memories/a.md", "file_text": "one\\n"}')
    said(tool, {"command": "insert", "path": "/memories/a.md", "insert_line": " 1 ", "insert_text": "two\n\n"})
    viewed = said(tool, {"command": "view", "path": "/memories/a.md/", "view_range": ["1", "-1"]})
    assert viewed.split("\n")[1:] == ["     1\tone", "     2\ttwo", "     3\t"]
    said(tool, {"command": "str_replace", "path": "/memories/a.md", "old_str": "two\n"})
    assert said(tool, {"command": "view", "path": "/memories/a.md"}).split("\n")[1:] == ["     1\tone", "     2\t"]


def test_a_rename_that_cannot_be_told_is_undone_as_well(
    connect: Connect, loop: asyncio.AbstractEventLoop | None, scope: Scope
) -> None:
    """The second of three files cannot be moved, because nobody answers; the first is moved back."""
    entry = '{"path": "memories/a/%s.md", "last_modified_utc": "2026-01-01T00:00:00Z"}'
    files = ", ".join(entry % name for name in "123")
    nothing = Answer(200, b'{"files": []}')
    missing = Answer(404, b'{"error": {"code": "DOCUMENT_NOT_FOUND", "message": "m", "details": {}}}')
    document = {"doc_id": "d", "schema_id": "s", "schema_version": "1", "content": {}}
    moved = Answer(200, json.dumps({"from": "x", "to": "y", "path": "y", "etag": "e", "document": document}).encode())
    below = Answer(200, f'{{"files": [{files}]}}'.encode())
    with fake(nothing, missing, below, missing, moved, HANG_UP, moved) as server:
        client = connect(url=server.url, retry=RetryPolicy(max_retries=0))
        plain: Any = AnthropicMemoryTool(client, scope)
        if loop is not None:
            plain = Blocking(AsyncAnthropicMemoryTool(cast(Any, client)._inner, scope), loop)
        with pytest.raises(TransportError):
            plain.call({"command": "rename", "old_path": "/memories/a", "new_path": "/memories/b"})
        bodies = [json.loads(asked.body) for asked in server.asked if asked.path.endswith("files:move")]
    assert [(one["from"], one["to"]) for one in bodies] == [
        ("memories/a", "memories/b"),
        ("memories/a/1.md", "memories/b/1.md"),
        ("memories/a/2.md", "memories/b/2.md"),
        ("memories/b/1.md", "memories/a/1.md"),
    ]


def test_the_memory_tool_renames_and_deletes(tool: AnthropicMemoryTool) -> None:
    def call(command: str, **arguments: Any) -> str:
        return said(tool, {"command": command, **arguments})

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
        said(tool, {"command": "create", "path": f"/memories/{path}", "file_text": path})
    answer = said(tool, {"command": "rename", "old_path": "/memories/a", "new_path": f"/memories/{'b' * 250}"})
    assert answer.startswith("Error:") and answer.endswith("Nothing was moved."), answer
    for path in ("a/1.md", "a/2.md"):
        assert path in said(tool, {"command": "view", "path": f"/memories/{path}"})


def test_directories_mind_the_letter_case(tool: AnthropicMemoryTool) -> None:
    for path in ("Notes/a.md", "notes/b.md"):
        said(tool, {"command": "create", "path": f"/memories/{path}", "file_text": "x"})
    said(tool, {"command": "delete", "path": "/memories/notes"})
    assert said(tool, {"command": "view", "path": "/memories/Notes/a.md"}).endswith("     1\tx")


def test_edits_keep_what_else_a_file_holds(tool: AnthropicMemoryTool, agent: MemtroveClient, scope: Scope) -> None:
    document = {"doc_id": "d", "schema_id": "s", "schema_version": "1", "content": {"text": "one\n", "tags": ["x"]}}
    agent.files.write(scope, "memories/a.md", document, if_match="*")
    said(tool, {"command": "str_replace", "path": "/memories/a.md", "old_str": "one", "new_str": "two"})
    said(tool, {"command": "insert", "path": "/memories/a.md", "insert_line": 1, "insert_text": "three"})
    assert agent.files.get(scope, "memories/a.md").document.content == {"text": "two\nthree\n", "tags": ["x"]}
    agent.files.write(scope, "memories/b.json", {**document, "content": {"a": 1}}, if_match="*")
    edit = {"command": "insert", "path": "/memories/b.json", "insert_line": 0, "insert_text": "x"}
    assert "holds no text" in said(tool, edit)


@pytest.mark.parametrize(
    "path",
    [
        "/etc/passwd",
        "/memories/../profile.md",
        "/memoriesx",
        "profile.md",
        None,
        7,
        "/memories/%2e%2e/x",
        "/memories\\x",
    ],
)
def test_the_memory_tool_stays_where_it_belongs(
    tool: AnthropicMemoryTool, agent: MemtroveClient, scope: Scope, path: Any
) -> None:
    for command in ("view", "create", "str_replace", "insert", "delete"):
        arguments = {"command": command, "path": path, "file_text": "x", "old_str": "x", "new_str": "y"}
        assert said(tool, {**arguments, "insert_line": 0, "insert_text": "x"}).startswith("Error:"), command
    assert said(tool, {"command": "rename", "old_path": path, "new_path": "/memories/x"}).startswith("Error:")
    assert list(agent.files.list_all(scope)) == []


def test_the_memory_tool_refuses_what_it_does_not_know(tool: AnthropicMemoryTool) -> None:
    assert tool.definition == {"type": "memory_20250818", "name": "memory"}
    names = "view, create, str_replace, insert, delete, rename"
    assert said(tool, {"command": "fly"}) == f"Error: Unknown command: fly. Valid commands are: {names}"
    assert said(tool, {}) == f"Error: 'command' is missing. Give a command: {names}."
    assert said(tool, "[1]") == f"Error: the arguments are not a JSON object. Give a command: {names}."
    for arguments, answer in [
        ({"command": "view"}, "Error: 'path' is missing. view takes {"),
        (
            {"command": "view", "path": "/memories/x", "view_range": [1]},
            "Error: 'view_range' is not a list of two line",
        ),
        ({"command": "view", "path": "/memories/x", "view_range": [1, "b"]}, "Error: 'view_range' is not a list of"),
        ({"command": "insert", "path": "/memories/x", "insert_text": "x"}, "Error: 'insert_line' is not a whole numb"),
        ({"command": "str_replace", "path": "/memories/x", "old_str": ""}, "Error: 'old_str' is empty. str_replace t"),
        ({"command": "create", "path": "/memories/x", "file_text": "\ud800"}, "Error: the arguments are not JSON"),
        ({"command": "insert", "path": "/memories/x", "insert_line": 0, "insert_text": "x"}, "Error: The path /memor"),
        ({"command": "insert", "path": "/memories", "insert_line": 0, "insert_text": "x"}, "Error: The path /memorie"),
        ({"command": "delete", "path": "/memories"}, "Error: Cannot delete the /memories directory itself"),
        ({"command": "create", "path": "/memories", "file_text": "x"}, "Error: File /memories already exists"),
        ({"command": "rename", "old_path": "/memories", "new_path": "/memories/x"}, "Error: Cannot rename the /memor"),
    ]:
        assert said(tool, arguments).startswith(answer), (arguments, said(tool, arguments))
    assert said(tool, {"command": "create", "path": "/memories/x"}).startswith("Error:")
    for command in ("delete", "create"):
        assert said(tool, {"command": command, "path": "/memories", "file_text": "x"}).startswith("Error:")
