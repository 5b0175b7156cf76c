//! Links with which anybody may read.

use crate::attaching::on_both_engines;
use crate::attaching::setting::{Engine, HOUR, SECOND, Setting, caller, outcome};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use memtrove_core::{Code, Error};
use memtrove_service::attachments::NewAttachment;
use memtrove_store::AllTenants;
use memtrove_store::vault::Vault;
use std::time::Duration;
use zeroize::Zeroizing;

on_both_engines!(
    a_link_leads_to_its_attachment_for_a_while,
    a_link_that_was_changed_leads_nowhere,
    a_link_of_another_secret_or_store_leads_nowhere,
    nothing_is_looked_up_for_a_link_that_is_not_ours,
    a_link_to_what_is_gone_leads_nowhere,
    names_in_links_are_escaped,
);

/// The token and the name in a link.
fn parts(url: &str) -> (String, String) {
    let (token, name) = url.strip_prefix("/v1/attachments/download/").unwrap().split_once('/').unwrap();
    (token.to_owned(), name.to_owned())
}

impl Setting {
    async fn token(&self, user: &str, id: memtrove_core::AttachmentId) -> String {
        parts(&self.services.attachments.download_url(&caller(user), id).await.unwrap().url).0
    }
}

async fn a_link_leads_to_its_attachment_for_a_while(engine: Engine) {
    let setting = Setting::new(engine).await;
    let attachments = &setting.services.attachments;
    let uploaded = setting.upload("alice", b"x").await;
    let link = attachments.download_url(&caller("alice"), uploaded.id).await.unwrap();
    assert_eq!(link.expires_in, Duration::from_secs(300));
    let (token, name) = parts(&link.url);
    assert_eq!(name, "cat.png");
    setting.clock.advance_micros(299 * SECOND);
    let (found, remaining) = attachments.open_signed(&token).await.unwrap();
    assert_eq!((found, remaining), (uploaded, Duration::from_secs(1)));
    setting.clock.advance_micros(SECOND);
    assert_eq!(outcome(attachments.open_signed(&token).await), "forbidden");
}

async fn a_link_that_was_changed_leads_nowhere(engine: Engine) {
    let setting = Setting::new(engine).await;
    let attachments = &setting.services.attachments;
    let (one, other) = (setting.upload("alice", b"x").await, setting.upload("alice", b"y").await);
    let token = setting.token("alice", one.id).await;
    let text = String::from_utf8(URL_SAFE_NO_PAD.decode(&token).unwrap()).unwrap();
    let [id, expiry, tag] = text.split('.').collect::<Vec<_>>().try_into().unwrap();
    let later = expiry.parse::<i64>().unwrap() + 1;
    for forged in [
        format!("{}.{expiry}.{tag}", other.id),
        format!("{id}.{later}.{tag}"),
        format!("{id}.{expiry}."),
        format!("{id}.{expiry}.{}", "0".repeat(64)),
        format!("{id}.{expiry}.{tag}00"),
        format!("{id}.{expiry}"),
        format!("{id}.{}.{tag}", i64::MAX),
        String::new(),
    ] {
        let refused = attachments.open_signed(&URL_SAFE_NO_PAD.encode(&forged)).await;
        assert_eq!(outcome(refused), "forbidden", "{forged}");
    }
    for nonsense in ["", "%", "ä", &"A".repeat(100_000)] {
        assert_eq!(outcome(attachments.open_signed(nonsense).await), "forbidden");
    }
    assert_eq!(outcome(attachments.open_signed(&token).await), "ok");
}

async fn a_link_of_another_secret_or_store_leads_nowhere(engine: Engine) {
    let with = async |secret: Option<&'static str>| {
        let secret = secret.map(|secret| Zeroizing::new(secret.as_bytes().to_vec()));
        let setting =
            Setting::with(engine, Vault::plain(), |settings| settings.download_url_secret = secret).await;
        let id = setting.upload("alice", b"x").await.id;
        (setting.token("alice", id).await, setting)
    };
    // Ids repeat, since they come from a clock; so only the secret tells these stores apart.
    let (mine, one) = with(Some("secret")).await;
    let (same, _other) = with(Some("secret")).await;
    let (theirs, _another) = with(Some("another")).await;
    let (own, _owning) = with(None).await;
    assert_eq!(mine, same, "nodes with one secret make the same links");
    for (token, expected) in [(mine, "ok"), (theirs, "forbidden"), (own, "forbidden")] {
        assert_eq!(outcome(one.services.attachments.open_signed(&token).await), expected);
    }
}

async fn nothing_is_looked_up_for_a_link_that_is_not_ours(engine: Engine) {
    let setting = Setting::new(engine).await;
    let id = setting.upload("alice", b"x").await.id;
    let token = setting.token("alice", id).await;
    let text = String::from_utf8(URL_SAFE_NO_PAD.decode(&token).unwrap()).unwrap();
    let forged = URL_SAFE_NO_PAD.encode(format!("{}.{}", text.rsplit_once('.').unwrap().0, "0".repeat(64)));
    let away = |tx: &mut dyn memtrove_store::Tx| {
        Ok::<_, Error>(tx.execute("ALTER TABLE attachments RENAME TO elsewhere", &[])?)
    };
    setting.store.write(AllTenants, "test", away).await.unwrap();
    // Whoever looked would find no table.
    assert_eq!(outcome(setting.services.attachments.open_signed(&forged).await), "forbidden");
    let looked_up = setting.services.attachments.open_signed(&token).await;
    assert!(matches!(looked_up, Err(Error { code: Code::Internal, .. })), "{looked_up:?}");
}

async fn a_link_to_what_is_gone_leads_nowhere(engine: Engine) {
    let setting = Setting::with(engine, Vault::plain(), |settings| {
        settings.download_url_expires_in = Duration::from_secs(24 * 3600);
    })
    .await;
    let (attachments, conversations) = (&setting.services.attachments, &setting.services.conversations);
    let (deleted, expired) = (setting.upload("alice", b"x").await.id, setting.upload("alice", b"x").await.id);
    let (conversation, linked) = (setting.start("alice").await, setting.upload("alice", b"x").await.id);
    setting.say("alice", conversation, &[linked]).await.unwrap();
    let tokens = [
        setting.token("alice", deleted).await,
        setting.token("alice", expired).await,
        setting.token("alice", linked).await,
    ];
    attachments.delete(&caller("alice"), deleted).await.unwrap();
    setting.clock.advance_micros(2 * HOUR);
    let open = async |number: usize| outcome(attachments.open_signed(&tokens[number]).await);
    assert_eq!([open(0).await, open(1).await, open(2).await], ["forbidden", "forbidden", "ok"]);
    conversations.delete(&caller("alice"), conversation).await.unwrap();
    assert_eq!(open(2).await, "forbidden");
}

async fn names_in_links_are_escaped(engine: Engine) {
    let setting = Setting::new(engine).await;
    for (name, escaped) in [(Some("ä b?#%.png"), "%C3%A4%20b%3F%23%25.png"), (None, "attachment")] {
        let new = NewAttachment { filename: name.map(str::to_owned), ..NewAttachment::default() };
        let id = setting.upload_as("alice", new, b"x").await.unwrap().id;
        let link = setting.services.attachments.download_url(&caller("alice"), id).await.unwrap();
        assert_eq!(parts(&link.url).1, escaped);
    }
}
