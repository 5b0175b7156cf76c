//! Large scopes of memories, searched with pgvector.
//!
//! Every such scope has an index of its own (HNSW, half precision), made beside those who write. It is partial, so that a
//! search walks through entries of one scope only; for the planner to see that, the scope's number stands in the statement
//! itself. A search that lets few entries pass goes on along the index until it has enough.

use super::tx::PostgresTx;
use super::vector_indexes;
use crate::vectors::{
    Care, Named, PrivateOwner, TermCounts, VectorFilter, VectorIndex, VectorRow, VisibleTo, WordQuery,
};
use crate::{Row, StoreError, Tx, TxExt, Value};
use std::fmt::Write;

/// How many neighbours a walk along the index keeps in sight at least and at most: with 200 of them it finds 98 of the 100
/// most similar among 100,000.
const EF_SEARCH: (usize, usize) = (200, 1000);
/// A walk ends after this many entries, whatever it has found.
const WALKED: i64 = 40_000;
/// A brief one.
const WALKED_BRIEFLY: i64 = 1_000;
/// What it may remember meanwhile, in multiples of what a sort may take.
const WALK_MEMORY: i64 = 8;
/// Words that at least this many entries have are counted beforehand.
const COMMON: i64 = 1_000;
/// Other words are counted up to this.
const COUNTED: i64 = 4 * COMMON;
/// Of the entries that have a word, this many are looked at.
const NAMED_BY_WORDS: i64 = 2_048;
/// Words are counted in about this many entries of a scope.
const SAMPLE: i64 = 50_000;

/// In place of a word: how many entries of a scope everybody sees.
const ENTRIES: u64 = u64::MAX;
/// The policies of what everybody sees who has the scope. What is shared with teams is not among them, though it may name none.
const OPEN: &str = "('organization', 'public')";

/// A word of a scope, as one number: the same word of another scope is another one.
fn term_key(scope: i64, digest: u64) -> i64 {
    (digest ^ (scope as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)) as i64
}

fn term_keys(scope: i64, terms: impl IntoIterator<Item = u64>) -> Vec<i64> {
    let mut keys: Vec<i64> = terms.into_iter().map(|digest| term_key(scope, digest)).collect();
    keys.sort_unstable();
    keys.dedup();
    keys
}

/// A direction as the database reads it; `None` for what has none. Of unit length, since half precision ends at 65,504.
fn spelled(vector: &[f32]) -> Option<String> {
    let length = vector.iter().map(|x| f64::from(*x) * f64::from(*x)).sum::<f64>().sqrt();
    if !length.is_normal() {
        return None;
    }
    let mut text = String::with_capacity(vector.len() * 10);
    for x in vector {
        // Writing to a `String` cannot fail.
        let _ = write!(text, "{}{:.6}", if text.is_empty() { '[' } else { ',' }, f64::from(*x) / length);
    }
    text.push(']');
    Some(text)
}

/// A statement's conditions and their parameters.
struct Conditions<'a> {
    sql: String,
    params: Vec<Value<'a>>,
}

impl<'a> Conditions<'a> {
    /// The conditions of a filter on entries of a scope, whose words are these.
    fn of_entries(scope: i64, filter: &VectorFilter<'a>, terms: &'a [i64]) -> Self {
        let mut all = Self::new(scope, filter, terms);
        all.sql.push_str(" AND piece = 0");
        all
    }

    /// The same for their pieces too. The scope's number stands there as it is: see the module.
    fn new(scope: i64, filter: &VectorFilter<'a>, terms: &'a [i64]) -> Self {
        let mut all = Self { sql: format!("scope_no = {scope}"), params: Vec::new() };
        all.and("(expires_at IS NULL OR expires_at > $)", filter.now.into());
        if let Some(kinds) = filter.kinds {
            all.and("kind = ANY($)", Value::Ints(kinds));
        }
        if let Some(state) = filter.state {
            all.and("state = $", state.into());
        }
        if let Some(from) = filter.from {
            all.and("at >= $", from.into());
        }
        if let Some(to) = filter.to {
            all.and("at <= $", to.into());
        }
        if let Some(until) = filter.until {
            all.and("created_at <= $", until.into());
        }
        if let Some(only) = filter.only {
            all.and("no = ANY($)", Value::Ints(only));
        }
        if !terms.is_empty() {
            all.and("terms @> $", Value::Ints(terms));
        }
        if filter.with_vector {
            all.sql.push_str(" AND dimensions IS NOT NULL");
        }
        match filter.visible_to {
            VisibleTo::Everything => {}
            VisibleTo::Perhaps(owner) => all.seen(owner),
            VisibleTo::Surely(owner) => {
                all.sql.push_str(" AND policy NOT IN ('restricted', 'shared')");
                all.seen(owner);
            }
            VisibleTo::Unsure => all.sql.push_str(" AND policy IN ('restricted', 'shared')"),
        }
        all
    }

    fn param(&mut self, value: Value<'a>) -> String {
        self.params.push(value);
        format!("${}", self.params.len())
    }

    fn and(&mut self, condition: &str, value: Value<'a>) {
        let place = self.param(value);
        let _ = write!(self.sql, " AND {}", condition.replace('$', &place));
    }

    fn seen(&mut self, owner: PrivateOwner<'a>) {
        self.sql.push_str(" AND (policy <> 'private'");
        if let Some(user) = owner.user {
            let place = self.param(user.into());
            let _ = write!(self.sql, " OR author_user = {place}");
        }
        if let Some(client) = owner.client {
            let place = self.param(client.into());
            let _ = write!(self.sql, " OR (author_user IS NULL AND author_client = {place})");
        }
        self.sql.push(')');
    }
}

fn named(row: &dyn Row) -> Result<Named, StoreError> {
    Ok(Named { no: row.int(0)?, seq: row.int(1)? })
}

impl VectorIndex for PostgresTx<'_> {
    fn put(&mut self, row: &VectorRow<'_>) -> Result<(), StoreError> {
        let vector = row.vector.and_then(spelled);
        let terms = term_keys(row.scope, row.terms.iter().copied());
        // Where vector and words are as they were, the indexes need not be touched.
        self.put_vector(row, vector.as_deref(), 0, &terms)?;
        for (number, piece) in (1..).zip(row.pieces) {
            self.put_vector(row, spelled(piece).as_deref(), number, &[])?;
        }
        // Those of a version before that had more pieces.
        self.post(
            "DELETE FROM memory_vectors WHERE no = $1 AND piece > $2",
            &[row.no.into(), (row.pieces.len() as i64).into()],
        )
    }

    fn remove(&mut self, no: i64) -> Result<(), StoreError> {
        self.post("DELETE FROM memory_vectors WHERE no = $1", &[no.into()])
    }

    fn clear(&mut self, scope: i64, limit: i64) -> Result<u64, StoreError> {
        let removed = self.execute(
            "DELETE FROM memory_vectors WHERE no IN (SELECT no FROM memory_vectors WHERE scope_no = $1 LIMIT $2)",
            &[scope.into(), limit.into()],
        )?;
        if (removed as i64) < limit {
            self.post("DELETE FROM memory_common_terms WHERE scope_no = $1", &[scope.into()])?;
        }
        Ok(removed)
    }

    fn dimensions(&mut self, scope: i64) -> Result<Vec<i64>, StoreError> {
        let tx: &mut dyn Tx = self;
        // From one to the next along the index: there are one or two, and perhaps a million rows.
        tx.rows(
            "WITH RECURSIVE lengths AS ( \
                 SELECT MIN(dimensions) AS length FROM memory_vectors WHERE scope_no = $1 \
                 UNION ALL \
                 SELECT (SELECT MIN(v.dimensions) FROM memory_vectors v WHERE v.scope_no = $1 AND v.dimensions > l.length) \
                 FROM lengths l WHERE l.length IS NOT NULL) \
             SELECT length FROM lengths WHERE length IS NOT NULL",
            &[scope.into()],
            |row| row.int(0),
        )
    }

    fn nearest(
        &mut self,
        scope: i64,
        vector: &[f32],
        filter: &VectorFilter<'_>,
        limit: usize,
        care: Care,
    ) -> Result<Vec<Named>, StoreError> {
        self.prepare_walk(limit, care)?;
        let (spelled, length) = (spelled(vector), vector.len());
        let words = term_keys(scope, filter.terms.iter().copied());
        let mut all = Conditions::new(scope, filter, &words);
        let order = match &spelled {
            Some(spelled) => {
                let query = all.param(spelled.as_str().into());
                format!("CAST(embedding AS halfvec({length})) <=> CAST({query} AS halfvec({length}))")
            }
            // What has no direction is as similar to everything.
            None => "no DESC".to_owned(),
        };
        let sql = format!(
            "SELECT no, seq FROM memory_vectors WHERE {} AND dimensions = {length} ORDER BY {order} LIMIT {limit}",
            all.sql
        );
        let found = self.rows_of(&sql, &all.params, !words.is_empty(), named)?;
        if care == Care::Exact {
            self.prepare_walk(limit, Care::Quick)?;
        }
        Ok(found)
    }

    fn with_terms(
        &mut self,
        scope: i64,
        query: &WordQuery<'_>,
        filter: &VectorFilter<'_>,
        limit: usize,
    ) -> Result<Vec<Named>, StoreError> {
        let some = term_keys(scope, query.some.iter().copied());
        let keys: Vec<i64> = query.worth.iter().map(|(digest, _)| term_key(scope, *digest)).collect();
        let weights: Vec<i64> = query.worth.iter().map(|(_, weight)| (weight * 1e6) as i64).collect();
        let vector = query.vector.and_then(|vector| Some((vector.len(), spelled(vector)?)));
        let words = term_keys(scope, filter.terms.iter().copied());
        let mut all = Conditions::of_entries(scope, filter, &words);
        all.and("terms && $", Value::Ints(&some));
        let (keys, weights) = (all.param(Value::Ints(&keys)), all.param(Value::Ints(&weights)));
        let mut order = String::new();
        if let Some((length, spelled)) = &vector {
            let place = all.param(spelled.as_str().into());
            order = format!(
                "CASE WHEN dimensions = {length} THEN CAST(embedding AS halfvec({length})) <=> \
                 CAST({place} AS halfvec({length})) END,"
            );
        }
        let conditions = &all.sql;
        let sql = format!(
            "SELECT no, seq FROM \
             (SELECT no, seq, dimensions, embedding, terms FROM memory_vectors WHERE {conditions} LIMIT {NAMED_BY_WORDS}) v \
             ORDER BY (SELECT COALESCE(SUM(asked.worth), 0) FROM unnest({keys}, {weights}) AS asked (term, worth) \
             WHERE asked.term = ANY(v.terms)) DESC, {order} no DESC LIMIT {limit}"
        );
        self.rows_of(&sql, &all.params, true, named)
    }

    fn term_counts(
        &mut self,
        scope: i64,
        owner: PrivateOwner<'_>,
        terms: &[u64],
    ) -> Result<TermCounts, StoreError> {
        let keys: Vec<i64> = terms.iter().map(|digest| term_key(scope, *digest)).collect();
        // A scope that an older version counted has no number of entries yet.
        let sql = format!(
            "SELECT COALESCE(CAST(ROUND(c.share * e.entries) AS BIGINT), (SELECT COUNT(*) FROM \
             (SELECT 1 FROM memory_vectors v WHERE v.piece = 0 AND v.terms @> ARRAY[asked.term] AND (v.policy IN {OPEN} OR \
             v.policy = 'private' AND (v.author_user = $4 OR v.author_user IS NULL AND v.author_client = $5)) \
             LIMIT {COUNTED}) x)), CAST(e.entries AS BIGINT) \
             FROM unnest($1) WITH ORDINALITY AS asked (term, place) CROSS JOIN \
             (SELECT COALESCE((SELECT share FROM memory_common_terms WHERE term = $2), \
             (SELECT CAST(entries AS DOUBLE PRECISION) FROM memory_scopes WHERE id = $3), 0) AS entries) e \
             LEFT JOIN memory_common_terms c ON c.term = asked.term ORDER BY asked.place"
        );
        let params: [Value<'_>; 5] = [
            Value::Ints(&keys),
            term_key(scope, ENTRIES).into(),
            scope.into(),
            owner.user.into(),
            owner.client.into(),
        ];
        let counted = self.rows_of(&sql, &params, true, |row| Ok((row.int(0)?, row.int(1)?)))?;
        let entries = counted.first().map_or(0, |(_, entries)| *entries);
        Ok(TermCounts { entries, counts: counted.into_iter().map(|(count, _)| count).collect() })
    }

    fn count_terms(&mut self, scope: i64, entries: i64) -> Result<(), StoreError> {
        let every = (entries / SAMPLE).max(1);
        self.post("DELETE FROM memory_common_terms WHERE scope_no = $1", &[scope.into()])?;
        let open = format!(
            "FROM memory_vectors v LEFT JOIN memory_scopes s ON s.id = v.scope_no WHERE v.scope_no = $1 AND \
             v.piece = 0 AND (v.policy IN {OPEN} OR v.policy = 'private' AND v.author_user = s.user_id)"
        );
        self.post(
            &format!(
                "INSERT INTO memory_common_terms (term, scope_no, share) \
                 SELECT $2, $1, CAST(COUNT(*) AS DOUBLE PRECISION) {open}"
            ),
            &[scope.into(), term_key(scope, ENTRIES).into()],
        )?;
        self.post(
            &format!("WITH sample AS MATERIALIZED (SELECT v.terms {open} AND v.no % $2 = 0) \
             INSERT INTO memory_common_terms (term, scope_no, share) \
             SELECT term, $1, COUNT(*) / CAST((SELECT GREATEST(COUNT(*), 1) FROM sample) AS DOUBLE PRECISION) \
             FROM sample, unnest(terms) AS term GROUP BY term HAVING COUNT(*) >= $3"),
            &[scope.into(), every.into(), (COMMON / every).max(1).into()],
        )
    }

    fn has_counts(&mut self, scope: i64) -> Result<bool, StoreError> {
        let tx: &mut dyn Tx = self;
        let term = term_key(scope, ENTRIES);
        let found =
            tx.first("SELECT 1 FROM memory_common_terms WHERE term = $1", &[term.into()], |row| row.int(0))?;
        Ok(found.is_some())
    }

    fn has_indexes(&mut self, wanted: &[(i64, i64)]) -> Result<bool, StoreError> {
        vector_indexes::are(self, wanted)
    }

    fn count(&mut self, scope: i64, filter: &VectorFilter<'_>, most: Option<i64>) -> Result<i64, StoreError> {
        let words = term_keys(scope, filter.terms.iter().copied());
        let all = Conditions::of_entries(scope, filter, &words);
        let limit = most.map_or(String::new(), |most| format!(" LIMIT {most}"));
        let sql = format!("SELECT COUNT(*) FROM (SELECT 1 FROM memory_vectors WHERE {}{limit}) x", all.sql);
        let counted = self.rows_of(&sql, &all.params, !words.is_empty(), |row| row.int(0))?;
        Ok(counted.first().copied().unwrap_or_default())
    }

    fn list(
        &mut self,
        scope: i64,
        filter: &VectorFilter<'_>,
        after: i64,
        limit: i64,
    ) -> Result<Vec<Named>, StoreError> {
        let words = term_keys(scope, filter.terms.iter().copied());
        let mut all = Conditions::of_entries(scope, filter, &words);
        all.and("no > $", after.into());
        let sql = format!("SELECT no, seq FROM memory_vectors WHERE {} ORDER BY no LIMIT {limit}", all.sql);
        self.rows_of(&sql, &all.params, !words.is_empty(), named)
    }
}

impl PostgresTx<'_> {
    /// Puts the vector of an entry (0) or of one of its pieces.
    fn put_vector(
        &mut self,
        row: &VectorRow<'_>,
        vector: Option<&str>,
        piece: i64,
        terms: &[i64],
    ) -> Result<(), StoreError> {
        self.post(
            "INSERT INTO memory_vectors (no, piece, scope_no, seq, kind, state, policy, author_user, author_client, at, \
             created_at, expires_at, dimensions, embedding, terms) \
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, CAST($14 AS halfvec), $15) \
             ON CONFLICT (no, piece) DO UPDATE SET scope_no = excluded.scope_no, seq = excluded.seq, kind = excluded.kind, \
             state = excluded.state, policy = excluded.policy, author_user = excluded.author_user, \
             author_client = excluded.author_client, at = excluded.at, created_at = excluded.created_at, \
             expires_at = excluded.expires_at, dimensions = excluded.dimensions, embedding = excluded.embedding, \
             terms = excluded.terms",
            &[
                row.no.into(),
                piece.into(),
                row.scope.into(),
                row.seq.into(),
                row.kind.into(),
                row.state.into(),
                row.policy.into(),
                row.author_user.into(),
                row.author_client.into(),
                row.at.into(),
                row.created_at.into(),
                row.expires_at.into(),
                row.vector.map(|vector| vector.len() as i64).into(),
                vector.into(),
                Value::Ints(terms),
            ],
        )
    }

    /// The rows of a query; `by_terms` if it looks for words, which say whose scope they are of.
    fn rows_of<T>(
        &mut self,
        sql: &str,
        params: &[Value<'_>],
        by_terms: bool,
        map: impl FnMut(&dyn Row) -> Result<T, StoreError>,
    ) -> Result<Vec<T>, StoreError> {
        let rows = |tx: &mut Self| (tx as &mut dyn Tx).rows(sql, params, map);
        if by_terms { self.by_terms(rows) } else { rows(self) }
    }

    /// Says how the next walk is to be done, for this unit of work. The best way depends on what is asked for (words that many
    /// have or few), so each statement is planned for it, which takes a tenth of a millisecond.
    fn prepare_walk(&mut self, limit: usize, care: Care) -> Result<(), StoreError> {
        let (least, most) = EF_SEARCH;
        // Only walks along the index of vectors need a scan of an index; all else has other ways.
        let scans = if care == Care::Exact { "off" } else { "on" };
        let walked = if care == Care::Brief { WALKED_BRIEFLY } else { WALKED };
        self.send(
            "SELECT set_config('hnsw.ef_search', $1, TRUE), set_config('hnsw.iterative_scan', 'relaxed_order', TRUE), \
             set_config('hnsw.max_scan_tuples', $2, TRUE), set_config('hnsw.scan_mem_multiplier', $3, TRUE), \
             set_config('enable_indexscan', $4, TRUE), set_config('plan_cache_mode', 'force_custom_plan', TRUE)",
            &[
                limit.clamp(least, most).to_string().as_str().into(),
                walked.to_string().as_str().into(),
                WALK_MEMORY.to_string().as_str().into(),
                scans.into(),
            ],
        )
    }
}
