//! What is printed for people and for pipes.

use indicatif::{ProgressBar, ProgressStyle};
use std::fmt::Display;
use std::io::{IsTerminal, Write};

/// Prints a line to standard output. A reader that went away (`| head`) is no reason to fail.
pub(crate) fn line(text: impl Display) {
    let _ = writeln!(std::io::stdout().lock(), "{text}");
}

/// A bar on standard error that shows how far something is; nothing where that is no terminal.
pub(crate) fn progress_bar(template: &str, length: u64) -> ProgressBar {
    let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::new(length).with_style(style)
}

/// Colours, where standard output is a terminal and colours are not switched off.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Paint {
    on: bool,
}

impl Paint {
    pub(crate) fn for_stdout() -> Self {
        let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Self { on: !refused && std::io::stdout().is_terminal() }
    }

    pub(crate) fn bold(self, text: impl Display) -> String {
        self.paint("1", text)
    }

    pub(crate) fn faint(self, text: impl Display) -> String {
        self.paint("2", text)
    }

    pub(crate) fn red(self, text: impl Display) -> String {
        self.paint("31", text)
    }

    pub(crate) fn green(self, text: impl Display) -> String {
        self.paint("32", text)
    }

    pub(crate) fn yellow(self, text: impl Display) -> String {
        self.paint("33", text)
    }

    fn paint(self, code: &str, text: impl Display) -> String {
        if self.on { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_string() }
    }
}
