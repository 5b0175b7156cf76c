//! Forgetting a user: what belongs to it, and how it goes step by step.

use super::{EngineFixture, count};
use memtrove_core::conversations::forks::Segment;
use memtrove_core::conversations::{AccessLevel, Channel, Entry};
use memtrove_core::files::Scope;
use memtrove_core::identity::Tenant;
use memtrove_core::{ConversationId, EntryId, GroupId, Json, Timestamp, UserId};
use memtrove_store::conversations::rows::{self, NewConversation};
use memtrove_store::conversations::{ancestry, entries, groups, memberships, search};
use memtrove_store::files::forget::{self, Forget, ForgetStep, Removed};
use memtrove_store::files::scopes;
use memtrove_store::{AllTenants, Store, StoreError, TextDocument, Traces, Tx, TxExt};
use uuid::Uuid;

/// Everything happens at once: what belongs to a forget is not decided by a clock.
pub(super) const NOW: Timestamp = Timestamp::from_micros(1_000_000);

pub(super) fn tenant() -> Tenant {
    Tenant::listed("a".into())
}

pub(super) fn user(name: &str) -> UserId {
    UserId(name.into())
}

pub(super) fn alice() -> Scope {
    Scope::listed(tenant(), user("alice"))
}

/// A tree has one number: its own, and its root's.
pub(super) fn tree(number: u128) -> (GroupId, ConversationId) {
    (GroupId(Uuid::from_u128(number)), ConversationId(Uuid::from_u128(number)))
}

pub(super) async fn write<T: Send + 'static>(
    store: &Store,
    work: impl Fn(&mut dyn Tx) -> Result<T, StoreError> + Send + 'static,
) -> T {
    store.write(AllTenants, "suite", work).await.unwrap()
}

/// A tree of this owner, with everybody in it who writes.
pub(super) fn plant(tx: &mut dyn Tx, number: u128, owner: &str, members: &[&str]) -> Result<(), StoreError> {
    let (group, root) = tree(number);
    let (metadata, title) = (Json::stored("{}".into()), Some("a title"));
    let owner = &user(owner);
    let new = NewConversation { id: root, group, owner, title, metadata: &metadata, lineage: None, now: NOW };
    assert!(rows::insert_if_absent(tx, &tenant(), &new)?);
    groups::insert(tx, &tenant(), group, root, owner, NOW)?;
    memberships::upsert(tx, &tenant(), group, owner, AccessLevel::Owner, NOW)?;
    for member in members {
        memberships::upsert(tx, &tenant(), group, &user(member), AccessLevel::Writer, NOW)?;
    }
    Ok(())
}

fn fork(tx: &mut dyn Tx, number: u128, of: u128, owner: &str) -> Result<(), StoreError> {
    let ((group, root), (_, id)) = (tree(of), tree(number));
    let metadata = Json::stored("{}".into());
    let lineage = Some((root, None));
    let new = NewConversation {
        id,
        group,
        owner: &user(owner),
        title: None,
        metadata: &metadata,
        lineage,
        now: NOW,
    };
    assert!(rows::insert_if_absent(tx, &tenant(), &new)?);
    ancestry::insert(tx, group, id, &[Segment { conversation: root, max_ord: 1 }])
}

/// Appends an entry that can be found, under an idempotency key.
fn say(tx: &mut dyn Tx, number: u128, on: ConversationId, who: &str, key: &str) -> Result<(), StoreError> {
    let (group, _) = tree(number);
    let place = groups::take_place(tx, group, NOW)?;
    let id = EntryId(Uuid::from_u128(number << 64 | place.ord as u128));
    let entry = Entry {
        id,
        conversation_id: on,
        ord: place.ord,
        user_id: Some(user(who)),
        client_id: None,
        channel: Channel::History,
        epoch: None,
        content_type: "history".into(),
        content: Json::stored("[\"walrus\"]".into()),
        created_at: place.created_at,
    };
    entries::insert(tx, &tenant(), group, &entry, None)?;
    search::add_unindexed(tx, &tenant(), group, id, place.created_at)?;
    tx.index_text(TextDocument {
        is_new: false,
        tenant: "a".into(),
        id: id.0,
        group: group.0,
        conversation: on.0,
        text: "walrus".into(),
        by_agent: None,
        terms: "walrus".into(),
    })?;
    tx.execute(
        "INSERT INTO idempotency_keys (tenant, conversation_id, user_id, client_id, key, body_digest, entry_id, \
         created_at) VALUES ('a', $1, $2, '', $3, $4, $5, 1)",
        &[on.0.into(), who.into(), key.into(), b"digest".as_slice().into(), id.0.into()],
    )?;
    Ok(())
}

pub(super) async fn detach(store: &Store) -> Vec<Forget> {
    write(store, |tx| forget::detach(tx, &alice(), NOW)).await.forgets
}

/// Does one step after the other, of the given number of rows each; answers how many steps it took and what went.
pub(super) async fn steps(store: &Store, forget: &Forget, step: ForgetStep, rows: i64) -> (usize, Removed) {
    let (mut count, mut sum) = (0, Removed::default());
    loop {
        let forget = forget.clone();
        let Some(removed) = write(store, move |tx| step(tx, &forget, rows)).await else {
            return (count, sum);
        };
        count += 1;
        sum += removed;
    }
}

/// Whose names stand on a tree's entries, in their order.
async fn authors(store: &Store, number: u128) -> Vec<Option<String>> {
    let named = store.read(AllTenants, "suite", move |tx| {
        tx.rows(
            "SELECT user_id FROM entries WHERE group_id = $1 ORDER BY ord",
            &[tree(number).0.0.into()],
            |row| Ok(row.opt_text(0)?.map(str::to_owned)),
        )
    });
    named.await.unwrap()
}

pub async fn a_forgotten_member_loses_its_name_on_what_it_had_written(fixture: impl EngineFixture) {
    let store = fixture.store();
    write(store, |tx| {
        plant(tx, 1, "bob", &["alice"])?;
        fork(tx, 2, 1, "bob")?;
        plant(tx, 3, "bob", &["alice"])?;
        for (key, who) in [("1", "alice"), ("2", "bob"), ("3", "alice")] {
            say(tx, 1, tree(1).1, who, key)?;
            say(tx, 1, tree(2).1, who, key)?;
            say(tx, 3, tree(3).1, who, key)?;
        }
        memberships::delete(tx, tree(3).0, &user("alice"))
    })
    .await;

    let forgets = detach(store).await;
    assert_eq!(count(store, "SELECT COUNT(*) FROM memberships WHERE user_id = 'alice'").await, 0);
    write(store, |tx| {
        memberships::upsert(tx, &tenant(), tree(1).0, &user("alice"), AccessLevel::Writer, NOW)?;
        say(tx, 1, tree(1).1, "alice", "4")
    })
    .await;
    let (count_of_steps, removed) = steps(store, &forgets[0], forget::anonymize, 2).await;

    assert_eq!(removed, Removed { anonymized: 6, ..Removed::default() });
    assert!(count_of_steps >= 5, "ten entries, two at a time, took {count_of_steps} steps");
    let bob = || Some("bob".to_owned());
    assert_eq!(
        authors(store, 1).await,
        [None, None, bob(), bob(), None, None, Some("alice".into())],
        "what it wrote afterwards is its own"
    );
    assert_eq!(authors(store, 3).await, [None, bob(), None], "of a tree that it had left before, too");
    assert_eq!(count(store, "SELECT COUNT(*) FROM memberships WHERE user_id = 'alice'").await, 1);
    assert_eq!(count(store, "SELECT COUNT(*) FROM idempotency_keys WHERE user_id = 'alice'").await, 1);
    assert_eq!(count(store, "SELECT COUNT(*) FROM idempotency_keys WHERE user_id = 'bob'").await, 3);
    assert_eq!(count(store, "SELECT COUNT(*) FROM past_members").await, 0);
}

pub async fn a_forgotten_tree_is_closed_at_once_and_goes_step_by_step(fixture: impl EngineFixture) {
    let store = fixture.store();
    write(store, |tx| {
        plant(tx, 1, "alice", &["bob"])?;
        for number in 2..7 {
            fork(tx, number, 1, "alice")?;
        }
        for key in ["1", "2", "3", "4", "5"] {
            say(tx, 1, tree(1).1, "alice", key)?;
            say(tx, 1, tree(2).1, "bob", key)?;
        }
        plant(tx, 8, "alice", &[])?;
        groups::set_deleted(tx, tree(8).0, Some(NOW))?;
        plant(tx, 9, "bob", &["alice"])?;
        say(tx, 9, tree(9).1, "bob", "1")
    })
    .await;

    let forgets = detach(store).await;
    write(store, |tx| plant(tx, 10, "alice", &[])).await;
    let seen = |number| {
        store.read(AllTenants, "suite", move |tx| {
            Ok::<_, StoreError>(
                rows::head(tx, &tenant(), &user("bob"), tree(number).1)?.map(|head| head.deleted),
            )
        })
    };
    assert_eq!(seen(1).await.unwrap(), Some(true));
    assert_eq!(seen(2).await.unwrap(), Some(true));
    assert_eq!(seen(9).await.unwrap(), Some(false));
    assert_eq!(seen(10).await.unwrap(), Some(false), "what came afterwards is its own");

    let mut rounds = 0;
    let trees = loop {
        let marked = forgets[0].clone();
        let left = write(store, move |tx| {
            let trees = forget::reachable_trees(tx, &marked, 10)?;
            for group in &trees {
                if groups::evict_forks(tx, *group, 2)? {
                    groups::uproot(tx, *group)?;
                    forget::set_unreachable(tx, *group)?;
                }
            }
            Ok(trees.len())
        });
        match left.await {
            0 => break rounds,
            _ => rounds += 1,
        }
    };
    assert!(trees >= 7, "ten keys and five forks, two at a time, took {trees} steps");
    for number in 1..=8 {
        assert_eq!(seen(number).await.unwrap(), None);
    }
    let (entries, removed) = steps(store, &forgets[0], forget::clear_trees, 3).await;
    assert_eq!(removed, Removed::default());
    assert!(entries >= 5, "ten entries and five ancestors, three at a time, took {entries} steps");
    for (what, sql) in [
        ("entries", "SELECT COUNT(*) FROM entries"),
        ("texts", "SELECT COUNT(*) FROM texts"),
        ("unindexed", "SELECT COUNT(*) FROM unindexed"),
        ("keys", "SELECT COUNT(*) FROM idempotency_keys"),
    ] {
        assert_eq!(count(store, sql).await, 1, "the {what} of somebody else");
    }
    for (what, sql) in [
        ("ancestry", "SELECT COUNT(*) FROM ancestry"),
        ("marks", "SELECT COUNT(*) FROM forgotten_groups"),
        ("transfers", "SELECT COUNT(*) FROM transfers"),
    ] {
        assert_eq!(count(store, sql).await, 0, "{what}");
    }
    assert_eq!(count(store, "SELECT COUNT(*) FROM groups").await, 2);
}

pub async fn a_forgotten_scope_goes_step_by_step_and_is_counted(fixture: impl EngineFixture) {
    let store = fixture.store();
    write(store, |tx| {
        for name in ["alice", "bob"] {
            let scope = scopes::lock(tx, &Scope::listed(tenant(), user(name)))?.id.0;
            for number in 1..=5i64 {
                let text = number.to_string();
                let large = vec![7; 3 * 1024 * 1024];
                tx.execute(
                    "INSERT INTO files (scope_id, path, folded_path, revision, change_id, updated_at, chars, document) \
                     VALUES ($1, $2, $2, 1, $3, 1, 1, $4)",
                    &[scope.into(), text.as_str().into(), Uuid::nil().into(), large.as_slice().into()],
                )?;
                tx.execute(
                    "INSERT INTO events (scope_id, block, event_id, timestamp, event) VALUES ($1, 1, $2, 1, $3)",
                    &[scope.into(), text.as_str().into(), b"{}".as_slice().into()],
                )?;
                tx.execute(
                    "INSERT INTO audit (scope_id, sequence, change_id, at, path, revision, record) \
                     VALUES ($1, $2, $3, 1, 'a', 1, $4)",
                    &[
                        scope.into(),
                        number.into(),
                        Uuid::from_u128((scope * 10 + number) as u128).into(),
                        b"{}".as_slice().into(),
                    ],
                )?;
            }
        }
        Ok(())
    })
    .await;

    let forgets = detach(store).await;
    let found = store.read(AllTenants, "suite", |tx| scopes::find(tx, &alice()));
    assert_eq!(found.await.unwrap(), None, "out of reach at once");
    let (count_of_steps, removed) = steps(store, &forgets[0], forget::clear_scope, 4).await;

    assert_eq!(removed, Removed { documents: 5, events: 5, audit: 5, indexed: 5, ..Removed::default() });
    assert!(count_of_steps >= 3, "15 MiB of files took {count_of_steps} steps");
    for sql in ["SELECT COUNT(*) FROM files", "SELECT COUNT(*) FROM events", "SELECT COUNT(*) FROM audit"] {
        assert_eq!(count(store, sql).await, 5, "{sql}");
    }
}

pub async fn the_end_of_one_forget_is_not_the_end_of_another(fixture: impl EngineFixture) {
    let store = fixture.store();
    write(store, |tx| {
        plant(tx, 1, "bob", &["alice"])?;
        say(tx, 1, tree(1).1, "alice", "1")
    })
    .await;
    let first = detach(store).await.remove(0);
    write(store, |tx| {
        memberships::upsert(tx, &tenant(), tree(1).0, &user("alice"), AccessLevel::Writer, NOW)?;
        say(tx, 1, tree(1).1, "alice", "2")
    })
    .await;
    let both = detach(store).await;
    assert_eq!(both.len(), 2, "whoever forgets again carries out what was left, too");

    steps(store, &first, forget::anonymize, 100).await;
    steps(store, &first, forget::blank_changes, 100).await;
    write(store, move |tx| forget::set_cleared(tx, &first)).await;

    assert_eq!(authors(store, 1).await, [None, Some("alice".into())]);
    let left = store.read(AllTenants, "suite", forget::unfinished).await.unwrap();
    assert_eq!(left.len(), 1);
    let unscrubbed = store.read(AllTenants, "suite", forget::unscrubbed).await.unwrap();
    assert!(!unscrubbed.is_empty() && unscrubbed.traces == Traces::Pages);
    let second = left[0].clone();
    steps(store, &second, forget::anonymize, 100).await;
    write(store, move |tx| forget::set_cleared(tx, &second)).await;
    write(store, move |tx| forget::set_scrubbed(tx, &unscrubbed)).await;

    assert_eq!(authors(store, 1).await, [None, None]);
    assert_eq!(count(store, "SELECT COUNT(*) FROM forgotten_users").await, 1, "it may still be on the disk");
    assert_eq!(count(store, "SELECT COUNT(*) FROM forgotten_users WHERE user_id = 'alice'").await, 0);
}
