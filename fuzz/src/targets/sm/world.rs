//! What can happen to a task, and what then becomes of it by the engine's rules.
//!
//! There is one task at a time; one that is over makes room for the next. What an agent says is prepared first
//! and handed over with a later act, as with the runner's outbox.

use std::sync::LazyLock;

use bytes::Bytes;
use engine::{
    Outcome, Update,
    log::{Line, Log},
    store::{Advance, Conflict, MAX_UNANSWERED, Step, Visibility, Waiting, When, Work},
    task::{
        Names, Standing,
        admit::{self, FollowUp},
        advance::{self, Advanced},
        cancel,
    },
};
use protocol::{Artifact, Dialect, Event, Message, Part, Role, TaskState, Timestamp};

use super::life::{Life, Row};

/// One thing that happens.
pub(super) type Act = fn(&mut World);

/// Everything that can happen, by name.
pub(super) const ACTS: &[(&str, Act)] = &[
    // A client sends a message: it waits; it does not wait; no slot is free.
    ("send", |world| world.send(TaskState::Submitted, Visibility::Undecided, Work::Held)),
    ("at-once", |world| world.send(TaskState::Working, Visibility::Visible, Work::Held)),
    ("queued", |world| world.send(TaskState::Submitted, Visibility::Visible, Work::Due(world.now()))),
    // Or the agent overlaps, and has said what was prepared before the message is recorded.
    ("overlap", |world| world.send_overlapping(None)),
    ("overlap-done", |world| world.send_overlapping(Some(Outcome::done()))),
    ("overlap-asks", |world| world.send_overlapping(Some(asks_input()))),
    // The agent prepares something to say.
    ("working", |world| world.say(Update::Working(None))),
    ("progress", |world| world.say(Update::Working(Some(word("soon"))))),
    ("artifact", |world| world.say(piece(false))),
    ("chunk", |world| world.say(piece(true))),
    ("save", |world| world.say(Update::Save(Bytes::from_static(b"saved")))),
    ("message", |world| world.say(Update::Message(word("here")))),
    // The run hands it over, alone or with the outcome.
    ("report", |world| world.hand_over(None)),
    ("done", |world| world.hand_over(Some(Outcome::done()))),
    ("done-saying", |world| world.hand_over(Some(Outcome::Done { message: Some(word("done")) }))),
    ("retry", |world| world.hand_over(Some(Outcome::Failed { message: None, retryable: true }))),
    ("failed", |world| {
        world.hand_over(Some(Outcome::Failed { message: Some(word("no")), retryable: false }))
    }),
    ("rejected", |world| world.hand_over(Some(Outcome::Rejected { message: None }))),
    ("need-input", |world| world.hand_over(Some(asks_input()))),
    ("need-auth", |world| world.hand_over(Some(asks_auth()))),
    // Somebody looks; who acts next from outside decides by what was seen then, however late that is.
    ("look", |world| world.looked = world.shown()),
    ("late", |world| world.seen = world.looked),
    // A client says more or answers: a slot is free; none is; the agent overlaps.
    ("answer", |world| world.follow_up(V1, Taken::Up)),
    ("answer-queued", |world| world.follow_up(V1, Taken::Later)),
    ("answer-overlap", |world| world.follow_up(V1, Taken::Overlapping(None))),
    ("answer-overlap-done", |world| world.follow_up(V1, Taken::Overlapping(Some(Outcome::done())))),
    ("answer-overlap-asks", |world| world.follow_up(V1, Taken::Overlapping(Some(asks_auth())))),
    // A client of the first draft does the same, and opens again what has ended.
    ("draft", |world| world.follow_up(DRAFT, Taken::Up)),
    ("draft-queued", |world| world.follow_up(DRAFT, Taken::Later)),
    ("draft-overlap", |world| world.follow_up(DRAFT, Taken::Overlapping(None))),
    ("draft-overlap-done", |world| world.follow_up(DRAFT, Taken::Overlapping(Some(Outcome::done())))),
    ("draft-overlap-asks", |world| world.follow_up(DRAFT, Taken::Overlapping(Some(asks_input())))),
    // Or by the first end it saw, however often the task has been opened since.
    ("draft-late", |world| world.follow_up_late(Taken::Up)),
    ("draft-late-queued", |world| world.follow_up_late(Taken::Later)),
    ("draft-late-overlap-done", |world| world.follow_up_late(Taken::Overlapping(Some(Outcome::done())))),
    ("elsewhere", World::follow_up_elsewhere),
    ("cancel", World::cancel),
    // Nobody has answered in time.
    ("expire", World::expire),
    // The runner takes up due work, to run it or to give it up.
    ("claim", |world| _ = world.claim()),
    ("give-up", World::give_up),
    // The process drains, or dies.
    ("halt", World::release),
    ("halt-fails", World::fail),
    ("crash", World::crash),
    // Somebody who held the work before writes on.
    ("stale-report", |world| world.write_stale(|fence, _| Step::Report { fence }, TaskState::Working)),
    ("stale-done", |world| world.write_stale(|fence, _| Step::Finish { fence }, TaskState::Completed)),
    ("stale-retry", |world| world.write_stale(|fence, at| Step::Retry { fence, at }, TaskState::Working)),
    ("stale-release", |world| world.write_stale(|fence, at| Step::Release { fence, at }, TaskState::Working)),
];

const V1: Dialect = Dialect::V1;
const DRAFT: Dialect = Dialect::Draft;

/// How often a turn is tried before it is given up.
const ATTEMPTS: i64 = 6;
/// How much an agent prepares to say at once.
const MAX_SAID: usize = 64;

static NAMES: LazyLock<Names> = LazyLock::new(|| Names { task: "task".into(), context: "context".into() });

/// All there is.
#[derive(Default)]
pub(super) struct World {
    /// How many acts there have been; also the time.
    acts: i64,
    /// How many tasks there have been.
    lives: usize,
    life: Option<Life>,
    /// What an agent has prepared to say.
    said: Vec<Update>,
    /// What somebody saw who looked.
    looked: Option<Row>,
    /// The first end of the task that clients saw.
    first_end: Option<Row>,
    /// What decides the next act from outside, if not how things are.
    seen: Option<Row>,
    /// The steps that were tried, and whether they were taken.
    #[cfg(test)]
    pub(super) tried: Vec<(Step, bool)>,
}

/// Who runs the turn that an answer begins.
enum Taken {
    Up,
    Later,
    Overlapping(Option<Outcome>),
}

impl World {
    /// Lets something happen and looks whether all is well.
    pub(super) fn play(&mut self, act: Act) {
        self.acts += 1;
        let (lives, before) = (self.lives, self.life.as_ref().map(|life| life.row));
        act(self);
        if let Some(life) = &self.life {
            life.check(before.filter(|_| lives == self.lives));
        }
        let end = self.shown().filter(|row| row.standing.state.is_terminal());
        self.first_end = self.first_end.or(end);
    }

    pub(super) fn check_whole(&self) {
        if let Some(life) = &self.life {
            life.check_whole(&NAMES);
        }
    }

    /// The log of the last task, as stored.
    pub(super) fn log(&self) -> Option<Vec<u8>> {
        let (first, rest) = self.life.as_ref()?.segments().split_first()?;
        // All segments as one: each begins with a byte that names the format.
        Some(rest.iter().fold(first.to_vec(), |log, segment| [&log, &segment[1..]].concat()))
    }

    /// The same with one byte changed, which one and how decided by the script.
    pub(super) fn log_with_a_damaged_byte(&self, script: &[u8]) -> Option<Bytes> {
        let mut log = self.log()?;
        let hash = script.iter().fold(7_usize, |hash, byte| (hash * 31 + usize::from(*byte)) % 1_000_003);
        let at = hash % log.len();
        log[at] = log[at].wrapping_add(*script.last()?);
        Some(log.into())
    }

    /// How the last task ended, or stands: the name of its state, or hidden.
    #[cfg(test)]
    pub(super) fn ended(&self) -> Option<String> {
        let Standing { state, visibility } = self.life.as_ref()?.row.standing;
        let name =
            protocol::dialect::v1::task::state_name(state).trim_start_matches("TASK_STATE_").to_lowercase();
        Some(if visibility == Visibility::Hidden { "hidden".into() } else { name })
    }

    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.acts)
    }

    fn commit(&mut self, advance: &Advance) -> Result<(), Conflict> {
        let Some(life) = &mut self.life else {
            return Err(Conflict { state: None, fence: 0, unanswered: 0 });
        };
        let before = life.row;
        let result = life.commit(advance);
        assert!(result.is_ok() || life.row == before, "{:?} was refused and changed something", advance.step);
        #[cfg(test)]
        self.tried.push((advance.step, result.is_ok()));
        result
    }

    fn send(&mut self, state: TaskState, visibility: Visibility, work: Work) {
        let worked = (state == TaskState::Working).then(|| NAMES.status(state, None, self.now()));
        self.begin(worked.into_iter().collect(), Standing { state, visibility }, work);
    }

    fn send_overlapping(&mut self, outcome: Option<Outcome>) {
        if self.life.as_ref().is_none_or(Life::is_over) {
            let standing = Standing { state: TaskState::Submitted, visibility: Visibility::Undecided };
            let advanced = self.advance(standing, outcome);
            let work = if advanced.ended { Work::Idle } else { Work::Held };
            self.begin(advanced.events, advanced.standing, work);
        }
    }

    fn begin(&mut self, events: Vec<Event>, standing: Standing, work: Work) {
        if self.life.as_ref().is_some_and(|life| !life.is_over()) {
            return;
        }
        self.check_whole();
        let opening = admit::start(&NAMES, ask(), self.now());
        let log = Log::pack([opening].into_iter().chain(events.into_iter().map(|event| (event, None))));
        self.life = Some(Life::begin(&NAMES, &log, standing, work));
        self.lives += 1;
        (self.looked, self.first_end, self.seen) = (None, None, None);
    }

    fn say(&mut self, update: Update) {
        if self.said.len() < MAX_SAID {
            self.said.push(update);
        }
    }

    /// What was prepared, as events.
    fn advance(&mut self, standing: Standing, outcome: Option<Outcome>) -> Advanced {
        let said = std::mem::take(&mut self.said);
        let ended = outcome.is_some();
        let advanced = advance::advance(&NAMES, standing, said, outcome, self.now());
        let settles = |event: &Event| match event {
            Event::Status(update) => update.status.state.is_settled(),
            Event::Message(_) => true,
            _ => false,
        };
        let first = advanced.events.iter().position(settles);
        assert_eq!(first.is_some(), advanced.ended, "{advanced:?}");
        assert!(
            first.is_none_or(|at| at + 1 == advanced.events.len()),
            "something follows the end: {advanced:?}"
        );
        assert!(advanced.ended || !ended, "an outcome was dropped: {advanced:?}");
        advanced
    }

    /// The run records what was said, and the outcome if there is one (`runner::run`).
    fn hand_over(&mut self, mut outcome: Option<Outcome>) {
        let Some(run) = self.life.as_ref().and_then(|life| life.run) else { return };
        let fence = run.fence;
        let retries =
            matches!(outcome, Some(Outcome::Failed { retryable: true, .. })) && run.attempt < ATTEMPTS;
        if retries {
            outcome = None;
            self.said.push(Update::Working(Some(word("trying again"))));
        }
        let advanced = self.advance(run.standing, outcome);
        let standing = advanced.standing;
        let step = match advanced.ended {
            true if standing.state.is_interrupted() => Step::Pause { fence },
            true => Step::Finish { fence },
            false if retries => Step::Retry { fence, at: self.now() },
            false => Step::Report { fence },
        };
        if advanced.events.is_empty() && advanced.saved.is_none() {
            return;
        }
        let visibility = run.standing.visibility != standing.visibility;
        let change = Advance {
            visibility: visibility.then_some(standing.visibility),
            saved: advanced.saved.clone(),
            ..self.says(step, standing.state, advanced.events.clone())
        };
        match self.commit(&change) {
            Ok(()) if matches!(step, Step::Report { .. }) => self.update_run(standing),
            Ok(()) => self.end_run(),
            Err(met) => self.lost(step, advanced, met),
        }
    }

    /// Somebody moved the task on, or said more to one that wanted to pause: then its question becomes progress,
    /// and the work is due again for what was said.
    fn lost(&mut self, step: Step, advanced: Advanced, met: Conflict) {
        match step {
            Step::Pause { fence } if met.fence == fence => {
                assert!(met.unanswered > 0, "a run that holds the work was refused: {met:?}");
                let mut events = advanced.events;
                if let Some(Event::Status(update)) = events.last_mut() {
                    update.status.state = TaskState::Working;
                }
                let again = Step::Again { fence, at: self.now() };
                let change = Advance {
                    visibility: Some(Visibility::Visible),
                    saved: advanced.saved,
                    ..self.says(again, TaskState::Working, events)
                };
                self.commit(&change).expect("the work is still this run's");
            }
            _ => assert!(met.state.is_some_and(TaskState::is_terminal), "{step:?} was refused: {met:?}"),
        }
        self.end_run();
    }

    fn follow_up(&mut self, dialect: Dialect, taken: Taken) {
        let Some((now, seen)) = self.look() else { return };
        let state = seen.standing.state;
        let verdict = admit::follow_up(&NAMES, state, None, dialect);
        let reopens = dialect == DRAFT && may_reopen(state);
        assert_eq!(verdict.is_err(), state.is_terminal() && !reopens, "{verdict:?}");
        let waiting = |when| Waiting { when, fence: seen.fence };
        match verdict {
            Err(_) => {}
            Ok(FollowUp::More) => self.say_more(now.standing.state),
            Ok(FollowUp::Answer) => self.answer(waiting(When::Interrupted), taken, now),
            Ok(FollowUp::Reopen) => self.answer(waiting(When::Over), taken, now),
        }
    }

    fn follow_up_late(&mut self, taken: Taken) {
        if self.first_end.is_some() {
            self.seen = self.first_end;
            self.follow_up(DRAFT, taken);
        }
    }

    /// More is taken by a task that is being worked on, up to a limit, whatever the client saw.
    fn say_more(&mut self, now: TaskState) {
        let listen = Advance {
            status: Some((TaskState::Working, self.now())),
            ..self.step(Step::Listen, [admit::go_on(&NAMES, ask(), self.now())])
        };
        let taken = self.commit(&listen);
        let full = taken.is_err_and(|met| met.unanswered == MAX_UNANSWERED);
        assert!(taken.is_ok() != (now.is_settled() || full), "{now:?}: {taken:?}");
    }

    /// An answer is taken by a task that waits for it, and a message that opens a task again by one that is over,
    /// both since the turn whose end the client saw.
    fn answer(&mut self, waiting: Waiting, taken: Taken, now: Row) {
        let mut events = vec![admit::go_on(&NAMES, ask(), self.now())];
        let mut standing = Standing { state: TaskState::Working, visibility: Visibility::Visible };
        let mut step = Step::Resume(waiting);
        match taken {
            Taken::Up => {}
            Taken::Later => step = Step::Queue { waiting, at: self.now() },
            Taken::Overlapping(outcome) => {
                let advanced = self.advance(standing, outcome);
                events.extend(advanced.events.into_iter().map(|event| (event, None)));
                standing = advanced.standing;
                step = if advanced.ended { Step::Settle(waiting) } else { Step::Resume(waiting) };
            }
        }
        let change = Advance { status: Some((standing.state, self.now())), ..self.step(step, events) };
        let result = self.commit(&change);
        let state = now.standing.state;
        let waits = match waiting.when {
            When::Interrupted => state.is_interrupted(),
            When::Over => may_reopen(state),
        };
        assert_eq!(result.is_ok(), waits && now.fence == waiting.fence, "{step:?} met {result:?}");
        if let (Ok(()), Step::Resume(_), Some(life)) = (result, step, &mut self.life) {
            life.take_up(standing);
        }
    }

    fn follow_up_elsewhere(&mut self) {
        if let Some(state) = self.shown().map(|row| row.standing.state) {
            for dialect in Dialect::ALL {
                admit::follow_up(&NAMES, state, Some(&"elsewhere".into()), dialect)
                    .expect_err("a task has one conversation");
                let here = admit::follow_up(&NAMES, state, Some(&NAMES.context), dialect);
                let reopens = dialect == DRAFT && may_reopen(state);
                assert_eq!(here.is_err(), state.is_terminal() && !reopens, "{here:?}");
            }
        }
    }

    fn cancel(&mut self) {
        let Some((now, seen)) = self.look().map(|(now, seen)| (now.standing.state, seen.standing.state))
        else {
            return;
        };
        let event = cancel::cancel(&NAMES, seen, self.now());
        assert_eq!(event.is_err(), seen.is_terminal(), "{event:?}");
        let Ok(event) = event else { return };
        let change = self.says(Step::Cancel, TaskState::Canceled, vec![event]);
        // Whatever happened since the look: an open task can be ended, one that is over stays as it is.
        assert_eq!(self.commit(&change).is_err(), now.is_terminal());
    }

    /// Ends a task that waits in vain; an answer, or another question, is not ended by what was seen before it.
    fn expire(&mut self) {
        let Some((now, seen)) = self.look() else { return };
        if seen.standing.state.is_interrupted() {
            let failed = NAMES.status(TaskState::Failed, Some(word("too late")), self.now());
            let change = self.says(Step::Expire { fence: seen.fence }, TaskState::Failed, vec![failed]);
            let waits = now.standing.state.is_interrupted() && now.fence == seen.fence;
            assert_eq!(self.commit(&change).is_ok(), waits, "{seen:?} became {now:?}");
        }
    }

    /// Takes up due work; says whether there was any.
    fn claim(&mut self) -> bool {
        let due = self.life.as_ref().is_some_and(|life| matches!(life.row.work, Work::Due(_)));
        let claim = Advance { visibility: Some(Visibility::Visible), ..self.step(Step::Claim, []) };
        let claimed = self.commit(&claim).is_ok();
        assert_eq!(claimed, due);
        if let (true, Some(life)) = (claimed, &mut self.life) {
            life.take_up(Standing { visibility: Visibility::Visible, ..life.row.standing });
            if life.row.attempt > ATTEMPTS {
                self.fail();
            }
        }
        claimed
    }

    fn give_up(&mut self) {
        if self.claim() {
            self.fail();
        }
    }

    /// The runner ends its run as failed, because it must not go on.
    fn fail(&mut self) {
        let Some(fence) = self.fence() else { return };
        let failed = NAMES.status(TaskState::Failed, Some(word("gave up")), self.now());
        let change = Advance {
            visibility: Some(Visibility::Visible),
            ..self.says(Step::Finish { fence }, TaskState::Failed, vec![failed])
        };
        self.end_run_by(&change);
    }

    fn release(&mut self) {
        let Some(fence) = self.fence() else { return };
        let release = self.step(Step::Release { fence, at: self.now() }, []);
        self.end_run_by(&release);
    }

    /// The last change of a run: it is refused only when a client has ended the task.
    fn end_run_by(&mut self, change: &Advance) {
        let over = self.life.as_ref().is_some_and(Life::is_over);
        assert_eq!(self.commit(change).is_err(), over, "{:?}", change.step);
        self.end_run();
    }

    fn crash(&mut self) {
        let now = self.now();
        self.said.clear();
        if let Some(life) = &mut self.life {
            life.die(now);
        }
    }

    /// One of the former runs writes. Whoever let go of the work, or lost it, writes no more.
    fn write_stale(&mut self, step: fn(i64, Timestamp) -> Step, state: TaskState) {
        let Some(life) = &self.life else { return };
        let turn = usize::try_from(self.acts).unwrap_or_default();
        let Some(run) = life.former.get(turn % life.former.len().max(1)) else { return };
        let stale = step(run.fence, self.now());
        let status = NAMES.status(state, Some(word("late")), self.now());
        let late = Advance { visibility: Some(Visibility::Visible), ..self.says(stale, state, vec![status]) };
        self.commit(&late).expect_err("a stale run wrote");
    }

    fn update_run(&mut self, standing: Standing) {
        if let Some(run) = self.life.as_mut().and_then(|life| life.run.as_mut()) {
            run.standing = standing;
        }
    }

    fn end_run(&mut self) {
        if let Some(life) = &mut self.life {
            life.let_go();
        }
    }

    /// How a task that clients can see stands, and how it stood for whoever acts now.
    fn look(&mut self) -> Option<(Row, Row)> {
        let now = self.shown()?;
        Some((now, self.seen.take().unwrap_or(now)))
    }

    /// The row of a task that clients can see.
    fn shown(&self) -> Option<Row> {
        let row = self.life.as_ref()?.row;
        (row.standing.visibility == Visibility::Visible).then_some(row)
    }

    /// The fence of the run that holds the work, as far as it knows.
    fn fence(&self) -> Option<i64> {
        Some(self.life.as_ref()?.run?.fence)
    }

    /// A step that leads to a state, if it says one.
    fn says(&self, step: Step, state: TaskState, events: Vec<Event>) -> Advance {
        let says = events.iter().any(|event| !matches!(event, Event::Artifact(_)));
        let status = says.then_some((state, self.now()));
        Advance { status, ..self.step(step, events.into_iter().map(|event| (event, None))) }
    }

    fn step(&self, step: Step, events: impl IntoIterator<Item = Line>) -> Advance {
        Advance {
            no: NO,
            step,
            log: Log::pack(events),
            status: None,
            visibility: None,
            saved: None,
            skill: None,
            key: None,
        }
    }
}

/// There is one task at a time.
const NO: engine::ids::TaskNo = engine::ids::TaskNo(1);

/// What was canceled or rejected stays so.
fn may_reopen(state: TaskState) -> bool {
    matches!(state, TaskState::Completed | TaskState::Failed)
}

fn asks_input() -> Outcome {
    Outcome::NeedInput { message: word("which?") }
}

fn asks_auth() -> Outcome {
    Outcome::NeedAuth { message: word("who?") }
}

fn ask() -> Message {
    Message::new("user", Role::User, vec![Part::text("please")])
}

fn word(text: &str) -> Message {
    Message::new("agent", Role::Agent, vec![Part::text(text)])
}

fn piece(append: bool) -> Update {
    Update::Artifact { artifact: Artifact::new("artifact", vec![Part::text("piece")]), append, last: !append }
}

#[cfg(test)]
mod tests {
    use super::super::{TARGET, corpus, play, script};
    use crate::mutate::Mutator;

    #[test]
    fn a_task_that_has_ended_is_opened_again_by_the_draft_alone() {
        let lives = [
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
        for (life, ends, turns) in lives {
            let world = play(&script(life));
            assert_eq!(world.ended().as_deref(), Some(ends), "{life}");
            assert_eq!(world.life.map(|life| life.row.turn), Some(turns), "{life}");
        }
    }

    #[test]
    fn random_lives_have_many_turns() {
        let mutator = Mutator::new(corpus(), TARGET.dictionary, 7);
        let mut tried = std::collections::HashMap::new();
        let mut most = 0;
        for number in 0..30_000 {
            let world = play(&mutator.input(number));
            for (step, taken) in &world.tried {
                let reopens = step.effects().turn_step == 1;
                let name = format!("{step:?}").split([' ', '(']).next().unwrap_or_default().to_owned();
                *tried.entry((name, reopens, *taken)).or_insert(0) += 1;
            }
            most = world.life.map_or(0, |life| life.row.turn).max(most);
        }
        for step in ["Resume", "Queue", "Settle"] {
            for taken in [true, false] {
                assert!(tried.contains_key(&(step.to_owned(), true, taken)), "{step}, {taken}: {tried:?}");
            }
        }
        assert!(most >= 3, "{most} turns at most");
    }
}
