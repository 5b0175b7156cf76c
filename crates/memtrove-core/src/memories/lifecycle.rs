//! The moves of an entry between states that are more than a word: what each of them changes, and nothing else does.

use super::{Kind, Memory, State};
use crate::Timestamp;

impl Memory {
    /// Notes that it changed: a version more, and a time that is later than the last even where clocks are not.
    pub fn touch(&mut self, now: Timestamp) {
        self.version += 1;
        self.updated_at = now.max(self.updated_at.saturating_add_micros(1));
    }

    /// Puts it away. Its kind is remembered; nothing happens to one that is away already.
    pub fn archive(&mut self, now: Timestamp) {
        if self.kind == Kind::Archival {
            return;
        }
        self.origin_kind = Some(self.kind);
        self.kind = Kind::Archival;
        self.state = State::Archived;
        self.touch(now);
    }

    /// Takes it out again: of its old kind, or of its layer's, and as fresh as when it was new. Nothing happens to one
    /// that is not away. Its embedding must be loaded: one that has none is [`State::Created`].
    pub fn restore(&mut self, now: Timestamp) {
        if self.kind != Kind::Archival {
            return;
        }
        self.kind = self.origin_kind.take().unwrap_or(Kind::default_in(self.scope.layer()));
        self.state = if self.embedding.is_some() { State::Active } else { State::Created };
        self.anchor = now;
        self.touch(now);
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::memory;
    use super::*;

    #[test]
    fn an_archived_entry_comes_back_as_it_was_and_fresh() {
        let mut entry = memory(1, "the text");
        let before = entry.clone();
        let (later, last) = (Timestamp::from_micros(50), Timestamp::from_micros(90));
        entry.archive(later);
        assert_eq!((entry.kind, entry.origin_kind), (Kind::Archival, Some(before.kind)));
        assert_eq!((entry.state, entry.version), (State::Archived, before.version + 1));
        entry.restore(last);
        let expected = Memory { version: before.version + 2, updated_at: last, anchor: last, ..before };
        assert_eq!(entry, expected);
    }

    #[test]
    fn what_is_where_it_should_be_does_not_change() {
        let mut entry = memory(1, "the text");
        let before = entry.clone();
        entry.restore(Timestamp::from_micros(50));
        assert_eq!(entry, before);
        entry.archive(Timestamp::from_micros(50));
        let archived = entry.clone();
        entry.archive(Timestamp::from_micros(60));
        assert_eq!(entry, archived);
    }

    #[test]
    fn time_goes_on_for_an_entry_even_when_the_clock_does_not() {
        let mut entry = memory(1, "the text");
        let before = entry.updated_at;
        entry.touch(Timestamp::from_micros(-7));
        assert_eq!(entry.updated_at, before.saturating_add_micros(1));
    }

    #[test]
    fn one_that_was_added_as_archival_is_restored_to_the_kind_of_its_layer() {
        let mut entry =
            Memory { kind: Kind::Archival, state: State::Archived, embedding: None, ..memory(1, "x") };
        entry.restore(Timestamp::from_micros(1));
        assert_eq!((entry.kind, entry.state), (Kind::UserPersonal, State::Created));
    }
}
