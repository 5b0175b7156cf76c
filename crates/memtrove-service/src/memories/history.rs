//! What an entry said, from the first text to the last.

use super::Memories;
use crate::quota::CallKind;
use memtrove_core::memories::{Assertion, Memory, MemoryCaller, MemoryId};
use memtrove_core::{Error, Result, Timestamp};
use memtrove_store::memories::texts::{self, Replaced};
use memtrove_store::memories::versions;

/// A text that an entry came to have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Saying {
    /// The version that brought it; the first is the entry's making.
    pub version: i64,
    /// When.
    pub at: Timestamp,
    /// What was said before; none at the beginning, and where that is not known any more.
    pub before: Option<String>,
    /// What was said from then on; none where that is not known any more.
    pub text: Option<String>,
}

impl Memories {
    /// What an entry said, oldest first. A change of anything but its text is not among it.
    pub async fn history(&self, caller: &MemoryCaller, id: MemoryId) -> Result<(Memory, Vec<Saying>)> {
        let caller = &*self.charge(caller, CallKind::Read, |caller| caller.speaks_for(None)).await?;
        let memory = self.reach(caller, id, &Assertion::default()).await?;
        let store = self.parts.store.of(memory.kind).store();
        let of = memory.id;
        let replaced =
            store.read(caller.tenant(), "list_texts", move |tx| Ok::<_, Error>(texts::list(tx, of)?)).await?;
        let sayings = sayings(&memory, replaced);
        Ok((memory, sayings))
    }
}

/// The texts of an entry, from those that were replaced and the one it has.
fn sayings(memory: &Memory, replaced: Vec<Replaced>) -> Vec<Saying> {
    // With each text that is kept, those of versions long ago go.
    let forgotten = replaced.last().is_some_and(|last| last.version - versions::KEPT > 1);
    let mut texts: Vec<Option<String>> = replaced.iter().map(|one| one.text.clone()).collect();
    texts.push(Some(memory.content.clone()));
    let first = Saying {
        version: 1,
        at: memory.created_at,
        before: None,
        text: texts.first().filter(|_| !forgotten).cloned().flatten(),
    };
    let later = replaced.into_iter().zip(texts.into_iter().skip(1)).map(|(one, text)| Saying {
        version: one.version,
        at: one.at,
        before: one.text,
        text,
    });
    std::iter::once(first).chain(later).collect()
}
