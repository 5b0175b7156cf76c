//! What texts are found by besides full text: taken in in the background, read by indexes in memory.

use super::forget::{NOW, detach, plant, tenant, tree, user, write};
use super::{EngineFixture, count};
use memtrove_core::conversations::{Channel, Entry};
use memtrove_core::{EntryId, Json};
use memtrove_store::conversations::embeddings::{self, EmbeddedText, Text, Trees};
use memtrove_store::conversations::pieces::Piece;
use memtrove_store::conversations::{entries, groups};
use memtrove_store::files::forget;
use memtrove_store::{AllTenants, Store, StoreError, TextDocument, Tx};
use std::ops::ControlFlow;
use uuid::Uuid;

fn entry(number: u128) -> EntryId {
    EntryId(Uuid::from_u128(1 << 64 | number))
}

/// Gives an entry of a tree a text.
fn index(tx: &mut dyn Tx, of: u128, number: u128, text: &str, by_agent: bool) -> Result<(), StoreError> {
    let (group, root) = tree(of);
    tx.index_text(TextDocument {
        is_new: false,
        id: entry(number).0,
        tenant: "a".into(),
        group: group.0,
        conversation: root.0,
        text: text.into(),
        by_agent: Some(by_agent),
        terms: text.into(),
    })
}

/// Appends an entry to a tree.
fn say(tx: &mut dyn Tx, on: u128, number: u128, who: &str, text: &str) -> Result<(), StoreError> {
    let (group, root) = tree(on);
    let place = groups::take_place(tx, group, NOW)?;
    let entry = Entry {
        id: entry(number),
        conversation_id: root,
        ord: place.ord,
        user_id: Some(user(who)),
        client_id: None,
        channel: Channel::History,
        epoch: None,
        content_type: "history".into(),
        content: Json::stored("[]".into()),
        created_at: place.created_at,
    };
    entries::insert(tx, &tenant(), group, &entry, None)?;
    index(tx, on, number, text, who == "agent")
}

/// Two trees: three texts in the first, one in the second.
async fn planted(store: &Store) {
    write(store, |tx| {
        plant(tx, 1, "bob", &["alice"])?;
        plant(tx, 2, "bob", &[])?;
        say(tx, 1, 1, "alice", "walrus")?;
        say(tx, 2, 2, "bob", "oyster")?;
        say(tx, 1, 3, "agent", "carpenter")?;
        say(tx, 1, 4, "bob", "Bob: cabbages?")
    })
    .await;
}

async fn waiting(store: &Store) -> Vec<Text> {
    let read = store.read(AllTenants, "suite", |tx| embeddings::waiting(tx, 100, usize::MAX));
    read.await.unwrap().unwrap_or_default().texts
}

fn taken_in(text: &Text, model: Option<&str>) -> EmbeddedText {
    EmbeddedText {
        text_no: text.no,
        entry: text.entry,
        conversation: text.conversation,
        ord: text.ord,
        speaker: text.text.split_once(':').map(|(name, _)| name.to_owned()),
        asks: text.text.ends_with('?'),
        model: model.map(str::to_owned),
        pieces: vec![
            Piece { vector: vec![127, -127, 0], terms: vec![(7, 1), (u64::MAX, 300)], length: 301 },
            Piece { vector: Vec::new(), terms: Vec::new(), length: 0 },
        ],
    }
}

/// Takes in what waits.
async fn take_in(store: &Store, model: Option<&'static str>) {
    put(store, waiting(store).await, model).await;
}

async fn put(store: &Store, texts: Vec<Text>, model: Option<&'static str>) {
    write(store, move |tx| {
        for text in &texts {
            embeddings::put(tx, text.group, &[taken_in(text, model)])?;
            tx.take_in_texts(&[text.no])?;
        }
        Ok(())
    })
    .await;
}

/// What a tree has after a change.
async fn changed(store: &Store, number: u128, after: i64) -> Vec<EmbeddedText> {
    let read = store.read(AllTenants, "suite", move |tx| {
        let (mut found, mut last) = (Vec::new(), after);
        loop {
            let before = found.len();
            // Two at a time, as a search that must not take long reads on.
            embeddings::changed(tx, tree(number).0, last, 2, &mut |change, text| {
                assert!(change > last, "in the order of changes");
                last = change;
                found.push(text);
                ControlFlow::Continue(())
            })?;
            if found.len() == before {
                return Ok::<_, StoreError>(found);
            }
        }
    });
    read.await.unwrap()
}

/// The last change of a tree.
async fn last_change(store: &Store, number: u128) -> i64 {
    let read = store.read(AllTenants, "suite", move |tx| {
        let scope = memtrove_store::conversations::search::Scope::Member(user("bob"));
        let Trees { owned, others } = embeddings::trees(tx, &tenant(), &scope)?;
        let mut trees = owned.into_iter().flat_map(|(_, trees)| trees).chain(others);
        Ok::<_, StoreError>(trees.find(|found| found.group == tree(number).0).unwrap())
    });
    read.await.unwrap().changes
}

async fn tail(store: &Store, number: u128) -> Vec<String> {
    tail_after(store, number, 0, 100).await.into_iter().map(|text| text.text).collect()
}

async fn tail_after(store: &Store, number: u128, after: i64, limit: usize) -> Vec<Text> {
    let read = store.read(AllTenants, "suite", move |tx| embeddings::tail(tx, tree(number).0, after, limit));
    read.await.unwrap()
}

pub async fn texts_are_numbered_in_the_order_they_are_written(fixture: impl EngineFixture) {
    let store = fixture.store();
    planted(store).await;
    assert_eq!(tail(store, 1).await, ["walrus", "carpenter", "Bob: cabbages?"]);
    assert_eq!(tail(store, 2).await, ["oyster"]);
    let trees = |limit| store.read(AllTenants, "suite", move |tx| embeddings::trees_waiting(tx, limit));
    assert_eq!(trees(4).await.unwrap(), Some([tree(1).0, tree(2).0].into()));
    assert_eq!(trees(3).await.unwrap(), None, "four texts wait");
    let before: Vec<i64> = waiting(store).await.iter().map(|text| text.no).collect();
    assert!(before.is_sorted_by(|one, other| one < other), "{before:?}");

    write(store, |tx| index(tx, 1, 1, "kings", false)).await;

    assert_eq!(tail(store, 1).await, ["carpenter", "Bob: cabbages?", "kings"]);
    let first = tail_after(store, 1, 0, 1).await.remove(0);
    assert_eq!(first.text, "carpenter", "one at most");
    let rest: Vec<String> =
        tail_after(store, 1, first.no, 100).await.into_iter().map(|text| text.text).collect();
    assert_eq!(rest, ["Bob: cabbages?", "kings"], "those after it");
    let counted = store.read(AllTenants, "suite", |tx| tx.count_untaken_texts(1_000)).await.unwrap();
    assert!((4..=5).contains(&counted), "four wait, and one was replaced: {counted}");
    let after = waiting(store).await;
    assert!(after[3].no > before[3], "a text that is replaced takes a new number");
    let authors: Vec<Option<&str>> = after.iter().map(|text| text.author.as_deref()).collect();
    assert_eq!(authors, [Some("bob"), Some(""), Some("bob"), Some("alice")], "an agent has no name");
}

pub async fn what_was_taken_in_is_no_longer_waiting(fixture: impl EngineFixture) {
    let store = fixture.store();
    planted(store).await;
    let two =
        store.read(AllTenants, "suite", |tx| embeddings::waiting(tx, 2, usize::MAX)).await.unwrap().unwrap();
    assert_eq!((two.texts.len(), two.texts[1].no), (2, two.numbers[1]));
    let one = store.read(AllTenants, "suite", |tx| embeddings::waiting(tx, 100, 1)).await.unwrap().unwrap();
    assert_eq!(one.texts.len(), 1, "no more than one once there are so many bytes");

    put(store, two.texts, Some("m")).await;

    assert_eq!(tail(store, 1).await, ["carpenter", "Bob: cabbages?"]);
    assert!(tail(store, 2).await.is_empty());
    let left: Vec<String> = waiting(store).await.into_iter().map(|text| text.text).collect();
    assert_eq!(left, ["carpenter", "Bob: cabbages?"]);
    take_in(store, Some("m")).await;
    assert!(waiting(store).await.is_empty());
    assert!(!store.read(AllTenants, "suite", |tx| tx.has_untaken_texts()).await.unwrap());
}

pub async fn no_number_that_was_taken_in_is_given_again(fixture: impl EngineFixture) {
    let store = fixture.store();
    planted(store).await;
    take_in(store, Some("m")).await;

    write(store, |tx| {
        groups::evict(tx, &tenant(), tree(1).0)?;
        say(tx, 2, 9, "bob", "newest")
    })
    .await;

    assert_eq!(tail(store, 2).await, ["newest"]);
    assert_eq!(waiting(store).await.len(), 1);
}

pub async fn a_text_that_was_replaced_meanwhile_is_not_taken_in(fixture: impl EngineFixture) {
    let store = fixture.store();
    planted(store).await;
    let texts = waiting(store).await;
    write(store, |tx| {
        index(tx, 1, 1, "kings", false)?;
        groups::evict(tx, &tenant(), tree(2).0).map(drop)
    })
    .await;

    put(store, texts, Some("m")).await;

    let taken_in: Vec<EntryId> = changed(store, 1, 0).await.iter().map(|text| text.entry).collect();
    assert_eq!(taken_in, [entry(3), entry(4)]);
    assert!(changed(store, 2, 0).await.is_empty());
    assert_eq!(tail(store, 1).await, ["kings"], "its successor waits");
}

pub async fn what_is_derived_from_a_text_goes_with_it(fixture: impl EngineFixture) {
    let store = fixture.store();
    planted(store).await;
    take_in(store, Some("m")).await;
    write(store, |tx| index(tx, 1, 1, "kings", false)).await;
    assert_eq!(changed(store, 1, 0).await.len(), 2, "with the text it was derived from");
    write(store, |tx| tx.unindex_text(entry(3).0)).await;
    assert_eq!(changed(store, 1, 0).await.len(), 1);
    write(store, |tx| groups::evict(tx, &tenant(), tree(1).0)).await;
    assert!(changed(store, 1, 0).await.is_empty());
    assert_eq!(changed(store, 2, 0).await.len(), 1, "others have theirs");
    write(store, |tx| embeddings::remove_tree(tx, tree(2).0)).await;
    assert_eq!(count(store, "SELECT COUNT(*) FROM meanings").await, 0);
}

pub async fn a_tree_is_read_on_from_the_last_change(fixture: impl EngineFixture) {
    let store = fixture.store();
    planted(store).await;
    let (texts, before) = (waiting(store).await, last_change(store, 1).await);
    take_in(store, Some("m")).await;

    let found = changed(store, 1, before).await;
    let speakers: Vec<Option<&str>> = found.iter().map(|text| text.speaker.as_deref()).collect();
    assert_eq!(speakers, [Some("alice"), Some(""), Some("Bob")]);
    let mut expected = taken_in(&texts[3], Some("m"));
    assert_eq!(found[2], expected, "it comes back as it was put");
    let seen = last_change(store, 1).await;
    assert!(changed(store, 1, seen).await.is_empty());

    put(store, vec![texts[3].clone()], Some("better")).await;

    expected.model = Some("better".into());
    assert_eq!(changed(store, 1, seen).await, [expected], "what was put anew, and nothing else");
    assert_eq!(changed(store, 1, 0).await.len(), 3);
}

pub async fn texts_of_another_model_are_outdated(fixture: impl EngineFixture) {
    let store = fixture.store();
    planted(store).await;
    let texts = waiting(store).await;
    for (text, model) in texts.iter().zip([None, Some("b"), Some("a"), Some("c")]) {
        put(store, vec![text.clone()], model).await;
    }
    let outdated = |model: &'static str, limit| {
        store.read(AllTenants, "suite", move |tx| {
            let found = embeddings::outdated(tx, model, limit, usize::MAX)?;
            Ok::<_, StoreError>((found.len(), embeddings::count_outdated(tx, model)?))
        })
    };
    assert_eq!(outdated("b", 100).await.unwrap(), (3, 3));
    assert_eq!(outdated("b", 2).await.unwrap(), (2, 3));
    assert_eq!(outdated("d", 100).await.unwrap(), (4, 4));
    put(store, texts, Some("d")).await;
    assert_eq!(outdated("d", 100).await.unwrap(), (0, 0));
}

pub async fn who_is_forgotten_is_no_speaker_any_more(fixture: impl EngineFixture) {
    let store = fixture.store();
    planted(store).await;
    take_in(store, Some("m")).await;
    let seen = last_change(store, 1).await;
    let alice = detach(store).await.remove(0);

    write(store, move |tx| {
        while forget::anonymize(tx, &alice, 1)?.is_some() {}
        Ok(())
    })
    .await;

    let changed = changed(store, 1, seen).await;
    assert_eq!(changed.len(), 1, "indexes in memory are told");
    assert_eq!((changed[0].entry, changed[0].speaker.as_deref()), (entry(1), None));
    assert_eq!(count(store, "SELECT COUNT(*) FROM meanings WHERE speaker = 'alice'").await, 0);
}
