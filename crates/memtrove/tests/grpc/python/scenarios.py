"""Everything the contract has, through a client that Python generated from it.

    scenarios.py MODULE     MODULE is what the generated code is called, e.g. memory.v1.memory_service

The server at $MEMTROVE_URL runs in local mode and records no more than 1 MiB of a response. Every field of every message must have been
sent or received at the end, so that a field with a wrong number cannot hide.
"""

import hashlib, importlib, os, sys, threading, time, uuid

import grpc
from google.protobuf import empty_pb2, json_format, struct_pb2
from google.rpc import error_details_pb2
from grpc_status import rpc_status

ADDRESS, MODULE = os.environ["MEMTROVE_URL"].removeprefix("http://"), sys.argv[1]
pb = importlib.import_module(f"{MODULE}_pb2")
stubs = importlib.import_module(f"{MODULE}_pb2_grpc")
channel = grpc.insecure_channel(ADDRESS, options=[("grpc.max_receive_message_length", 64 << 20)])

system = stubs.SystemServiceStub(channel)
conversations = stubs.ConversationsServiceStub(channel)
memberships = stubs.ConversationMembershipsServiceStub(channel)
transfers = stubs.OwnershipTransfersServiceStub(channel)
entries = stubs.EntriesServiceStub(channel)
search = stubs.SearchServiceStub(channel)
recorder = stubs.ResponseRecorderServiceStub(channel)
attachments = stubs.AttachmentsServiceStub(channel)

SECONDS = 30
# Only a second node would send these, and only a search without time the last.
NEVER = {
    ("ReplayResponse", "redirect_address"),
    ("CancelRecordResponse", "redirect_address"),
    ("SearchEntriesResponse", "degraded"),
}

seen = set()


def note(message):
    """Remembers which fields a message has."""
    for field, value in message.ListFields():
        seen.add((message.DESCRIPTOR.name, field.name))
        for part in value if field.is_repeated else [value]:
            if hasattr(part, "ListFields") and part.DESCRIPTOR.file.package == "memory.v1":
                note(part)
    return message


class Who:
    """Somebody, perhaps through an agent."""

    def __init__(self, user, key=None):
        self.user = user
        self.metadata = [("authorization", f"Bearer {user}")] + ([("x-api-key", key)] if key else [])

    def through(self, key):
        return Who(self.user, key)

    def call(self, method, request):
        note(request)
        return note(method(request, metadata=self.metadata, timeout=SECONDS))

    def refused(self, method, request, code, reason):
        """The error of a call that must fail like this."""
        try:
            answer = method(request, metadata=self.metadata, timeout=SECONDS)
            answer = list(answer) if hasattr(answer, "cancel") and not hasattr(answer, "ListFields") else answer
        except grpc.RpcError as error:
            details = rpc_status.from_call(error).details
            info = error_details_pb2.ErrorInfo()
            assert details[0].Unpack(info), details
            assert (error.code(), info.reason) == (code, reason), (error.code(), info, error.details())
            assert info.domain == "memtrove", info
            return error, info
        raise AssertionError(f"this should be {code}: {answer}")


def someone(role):
    return Who(f"{role}-{uuid.uuid4().hex[:12]}")


def new_id():
    return uuid.uuid4().bytes


def values(*items):
    return json_format.ParseDict(list(items), struct_pb2.ListValue()).values


def plain(content):
    """Values as Python has them; whole numbers are floats."""
    return [json_format.MessageToDict(value) for value in content]


def said(text, **more):
    content = values({"role": "USER", "text": text})
    return pb.CreateEntryRequest(channel=pb.HISTORY, content_type="history", content=content, **more)


def kept(*items, **more):
    return pb.CreateEntryRequest(channel=pb.MEMORY, content_type="LC4J", content=values(*items), **more)


def append(who, conversation, entry):
    return who.call(entries.AppendEntry, pb.AppendEntryRequest(conversation_id=conversation, entry=entry))


def sync(who, conversation, entry):
    return who.call(entries.SyncEntries, pb.SyncEntriesRequest(conversation_id=conversation, entry=entry))


def start(who, title="Chat"):
    return who.call(conversations.CreateConversation, pb.CreateConversationRequest(title=title)).id


def read(who, conversation, **more):
    return who.call(entries.ListEntries, pb.ListEntriesRequest(conversation_id=conversation, **more))


def texts(page):
    return [item["text"] for entry in page.entries for item in plain(entry.content)]


def the_server_is_there():
    assert note(system.GetHealth(empty_pb2.Empty(), timeout=SECONDS)).status == "ok"


def conversations_are_made_read_listed_renamed_and_deleted():
    alice = someone("alice")
    metadata = struct_pb2.Struct()
    metadata.update({"origin": "mail", "n": 7, "nested": {"list": [1, None, "x", True]}})
    made = alice.call(conversations.CreateConversation, pb.CreateConversationRequest(title="Łódź 🧵", metadata=metadata))
    assert len(made.id) == 16 and made.owner_user_id == alice.user and made.access_level == pb.OWNER
    assert made.title == "Łódź 🧵" and made.created_at.endswith("Z") and not made.HasField("metadata")
    append(alice, made.id, said("the first message"))
    found = alice.call(conversations.GetConversation, pb.GetConversationRequest(conversation_id=made.id))
    assert found.metadata == metadata and found.last_message_preview == "the first message"
    by_text = pb.GetConversationRequest(conversation_id=str(uuid.UUID(bytes=made.id)).encode())
    assert alice.call(conversations.GetConversation, by_text).id == made.id
    for number in range(3):
        start(alice, f"Number {number}")
    rest = pb.ListConversationsRequest(mode=pb.ROOTS, query="number", page=pb.PageRequest(page_size=2))
    first = alice.call(conversations.ListConversations, rest)
    assert [one.title for one in first.conversations] == ["Number 2", "Number 1"]
    rest.page.page_token = first.page_info.next_page_token
    last = alice.call(conversations.ListConversations, rest)
    assert [one.title for one in last.conversations] == ["Number 0"] and not last.page_info.next_page_token
    everything = alice.call(conversations.ListConversations, pb.ListConversationsRequest())
    assert everything.conversations[-1].last_message_preview == "the first message"
    renamed = pb.UpdateConversationRequest(conversation_id=made.id, title="Renamed")
    assert alice.call(conversations.UpdateConversation, renamed).title == "Renamed"
    unchanged = pb.UpdateConversationRequest(conversation_id=made.id)
    assert alice.call(conversations.UpdateConversation, unchanged).title == "Renamed"
    cleared = pb.UpdateConversationRequest(conversation_id=made.id, title="")
    assert alice.call(conversations.UpdateConversation, cleared).title == ""
    alice.call(conversations.DeleteConversation, pb.DeleteConversationRequest(conversation_id=made.id))
    gone = pb.GetConversationRequest(conversation_id=made.id)
    _, info = alice.refused(conversations.GetConversation, gone, grpc.StatusCode.NOT_FOUND, "not_found")
    assert info.metadata == {"resource": "conversation", "id": str(uuid.UUID(bytes=made.id))}, info


def entries_are_appended_and_listed():
    alice = someone("alice")
    agent = alice.through("agent-a")
    chat = start(alice)
    written = [append(alice, chat, said(text, user_id=alice.user)) for text in ("one", "two", "three")]
    odd = values(1, -1, 2**53, 0.5, "text", None, True, [], {}, {"deep": [{"er": [1]}]})
    stored = append(agent, chat, pb.CreateEntryRequest(channel=pb.MEMORY, content_type="LC4J", content=odd))
    assert list(stored.content) == list(odd) and stored.epoch == 1 and stored.channel == pb.MEMORY
    assert stored.user_id == alice.user and stored.conversation_id == chat and len(stored.id) == 16
    assert texts(read(alice, chat)) == ["one", "two", "three"]
    page = read(alice, chat, channel=pb.HISTORY, page=pb.PageRequest(page_size=2))
    assert texts(page) == ["one", "two"]
    page = read(alice, chat, page=pb.PageRequest(page_token=page.page_info.next_page_token, page_size=2))
    assert texts(page) == ["three"]
    page = read(alice, chat, tail=True, page=pb.PageRequest(page_size=1))
    assert texts(page) == ["three"] and page.page_info.previous_page_token
    page = read(alice, chat, before_page_token=page.page_info.previous_page_token)
    assert texts(page) == ["one", "two"]
    rendered = [json_format.MessageToDict(entry)["id"] for entry in written]
    page = read(alice, chat, page=pb.PageRequest(page_token=rendered[0]))
    assert texts(page) == ["two", "three"], rendered
    assert texts(read(alice, chat, before_page_token=rendered[2])) == ["one", "two"], rendered
    assert texts(read(alice, chat, up_to_entry_id=written[1].id)) == ["one", "two"]
    assert texts(read(alice, chat, forks="all")) == ["one", "two", "three"]
    assert len(read(agent, chat, channel=pb.MEMORY, epoch_filter="all").entries) == 1
    assert len(read(agent, chat, channel=pb.MEMORY, epoch_filter="7").entries) == 0
    assert len(read(alice.through("agent-b"), chat, channel=pb.MEMORY).entries) == 0
    once = alice.metadata + [("idempotency-key", "only once")]
    twice = [entries.AppendEntry(pb.AppendEntryRequest(conversation_id=chat, entry=said("four")), metadata=once) for _ in range(2)]
    assert twice[0] == twice[1] and texts(read(alice, chat))[-2:] == ["three", "four"]


def memory_is_synchronised():
    agent = someone("alice").through("agent-a")
    chat = new_id()
    nothing = sync(agent, chat, kept())
    assert nothing.no_op and not nothing.HasField("epoch") and not nothing.HasField("entry")
    first = sync(agent, chat, kept("a", {"n": 1}))
    assert (first.epoch, first.no_op, first.epoch_incremented) == (1, False, True)
    assert sync(agent, chat, kept("a", {"n": 1})).no_op
    longer = sync(agent, chat, kept("a", {"n": 1}, 2.5))
    assert plain(longer.entry.content) == [2.5] and longer.epoch == 1 and not longer.epoch_incremented
    other = sync(agent, chat, kept("x"))
    assert (other.epoch, other.epoch_incremented) == (2, True)
    assert plain(read(agent, chat, channel=pb.MEMORY).entries[0].content) == ["x"]


def forks_share_what_came_before():
    alice = someone("alice")
    root = start(alice, "Root")
    one, two, three = (append(alice, root, said(text)) for text in ("one", "two", "three"))
    asked = pb.ForkConversationRequest(conversation_id=root, entry_id=three.id, title="Fork")
    fork = alice.call(conversations.ForkConversation, asked)
    assert fork.forked_at_entry_id == two.id and fork.forked_at_conversation_id == root and fork.title == "Fork"
    append(alice, fork.id, said("another three"))
    assert texts(read(alice, fork.id)) == ["one", "two", "another three"]
    other = new_id()
    append(alice, other, said("another two", forked_at_conversation_id=root, forked_at_entry_id=two.id))
    assert texts(read(alice, other)) == ["one", "another two"]
    page = alice.call(conversations.ListForks, pb.ListForksRequest(conversation_id=fork.id, page=pb.PageRequest(page_size=2)))
    following = pb.PageRequest(page_token=page.page_info.next_page_token)
    rest = alice.call(conversations.ListForks, pb.ListForksRequest(conversation_id=fork.id, page=following))
    assert {one.conversation_id for one in [*page.forks, *rest.forks]} == {root, fork.id, other}


def conversations_are_shared():
    alice, bob, carol = (someone(role) for role in ("alice", "bob", "carol"))
    chat = start(alice)
    asked = pb.GetConversationRequest(conversation_id=chat)
    bob.refused(conversations.GetConversation, asked, grpc.StatusCode.PERMISSION_DENIED, "forbidden")
    for who, level in ((bob, pb.READER), (carol, pb.WRITER)):
        asked = pb.ShareConversationRequest(conversation_id=chat, user_id=who.user, access_level=level)
        member = alice.call(memberships.ShareConversation, asked)
        assert (member.user_id, member.access_level, member.conversation_id) == (who.user, level, chat)
    asked = pb.UpdateMembershipRequest(conversation_id=chat, member_user_id=bob.user, access_level=pb.MANAGER)
    assert alice.call(memberships.UpdateMembership, asked).access_level == pb.MANAGER
    page = bob.call(memberships.ListMemberships, pb.ListMembershipsRequest(conversation_id=chat, page=pb.PageRequest(page_size=2)))
    assert [one.user_id for one in page.memberships] == [alice.user, bob.user]
    following = pb.PageRequest(page_token=page.page_info.next_page_token)
    page = bob.call(memberships.ListMemberships, pb.ListMembershipsRequest(conversation_id=chat, page=following))
    assert [one.user_id for one in page.memberships] == [carol.user] and page.memberships[0].created_at
    bob.call(memberships.DeleteMembership, pb.DeleteMembershipRequest(conversation_id=chat, member_user_id=carol.user))
    carol.refused(conversations.GetConversation, pb.GetConversationRequest(conversation_id=chat), grpc.StatusCode.PERMISSION_DENIED, "forbidden")


def conversations_change_hands():
    alice, bob = someone("alice"), someone("bob")
    chats = [start(alice, f"Yours {number}") for number in range(2)]
    offers = []
    for chat in chats:
        share = pb.ShareConversationRequest(conversation_id=chat, user_id=bob.user, access_level=pb.READER)
        alice.call(memberships.ShareConversation, share)
        offer = pb.CreateOwnershipTransferRequest(conversation_id=chat, new_owner_user_id=bob.user)
        offers.append(alice.call(transfers.CreateOwnershipTransfer, offer))
    assert (offers[0].from_user_id, offers[0].to_user_id, offers[0].conversation_title) == (alice.user, bob.user, "Yours 0")
    _, info = alice.refused(transfers.CreateOwnershipTransfer, offer, grpc.StatusCode.ALREADY_EXISTS, "TRANSFER_ALREADY_PENDING")
    assert info.metadata == {"existingTransferId": str(uuid.UUID(bytes=offers[1].id))}, info
    page = pb.ListOwnershipTransfersRequest(role=pb.RECIPIENT, page=pb.PageRequest(page_size=1))
    first = bob.call(transfers.ListOwnershipTransfers, page)
    page.page.page_token = first.page_info.next_page_token
    second = bob.call(transfers.ListOwnershipTransfers, page)
    assert [one.id for one in [*first.transfers, *second.transfers]] == [offer.id for offer in offers]
    assert not bob.call(transfers.ListOwnershipTransfers, pb.ListOwnershipTransfersRequest(role=pb.SENDER)).transfers
    found = bob.call(transfers.GetOwnershipTransfer, pb.GetOwnershipTransferRequest(transfer_id=offers[0].id))
    assert found == offers[0]
    bob.call(transfers.AcceptOwnershipTransfer, pb.AcceptOwnershipTransferRequest(transfer_id=offers[0].id))
    bob.call(transfers.DeleteOwnershipTransfer, pb.DeleteOwnershipTransferRequest(transfer_id=offers[1].id))
    owned = bob.call(conversations.GetConversation, pb.GetConversationRequest(conversation_id=chats[0]))
    assert owned.access_level == pb.OWNER and owned.owner_user_id == bob.user


def entries_are_indexed_and_found():
    alice, admin = someone("alice"), Who("admin")
    word = f"walrus{uuid.uuid4().hex[:8]}"
    chat = start(alice, "Zoo")
    written = [append(alice, chat, said("nothing")) for _ in range(2)]
    long = f"{word} and oyster. " + "They walked along the briny beach, and there was nothing more to say. " * 12
    written.append(append(alice, chat, said("nothing", indexed_content=long)))
    cursor, unindexed = "", []
    while True:
        asked = pb.ListUnindexedEntriesRequest(limit=1, cursor=cursor) if cursor else pb.ListUnindexedEntriesRequest(limit=1)
        page = admin.call(search.ListUnindexedEntries, asked)
        unindexed += [one.entry.id for one in page.entries if one.conversation_id == chat]
        cursor = page.cursor
        if not page.HasField("cursor"):
            break
    assert unindexed == [entry.id for entry in written[:2]], unindexed
    items = [pb.IndexEntryRequest(conversation_id=chat, entry_id=entry.id, indexed_content=word) for entry in written[:2]]
    assert admin.call(search.IndexConversations, pb.IndexConversationsRequest(entries=items)).indexed == 2
    asked = pb.SearchEntriesRequest(query=word, limit=2, include_entry=True, search_type=["fulltext"], group_by_conversation=False)
    first = alice.call(search.SearchConversations, asked)
    asked.after = first.next_cursor
    second = alice.call(search.SearchConversations, asked)
    results = [*first.results, *second.results]
    assert {one.entry_id for one in results} == {entry.id for entry in written} and not second.next_cursor
    assert all(word in one.highlights and one.score > 0 and one.entry.id == one.entry_id for one in results)
    assert [one.entry_id for one in results if word in one.passage] == [written[2].id], "only one text is long"
    grouped = alice.call(search.SearchConversations, pb.SearchEntriesRequest(query=word, include_entry=False))
    assert [one.conversation_title for one in grouped.results] == ["Zoo"] and not grouped.results[0].HasField("entry")
    alice.refused(search.IndexConversations, pb.IndexConversationsRequest(entries=items), grpc.StatusCode.PERMISSION_DENIED, "forbidden")


class Recording:
    """A call that records, whose messages are sent one by one."""

    def __init__(self, who, chat):
        self.messages, self.turn, self.closed = [], threading.Condition(), False
        self.send(conversation_id=chat)
        self.call = recorder.Record.future(iter(self), metadata=who.metadata, timeout=SECONDS)

    def __iter__(self):
        while True:
            with self.turn:
                self.turn.wait_for(lambda: self.messages or self.closed)
                if not self.messages:
                    return
                message = self.messages.pop(0)
            yield message

    def send(self, **fields):
        with self.turn:
            self.messages.append(note(pb.RecordRequest(**fields)))
            self.turn.notify()

    def close(self):
        with self.turn:
            self.closed = True
            self.turn.notify()

    def answer(self):
        answer = note(self.call.result(SECONDS))
        self.close()
        return answer


def wait_until_recorded(who, chat):
    deadline = time.monotonic() + SECONDS
    while True:
        live = who.call(recorder.CheckRecordings, pb.CheckRecordingsRequest(conversation_ids=[new_id(), chat]))
        if list(live.conversation_ids) == [chat]:
            return
        assert time.monotonic() < deadline, "the recording never began"
        time.sleep(0.01)


def replay(who, chat):
    return recorder.Replay(pb.ReplayRequest(conversation_id=chat), metadata=who.metadata, timeout=SECONDS)


def responses_are_recorded_replayed_and_cancelled():
    alice = someone("alice")
    assert note(recorder.IsEnabled(empty_pb2.Empty(), metadata=alice.metadata, timeout=SECONDS)).enabled
    note(pb.ReplayRequest(conversation_id=b"x"))
    chat = start(alice)
    assert list(replay(alice, chat)) == [], "nothing is recorded yet"
    recording = Recording(alice, chat)
    recording.send(content="Once upon ")
    wait_until_recorded(alice, chat)
    try:
        list(recorder.Replay(pb.ReplayRequest(conversation_id=chat), metadata=alice.metadata, timeout=0.3))
        raise AssertionError("a replay goes on while it is recorded")
    except grpc.RpcError as error:
        assert error.code() == grpc.StatusCode.DEADLINE_EXCEEDED, error
    reader = replay(alice, chat)
    read = note(next(reader)).content
    recording.send(content="a time ", conversation_id=chat)
    recording.send(content="there was 🧵.", complete=True)
    assert recording.answer().status == pb.RECORD_STATUS_SUCCESS
    read += "".join(message.content for message in reader)
    assert read == "Once upon a time there was 🧵.", read
    again = "".join(message.content for message in replay(alice, chat))
    assert again == read, "it can be replayed for a while"

    chat = start(alice)
    recording = Recording(alice, chat)
    wait_until_recorded(alice, chat)
    cancelled = alice.call(recorder.Cancel, pb.CancelRecordRequest(conversation_id=chat))
    assert cancelled.accepted and recording.answer().status == pb.RECORD_STATUS_CANCELLED
    assert alice.call(recorder.Cancel, pb.CancelRecordRequest(conversation_id=chat)).accepted, "once more does no harm"

    recording = Recording(alice, start(alice))
    for _ in range(3):
        recording.send(content="x" * (512 << 10))
    answer = recording.answer()
    assert answer.status == pb.RECORD_STATUS_ERROR and answer.error_message, answer

    bob = someone("bob")
    bob.refused(recorder.Replay, pb.ReplayRequest(conversation_id=chat), grpc.StatusCode.PERMISSION_DENIED, "forbidden")
    bob.refused(recorder.Cancel, pb.CancelRecordRequest(conversation_id=new_id()), grpc.StatusCode.NOT_FOUND, "not_found")


def files_are_uploaded_and_downloaded():
    alice = someone("alice")
    content = bytes(range(256)) * 1000
    described = pb.UploadMetadata(filename="all bytes.bin", content_type="application/x-bytes", expires_in="PT2H")

    def upload(metadata, content):
        yield note(pb.UploadAttachmentRequest(metadata=metadata))
        for at in range(0, len(content), 50_000):
            yield note(pb.UploadAttachmentRequest(chunk=content[at : at + 50_000]))

    stored = note(attachments.UploadAttachment(upload(described, content), metadata=alice.metadata, timeout=SECONDS))
    assert stored.size == len(content) and stored.sha256 == hashlib.sha256(content).hexdigest()
    assert (stored.filename, stored.content_type) == ("all bytes.bin", "application/x-bytes") and stored.expires_at
    assert stored.href == f"/v1/attachments/{stored.id}" and stored.status == "ready"
    info = alice.call(attachments.GetAttachment, pb.GetAttachmentRequest(id=stored.id))
    assert info.sha256 == stored.sha256 and info.created_at
    asked = note(pb.DownloadAttachmentRequest(id=stored.id))
    first, *rest = [note(message) for message in attachments.DownloadAttachment(asked, metadata=alice.metadata, timeout=SECONDS)]
    assert first.metadata == info and b"".join(message.chunk for message in rest) == content
    assert all(len(message.chunk) <= 64 << 10 for message in rest)
    for method, request in ((attachments.GetAttachment, pb.GetAttachmentRequest), (attachments.DownloadAttachment, pb.DownloadAttachmentRequest)):
        someone("bob").refused(method, request(id=stored.id), grpc.StatusCode.PERMISSION_DENIED, "forbidden")
        alice.refused(method, request(id=str(uuid.uuid4())), grpc.StatusCode.NOT_FOUND, "not_found")
    alice.refused(attachments.UploadAttachment, upload(described, bytes(11 << 20)), grpc.StatusCode.RESOURCE_EXHAUSTED, "file_too_large")

    chat = start(alice)
    linked = values({"role": "USER", "attachments": [{"attachmentId": stored.id}]})
    entry = append(alice, chat, pb.CreateEntryRequest(channel=pb.HISTORY, content_type="history", content=linked))
    assert plain(entry.content)[0]["attachments"][0]["href"] == stored.href, plain(entry.content)
    assert not alice.call(attachments.GetAttachment, pb.GetAttachmentRequest(id=stored.id)).expires_at, "it stays"


def errors_say_what_is_wrong():
    alice = someone("alice")
    error, _ = alice.refused(conversations.CreateConversation, pb.CreateConversationRequest(title="x" * 501), grpc.StatusCode.INVALID_ARGUMENT, "validation_error")
    wrong = error_details_pb2.BadRequest()
    assert any(detail.Unpack(wrong) for detail in rpc_status.from_call(error).details)
    assert [violation.field for violation in wrong.field_violations] == ["title"], wrong
    too_many = pb.ListConversationsRequest(page=pb.PageRequest(page_size=201))
    alice.refused(conversations.ListConversations, too_many, grpc.StatusCode.INVALID_ARGUMENT, "validation_error")
    no_id = pb.GetConversationRequest(conversation_id=b"short")
    alice.refused(conversations.GetConversation, no_id, grpc.StatusCode.INVALID_ARGUMENT, "validation_error")
    nobody = Who("nobody")
    nobody.metadata = []
    nobody.refused(conversations.ListConversations, pb.ListConversationsRequest(), grpc.StatusCode.UNAUTHENTICATED, "unauthorized")


def every_field_was_used():
    fields = {(message.name, field.name) for message in pb.DESCRIPTOR.message_types_by_name.values() for field in message.fields}
    unused = fields - seen - NEVER
    assert not unused, f"never sent nor received: {sorted(unused)}"


def main():
    for scenario in (
        the_server_is_there,
        conversations_are_made_read_listed_renamed_and_deleted,
        entries_are_appended_and_listed,
        memory_is_synchronised,
        forks_share_what_came_before,
        conversations_are_shared,
        conversations_change_hands,
        entries_are_indexed_and_found,
        responses_are_recorded_replayed_and_cancelled,
        files_are_uploaded_and_downloaded,
        errors_say_what_is_wrong,
        every_field_was_used,
    ):
        try:
            scenario()
        except BaseException:
            print(f"scenarios: {MODULE}: {scenario.__name__} failed", file=sys.stderr)
            raise
        print(f"scenarios: {MODULE}: {scenario.__name__.replace('_', ' ')}")
    channel.close()


main()
