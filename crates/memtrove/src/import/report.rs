//! What is said at the end: what came in, what was there, what was left out, and what was refused.

use super::record::LeftOut;
use crate::export::counted;
use crate::terminal;
use memtrove_service::memories::import::Fate;
use std::fmt::Write;

/// How many examples and refusals are shown.
const SHOWN: usize = 5;
const REFUSALS_SHOWN: usize = 20;

/// What became of something.
pub(super) enum Outcome {
    Conversation {
        title: String,
        is_new: bool,
        entries: usize,
        forks: usize,
        known: usize,
    },
    /// Of a memory or a fact.
    Memory {
        place: String,
        said: String,
        is_fact: bool,
        fate: Fate,
    },
    File {
        path: String,
        fate: Fate,
    },
    /// It could not be taken.
    Refused {
        place: String,
        why: String,
    },
}

#[derive(Debug, Default)]
struct Count {
    new: u64,
    changed: u64,
    known: u64,
}

impl Count {
    fn summary(&self, changed: &str) -> Option<String> {
        let mut parts = Vec::new();
        for (number, what) in [(self.new, "new"), (self.changed, changed), (self.known, "there already")] {
            if number > 0 {
                parts.push(format!("{number} {what}"));
            }
        }
        (!parts.is_empty()).then(|| parts.join(", "))
    }
}

impl Count {
    /// Counts one more; says whether it is here now as it was brought, and was not before.
    fn take(&mut self, fate: Fate) -> bool {
        match fate {
            Fate::New => self.new += 1,
            Fate::Same => self.known += 1,
            Fate::Replaced => self.changed += 1,
            Fate::Kept => {}
        }
        matches!(fate, Fate::New | Fate::Replaced)
    }
}

/// What differs here, and was left as it is.
#[derive(Debug, Default)]
struct LeftAsIs {
    number: u64,
    shown: Vec<String>,
}

impl LeftAsIs {
    fn take(&mut self, one: String) {
        self.number += 1;
        if self.shown.len() < REFUSALS_SHOWN {
            self.shown.push(one);
        }
    }

    fn tell(&self, say: &mut impl FnMut(&str), one: &str, many: &str) {
        if self.number > 0 {
            let number = counted_of(self.number, one, many);
            say(&format!("left as they are: {number}; --overwrite replaces them"));
            list(say, &self.shown, self.number);
        }
    }
}

/// Everything that is said at the end.
#[derive(Debug, Default)]
pub(super) struct ImportReport {
    conversations: Count,
    entries: Count,
    forks: Count,
    memories: Count,
    facts: Count,
    files: Count,
    kept_memories: LeftAsIs,
    kept_files: LeftAsIs,
    refused: Vec<String>,
    refusals: u64,
    examples: Vec<String>,
    pub left_out: LeftOut,
}

impl ImportReport {
    pub fn take_all(&mut self, outcomes: Vec<Outcome>) {
        outcomes.into_iter().for_each(|outcome| self.take(outcome));
    }

    pub fn take(&mut self, outcome: Outcome) {
        match outcome {
            Outcome::Conversation { title, is_new, entries, forks, known } => {
                match (is_new, entries > 0) {
                    (true, _) => self.conversations.new += 1,
                    (false, true) => self.conversations.changed += 1,
                    (false, false) => self.conversations.known += 1,
                }
                self.entries.new += entries as u64;
                self.entries.known += known as u64;
                self.forks.new += forks as u64;
                if is_new || entries > 0 {
                    let entries = counted_of(entries as u64, "entry", "entries");
                    self.example(format!(
                        "conversation \"{title}\" with {entries} and {}",
                        counted(forks as u64, "fork")
                    ));
                }
            }
            Outcome::Memory { place, said, is_fact, fate } => {
                if fate == Fate::Kept {
                    self.kept_memories.take(format!("{place}: \"{said}\""));
                }
                let count = if is_fact { &mut self.facts } else { &mut self.memories };
                if count.take(fate) {
                    self.example(format!("{} \"{said}\"", if is_fact { "fact" } else { "memory" }));
                }
            }
            Outcome::File { path, fate } => {
                if fate == Fate::Kept {
                    self.kept_files.take(path.clone());
                }
                if self.files.take(fate) {
                    self.example(format!("file {path}"));
                }
            }
            Outcome::Refused { place, why } => {
                self.refusals += 1;
                if self.refused.len() < REFUSALS_SHOWN {
                    self.refused.push(format!("{place}: {why}"));
                }
            }
        }
    }

    fn example(&mut self, example: String) {
        if self.examples.len() < SHOWN {
            self.examples.push(example);
        }
    }

    /// Whether something could not be taken, and is there for somebody to look at.
    pub fn is_incomplete(&self) -> bool {
        self.refusals > 0
    }

    pub fn print(&self, heading: &str, dry: bool) {
        terminal::line(self.text(heading, dry).trim_end());
    }

    fn text(&self, heading: &str, dry: bool) -> String {
        let mut text = format!("{heading}\n");
        let mut say = |line: &str| {
            // Writing to a `String` cannot fail.
            let _ = writeln!(text, "  {line}");
        };
        let counts = [
            ("conversations", &self.conversations, "continued"),
            ("entries", &self.entries, ""),
            ("forks", &self.forks, ""),
            ("memories", &self.memories, "replaced"),
            ("facts", &self.facts, ""),
            ("files", &self.files, "replaced"),
        ];
        let summaries: Vec<_> = counts
            .into_iter()
            .filter_map(|(what, count, changed)| Some((what, count.summary(changed)?)))
            .collect();
        for (what, count) in &summaries {
            say(&format!("{what}: {count}"));
        }
        if summaries.is_empty() {
            say("nothing");
        }
        if dry {
            self.examples.iter().for_each(|example| say(&format!("for example {example}")));
        }
        for (what, times) in self.left_out.iter() {
            say(&format!("left out: {times} {what}"));
        }
        self.kept_memories.tell(&mut say, "memory that differs here", "memories that differ here");
        self.kept_files.tell(&mut say, "file that differs here", "files that differ here");
        if self.refusals > 0 {
            say(&format!("refused: {}", counted(self.refusals, "record")));
            list(&mut say, &self.refused, self.refusals);
        }
        text
    }
}

fn list(say: &mut impl FnMut(&str), shown: &[String], all: u64) {
    shown.iter().for_each(|one| say(&format!("  {one}")));
    if all > shown.len() as u64 {
        say(&format!("  and {} more", all - shown.len() as u64));
    }
}

fn counted_of(number: u64, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}
