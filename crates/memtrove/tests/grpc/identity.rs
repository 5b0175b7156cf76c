//! Who is calling: the same credentials as over REST, as metadata.

use crate::parity::message;
use crate::support::*;
use crate::surface::{Grpc, Op, Rest, Surface};
use jsonwebtoken::{Algorithm, EncodingKey, Header, get_current_timestamp};

const SECRET: &str = "a-secret-for-tests-only-of-enough-length";

/// A server that believes signed tokens only.
static SERVER: LazyLock<TestServer> = LazyLock::new(|| {
    server_with(&format!(
        r#"
        [auth]
        mode = "jwt"
        [auth.jwt]
        hmac_secret = "{SECRET}"
        [auth.api_keys]
        agent-a = ["key-a"]
        gateway = ["key-gateway"]
        robot = ["key-robot"]
        [auth.trusted_clients]
        clients = ["gateway"]
        [roles.admin]
        users = ["root"]
        [roles.indexer]
        users = ["ivy"]
        clients = ["robot"]
        "#
    ))
});

fn token(user: &str, expires_in: i64) -> String {
    let expires = i64::try_from(get_current_timestamp()).expect("a time") + expires_in;
    signed(&json!({"sub": user, "exp": expires}))
}

fn signed(claims: &Value) -> String {
    jsonwebtoken::encode(&Header::new(Algorithm::HS256), claims, &EncodingKey::from_secret(SECRET.as_bytes()))
        .expect("a token")
}

fn user(name: &str) -> Who {
    Who::user(&token(name, 3_600))
}

/// Asks over both transports, which must say the same.
#[track_caller]
fn asked_over_both(who: &Who, op: Op, asked: &Value) -> Result<Value, (Code, String)> {
    let over_rest = Rest(&SERVER).call(who, op, asked);
    let over_grpc = Grpc(channel(&SERVER)).call(who, op, asked);
    assert_eq!(over_rest, over_grpc, "{who:?} {op:?} over REST and gRPC");
    over_grpc.map_err(|refusal| (refusal.code, refusal.reason))
}

#[test]
fn a_credential_that_is_wrong_is_refused_whatever_else_is_right() {
    let good = user(&fresh_name("alice"));
    let nobody = Who::anonymous();
    for wrong in [
        nobody.clone(),
        nobody.with("authorization", "Bearer "),
        nobody.with("authorization", "Bearer alice"),
        nobody.with("authorization", &format!("Basic {}", token("alice", 3_600))),
        nobody.with("authorization", &token("alice", 3_600)),
        Who::user(&token("alice", -3_600)),
        Who::user(&format!("{}x", token("alice", 3_600))),
        nobody.with_key("key-a"),
        nobody.with_key("unknown"),
        nobody.with_key("KEY-A"),
        good.with_key("unknown"),
        Who::user(&token("alice", -3_600)).with_key("key-a"),
        nobody.with("x-user-id", "alice"),
        nobody.with_key("key-a").with("x-user-id", "alice"),
    ] {
        let answer = asked_over_both(&wrong, Op::ListConversations, &json!({}));
        assert_eq!(answer, Err((Code::Unauthenticated, "unauthorized".to_owned())), "{wrong:?}");
    }
    asked_over_both(&good, Op::ListConversations, &json!({})).expect("good alone");
    asked_over_both(&good.with_key("key-a"), Op::ListConversations, &json!({})).expect("both good");
}

#[test]
fn a_token_whose_tenant_is_no_name_is_refused() {
    let expires = get_current_timestamp() + 3_600;
    for tenant in [json!(null), json!(""), json!(7), json!(["default"]), json!({})] {
        let who = Who::user(&signed(&json!({"sub": "alice", "exp": expires, "tenant": tenant})));
        let answer = asked_over_both(&who, Op::ListConversations, &json!({}));
        assert_eq!(answer, Err((Code::Unauthenticated, "unauthorized".to_owned())), "{tenant}");
    }
}

#[test]
fn a_user_is_asserted_by_trusted_clients_only() {
    let (alice, bob) = (fresh_name("alice"), fresh_name("bob"));
    let gateway = Who::anonymous().with_key("key-gateway");
    let grpc = Grpc(channel(&SERVER));
    let made = grpc
        .call(&gateway.with("x-user-id", &alice), Op::CreateConversation, &json!({}))
        .expect("a conversation");
    assert_eq!(made["ownerUserId"], alice);
    asked_over_both(
        &gateway.with("x-user-id", &alice),
        Op::GetConversation,
        &json!({"conversationId": made["id"]}),
    )
    .expect("it is hers");
    let answer = asked_over_both(
        &gateway.with("x-user-id", &bob),
        Op::GetConversation,
        &json!({"conversationId": made["id"]}),
    );
    assert_eq!(answer, Err((Code::PermissionDenied, "forbidden".to_owned())), "membership still decides");
    let answer = asked_over_both(&gateway, Op::ListConversations, &json!({}));
    assert_eq!(answer, Err((Code::Unauthenticated, "unauthorized".to_owned())), "nobody is asserted");

    // Of a client that is not trusted the header is ignored, as if it were not there.
    let through_agent = user(&bob).with_key("key-a").with("x-user-id", &alice);
    let made = grpc.call(&through_agent, Op::CreateConversation, &json!({})).expect("a conversation");
    assert_eq!(made["ownerUserId"], bob);
}

#[test]
fn indexing_needs_the_role_and_no_membership() {
    let alice = user(&fresh_name("alice"));
    let grpc = Grpc(channel(&SERVER));
    let conversation = fresh_id();
    let entry = grpc.call(&alice, Op::AppendEntry, &message(&conversation, "hello")).expect("an entry");
    let items = json!([{"conversationId": conversation, "entryId": entry["id"], "indexedContent": "hello"}]);
    for who in
        [user("ivy"), user("root"), Who::anonymous().with_key("key-robot"), alice.with_key("key-robot")]
    {
        asked_over_both(&who, Op::ListUnindexedEntries, &json!({})).expect("a list");
        let done = asked_over_both(&who, Op::IndexConversations, &items).expect("indexed");
        assert_eq!(done, json!({"indexed": 1}));
    }
    let gateway = Who::anonymous().with_key("key-gateway");
    for who in [
        alice.clone(),
        alice.with_key("key-a"),
        gateway.clone(),
        gateway.with("x-user-id", "ivy"),
        gateway.with("x-user-id", "root"),
    ] {
        for (op, asked) in [(Op::ListUnindexedEntries, json!({})), (Op::IndexConversations, items.clone())] {
            let answer = asked_over_both(&who, op, &asked);
            assert_eq!(answer, Err((Code::PermissionDenied, "forbidden".to_owned())), "{who:?} {op:?}");
        }
    }
    let answer = asked_over_both(&Who::anonymous(), Op::ListUnindexedEntries, &json!({}));
    assert_eq!(answer, Err((Code::Unauthenticated, "unauthorized".to_owned())));
}

#[test]
fn a_header_that_is_sent_twice_is_not_chosen_from() {
    let (alice, bob) = (fresh_name("alice"), fresh_name("bob"));
    let grpc = Grpc(channel(&SERVER));
    let twice = user(&alice).with("authorization", &format!("Bearer {}", token(&bob, 3_600)));
    let refusal = grpc.call(&twice, Op::ListConversations, &json!({})).expect_err("two users at once");
    assert!(matches!(refusal.code, Code::Unauthenticated | Code::InvalidArgument), "{refusal:?}");
    let twice = user(&alice).with("idempotency-key", "a").with("idempotency-key", "b");
    let refusal =
        grpc.call(&twice, Op::AppendEntry, &message(&fresh_id(), "x")).expect_err("two keys at once");
    assert_eq!(refusal.code, Code::InvalidArgument, "{refusal:?}");
}
