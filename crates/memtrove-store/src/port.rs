//! The port between repositories and engines: one transaction, portable SQL, typed values.

use crate::StoreError;
use crate::memories::segments::SegmentFolder;
use crate::vault::Vault;
use crate::vectors::VectorIndex;
use std::ops::ControlFlow;
use std::sync::Arc;
use uuid::Uuid;

/// A parameter of a statement.
#[derive(Debug, Clone, Copy)]
pub enum Value<'a> {
    /// SQL NULL.
    Null,
    /// A 64-bit integer; instants are microseconds, flags are 0 and 1.
    Int(i64),
    /// A double.
    Real(f64),
    Text(&'a str),
    Bytes(&'a [u8]),
    Uuid(Uuid),
    /// Several UUIDs, for `= ANY($n)`.
    Uuids(&'a [Uuid]),
    /// Several integers, for `= ANY($n)`.
    Ints(&'a [i64]),
}

impl From<i64> for Value<'_> {
    fn from(value: i64) -> Self {
        Value::Int(value)
    }
}

impl From<f64> for Value<'_> {
    fn from(value: f64) -> Self {
        Value::Real(value)
    }
}

impl From<Uuid> for Value<'_> {
    fn from(value: Uuid) -> Self {
        Value::Uuid(value)
    }
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(value: &'a str) -> Self {
        Value::Text(value)
    }
}

impl<'a> From<&'a [u8]> for Value<'a> {
    fn from(value: &'a [u8]) -> Self {
        Value::Bytes(value)
    }
}

impl<'a, T: Into<Value<'a>>> From<Option<T>> for Value<'a> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Value::Null, Into::into)
    }
}

/// One row of a result. Columns are counted from 0; a value of another type than asked for is a defect of the schema
/// or the statement and comes back as [`StoreError::Broken`], or damage where the engine itself does not keep types apart.
pub trait Row {
    /// An integer.
    fn opt_int(&self, column: usize) -> Result<Option<i64>, StoreError>;
    /// A double.
    fn opt_real(&self, column: usize) -> Result<Option<f64>, StoreError>;
    /// Text, borrowed from the row.
    fn opt_text(&self, column: usize) -> Result<Option<&str>, StoreError>;
    /// Bytes, borrowed from the row.
    fn opt_bytes(&self, column: usize) -> Result<Option<&[u8]>, StoreError>;
    fn opt_uuid(&self, column: usize) -> Result<Option<Uuid>, StoreError>;

    /// An integer that is never null.
    fn int(&self, column: usize) -> Result<i64, StoreError> {
        self.opt_int(column)?.ok_or_else(|| unexpected_null(column))
    }
    /// A double that is never null.
    fn real(&self, column: usize) -> Result<f64, StoreError> {
        self.opt_real(column)?.ok_or_else(|| unexpected_null(column))
    }
    /// Text that is never null.
    fn text(&self, column: usize) -> Result<&str, StoreError> {
        self.opt_text(column)?.ok_or_else(|| unexpected_null(column))
    }
    /// Bytes that are never null.
    fn bytes(&self, column: usize) -> Result<&[u8], StoreError> {
        self.opt_bytes(column)?.ok_or_else(|| unexpected_null(column))
    }
    /// A UUID that is never null.
    fn uuid(&self, column: usize) -> Result<Uuid, StoreError> {
        self.opt_uuid(column)?.ok_or_else(|| unexpected_null(column))
    }
}

fn unexpected_null(column: usize) -> StoreError {
    StoreError::Broken(format!("column {column} is null"))
}

/// What happens to the rows a query reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lock {
    /// Nothing.
    None,
    /// They stay locked until the unit of work ends; others wait. (The embedded engine has one writer, so every write
    /// already holds this lock.)
    Rows,
    /// As `Rows`, but rows that somebody else holds are left out instead of waited for.
    SkipLocked,
}

/// A text to be found by full-text search: one row of the `texts` table and its terms in the index.
#[derive(Debug, Clone)]
pub struct TextDocument {
    /// The entry it belongs to; what a hit names.
    pub id: Uuid,
    /// The tenant it belongs to: no search leaves it.
    pub tenant: String,
    /// The tree it belongs to: searches are confined to trees.
    pub group: Uuid,
    /// The conversation that stores the entry: hits may be grouped by it.
    pub conversation: Uuid,
    /// Whether no text stands under its id, for sure.
    pub is_new: bool,
    /// The text itself, for highlights.
    pub text: String,
    /// Whether the agent said it, where that is known; what was known of the text it replaces stays.
    pub by_agent: Option<bool>,
    /// The terms of the text, as `memtrove_core::text` analyses it, separated by spaces.
    pub terms: String,
}

/// A full-text query.
#[derive(Debug, Clone)]
pub struct TextQuery {
    /// Only documents of this tenant.
    pub tenant: String,
    /// Each inner list holds alternatives for one word; a hit has, for every word, a term that starts with one of them.
    pub words: Vec<Vec<String>>,
    /// Only documents of these trees; `None` is every tree.
    pub groups: Option<Vec<Uuid>>,
}

/// A document that matches. How well is not the engine's to say: `memtrove_core::text` scores the text, so that every
/// engine ranks alike and no user's ranking moves with what others store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextHit<'a> {
    /// The entry.
    pub id: Uuid,
    /// Its tree.
    pub group: Uuid,
    /// The conversation that stores it.
    pub conversation: Uuid,
    /// The text that was indexed.
    pub text: &'a str,
}

/// A rewriting of the full-text index that is under way; the number means something to the engine alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Compaction(pub u64);

/// What a look at some pages of the database found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StalePages {
    /// Pages that hold something in space they do not use.
    pub pages: Vec<i64>,
    /// Where to look next; `None` when every page was looked at.
    pub next: Option<i64>,
}

/// A change to be told of in the feed: references, never content.
#[derive(Debug, Clone, Copy)]
pub struct FeedEntry<'a> {
    /// Whose feed.
    pub tenant: &'a str,
    /// When.
    pub at: i64,
    /// What happened, in the feed's words.
    pub kind: &'a str,
    /// Whose it is, who did it, or which member it is about.
    pub user: Option<&'a str>,
    /// What it happened to.
    pub resource: &'a str,
    /// Which version or part of it.
    pub version: Option<&'a str>,
}

/// What is known of a change that was put into the feed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recorded {
    /// It has this number.
    Numbered(i64),
    /// It gets its number after the commit, from [`Tx::number_changes`]; until then it waits under this one, which no other
    /// change has.
    Waiting(i64),
}

/// Handles one row; says whether to go on.
pub type EachRow<'a> = &'a mut dyn FnMut(&dyn Row) -> Result<ControlFlow<()>, StoreError>;

/// A transaction on one connection.
///
/// SQL is the portable subset: `$1` placeholders, `ON CONFLICT`, `RETURNING`, recursive CTEs, `= ANY($n)` for
/// [`Value::Uuids`] and [`Value::Ints`]. Statements are prepared once per connection and reused.
pub trait Tx {
    /// What seals and opens content of this store; used through [`crate::vault::seal`] and [`crate::vault::open`].
    fn vault(&self) -> &Arc<Vault>;

    /// Runs a statement and answers how many rows it changed.
    fn execute(&mut self, sql: &str, params: &[Value<'_>]) -> Result<u64, StoreError>;

    /// Runs a statement whose count is not needed. An engine that is far away need not wait for it: if it fails, so does
    /// whatever follows it, at the latest the commit.
    fn post(&mut self, sql: &str, params: &[Value<'_>]) -> Result<(), StoreError> {
        self.execute(sql, params).map(drop)
    }

    /// Runs an `INSERT` of one row that ends with `RETURNING` and the name of its number, and answers the number. An engine that
    /// knows it anyway need not make it a result, which costs the embedded one as much as the row.
    fn insert_numbered(&mut self, sql: &str, params: &[Value<'_>]) -> Result<i64, StoreError> {
        let mut number = None;
        self.query(sql, params, Lock::None, &mut |row| {
            number = Some(row.int(0)?);
            Ok(ControlFlow::Break(()))
        })?;
        number.ok_or_else(|| StoreError::Broken("an insert returned nothing".into()))
    }

    /// Says that the statements [posted](Tx::post) from here on have nothing to do with each other, until one is waited for:
    /// none reads or changes what another one writes. An engine that is far away sends them as one.
    fn begin_batch(&mut self) {}

    /// Waits until no other unit of work holds this key, and holds it until this one has ended. To be called before
    /// anything else, so that what is read afterwards is what the one before has left. Nothing is wrong without it: two that
    /// change the same thing cannot both commit. But the second would have to be run again, and under contention that is
    /// most of them. (The embedded engine has one writer, so every write already holds every key.)
    fn lock(&mut self, key: &[u8]) -> Result<(), StoreError>;

    /// Puts a change at the end of its tenant's feed.
    fn record_change(&mut self, change: &FeedEntry<'_>) -> Result<Recorded, StoreError>;

    /// Whether there are changes that are committed and have no number yet.
    fn has_unnumbered_changes(&mut self) -> Result<bool, StoreError>;

    /// Gives numbers to changes that are committed and have none yet, in an order in which none comes before what it
    /// followed from. Says whether there may be more. To be called before anything else in a unit of work, which then does
    /// nothing else.
    fn number_changes(&mut self) -> Result<bool, StoreError>;

    /// The last number that a table with numbered rows gave away, 0 if none: numbers are never given twice, also those of
    /// rows that are gone. `table` is a constant of ours.
    fn last_number(&mut self, table: &str) -> Result<i64, StoreError>;

    /// Makes the table's next number greater than this one, if it is not yet.
    fn number_past(&mut self, table: &str, number: i64) -> Result<(), StoreError>;

    /// Runs a query and hands over each row until the closure breaks off.
    fn query(
        &mut self,
        sql: &str,
        params: &[Value<'_>],
        lock: Lock,
        each: EachRow<'_>,
    ) -> Result<(), StoreError>;

    /// Makes a text findable, replacing what was stored under its id. It is in the index when the unit of work has
    /// committed; inside the same unit of work searches need not see it.
    fn index_text(&mut self, document: TextDocument) -> Result<(), StoreError>;

    /// Takes a text out of the index, if it is there; same visibility as [`Tx::index_text`].
    fn unindex_text(&mut self, id: Uuid) -> Result<(), StoreError>;

    /// Takes every text of a tree out of the index; same visibility as [`Tx::index_text`].
    fn unindex_group(&mut self, group: Uuid) -> Result<(), StoreError>;

    /// Does a bounded part of rewriting the index without what was taken out of it, whose terms may stand in the index's
    /// files until then. The first step is given `None`, each one after it what the one before it answered; `None` is the
    /// last one's answer, and comes although others write meanwhile.
    fn compact_texts(&mut self, begun: Option<Compaction>) -> Result<Option<Compaction>, StoreError>;

    /// Looks at some pages of the database, from this one on, for those that hold copies of deleted rows in space they do not
    /// use. An engine that keeps no such copies, or whose files are not ours to look after, finds none.
    fn find_stale_pages(&mut self, _from: i64) -> Result<StalePages, StoreError> {
        Ok(StalePages::default())
    }

    /// Empties the space that these pages do not use.
    fn clear_stale_pages(&mut self, _pages: &[i64]) -> Result<(), StoreError> {
        Ok(())
    }

    /// Whether there are texts that were not [taken in](Tx::take_in_texts).
    fn has_untaken_texts(&mut self) -> Result<bool, StoreError>;

    /// The numbers above `after`, in their order, of texts that were not taken in, of one tree or of all: at most `limit`. A text
    /// that is replaced takes a new number, greater than those of all other texts of its tree, and is to be taken in again.
    fn untaken_texts(&mut self, group: Option<Uuid>, after: i64, limit: i64) -> Result<Vec<i64>, StoreError>;

    /// How many texts were not taken in, about; at most `limit` are counted.
    fn count_untaken_texts(&mut self, limit: i64) -> Result<i64, StoreError>;

    /// Notes that these texts were taken in: the first ones that [`Tx::untaken_texts`] named for all trees.
    fn take_in_texts(&mut self, numbers: &[i64]) -> Result<(), StoreError>;

    /// Hands over every match, in no particular order, until the closure breaks off.
    fn search_text(
        &mut self,
        query: &TextQuery,
        each: &mut dyn FnMut(TextHit<'_>) -> Result<ControlFlow<()>, StoreError>,
    ) -> Result<(), StoreError>;

    /// Where indexes are kept between starts, in engines that keep them.
    fn segments(&self) -> Option<&SegmentFolder> {
        None
    }

    /// What finds vectors and words of large scopes, in engines that can. Not where content is sealed: vectors say much of
    /// what they were made of.
    fn vectors(&mut self) -> Option<&mut dyn VectorIndex> {
        None
    }
}

/// The usual shapes of a query, on top of the port.
pub trait TxExt {
    /// All rows, mapped.
    fn rows<T>(
        &mut self,
        sql: &str,
        params: &[Value<'_>],
        map: impl FnMut(&dyn Row) -> Result<T, StoreError>,
    ) -> Result<Vec<T>, StoreError>;

    /// The first row, mapped, if there is one.
    fn first<T>(
        &mut self,
        sql: &str,
        params: &[Value<'_>],
        map: impl FnMut(&dyn Row) -> Result<T, StoreError>,
    ) -> Result<Option<T>, StoreError>;

    /// As [`TxExt::first`], and the row stays locked until the unit of work ends.
    fn first_locked<T>(
        &mut self,
        sql: &str,
        params: &[Value<'_>],
        map: impl FnMut(&dyn Row) -> Result<T, StoreError>,
    ) -> Result<Option<T>, StoreError>;
}

impl TxExt for dyn Tx + '_ {
    fn rows<T>(
        &mut self,
        sql: &str,
        params: &[Value<'_>],
        mut map: impl FnMut(&dyn Row) -> Result<T, StoreError>,
    ) -> Result<Vec<T>, StoreError> {
        let mut all = Vec::new();
        self.query(sql, params, Lock::None, &mut |row| {
            all.push(map(row)?);
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(all)
    }

    fn first<T>(
        &mut self,
        sql: &str,
        params: &[Value<'_>],
        map: impl FnMut(&dyn Row) -> Result<T, StoreError>,
    ) -> Result<Option<T>, StoreError> {
        first(self, sql, params, Lock::None, map)
    }

    fn first_locked<T>(
        &mut self,
        sql: &str,
        params: &[Value<'_>],
        map: impl FnMut(&dyn Row) -> Result<T, StoreError>,
    ) -> Result<Option<T>, StoreError> {
        first(self, sql, params, Lock::Rows, map)
    }
}

fn first<T>(
    tx: &mut (dyn Tx + '_),
    sql: &str,
    params: &[Value<'_>],
    lock: Lock,
    mut map: impl FnMut(&dyn Row) -> Result<T, StoreError>,
) -> Result<Option<T>, StoreError> {
    let mut found = None;
    tx.query(sql, params, lock, &mut |row| {
        found = Some(map(row)?);
        Ok(ControlFlow::Break(()))
    })?;
    Ok(found)
}
