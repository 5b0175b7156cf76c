//! How many files and connections the process may have open.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// What is open besides connections of callers: databases, connections to others, files on their way.
const OTHERS: u64 = 512;

/// Makes room for this many connections, as far as the system allows. Says how many there may be: a process
/// without descriptors cannot even refuse a connection, and loses files too.
pub(crate) fn connections(wanted: usize) -> usize {
    let needed = (wanted as u64).saturating_add(OTHERS);
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let (mut granted, most) = (current.unwrap_or(u64::MAX), maximum.unwrap_or(u64::MAX));
    if granted < needed {
        let raised = needed.min(most);
        match setrlimit(Resource::Nofile, Rlimit { current: Some(raised), maximum }) {
            Ok(()) => granted = raised,
            Err(error) => tracing::debug!(%error, "the limit on open files cannot be raised"),
        }
    }
    let possible = fitting(wanted, granted);
    if possible < wanted {
        tracing::warn!(
            "this process may have {granted} files open, so there may be {possible} connections instead of {wanted} \
             (server.connections); raise the limit (ulimit -n, LimitNOFILE) for more"
        );
    }
    possible
}

/// How many connections there may be with this many descriptors. Where there are hardly any, half of them.
fn fitting(wanted: usize, descriptors: u64) -> usize {
    let left = descriptors.saturating_sub(OTHERS).max(descriptors / 2).max(1);
    wanted.min(usize::try_from(left).unwrap_or(usize::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_descriptors_for_everything_else() {
        assert_eq!(fitting(16_384, u64::MAX), 16_384);
        assert_eq!(fitting(16_384, 20_000), 16_384);
        assert_eq!(fitting(16_384, 4_096), 4_096 - 512);
        assert_eq!(fitting(16_384, 256), 128);
        assert_eq!(fitting(100, 4_096), 100);
    }

    #[test]
    fn as_many_as_are_wanted_there_are_if_the_system_allows_it() {
        assert_eq!(connections(64), 64);
    }
}
