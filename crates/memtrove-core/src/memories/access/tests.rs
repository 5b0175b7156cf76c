use super::*;
use crate::memories::requests::{client, code, gateway, gateway_for, user};
use crate::memories::testing::{identifiers, memory};
use crate::memories::{ScopeKey, resolve};
use serde_json::{Value, json};

fn author(user: Option<&str>, client: Option<&str>) -> Author {
    Author { user: user.map(str::to_owned), client: client.map(str::to_owned) }
}

fn viewer(user: Option<&str>, client: Option<&str>, team: Option<&str>) -> Viewer {
    let owned = |text: Option<&str>| text.map(str::to_owned);
    Viewer { user: owned(user), client: owned(client), team: owned(team), all: false }
}

fn in_scope(layer: Layer, given: Value, policy: Policy, created_by: Author) -> Memory {
    let tenant = user("alice").tenant().clone();
    let scope: ScopeKey = resolve(&tenant, &identifiers(given), &[layer]).unwrap().remove(0);
    Memory { scope, policy: AccessPolicy::new(policy), created_by, ..memory(1, "x") }
}

#[test]
fn a_user_names_itself_only() {
    let (own, other) = (identifiers(json!({"userId": "alice"})), identifiers(json!({"userId": "bob"})));
    let alice = user("alice");
    for layers in [&[Layer::User][..], &[Layer::Project], &Layer::ALL] {
        assert!(alice.authorise(&own, layers).is_ok());
        assert_eq!(code(alice.authorise(&other, layers)), "FORBIDDEN");
        assert!(user("root").authorise(&other, layers).is_ok());
    }
}

#[test]
fn a_trusted_client_acts_for_anybody_but_does_not_contradict_itself() {
    let bob = identifiers(json!({"userId": "bob"}));
    assert!(gateway().authorise(&bob, &[Layer::User]).is_ok());
    assert!(gateway_for("bob").authorise(&bob, &[Layer::User]).is_ok());
    let contradiction = gateway_for("alice").authorise(&bob, &[Layer::User]);
    assert_eq!(code(contradiction), "INVALID_REQUEST identifiers.userId");
}

#[test]
fn who_is_or_asserts_a_user_does_not_act_for_all() {
    assert!(gateway().acts_for_all() && user("root").acts_for_all());
    for caller in [user("alice"), gateway_for("alice"), client("robot")] {
        assert!(!caller.acts_for_all(), "{caller:?}");
    }
    let mut admin = gateway_for("alice");
    admin.admin = true;
    assert!(!admin.acts_for_all(), "it speaks for one user, whatever it may do itself");
}

#[test]
fn a_client_that_nobody_trusts_stays_out_of_personal_layers() {
    let all = identifiers(json!({"userId": "bob", "sessionId": "s", "agentId": "a", "projectId": "p"}));
    for layer in Layer::ALL {
        let allowed = client("robot").authorise(&all, &[layer]);
        assert_eq!(allowed.is_ok(), !layer.is_personal(), "{layer:?}");
    }
    assert_eq!(code(client("robot").authorise(&all, &[Layer::Project, Layer::User])), "FORBIDDEN");
}

#[test]
fn the_company_is_the_tenant() {
    let (own, other) = (identifiers(json!({"companyId": "acme"})), identifiers(json!({"companyId": "ACME"})));
    for caller in [user("alice"), user("root"), gateway(), client("robot")] {
        assert!(caller.authorise(&own, &[Layer::Company]).is_ok());
        assert_eq!(code(caller.authorise(&other, &[Layer::Project])), "FORBIDDEN");
    }
}

#[test]
fn an_agent_may_be_bound_to_its_client() {
    let given = identifiers(json!({"agentId": "gateway", "userId": "bob"}));
    let other = identifiers(json!({"agentId": "robot", "userId": "bob"}));
    assert!(gateway().authorise(&other, &[Layer::Agent]).is_ok());
    assert!(gateway().binding_agent(true).authorise(&given, &[Layer::Agent]).is_ok());
    assert_eq!(code(gateway().binding_agent(true).authorise(&other, &[Layer::Project])), "FORBIDDEN");
    assert!(gateway().binding_agent(true).authorise(&Identifiers::default(), &[Layer::Project]).is_ok());
}

#[test]
fn writing_in_shared_layers_may_need_a_role_and_in_personal_ones_never() {
    let restricted = |caller: MemoryCaller| caller.writing_in(vec![Layer::Project]);
    for layer in Layer::ALL {
        assert!(user("alice").authorise_write(layer).is_ok());
        assert!(restricted(user("root")).authorise_write(layer).is_ok());
        let allowed = layer.is_personal() || layer == Layer::Project;
        assert_eq!(restricted(user("alice")).authorise_write(layer).is_ok(), allowed, "{layer:?}");
    }
}

#[test]
fn a_policy_shows_an_entry_to_whom_it_says() {
    let by_alice = author(Some("alice"), Some("app"));
    let by_client = author(None, Some("app"));
    let restricted =
        AccessPolicy { approved_users: vec!["bob".to_owned()], ..AccessPolicy::new(Policy::Restricted) };
    let shared = AccessPolicy { allowed_teams: vec!["red".to_owned()], ..AccessPolicy::new(Policy::Shared) };
    let private = AccessPolicy::new(Policy::Private);
    let rows = [
        (&private, &by_alice, viewer(Some("alice"), None, None), true),
        (&private, &by_alice, viewer(Some("Alice"), None, None), false),
        (&private, &by_alice, viewer(Some("bob"), Some("app"), None), false),
        (&private, &by_alice, viewer(None, Some("app"), None), false),
        (&private, &by_client, viewer(None, Some("app"), None), true),
        (&private, &by_client, viewer(Some("bob"), Some("app"), None), true),
        (&private, &by_client, viewer(None, Some("other"), None), false),
        (&private, &Author::default(), viewer(None, None, None), false),
        (&restricted, &by_alice, viewer(Some("alice"), None, None), true),
        (&restricted, &by_alice, viewer(Some("bob"), None, None), true),
        (&restricted, &by_alice, viewer(Some("carol"), None, None), false),
        (&restricted, &by_alice, viewer(None, None, None), false),
        (&shared, &by_alice, viewer(Some("bob"), None, Some("red")), true),
        (&shared, &by_alice, viewer(Some("bob"), None, Some("blue")), false),
        (&shared, &by_alice, viewer(Some("bob"), None, None), false),
        (&AccessPolicy::new(Policy::Shared), &by_alice, viewer(None, None, None), true),
        (&AccessPolicy::new(Policy::Organization), &by_alice, viewer(None, None, None), true),
        (&AccessPolicy::new(Policy::Public), &by_alice, viewer(None, None, None), true),
    ];
    for (policy, author, viewer, seen) in rows {
        assert_eq!(viewer.sees(policy, author), seen, "{policy:?} {author:?} {viewer:?}");
    }
}

#[test]
fn who_looks_is_the_user_of_the_request() {
    let named = identifiers(json!({"userId": "bob", "teamId": "red"}));
    let rows = [
        (user("bob"), Some("bob")),
        (user("root"), Some("bob")),
        (gateway(), Some("bob")),
        (gateway_for("bob"), Some("bob")),
        (client("robot"), None),
    ];
    for (caller, expected) in rows {
        let viewer = caller.viewer(&named);
        assert_eq!((viewer.user.as_deref(), viewer.team.as_deref()), (expected, Some("red")), "{caller:?}");
    }
    assert_eq!(gateway().viewer(&Identifiers::default()).user, None);
}

#[test]
fn naming_somebody_else_does_not_lend_their_eyes() {
    let bobs =
        in_scope(Layer::Project, json!({"projectId": "p"}), Policy::Private, author(Some("bob"), None));
    let named = identifiers(json!({"userId": "bob"}));
    assert!(user("bob").reaches(&bobs, &named));
    assert!(!user("alice").reaches(&bobs, &named));
    assert!(!gateway_for("alice").reaches(&bobs, &named));
    assert!(!client("robot").reaches(&bobs, &named));
    assert!(user("root").reaches(&bobs, &named));
}

#[test]
fn an_entry_is_reached_by_its_id_where_its_scope_and_policy_allow_it() {
    let none = Identifiers::default();
    let personal = |policy| {
        in_scope(
            Layer::Session,
            json!({"userId": "bob", "sessionId": "s"}),
            policy,
            author(Some("bob"), None),
        )
    };
    for policy in Policy::ALL {
        let entry = personal(policy);
        assert!(gateway().reaches(&entry, &none) && user("root").reaches(&entry, &none), "{policy:?}");
        for stranger in [user("alice"), gateway_for("alice"), client("robot")] {
            assert!(!stranger.reaches(&entry, &none), "{policy:?} {stranger:?}");
        }
    }
    let elsewhere =
        ScopeKey::listed(Tenant::listed("other".to_owned()), Layer::Project, vec!["p".to_owned()]);
    let foreign = Memory {
        scope: elsewhere.unwrap(),
        ..in_scope(Layer::Project, json!({"projectId": "p"}), Policy::Public, Author::default())
    };
    assert!(!user("root").reaches(&foreign, &none) && !gateway().reaches(&foreign, &none));
}

#[test]
fn who_made_an_entry_is_the_user_of_the_credential_else_the_one_named() {
    let named = identifiers(json!({"userId": "bob", "projectId": "p"}));
    assert_eq!(user("bob").author(&named), author(Some("bob"), None));
    assert_eq!(user("root").author(&named), author(Some("root"), None));
    assert_eq!(gateway().author(&named), author(Some("bob"), Some("gateway")));
    assert_eq!(gateway().author(&Identifiers::default()), author(None, Some("gateway")));
}
