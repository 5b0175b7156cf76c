//! The behaviours every storage engine has, one named test each, written against the port alone.
//!
//! An engine's test file says how to open it, and passes:
//!
//! ```ignore
//! memtrove_testkit::engine_suite!(open);
//! ```
//!
//! where `open` is an `async fn() -> impl EngineFixture` that makes an empty database with the engine's schema. To add a
//! behaviour: write an `async fn` here and name it in the macro. Tables of the suite's own are made with DDL that SQLite
//! and PostgreSQL read alike.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod changes;
mod embeddings;
mod forget;
mod memories;
mod nodes;
mod statements;
mod vectors;

pub use changes::*;
pub use embeddings::*;
pub use forget::*;
pub use memories::*;
use memtrove_store::{
    AllTenants, Lock, Row, Store, StoreError, TextDocument, TextHit, TextQuery, Traces, TxExt, Value,
};
pub use nodes::*;
pub use statements::*;
use std::collections::BTreeSet;
use std::future::Future;
use std::ops::ControlFlow;
use std::time::Duration;
use tokio::task::JoinSet;
use uuid::Uuid;
pub use vectors::*;

/// An engine under test.
pub trait EngineFixture: Send {
    /// Its store.
    fn store(&self) -> &Store;
    /// Closes it and opens the same database again, as a restart does.
    fn reopen(&mut self) -> impl Future<Output = ()> + Send;
}

/// One `#[tokio::test]` for each behaviour, on engines that `$open` opens.
#[macro_export]
macro_rules! engine_suite {
    ($open:path) => {
        $crate::engine_suite!($open;
            a_value_of_every_type_comes_back_as_it_was,
            nulls_come_back_as_nulls,
            empty_text_and_bytes_are_not_null,
            extreme_integers_come_back,
            unicode_text_comes_back,
            large_values_come_back,
            a_value_of_another_type_is_refused,
            a_null_where_none_may_be_is_refused,
            execute_answers_how_many_rows_it_changed,
            returning_hands_over_what_was_written,
            returning_keeps_the_write_when_the_reader_breaks_off,
            on_conflict_updates_or_ignores,
            any_takes_no_one_and_many_ids,
            a_recursive_query_walks_a_chain,
            a_query_can_be_broken_off,
            an_error_while_reading_rows_is_the_answer,
            a_statement_can_be_used_again,
            placeholders_may_repeat_and_come_in_any_order,
            a_wrong_number_of_parameters_is_refused,
            a_refusing_closure_writes_nothing,
            a_panicking_closure_is_answered_and_writes_nothing,
            a_panicking_read_is_answered,
            a_read_cannot_write,
            a_committed_write_is_visible_to_the_next_read,
            a_unit_of_work_sees_its_own_writes,
            concurrent_increments_lose_nothing,
            a_failing_unit_leaves_its_neighbours_committed,
            a_unit_of_work_reads_one_snapshot,
            a_violated_constraint_is_told_apart,
            after_a_violated_constraint_only_undoing_is_left,
            locked_rows_can_be_read_and_written,
            search_finds_terms_by_their_beginning,
            search_wants_every_word,
            search_takes_any_alternative,
            search_is_confined_to_trees,
            search_never_leaves_its_tenant,
            search_among_very_many_trees,
            search_without_words_finds_nothing,
            search_finds_terms_beyond_ascii,
            search_takes_quotes_and_operators_as_text,
            an_indexed_text_replaces_its_predecessor,
            indexing_twice_in_one_unit_keeps_the_last,
            unindexing_a_text_leaves_the_others,
            unindexing_a_tree_leaves_the_others,
            undone_texts_leave_no_trace,
            many_concurrent_texts_are_all_found,
            rewriting_the_index_loses_nothing_that_is_in_it,
            texts_are_numbered_in_the_order_they_are_written,
            what_was_taken_in_is_no_longer_waiting,
            no_number_that_was_taken_in_is_given_again,
            a_text_that_was_replaced_meanwhile_is_not_taken_in,
            what_is_derived_from_a_text_goes_with_it,
            a_tree_is_read_on_from_the_last_change,
            texts_of_another_model_are_outdated,
            who_is_forgotten_is_no_speaker_any_more,
            a_change_comes_back_as_it_was_recorded,
            every_tenant_has_a_feed_of_its_own,
            changes_are_numbered_in_the_order_of_the_commits_whatever_fails,
            numbers_are_never_used_twice,
            trimming_removes_the_oldest_in_batches,
            forgetting_a_user_blanks_its_changes_step_by_step,
            a_forgotten_member_loses_its_name_on_what_it_had_written,
            a_forgotten_tree_is_closed_at_once_and_goes_step_by_step,
            a_forgotten_scope_goes_step_by_step_and_is_counted,
            the_end_of_one_forget_is_not_the_end_of_another,
            forgotten_memories_say_nothing_before_they_go,
            replaced_texts_go_with_their_memory,
            the_id_of_a_forgotten_memory_is_free,
            a_forgotten_author_is_found_in_scopes_of_others,
            keys_whose_answers_tell_of_a_user_are_forgotten,
            pointers_are_due_when_their_document_changes,
            records_of_memories_are_no_versions_of_files,
            a_memory_is_found_by_the_words_it_says_now,
            one_memory_stands_for_what_several_state,
            of_many_who_state_the_same_at_once_one_is_stored,
            memories_of_older_versions_come_to_be_found_by_their_words,
            a_removed_event_leaves_the_others,
            a_lease_is_one_node_s_until_it_runs_out,
            of_many_who_ask_for_a_lease_one_gets_it,
            a_node_is_there_for_as_long_as_it_says_so,
            a_bucket_gives_no_piece_twice_and_no_more_than_it_holds,
            where_one_bucket_is_empty_nothing_is_drawn_from_the_others,
            events_of_the_stream_have_the_numbers_of_their_changes,
            events_of_the_stream_say_nothing_once_their_memory_is_gone,
            a_trimmed_stream_says_from_where_it_is_whole,
            what_is_similar_is_found_as_it_was_put_last,
            pieces_are_found_with_their_entry,
            filters_come_before_the_limit_of_vectors,
            words_are_found_and_counted_in_their_scope,
            undone_vectors_leave_no_trace,
            a_commit_is_announced_to_those_who_listen,
            committed_data_survives_a_restart,
            a_closed_store_says_so,
        );
    };
    ($open:path; $($behaviour:ident),* $(,)?) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $behaviour() {
                $crate::engine_suite::$behaviour($open().await).await;
            }
        )*
    };
}

/// What a closure of the suite may answer: its own refusal, or the engine's.
#[derive(Debug)]
enum Failure {
    Refused,
    Store(StoreError),
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Failure::Store(error)
    }
}

const VALUES: &str = "CREATE TABLE suite_values (
    id BIGINT PRIMARY KEY, i BIGINT, r DOUBLE PRECISION, t TEXT, b BYTEA, u UUID
)";
const COUNTERS: &str = "CREATE TABLE suite_counters (id BIGINT PRIMARY KEY, n BIGINT NOT NULL)";
const PARENTS: &str = "CREATE TABLE suite_parents (id UUID PRIMARY KEY, parent UUID)";

async fn run(store: &Store, statements: &'static [&'static str]) {
    let ran = store.write(AllTenants, "suite", move |tx| {
        for sql in statements {
            tx.execute(sql, &[])?;
        }
        Ok::<_, StoreError>(())
    });
    ran.await.unwrap();
}

async fn count(store: &Store, sql: &'static str) -> i64 {
    let counted = store.read(AllTenants, "suite", move |tx| tx.first(sql, &[], |row| row.int(0)));
    counted.await.unwrap().unwrap()
}

fn id(number: u128) -> Uuid {
    Uuid::from_u128(0x0190_0000_0000_7000_8000_0000_0000_0000 + number)
}

/// Writes one value into a column and reads it back on another connection.
async fn round_trip<T: Send + 'static>(
    store: &Store,
    column: &'static str,
    bind: impl Fn(&mut dyn FnMut(Value<'_>)) + Send + Sync + 'static,
    get: impl Fn(&dyn Row) -> Result<T, StoreError> + Send + Sync + 'static,
) -> T {
    run(store, &["DELETE FROM suite_values"]).await;
    let written = store.write(AllTenants, "suite", move |tx| {
        let sql = format!("INSERT INTO suite_values (id, {column}) VALUES ($1, $2)");
        let mut changed = Ok(0);
        bind(&mut |value| changed = tx.execute(&sql, &[Value::Int(1), value]));
        changed
    });
    assert_eq!(written.await.unwrap(), 1);
    let read = store.read(AllTenants, "suite", move |tx| {
        tx.first(&format!("SELECT {column} FROM suite_values WHERE id = $1"), &[Value::Int(1)], &get)
    });
    read.await.unwrap().unwrap()
}

async fn text_round_trip(store: &Store, text: &str) {
    let sent = text.to_owned();
    let got =
        round_trip(store, "t", move |bind| bind(sent.as_str().into()), |row| Ok(row.text(0)?.to_owned()))
            .await;
    assert_eq!(got, text);
}

async fn bytes_round_trip(store: &Store, bytes: &[u8]) {
    let sent = bytes.to_owned();
    let got =
        round_trip(store, "b", move |bind| bind(sent.as_slice().into()), |row| Ok(row.bytes(0)?.to_owned()))
            .await;
    assert_eq!(got, bytes);
}

// --- values ---

pub async fn a_value_of_every_type_comes_back_as_it_was(fixture: impl EngineFixture) {
    let store = fixture.store();
    run(store, &[VALUES]).await;
    assert_eq!(round_trip(store, "i", |bind| bind(42.into()), |row| row.int(0)).await, 42);
    assert_eq!(round_trip(store, "r", |bind| bind(Value::Real(0.1)), |row| row.real(0)).await, 0.1);
    // A whole number stays a double, and a tiny one keeps every bit.
    assert_eq!(round_trip(store, "r", |bind| bind(Value::Real(3.0)), |row| row.real(0)).await, 3.0);
    let tiny = f64::MIN_POSITIVE;
    assert_eq!(round_trip(store, "r", move |bind| bind(Value::Real(tiny)), |row| row.real(0)).await, tiny);
    assert_eq!(round_trip(store, "u", |bind| bind(id(7).into()), |row| row.uuid(0)).await, id(7));
    assert_eq!(round_trip(store, "u", |bind| bind(Uuid::nil().into()), |row| row.uuid(0)).await, Uuid::nil());
    text_round_trip(store, "a text").await;
    bytes_round_trip(store, b"bytes\x00with\xffanything").await;
}

pub async fn nulls_come_back_as_nulls(fixture: impl EngineFixture) {
    let store = fixture.store();
    run(store, &[VALUES, "INSERT INTO suite_values (id) VALUES (1)"]).await;
    let nulls = store.read(AllTenants, "suite", |tx| {
        tx.first("SELECT i, r, t, b, u FROM suite_values", &[], |row| {
            Ok(row.opt_int(0)?.is_none()
                && row.opt_real(1)?.is_none()
                && row.opt_text(2)?.is_none()
                && row.opt_bytes(3)?.is_none()
                && row.opt_uuid(4)?.is_none())
        })
    });
    assert_eq!(nulls.await.unwrap(), Some(true));
    for column in ["i", "r", "t", "b", "u"] {
        // Whatever the column's type, an explicit null is one too.
        let null = round_trip(
            store,
            column,
            |bind| bind(Value::Null),
            move |row| match column {
                "i" => Ok(row.opt_int(0)?.is_none()),
                "r" => Ok(row.opt_real(0)?.is_none()),
                "t" => Ok(row.opt_text(0)?.is_none()),
                "b" => Ok(row.opt_bytes(0)?.is_none()),
                _ => Ok(row.opt_uuid(0)?.is_none()),
            },
        );
        assert!(null.await, "column {column}");
    }
}

pub async fn empty_text_and_bytes_are_not_null(fixture: impl EngineFixture) {
    run(fixture.store(), &[VALUES]).await;
    text_round_trip(fixture.store(), "").await;
    bytes_round_trip(fixture.store(), b"").await;
}

pub async fn extreme_integers_come_back(fixture: impl EngineFixture) {
    let store = fixture.store();
    run(store, &[VALUES]).await;
    for number in [i64::MIN, i64::MIN + 1, -1, 0, 1, 1 << 53, (1 << 53) + 1, i64::MAX] {
        let got = round_trip(store, "i", move |bind| bind(number.into()), |row| row.int(0)).await;
        assert_eq!(got, number);
    }
}

pub async fn unicode_text_comes_back(fixture: impl EngineFixture) {
    run(fixture.store(), &[VALUES]).await;
    for text in [
        "żółć",
        "日本語のテキスト",
        "👩🏽‍💻 e\u{301}",
        "\u{10FFFF}\u{FEFF}",
        "tab\tline\r\n'quote' \"double\" $1 %",
    ] {
        text_round_trip(fixture.store(), text).await;
    }
}

pub async fn large_values_come_back(fixture: impl EngineFixture) {
    run(fixture.store(), &[VALUES]).await;
    text_round_trip(fixture.store(), &"ü".repeat(1 << 20)).await;
    let bytes: Vec<u8> = (0..3_000_000u32).map(|n| (n % 251) as u8).collect();
    bytes_round_trip(fixture.store(), &bytes).await;
}

pub async fn a_value_of_another_type_is_refused(fixture: impl EngineFixture) {
    let store = fixture.store();
    run(store, &[VALUES, "INSERT INTO suite_values (id, t) VALUES (1, 'text')"]).await;
    // A damaged page may have such values, where nothing else in the engine sees what belongs into a column.
    let read =
        store.read(AllTenants, "suite", |tx| tx.first("SELECT t FROM suite_values", &[], |row| row.int(0)));
    assert!(matches!(read.await, Err(StoreError::Broken(_) | StoreError::Damaged(_))));
    let read =
        store.read(AllTenants, "suite", |tx| tx.first("SELECT id FROM suite_values", &[], |row| row.uuid(0)));
    assert!(matches!(read.await, Err(StoreError::Broken(_) | StoreError::Damaged(_))));
}

pub async fn a_null_where_none_may_be_is_refused(fixture: impl EngineFixture) {
    let store = fixture.store();
    run(store, &[VALUES, "INSERT INTO suite_values (id) VALUES (1)"]).await;
    let read =
        store.read(AllTenants, "suite", |tx| tx.first("SELECT i FROM suite_values", &[], |row| row.int(0)));
    assert!(matches!(read.await, Err(StoreError::Broken(_))));
}

// --- statements ---

pub async fn execute_answers_how_many_rows_it_changed(fixture: impl EngineFixture) {
    let store = fixture.store();
    run(store, &[COUNTERS, "INSERT INTO suite_counters VALUES (1, 0), (2, 0), (3, 5)"]).await;
    let changed = store.write(AllTenants, "suite", |tx| {
        Ok::<_, StoreError>((
            tx.execute("UPDATE suite_counters SET n = n + $1 WHERE n = $2", &[1.into(), 0.into()])?,
            tx.execute("UPDATE suite_counters SET n = $1 WHERE id = $2", &[1.into(), 99.into()])?,
            tx.execute("DELETE FROM suite_counters WHERE id >= $1", &[2.into()])?,
        ))
    });
    assert_eq!(changed.await.unwrap(), (2, 0, 2));
}

pub async fn returning_hands_over_what_was_written(fixture: impl EngineFixture) {
    let store = fixture.store();
    run(store, &[COUNTERS, "INSERT INTO suite_counters VALUES (1, 10), (2, 20)"]).await;
    let returned = store.write(AllTenants, "suite", |tx| {
        let mut rows =
            tx.rows("UPDATE suite_counters SET n = n + $1 RETURNING id, n", &[1.into()], |row| {
                Ok((row.int(0)?, row.int(1)?))
            })?;
        rows.sort_unstable();
        Ok::<_, StoreError>(rows)
    });
    assert_eq!(returned.await.unwrap(), [(1, 11), (2, 21)]);
}

pub async fn returning_keeps_the_write_when_the_reader_breaks_off(fixture: impl EngineFixture) {
    let store = fixture.store();
    run(store, &[COUNTERS, "INSERT INTO suite_counters VALUES (1, 0), (2, 0), (3, 0)"]).await;
    let first = store.write(AllTenants, "suite", |tx| {
        tx.first("UPDATE suite_counters SET n = 1 RETURNING n", &[], |row| row.int(0))
    });
    assert_eq!(first.await.unwrap(), Some(1));
    assert_eq!(count(store, "SELECT count(*) FROM suite_counters WHERE n = 1").await, 3);
}

pub async fn on_conflict_updates_or_ignores(fixture: impl EngineFixture) {
    let store = fixture.store();
    run(store, &[COUNTERS]).await;
    let ran = store.write(AllTenants, "suite", |tx| {
        let upsert = "INSERT INTO suite_counters (id, n) VALUES ($1, $2)
                      ON CONFLICT (id) DO UPDATE SET n = suite_counters.n + excluded.n RETURNING n";
        let ignore = "INSERT INTO suite_counters (id, n) VALUES ($1, $2) ON CONFLICT (id) DO NOTHING";
        Ok::<_, StoreError>((
            tx.first(upsert, &[1.into(), 5.into()], |row| row.int(0))?,
            tx.first(upsert, &[1.into(), 5.into()], |row| row.int(0))?,
            tx.execute(ignore, &[1.into(), 99.into()])?,
            tx.execute(ignore, &[2.into(), 99.into()])?,
        ))
    });
    assert_eq!(ran.await.unwrap(), (Some(5), Some(10), 0, 1));
}

pub async fn any_takes_no_one_and_many_ids(fixture: impl EngineFixture) {
    let store = fixture.store();
    run(store, &[PARENTS]).await;
    let written = store.write(AllTenants, "suite", |tx| {
        for number in 0..1000 {
            let params = [id(number).into(), id(number % 10).into()];
            tx.execute("INSERT INTO suite_parents VALUES ($1, $2)", &params)?;
        }
        Ok::<_, StoreError>(())
    });
    written.await.unwrap();
    for wanted in [0, 1, 2, 999] {
        let ids: Vec<Uuid> = (0..wanted).map(id).collect();
        let read = store.read(AllTenants, "suite", move |tx| {
            tx.rows(
                "SELECT id FROM suite_parents WHERE id = ANY($1) ORDER BY id",
                &[Value::Uuids(&ids)],
                |row| row.uuid(0),
            )
        });
        assert_eq!(read.await.unwrap(), (0..wanted).map(id).collect::<Vec<_>>());
    }
    // Together with other parameters, ids that do not exist, and ids given twice.
    let read = store.read(AllTenants, "suite", |tx| {
        let ids = [id(5), id(5), id(15), id(2000)];
        tx.rows(
            "SELECT id FROM suite_parents WHERE parent = $2 AND id = ANY($1) AND id <> $3 ORDER BY id",
            &[Value::Uuids(&ids), id(5).into(), id(15).into()],
            |row| row.uuid(0),
        )
    });
    assert_eq!(read.await.unwrap(), [id(5)]);
}

pub async fn a_recursive_query_walks_a_chain(fixture: impl EngineFixture) {
    let store = fixture.store();
    run(store, &[PARENTS]).await;
    let walked = store.write(AllTenants, "suite", |tx| {
        tx.execute("INSERT INTO suite_parents VALUES ($1, NULL)", &[id(0).into()])?;
        for number in 1..50 {
            tx.execute(
                "INSERT INTO suite_parents VALUES ($1, $2)",
                &[id(number).into(), id(number - 1).into()],
            )?;
        }
        tx.rows(
            "WITH RECURSIVE up (id, parent, depth) AS (
                 SELECT id, parent, 0 FROM suite_parents WHERE id = $1
                 UNION ALL
                 SELECT p.id, p.parent, up.depth + 1 FROM suite_parents p JOIN up ON p.id = up.parent
             )
             SELECT id FROM up ORDER BY depth",
            &[id(49).into()],
            |row| row.uuid(0),
        )
    });
    assert_eq!(walked.await.unwrap(), (0..50).rev().map(id).collect::<Vec<_>>());
}

pub async fn a_query_can_be_broken_off(fixture: impl EngineFixture) {
    let store = fixture.store();
    run(store, &[COUNTERS, "INSERT INTO suite_counters VALUES (1, 0), (2, 0), (3, 0), (4, 0)"]).await;
    let seen = store.read(AllTenants, "suite", |tx| {
        let mut seen = Vec::new();
        tx.query("SELECT id FROM suite_counters ORDER BY id", &[], Lock::None, &mut |row| {
            seen.push(row.int(0)?);
            Ok(if seen.len() == 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        })?;
        // The same statement starts from the beginning afterwards.
        let all = tx.rows("SELECT id FROM suite_counters ORDER BY id", &[], |row| row.int(0))?;
        Ok::<_, StoreError>((seen, all))
    });
    assert_eq!(seen.await.unwrap(), (vec![1, 2], vec![1, 2, 3, 4]));
}

pub async fn an_error_while_reading_rows_is_the_answer(fixture: impl EngineFixture) {
    let store = fixture.store();
    run(store, &[COUNTERS, "INSERT INTO suite_counters VALUES (1, 0), (2, 0)"]).await;
    let read = store.read(AllTenants, "suite", |tx| {
        let rows = tx
            .rows("SELECT id FROM suite_counters", &[], |_| Err::<(), _>(StoreError::Broken("mine".into())));
        // It is the reader's, not the database's: the unit of work may go on.
        assert!(matches!(rows, Err(StoreError::Broken(why)) if why == "mine"));
        tx.rows("SELECT id FROM suite_counters ORDER BY id", &[], |row| row.int(0))
    });
    assert_eq!(read.await.unwrap(), [1, 2]);
}

pub async fn a_statement_can_be_used_again(fixture: impl EngineFixture) {
    let store = fixture.store();
    run(store, &[COUNTERS]).await;
    let written = store.write(AllTenants, "suite", |tx| {
        for number in 0..500 {
            tx.execute(
                "INSERT INTO suite_counters (id, n) VALUES ($1, $2)",
                &[number.into(), (number * 2).into()],
            )?;
            let n =
                tx.first("SELECT n FROM suite_counters WHERE id = $1", &[number.into()], |row| row.int(0))?;
            assert_eq!(n, Some(number * 2));
        }
        Ok::<_, StoreError>(())
    });
    written.await.unwrap();
    // More statements than any cache holds, and the first ones again.
    let read = store.read(AllTenants, "suite", |tx| {
        for number in (0..2000).chain(0..10) {
            let sql = format!("SELECT n + {number} FROM suite_counters WHERE id = $1");
            assert_eq!(tx.first(&sql, &[1.into()], |row| row.int(0))?, Some(number + 2));
        }
        Ok::<_, StoreError>(())
    });
    read.await.unwrap();
}

pub async fn placeholders_may_repeat_and_come_in_any_order(fixture: impl EngineFixture) {
    let store = fixture.store();
    run(store, &[COUNTERS, "INSERT INTO suite_counters VALUES (1, 10), (2, 20)"]).await;
    let read = store.read(AllTenants, "suite", |tx| {
        tx.rows(
            "SELECT n FROM suite_counters WHERE (id = $2 OR n = $1) AND id = $2 AND '$3' = '$3'",
            &[10.into(), 2.into()],
            |row| row.int(0),
        )
    });
    assert_eq!(read.await.unwrap(), [20]);
}

pub async fn a_wrong_number_of_parameters_is_refused(fixture: impl EngineFixture) {
    let store = fixture.store();
    run(store, &[COUNTERS]).await;
    let sql = "SELECT n FROM suite_counters WHERE id = $1";
    let few = store.read(AllTenants, "suite", move |tx| tx.rows(sql, &[], |row| row.int(0)));
    assert!(matches!(few.await, Err(StoreError::Broken(_))));
    let many =
        store.read(AllTenants, "suite", move |tx| tx.rows(sql, &[1.into(), 2.into()], |row| row.int(0)));
    assert!(matches!(many.await, Err(StoreError::Broken(_))));
}

// --- units of work ---

pub async fn a_refusing_closure_writes_nothing(fixture: impl EngineFixture) {
    let store = fixture.store();
    run(store, &[COUNTERS]).await;
    let refused = store.write(AllTenants, "suite", |tx| {
        tx.execute("INSERT INTO suite_counters VALUES (1, 0)", &[])?;
        Err::<(), _>(Failure::Refused)
    });
    assert!(matches!(refused.await, Err(Failure::Refused)));
    assert_eq!(count(store, "SELECT count(*) FROM suite_counters").await, 0);
}

pub async fn a_panicking_closure_is_answered_and_writes_nothing(fixture: impl EngineFixture) {
    let store = fixture.store();
    run(store, &[COUNTERS]).await;
    let mut units = JoinSet::new();
    for number in 0..30 {
        let store = store.clone();
        units.spawn(async move {
            let written = store.write(AllTenants, "suite", move |tx| {
                tx.execute("INSERT INTO suite_counters VALUES ($1, 0)", &[number.into()])?;
                assert!(number % 3 != 0, "a panic that the suite asks for");
                Ok::<_, StoreError>(())
            });
            (number, written.await)
        });
    }
    while let Some(unit) = units.join_next().await {
        match unit.unwrap() {
            (number, Err(StoreError::Broken(_))) if number % 3 == 0 => {}
            (number, Ok(())) if number % 3 != 0 => {}
            (number, answer) => panic!("{number} was answered {answer:?}"),
        }
    }
    assert_eq!(count(store, "SELECT count(*) FROM suite_counters").await, 20);
}

pub async fn a_panicking_read_is_answered(fixture: impl EngineFixture) {
    let store = fixture.store();
    run(store, &[COUNTERS, "INSERT INTO suite_counters VALUES (1, 0)"]).await;
    // More often than there are readers, in the midst of a query.
    for _ in 0..10 {
        let read = store.read(AllTenants, "suite", |tx| {
            tx.rows("SELECT id FROM suite_counters", &[], |_| -> Result<(), _> {
                panic!("a panic that the suite asks for")
            })
        });
        assert!(matches!(read.await, Err(StoreError::Broken(_))));
    }
    assert_eq!(count(store, "SELECT count(*) FROM suite_counters").await, 1);
}

pub async fn a_read_cannot_write(fixture: impl EngineFixture) {
    let store = fixture.store();
    run(store, &[COUNTERS]).await;
    let written =
        store.read(AllTenants, "suite", |tx| tx.execute("INSERT INTO suite_counters VALUES (1, 0)", &[]));
    assert!(matches!(written.await, Err(StoreError::Broken(_))));
    let indexed = store.read(AllTenants, "suite", |tx| tx.index_text(text(1, 1, "word")));
    assert!(matches!(indexed.await, Err(StoreError::Broken(_))));
    assert_eq!(count(store, "SELECT count(*) FROM suite_counters").await, 0);
}

pub async fn a_committed_write_is_visible_to_the_next_read(fixture: impl EngineFixture) {
    let store = fixture.store();
    run(store, &[COUNTERS, "INSERT INTO suite_counters VALUES (1, 0)"]).await;
    for number in 1..=200 {
        let written = store.write(AllTenants, "suite", move |tx| {
            tx.execute("UPDATE suite_counters SET n = $1 WHERE id = 1", &[number.into()])
        });
        written.await.unwrap();
        assert_eq!(count(store, "SELECT n FROM suite_counters WHERE id = 1").await, number);
    }
}

pub async fn a_unit_of_work_sees_its_own_writes(fixture: impl EngineFixture) {
    let store = fixture.store();
    run(store, &[COUNTERS]).await;
    let seen = store.write(AllTenants, "suite", |tx| {
        tx.execute("INSERT INTO suite_counters VALUES (1, 7)", &[])?;
        tx.first("SELECT n FROM suite_counters WHERE id = 1", &[], |row| row.int(0))
    });
    assert_eq!(seen.await.unwrap(), Some(7));
}

pub async fn concurrent_increments_lose_nothing(fixture: impl EngineFixture) {
    let store = fixture.store();
    run(store, &[COUNTERS, "INSERT INTO suite_counters VALUES (1, 0)"]).await;
    let mut units = JoinSet::new();
    for _ in 0..16 {
        let store = store.clone();
        units.spawn(async move {
            for _ in 0..50 {
                let written = store.write(AllTenants, "suite", |tx| {
                    let n =
                        tx.first_locked("SELECT n FROM suite_counters WHERE id = 1", &[], |row| row.int(0))?;
                    let n = n.unwrap() + 1;
                    tx.execute("UPDATE suite_counters SET n = $1 WHERE id = 1", &[n.into()])
                });
                written.await.unwrap();
            }
        });
    }
    units.join_all().await;
    assert_eq!(count(store, "SELECT n FROM suite_counters").await, 800);
}

pub async fn a_failing_unit_leaves_its_neighbours_committed(fixture: impl EngineFixture) {
    let store = fixture.store();
    run(store, &[COUNTERS, "INSERT INTO suite_counters VALUES (-1, 0)"]).await;
    // Something that holds the writer, so that the rest queues up behind it.
    let blocker = store.clone();
    let blocker = tokio::spawn(async move {
        let slept = blocker.write(AllTenants, "suite", |tx| {
            tx.execute("UPDATE suite_counters SET n = 1 WHERE id = -1", &[])?;
            std::thread::sleep(Duration::from_millis(50));
            Ok::<_, StoreError>(())
        });
        slept.await.unwrap();
    });
    let mut units = JoinSet::new();
    for number in 0..90 {
        let store = store.clone();
        units.spawn(async move {
            let written = store.write(AllTenants, "suite", move |tx| {
                tx.execute("INSERT INTO suite_counters VALUES ($1, 0)", &[number.into()])?;
                match number % 3 {
                    0 => Ok(()),
                    1 => Err(Failure::Refused),
                    _ => {
                        tx.execute("INSERT INTO suite_counters VALUES (-1, 0)", &[])?;
                        Ok(())
                    }
                }
            });
            match (number % 3, written.await) {
                (0, Ok(()))
                | (1, Err(Failure::Refused))
                | (2, Err(Failure::Store(StoreError::Constraint(_)))) => {}
                (_, answer) => panic!("{number} was answered {answer:?}"),
            }
        });
    }
    units.join_all().await;
    blocker.await.unwrap();
    assert_eq!(count(store, "SELECT count(*) FROM suite_counters WHERE id >= 0").await, 30);
    let others = "SELECT count(*) FROM suite_counters WHERE id >= 0 AND id % 3 <> 0";
    assert_eq!(count(store, others).await, 0);
}

pub async fn a_unit_of_work_reads_one_snapshot(fixture: impl EngineFixture) {
    let store = fixture.store();
    run(store, &[COUNTERS, "INSERT INTO suite_counters VALUES (1, 0), (2, 0)"]).await;
    let writer = store.clone();
    let writing = tokio::spawn(async move {
        for _ in 0..200 {
            let written = writer
                .write(AllTenants, "suite", |tx| tx.execute("UPDATE suite_counters SET n = n + 1", &[]));
            written.await.unwrap();
        }
    });
    for _ in 0..20 {
        let read = store.read(AllTenants, "suite", |tx| {
            let one = tx.first("SELECT n FROM suite_counters WHERE id = 1", &[], |row| row.int(0))?;
            std::thread::sleep(Duration::from_millis(3));
            let other = tx.first("SELECT n FROM suite_counters WHERE id = 2", &[], |row| row.int(0))?;
            Ok::<_, StoreError>((one, other))
        });
        let (one, other) = read.await.unwrap();
        assert_eq!(one, other);
    }
    writing.await.unwrap();
}

pub async fn a_violated_constraint_is_told_apart(fixture: impl EngineFixture) {
    let store = fixture.store();
    run(store, &[COUNTERS, "INSERT INTO suite_counters VALUES (1, 0)"]).await;
    let twice =
        store.write(AllTenants, "suite", |tx| tx.execute("INSERT INTO suite_counters VALUES (1, 1)", &[]));
    assert!(matches!(twice.await, Err(StoreError::Constraint(_))));
    let null =
        store.write(AllTenants, "suite", |tx| tx.execute("INSERT INTO suite_counters VALUES (2, NULL)", &[]));
    assert!(matches!(null.await, Err(StoreError::Constraint(_))));
    let wrong =
        store.write(AllTenants, "suite", |tx| tx.execute("INSERT INTO no_such_table VALUES (1)", &[]));
    assert!(matches!(wrong.await, Err(StoreError::Broken(_))));
}

pub async fn after_a_violated_constraint_only_undoing_is_left(fixture: impl EngineFixture) {
    let store = fixture.store();
    run(store, &[COUNTERS, "INSERT INTO suite_counters VALUES (1, 0)"]).await;
    let written = store.write(AllTenants, "suite", |tx| {
        tx.execute("INSERT INTO suite_counters VALUES (2, 0)", &[])?;
        let refused = tx.execute("INSERT INTO suite_counters VALUES (1, 0)", &[]);
        assert!(matches!(refused, Err(StoreError::Constraint(_))));
        let after = tx.execute("INSERT INTO suite_counters VALUES (3, 0)", &[]);
        assert!(after.is_err(), "a statement ran after one had failed");
        // A closure that looks away is not believed.
        Ok::<_, StoreError>(())
    });
    assert!(written.await.is_err());
    assert_eq!(count(store, "SELECT count(*) FROM suite_counters").await, 1);
}

pub async fn locked_rows_can_be_read_and_written(fixture: impl EngineFixture) {
    let store = fixture.store();
    run(store, &[COUNTERS, "INSERT INTO suite_counters VALUES (1, 5), (2, 6)"]).await;
    for lock in [Lock::None, Lock::Rows, Lock::SkipLocked] {
        let read = store.write(AllTenants, "suite", move |tx| {
            let mut all = Vec::new();
            tx.query("SELECT n FROM suite_counters ORDER BY id", &[], lock, &mut |row| {
                all.push(row.int(0)?);
                Ok(ControlFlow::Continue(()))
            })?;
            tx.execute("UPDATE suite_counters SET n = n WHERE id = 1", &[])?;
            Ok::<_, StoreError>(all)
        });
        assert_eq!(read.await.unwrap(), [5, 6], "{lock:?}");
    }
}

// --- full text ---

fn text(number: u128, group: u128, terms: &str) -> TextDocument {
    TextDocument {
        is_new: false,
        id: id(number),
        tenant: "suite".into(),
        group: id(1_000_000 + group),
        conversation: id(2_000_000 + number),
        text: format!("the text of {terms}"),
        by_agent: None,
        terms: terms.into(),
    }
}

async fn index(store: &Store, documents: Vec<TextDocument>) {
    let indexed = store
        .write(AllTenants, "suite", move |tx| documents.iter().try_for_each(|d| tx.index_text(d.clone())));
    indexed.await.unwrap();
}

/// What a hit says: the document, its tree, its conversation, its text.
type Hit = (Uuid, Uuid, Uuid, String);

async fn hits(store: &Store, query: TextQuery) -> Vec<Hit> {
    let found = store.read(AllTenants, "suite", move |tx| {
        let mut hits = Vec::new();
        tx.search_text(&query, &mut |TextHit { id, group, conversation, text }| {
            hits.push((id, group, conversation, text.to_owned()));
            Ok(ControlFlow::Continue(()))
        })?;
        Ok::<_, StoreError>(hits)
    });
    found.await.unwrap()
}

/// The numbers of the documents that have all the words, where `a|b` gives alternatives.
async fn find(store: &Store, words: &[&str], groups: Option<&[u128]>) -> BTreeSet<u128> {
    let query = TextQuery {
        tenant: "suite".into(),
        words: words.iter().map(|word| word.split('|').map(str::to_owned).collect()).collect(),
        groups: groups.map(|groups| groups.iter().map(|group| id(1_000_000 + group)).collect()),
    };
    hits(store, query).await.iter().map(|hit| hit.0.as_u128() - id(0).as_u128()).collect()
}

fn set<const N: usize>(numbers: [u128; N]) -> BTreeSet<u128> {
    numbers.into()
}

pub async fn search_finds_terms_by_their_beginning(fixture: impl EngineFixture) {
    let store = fixture.store();
    index(store, vec![text(1, 1, "weather forecast"), text(2, 1, "weathered wood"), text(3, 1, "wet")]).await;
    assert_eq!(find(store, &["weather"], None).await, set([1, 2]));
    assert_eq!(find(store, &["we"], None).await, set([1, 2, 3]));
    assert_eq!(find(store, &["weathered"], None).await, set([2]));
    assert_eq!(find(store, &["eather"], None).await, set([]));
    let found =
        hits(store, TextQuery { tenant: "suite".into(), words: vec![vec!["forecast".into()]], groups: None })
            .await;
    assert_eq!(found, [(id(1), id(1_000_001), id(2_000_001), "the text of weather forecast".to_owned())]);
}

pub async fn search_wants_every_word(fixture: impl EngineFixture) {
    let store = fixture.store();
    index(store, vec![text(1, 1, "red apple"), text(2, 1, "green apple"), text(3, 1, "red car")]).await;
    assert_eq!(find(store, &["red", "apple"], None).await, set([1]));
    assert_eq!(find(store, &["apple", "red"], None).await, set([1]));
    assert_eq!(find(store, &["apple", "blue"], None).await, set([]));
}

pub async fn search_takes_any_alternative(fixture: impl EngineFixture) {
    let store = fixture.store();
    index(store, vec![text(1, 1, "run fast"), text(2, 1, "running fast"), text(3, 1, "walk fast")]).await;
    assert_eq!(find(store, &["running|run"], None).await, set([1, 2]));
    assert_eq!(find(store, &["walk|runn", "fast"], None).await, set([2, 3]));
    assert_eq!(find(store, &["swim|fly"], None).await, set([]));
}

pub async fn search_is_confined_to_trees(fixture: impl EngineFixture) {
    let store = fixture.store();
    index(store, vec![text(1, 1, "secret plan"), text(2, 2, "secret plan"), text(3, 3, "secret plan")]).await;
    assert_eq!(find(store, &["secret"], Some(&[1])).await, set([1]));
    assert_eq!(find(store, &["secret", "plan"], Some(&[1, 3])).await, set([1, 3]));
    assert_eq!(find(store, &["secret"], Some(&[])).await, set([]));
    assert_eq!(find(store, &["secret"], Some(&[9])).await, set([]));
    assert_eq!(find(store, &["secret"], None).await, set([1, 2, 3]));
    // A tree's id is not a word that a text could have.
    let name = id(1_000_001).simple().to_string();
    assert_eq!(find(store, &[&name], None).await, set([]));
}

pub async fn search_never_leaves_its_tenant(fixture: impl EngineFixture) {
    let store = fixture.store();
    let other = TextDocument { tenant: "other".into(), ..text(2, 2, "secret plan") };
    index(store, vec![text(1, 1, "secret plan"), other]).await;
    assert_eq!(find(store, &["secret"], None).await, set([1]));
    // Not even when its trees are very many, or named.
    let many: Vec<u128> = (0..500).collect();
    assert_eq!(find(store, &["plan"], Some(&many)).await, set([1]));
}

pub async fn search_among_very_many_trees(fixture: impl EngineFixture) {
    let store = fixture.store();
    index(store, (0..3000).map(|number| text(number, number, "common word")).collect()).await;
    let even: Vec<u128> = (0..3000).step_by(2).collect();
    assert_eq!(find(store, &["common"], Some(&even)).await, even.iter().copied().collect());
}

pub async fn search_without_words_finds_nothing(fixture: impl EngineFixture) {
    let store = fixture.store();
    index(store, vec![text(1, 1, "something")]).await;
    assert_eq!(find(store, &[], None).await, set([]));
    assert_eq!(find(store, &[], Some(&[1])).await, set([]));
    assert_eq!(find(store, &[""], None).await, set([]));
    assert_eq!(find(store, &["", "something"], None).await, set([]));
}

pub async fn search_finds_terms_beyond_ascii(fixture: impl EngineFixture) {
    let store = fixture.store();
    index(
        store,
        vec![
            text(1, 1, "żółw café"),
            text(2, 1, "東京 京都 タワー"),
            text(3, 1, "москва мир"),
            text(4, 1, "zolw"),
        ],
    )
    .await;
    assert_eq!(find(store, &["żół"], None).await, set([1]));
    assert_eq!(find(store, &["京都"], None).await, set([2]));
    assert_eq!(find(store, &["東"], None).await, set([2]));
    assert_eq!(find(store, &["моск", "мир"], None).await, set([3]));
    assert_eq!(find(store, &["zol"], None).await, set([4]));
}

pub async fn search_takes_quotes_and_operators_as_text(fixture: impl EngineFixture) {
    let store = fixture.store();
    index(store, vec![text(1, 1, "and or not near"), text(2, 1, "plain")]).await;
    assert_eq!(find(store, &["and"], None).await, set([1]));
    assert_eq!(find(store, &["NOT|not"], None).await, set([1]));
    // What they find does not matter; that they are neither an error nor an operator does.
    for word in [
        "\"",
        "pl\"ain",
        "\" OR \"plain",
        "plain*",
        "terms:plain",
        "(plain",
        "pl\0ain",
        "'",
        "^plain",
        "a & !b",
    ] {
        let found = find(store, &[word], Some(&[2])).await;
        assert!(found.is_subset(&set([2])), "{word:?} found {found:?}");
        assert!(!find(store, &[word, "near"], None).await.contains(&2), "{word:?}");
    }
}

pub async fn an_indexed_text_replaces_its_predecessor(fixture: impl EngineFixture) {
    let store = fixture.store();
    index(store, vec![text(1, 1, "old words"), text(2, 1, "old neighbour")]).await;
    index(store, vec![text(1, 2, "new words")]).await;
    assert_eq!(find(store, &["old"], None).await, set([2]));
    assert_eq!(find(store, &["new"], None).await, set([1]));
    assert_eq!(find(store, &["words"], Some(&[1])).await, set([]));
    assert_eq!(find(store, &["words"], Some(&[2])).await, set([1]));
    assert_eq!(count(store, "SELECT count(*) FROM texts").await, 2);
    assert_eq!(count(store, "SELECT count(*) FROM texts WHERE text = 'the text of new words'").await, 1);
}

pub async fn indexing_twice_in_one_unit_keeps_the_last(fixture: impl EngineFixture) {
    let store = fixture.store();
    index(store, vec![text(1, 1, "first"), text(1, 1, "second"), text(1, 1, "third")]).await;
    assert_eq!(find(store, &["first|second"], None).await, set([]));
    assert_eq!(find(store, &["third"], None).await, set([1]));
}

pub async fn unindexing_a_text_leaves_the_others(fixture: impl EngineFixture) {
    let store = fixture.store();
    index(store, vec![text(1, 1, "word"), text(2, 1, "word")]).await;
    let unindexed = store.write(AllTenants, "suite", |tx| {
        tx.index_text(text(3, 1, "word"))?;
        tx.unindex_text(id(3))?;
        tx.unindex_text(id(1))?;
        tx.unindex_text(id(999))
    });
    unindexed.await.unwrap();
    assert_eq!(find(store, &["word"], None).await, set([2]));
    assert_eq!(count(store, "SELECT count(*) FROM texts").await, 1);
}

pub async fn unindexing_a_tree_leaves_the_others(fixture: impl EngineFixture) {
    let store = fixture.store();
    index(store, (0..50).map(|number| text(number, number % 2, "word")).collect()).await;
    let unindexed = store.write(AllTenants, "suite", |tx| tx.unindex_group(id(1_000_001)));
    unindexed.await.unwrap();
    assert_eq!(find(store, &["word"], None).await, (0..50).step_by(2).collect());
    assert_eq!(find(store, &["word"], Some(&[1])).await, set([]));
    assert_eq!(count(store, "SELECT count(*) FROM texts").await, 25);
    // In order within a unit of work: what comes after the removal stays.
    let both = store.write(AllTenants, "suite", |tx| {
        tx.index_text(text(60, 0, "gone"))?;
        tx.unindex_group(id(1_000_000))?;
        tx.index_text(text(61, 0, "stays"))
    });
    both.await.unwrap();
    assert_eq!(find(store, &["word|gone|stays"], None).await, set([61]));
    let none = store.write(AllTenants, "suite", |tx| tx.unindex_group(id(5)));
    none.await.unwrap();
}

pub async fn undone_texts_leave_no_trace(fixture: impl EngineFixture) {
    let store = fixture.store();
    index(store, vec![text(1, 1, "kept")]).await;
    let mut units = JoinSet::new();
    for number in 100..160 {
        let store = store.clone();
        units.spawn(async move {
            let written = store.write(AllTenants, "suite", move |tx| {
                tx.index_text(text(number, 2, "maybe"))?;
                match number % 3 {
                    0 => Ok(()),
                    1 => {
                        tx.unindex_group(id(1_000_001))?;
                        Err(Failure::Refused)
                    }
                    _ => panic!("a panic that the suite asks for"),
                }
            });
            assert_eq!(written.await.is_ok(), number % 3 == 0);
        });
    }
    units.join_all().await;
    assert_eq!(find(store, &["kept"], None).await, set([1]));
    assert_eq!(find(store, &["maybe"], None).await, (100..160).filter(|number| number % 3 == 0).collect());
    assert_eq!(count(store, "SELECT count(*) FROM texts").await, 21);
}

pub async fn many_concurrent_texts_are_all_found(fixture: impl EngineFixture) {
    let store = fixture.store();
    let mut units = JoinSet::new();
    for number in 0..400 {
        let store = store.clone();
        units.spawn(async move {
            index(&store, vec![text(number, number % 7, &format!("shared n{number}x"))]).await;
            assert_eq!(find(&store, &[&format!("n{number}x")], None).await, set([number]));
        });
    }
    units.join_all().await;
    assert_eq!(find(store, &["shared"], None).await.len(), 400);
}

// --- life of a store ---

pub async fn rewriting_the_index_loses_nothing_that_is_in_it(fixture: impl EngineFixture) {
    let store = fixture.store();
    index(store, (0..200).map(|n| text(n, n % 3, &format!("walrus{n}"))).collect()).await;
    let removed = store.write(AllTenants, "suite", |tx| {
        (0..200).step_by(2).try_for_each(|n| tx.unindex_text(id(n)))?;
        tx.unindex_group(id(1_000_001))
    });
    removed.await.unwrap();
    let (mut others, mut begun) = (200, None);
    loop {
        begun = store.write(AllTenants, "suite", move |tx| tx.compact_texts(begun)).await.unwrap();
        index(store, vec![text(others, 0, "walrus")]).await;
        others += 1;
        if begun.is_none() {
            break;
        }
    }
    assert!(store.scrub(Traces::Texts).await.unwrap(), "nobody reads");
    let expected = (0..200).filter(|n| n % 2 == 1 && n % 3 != 1).chain(200..others).collect();
    assert_eq!(find(store, &["walrus"], None).await, expected);
}

pub async fn committed_data_survives_a_restart(mut fixture: impl EngineFixture) {
    run(fixture.store(), &[COUNTERS]).await;
    for round in 0..3 {
        let store = fixture.store();
        let mut units = JoinSet::new();
        for number in 0..50 {
            let store = store.clone();
            units.spawn(async move {
                let written = store.write(AllTenants, "suite", move |tx| {
                    tx.index_text(text(round * 50 + number, 1, "durable"))?;
                    tx.execute(
                        "INSERT INTO suite_counters VALUES ($1, 0)",
                        &[((round * 50 + number) as i64).into()],
                    )
                });
                written.await.unwrap();
            });
        }
        units.join_all().await;
        fixture.reopen().await;
        let expected = (round as i64 + 1) * 50;
        assert_eq!(count(fixture.store(), "SELECT count(*) FROM suite_counters").await, expected);
        assert_eq!(find(fixture.store(), &["durable"], None).await.len() as i64, expected);
    }
}

pub async fn a_closed_store_says_so(fixture: impl EngineFixture) {
    let store = fixture.store();
    run(store, &[COUNTERS]).await;
    assert!(store.health().total >= 1);
    assert!(!store.describe().is_empty());
    store.close();
    store.close();
    let read = store.read(AllTenants, "suite", |tx| tx.rows("SELECT 1", &[], |row| row.int(0)));
    assert!(matches!(read.await, Err(StoreError::Unavailable(_))));
    let written = store.write(AllTenants, "suite", |tx| tx.execute("DELETE FROM suite_counters", &[]));
    assert!(matches!(written.await, Err(StoreError::Unavailable(_))));
}
