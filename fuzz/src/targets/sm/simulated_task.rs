//! A task in memory: its row, guarded by the step table, and its log, checked entry by entry.

use std::{collections::HashSet, sync::Arc};

use bytes::Bytes;
use engine::{
    log::{Entry, Kind, Log, Seq},
    store::{
        Advance, Conflict, Counter, Effects, JournalChange, MAX_UNANSWERED, Step, Visibility, WorkState,
    },
    task::{CurrentState, PublicIds, fold, turn},
};
use protocol::{ArtifactId, Role, Task, TaskState, Timestamp};

/// A task and its runs.
pub(super) struct SimulatedTask {
    pub(super) row: Row,
    /// The log as a store keeps it.
    segments: Vec<Bytes>,
    log: Vec<Arc<Entry>>,
    /// Number of entries in the log, and the kind of the last one.
    entries: Seq,
    last: Kind,
    /// The fold of the log.
    task: Task,
    /// Number of user messages in the log.
    user_messages: usize,
    /// The run that believes it holds the lease.
    pub(super) run: Option<Run>,
    /// Runs that held the lease before.
    pub(super) former_runs: Vec<Run>,
}

/// The columns of a task's row that the rules use.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Row {
    pub(super) current: CurrentState,
    pub(super) turn: i64,
    pub(super) last_seq: Seq,
    pub(super) fence: i64,
    pub(super) attempt: i64,
    /// Crashes since the turn's last progress.
    pub(super) deaths: i64,
    /// Crashes in this turn.
    pub(super) crashes: i64,
    pub(super) probation: Probation,
    pub(super) unanswered: i64,
    pub(super) work: WorkState,
    /// Number of steps in the journal.
    pub(super) journal: usize,
}

/// Whether a run is on probation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Probation {
    No,
    On,
    /// Its process crashed meanwhile.
    Died,
}

/// A run and what it believes about the task.
#[derive(Clone, Copy)]
pub(super) struct Run {
    pub(super) fence: i64,
    pub(super) attempt: i64,
    pub(super) current: CurrentState,
}

impl SimulatedTask {
    /// A task accepted for a first message.
    pub(super) fn begin(names: &PublicIds, log: &Log, current: CurrentState, work: WorkState) -> Self {
        let ran = i64::from(!matches!(work, WorkState::Due(_)));
        let row = Row {
            current,
            turn: 1,
            last_seq: log.len(),
            fence: ran,
            attempt: ran,
            deaths: 0,
            crashes: 0,
            probation: Probation::No,
            unanswered: 0,
            work,
            journal: 0,
        };
        let mut task = Self {
            row,
            segments: Vec::new(),
            log: Vec::new(),
            entries: 0,
            last: Kind::Status(TaskState::Unspecified),
            task: fold::begin(names),
            user_messages: 0,
            run: None,
            former_runs: Vec::new(),
        };
        task.append(log, false);
        if work == WorkState::Held {
            task.start_run(current);
        }
        task
    }

    /// Applies a change as a store does. Uses every column of the step table.
    pub(super) fn commit(&mut self, advance: &Advance) -> Result<(), Conflict> {
        let Effects { from, fence, held, due, max_unanswered, .. } = advance.effects();
        let Effects { fence_step, turn_step, attempts, unanswered, work, .. } = advance.effects();
        let Effects { begins_turn, probation, .. } = advance.effects();
        let row = &mut self.row;
        let allowed = from.contains(row.current.state)
            && fence.is_none_or(|fence| fence == row.fence)
            && (!held || row.work == WorkState::Held)
            && (!due || matches!(row.work, WorkState::Due(_)))
            && row.unanswered <= max_unanswered;
        if !allowed {
            let state = Some(row.current.state);
            return Err(Conflict { state, fence: row.fence, unanswered: row.unanswered });
        }
        row.current.state = advance.status.map_or(row.current.state, |(state, _)| state);
        row.current.visibility = advance.visibility.unwrap_or(row.current.visibility);
        row.last_seq += advance.log.len();
        row.fence += fence_step;
        row.turn += turn_step;
        row.attempt = count(attempts, row.attempt);
        if matches!(attempts, Counter::Set(_)) {
            row.deaths = 0;
        }
        if begins_turn {
            row.crashes = 0;
        }
        row.probation = match (row.probation, probation) {
            (Probation::No, Some(true)) => Probation::On,
            (_, Some(false)) => Probation::No,
            (probation, Some(true) | None) => probation,
        };
        row.unanswered = count(unanswered, row.unanswered);
        if let Some(work) = work {
            row.work = work;
            // A crash on probation counts until the next attempt.
            let repeats =
                matches!(advance.step, Step::Retry { .. } | Step::Release { .. }) && !advance.progress;
            if work != WorkState::Held && !(repeats && row.probation == Probation::Died) {
                row.probation = Probation::No;
            }
        }
        match &advance.journal {
            JournalChange::Keep => {}
            JournalChange::Clear | JournalChange::EndTurn(_) => row.journal = 0,
            JournalChange::Write(steps) => row.journal += steps.len(),
        }
        self.append(&advance.log, turn_step == 1);
        Ok(())
    }

    /// Starts a run that holds the lease from now on.
    pub(super) fn start_run(&mut self, current: CurrentState) {
        self.end_run();
        let Row { fence, attempt, .. } = self.row;
        self.run = Some(Run { fence, attempt, current });
    }

    /// Ends the run, if there is one.
    pub(super) fn end_run(&mut self) {
        self.former_runs.extend(self.run.take());
    }

    /// The process crashed; the next one finds its work due.
    pub(super) fn crash(&mut self, now: Timestamp) {
        self.end_run();
        if self.row.work == WorkState::Held {
            self.row.work = WorkState::Due(now);
            self.row.deaths += 1;
            self.row.crashes += 1;
            if self.row.probation == Probation::On {
                self.row.probation = Probation::Died;
            }
        }
    }

    /// The artifacts whose last chunk is not recorded.
    pub(super) fn open_artifacts(&self) -> HashSet<ArtifactId> {
        turn::open_artifacts(&self.log).expect("it was packed")
    }

    pub(super) fn is_finished(&self) -> bool {
        self.row.current.state.is_terminal()
    }

    pub(super) fn segments(&self) -> &[Bytes] {
        &self.segments
    }

    /// Only the message that begins the next turn may follow a terminal entry, and only the first entry is submitted.
    fn append(&mut self, log: &Log, mut reopens: bool) {
        if log.is_empty() {
            assert!(!reopens, "a turn must begin with an entry");
            return;
        }
        for entry in log.entries() {
            let has_user_message = entry.user_message().expect("it was just packed").is_some();
            let begins = std::mem::take(&mut reopens);
            assert_eq!(is_terminal(self.last), begins, "{:?} follows {:?}", entry.kind(), self.last);
            assert!(has_user_message || !begins, "{:?} begins a turn", entry.kind());
            let submits = entry.kind() == Kind::Status(TaskState::Submitted);
            assert_eq!(submits, self.entries == 0, "entry {} is {:?}", self.entries + 1, entry.kind());
            self.user_messages += usize::from(has_user_message);
            self.entries += 1;
            self.last = entry.kind();
            fold::apply(&mut self.task, entry).expect("it was just packed");
        }
        self.segments.push(log.segment().clone());
        self.log.extend(log.entries().iter().cloned());
    }

    /// The invariants after every action; `before` is the row before it.
    pub(super) fn check(&self, before: Option<Row>) {
        let row = self.row;
        let CurrentState { state, visibility } = row.current;
        assert_eq!(self.entries, row.last_seq, "sequence numbers have no gaps");
        assert_eq!(self.task.status.state, state, "the row must match the fold of the log");
        assert_eq!(is_terminal(self.last), state.is_terminal(), "{:?} is last in {state:?}", self.last);
        assert!((0..=MAX_UNANSWERED).contains(&row.unanswered), "{row:?}");
        assert!(
            row.unanswered == 0 || !state.is_interrupted(),
            "a task waits for input it already has: {row:?}"
        );
        assert!(row.attempt >= 0, "{row:?}");
        assert!(
            (0..=row.crashes).contains(&row.deaths),
            "more crashes since progress than in the turn: {row:?}"
        );
        match row.probation {
            Probation::No => {}
            Probation::On => assert!(row.work == WorkState::Held, "nobody is on probation: {row:?}"),
            Probation::Died => assert!(row.work != WorkState::Idle && row.deaths > 0, "{row:?}"),
        }
        assert!(row.journal == 0 || !state.is_settled(), "the journal of a turn that has ended: {row:?}");
        match row.work {
            WorkState::Idle => assert!(state.is_settled(), "work is lost: {row:?}"),
            WorkState::Due(_) => assert!(!state.is_settled() && self.run.is_none(), "{row:?}"),
            WorkState::Held => {
                let holder = self.run.is_some_and(|run| run.fence == row.fence && run.attempt == row.attempt);
                assert!(!state.is_settled() && row.attempt >= 1 && holder, "{row:?}");
            }
        }
        assert_eq!(visibility == Visibility::Hidden, self.last == Kind::Message, "{row:?}");
        assert!(
            visibility != Visibility::Undecided || self.entries == 1,
            "visible entries, but visibility undecided: {row:?}"
        );
        let Some(before) = before else { return };
        match row.turn - before.turn {
            0 => assert!(!before.current.state.is_terminal() || before == row, "{before:?} became {row:?}"),
            1 => {
                let ended = matches!(before.current.state, TaskState::Completed | TaskState::Failed);
                assert!(ended && visibility == Visibility::Visible, "{before:?} became {row:?}");
                assert_eq!(row.unanswered, 0, "{before:?} became {row:?}");
            }
            _ => panic!("{before:?} became {row:?}"),
        }
        assert!(state != TaskState::Submitted || before.current.state == state, "{before:?} became {row:?}");
        let decided = before.current.visibility;
        assert!(decided == Visibility::Undecided || decided == visibility, "{before:?} became {row:?}");
        assert!(before.fence <= row.fence && before.last_seq <= row.last_seq, "{before:?} became {row:?}");
    }

    /// The stored segments fold to the same task.
    pub(super) fn check_stored_log(&self, names: &PublicIds) {
        let mut task = fold::begin(names);
        let mut endings = 0;
        for segment in &self.segments {
            let log = Log::unpack(segment.clone()).expect("it was packed");
            for entry in log.entries() {
                endings += i64::from(is_terminal(entry.kind()));
                fold::apply(&mut task, entry).expect("it was packed");
            }
        }
        // Each turn has one terminal entry, except the last turn if it is open.
        let expected = self.row.turn - i64::from(!self.is_finished());
        assert_eq!(endings, expected, "terminal entries of {} turns", self.row.turn);
        assert_eq!(task, self.task);
        let user_messages = task.history.iter().filter(|message| message.role == Role::User).count();
        assert!(
            user_messages == self.user_messages || task.history.len() == fold::MAX_HISTORY,
            "{user_messages} of {}",
            self.user_messages
        );
    }
}

fn is_terminal(kind: Kind) -> bool {
    match kind {
        Kind::Status(state) => state.is_terminal(),
        Kind::Artifact => false,
        Kind::Message => true,
    }
}

fn count(counter: Counter, number: i64) -> i64 {
    match counter {
        Counter::Add(by) => number + by,
        Counter::Set(to) => to,
    }
}
