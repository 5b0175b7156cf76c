//! The part of the port that engines have which find vectors and words by themselves.
//!
//! A node that searches a scope in its own memory has to hold all of it. Where a scope is large, an engine that can does it
//! instead. It names candidates only: who is found, and in which order, is decided as for every other scope.

use crate::StoreError;

/// What of an entry is needed to find it.
#[derive(Debug, Clone, Copy)]
pub struct VectorRow<'a> {
    /// The entry's number.
    pub no: i64,
    /// Its scope's.
    pub scope: i64,
    /// The change it is indexed under.
    pub seq: i64,
    pub kind: i64,
    pub state: i64,
    /// The word of its policy.
    pub policy: &'a str,
    /// The user who made it.
    pub author_user: Option<&'a str>,
    /// The client that made it.
    pub author_client: Option<&'a str>,
    /// When it happened or was made.
    pub at: i64,
    /// When it was made.
    pub created_at: i64,
    /// From then on it does not exist.
    pub expires_at: Option<i64>,
    /// What it means.
    pub vector: Option<&'a [f32]>,
    /// The same of each piece of a long one.
    pub pieces: &'a [Vec<f32>],
    /// The digests of its words.
    pub terms: &'a [u64],
}

/// Which entries of a scope may be named: all conditions that a column can answer.
#[derive(Debug, Clone, Copy, Default)]
pub struct VectorFilter<'a> {
    /// Now: what has expired does not exist.
    pub now: i64,
    /// Of these kinds.
    pub kinds: Option<&'a [i64]>,
    /// In this state.
    pub state: Option<i64>,
    /// Happened or made no earlier.
    pub from: Option<i64>,
    /// Happened or made no later.
    pub to: Option<i64>,
    /// Made no later.
    pub until: Option<i64>,
    /// See [`VisibleTo`].
    pub visible_to: VisibleTo<'a>,
    /// Only these.
    pub only: Option<&'a [i64]>,
    /// Only those with a vector.
    pub with_vector: bool,
    /// Only those with all of these words.
    pub terms: &'a [u64],
}

/// Who asks.
#[derive(Debug, Clone, Copy, Default)]
pub enum VisibleTo<'a> {
    /// Everything is seen.
    #[default]
    Everything,
    /// What may be seen, and what is shared with people or teams that only the entry itself names.
    Perhaps(PrivateOwner<'a>),
    /// What is seen for certain.
    Surely(PrivateOwner<'a>),
    /// What is shared with people or teams that only the entry itself names.
    Unsure,
}

/// Whom private entries are seen by.
#[derive(Debug, Clone, Copy, Default)]
pub struct PrivateOwner<'a> {
    pub user: Option<&'a str>,
    /// The client, for entries that no user made.
    pub client: Option<&'a str>,
}

/// An entry that is named, by its number and the change it is indexed under.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Named {
    /// The entry's number.
    pub no: i64,
    /// The change.
    pub seq: i64,
}

/// How common words are in a scope. Entries with restrictions have no part in it, or scores would tell of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TermCounts {
    /// How many entries everybody sees who has the scope, when they were counted last.
    pub entries: i64,
    /// How many entries have each of the words: of what everybody sees and, where a word is rare, of what the viewer sees for
    /// certain. Nearly, where it is many.
    pub counts: Vec<i64>,
}

/// Words that entries are looked for by.
#[derive(Debug, Clone, Copy)]
pub struct WordQuery<'a> {
    /// Some of these an entry must have: words that few have.
    pub some: &'a [u64],
    /// What each word is worth: those first whose words are worth most together.
    pub worth: &'a [(u64, f64)],
    /// Among equals, those first that are similar to this.
    pub vector: Option<&'a [f32]>,
}

/// How closely vectors are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Care {
    /// Along the index, and not far: for what others name as well.
    Brief,
    /// Along the index: quick, and one in a hundred may be overlooked.
    Quick,
    /// All of them that pass the filter.
    Exact,
}

/// Finds entries of scopes that are in it. What is put or removed is found or gone for the very unit of work, and for others
/// when it is committed.
pub trait VectorIndex {
    /// Puts an entry, in place of what stands under its number.
    fn put(&mut self, row: &VectorRow<'_>) -> Result<(), StoreError>;

    /// Removes an entry, if it is there.
    fn remove(&mut self, no: i64) -> Result<(), StoreError>;

    /// Removes entries of a scope, up to `limit` of their vectors and all others that these have; says how many. With the last of them goes what is known of its words.
    fn clear(&mut self, scope: i64, limit: i64) -> Result<u64, StoreError>;

    /// How long the vectors of a scope are: every length once.
    fn dimensions(&mut self, scope: i64) -> Result<Vec<i64>, StoreError>;

    /// Up to `limit` entries whose vectors, or those of their pieces, are as long as this one and most similar to it, nearly in
    /// that order. One that is named for several pieces is named several times.
    fn nearest(
        &mut self,
        scope: i64,
        vector: &[f32],
        filter: &VectorFilter<'_>,
        limit: usize,
        care: Care,
    ) -> Result<Vec<Named>, StoreError>;

    /// Up to `limit` entries that have some of the words of `query`, the best first.
    fn with_terms(
        &mut self,
        scope: i64,
        query: &WordQuery<'_>,
        filter: &VectorFilter<'_>,
        limit: usize,
    ) -> Result<Vec<Named>, StoreError>;

    /// How common these words are in a scope: see [`TermCounts`].
    fn term_counts(
        &mut self,
        scope: i64,
        owner: PrivateOwner<'_>,
        terms: &[u64],
    ) -> Result<TermCounts, StoreError>;

    /// Counts the entries of a scope, about this many, and their words anew: those that everybody sees who has the scope.
    fn count_terms(&mut self, scope: i64, entries: i64) -> Result<(), StoreError>;

    /// Whether the entries of a scope were counted.
    fn has_counts(&mut self, scope: i64) -> Result<bool, StoreError>;

    /// Whether the indexes that vectors are found along are exactly these, each of a scope and a length.
    fn has_indexes(&mut self, wanted: &[(i64, i64)]) -> Result<bool, StoreError>;

    /// How many entries there are; at most `most` are counted.
    fn count(&mut self, scope: i64, filter: &VectorFilter<'_>, most: Option<i64>) -> Result<i64, StoreError>;

    /// Up to `limit` entries in the order of their numbers, after one.
    fn list(
        &mut self,
        scope: i64,
        filter: &VectorFilter<'_>,
        after: i64,
        limit: i64,
    ) -> Result<Vec<Named>, StoreError>;
}
