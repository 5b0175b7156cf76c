//! What is said at the end: what came in, what was there, what was left out, and what was refused.

use super::record::LeftOut;
use crate::export::counted;
use crate::terminal;
use std::fmt::Write;

/// How many examples and refusals are shown.
const SHOWN: usize = 5;
const REFUSALS_SHOWN: usize = 20;

/// What became of something.
pub(super) enum Outcome {
    /// Of a conversation.
    Conversation { title: String, is_new: bool, entries: usize, forks: usize, known: usize },
    /// Of a memory or a fact.
    Memory { said: String, is_fact: bool, is_new: bool },
    /// Of a file.
    File { path: String, fate: Fate },
    /// It could not be taken.
    Refused { place: String, why: String },
}

/// What became of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    New,
    /// It is there, as it is here.
    Same,
    /// It is there, and differs.
    Kept,
    /// It was there, and differed.
    Replaced,
}

#[derive(Debug, Default)]
struct Count {
    new: u64,
    changed: u64,
    known: u64,
}

impl Count {
    fn told(&self, changed: &str) -> Option<String> {
        let mut parts = Vec::new();
        for (number, what) in [(self.new, "new"), (self.changed, changed), (self.known, "there already")] {
            if number > 0 {
                parts.push(format!("{number} {what}"));
            }
        }
        (!parts.is_empty()).then(|| parts.join(", "))
    }
}

/// Everything that is said at the end.
#[derive(Debug, Default)]
pub(super) struct Report {
    conversations: Count,
    entries: Count,
    forks: Count,
    memories: Count,
    facts: Count,
    files: Count,
    kept_files: Vec<String>,
    kept: u64,
    refused: Vec<String>,
    refusals: u64,
    examples: Vec<String>,
    pub left_out: LeftOut,
}

impl Report {
    pub fn take_all(&mut self, outcomes: Vec<Outcome>) {
        outcomes.into_iter().for_each(|outcome| self.take(outcome));
    }

    pub fn take(&mut self, outcome: Outcome) {
        let is_one_more = |count: &mut Count, is_new: bool| match is_new {
            true => count.new += 1,
            false => count.known += 1,
        };
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
            Outcome::Memory { said, is_fact, is_new } => {
                is_one_more(if is_fact { &mut self.facts } else { &mut self.memories }, is_new);
                if is_new {
                    self.example(format!("{} \"{said}\"", if is_fact { "fact" } else { "memory" }));
                }
            }
            Outcome::File { path, fate } => {
                match fate {
                    Fate::New => self.files.new += 1,
                    Fate::Same => self.files.known += 1,
                    Fate::Replaced => self.files.changed += 1,
                    Fate::Kept => {
                        self.kept += 1;
                        if self.kept_files.len() < REFUSALS_SHOWN {
                            self.kept_files.push(path.clone());
                        }
                    }
                }
                if matches!(fate, Fate::New | Fate::Replaced) {
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

    /// Prints it.
    pub fn print(&self, heading: &str, dry: bool) {
        terminal::line(self.told(heading, dry).trim_end());
    }

    fn told(&self, heading: &str, dry: bool) -> String {
        let mut told = format!("{heading}\n");
        let mut say = |line: &str| {
            // Writing to a `String` cannot fail.
            let _ = writeln!(told, "  {line}");
        };
        let counts = [
            ("conversations", &self.conversations, "continued"),
            ("entries", &self.entries, ""),
            ("forks", &self.forks, ""),
            ("memories", &self.memories, ""),
            ("facts", &self.facts, ""),
            ("files", &self.files, "replaced"),
        ];
        let told_counts: Vec<_> = counts
            .into_iter()
            .filter_map(|(what, count, changed)| Some((what, count.told(changed)?)))
            .collect();
        for (what, count) in &told_counts {
            say(&format!("{what}: {count}"));
        }
        if told_counts.is_empty() {
            say("nothing");
        }
        if dry {
            self.examples.iter().for_each(|example| say(&format!("for example {example}")));
        }
        for (what, times) in self.left_out.iter() {
            say(&format!("left out: {times} {what}"));
        }
        if self.kept > 0 {
            say(&format!(
                "left as they are: {}; --overwrite replaces them",
                counted_of(self.kept, "file that differs here", "files that differ here")
            ));
            list(&mut say, &self.kept_files, self.kept);
        }
        if self.refusals > 0 {
            say(&format!("refused: {}", counted(self.refusals, "record")));
            list(&mut say, &self.refused, self.refusals);
        }
        told
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
