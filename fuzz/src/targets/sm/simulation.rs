//! The actions that can happen to a task, and their effects by the engine's rules.
//!
//! There is one task at a time; a finished one is replaced by the next. Updates of an agent are prepared first and
//! committed by a later action, as with the runner's update buffer.

use std::sync::LazyLock;

use bytes::Bytes;
use engine::{
    Limits, OnCrash, Outcome, Update,
    log::{Log, NewEntry},
    store::{
        Advance, Conflict, JournalChange, JournalStep, MAX_UNANSWERED, StartState, Step, StepOwner,
        TurnPrecondition, Visibility, WorkState,
    },
    task::{
        CurrentState, PublicIds,
        admit::{self, FollowUp, Opening},
        advance::Advanced,
        cancel,
        turn::{self, Lease, TurnState},
    },
};
use protocol::{Artifact, Dialect, Event, Message, Part, Role, TaskState, Timestamp};

use super::simulated_task::{Probation, Row, Run, SimulatedTask};
#[cfg(test)]
use super::stored::Recorded;

/// One action of a script.
pub(super) type Action = fn(&mut Simulation);

/// All actions, by name. A script byte is an index into this table, so saved crashers depend on its order.
pub(super) const ACTIONS: &[(&str, Action)] = &[
    // A client sends a message: blocking; non-blocking; no run slot is free.
    ("send", |simulation| simulation.send(TaskState::Submitted, Visibility::Undecided, WorkState::Held)),
    ("at-once", |simulation| simulation.send(TaskState::Working, Visibility::Visible, WorkState::Held)),
    ("queued", |simulation| {
        simulation.send(TaskState::Submitted, Visibility::Visible, WorkState::Due(simulation.now()))
    }),
    // Or the agent has `overlap`, and its prepared updates join the acceptance commit.
    ("overlap", |simulation| simulation.send_overlapping(None)),
    ("overlap-done", |simulation| simulation.send_overlapping(Some(Outcome::done()))),
    ("overlap-asks", |simulation| simulation.send_overlapping(Some(need_input()))),
    // The agent prepares an update.
    ("working", |simulation| simulation.prepare(Update::Working(None))),
    ("progress", |simulation| simulation.prepare(Update::Working(Some(agent_message("soon"))))),
    ("artifact", |simulation| simulation.prepare(artifact_update(false))),
    ("chunk", |simulation| simulation.prepare(artifact_update(true))),
    ("save", |simulation| simulation.prepare(Update::Save(Bytes::from_static(b"saved")))),
    ("message", |simulation| simulation.prepare(Update::Message(agent_message("here")))),
    // The run commits the prepared updates, alone or with the outcome.
    ("report", |simulation| simulation.commit_run(None)),
    ("done", |simulation| simulation.commit_run(Some(Outcome::done()))),
    ("done-with-message", |simulation| simulation.commit_run(Some(Outcome::done_with("done")))),
    ("retry", |simulation| simulation.commit_run(Some(Outcome::Failed { message: None, retryable: true }))),
    ("failed", |simulation| simulation.commit_run(Some(Outcome::fail("no")))),
    ("rejected", |simulation| simulation.commit_run(Some(Outcome::Rejected { message: None }))),
    ("need-input", |simulation| simulation.commit_run(Some(need_input()))),
    ("need-auth", |simulation| simulation.commit_run(Some(need_auth()))),
    // Takes a snapshot of the row; the next outside action decides on that snapshot instead of the current row.
    ("look", |simulation| simulation.snapshot = simulation.visible_row()),
    ("late", |simulation| simulation.seen = simulation.snapshot),
    // A client sends a follow-up: a run slot is free; none is free; the agent has `overlap`.
    ("answer", |simulation| simulation.follow_up(V1, TurnStart::Now)),
    ("answer-queued", |simulation| simulation.follow_up(V1, TurnStart::Queued)),
    ("answer-overlap", |simulation| simulation.follow_up(V1, TurnStart::Overlapping(None))),
    ("answer-overlap-done", |simulation| {
        simulation.follow_up(V1, TurnStart::Overlapping(Some(Outcome::done())))
    }),
    ("answer-overlap-asks", |simulation| simulation.follow_up(V1, TurnStart::Overlapping(Some(need_auth())))),
    // A client of the draft generation does the same, and may reopen a finished task.
    ("draft", |simulation| simulation.follow_up(DRAFT, TurnStart::Now)),
    ("draft-queued", |simulation| simulation.follow_up(DRAFT, TurnStart::Queued)),
    ("draft-overlap", |simulation| simulation.follow_up(DRAFT, TurnStart::Overlapping(None))),
    ("draft-overlap-done", |simulation| {
        simulation.follow_up(DRAFT, TurnStart::Overlapping(Some(Outcome::done())))
    }),
    ("draft-overlap-asks", |simulation| {
        simulation.follow_up(DRAFT, TurnStart::Overlapping(Some(need_input())))
    }),
    // Or decides on the first terminal state it saw, however often the task was reopened since.
    ("draft-late", |simulation| simulation.follow_up_late(TurnStart::Now)),
    ("draft-late-queued", |simulation| simulation.follow_up_late(TurnStart::Queued)),
    ("draft-late-overlap-done", |simulation| {
        simulation.follow_up_late(TurnStart::Overlapping(Some(Outcome::done())))
    }),
    ("elsewhere", Simulation::follow_up_elsewhere),
    ("cancel", Simulation::cancel),
    // The input timeout expires.
    ("expire", Simulation::expire),
    // The runner claims due work, to run it or to fail it.
    ("claim", |simulation| _ = simulation.claim(false)),
    ("give-up", Simulation::give_up),
    // The process drains, or crashes.
    ("halt", |simulation| simulation.release(OnCrash::Retry)),
    ("halt-fails", |simulation| simulation.release(OnCrash::Fail)),
    ("crash", Simulation::crash),
    // A former holder of the lease tries to write.
    ("stale-report", |simulation| {
        simulation.write_stale(|fence, _| Step::Report { fence }, TaskState::Working)
    }),
    ("stale-done", |simulation| {
        simulation.write_stale(|fence, _| Step::Finish { fence }, TaskState::Completed)
    }),
    ("stale-retry", |simulation| {
        simulation.write_stale(|fence, at| Step::Retry { fence, at }, TaskState::Working)
    }),
    ("stale-release", |simulation| {
        simulation.write_stale(|fence, at| Step::Release { fence, at }, TaskState::Working)
    }),
    // A suspect is claimed on probation, which it survives.
    ("claim-on-probation", |simulation| _ = simulation.claim(true)),
    ("end-probation", Simulation::end_probation),
    ("stale-end-probation", |simulation| {
        simulation.write_stale(|fence, _| Step::EndProbation { fence }, TaskState::Working)
    }),
    // A step of the turn finishes, which is progress; or begins.
    ("step", |simulation| simulation.write_step(true)),
    ("step-begins", |simulation| simulation.write_step(false)),
    ("stale-step", Simulation::write_stale_step),
    // The task's deadline passes.
    ("deadline", Simulation::pass_deadline),
];

const V1: Dialect = Dialect::V1;
const DRAFT: Dialect = Dialect::Draft;

/// Limit of prepared updates.
const MAX_PREPARED: usize = 64;

static LIMITS: LazyLock<Limits> = LazyLock::new(Limits::default);

static NAMES: LazyLock<PublicIds> =
    LazyLock::new(|| PublicIds { task: "task".into(), context: "context".into() });

/// The simulated engine with its current task.
#[derive(Default)]
pub(super) struct Simulation {
    /// Number of actions so far; also the time in milliseconds.
    actions: i64,
    /// Number of tasks so far.
    tasks: usize,
    task: Option<SimulatedTask>,
    /// Updates that the agent has prepared and not yet committed.
    prepared: Vec<Update>,
    /// The row as of the last snapshot.
    snapshot: Option<Row>,
    /// The first terminal row of the task that clients saw.
    first_end: Option<Row>,
    /// The row on which the next outside action decides; the current row if `None`.
    seen: Option<Row>,
    /// The steps that were tried, and whether they were allowed.
    #[cfg(test)]
    pub(super) tried: Vec<(Step, bool)>,
    /// What happened, each with the row after it.
    #[cfg(test)]
    pub(super) history: Vec<(Recorded, Row)>,
}

/// How the turn that a follow-up begins is started.
enum TurnStart {
    Now,
    Queued,
    Overlapping(Option<Outcome>),
}

impl Simulation {
    /// Executes an action and checks the invariants.
    pub(super) fn execute(&mut self, action: Action) {
        self.actions += 1;
        let (tasks, before) = (self.tasks, self.task.as_ref().map(|task| task.row));
        action(self);
        if let Some(task) = &self.task {
            task.check(before.filter(|_| tasks == self.tasks));
        }
        let end = self.visible_row().filter(|row| row.current.state.is_terminal());
        self.first_end = self.first_end.or(end);
    }

    pub(super) fn check_stored_log(&self) {
        if let Some(task) = &self.task {
            task.check_stored_log(&NAMES);
        }
    }

    /// The log of the last task, as stored.
    pub(super) fn log(&self) -> Option<Vec<u8>> {
        let (first, rest) = self.task.as_ref()?.segments().split_first()?;
        // All segments joined: each begins with a format byte, kept only once.
        Some(rest.iter().fold(first.to_vec(), |log, segment| [&log, &segment[1..]].concat()))
    }

    /// The same log with one byte changed; the script decides which one and how.
    pub(super) fn log_with_one_byte_changed(&self, script: &[u8]) -> Option<Bytes> {
        let mut log = self.log()?;
        let hash = script.iter().fold(7_usize, |hash, byte| (hash * 31 + usize::from(*byte)) % 1_000_003);
        let at = hash % log.len();
        log[at] = log[at].wrapping_add(*script.last()?);
        Some(log.into())
    }

    /// The current state of the last task by name, or `hidden`.
    #[cfg(test)]
    pub(super) fn end_state(&self) -> Option<String> {
        let CurrentState { state, visibility } = self.task.as_ref()?.row.current;
        let name =
            protocol::dialect::v1::task::state_name(state).trim_start_matches("TASK_STATE_").to_lowercase();
        Some(if visibility == Visibility::Hidden { "hidden".into() } else { name })
    }

    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.actions)
    }

    fn commit(&mut self, advance: &Advance) -> Result<(), Conflict> {
        let Some(task) = &mut self.task else {
            return Err(Conflict { state: None, fence: 0, unanswered: 0 });
        };
        let before = task.row;
        let result = task.commit(advance);
        assert!(
            result.is_ok() || task.row == before,
            "{:?} was rejected but changed something",
            advance.step
        );
        #[cfg(test)]
        {
            self.tried.push((advance.step, result.is_ok()));
            let recorded = Recorded::Advanced(Box::new(advance.clone()), result.is_ok());
            self.history.push((recorded, task.row));
        }
        result
    }

    fn send(&mut self, state: TaskState, visibility: Visibility, work: WorkState) {
        let worked = (state == TaskState::Working).then(|| NAMES.status(state, None, self.now()));
        self.begin(worked.into_iter().collect(), CurrentState { state, visibility }, work);
    }

    fn send_overlapping(&mut self, outcome: Option<Outcome>) {
        if self.task.as_ref().is_none_or(SimulatedTask::is_finished) {
            let current = CurrentState { state: TaskState::Submitted, visibility: Visibility::Undecided };
            let advanced = self.record_first(TurnState::new(NO, NAMES.clone(), current), outcome);
            let work = if advanced.ended { WorkState::Idle } else { WorkState::Held };
            self.begin(advanced.events, advanced.current, work);
        }
    }

    fn begin(&mut self, events: Vec<Event>, current: CurrentState, work: WorkState) {
        if self.task.as_ref().is_some_and(|task| !task.is_finished()) {
            return;
        }
        self.check_stored_log();
        let opening = entry(admit::start_opening(&NAMES, user_message(), None, self.now()));
        let log = Log::pack([opening].into_iter().chain(events.into_iter().map(|event| (event, None))));
        let task = SimulatedTask::begin(&NAMES, &log, current, work);
        #[cfg(test)]
        self.history.push((Recorded::Accepted(log, current, work), task.row));
        self.task = Some(task);
        self.tasks += 1;
        (self.snapshot, self.first_end, self.seen) = (None, None, None);
    }

    fn prepare(&mut self, update: Update) {
        if self.prepared.len() < MAX_PREPARED {
            self.prepared.push(update);
        }
    }

    /// The prepared updates of an agent with `overlap`, as they join the commit that starts its turn.
    fn record_first(&mut self, mut turn: TurnState, outcome: Option<Outcome>) -> Advanced {
        let prepared = std::mem::take(&mut self.prepared);
        let ends = outcome.is_some();
        let (advanced, later) = turn.record_first(prepared, outcome, &LIMITS, self.now());
        assert!(later.is_none(), "only a retryable failure is decided later: {later:?}");
        assert!(advanced.ended || !ends, "an outcome was dropped: {advanced:?}");
        check_end(&advanced.events.iter().collect::<Vec<_>>(), advanced.ended);
        advanced
    }

    /// What a run knows about the task.
    fn turn_state(&self, current: CurrentState) -> TurnState {
        let open_artifacts = self.task.as_ref().map(SimulatedTask::open_artifacts).unwrap_or_default();
        TurnState { open_artifacts, ..TurnState::new(NO, NAMES.clone(), current) }
    }

    /// The run commits its updates, and the outcome if there is one.
    fn commit_run(&mut self, outcome: Option<Outcome>) {
        let Some(run) = self.task.as_ref().and_then(|task| task.run) else { return };
        let (now, prepared) = (self.now(), std::mem::take(&mut self.prepared));
        let lease = Lease { fence: run.fence, attempt: run.attempt };
        let ends = outcome.is_some();
        let mut turn = self.turn_state(run.current);
        let Some((advance, change)) = turn.record(lease, prepared, outcome, &LIMITS, now, |_| now) else {
            assert!(!ends, "an outcome was dropped");
            return;
        };
        let events: Vec<_> =
            advance.log.entries().iter().map(|entry| entry.event().expect("packed")).collect();
        check_end(&events, matches!(change.step, Step::Finish { .. } | Step::Pause { .. }));
        assert!(change.ends_run() || !ends, "an outcome was dropped: {change:?}");
        // A turn that ends leaves no journal.
        let ends_turn = matches!(change.step, Step::Finish { .. } | Step::Pause { .. });
        let advance = Advance { journal: cleared_if(ends_turn, advance.journal.clone()), ..advance };
        match self.commit(&advance) {
            Ok(()) if change.ends_run() => self.end_run(),
            Ok(()) => self.update_run(turn.current),
            Err(met) => {
                match turn.after_conflict(change, met, lease, now) {
                    Some(again) => {
                        let again = Advance { journal: JournalChange::Clear, ..again };
                        self.commit(&again).expect("the run still holds the lease");
                    }
                    None => assert!(
                        met.state.is_some_and(TaskState::is_terminal),
                        "{:?} was rejected: {met:?}",
                        advance.step
                    ),
                }
                self.end_run();
            }
        }
    }

    fn follow_up(&mut self, dialect: Dialect, turn_start: TurnStart) {
        let Some((now, seen)) = self.decision_rows() else { return };
        let state = seen.current.state;
        let verdict = admit::follow_up(&NAMES, state, None, dialect);
        let reopens = dialect == DRAFT && may_reopen(state);
        assert_eq!(verdict.is_err(), state.is_terminal() && !reopens, "{verdict:?}");
        let waiting = |when| TurnPrecondition { when, fence: seen.fence };
        match verdict {
            Err(_) => {}
            Ok(FollowUp::Enqueue) => self.send_more(now.current.state),
            Ok(FollowUp::Continue) => self.answer(waiting(StartState::Interrupted), turn_start, now),
            Ok(FollowUp::Reopen) => self.answer(waiting(StartState::Terminal), turn_start, now),
        }
    }

    fn follow_up_late(&mut self, turn_start: TurnStart) {
        if self.first_end.is_some() {
            self.seen = self.first_end;
            self.follow_up(DRAFT, turn_start);
        }
    }

    fn follow_up_entry(&self) -> NewEntry {
        entry(admit::follow_up_opening(&NAMES, user_message(), None, self.now()))
    }

    /// A further message is accepted by an unsettled task, up to a limit, whatever the client saw.
    fn send_more(&mut self, now: TaskState) {
        let listen = Advance {
            status: Some((TaskState::Working, self.now())),
            ..self.step(Step::QueueMessage, [self.follow_up_entry()])
        };
        let result = self.commit(&listen);
        let full = result.is_err_and(|met| met.unanswered == MAX_UNANSWERED);
        assert!(result.is_ok() != (now.is_settled() || full), "{now:?}: {result:?}");
    }

    /// An answer is accepted by an interrupted task, and a reopening message by a finished one, in both cases only
    /// for the turn whose end the client saw.
    fn answer(&mut self, waiting: TurnPrecondition, turn_start: TurnStart, now: Row) {
        let mut events = vec![self.follow_up_entry()];
        let mut current = CurrentState { state: TaskState::Working, visibility: Visibility::Visible };
        let mut step = Step::Resume(waiting);
        match turn_start {
            TurnStart::Now => {}
            TurnStart::Queued => step = Step::Queue { waiting, at: self.now() },
            TurnStart::Overlapping(outcome) => {
                let advanced = self.record_first(self.turn_state(current), outcome);
                events.extend(advanced.events.into_iter().map(|event| (event, None)));
                current = advanced.current;
                step = if advanced.ended { Step::Settle(waiting) } else { Step::Resume(waiting) };
            }
        }
        let change = Advance { status: Some((current.state, self.now())), ..self.step(step, events) };
        let result = self.commit(&change);
        let state = now.current.state;
        let waits = match waiting.when {
            StartState::Interrupted => state.is_interrupted(),
            StartState::Terminal => may_reopen(state),
        };
        assert_eq!(result.is_ok(), waits && now.fence == waiting.fence, "{step:?} met {result:?}");
        if let (Ok(()), Step::Resume(_), Some(task)) = (result, step, &mut self.task) {
            task.start_run(current);
        }
    }

    fn follow_up_elsewhere(&mut self) {
        if let Some(state) = self.visible_row().map(|row| row.current.state) {
            for dialect in Dialect::ALL {
                admit::follow_up(&NAMES, state, Some(&"elsewhere".into()), dialect)
                    .expect_err("a task belongs to one context");
                let here = admit::follow_up(&NAMES, state, Some(&NAMES.context), dialect);
                let reopens = dialect == DRAFT && may_reopen(state);
                assert_eq!(here.is_err(), state.is_terminal() && !reopens, "{here:?}");
            }
        }
    }

    fn cancel(&mut self) {
        let Some((now, seen)) =
            self.decision_rows().map(|(now, seen)| (now.current.state, seen.current.state))
        else {
            return;
        };
        let event = cancel::cancel(&NAMES, seen, self.now());
        assert_eq!(event.is_err(), seen.is_terminal(), "{event:?}");
        let Ok(event) = event else { return };
        let change = Advance {
            journal: JournalChange::Clear,
            ..self.step_with_events(Step::Cancel, TaskState::Canceled, vec![event])
        };
        // Whatever happened since the snapshot: an open task can be canceled, a finished one does not change.
        assert_eq!(self.commit(&change).is_err(), now.is_terminal());
    }

    /// Fails a task whose input timeout expired; a task that was answered or asked again since the snapshot is not
    /// affected.
    fn expire(&mut self) {
        let Some((now, seen)) = self.decision_rows() else { return };
        if seen.current.state.is_interrupted() {
            let waits = now.current.state.is_interrupted() && now.fence == seen.fence;
            let result = self.fail_unheld(seen.fence);
            assert_eq!(result.is_ok(), waits, "{seen:?} became {now:?}");
        }
    }

    /// Fails an open task that nobody ran when its deadline passed; a task that was claimed or answered since the
    /// snapshot is not affected.
    fn pass_deadline(&mut self) {
        let Some((now, seen)) = self.decision_rows() else { return };
        if seen.work != WorkState::Held && !seen.current.state.is_terminal() {
            let unchanged = !now.current.state.is_terminal() && now.fence == seen.fence;
            let result = self.fail_unheld(seen.fence);
            assert_eq!(result.is_ok(), unchanged, "{seen:?} became {now:?}");
            assert!(result.is_err() || now.work != WorkState::Held, "a running task expired: {now:?}");
        }
    }

    fn fail_unheld(&mut self, fence: i64) -> Result<(), Conflict> {
        let failed = NAMES.status(TaskState::Failed, Some(agent_message("too late")), self.now());
        let change = self.step_with_events(Step::Expire { fence }, TaskState::Failed, vec![failed]);
        self.commit(&Advance { journal: JournalChange::Clear, ..change })
    }

    fn end_probation(&mut self) {
        let Some(fence) = self.fence() else { return };
        let result = self.commit(&Advance::new(NO, Step::EndProbation { fence }));
        let row = self.task.as_ref().map(|task| task.row);
        let holds = row.is_some_and(|row| row.work == WorkState::Held);
        assert_eq!(result.is_ok(), holds, "{row:?}");
        assert!(result.is_err() || row.is_some_and(|row| row.probation == Probation::No), "{row:?}");
    }

    /// The run records a step. A finished step is progress.
    fn write_step(&mut self, finished: bool) {
        let Some((row, run)) = self.task.as_ref().and_then(|task| Some((task.row, task.run?))) else {
            return;
        };
        let change = Advance { progress: finished, ..self.journal_step(run.fence, row.journal, finished) };
        let result = self.commit(&change);
        let Some(task) = &mut self.task else { return };
        assert_eq!(result.is_ok(), row.work == WorkState::Held, "{row:?}");
        if result.is_ok() && finished {
            let reset = Row { attempt: 1, deaths: 0, probation: Probation::No, ..row };
            assert_eq!(task.row, Row { journal: row.journal + 1, ..reset });
            task.run = Some(Run { attempt: 1, ..run });
        }
    }

    fn write_stale_step(&mut self) {
        let Some(task) = &self.task else { return };
        let Some(run) = task.former_runs.last() else { return };
        let late = Advance { progress: true, ..self.journal_step(run.fence, task.row.journal, true) };
        self.commit(&late).expect_err("a stale run wrote a step");
    }

    fn journal_step(&self, fence: i64, number: usize, finished: bool) -> Advance {
        let output = finished.then(|| Bytes::from_static(b"output"));
        let step = JournalStep { owner: StepOwner::Turn(1), id: format!("step-{number}"), output };
        Advance { journal: JournalChange::Write(vec![step]), ..Advance::new(NO, Step::Report { fence }) }
    }

    /// Claims due work; returns whether there was any.
    fn claim(&mut self, probation: bool) -> bool {
        let due = self.task.as_ref().is_some_and(|task| matches!(task.row.work, WorkState::Due(_)));
        let claim =
            Advance { visibility: Some(Visibility::Visible), ..self.step(Step::Claim { probation }, []) };
        let claimed = self.commit(&claim).is_ok();
        assert_eq!(claimed, due);
        if let (true, Some(task)) = (claimed, &mut self.task) {
            task.start_run(CurrentState { visibility: Visibility::Visible, ..task.row.current });
            if task.row.attempt > i64::from(LIMITS.attempts) {
                self.fail();
            }
        }
        claimed
    }

    fn give_up(&mut self) {
        if self.claim(false) {
            self.fail();
        }
    }

    /// The runner fails its run, because it must not continue.
    fn fail(&mut self) {
        let Some(fence) = self.fence() else { return };
        self.end_run_by(&turn::failure(NO, &NAMES, fence, NAMES.message("gave up"), self.now()));
    }

    /// The process ends before the run.
    fn release(&mut self, on_crash: OnCrash) {
        let Some(run) = self.task.as_ref().and_then(|task| task.run) else { return };
        let turn = self.turn_state(run.current);
        self.end_run_by(&turn.release(run.fence, on_crash, self.now()));
    }

    /// Commits the last change of a run: it is rejected only when a client has ended the task.
    fn end_run_by(&mut self, change: &Advance) {
        let over = self.task.as_ref().is_some_and(SimulatedTask::is_finished);
        assert_eq!(self.commit(change).is_err(), over, "{:?}", change.step);
        self.end_run();
    }

    fn crash(&mut self) {
        let now = self.now();
        self.prepared.clear();
        if let Some(task) = &mut self.task {
            task.crash(now);
            #[cfg(test)]
            self.history.push((Recorded::Crashed, task.row));
        }
    }

    /// One of the former runs writes. A run that released or lost the lease must be rejected.
    fn write_stale(&mut self, step: fn(i64, Timestamp) -> Step, state: TaskState) {
        let Some(task) = &self.task else { return };
        let turn = usize::try_from(self.actions).unwrap_or_default();
        let Some(run) = task.former_runs.get(turn % task.former_runs.len().max(1)) else { return };
        let stale = step(run.fence, self.now());
        let status = NAMES.status(state, Some(agent_message("late")), self.now());
        let late = Advance {
            visibility: Some(Visibility::Visible),
            ..self.step_with_events(stale, state, vec![status])
        };
        self.commit(&late).expect_err("a stale run wrote");
    }

    fn update_run(&mut self, current: CurrentState) {
        if let Some(run) = self.task.as_mut().and_then(|task| task.run.as_mut()) {
            run.current = current;
        }
    }

    fn end_run(&mut self) {
        if let Some(task) = &mut self.task {
            task.end_run();
        }
    }

    /// The current row of a visible task, and the row on which the next action decides.
    fn decision_rows(&mut self) -> Option<(Row, Row)> {
        let now = self.visible_row()?;
        Some((now, self.seen.take().unwrap_or(now)))
    }

    /// The row of the task, if clients can see it.
    fn visible_row(&self) -> Option<Row> {
        let row = self.task.as_ref()?.row;
        (row.current.visibility == Visibility::Visible).then_some(row)
    }

    /// The fencing token of the current run.
    fn fence(&self) -> Option<i64> {
        Some(self.task.as_ref()?.run?.fence)
    }

    /// A step with events; sets the status if one of the events has a state.
    fn step_with_events(&self, step: Step, state: TaskState, events: Vec<Event>) -> Advance {
        let has_state = events.iter().any(|event| !matches!(event, Event::Artifact(_)));
        let status = has_state.then_some((state, self.now()));
        Advance { status, ..self.step(step, events.into_iter().map(|event| (event, None))) }
    }

    fn step(&self, step: Step, events: impl IntoIterator<Item = NewEntry>) -> Advance {
        Advance { log: Log::pack(events), ..Advance::new(NO, step) }
    }
}

/// There is one task at a time.
const NO: engine::ids::TaskNo = engine::ids::TaskNo(1);

/// Nothing follows the event that ends a turn.
fn check_end(events: &[&Event], ended: bool) {
    let settles = |event: &&Event| match event {
        Event::Status(update) => update.status.state.is_settled(),
        Event::Message(_) => true,
        _ => false,
    };
    let first = events.iter().position(settles);
    assert_eq!(first.is_some(), ended, "{events:?}");
    assert!(first.is_none_or(|at| at + 1 == events.len()), "an event follows the final one: {events:?}");
}

fn cleared_if(cleared: bool, journal: JournalChange) -> JournalChange {
    if cleared { JournalChange::Clear } else { journal }
}

/// A canceled or rejected task cannot be reopened.
fn may_reopen(state: TaskState) -> bool {
    matches!(state, TaskState::Completed | TaskState::Failed)
}

fn need_input() -> Outcome {
    Outcome::ask("which?")
}

fn need_auth() -> Outcome {
    Outcome::ask_for_credentials("who?")
}

fn entry((event, message): Opening) -> NewEntry {
    (event, Some(message))
}

fn user_message() -> Message {
    Message::new("user", Role::User, vec![Part::text("please")])
}

fn agent_message(text: &str) -> Message {
    Message::new("agent", Role::Agent, vec![Part::text(text)])
}

fn artifact_update(append: bool) -> Update {
    Update::Artifact { artifact: Artifact::new("artifact", vec![Part::text("piece")]), append, last: !append }
}

#[cfg(test)]
mod tests {
    use super::super::{TARGET, corpus, execute, script};
    use crate::mutate::Mutator;

    #[test]
    fn only_draft_clients_reopen_a_finished_task() {
        let scripts = [
            ("at-once done draft artifact report done", "completed", 2),
            ("at-once failed draft-queued claim need-input draft done", "completed", 2),
            (
                "artifact overlap-done artifact draft-overlap-done draft-overlap-asks answer failed",
                "failed",
                3,
            ),
            ("send need-input expire draft-overlap done draft draft need-auth claim rejected", "rejected", 3),
            (
                "at-once answer*3 done draft crash claim stale-done halt claim done stale-report",
                "completed",
                2,
            ),
            ("at-once done draft cancel draft draft-queued draft-overlap-done", "canceled", 2),
            ("at-once rejected draft draft-overlap-done", "rejected", 1),
            ("at-once done answer answer-queued answer-overlap-done", "completed", 1),
            ("send message report draft draft-overlap-done", "hidden", 1),
            ("at-once done look draft late draft draft done late draft-overlap-asks", "completed", 2),
            (
                "at-once done draft-late draft-late done draft-late-queued draft-late-overlap-done",
                "completed",
                2,
            ),
            (
                "at-once done look draft done draft-overlap-asks late draft look late draft-queued",
                "working",
                3,
            ),
            ("at-once done look draft cancel late draft late draft-queued", "canceled", 2),
        ];
        for (actions, ends, turns) in scripts {
            let simulation = execute(&script(actions));
            assert_eq!(simulation.end_state().as_deref(), Some(ends), "{actions}");
            assert_eq!(simulation.task.map(|task| task.row.turn), Some(turns), "{actions}");
        }
    }

    #[test]
    fn random_scripts_have_several_turns() {
        let mutator = Mutator::new(corpus(), TARGET.dictionary, 7);
        let mut tried = std::collections::HashMap::new();
        let mut most = 0;
        for number in 0..30_000 {
            let simulation = execute(&mutator.input(number));
            for (step, allowed) in &simulation.tried {
                let reopens = step.effects().turn_step == 1;
                let name = format!("{step:?}").split([' ', '(']).next().unwrap_or_default().to_owned();
                *tried.entry((name, reopens, *allowed)).or_insert(0) += 1;
            }
            most = simulation.task.map_or(0, |task| task.row.turn).max(most);
        }
        for step in ["Resume", "Queue", "Settle"] {
            for allowed in [true, false] {
                assert!(
                    tried.contains_key(&(step.to_owned(), true, allowed)),
                    "{step}, {allowed}: {tried:?}"
                );
            }
        }
        assert!(most >= 3, "{most} turns at most");
    }
}
