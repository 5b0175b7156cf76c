use super::*;
use crate::memories::requests::{code, refusal};
use crate::memories::testing::memory;

fn at(version: i64) -> Memory {
    Memory { version, ..memory(1, "x") }
}

#[test]
fn if_match_holds_for_a_star_and_for_the_strong_tag_of_the_version() {
    let rows = [
        (None, true),
        (Some("*"), true),
        (Some(" * "), true),
        (Some("\"v3\""), true),
        (Some("\"v2\", \"v3\""), true),
        (Some("\"v2\""), false),
        (Some("W/\"v3\""), false),
        (Some("v3"), false),
        (Some("\"v03\""), false),
        (Some("\"V3\""), false),
        (Some("3"), false),
        (Some(""), false),
    ];
    for (header, holds) in rows {
        assert_eq!(Precondition::if_match(header).check(&at(3)).is_ok(), holds, "{header:?}");
    }
}

#[test]
fn a_stale_version_is_told_the_latest() {
    let stale = Precondition::if_match(Some("\"v2\"")).check(&at(3));
    let refusal = refusal(stale);
    assert_eq!(refusal.code, Code::EtagMismatch);
    assert_eq!(refusal.details["latest_etag"], "\"v3\"");
    assert_eq!(refusal.details["latestVersion"], 3);
}

#[test]
fn header_and_version_must_agree() {
    let both = |header, version| Precondition::if_match(header).and_version(version);
    assert!(both(None, Some(3)).unwrap().check(&at(3)).is_ok());
    assert!(both(None, Some(2)).unwrap().check(&at(3)).is_err());
    assert!(both(Some("*"), Some(3)).unwrap().check(&at(3)).is_ok());
    assert!(both(Some("*"), Some(2)).unwrap().check(&at(3)).is_err());
    assert!(both(Some("\"v3\""), Some(3)).unwrap().check(&at(3)).is_ok());
    assert_eq!(code(both(Some("\"v3\""), Some(2))), "INVALID_REQUEST version");
    assert!(!both(None, None).unwrap().is_conditional() && !both(Some("*"), None).unwrap().is_conditional());
    assert!(both(None, Some(1)).unwrap().is_conditional());
}

#[test]
fn a_caller_that_has_the_version_is_known_to() {
    let rows = [
        (None, false),
        (Some("*"), true),
        (Some("\"v3\""), true),
        (Some("W/\"v3\""), true),
        (Some("\"v1\", W/\"v3\""), true),
        (Some("\"v2\""), false),
        (Some("v3"), false),
        (Some(""), false),
    ];
    for (header, known) in rows {
        assert_eq!(is_known(header, &at(3)), known, "{header:?}");
    }
}
