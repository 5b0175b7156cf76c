use super::*;

#[test]
fn only_working_and_session_entries_expire_unless_told_to() {
    let rules = Rules { session_ttl_seconds: 60, ..Rules::default() };
    for kind in Kind::ALL {
        let expected = match kind {
            Kind::Working => Some(3_600),
            Kind::Session => Some(60),
            _ => None,
        };
        assert_eq!(rules.default_ttl(kind), expected, "{kind:?}");
        assert_eq!(rules.default_ttl(kind).is_some(), kind.expires());
    }
}
