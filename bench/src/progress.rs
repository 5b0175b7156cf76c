//! What is going on, line by line.

use std::time::Instant;

/// Prints lines with the seconds since it began.
#[derive(Debug, Clone, Copy)]
pub struct Progress {
    began: Instant,
}

impl Progress {
    /// Begins now.
    pub fn begin() -> Self {
        Self { began: Instant::now() }
    }

    /// Prints a line.
    pub fn say(self, what: &str) {
        println!("[{:5.1} s] {what}", self.began.elapsed().as_secs_f64());
    }
}
