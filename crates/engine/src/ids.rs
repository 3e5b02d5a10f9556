//! Public ids of tasks and contexts.
//!
//! Inside the store a task is a row number `n`; clients see `task_…`. The public id is base32 of `n` under a
//! keyed permutation, followed by the row's random tag: a lookup is by integer, guessing an id means guessing
//! 80 random bits, and an id reveals neither the order nor the count of tasks. The id of a context is built
//! the same way from its first task, with another permutation and a tag derived from that task's tag.

use std::{cell::RefCell, fmt, hash::Hasher as _};

use protocol::{ContextId, TaskId};
use siphasher::sip128::{Hasher128 as _, SipHasher24};

/// The row number of a task. Allocated in blocks, never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TaskNo(pub i64);

/// The random part of a public id.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Tag(pub [u8; 10]);

impl Tag {
    /// A new random tag. The random bytes are read from the operating system for 256 tags at a time; each
    /// byte is used once.
    pub fn random() -> Self {
        const POOL_SIZE: usize = 256;
        thread_local! {
            static POOL: RefCell<Vec<[u8; 10]>> = const { RefCell::new(Vec::new()) };
        }
        POOL.with_borrow_mut(|pool| {
            if pool.is_empty() {
                pool.resize(POOL_SIZE, [0; 10]);
                getrandom::fill(pool.as_flattened_mut()).expect("the operating system provides randomness");
            }
            Self(pool.pop().expect("the pool was just filled"))
        })
    }
}

impl fmt::Debug for Tag {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Tag(…)")
    }
}

/// Encodes row numbers as public ids and back. The key is created with the store and stored in it.
#[derive(Clone)]
pub struct Ids {
    key: [u8; 16],
}

const TASK_PREFIX: &str = "task_";
const CONTEXT_PREFIX: &str = "ctx_";

impl Ids {
    /// A codec with this key.
    pub fn new(key: [u8; 16]) -> Self {
        Self { key }
    }

    /// Public id of a task.
    pub fn task(&self, no: TaskNo, tag: Tag) -> TaskId {
        encode(TASK_PREFIX, self.permute(Domain::Task, no), tag).into()
    }

    /// Decodes a task id; `None` if this server did not create it.
    pub fn parse_task(&self, id: &TaskId) -> Option<(TaskNo, Tag)> {
        let (image, tag) = decode(TASK_PREFIX, id.as_str())?;
        Some((self.restore(Domain::Task, image)?, tag))
    }

    /// Public id of the context whose first task is `no`; `tag` is the context's own.
    pub fn context(&self, no: TaskNo, tag: Tag) -> ContextId {
        encode(CONTEXT_PREFIX, self.permute(Domain::Context, no), tag).into()
    }

    /// Decodes a context id into its first task and tag; `None` if this server did not create it.
    pub fn parse_context(&self, id: &ContextId) -> Option<(TaskNo, Tag)> {
        let (image, tag) = decode(CONTEXT_PREFIX, id.as_str())?;
        Some((self.restore(Domain::Context, image)?, tag))
    }

    /// The tag of the context whose first task has this tag.
    pub fn context_tag(&self, task: Tag) -> Tag {
        let mut hasher = self.hasher(Domain::ContextTag, 0);
        hasher.write(&task.0);
        let hash = hasher.finish128().as_bytes();
        Tag(std::array::from_fn(|at| hash[at]))
    }

    /// A four-round Feistel network over the two halves of the number.
    fn permute(&self, domain: Domain, no: TaskNo) -> u64 {
        let (mut left, mut right) = halves(no.0.cast_unsigned());
        for round in 0..4 {
            (left, right) = (right, left ^ self.round(domain, round, right));
        }
        join(left, right)
    }

    fn restore(&self, domain: Domain, image: u64) -> Option<TaskNo> {
        let (mut left, mut right) = halves(image);
        for round in (0..4).rev() {
            (left, right) = (right ^ self.round(domain, round, left), left);
        }
        i64::try_from(join(left, right)).ok().map(TaskNo)
    }

    fn round(&self, domain: Domain, round: u8, half: u32) -> u32 {
        let mut hasher = self.hasher(domain, round);
        hasher.write_u32(half);
        halves(hasher.finish()).1
    }

    fn hasher(&self, domain: Domain, round: u8) -> SipHasher24 {
        let mut hasher = SipHasher24::new_with_key(&self.key);
        hasher.write(&[domain as u8, round]);
        hasher
    }
}

#[derive(Clone, Copy)]
enum Domain {
    Task,
    Context,
    ContextTag,
}

#[expect(clippy::cast_possible_truncation, reason = "truncation to the low half is intended")]
fn halves(number: u64) -> (u32, u32) {
    ((number >> 32) as u32, number as u32)
}

fn join(left: u32, right: u32) -> u64 {
    u64::from(left) << 32 | u64::from(right)
}

/// Crockford's base32 alphabet in lower case: no i, l, o, u.
const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
/// Length of 18 bytes in groups of five bits.
const ENCODED_LENGTH: usize = 29;

fn encode(prefix: &str, image: u64, tag: Tag) -> String {
    let mut bits = [0u8; 18];
    bits[..8].copy_from_slice(&image.to_be_bytes());
    bits[8..].copy_from_slice(&tag.0);
    let mut out = String::with_capacity(prefix.len() + ENCODED_LENGTH);
    out.push_str(prefix);
    let (mut window, mut held) = (0u32, 0u32);
    let mut next = bits.iter();
    for _ in 0..ENCODED_LENGTH {
        if held < 5 {
            window = window << 8 | u32::from(next.next().copied().unwrap_or_default());
            held += 8;
        }
        held -= 5;
        out.push(char::from(ALPHABET[(window >> held & 31) as usize]));
    }
    out
}

fn decode(prefix: &str, text: &str) -> Option<(u64, Tag)> {
    let text = text.strip_prefix(prefix)?.as_bytes();
    if text.len() != ENCODED_LENGTH {
        return None;
    }
    let mut bits = [0u8; 18];
    let (mut window, mut held, mut filled) = (0u32, 0u32, 0);
    for letter in text {
        let value = ALPHABET.iter().position(|known| known == letter)?;
        window = (window << 5 | u32::try_from(value).ok()?) & 0xfff;
        held += 5;
        if held >= 8 {
            held -= 8;
            bits[filled] = (window >> held & 0xff) as u8;
            filled += 1;
        }
    }
    // The last letter has one padding bit; it must be 0, so that every id has exactly one spelling.
    if window & ((1 << held) - 1) != 0 {
        return None;
    }
    let image = u64::from_be_bytes(bits[..8].try_into().ok()?);
    Some((image, Tag(bits[8..].try_into().ok()?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_round_trip() {
        let ids = Ids::new(*b"0123456789abcdef");
        for no in [0, 1, 2, 77, 65_536, i64::MAX] {
            let tag = Tag::random();
            let id = ids.task(TaskNo(no), tag);
            assert_eq!(id.as_str().len(), 34);
            assert_eq!(ids.parse_task(&id), Some((TaskNo(no), tag)));
            let context = ids.context(TaskNo(no), ids.context_tag(tag));
            assert_eq!(ids.parse_context(&context), Some((TaskNo(no), ids.context_tag(tag))));
        }
    }

    #[test]
    fn foreign_and_damaged_ids_are_not_decoded() {
        let ids = Ids::new([7; 16]);
        let id = ids.task(TaskNo(1), Tag([0xff; 10])).to_string();
        assert!(ids.parse_task(&id.as_str().into()).is_some());
        for bad in [
            "",
            "task_",
            "129",
            &id[..33],
            &id.to_uppercase(),
            &id.replace("task_", "ctx_"),
            &format!("{id}0"),
        ] {
            assert_eq!(ids.parse_task(&TaskId::from(bad)), None, "{bad}");
        }
        let respelled = format!("{}{}", &id[..33], if id.ends_with('y') { 'z' } else { 'y' });
        assert_eq!(ids.parse_task(&respelled.as_str().into()), None, "{respelled}");
    }

    #[test]
    fn ids_of_neighbouring_tasks_differ() {
        let ids = Ids::new([3; 16]);
        let one = ids.task(TaskNo(1), Tag([0; 10])).to_string();
        let two = ids.task(TaskNo(2), Tag([0; 10])).to_string();
        let same = one.bytes().zip(two.bytes()).skip(5).take(12).filter(|(one, two)| one == two).count();
        assert!(same < 8, "{one} {two}");
    }
}
