//! F-sm: the task state machine. Each input is a script of actions on a task.
//!
//! One byte is one action of an agent, a client, the runner or the process; [`ACTIONS`] lists them. Decisions come
//! from the engine's pure rules, and guards from the engine's step table. [`simulation`] repeats which step records a
//! follow-up, a claim, a cancel and an expiry. [`simulated_task`] holds the row and the log
//! of a task and checks its invariants after every action.
//!
//! The same bytes are also decoded as a stored log, which must not panic whatever they are.

mod simulated_task;
mod simulation;
#[cfg(test)]
mod stored;

use bytes::Bytes;
use engine::log::Log;

use self::simulation::{ACTIONS, Simulation};
use crate::Target;

pub(crate) const TARGET: Target = Target {
    id: "F-sm",
    name: "task state machine: one terminal status per turn, no gaps, no stale writers",
    run,
    corpus,
    dictionary: &[],
    inputs: 500_000,
};

/// Actions of a script that are executed; the rest is ignored.
const MAX_ACTIONS: usize = 256;

fn run(script: &[u8]) {
    let simulation = execute(script);
    check_log(&Bytes::copy_from_slice(script));
    if let Some(damaged) = simulation.log_with_one_byte_changed(script) {
        check_log(&damaged);
    }
}

fn execute(script: &[u8]) -> Simulation {
    let mut simulation = Simulation::default();
    for byte in script.iter().take(MAX_ACTIONS) {
        let (_, action) = ACTIONS[usize::from(*byte) % ACTIONS.len()];
        simulation.execute(action);
    }
    simulation.check_stored_log();
    simulation
}

/// Decoding arbitrary bytes either succeeds or reports corruption.
fn check_log(segment: &Bytes) {
    let Ok(log) = Log::unpack(segment.clone()) else { return };
    assert_eq!(log.segment(), segment);
    let mut size = 0;
    for entry in log.entries() {
        let _ = (entry.event(), entry.user_message());
        size += entry.size();
    }
    assert!(size <= segment.len(), "entries of {size} bytes in a segment of {}", segment.len());
}

/// Typical scripts and a few unusual ones, and one stored log to be mutated.
fn corpus() -> Vec<Vec<u8>> {
    let stored = execute(&script("at-once progress artifact save report answer done-with-message"));
    SCRIPTS.iter().map(|(actions, _)| script(actions)).chain(stored.log()).collect()
}

/// The bytes of a script given as action names, each once or as `name*times`.
fn script(names: &str) -> Vec<u8> {
    let number =
        |wanted| ACTIONS.iter().position(|(name, _)| *name == wanted).and_then(|at| u8::try_from(at).ok());
    let mut script = Vec::new();
    for name in names.split(' ') {
        let (name, times) = name.split_once('*').unwrap_or((name, "1"));
        let number = number(name).unwrap_or_else(|| panic!("unknown action {name}"));
        script.resize(script.len() + times.parse::<usize>().expect("a count"), number);
    }
    script
}

/// Scripts and the state in which the task ends.
const SCRIPTS: &[(&str, EndState)] = &[
    ("send working report artifact report chunk report done", "completed"),
    ("send message report", "hidden"),
    ("send working message report", "completed"),
    ("send progress save need-input answer artifact done-with-message", "completed"),
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
    ("at-once step crash claim step crash claim-on-probation step stale-step done", "completed"),
    ("at-once crash claim crash claim-on-probation end-probation crash claim-on-probation done", "completed"),
    ("at-once step-begins crash claim crash claim-on-probation stale-end-probation crash give-up", "failed"),
    ("at-once step crash claim-on-probation need-input answer retry claim step done", "completed"),
    ("queued deadline answer claim", "failed"),
    ("at-once step halt look claim late deadline halt deadline", "failed"),
    ("send need-input step deadline", "failed"),
    ("at-once step answer need-input claim step cancel", "canceled"),
];

/// The name of a task state, or `hidden`.
type EndState = &'static str;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mutate::Mutator;

    #[test]
    fn every_script_ends_in_the_listed_state() {
        for (actions, ends) in SCRIPTS {
            assert_eq!(execute(&script(actions)).end_state().as_deref(), Some(*ends), "{actions}");
        }
    }

    #[test]
    fn every_step_is_both_allowed_and_rejected() {
        let mutator = Mutator::new(corpus(), TARGET.dictionary, 7);
        let mut tried = std::collections::BTreeSet::new();
        for number in 0..3_000 {
            let simulation = execute(&mutator.input(number));
            tried.extend(simulation.tried.iter().map(|(step, allowed)| (name(step), *allowed)));
        }
        let steps = "Claim EndProbation Report Finish Pause Retry Requeue Release Resume Queue Settle QueueMessage Cancel \
             Expire";
        for step in steps.split(' ') {
            assert!(tried.contains(&(step.to_owned(), true)), "{step} is never allowed");
            // Requeue follows a rejection after which it is always allowed.
            let refused = tried.contains(&(step.to_owned(), false));
            assert!(refused || step == "Requeue", "{step} is never rejected");
        }
    }

    fn name(step: &engine::store::Step) -> String {
        let text = format!("{step:?}");
        text.split([' ', '(']).next().unwrap_or_default().to_owned()
    }
}
