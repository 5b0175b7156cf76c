use super::*;

#[test]
fn words_and_their_aliases_are_read_in_any_letter_case() {
    for kind in Kind::ALL {
        assert_eq!(Kind::parse(kind.as_str()), Some(kind));
        assert_eq!(Kind::parse(&kind.as_str().to_uppercase()), Some(kind));
        assert_eq!(Kind::from_code(kind.code()), Some(kind));
    }
    for alias in ["userPersonal", "user-personal", "personal", "Personal"] {
        assert_eq!(Kind::parse(alias), Some(Kind::UserPersonal));
    }
    assert_eq!((Kind::parse("long_term"), Kind::parse(""), Kind::from_code(7)), (None, None, None));
}

#[test]
fn the_kind_of_a_layer_may_stand_in_it() {
    for layer in Layer::ALL {
        assert!(Kind::default_in(layer).layers().contains(&layer), "{layer:?}");
    }
}
