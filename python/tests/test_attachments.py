from __future__ import annotations

import io
import uuid

import pytest

from memtrove import ApiError, InvalidInputError, MemtroveClient


def test_files_are_uploaded_read_linked_and_deleted(alice: MemtroveClient) -> None:
    uploaded = alice.attachments.upload(
        b"Tram 28\n", filename="plän.txt", content_type="text/plain", expires_in="PT10M"
    )
    assert (uploaded.filename, uploaded.size, uploaded.status) == ("plän.txt", 8, "ready")

    whole = alice.attachments.download(uploaded.id)
    assert whole is not None and whole.data == b"Tram 28\n" and not whole.partial and whole.etag
    assert alice.attachments.download(uploaded.id, if_none_match=whole.etag) is None
    part = alice.attachments.download(uploaded.id, start=5, end=7)
    assert part is not None and part.data == b"28" and part.partial
    end = alice.attachments.download(uploaded.id, start=-3)
    assert end is not None and end.data == b"28\n"
    assert b"".join(alice.attachments.stream(uploaded.id)) == b"Tram 28\n"

    link = alice.attachments.download_url(uploaded.id)
    assert link.expires_in > 0
    assert alice.attachments.download_signed(link.url).data == b"Tram 28\n"
    with pytest.raises(InvalidInputError):
        alice.attachments.download_signed("http://127.0.0.1/elsewhere")

    content = [{"role": "USER", "text": "the plan", "attachments": [{"attachmentId": uploaded.id}]}]
    entry = alice.entries.append(str(uuid.uuid4()), content)
    assert entry.content[0]["attachments"][0]["href"].endswith(uploaded.id)
    with pytest.raises(ApiError) as linked:
        alice.attachments.delete(uploaded.id)
    assert linked.value.code == "attachment_linked"


def test_an_open_file_is_uploaded_as_it_is_read(alice: MemtroveClient) -> None:
    data = bytes(range(256)) * 4096
    uploaded = alice.attachments.upload(io.BytesIO(data), filename="data.bin")
    assert uploaded.size == len(data)
    assert b"".join(alice.attachments.stream(uploaded.id)) == data
    alice.attachments.delete(uploaded.id)
    with pytest.raises(ApiError) as gone:
        alice.attachments.download(uploaded.id)
    assert gone.value.is_not_found


def test_the_server_fetches_nothing_from_its_own_network(alice: MemtroveClient, url: str) -> None:
    with pytest.raises(ApiError) as refused:
        alice.attachments.fetch(f"{url}/v1/health", name="health.json")
    assert refused.value.status in (400, 422)


def test_admins_see_the_files_of_everybody(alice: MemtroveClient, admin: MemtroveClient, user: str) -> None:
    uploaded = alice.attachments.upload(b"hello", filename="hello.txt", content_type="text/plain")
    page = admin.admin.list_attachments(user_id=user, status="unlinked", justification="a test")
    assert [one.id for one in page.data] == [uploaded.id]
    assert admin.admin.get_attachment(uploaded.id).ref_count == 1
    content = admin.admin.attachment_content(uploaded.id, justification="a test")
    assert content is not None and content.data == b"hello"
    assert admin.admin.attachment_download_url(uploaded.id).url
    admin.admin.delete_attachment(uploaded.id, justification="a test")
    with pytest.raises(ApiError):
        alice.attachments.download(uploaded.id)
