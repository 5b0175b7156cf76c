use super::*;
use crate::{Code, Details};
use uuid::Uuid;

const NOW: Timestamp = Timestamp::from_micros(1_000_000);

fn record() -> Attachment {
    Attachment {
        id: AttachmentId(Uuid::from_u128(1)),
        tenant: Tenant::listed("acme".into()),
        storage_key: "key".into(),
        filename: None,
        content_type: UNKNOWN_CONTENT_TYPE.into(),
        size: Some(1),
        sha256: Some("00".into()),
        user_id: Some("alice".into()),
        entry_id: None,
        group_id: None,
        expires_at: Some(NOW.saturating_add_micros(1)),
        created_at: NOW,
        deleted_at: None,
        status: Status::Ready,
        source_url: None,
    }
}

fn tree(number: u128) -> GroupId {
    GroupId(Uuid::from_u128(number))
}

fn linked(number: u128) -> Attachment {
    let entry_id = Some(EntryId(Uuid::from_u128(9)));
    Attachment { entry_id, group_id: Some(tree(number)), expires_at: None, ..record() }
}

#[test]
fn an_attachment_is_linked_shared_or_refused() {
    let (alice, bob) = (UserId::from("alice"), UserId::from("bob"));
    let outcome = |record: Attachment, user: &UserId| match record.linking(user, tree(1), NOW) {
        Ok(Linking::Take) => "taken",
        Ok(Linking::Share) => "shared",
        Err(Error { details: Details::Resource(Resource::Attachment, _), .. }) => "not found",
        Err(Error { code: Code::Forbidden, .. }) => "forbidden",
        Err(Error { code: Code::UploadInProgress, .. }) => "in progress",
        Err(other) => panic!("{other:?}"),
    };
    assert_eq!(outcome(record(), &alice), "taken");
    assert_eq!(outcome(record(), &bob), "forbidden");
    assert_eq!(outcome(linked(1), &bob), "shared", "whoever may append to the tree may share what is in it");
    assert_eq!(outcome(linked(2), &alice), "forbidden", "of another tree, whoever brought it");
    assert_eq!(outcome(Attachment { expires_at: Some(NOW), ..record() }, &alice), "not found");
    assert_eq!(outcome(Attachment { deleted_at: Some(NOW), ..record() }, &alice), "not found");
    assert_eq!(outcome(Attachment { deleted_at: Some(NOW), ..linked(1) }, &alice), "not found");
    assert_eq!(outcome(Attachment { status: Status::Uploading, ..record() }, &alice), "in progress");
    assert_eq!(outcome(Attachment { status: Status::Downloading, ..record() }, &alice), "taken");
    assert_eq!(outcome(Attachment { user_id: None, ..record() }, &alice), "forbidden");
}

#[test]
fn only_who_brought_it_deletes_it_and_only_until_an_entry_refers_to_it() {
    let (alice, bob) = (UserId::from("alice"), UserId::from("bob"));
    assert_eq!(record().check_deletion(&alice), Ok(()));
    assert!(matches!(record().check_deletion(&bob), Err(Error { code: Code::Forbidden, .. })));
    assert_eq!(linked(1).check_deletion(&alice), Err(Error::ATTACHMENT_LINKED));
    assert!(matches!(linked(1).check_deletion(&bob), Err(Error { code: Code::Forbidden, .. })));
}

#[test]
fn what_belongs_to_an_entry_does_not_expire() {
    let late = NOW.saturating_add_micros(i64::MAX);
    assert!(record().is_expired(late));
    assert!(!Attachment { expires_at: Some(NOW), ..linked(1) }.is_expired(late));
}

#[test]
fn names_are_kept_without_their_folders() {
    for (given, kept) in [
        (None, None),
        (Some(""), None),
        (Some("  "), None),
        (Some("a/.."), None),
        (Some("cat.png"), Some("cat.png")),
        (Some("../../etc/passwd"), Some("passwd")),
        (Some("C:\\photos\\cat.png"), Some("cat.png")),
        (Some("ä 猫.png"), Some("ä 猫.png")),
    ] {
        assert_eq!(filename(given).unwrap().as_deref(), kept, "{given:?}");
    }
    assert_eq!(filename(Some(&"ä".repeat(255))).unwrap(), Some("ä".repeat(255)));
    for wrong in ["ä".repeat(256), "a\0b".into(), "a\r\nSet-Cookie: x".into()] {
        assert!(matches!(filename(Some(&wrong)), Err(Error { code: Code::Invalid, .. })), "{wrong:?}");
    }
}

#[test]
fn content_types_must_look_like_one() {
    assert_eq!(content_type(None).unwrap(), UNKNOWN_CONTENT_TYPE);
    assert_eq!(content_type(Some(" ")).unwrap(), UNKNOWN_CONTENT_TYPE);
    for right in ["image/png", "text/plain; charset=utf-8", "application/vnd.a+json"] {
        assert_eq!(content_type(Some(right)).unwrap(), right);
    }
    assert!(content_type(Some(&format!("text/{}", "x".repeat(122)))).is_ok());
    let long = format!("text/{}", "x".repeat(123));
    for wrong in [
        "png",
        "image/",
        "/png",
        "image/png\r\nX: y",
        "image/p\0ng",
        "text/plain; ä",
        "image/png;a=b,text/html",
        &long,
    ] {
        assert!(matches!(content_type(Some(wrong)), Err(Error { code: Code::Invalid, .. })), "{wrong:?}");
    }
}

#[test]
fn sources_are_on_the_web() {
    assert_eq!(source_url(Some("HTTPS://example.org/a?b")).unwrap(), "HTTPS://example.org/a?b");
    for wrong in [None, Some(""), Some("ftp://example.org"), Some("file:///etc/passwd"), Some("http://a b")] {
        assert!(matches!(source_url(wrong), Err(Error { code: Code::Invalid, .. })), "{wrong:?}");
    }
}

#[test]
fn lifetimes_have_a_default_and_an_end() {
    const HOUR: i64 = 3_600_000_000;
    let of = |given| lifetime(given, HOUR, 24 * HOUR);
    assert_eq!(of(None), Ok(HOUR));
    assert_eq!(of(Some("")), Ok(HOUR));
    assert_eq!(of(Some("PT24H")), Ok(24 * HOUR));
    for wrong in ["PT24H1S", "P2D", "PT0S", "-PT1H", "1h"] {
        assert!(matches!(of(Some(wrong)), Err(Error { code: Code::BadRequest, .. })), "{wrong}");
    }
}
