//! Feeds one target on all cores and collects what goes wrong.
//!
//! A panic is caught where it happens. An input over the time limit is fed again, because a busy machine can
//! stop any thread for a while, and is a hang when it is slow twice. A thread cannot be stopped from outside: an
//! input that does not come back at all is reported by the watching thread and its worker is left behind, so
//! the program should end soon after.

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

/// How many inputs a worker takes at a time.
const BATCH: u64 = 256;

/// What is to be fed, how much of it, and how long one input may take.
pub struct Plan {
    /// What takes the inputs.
    pub target: Target,
    /// How many inputs are made, the corpus included.
    pub inputs: u64,
    /// Decides the inputs.
    pub seed: u64,
    /// Inputs that once went wrong, fed first.
    pub known: Vec<Vec<u8>>,
    /// An input that takes longer, twice, is a hang.
    pub slow: Duration,
    /// An input that takes longer will not come back.
    pub lost: Duration,
}

impl Plan {
    /// A plan with the limits of the test matrix.
    pub fn new(target: Target, inputs: u64, seed: u64) -> Self {
        let (slow, lost) = (Duration::from_secs(1), Duration::from_secs(10));
        Self { target, inputs, seed, known: Vec::new(), slow, lost }
    }
}

/// What came of it.
#[derive(Debug)]
pub struct Outcome {
    /// How many inputs were handed out.
    pub inputs: u64,
    /// How many of them panicked.
    pub panics: u64,
    /// How many of them hung.
    pub hangs: u64,
    /// How long it took.
    pub elapsed: Duration,
    /// The shortest input for each place that went wrong.
    pub findings: Vec<Finding>,
}

/// An input that went wrong.
#[derive(Clone, Debug)]
pub struct Finding {
    /// What went wrong.
    pub kind: FindingKind,
    /// The file and line of a panic; the same place is reported once.
    pub place: String,
    /// What the panic said.
    pub problem: String,
    /// What was fed.
    pub input: Vec<u8>,
}

/// The ways an input can go wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FindingKind {
    /// The target panicked.
    Panic,
    /// The target took too long.
    Hang,
}

/// Feeds the target as planned.
pub fn run(plan: Plan) -> Outcome {
    catch_panics_of_workers();
    let started = Instant::now();
    let workers = thread::available_parallelism().map_or(1, usize::from);
    let feed = Arc::new(Feed::new(plan));
    let seats: Vec<Arc<Seat>> = (0..workers).map(|_| Arc::default()).collect();
    let (reports, inbox) = mpsc::channel();
    for seat in &seats {
        let (feed, seat, reports) = (Arc::clone(&feed), Arc::clone(seat), reports.clone());
        thread::spawn(move || work(&feed, &seat, &reports));
    }
    drop(reports);

    let mut tally = Tally::default();
    loop {
        match inbox.recv_timeout(feed.plan.lost / 10) {
            Ok(finding) => tally.add(finding),
            // Every worker has hung up: the work is done.
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {
                let lost = seats.iter().find_map(|seat| seat.lost(feed.plan.lost));
                if let Some(number) = lost {
                    feed.close();
                    tally.add(hang(feed.input(number), feed.plan.lost));
                    break;
                }
            }
        }
    }
    Outcome {
        inputs: feed.handed_out(),
        panics: tally.panics,
        hangs: tally.hangs,
        elapsed: started.elapsed(),
        findings: tally.shortest.into_values().collect(),
    }
}

/// The numbered inputs and the next number to be taken.
struct Feed {
    plan: Plan,
    mutator: Mutator,
    next: AtomicU64,
    end: u64,
}

impl Feed {
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

    /// The next numbers, empty at the end.
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

/// Where a worker notes which input it is busy with, and since when.
#[derive(Default)]
struct Seat(Mutex<Option<(u64, Instant)>>);

impl Seat {
    fn note(&self, busy: Option<(u64, Instant)>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = busy;
    }

    /// The input that has been under way for longer than this.
    fn lost(&self, limit: Duration) -> Option<u64> {
        let busy = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        busy.filter(|(_, since)| since.elapsed() > limit).map(|(number, _)| number)
    }
}

fn work(feed: &Feed, seat: &Seat, reports: &Sender<Finding>) {
    PANIC.with_borrow_mut(|panic| *panic = Some(Panic::default()));
    loop {
        let numbers = feed.take();
        if numbers.is_empty() {
            seat.note(None);
            return;
        }
        for number in numbers {
            let input = feed.input(number);
            seat.note(Some((number, Instant::now())));
            if let Some(finding) = judge(feed, input) {
                // Nobody listens any more once an input is lost.
                let _ = reports.send(finding);
            }
        }
    }
}

/// Feeds one input and says what is wrong with what happened.
fn judge(feed: &Feed, input: Vec<u8>) -> Option<Finding> {
    let slow = |elapsed: &Duration| *elapsed > feed.plan.slow;
    match time(feed.plan.target, &input).map(|elapsed| Some(elapsed).filter(slow)) {
        Err(Panic { place, problem }) => Some(Finding { kind: FindingKind::Panic, place, problem, input }),
        Ok(None) => None,
        Ok(Some(_)) => {
            let again = time(feed.plan.target, &input).ok().filter(slow)?;
            Some(hang(input, again))
        }
    }
}

fn time(target: Target, input: &[u8]) -> Result<Duration, Panic> {
    let started = Instant::now();
    match panic::catch_unwind(|| (target.run)(input)) {
        Ok(()) => Ok(started.elapsed()),
        Err(_) => Err(PANIC.with_borrow_mut(|panic| panic.replace(Panic::default())).unwrap_or_default()),
    }
}

fn hang(input: Vec<u8>, elapsed: Duration) -> Finding {
    let problem = format!("took more than {} ms", elapsed.as_millis());
    Finding { kind: FindingKind::Hang, place: "hang".to_owned(), problem, input }
}

#[derive(Default)]
struct Tally {
    panics: u64,
    hangs: u64,
    shortest: HashMap<String, Finding>,
}

impl Tally {
    fn add(&mut self, finding: Finding) {
        match finding.kind {
            FindingKind::Panic => self.panics += 1,
            FindingKind::Hang => self.hangs += 1,
        }
        let shorter = |known: &Finding| finding.input.len() < known.input.len();
        if self.shortest.get(&finding.place).is_none_or(shorter) {
            self.shortest.insert(finding.place.clone(), finding);
        }
    }
}

#[derive(Default)]
struct Panic {
    place: String,
    problem: String,
}

thread_local! {
    /// What the panic just caught on this thread said; `None` on threads that are not workers.
    static PANIC: RefCell<Option<Panic>> = const { RefCell::new(None) };
}

/// Lets a worker's panic be noted instead of printed. Other threads panic as before.
fn catch_panics_of_workers() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let print = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            let noted = PANIC.with_borrow_mut(|panic| {
                panic.as_mut().map(|panic| {
                    panic.place = info.location().map(ToString::to_string).unwrap_or_default();
                    panic.problem = info.payload_as_str().unwrap_or("a panic without a text").to_owned();
                })
            });
            if noted.is_none() {
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
    fn each_place_that_panics_is_reported_once_with_its_shortest_input() {
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
    fn a_slow_input_is_a_hang() {
        let slow = |input: &[u8]| {
            let started = Instant::now();
            while input == b"some words" && started.elapsed() < Duration::from_millis(100) {}
        };
        let outcome = run(Plan { slow: Duration::from_millis(90), ..Plan::new(target(slow), 2, 1) });
        assert_eq!((outcome.panics, outcome.hangs), (0, 1));
        assert_eq!(outcome.findings[0].input, b"some words");
    }

    #[test]
    fn an_input_that_never_comes_back_ends_the_run() {
        let stuck = |input: &[u8]| {
            if input == b"known" {
                loop {
                    thread::park();
                }
            }
        };
        let lost = Duration::from_millis(200);
        let known = vec![b"known".to_vec()];
        let outcome = run(Plan { known, lost, ..Plan::new(target(stuck), 1_000, 1) });
        assert_eq!((outcome.panics, outcome.hangs), (0, 1));
        assert_eq!(outcome.findings[0].input, b"known");
    }
}
