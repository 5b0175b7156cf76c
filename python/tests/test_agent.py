from __future__ import annotations

import asyncio
import json
import pathlib
import re
from typing import Any, cast

import httpx
import pytest

from conftest import Blocking, Connect
from fake import Answer, fake
from memtrove import (
    CREATE_NEW,
    AgentMemory,
    ApiError,
    AsyncAgentMemory,
    CreateOnly,
    Envelope,
    EventDigest,
    IfUnchanged,
    InvalidInputError,
    MemoryEdit,
    MemoryPolicy,
    MemtroveClient,
    PatchOp,
    RetryPolicy,
    Scope,
    SlotPolicy,
    SlotRules,
)

POLICY = MemoryPolicy(
    "assistant",
    [
        SlotPolicy("profile", path="profile.md", load_by_default=True),
        SlotPolicy("project", path_template="projects/{project_id}.json", rules=SlotRules(allowed_paths=["/todo"])),
        SlotPolicy(
            "small",
            path="small.json",
            rules=SlotRules(required_content_paths=["/title"], max_content_chars=60, max_array_items=2),
        ),
        SlotPolicy("diary", path="diary.md", load_by_default=True),
    ],
)


def over(
    client: MemtroveClient, loop: asyncio.AbstractEventLoop | None, policy: MemoryPolicy | None = None
) -> AgentMemory:
    if loop is None:
        return AgentMemory(client, policy)
    return cast(AgentMemory, Blocking(AsyncAgentMemory(cast(Any, client)._inner, policy), loop))


@pytest.fixture
def memory(agent: MemtroveClient, loop: asyncio.AbstractEventLoop | None) -> AgentMemory:
    return over(agent, loop, POLICY)


def doc(**content: Any) -> Envelope:
    return Envelope(doc_id="d", schema_id="s", schema_version="1", content=content)


def event(scope: Scope, event_id: str, digest: str, **more: Any) -> EventDigest:
    return EventDigest(event_id=event_id, tenant_id=scope.tenant_id, user_id=scope.user_id, digest=digest, **more)


def test_files_are_written_loaded_patched_listed(memory: AgentMemory, scope: Scope) -> None:
    written = memory.write_file(scope, "/profile.md", "# Dana\n- Lisbon\n")
    assert (written.path, written.content_type, written.content) == (
        "profile.md",
        "text/markdown",
        "# Dana\n- Lisbon\n",
    )
    patched = memory.patch_file(scope, "profile.md", [MemoryEdit(old_text="Lisbon", new_text="Porto")])
    assert patched.content == "# Dana\n- Porto\n" and patched.etag != written.etag
    assert memory.load_file(scope, "profile.md") == patched
    assert [one.path for one in memory.list_files(scope, "pro")] == ["profile.md"]
    reasons = [record.reason for record in memory.client.audit.list(scope).records]
    assert reasons == ["memory_write_file", "memory_patch_file"]
    stored = memory.client.files.get(scope, "profile.md").document
    assert (stored.schema_id, stored.schema_version) == ("memnet.file", "1.0.0")


def test_an_empty_text_is_a_text_and_other_content_is_json(
    memory: AgentMemory, agent: MemtroveClient, scope: Scope
) -> None:
    assert memory.write_file(scope, "empty.md", "").content == ""
    assert memory.load_file(scope, "empty.md").content_type == "text/markdown"
    agent.files.write(scope, "data.json", doc(a=1), if_match=CREATE_NEW)
    loaded = memory.load_file(scope, "data.json")
    assert loaded.content_type == "application/json" and json.loads(loaded.content) == {"a": 1}
    agent.files.write(scope, "plain.txt", doc(text="hi", content_type="text/plain"), if_match=CREATE_NEW)
    assert memory.write_file(scope, "plain.txt", "ho").content_type == "text/plain"


def test_writes_keep_what_the_envelope_has(memory: AgentMemory, agent: MemtroveClient, scope: Scope) -> None:
    first = agent.files.write(scope, "x.md", {**doc(text="1").to_wire(), "mine": True}, if_match=CREATE_NEW).document
    memory.write_file(scope, "x.md", "2")
    second = agent.files.get(scope, "x.md").document
    assert (second.doc_id, second.created_at, second.extra) == (first.doc_id, first.created_at, {"mine": True})


@pytest.mark.parametrize("created", ["2026-01-30T19:00:00.123456789+01:00", "2016-12-31T23:59:60Z"])
def test_writes_leave_what_is_around_the_text_as_it_was_written(
    memory: AgentMemory, url: str, scope: Scope, created: str
) -> None:
    """To the letter: a time that no `datetime` can hold, and numbers that no float can."""
    around = f'"zebra":1.50,"doc_id":"d","large":1E400,"created_at":"{created}"'
    at = f"{url}/v1/tenants/{scope.tenant_id}/users/{scope.user_id}/files/x.md"
    headers = {"X-API-Key": "planner", "X-User-ID": scope.user_id, "Content-Type": "application/json"}
    sent = f'{{"document":{{{around},"schema_id":"s","schema_version":"1","content":{{"text":"1","n":2}}}}}}'
    made = httpx.put(at, content=sent, headers={**headers, "If-Match": "*"})
    assert made.status_code == 200, made.text
    etag = memory.write_file(scope, "x.md", "2").etag
    memory.write_file(scope, "x.md", "3", mode=IfUnchanged(etag))
    stored = httpx.get(at, headers=headers)
    kept = re.findall(r'"(?:zebra|large|created_at)":[^,}]+', made.text)
    assert len(kept) == 3 and [one for one in kept if one not in stored.text] == []
    after = stored.json()["document"]
    assert [*after] == [*made.json()["document"]] and after["content"] == {"content_type": "text/markdown", "text": "3"}


def test_modes_of_writing(memory: AgentMemory, scope: Scope) -> None:
    first = memory.write_file(scope, "x.md", "1", mode=CreateOnly())
    with pytest.raises(ApiError) as exists:
        memory.write_file(scope, "x.md", "2", mode=CreateOnly())
    assert exists.value.is_conflict
    second = memory.write_file(scope, "x.md", "2", mode=IfUnchanged(first.etag))
    with pytest.raises(ApiError) as late:
        memory.write_file(scope, "x.md", "3", mode=IfUnchanged(first.etag))
    assert late.value.latest_etag == second.etag
    assert memory.write_file(scope, "x.md", "4").content == "4"


def test_edits_that_cannot_be_right_are_not_sent(memory: AgentMemory, scope: Scope) -> None:
    for edits in ([], [MemoryEdit(old_text="", new_text="x")]):
        with pytest.raises(InvalidInputError):
            memory.patch_file(scope, "nowhere.md", edits)
    memory.write_file(scope, "x.md", "a a")
    with pytest.raises(ApiError) as unclear:
        memory.patch_file(scope, "x.md", [MemoryEdit(old_text="a", new_text="b")])
    assert unclear.value.code == "PATCH_MATCH_AMBIGUOUS"
    assert memory.patch_file(scope, "x.md", [MemoryEdit(old_text="a", new_text="b", occurrence=2)]).content == "a b"


def test_a_turn_is_prepared_from_slots_and_events(memory: AgentMemory, scope: Scope) -> None:
    memory.write_file(scope, "profile.md", "# Dana")
    memory.client.files.write(scope, "projects/porto.json", doc(todo=["hotel"]), if_match=CREATE_NEW)
    memory.remember(scope, event(scope, "e1", "booked the night train", project_ids=["porto"]))
    memory.remember(scope, event(scope, "e2", "booked the night bus"))
    turn = memory.prepare_turn(
        scope,
        recall_query="night",
        project_id="porto",
        additional_slot_ids=["project", "profile"],
        template_variables={"project_id": "porto"},
    )
    assert [(one.slot_id, one.path) for one in turn.documents] == [
        ("profile", "profile.md"),
        ("project", "projects/porto.json"),
    ]
    assert all(one.etag for one in turn.documents)
    assert [one.event_id for one in turn.events] == ["e1"]
    assert [one.event_id for one in memory.recall(scope, "night", 1)] in (["e1"], ["e2"])
    tight = memory.prepare_turn(scope, max_chars_total=10)
    assert tight.documents == [] and [one.path for one in tight.dropped_files] == ["profile.md"] and tight.events == ()


def test_two_slots_may_be_one_file_and_nothing_is_a_number(
    agent: MemtroveClient, loop: asyncio.AbstractEventLoop | None, scope: Scope
) -> None:
    slots = [SlotPolicy(name, path="profile.md", load_by_default=True) for name in ("first", "second")]
    memory = over(agent, loop, MemoryPolicy("twice", slots))
    memory.write_file(scope, "profile.md", "# Dana")
    assert [one.slot_id for one in memory.prepare_turn(scope).documents] == ["first", "second"]
    budgets: list[dict[str, Any]] = [{"max_docs": 0}, {"max_chars_total": 0}]
    for budget in budgets:
        # Whatever the server thinks of nothing, it is asked for nothing.
        try:
            assert memory.prepare_turn(scope, **budget).documents == []
        except ApiError as error:
            assert error.status == 400


def test_an_event_that_names_nobody_belongs_to_the_scope(memory: AgentMemory, scope: Scope) -> None:
    memory.remember(scope, EventDigest(event_id="e", tenant_id="", user_id="", digest="bought tea"))
    assert [one.user_id for one in memory.recall(scope, "tea")] == [scope.user_id]


def test_a_turn_without_slots_and_query_asks_nothing(
    connect: Connect, loop: asyncio.AbstractEventLoop | None, scope: Scope
) -> None:
    sent: list[object] = []
    turn = over(connect(api_key="k", on_request=sent.append), loop).prepare_turn(scope, recall_query="  ")
    assert (turn.documents, turn.events, sent) == ([], (), [])


def test_slots_are_changed_within_their_rules(memory: AgentMemory, scope: Scope) -> None:
    porto = {"project_id": "porto"}
    made = memory.replace_slot(scope, "project", doc(todo=[]), if_match=CREATE_NEW, template_variables=porto)
    todo = [PatchOp.add("/content/todo/-", "hotel")]
    patched = memory.patch_slot(scope, "project", todo, if_match=made.etag, template_variables=porto)
    assert memory.load_slot(scope, "project", porto).envelope.content == {"todo": ["hotel"]}
    forbidden = [
        PatchOp.add("/content/todox", 1),
        PatchOp.replace("/schema_id", "x"),
        PatchOp.remove("/content"),
        PatchOp.move("/content/other", "/content/todo/0"),
    ]
    for op in forbidden:
        with pytest.raises(InvalidInputError, match="may not change"):
            memory.patch_slot(scope, "project", [op], if_match=patched.etag, template_variables=porto)
    for bad in (doc(x=1), doc(title="t", text="x" * 100), doc(title="t", a={"b": [1, 2, 3]})):
        with pytest.raises(InvalidInputError):
            memory.replace_slot(scope, "small", bad, if_match=CREATE_NEW)
    memory.replace_slot(scope, "small", doc(title="t", a=[1, 2]), if_match=CREATE_NEW)


@pytest.mark.parametrize("variables", [{}, {"project_id": " "}, {"project_id": "a/b"}, {"project_id": ".."}])
def test_templates_need_one_name_per_variable(memory: AgentMemory, scope: Scope, variables: dict[str, str]) -> None:
    with pytest.raises(InvalidInputError):
        memory.load_slot(scope, "project", variables)


def test_a_policy_is_read_from_a_file(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "policy.json"
    slot = {"slot_id": "a", "path": "a.md", "load_by_default": True, "patch_rules": {"max_array_items": 3}}
    file.write_text(json.dumps({"policy_id": "p", "slots": [slot, {"slot_id": "b", "path_template": "{x}.md"}]}))
    policy = MemoryPolicy.from_json_file(file)
    assert policy.slot("a").rules.max_array_items == 3 and policy.slot("b").resolve({"x": "y"}) == "y.md"
    with pytest.raises(InvalidInputError, match="the policy has: a, b"):
        policy.slot("c")
    with pytest.raises(InvalidInputError, match="cannot be read"):
        MemoryPolicy.from_json_file(tmp_path / "none.json")


SLOT = {"slot_id": "a", "path": "a.md"}


@pytest.mark.parametrize(
    ("policy", "why"),
    [
        ("{", "cannot be read"),
        ("[]", "not an object"),
        ({"slots": []}, "no 'policy_id'"),
        ({"policy_id": "p", "slot": []}, "'slot'"),
        ({"policy_id": "p", "slots": None}, "not a list"),
        ({"policy_id": "p", "slots": [SLOT, SLOT]}, "two slots 'a': rename one"),
        ({"policy_id": "p", "slots": [{**SLOT, "slot_id": " "}]}, "blank slot_id"),
        ({"policy_id": "p", "slots": [{"path": "x"}]}, "no 'slot_id'"),
        ({"policy_id": "p", "slots": [{"slot_id": "a"}]}, "slot 'a' has neither path nor path_template"),
        ({"policy_id": "p", "slots": [{**SLOT, "path_template": "x"}]}, "slot 'a' has both path and path_template"),
        ({"policy_id": "p", "slots": [{**SLOT, "load_by_defualt": True}]}, "'load_by_defualt'"),
        ({"policy_id": "p", "slots": [{**SLOT, "load_by_default": "yes"}]}, "not true or false"),
        ({"policy_id": "p", "slots": [{**SLOT, "patch_rules": {"allowed_path": ["/a"]}}]}, "'allowed_path'"),
        ({"policy_id": "p", "slots": [{**SLOT, "patch_rules": {"allowed_paths": "/a"}}]}, "not a list of texts"),
        ({"policy_id": "p", "slots": [{**SLOT, "patch_rules": {"max_array_items": -1}}]}, "negative"),
    ],
)
def test_a_policy_that_could_mean_something_else_is_refused(policy: Any, why: str) -> None:
    with pytest.raises(InvalidInputError, match=why):
        MemoryPolicy.from_json(policy if isinstance(policy, str) else json.dumps(policy))


@pytest.mark.parametrize(
    ("rule", "op", "allowed"),
    [
        ("/a", PatchOp.add("/content/a", 1), True),
        ("a", PatchOp.add("/content/a/b", 1), True),
        ("/a", PatchOp.add("/content/ab", 1), False),
        ("/a", PatchOp.add("/content", {}), False),
        ("/a", PatchOp.add("//content/a", 1), False),
        ("/a", PatchOp.add("/content//a", 1), False),
        ("/a", PatchOp.add("/contents/a", 1), False),
        ("/", PatchOp.add("/content", {}), True),
        ("", PatchOp.add("/content/x", 1), True),
        ("", PatchOp.add("/schema_id", "x"), False),
        ("/people/*/name", PatchOp.replace("/content/people/3/name", "x"), True),
        ("/people/*/name", PatchOp.replace("/content/people/3/age", 4), False),
        ("/people/*", PatchOp.replace("/content/people", []), False),
        ("/a~1b", PatchOp.remove("/content/a~1b"), True),
        ("/a", PatchOp.test("/schema_id", "x"), True),
        ("/a", PatchOp.copy("/content/b", "/content/a"), True),
        ("/a", PatchOp.copy("/content/a", "/content/b"), False),
        ("/a", PatchOp.move("/content/b", "/content/a"), False),
    ],
)
def test_what_a_rule_allows(rule: str, op: PatchOp, allowed: bool) -> None:
    slot = SlotPolicy("s", path="s.json", rules=SlotRules(allowed_paths=[rule]))
    if allowed:
        slot.check_patch([op])
    else:
        with pytest.raises(InvalidInputError, match="slot 's': operation 0 may not change"):
            slot.check_patch([op])


def test_what_a_content_must_have() -> None:
    slot = SlotPolicy("s", path="s.json", rules=SlotRules(required_content_paths=["a/0", "/b"]))
    slot.check_content({"a": [0], "b": False})
    for content in ({"a": [], "b": 1}, {"a": [1], "b": None}, {"a": [1]}, {"a": {"1": 1}, "b": 1}):
        with pytest.raises(InvalidInputError, match="slot 's': the content lacks"):
            slot.check_content(content)
    with pytest.raises(InvalidInputError, match="no operation"):
        slot.check_patch([])


def test_a_template_says_what_is_wrong_with_it() -> None:
    assert SlotPolicy("s", path_template="{a}-{b}}.md").resolve({"a": "x", "b": "y"}) == "x-y}.md"
    for template in ("{a", "x/{a}/{b"):
        with pytest.raises(InvalidInputError, match=r"slot 's': the path template .* without"):
            SlotPolicy("s", path_template=template).resolve({"a": "x", "b": "y"})


def test_a_session_tells_the_model_once_and_again_after_a_change(memory: AgentMemory, scope: Scope) -> None:
    memory.write_file(scope, "profile.md", "# Dana\n")
    memory.write_file(scope, "projects/a.md", "alpha")
    session = memory.session(scope, ["profile.md", "none.md"], prefix="projects/")
    text = session.prime()
    assert text == (
        '<file path="profile.md">\n# Dana\n</file>\n<file path="none.md" omitted="does not exist yet"/>\n'
        '<files prefix="projects/">\nprojects/a.md\n</files>\n'
    )
    assert session.is_due and session.next_turn() == text and session.next_turn() is None and not session.is_due
    session.patch_file("profile.md", [MemoryEdit(old_text="Dana", new_text="Dana K.")])
    assert session.is_due
    # Only what was named is told; the rest is in the list.
    session.write_file("projects/b.md", "beta")
    assert session.next_turn() == text.replace("Dana", "Dana K.").replace("a.md\n", "a.md\nprojects/b.md\n")
    with pytest.raises(ApiError):
        session.patch_file("none.md", [MemoryEdit(old_text="x", new_text="y")])
    assert session.next_turn() is None
    session.carry_again()
    assert session.next_turn() == session.snapshot()
    # What nobody reads has changed nothing.
    session.write_file("elsewhere.md", "x")
    assert session.next_turn() is None
    # What others do is seen when one looks.
    memory.write_file(scope, "profile.md", "# Eve")
    assert session.next_turn() is None
    session.refresh()
    assert "# Eve" in (session.next_turn() or "")


def test_a_session_says_what_does_not_fit_and_that_there_is_more(memory: AgentMemory, scope: Scope) -> None:
    memory.write_file(scope, "large.md", "x" * 50_000)
    for name in "abc":
        memory.write_file(scope, f"{name}.md", name)
    session = memory.session(scope, ["large.md", "a.md"], prefix="", limit=2)
    assert session.prime() == (
        '<file path="large.md" omitted="does not fit; load it when needed"/>\n<file path="a.md">\na\n</file>\n'
        '<files prefix="">\na.md\nb.md\n(and more: list them with memory_list_files)\n</files>\n'
    )


def test_what_a_model_changes_through_a_session_is_told_again(memory: AgentMemory, scope: Scope) -> None:
    session = memory.session(scope, ["profile.md", "memories/a.md"])
    session.prime()
    session.next_turn()
    session.call_tool("memory_write_file", {"path": "profile.md", "content": "tea"})
    assert "tea" in (session.next_turn() or "")
    assert session.call_tool("memory_load_file", {"path": "profile.md"}).value["content"] == "tea"
    assert session.call_tool("memory_write_file", {"path": "profile.md"}).is_error and session.next_turn() is None
    create = {"command": "create", "path": "/memories/a.md", "file_text": "mate"}
    assert not session.call_memory_tool(create).is_error
    assert "mate" in (session.next_turn() or "")
    session.call_memory_tool({"command": "view", "path": "/memories"})
    assert session.next_turn() is None


def test_a_change_stands_although_it_cannot_be_told_at_once(
    connect: Connect, loop: asyncio.AbstractEventLoop | None, scope: Scope
) -> None:
    document = {"doc_id": "d", "schema_id": "s", "schema_version": "1", "content": {"text": "tea"}}
    written = Answer(200, json.dumps({"etag": "e", "document": document}).encode())
    listed = Answer(200, b'{"files": [{"path": "a.md", "last_modified_utc": "2026-01-01T00:00:00Z"}]}')
    missing = Answer(404, b'{"error": {"code": "DOCUMENT_NOT_FOUND", "message": "m", "details": {}}}')
    with fake(Answer(200, b'{"files": []}'), missing, written, Answer(500), Answer(500), listed) as server:
        client = connect(url=server.url, retry=RetryPolicy(max_retries=0))
        session = over(client, loop).session(scope, prefix="")
        session.prime()
        assert session.next_turn() == '<files prefix="">\n</files>\n'
        assert session.write_file("a.md", "tea").content == "tea"
        with pytest.raises(ApiError):
            session.next_turn()
        assert session.next_turn() == '<files prefix="">\na.md\n</files>\n'


def test_a_user_is_forgotten(memory: AgentMemory, scope: Scope) -> None:
    memory.write_file(scope, "x.md", "1")
    assert memory.forget_user(scope).documents_deleted == 1
