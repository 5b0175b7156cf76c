use super::*;
use crate::memories::requests::refusal;
use serde_json::json;

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

#[test]
fn a_kind_stands_in_the_layers_of_the_table_only() {
    for layer in Layer::ALL {
        for kind in Kind::ALL {
            assert_eq!(
                kind.check_layer(layer).is_ok(),
                kind.layers().contains(&layer),
                "{kind:?} in {layer:?}"
            );
        }
    }
    let refusal = refusal(Kind::UserPersonal.check_layer(Layer::Team));
    assert_eq!(
        (refusal.code, Value::Object(refusal.details.into_members())),
        (Code::InvalidKind, json!({"layer": "team", "kind": "user_personal", "allowedLayers": ["user"]}))
    );
}
