//! Runs one target on all cores and collects findings.
//!
//! A panic is caught where it happens. An input over the time limit is run again, because a busy machine can delay
//! any thread, and counts as a hang when it is slow twice. A thread cannot be stopped from outside: an input that
//! never returns is reported by the main thread and its worker is leaked, so the process should exit soon after.

use std::{
    cell::RefCell,
    collections::HashMap,
    panic,
    sync::{
        Arc, Mutex, Once, PoisonError,
        atomic::{AtomicU64, Ordering},
        mpsc::{self, RecvTimeoutError, Sender},
    },
    thread,
    time::{Duration, Instant},
};

use crate::{Target, mutate::Mutator};

/// Inputs a worker takes at a time.
const BATCH: u64 = 256;

/// What to fuzz, how many inputs, and how long one input may take.
pub struct Plan {
    /// The target that runs the inputs.
    pub target: Target,
    /// Number of generated inputs, the corpus included.
    pub inputs: u64,
    /// Seed of the generated inputs.
    pub seed: u64,
    /// Inputs of earlier findings, run first and in addition to `inputs`.
    pub known: Vec<Vec<u8>>,
    /// An input that takes longer than this, twice, is a hang.
    pub slow: Duration,
    /// An input that takes longer than this is considered never to return.
    pub timeout: Duration,
}

impl Plan {
    /// A plan with the default limits: one second for a slow input, ten for one that never returns.
    pub fn new(target: Target, inputs: u64, seed: u64) -> Self {
        let (slow, timeout) = (Duration::from_secs(1), Duration::from_secs(10));
        Self { target, inputs, seed, known: Vec::new(), slow, timeout }
    }
}

/// Result of a run.
#[derive(Debug)]
pub struct Outcome {
    /// Inputs that were handed to workers.
    pub inputs: u64,
    /// How many of them panicked.
    pub panics: u64,
    /// How many of them hung.
    pub hangs: u64,
    /// Wall-clock time of the run.
    pub elapsed: Duration,
    /// The shortest input for each location of a finding.
    pub findings: Vec<Finding>,
}

/// An input that caused a failure.
#[derive(Clone, Debug)]
pub struct Finding {
    /// Panic or hang.
    pub kind: FindingKind,
    /// File and line of a panic; findings are deduplicated by it.
    pub location: String,
    /// The panic message, or how long the hang took.
    pub problem: String,
    /// The input that caused it.
    pub input: Vec<u8>,
}

/// The ways an input can fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FindingKind {
    /// The target panicked.
    Panic,
    /// The target took too long.
    Hang,
}

/// Runs the plan to its end, or until an input does not return.
pub fn run(plan: Plan) -> Outcome {
    record_worker_panics();
    let started = Instant::now();
    let workers = thread::available_parallelism().map_or(1, usize::from);
    let queue = Arc::new(InputQueue::new(plan));
    let slots: Vec<Arc<WorkerSlot>> = (0..workers).map(|_| Arc::default()).collect();
    let (reports, findings) = mpsc::channel();
    for slot in &slots {
        let (queue, slot, reports) = (Arc::clone(&queue), Arc::clone(slot), reports.clone());
        thread::spawn(move || work(&queue, &slot, &reports));
    }
    drop(reports);

    let mut totals = Totals::default();
    loop {
        match findings.recv_timeout(queue.plan.timeout / 10) {
            Ok(finding) => totals.add(finding),
            // Every worker has finished.
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {
                let overdue = slots.iter().find_map(|slot| slot.overdue(queue.plan.timeout));
                if let Some(number) = overdue {
                    queue.close();
                    totals.add(hang(queue.input(number), queue.plan.timeout));
                    break;
                }
            }
        }
    }
    Outcome {
        inputs: queue.handed_out(),
        panics: totals.panics,
        hangs: totals.hangs,
        elapsed: started.elapsed(),
        findings: totals.shortest.into_values().collect(),
    }
}

/// The numbered inputs and the next number to take.
struct InputQueue {
    plan: Plan,
    mutator: Mutator,
    next: AtomicU64,
    end: u64,
}

impl InputQueue {
    fn new(plan: Plan) -> Self {
        let mutator = Mutator::new((plan.target.corpus)(), plan.target.dictionary, plan.seed);
        let end = plan.inputs + plan.known.len() as u64;
        Self { plan, mutator, next: AtomicU64::new(0), end }
    }

    fn input(&self, number: u64) -> Vec<u8> {
        let known = &self.plan.known;
        match usize::try_from(number).ok().and_then(|at| known.get(at)) {
            Some(input) => input.clone(),
            None => self.mutator.input(number - known.len() as u64),
        }
    }

    /// The next batch of numbers, empty at the end.
    fn take(&self) -> std::ops::Range<u64> {
        let from = self.next.fetch_add(BATCH, Ordering::Relaxed).min(self.end);
        from..(from + BATCH).min(self.end)
    }

    fn close(&self) {
        self.next.store(self.end, Ordering::Relaxed);
    }

    fn handed_out(&self) -> u64 {
        self.next.load(Ordering::Relaxed).min(self.end)
    }
}

/// Which input a worker is running, and since when.
#[derive(Default)]
struct WorkerSlot(Mutex<Option<(u64, Instant)>>);

impl WorkerSlot {
    fn set(&self, busy: Option<(u64, Instant)>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = busy;
    }

    /// The input that has been running for longer than this.
    fn overdue(&self, limit: Duration) -> Option<u64> {
        let busy = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        busy.filter(|(_, since)| since.elapsed() > limit).map(|(number, _)| number)
    }
}

fn work(queue: &InputQueue, slot: &WorkerSlot, reports: &Sender<Finding>) {
    PANIC.with_borrow_mut(|panic| *panic = Some(Panic::default()));
    loop {
        let numbers = queue.take();
        if numbers.is_empty() {
            slot.set(None);
            return;
        }
        for number in numbers {
            let input = queue.input(number);
            slot.set(Some((number, Instant::now())));
            if let Some(finding) = run_input(queue, input) {
                // The receiver is gone once an input did not return.
                let _ = reports.send(finding);
            }
        }
    }
}

/// Runs one input and reports a panic or a hang.
fn run_input(queue: &InputQueue, input: Vec<u8>) -> Option<Finding> {
    let slow = |elapsed: &Duration| *elapsed > queue.plan.slow;
    match run_timed(queue.plan.target, &input).map(|elapsed| Some(elapsed).filter(slow)) {
        Err(Panic { location, problem }) => {
            Some(Finding { kind: FindingKind::Panic, location, problem, input })
        }
        Ok(None) => None,
        Ok(Some(_)) => {
            let again = run_timed(queue.plan.target, &input).ok().filter(slow)?;
            Some(hang(input, again))
        }
    }
}

fn run_timed(target: Target, input: &[u8]) -> Result<Duration, Panic> {
    let started = Instant::now();
    match panic::catch_unwind(|| (target.run)(input)) {
        Ok(()) => Ok(started.elapsed()),
        Err(_) => Err(PANIC.with_borrow_mut(|panic| panic.replace(Panic::default())).unwrap_or_default()),
    }
}

fn hang(input: Vec<u8>, elapsed: Duration) -> Finding {
    let problem = format!("took more than {} ms", elapsed.as_millis());
    Finding { kind: FindingKind::Hang, location: "hang".to_owned(), problem, input }
}

#[derive(Default)]
struct Totals {
    panics: u64,
    hangs: u64,
    shortest: HashMap<String, Finding>,
}

impl Totals {
    fn add(&mut self, finding: Finding) {
        match finding.kind {
            FindingKind::Panic => self.panics += 1,
            FindingKind::Hang => self.hangs += 1,
        }
        let shorter = |known: &Finding| finding.input.len() < known.input.len();
        if self.shortest.get(&finding.location).is_none_or(shorter) {
            self.shortest.insert(finding.location.clone(), finding);
        }
    }
}

#[derive(Default)]
struct Panic {
    location: String,
    problem: String,
}

thread_local! {
    /// Location and message of the last panic on this worker thread; `None` on other threads.
    static PANIC: RefCell<Option<Panic>> = const { RefCell::new(None) };
}

/// Records the panics of worker threads instead of printing them. Other threads panic as before.
fn record_worker_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let print = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            let recorded = PANIC.with_borrow_mut(|panic| {
                panic.as_mut().map(|panic| {
                    panic.location = info.location().map(ToString::to_string).unwrap_or_default();
                    panic.problem = info.payload_as_str().unwrap_or("panic without a message").to_owned();
                })
            });
            if recorded.is_none() {
                print(info);
            }
        }));
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(run: fn(&[u8])) -> Target {
        let corpus = || vec![b"[1,2,3]".to_vec(), b"some words".to_vec()];
        Target { id: "F-test", name: "a target made to fail", run, corpus, dictionary: &["bang"], inputs: 0 }
    }

    #[test]
    fn each_panic_location_is_reported_once_with_its_shortest_input() {
        let outcome = run(Plan::new(
            target(|input| {
                assert!(!input.starts_with(b"bang"), "loud {}", input.len());
                assert!(input.len() != 3, "three");
            }),
            20_000,
            1,
        ));
        assert_eq!((outcome.inputs, outcome.hangs), (20_000, 0));
        assert!(outcome.panics > 2, "{outcome:?}");
        let mut inputs: Vec<_> = outcome.findings.iter().map(|finding| finding.input.len()).collect();
        inputs.sort_unstable();
        assert_eq!(inputs, [3, 4]);
        assert!(outcome.findings.iter().any(|finding| finding.problem == "loud 4"), "{outcome:?}");
    }

    #[test]
    fn slow_input_is_a_hang() {
        let slow = |input: &[u8]| {
            let started = Instant::now();
            while input == b"some words" && started.elapsed() < Duration::from_millis(100) {}
        };
        let outcome = run(Plan { slow: Duration::from_millis(90), ..Plan::new(target(slow), 2, 1) });
        assert_eq!((outcome.panics, outcome.hangs), (0, 1));
        assert_eq!(outcome.findings[0].input, b"some words");
    }

    #[test]
    fn input_that_never_returns_ends_the_run() {
        let stuck = |input: &[u8]| {
            if input == b"known" {
                loop {
                    thread::park();
                }
            }
        };
        let timeout = Duration::from_millis(200);
        let known = vec![b"known".to_vec()];
        let outcome = run(Plan { known, timeout, ..Plan::new(target(stuck), 1_000, 1) });
        assert_eq!((outcome.panics, outcome.hangs), (0, 1));
        assert_eq!(outcome.findings[0].input, b"known");
    }
}
