//! What is sent: keys, and for each key its copies, decided before anything is sent.
//!
//! Copies of one key differ in everything that must not matter: whether they wait, stream or return immediately,
//! when they are sent, and whether the response is read. Some keys are also used for a different body, which must
//! be refused. Deliberately not here: the sending, and what the responses mean.

use serde_json::{Value, json};
use uuid::Version;

use crate::random::Random;

const MAX_COPIES: u64 = 20;
/// Number of keys whose copies are sent together.
const WINDOW: usize = 24;
/// Share of follow-up messages among all sends, in percent.
const FOLLOW_UPS_PERCENT: u64 = 4;
/// An `Idempotency-Key` that is used for many tasks: keys of follow-up messages are scoped to their task.
const SHARED_KEY: &str = "shared key";
/// Within the size of a response, so that a reset can occur anywhere in it.
const RESET_WITHIN_BYTES: u64 = 700;

pub(crate) struct Plan {
    pub(crate) keys: Vec<Key>,
    /// Number of tasks that must wait for input before the sends begin.
    pub(crate) waiting: usize,
    /// New tasks, and first answers to the waiting ones.
    pub(crate) first: Vec<Send>,
    /// Second answers to the waiting tasks, mixed with late copies of the first.
    pub(crate) second: Vec<Send>,
}

/// One idempotency key and the texts sent under it.
pub(crate) struct Key {
    pub(crate) target: Target,
    /// The `Idempotency-Key` header; without it, the messageId is the key.
    pub(crate) header: Option<String>,
    pub(crate) message: String,
    /// One text, or two where the key is misused.
    pub(crate) texts: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// A new task of this agent.
    New(&'static str),
    /// The waiting task with this index.
    FollowUp(usize),
}

/// One copy of a key's message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Send {
    pub(crate) key: usize,
    /// Index of the key's text.
    pub(crate) text: usize,
    pub(crate) mode: Mode,
    /// Number of response bytes after which the connection is reset, if it is.
    pub(crate) reset: Option<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Wait,
    Immediate,
    Stream,
}

impl Plan {
    /// About `sends` sends, follow-up messages included.
    pub(crate) fn new(random: &mut Random, sends: u64) -> Self {
        let mut plan = Self { keys: Vec::new(), waiting: 0, first: Vec::new(), second: Vec::new() };
        let follow_ups = sends * FOLLOW_UPS_PERCENT / 100;
        let (mut new, mut first, mut second) = (0, Vec::new(), Vec::new());
        while (first.len() + second.len()) < usize::try_from(follow_ups).unwrap_or(usize::MAX) {
            plan.follow_up(random, &mut first, &mut second);
        }
        let (mut window, mut late) = (Vec::new(), Vec::new());
        let mut keys_in_window = 0;
        while new < sends - follow_ups {
            let copies = plan.new_task(random);
            new += copies.len() as u64;
            window.extend(copies);
            keys_in_window += 1;
            if keys_in_window == WINDOW || new >= sends - follow_ups {
                let share = first.len() * window.len() / usize::try_from(sends).unwrap_or(usize::MAX).max(1);
                window.extend(first.drain(..share.min(first.len())));
                plan.send_window(random, std::mem::take(&mut window), &mut late);
                keys_in_window = 0;
            }
        }
        plan.send_window(random, first, &mut late);
        // After everything else, and therefore after the restart.
        plan.first.extend(late);
        let mut repeated: Vec<Send> = second.iter().map(|send: &Send| plan.earlier_turn(*send)).collect();
        repeated.retain(|_| random.within(0..=9) == 0);
        second.extend(repeated);
        shuffle(random, &mut second);
        plan.second = second;
        plan
    }

    /// Each text of each of these keys shared key, with the complete response read: afterwards every key has been
    /// accepted.
    pub(crate) fn resend_each(&self, sends: &[Send]) -> Vec<Send> {
        let mut keys: Vec<usize> = sends.iter().map(|send| send.key).collect();
        keys.sort_unstable();
        keys.dedup();
        let texts = |key: usize| (0..self.keys[key].texts.len()).map(move |text| (key, text));
        let once = |(key, text)| Send { key, text, mode: Mode::Wait, reset: None };
        keys.into_iter().flat_map(texts).map(once).collect()
    }

    fn new_task(&mut self, random: &mut Random) -> Vec<Send> {
        let unique = random.uuid();
        let (agent, text) = match random.within(0..=9) {
            0..=7 => ("echo", format!("echo {unique}")),
            _ => ("slow-writer", format!("{unique} sections=1 delay={}ms", random.within(0..=15))),
        };
        let misuse = format!("{text} and more");
        let key = self.add(random, Target::New(agent), [text, misuse], None);
        self.copies(random, key)
    }

    /// A waiting task: one or two answers that it asks again after, sent together, then one that ends it.
    fn follow_up(&mut self, random: &mut Random, first: &mut Vec<Send>, second: &mut Vec<Send>) {
        let target = Target::FollowUp(self.waiting);
        self.waiting += 1;
        let shared = (random.within(0..=3) == 0).then(|| SHARED_KEY.to_owned());
        let key = self.add(random, target, ["maybe", "perhaps"].map(str::to_owned), shared);
        let mut copies = self.copies(random, key);
        if random.within(0..=2) == 0 {
            let key = self.add(random, target, ["who knows", "nobody knows"].map(str::to_owned), None);
            copies.extend(self.copies(random, key));
            shuffle(random, &mut copies);
        }
        first.extend(copies);
        let key = self.add(random, target, ["approve", "deny"].map(str::to_owned), None);
        second.extend(self.copies(random, key));
    }

    /// Adds a key for the first text, and sometimes for the second too.
    fn add(
        &mut self,
        random: &mut Random,
        target: Target,
        texts: [String; 2],
        shared: Option<String>,
    ) -> usize {
        let misused = random.within(0..=3) == 0;
        let texts = texts.into_iter().take(if misused { 2 } else { 1 }).collect();
        let uuid = random.uuid();
        let version = if random.within(0..=1) == 0 { Version::Random } else { Version::SortRand };
        let uuid = uuid::Builder::from_bytes(uuid.into_bytes()).with_version(version).into_uuid();
        let (header, message) = match random.within(0..=3) {
            0 => (Some(format!("key {uuid}")), format!("m-{uuid}")),
            1 => (Some(format!("key {uuid}")), uuid.to_string()),
            _ => (None, uuid.to_string()),
        };
        self.keys.push(Key { target, header: shared.or(header), message, texts });
        self.keys.len() - 1
    }

    fn copies(&self, random: &mut Random, key: usize) -> Vec<Send> {
        let texts = self.keys[key].texts.len() as u64;
        let copy = |random: &mut Random| Send {
            key,
            // The misuse is the rarer text, so that it mostly comes second.
            text: usize::from(texts > 1 && random.within(0..=3) == 0),
            mode: match random.within(0..=2) {
                0 => Mode::Wait,
                1 => Mode::Immediate,
                _ => Mode::Stream,
            },
            reset: match random.within(0..=15) {
                0 => Some(0),
                1 | 2 => usize::try_from(random.within(1..=RESET_WITHIN_BYTES)).ok(),
                _ => None,
            },
        };
        (0..random.within(1..=MAX_COPIES)).map(|_| copy(random)).collect()
    }

    /// Half of the windows are shuffled, so that different keys interleave; in the others the copies of a key are
    /// adjacent, so that they race. A few copies are sent late.
    fn send_window(&mut self, random: &mut Random, mut window: Vec<Send>, late: &mut Vec<Send>) {
        if random.within(0..=1) == 0 {
            shuffle(random, &mut window);
        }
        for send in window {
            let destination = if random.within(0..=31) == 0 { &mut *late } else { &mut self.first };
            destination.push(send);
        }
    }

    /// A copy of the first answer to the task of this second one.
    fn earlier_turn(&self, second: Send) -> Send {
        let target = self.keys[second.key].target;
        let key = self.keys.iter().position(|key| key.target == target).unwrap_or(second.key);
        Send { key, text: 0, ..second }
    }
}

impl Key {
    pub(crate) fn agent(&self) -> &'static str {
        match self.target {
            Target::New(agent) => agent,
            Target::FollowUp(_) => "approver",
        }
    }

    /// The parameters of a send; `waiting` are the ids of the tasks that wait for input.
    pub(crate) fn params(&self, send: Send, waiting: &[String]) -> Value {
        let parts = json!([{"text": self.texts[send.text]}]);
        let mut message = json!({"messageId": self.message, "role": "ROLE_USER", "parts": parts});
        if let Target::FollowUp(number) = self.target {
            message["taskId"] = waiting[number].as_str().into();
        }
        json!({"message": message, "configuration": {"returnImmediately": send.mode == Mode::Immediate}})
    }
}

fn shuffle(random: &mut Random, sends: &mut [Send]) {
    for last in (1..sends.len()).rev() {
        let other = random.within(0..=last as u64);
        sends.swap(last, usize::try_from(other).unwrap_or(last));
    }
}
