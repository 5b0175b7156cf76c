use super::*;
use crate::memories::testing::{members, memory, scope};
use crate::memories::{Embedding, Layer, Policy};
use proptest::prelude::*;
use serde_json::json;
use uuid::Uuid;

fn with(metadata: Value) -> Memory {
    Memory {
        metadata: members(metadata),
        kind: Kind::Session,
        scope: scope(Layer::Session),
        ..memory(1, "text")
    }
}

#[test]
fn importance_decides_else_use_and_relevance_do() {
    for (metadata, uses, relevance, expected) in [
        (json!({"importance": 0.4}), 100, 1.0, 0.4),
        (json!({}), 0, 1.0, 0.3),
        (json!({}), 5, 1.0, 0.65),
        (json!({}), 10, 1.0, 1.0),
        (json!({}), 1000, 0.0, 0.7),
    ] {
        let entry = Memory { access_count: uses, ..with(metadata) };
        let found = score(&entry, relevance);
        assert!((found - expected).abs() < 1e-12, "{found}, not {expected}");
    }
}

#[test]
fn what_reaches_the_threshold_is_promoted_once() {
    let decision = |entry: &Memory| decide(entry, 1.0, 0.8);
    let important = with(json!({"importance": 0.8}));
    assert_eq!(decision(&important), PromotionDecision::Promote { score: 0.8 });
    assert_eq!(decision(&with(json!({"importance": 0.79}))), PromotionDecision::Stay);
    for key in ["sensitive", "private"] {
        let entry = with(json!({"importance": 1, (key): true}));
        assert_eq!(decision(&entry), PromotionDecision::Blocked(PromotionBlock::Sensitive));
        assert_eq!(
            decision(&with(json!({(key): true}))),
            PromotionDecision::Blocked(PromotionBlock::Sensitive)
        );
        assert_eq!(
            decision(&with(json!({"importance": 1, (key): false}))),
            PromotionDecision::Promote { score: 1.0 }
        );
    }
    let promoted_to = Some(MemoryId(Uuid::from_u128(9)));
    let lineage = Lineage { promoted_to, ..Lineage::default() };
    assert_eq!(decision(&Memory { lineage, ..important.clone() }), PromotionDecision::Stay);
    assert_eq!(decision(&Memory { kind: Kind::Working, ..important }), PromotionDecision::Stay);
}

#[test]
fn what_expires_outlives_a_session_that_nobody_ended_if_its_end_would_promote_it() {
    let rules = Rules::default();
    let with = |metadata| Memory { ttl_seconds: Some(3600), ..with(metadata) };
    let important = Memory { version: 3, ..with(json!({"importance": 0.8})) };
    let is_kept = |entry: &Memory| outlives_session(entry, 1.0, &rules);
    assert!(is_kept(&important));
    assert!(is_kept(&Memory { kind: Kind::Episodic, ..important.clone() }));
    let mut off = Rules::default();
    off.session.promote_important = false;
    assert!(!outlives_session(&important, 1.0, &off));
    let passed_over = |version| {
        let lineage = Lineage { passed_over: Some(version), ..Lineage::default() };
        Memory { lineage, ..important.clone() }
    };
    assert!(!is_kept(&passed_over(3)));
    assert!(is_kept(&passed_over(2)), "it was changed since");
    let last_day = json!({"importance": 1, "mem0": {"expiration_date": "2026-02-01"}});
    let dated = Memory { expires_at: Some(Timestamp::from_micros(1)), ..with(last_day) };
    assert!(!is_kept(&dated));
    let hidden = Author { user: Some("somebody else".to_owned()), client: None };
    let private = AccessPolicy::new(Policy::Private);
    for (entry, why) in [
        (with(json!({"importance": 0.79})), "it matters too little"),
        (with(json!({"importance": 1, "sensitive": true})), "it is sensitive"),
        (with(json!({"importance": 1, "private": true})), "it is private"),
        (Memory { kind: Kind::Working, ..important.clone() }, "it is scratch"),
        (Memory { ttl_seconds: Some(300), ..important.clone() }, "it was to live for five minutes"),
        (Memory { ttl_seconds: Some(7200), ..important.clone() }, "it was to live for two hours"),
        (Memory { ttl_seconds: None, ..important.clone() }, "it does not expire"),
        (Memory { scope: scope(Layer::User), ..important.clone() }, "it is in no session"),
        (Memory { created_by: hidden, policy: private, ..important.clone() }, "the user may not see it"),
    ] {
        assert!(!is_kept(&entry), "{why}");
    }
}

#[test]
fn a_copy_for_the_same_person_is_the_entry_with_the_life_of_its_new_place() {
    let now = Timestamp::from_micros(77);
    let source = Memory {
        content: "Call me at +49 30 1234567".to_owned(),
        version: 5,
        occurred_at: Some(Timestamp::from_micros(44)),
        expires_at: Some(Timestamp::from_micros(100)),
        ttl_seconds: Some(3600),
        access_count: 3,
        state: State::Decayed,
        ..with(json!({"importance": 0.9, "tags": ["a"], "author": "alice@example.com"}))
    };
    let id = MemoryId(Uuid::from_u128(2));
    let author = Author { user: Some("x".to_owned()), client: None };
    let copied = copy(&source, &scope(Layer::User), id, author, now);
    let expected = Memory {
        content: source.content.clone(),
        metadata: source.metadata.clone(),
        created_at: now,
        updated_at: now,
        occurred_at: source.occurred_at,
        anchor: now,
        lineage: Lineage { promoted_from: Some(source.id), ..Lineage::default() },
        ..memory(2, "")
    };
    assert_eq!(copied, expected);
}

#[test]
fn a_copy_for_others_tells_nobodys_address() {
    let source = Memory {
        content: "Ask alice@example.com".to_owned(),
        metadata: members(json!({
            "author": "alice@example.com", "tags": ["bob@example.com", "ok"], "contact": {"phone": ["+1 555 123 4567"]},
            "source": {"type": "import", "reference": "carol@example.com"}, "importance": 0.5
        })),
        ..memory(1, "")
    };
    let to = |source: &Memory, layer| {
        copy(
            source,
            &scope(layer),
            MemoryId(Uuid::from_u128(2)),
            Author::default(),
            Timestamp::from_micros(1),
        )
    };
    for layer in [Layer::Project, Layer::Team, Layer::Org, Layer::Company] {
        let copied = to(&source, layer);
        assert_eq!(copied.content, "Ask [REDACTED_EMAIL]");
        assert_eq!((copied.kind, copied.policy.clone()), (Kind::Semantic, AccessPolicy::default_in(layer)));
        assert_eq!((copied.embedding, copied.state), (None, State::Created), "to be embedded again");
        assert_eq!(
            Value::Object(copied.metadata),
            json!({
                "author": "[REDACTED_EMAIL]", "tags": ["[REDACTED_EMAIL]", "ok"],
                "contact": {"phone": ["[REDACTED_PHONE]"]},
                "source": {"type": "import", "reference": "carol@example.com"}, "importance": 0.5
            })
        );
    }
    assert_eq!(to(&source, Layer::Agent).content, source.content);
    let harmless = to(&memory(1, "nothing personal"), Layer::Project);
    let embedding: Option<Embedding> = memory(1, "").embedding;
    assert_eq!((harmless.embedding, harmless.state), (embedding, State::Active));
}

#[test]
fn addresses_are_found_where_they_are() {
    for (text, expected) in [
        ("mail a.b+c@sub.example.co.uk.", "mail [REDACTED_EMAIL]."),
        ("<mailto:bob@example.com>, 'eve@example.com'", "<mailto:[REDACTED_EMAIL]>, '[REDACTED_EMAIL]'"),
        ("bob@example.com,eve@example.org", "[REDACTED_EMAIL],[REDACTED_EMAIL]"),
        ("…müller@bücher.de!", "…[REDACTED_EMAIL]!"),
        ("请联系bob@example.com谢谢", "请联系[REDACTED_EMAIL]谢谢"),
        ("a@b.co@c.de", "[REDACTED_EMAIL]@c.de"),
        ("x@xn--bcher-kva.xn--p1ai", "[REDACTED_EMAIL]"),
        ("5551234567@txt.example.net", "[REDACTED_EMAIL]"),
    ] {
        assert_eq!(redact(text), expected);
    }
    for text in ["@alice on it", "react@18.2.0", "root@localhost", "a @ b.com", "+@b.com", "x@-.com", "@@@"] {
        assert_eq!(redact(text), text);
    }
}

#[test]
fn phone_numbers_are_found_in_every_spelling() {
    for (text, expected) in [
        ("call 5551234 now", "call [REDACTED_PHONE] now"),
        ("+49 (0)30 1234-567.", "[REDACTED_PHONE]."),
        ("(030) 123 45 67", "[REDACTED_PHONE]"),
        ("(tel. 030 1234567)", "(tel. [REDACTED_PHONE])"),
        ("+1-555-123-4567/+1.555.123.4568", "[REDACTED_PHONE]/[REDACTED_PHONE]"),
        ("0301234567 0307654321", "[REDACTED_PHONE] [REDACTED_PHONE]"),
        ("tel:5551234567,ok", "tel:[REDACTED_PHONE],ok"),
        ("电话13812345678。", "电话[REDACTED_PHONE]。"),
        ("٠٥٠١٢٣٤٥٦٧", "[REDACTED_PHONE]"),
        ("555\u{a0}123\u{2011}4567", "[REDACTED_PHONE]"),
        ("since 2026-01-31 call 5551234", "since 2026-01-31 call [REDACTED_PHONE]"),
    ] {
        assert_eq!(redact(text), expected);
    }
    for text in [
        "123 456",
        "in 2026 or 2027",
        "2026-01-31 and 2026-02-01T10:00:00Z",
        "1234567890123456",
        "ABC-1234567",
        "550e8400-e29b-41d4-a716-446655440000",
        "commit 1234567a",
        "user_1234567",
        "line 1\n2\n3\n4\n5\n6\n7",
        "1, 2, 3, 4, 5, 6, 7, 8",
    ] {
        assert_eq!(redact(text), text);
    }
}

#[test]
fn long_texts_take_no_longer_than_they_are_long() {
    for part in ["1-", "1 ", "a@", "a.@b.c", "12345678", "((((", "+1", "2026-01-31 "] {
        let text = part.repeat(100_000 / part.len());
        redact(&text);
    }
}

proptest! {
    #[test]
    fn nothing_is_left_to_redact(text in "[ab1-9@.+() \\-—é東]{0,60}") {
        let once = redact(&text).into_owned();
        prop_assert_eq!(redact(&once), once.as_str());
    }

    #[test]
    fn every_number_of_a_phones_length_goes(before in "[a-z ]{0,5} ", groups in prop::collection::vec("[0-9]{2,4}", 2..5), separator in "[ .-]") {
        let digits: usize = groups.iter().map(String::len).sum();
        let text = format!("{before}{}", groups.join(&separator));
        prop_assume!((7..=15).contains(&digits) && !(groups.len() == 3 && separator == "-"));
        prop_assert_eq!(redact(&text), format!("{before}[REDACTED_PHONE]"));
    }

    #[test]
    fn every_address_goes(name in "[a-z][a-z0-9]{0,8}", domain in "[a-z]{1,8}\\.[a-z]{2,4}", around in "[ ,;<>]") {
        let text = format!("{around}{name}@{domain}{around}");
        prop_assert_eq!(redact(&text), format!("{around}[REDACTED_EMAIL]{around}"));
    }

    #[test]
    fn any_text_is_left_as_it_is_but_for_what_is_redacted(text in "\\PC{0,80}") {
        let redacted = redact(&text);
        prop_assert!(redacted == text.as_str() || redacted.contains("[REDACTED_"));
    }
}
