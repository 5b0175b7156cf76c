//! What must be cleared away however a test ends.

use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};

/// Runs a command when it is dropped, and also when the process ends without dropping it: a shell waits for its standard
/// input to close.
#[derive(Debug)]
pub(super) struct Leash {
    shell: Child,
    held: Option<ChildStdin>,
}

impl Leash {
    /// What `program` does in the end, with the server of this directory.
    pub(super) fn to(program: &Path, arguments: &[&str], directory: Option<&Path>) -> Self {
        let mut command = Command::new("sh");
        command.args(["-c", r#"cat >/dev/null; exec "$@""#, "sh"]).arg(program).args(arguments);
        if let Some(directory) = directory {
            command.env("MEMTROVE_POSTGRES_DIR", directory);
        }
        // In a group of its own: an interrupt that ends the test is for the test.
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let mut shell = command
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("a shell");
        let held = shell.stdin.take();
        Self { shell, held }
    }

    /// Lets go, and waits until the command has ended.
    pub(super) fn let_go_and_wait(&mut self) {
        self.held = None;
        let _ = self.shell.wait();
    }
}
