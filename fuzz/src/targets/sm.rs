//! F-sm: the lives of tasks, each input a script of what happens to them.
//!
//! One byte is one act of an agent, a client, the runner or fate; [`ACTS`] lists them. What is decided comes
//! from the engine's pure rules, what is written is judged by the engine's table of steps: [`world`] tells again
//! the few lines between the two, [`life`] keeps the row and the log of a task and knows what must be true of
//! them after every act.
//!
//! The same bytes are also read as a stored log, which must not panic whatever they are.

mod life;
mod world;

use bytes::Bytes;
use engine::log::Log;

use self::world::{ACTS, World};
use crate::Target;

pub(crate) const TARGET: Target = Target {
    id: "F-sm",
    name: "the lives of tasks: one ending, no gaps, no stale writers",
    run,
    corpus,
    dictionary: &[],
    inputs: 500_000,
};

/// How many acts of a script are played.
const MAX_ACTS: usize = 256;

fn run(script: &[u8]) {
    let world = play(script);
    read_as_log(&Bytes::copy_from_slice(script));
    if let Some(damaged) = world.log_with_a_damaged_byte(script) {
        read_as_log(&damaged);
    }
}

fn play(script: &[u8]) -> World {
    let mut world = World::default();
    for byte in script.iter().take(MAX_ACTS) {
        let (_, act) = ACTS[usize::from(*byte) % ACTS.len()];
        world.play(act);
    }
    world.check_whole();
    world
}

/// Whatever the bytes are, reading them says what they hold or that they are damaged.
fn read_as_log(segment: &Bytes) {
    let Ok(log) = Log::unpack(segment.clone()) else { return };
    assert_eq!(log.segment(), segment);
    let mut size = 0;
    for entry in log.entries() {
        let _ = (entry.event(), entry.rider());
        size += entry.size();
    }
    assert!(size <= segment.len(), "entries of {size} bytes in a segment of {}", segment.len());
}

/// Ordinary lives and a few that are not, and one stored log to be damaged.
fn corpus() -> Vec<Vec<u8>> {
    let stored = play(&script("at-once progress artifact save report answer done-saying"));
    LIVES.iter().map(|(life, _)| script(life)).chain(stored.log()).collect()
}

/// The bytes of a script in words, each of them once or `word*times`.
fn script(words: &str) -> Vec<u8> {
    let number = |word| ACTS.iter().position(|(name, _)| *name == word).and_then(|at| u8::try_from(at).ok());
    let mut script = Vec::new();
    for word in words.split(' ') {
        let (word, times) = word.split_once('*').unwrap_or((word, "1"));
        let number = number(word).unwrap_or_else(|| panic!("there is no act {word}"));
        script.resize(script.len() + times.parse::<usize>().expect("a count"), number);
    }
    script
}

/// Lives by how they end.
const LIVES: &[(&str, Ends)] = &[
    ("send working report artifact report chunk report done", "completed"),
    ("send message report", "hidden"),
    ("send working message report", "completed"),
    ("send progress save need-input answer artifact done-saying", "completed"),
    ("send need-auth answer-queued claim rejected", "rejected"),
    ("at-once artifact report failed", "failed"),
    ("queued answer claim progress report done", "completed"),
    ("save overlap artifact report done", "completed"),
    ("artifact overlap-done", "completed"),
    ("message overlap-done", "hidden"),
    ("overlap-asks answer-overlap-done", "completed"),
    ("overlap-asks answer-overlap-asks progress answer-overlap done", "completed"),
    ("send retry claim retry claim retry claim retry claim retry claim retry", "failed"),
    ("send working report answer answer need-input claim done", "completed"),
    ("at-once answer*17 need-auth claim need-auth answer done", "completed"),
    ("send cancel working report cancel done stale-done", "canceled"),
    ("send working report cancel cancel answer stale-report", "canceled"),
    ("send need-input cancel answer done", "canceled"),
    ("send crash claim stale-report stale-done stale-release working report done stale-done", "completed"),
    ("send save report crash claim crash claim crash give-up", "failed"),
    ("send halt claim halt claim done", "completed"),
    ("send cancel working report halt-fails", "failed"),
    ("queued claim answer artifact need-input claim progress need-auth answer halt-fails", "failed"),
    ("send need-input look cancel late answer done", "canceled"),
    ("send need-input look answer late answer late answer-queued late answer-overlap-done done", "completed"),
    ("at-once look need-input late answer answer done late cancel", "completed"),
    ("send need-input answer stale-report need-auth answer-queued crash claim stale-done done", "completed"),
    ("send need-input expire answer", "failed"),
    (
        "send need-input look answer late expire need-auth late expire answer-overlap-asks late expire expire",
        "failed",
    ),
    ("send working report elsewhere done elsewhere", "completed"),
    ("send done send need-input cancel queued claim done", "completed"),
    ("at-once report message chunk save", "working"),
];

/// The name of a state, or hidden.
type Ends = &'static str;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mutate::Mutator;

    #[test]
    fn every_life_ends_as_told() {
        for (life, ends) in LIVES {
            assert_eq!(play(&script(life)).ended().as_deref(), Some(*ends), "{life}");
        }
    }

    #[test]
    fn every_step_is_taken_and_refused() {
        let mutator = Mutator::new(corpus(), TARGET.dictionary, 7);
        let mut tried = std::collections::BTreeSet::new();
        for number in 0..3_000 {
            let world = play(&mutator.input(number));
            tried.extend(world.tried.iter().map(|(step, taken)| (name(step), *taken)));
        }
        let steps = "Claim Report Finish Pause Retry Again Release Resume Queue Settle Listen Cancel Expire";
        for step in steps.split(' ') {
            assert!(tried.contains(&(step.to_owned(), true)), "{step} is never taken");
            // Again follows a refusal that has just told it that it will be taken.
            let refused = tried.contains(&(step.to_owned(), false));
            assert!(refused || step == "Again", "{step} is never refused");
        }
    }

    fn name(step: &engine::store::Step) -> String {
        let text = format!("{step:?}");
        text.split([' ', '(']).next().unwrap_or_default().to_owned()
    }
}
