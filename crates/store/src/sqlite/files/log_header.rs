//! Recognises a write-ahead log whose header is damaged.
//!
//! SQLite takes a log without a valid header for an empty one and overwrites it. The commits in it, which were
//! acknowledged, would be lost without an error; so a store with such a log is not opened.
//!
//! What a crash can leave is accepted. SQLite writes the header when a log is new or begins again, and syncs it before the
//! first frame is written.
//!
//! - Until that sync is done, a new log has nothing after its header. Whatever the header is, a file without room for a
//!   frame has no commit.
//! - When a log begins again, all of its frames are in the database and synced. Its header is overwritten in place: 32
//!   bytes in the first sector, which a disk writes as a whole. So either the old or the new one is there, and both are valid.
//! - A commit that was cut off damages frames and not the header, and SQLite recognises those by their checksums.
//!
//! So a file with a frame and without a valid header was damaged after it had been written.

use std::{fs::File, io::Read as _};

use super::store_files::StorePath;

const HEADER: usize = 32;
/// The header of a frame, and its smallest page.
const SMALLEST_FRAME: u64 = 24 + 512;
/// Without the bit that says in which byte order checksums are.
const MAGIC: u32 = 0x377f_0682;

/// Why a store with this log must not be opened. `None` if it may; also if the log cannot be read, which SQLite reports.
pub(crate) fn damage(path: &StorePath) -> Option<String> {
    // A server may be writing the header of a log that a backup reads.
    if path.log_length() < HEADER as u64 + SMALLEST_FRAME || !is_damaged(path) || !is_damaged(path) {
        return None;
    }
    Some(format!(
        "its log {} is damaged at the beginning, and SQLite would discard all that is in it, although it was acknowledged: \
         put an undamaged copy of the log back, or restore a backup; to start without it, move it to another directory",
        path.log().display()
    ))
}

fn is_damaged(path: &StorePath) -> bool {
    let mut header = [0; HEADER];
    let read = File::open(path.log()).and_then(|mut log| log.read_exact(&mut header));
    read.is_ok() && !is_valid(&header)
}

/// As SQLite decides it.
fn is_valid(header: &[u8; HEADER]) -> bool {
    let (fields, _) = header.as_chunks::<4>();
    let magic = u32::from_be_bytes(fields[0]);
    let number = |field: &[u8; 4]| match magic & 1 {
        0 => u32::from_le_bytes(*field),
        _ => u32::from_be_bytes(*field),
    };
    let (mut first, mut second) = (0_u32, 0_u32);
    for pair in fields[..6].as_chunks::<2>().0 {
        first = first.wrapping_add(number(&pair[0])).wrapping_add(second);
        second = second.wrapping_add(number(&pair[1])).wrapping_add(first);
    }
    let stored = (u32::from_be_bytes(fields[6]), u32::from_be_bytes(fields[7]));
    magic & !1 == MAGIC && stored == (first, second)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use rusqlite::Connection;

    use super::*;

    #[test]
    fn every_damaged_bit_of_the_header_is_found_and_what_a_crash_leaves_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = StorePath::of(&folder.path().join("a.db"));
        let connection = Connection::open(&path.real).unwrap();
        connection.execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE a (b)").unwrap();
        let log = fs::read(path.log()).unwrap();
        assert_eq!(damage(&path), None);
        for bit in 0..8 * HEADER {
            let mut damaged = log.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            fs::write(path.log(), damaged).unwrap();
            let reason = damage(&path).unwrap_or_else(|| panic!("bit {bit}"));
            assert!(reason.contains("a.db-wal") && reason.contains("restore a backup"), "{reason}");
        }
        for left in [&[][..], &log[..20], &[0; HEADER], &[7; 500], &log[..log.len() - 100]] {
            fs::write(path.log(), left).unwrap();
            assert_eq!(damage(&path), None, "{} bytes", left.len());
        }
        fs::write(path.log(), vec![0; log.len()]).unwrap();
        assert!(damage(&path).is_some());
        fs::write(path.log(), log).unwrap();
    }
}
