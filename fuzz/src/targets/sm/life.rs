//! A task in memory: its row, judged by the table of steps, and its log, checked entry by entry.

use bytes::Bytes;
use engine::{
    log::{Kind, Log, Seq},
    store::{Advance, Conflict, Counter, Effects, MAX_UNANSWERED, Visibility, Work},
    task::{Names, Standing, fold},
};
use protocol::{Role, Task, TaskState, Timestamp};

/// A task and who works on it.
pub(super) struct Life {
    pub(super) row: Row,
    /// The log as a store keeps it.
    segments: Vec<Bytes>,
    /// How many entries that is, and what the last one is.
    entries: Seq,
    last: Kind,
    /// The fold of the log.
    task: Task,
    /// How many messages of the user were recorded.
    asked: usize,
    /// The run that holds the work, as far as it knows.
    pub(super) run: Option<Run>,
    /// Runs that held it before.
    pub(super) former: Vec<Run>,
}

/// A task's row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Row {
    pub(super) standing: Standing,
    pub(super) turn: i64,
    pub(super) last_seq: Seq,
    pub(super) fence: i64,
    pub(super) attempt: i64,
    pub(super) deaths: i64,
    pub(super) unanswered: i64,
    pub(super) work: Work,
}

/// A run and what it believes.
#[derive(Clone, Copy)]
pub(super) struct Run {
    pub(super) fence: i64,
    pub(super) attempt: i64,
    pub(super) standing: Standing,
}

impl Life {
    /// A message became a task.
    pub(super) fn begin(names: &Names, log: &Log, standing: Standing, work: Work) -> Self {
        let ran = i64::from(!matches!(work, Work::Due(_)));
        let row = Row {
            standing,
            turn: 1,
            last_seq: log.len(),
            fence: ran,
            attempt: ran,
            deaths: 0,
            unanswered: 0,
            work,
        };
        let mut life = Self {
            row,
            segments: Vec::new(),
            entries: 0,
            last: Kind::Status(TaskState::Unspecified),
            task: fold::begin(names),
            asked: 0,
            run: None,
            former: Vec::new(),
        };
        life.append(log, false);
        if work == Work::Held {
            life.take_up(standing);
        }
        life
    }

    /// What a store does with a change. Every column of the table is read here.
    pub(super) fn commit(&mut self, advance: &Advance) -> Result<(), Conflict> {
        let Effects { from, fence, held, due, max_unanswered, .. } = advance.step.effects();
        let Effects { fence_step, turn_step, attempts, unanswered, work, .. } = advance.step.effects();
        let row = &mut self.row;
        let allowed = from.contains(row.standing.state)
            && fence.is_none_or(|fence| fence == row.fence)
            && (!held || row.work == Work::Held)
            && (!due || matches!(row.work, Work::Due(_)))
            && row.unanswered <= max_unanswered;
        if !allowed {
            let state = Some(row.standing.state);
            return Err(Conflict { state, fence: row.fence, unanswered: row.unanswered });
        }
        row.standing.state = advance.status.map_or(row.standing.state, |(state, _)| state);
        row.standing.visibility = advance.visibility.unwrap_or(row.standing.visibility);
        row.last_seq += advance.log.len();
        row.fence += fence_step;
        row.turn += turn_step;
        row.attempt = count(attempts, row.attempt);
        row.unanswered = count(unanswered, row.unanswered);
        row.work = work.unwrap_or(row.work);
        self.append(&advance.log, turn_step == 1);
        Ok(())
    }

    /// Somebody holds the work from now on.
    pub(super) fn take_up(&mut self, standing: Standing) {
        self.let_go();
        let Row { fence, attempt, .. } = self.row;
        self.run = Some(Run { fence, attempt, standing });
    }

    /// The run is over.
    pub(super) fn let_go(&mut self) {
        self.former.extend(self.run.take());
    }

    /// The process died; the next one finds what it held due.
    pub(super) fn die(&mut self, now: Timestamp) {
        self.let_go();
        if self.row.work == Work::Held {
            self.row.work = Work::Due(now);
            self.row.deaths += 1;
        }
    }

    pub(super) fn is_over(&self) -> bool {
        self.row.standing.state.is_terminal()
    }

    pub(super) fn segments(&self) -> &[Bytes] {
        &self.segments
    }

    /// Nothing follows an ending but the message that begins the next turn, and only the first entry says
    /// submitted.
    fn append(&mut self, log: &Log, mut reopens: bool) {
        if log.is_empty() {
            assert!(!reopens, "a turn begins with nothing");
            return;
        }
        for entry in log.entries() {
            let asks = entry.rider().expect("it was just packed").is_some();
            let begins = std::mem::take(&mut reopens);
            assert_eq!(ends(self.last), begins, "{:?} follows {:?}", entry.kind(), self.last);
            assert!(asks || !begins, "{:?} begins a turn", entry.kind());
            let submits = entry.kind() == Kind::Status(TaskState::Submitted);
            assert_eq!(submits, self.entries == 0, "entry {} is {:?}", self.entries + 1, entry.kind());
            self.asked += usize::from(asks);
            self.entries += 1;
            self.last = entry.kind();
            fold::apply(&mut self.task, entry).expect("it was just packed");
        }
        self.segments.push(log.segment().clone());
    }

    /// What must be true after every act; `before` is the row before it.
    pub(super) fn check(&self, before: Option<Row>) {
        let row = self.row;
        let Standing { state, visibility } = row.standing;
        assert_eq!(self.entries, row.last_seq, "numbers have no gaps");
        assert_eq!(self.task.status.state, state, "the row is the fold of the log");
        assert_eq!(ends(self.last), state.is_terminal(), "{:?} is last in {state:?}", self.last);
        assert!((0..=MAX_UNANSWERED).contains(&row.unanswered), "{row:?}");
        assert!(row.unanswered == 0 || !state.is_interrupted(), "a task waits for what was said: {row:?}");
        assert!(row.attempt >= 0, "{row:?}");
        match row.work {
            Work::Idle => assert!(state.is_settled(), "work is lost: {row:?}"),
            Work::Due(_) => assert!(!state.is_settled() && self.run.is_none(), "{row:?}"),
            Work::Held => {
                let holder = self.run.is_some_and(|run| run.fence == row.fence && run.attempt == row.attempt);
                assert!(!state.is_settled() && row.attempt >= 1 && holder, "{row:?}");
            }
        }
        assert_eq!(visibility == Visibility::Hidden, self.last == Kind::Message, "{row:?}");
        assert!(visibility != Visibility::Undecided || self.entries == 1, "shown, but not decided: {row:?}");
        let Some(before) = before else { return };
        match row.turn - before.turn {
            0 => assert!(!before.standing.state.is_terminal() || before == row, "{before:?} became {row:?}"),
            1 => {
                let ended = matches!(before.standing.state, TaskState::Completed | TaskState::Failed);
                assert!(ended && visibility == Visibility::Visible, "{before:?} became {row:?}");
                assert_eq!(row.unanswered, 0, "{before:?} became {row:?}");
            }
            _ => panic!("{before:?} became {row:?}"),
        }
        assert!(state != TaskState::Submitted || before.standing.state == state, "{before:?} became {row:?}");
        let decided = before.standing.visibility;
        assert!(decided == Visibility::Undecided || decided == visibility, "{before:?} became {row:?}");
        assert!(before.fence <= row.fence && before.last_seq <= row.last_seq, "{before:?} became {row:?}");
    }

    /// What is stored adds up to the same task.
    pub(super) fn check_whole(&self, names: &Names) {
        let mut task = fold::begin(names);
        let mut endings = 0;
        for segment in &self.segments {
            let log = Log::unpack(segment.clone()).expect("it was packed");
            for entry in log.entries() {
                endings += i64::from(ends(entry.kind()));
                fold::apply(&mut task, entry).expect("it was packed");
            }
        }
        // Each turn ends once, but for the last if that is open.
        let expected = self.row.turn - i64::from(!self.is_over());
        assert_eq!(endings, expected, "endings of {} turns", self.row.turn);
        assert_eq!(task, self.task);
        let asked = task.history.iter().filter(|message| message.role == Role::User).count();
        assert!(asked == self.asked || task.history.len() == fold::MAX_HISTORY, "{asked} of {}", self.asked);
    }
}

fn ends(kind: Kind) -> bool {
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
