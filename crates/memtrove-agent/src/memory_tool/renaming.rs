//! Other paths for files and folders. Files move one by one, so a folder can stop half way: then what was moved is moved
//! back, and what is not known to be back is said, to the model or, if the memory was not reached, to the host.

use super::path::MemoryPath;
use super::{REASON, Refusal, Stop, named, refuse};
use crate::AgentMemory;
use crate::dispatch::{may_have_happened, to_failure};
use memtrove_client::{BoxError, Error, FilePath, FileVersion, MoveRequest, Result, Scope};

/// When this many moves back in a row are not answered, the rest is not tried: each may take as long as a call may.
const UNANSWERED: usize = 3;

impl AgentMemory {
    /// Gives what is at a place another path: a file, a folder with all files in it, or both.
    pub(super) async fn rename(
        &self,
        scope: &Scope,
        old: &MemoryPath,
        new: &MemoryPath,
    ) -> Result<String, Stop> {
        let (Some(from), Some(to)) = (old.file(), new.file()) else {
            return refuse("Error: Cannot rename the /memories directory itself");
        };
        let taken = || refuse(format!("Error: The destination {new} already exists"));
        if old == new {
            return taken();
        }
        if old.contains(new) {
            return refuse(format!("Error: Cannot rename {old} to {new}, which is inside it"));
        }
        let mut in_the_way = new.above();
        in_the_way.push(to.clone());
        match self.existing(scope, in_the_way).await?.first() {
            Some(path) if path == to => return taken(),
            Some(file) => {
                return refuse(format!(
                    "Error: Cannot rename {old} to {new}: /{file} is a file, and nothing can be inside a file. Choose another path."
                ));
            }
            None => {}
        }
        if !self.some_under(scope, new, 1).await?.is_empty() {
            return taken();
        }
        let mut moves = vec![Move { from: from.clone(), to: to.clone() }];
        for from in self.files_under(scope, old).await? {
            let below = from.as_str().strip_prefix(&old.prefix()).unwrap_or(from.as_str());
            match FilePath::new(format!("{}{below}", new.prefix())) {
                Ok(to) => moves.push(Move { from, to }),
                Err(error) => return Err(Fault::Told(error.to_string()).stop(old, new, &Left::default())),
            }
        }
        match self.move_all(scope, moves).await {
            Ok(0) => refuse(format!("Error: The path {old} does not exist")),
            Ok(_) => Ok(format!("Successfully renamed {old} to {new}")),
            Err((Fault::Taken, left)) if left.is_nothing() => taken(),
            Err((fault, left)) => Err(fault.stop(old, new, &left)),
        }
    }

    /// Moves files one by one; says how many. If one cannot be moved, those that were are moved back; returned is why it could
    /// not, and what is not known to be back.
    async fn move_all(&self, scope: &Scope, moves: Vec<Move>) -> Result<usize, (Fault, Left)> {
        let mut moved = Vec::with_capacity(moves.len());
        for next in moves {
            let (fault, doubtful) = match self.move_if_there(scope, &next.from, &next.to).await {
                Ok(Moved::Yes) => {
                    moved.push(next);
                    continue;
                }
                // A folder that is no file as well, or a file that somebody else deleted meanwhile.
                Ok(Moved::NoSuchFile) => continue,
                Ok(Moved::TargetExists) => (Fault::Taken, None),
                Err(error) => {
                    let doubtful = may_have_happened(&error).then_some(next);
                    (Fault::of(error), doubtful)
                }
            };
            return Err((fault, self.move_back(scope, moved, doubtful).await));
        }
        Ok(moved.len())
    }

    /// Moves files back to where they were, the last first, beginning with the one that may have been moved or not.
    async fn move_back(&self, scope: &Scope, moved: Vec<Move>, doubtful: Option<Move>) -> Left {
        let mut left = Left::default();
        let mut unanswered = 0;
        if let Some(doubtful) = doubtful {
            match self.move_if_there(scope, &doubtful.to, &doubtful.from).await {
                // It was moved and is back; or it is at its old path, and can no longer go to where another file is.
                Ok(Moved::Yes | Moved::TargetExists) => {}
                // It is not there yet. Whether it comes is unknown: what was not answered may be under way.
                Ok(Moved::NoSuchFile) => left.either.push(doubtful),
                Err(_) => {
                    unanswered += 1;
                    left.either.push(doubtful);
                }
            }
        }
        for back in moved.into_iter().rev() {
            if unanswered >= UNANSWERED {
                left.stuck.push(back);
                continue;
            }
            match self.move_if_there(scope, &back.to, &back.from).await {
                // One that is gone is in no one's way.
                Ok(Moved::Yes | Moved::NoSuchFile) => unanswered = 0,
                Ok(Moved::TargetExists) => left.stuck.push(back),
                Err(error) if may_have_happened(&error) => {
                    unanswered += 1;
                    left.either.push(back);
                }
                Err(_) => left.stuck.push(back),
            }
        }
        left
    }

    /// Moves a file, whatever its version.
    async fn move_if_there(&self, scope: &Scope, from: &FilePath, to: &FilePath) -> Result<Moved> {
        let request = MoveRequest { reason: Some(REASON.to_owned()), ..MoveRequest::from(to.clone()) };
        match self.client.move_file(scope, from, request, FileVersion::Any).await {
            Ok(_) => Ok(Moved::Yes),
            Err(error) if error.is_not_found() => Ok(Moved::NoSuchFile),
            Err(error) if error.api().is_some_and(|error| error.code == "DOCUMENT_EXISTS") => {
                Ok(Moved::TargetExists)
            }
            Err(error) => Err(error),
        }
    }
}

/// A file on its way.
struct Move {
    from: FilePath,
    to: FilePath,
}

/// What became of a file that was to be moved.
enum Moved {
    Yes,
    NoSuchFile,
    TargetExists,
}

/// What is not known to be where it was.
#[derive(Default)]
struct Left {
    /// At the new path.
    stuck: Vec<Move>,
    /// At the new path, or at the old one.
    either: Vec<Move>,
}

impl Left {
    fn is_nothing(&self) -> bool {
        self.stuck.is_empty() && self.either.is_empty()
    }

    /// Where everything is, in words.
    fn said(&self) -> String {
        let mut said = Vec::new();
        let at = |moves: &[Move], path: fn(&Move) -> &FilePath| named(moves.iter().map(path));
        if !self.stuck.is_empty() {
            let stuck = at(&self.stuck, |stuck| &stuck.to);
            said.push(format!("These files are at the new path and could not be moved back: {stuck}."));
        }
        if !self.either.is_empty() {
            let (old, new) = (at(&self.either, |file| &file.from), at(&self.either, |file| &file.to));
            said.push(format!(
                "It is not known whether these files are at their old paths or at the new ones: {old}; {new}."
            ));
        }
        said.push("View both folders to see.".to_owned());
        said.join(" ")
    }
}

/// Why files were not moved.
enum Fault {
    /// There is something where they are to be.
    Taken,
    /// For the model.
    Told(String),
    /// For the host: the memory cannot be reached.
    Failed(Error),
}

impl Fault {
    fn of(error: Error) -> Self {
        match to_failure(error) {
            Ok(failure) => Self::Told(format!("{} ({})", failure.message, failure.code)),
            Err(error) => Self::Failed(error),
        }
    }

    fn stop(self, old: &MemoryPath, new: &MemoryPath, left: &Left) -> Stop {
        let why = match self {
            Self::Taken => "there is a file in the way".to_owned(),
            Self::Told(why) => why,
            Self::Failed(error) if left.is_nothing() => return Stop::Failed(error),
            Self::Failed(error) => return Stop::Failed(with_what_is_left(error, left.said())),
        };
        let left = if left.is_nothing() { "Nothing was moved.".to_owned() } else { left.said() };
        Refusal(format!("Error: {old} could not be renamed to {new}: {why}. {left}")).into()
    }
}

/// An error of the memory, with where files are because of it.
#[derive(Debug, thiserror::Error)]
#[error("{left}")]
struct HalfRenamed {
    left: String,
    source: BoxError,
}

fn with_what_is_left(error: Error, left: String) -> Error {
    match error {
        Error::Transport { operation, source } => {
            Error::Transport { operation, source: HalfRenamed { left, source }.into() }
        }
        Error::Decode { operation, source, raw_body } => {
            Error::Decode { operation, source: HalfRenamed { left, source }.into(), raw_body }
        }
        error => error,
    }
}
