//! File descriptors: as many as the system allows, and some kept for everything that is not a connection.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Kept for the store, the log and connections to others.
const RESERVED: u64 = 128;

/// Raises the soft limit to the hard one; gives the limit in force, `None` where there is none.
pub(super) fn raise_limit() -> Option<u64> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current == maximum {
        return current;
    }
    match setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }) {
        Ok(()) => maximum,
        Err(error) => {
            tracing::warn!(%error, current, maximum, "the limit of file descriptors cannot be raised");
            current
        }
    }
}

/// How many connections fit into a limit of file descriptors.
pub(super) fn connections(limit: u64) -> usize {
    let most = limit.saturating_sub(RESERVED).max(limit / 2).max(1);
    usize::try_from(most).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_descriptors_are_kept_for_everything_else() {
        assert_eq!([connections(1_024), connections(100), connections(1)], [896, 50, 1]);
    }
}
