use super::*;
use crate::memories::requests::{code, refusal};
use crate::memories::testing::identifiers as named;
use serde_json::json;

fn identifiers(given: &[Identifier]) -> Identifiers {
    let mut identifiers = Identifiers::default();
    for identifier in given {
        identifiers.set(*identifier, "x", "x").unwrap();
    }
    identifiers
}

/// The matrix once more, as the contract draws it, so that neither copy can change alone.
fn matrix(given: &[Identifier]) -> Vec<Layer> {
    let has = |identifier| given.contains(&identifier);
    let rows = [
        (Layer::Agent, has(Identifier::Agent) && has(Identifier::User)),
        (Layer::User, has(Identifier::User)),
        (Layer::Session, has(Identifier::User) && has(Identifier::Session)),
        (Layer::Project, has(Identifier::Project)),
        (Layer::Team, has(Identifier::Team)),
        (Layer::Org, has(Identifier::Org)),
        (Layer::Company, has(Identifier::Company)),
    ];
    rows.into_iter().filter_map(|(layer, open)| open.then_some(layer)).collect()
}

#[test]
fn every_set_of_identifiers_opens_the_layers_of_the_matrix_and_no_other() {
    for bits in 0u32..1 << 7 {
        let given: Vec<Identifier> =
            Identifier::ALL.into_iter().filter(|identifier| bits >> (*identifier as u32) & 1 == 1).collect();
        let (identifiers, open) = (identifiers(&given), matrix(&given));
        assert_eq!(identifiers.accessible(), open, "{given:?}");
        for layer in Layer::ALL {
            assert_eq!(identifiers.require(&[layer]).is_ok(), open.contains(&layer), "{given:?} {layer:?}");
            let missing = identifiers.missing(layer);
            let mut completed = given.clone();
            completed.extend(&missing);
            assert!(matrix(&completed).contains(&layer), "{missing:?} completes {layer:?}");
            assert!(missing.iter().all(|identifier| !given.contains(identifier)));
        }
    }
}

#[test]
fn a_refusal_names_all_that_is_missing_in_the_order_of_the_matrix() {
    let one = refusal(identifiers(&[]).require(&[Layer::Session]));
    assert_eq!(
        Value::Object(one.details.into_members()),
        json!({"layer": "session", "missing": ["userId", "sessionId"]})
    );
    let several =
        refusal(identifiers(&[Identifier::User]).require(&[Layer::Agent, Layer::User, Layer::Company]));
    assert_eq!(
        Value::Object(several.details.into_members()),
        json!({
            "layer": "agent",
            "missing": ["agentId", "companyId"],
            "layers": {"agent": ["agentId"], "company": ["companyId"]},
        })
    );
    let one_of_two = refusal(identifiers(&[Identifier::User]).require(&[Layer::User, Layer::Team]));
    assert_eq!(one_of_two.details["layers"], json!({"team": ["teamId"]}));
    let none = refusal(identifiers(&[]).require(&[Layer::Agent, Layer::Session]));
    assert_eq!(
        none.details["layers"],
        json!({"agent": ["agentId", "userId"], "session": ["userId", "sessionId"]})
    );
}

#[test]
fn any_text_of_up_to_255_characters_names_something_but_for_control_characters() {
    for text in
        ["a", " ", "_:/%#. ", "👩‍👩‍👧", "\u{80}\u{feff}", "ä", "a\u{308}", &"x".repeat(255), &"🦭".repeat(255)]
    {
        assert_eq!(named(json!({"userId": text})).get(Identifier::User), Some(text));
    }
    for text in ["\0", "\u{1}", "a\tb", "a\u{1f}", "\u{7f}", "\n", &"x".repeat(256), &"🦭".repeat(256)] {
        let result = Identifiers::default().set(Identifier::User, "identifiers.userId", text);
        assert_eq!(code(result), "INVALID_REQUEST identifiers.userId", "{text}");
    }
}

#[test]
fn words_are_read_in_any_letter_case_and_precedence_comes_back() {
    for (index, layer) in Layer::ALL.into_iter().enumerate() {
        assert_eq!(Layer::parse(&layer.as_str().to_uppercase()), Some(layer));
        assert_eq!(usize::from(layer.precedence()), index + 1);
        assert_eq!(Layer::from_precedence(index as i64 + 1), Some(layer));
    }
    assert_eq!((Layer::parse("global"), Layer::parse(""), Layer::from_precedence(8)), (None, None, None));
}

#[test]
fn given_identifiers_win_over_the_ones_that_complete_them() {
    let own = named(json!({"userId": "a"}));
    let others = named(json!({"userId": "b", "teamId": "t"}));
    let both: Vec<_> =
        own.or(&others).given().map(|(name, value)| format!("{}={value}", name.as_str())).collect();
    assert_eq!(both, ["userId=a", "teamId=t"]);
}
