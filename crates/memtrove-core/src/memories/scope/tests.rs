use super::*;
use proptest::prelude::*;
use std::collections::HashMap;

/// Texts that are easily taken for each other: separators, cases, normal forms, long common beginnings, lengths that look
/// like part of the text.
fn identifier() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        Just("a".to_owned()),
        Just("A".to_owned()),
        Just("b".to_owned()),
        Just("_".to_owned()),
        Just(":".to_owned()),
        Just("/".to_owned()),
        Just("|".to_owned()),
        Just("\u{e9}".to_owned()),
        Just("e\u{301}".to_owned()),
        Just("\u{1}".to_owned()),
        Just("x".repeat(63)),
        Just("x".repeat(120)),
        any::<char>().prop_map(String::from),
    ];
    prop::collection::vec(part, 1..4).prop_map(|parts| parts.concat())
}

/// A scope as its parts, and as the key that stands for it.
fn scope() -> impl Strategy<Value = (String, Layer, Vec<String>)> {
    (identifier(), prop::sample::select(&Layer::ALL[..]), identifier(), identifier()).prop_map(
        |(tenant, layer, first, second)| {
            let values = [first, second].into_iter().take(layer.required().len()).collect();
            (tenant, layer, values)
        },
    )
}

fn key((tenant, layer, values): &(String, Layer, Vec<String>)) -> ScopeKey {
    ScopeKey::listed(Tenant::listed(tenant.clone()), *layer, values.clone()).unwrap()
}

proptest! {
    #[test]
    fn no_two_scopes_share_a_hash(scopes in prop::collection::vec(scope(), 2..40)) {
        let mut seen = HashMap::new();
        for parts in &scopes {
            let earlier = seen.insert(key(parts).hash(), parts);
            prop_assert!(earlier.is_none_or(|earlier| earlier == parts), "{parts:?}");
        }
        for (one, other) in scopes.iter().zip(&scopes[1..]) {
            prop_assert_eq!(key(one) == key(other), one == other);
        }
    }

    #[test]
    fn moving_a_separator_between_two_identifiers_changes_the_scope(a in identifier(), b in identifier(), c in identifier()) {
        for separator in ["", "_", ":", "/", "|"] {
            let agent = |agent: String, user: String| key(&("acme".to_owned(), Layer::Agent, vec![agent, user]));
            let left = agent(format!("{a}{separator}{b}"), c.clone());
            let right = agent(a.clone(), format!("{b}{separator}{c}"));
            prop_assert_ne!(left.hash(), right.hash());
        }
    }

    #[test]
    fn identifiers_that_a_layer_does_not_need_change_nothing(texts in prop::collection::vec("[a-z]{1,3}", 7), layer in prop::sample::select(&Layer::ALL[..])) {
        let tenant = Tenant::listed("acme".to_owned());
        let (mut all, mut needed) = (Identifiers::default(), Identifiers::default());
        for (identifier, text) in Identifier::ALL.into_iter().zip(&texts) {
            all.set(identifier, "x", text).unwrap();
            if layer.required().contains(&identifier) {
                needed.set(identifier, "x", text).unwrap();
            }
        }
        let scope = resolve_one(&tenant, &all, layer).unwrap();
        prop_assert_eq!(&scope, &resolve_one(&tenant, &needed, layer).unwrap());
        prop_assert_eq!(&resolve(&tenant, &all, &[layer]).unwrap()[0], &scope);
        prop_assert_eq!(scope.identifiers(), needed);
        prop_assert_eq!(ScopeKey::listed(tenant, layer, scope.values().to_vec()), Some(scope));
    }
}

#[test]
fn a_scope_has_exactly_the_identifiers_of_its_layer() {
    let tenant = || Tenant::listed("acme".to_owned());
    for layer in Layer::ALL {
        for count in 0..4 {
            let scope = ScopeKey::listed(tenant(), layer, vec!["x".to_owned(); count]);
            assert_eq!(scope.is_some(), count == layer.required().len());
        }
    }
    assert!(resolve_one(&tenant(), &Identifiers::default(), Layer::User).is_err());
}
