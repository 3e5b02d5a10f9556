//! The transitions that a task can make, and situations in which to try them.

use bytes::Bytes;
use engine::{
    ids::TaskNo,
    log::Log,
    store::{
        Accept, Advance, JournalChange, JournalStep, SavedState, Step, StepOwner, Visibility, WorkState,
    },
};
use protocol::TaskState;

use super::samples::{artifact, at, finished, interrupted, status, step, task, with_status};

/// A step and the state it records.
#[derive(Clone, Copy)]
pub(crate) struct Transition {
    pub(crate) step: fn(fence: i64) -> Step,
    state: Option<TaskState>,
    progress: bool,
}

const fn without_status(step: fn(i64) -> Step) -> Transition {
    Transition { step, state: None, progress: false }
}

const fn to(state: TaskState, step: fn(i64) -> Step) -> Transition {
    Transition { step, state: Some(state), progress: false }
}

const fn with_progress(transition: Transition) -> Transition {
    Transition { progress: true, ..transition }
}

const CLAIM: Transition = without_status(|_| Step::Claim { probation: false });
const CLAIM_ON_PROBATION: Transition = without_status(|_| Step::Claim { probation: true });
const END_PROBATION: Transition = without_status(|fence| Step::EndProbation { fence });
const PROGRESS: Transition = with_progress(REPORT_ARTIFACT);
const ASK_AFTER_PROGRESS: Transition = with_progress(ASK_INPUT);
const RETRY_AFTER_PROGRESS: Transition = with_progress(RETRY);
const REPORT: Transition = to(TaskState::Working, |fence| Step::Report { fence });
const REPORT_ARTIFACT: Transition = without_status(|fence| Step::Report { fence });
const COMPLETE: Transition = to(TaskState::Completed, |fence| Step::Finish { fence });
const FAIL: Transition = to(TaskState::Failed, |fence| Step::Finish { fence });
const REJECT: Transition = to(TaskState::Rejected, |fence| Step::Finish { fence });
const ASK_INPUT: Transition = to(TaskState::InputRequired, |fence| Step::Pause { fence });
const ASK_AUTH: Transition = to(TaskState::AuthRequired, |fence| Step::Pause { fence });
const RETRY: Transition = to(TaskState::Working, |fence| Step::Retry { fence, at: at(100) });
const AGAIN: Transition = without_status(|fence| Step::Requeue { fence, at: at(90) });
const RELEASE: Transition = without_status(|fence| Step::Release { fence, at: at(110) });
const RESUME: Transition = to(TaskState::Working, |fence| Step::Resume(interrupted(fence)));
const QUEUE: Transition =
    to(TaskState::Working, |fence| Step::Queue { waiting: interrupted(fence), at: at(95) });
const SETTLE: Transition = to(TaskState::Completed, |fence| Step::Settle(interrupted(fence)));
const SETTLE_ASKING: Transition = to(TaskState::InputRequired, |fence| Step::Settle(interrupted(fence)));
const REOPEN: Transition = to(TaskState::Working, |fence| Step::Resume(finished(fence)));
const REOPEN_LATER: Transition =
    to(TaskState::Working, |fence| Step::Queue { waiting: finished(fence), at: at(97) });
const REOPEN_AND_SETTLE: Transition = to(TaskState::Completed, |fence| Step::Settle(finished(fence)));
const LISTEN: Transition = to(TaskState::Working, |_| Step::QueueMessage);
const CANCEL: Transition = to(TaskState::Canceled, |_| Step::Cancel);

const EXPIRE: Transition = to(TaskState::Failed, |fence| Step::Expire { fence });

pub(crate) const TRANSITIONS: [Transition; 26] = [
    CLAIM,
    CLAIM_ON_PROBATION,
    END_PROBATION,
    PROGRESS,
    ASK_AFTER_PROGRESS,
    RETRY_AFTER_PROGRESS,
    REPORT,
    REPORT_ARTIFACT,
    COMPLETE,
    FAIL,
    REJECT,
    ASK_INPUT,
    ASK_AUTH,
    RETRY,
    AGAIN,
    RELEASE,
    RESUME,
    QUEUE,
    SETTLE,
    SETTLE_ASKING,
    REOPEN,
    REOPEN_LATER,
    REOPEN_AND_SETTLE,
    LISTEN,
    CANCEL,
    EXPIRE,
];

impl Transition {
    /// The fencing tokens to try: the right one and, where it matters, wrong ones.
    pub(crate) fn fence_offsets(self) -> &'static [i64] {
        if (self.step)(0).effects().fence.is_some() { &[0, -1, 1] } else { &[0] }
    }

    pub(crate) fn requires_lease(self) -> bool {
        (self.step)(0).effects().held
    }

    /// The step as the engine would commit it. It always has a checkpoint, a journal change and a deadline, to see what
    /// a rejected step leaves.
    pub(crate) fn change(self, no: TaskNo, fence: i64) -> Advance {
        let transition = (self.step)(fence);
        let change = match (self.state, transition) {
            (Some(state), _) => {
                let status = Some((state, at(7)));
                Advance { status, progress_size: 3, ..with_status(no, transition, state, "recorded") }
            }
            (None, Step::Claim { .. } | Step::Requeue { .. }) => {
                Advance { visibility: Some(Visibility::Visible), ..step(no, transition) }
            }
            (None, Step::Report { .. }) => {
                Advance { log: Log::pack([artifact("one"), artifact("two")]), ..step(no, transition) }
            }
            (None, _) => step(no, transition),
        };
        Advance {
            saved: Some(SavedState::new(None, format!("{transition:?}"))),
            journal: journal(transition),
            progress: self.progress,
            deadline: (fence % 2 == 0).then(|| at(107 + fence)),
            ..change
        }
    }
}

fn journal(step: Step) -> JournalChange {
    match step {
        Step::Finish { .. } | Step::Cancel | Step::Expire { .. } | Step::Settle(_) => JournalChange::Clear,
        Step::QueueMessage => JournalChange::Keep,
        _ => {
            let name = format!("{step:?}");
            let output = Some(Bytes::from(name.clone()));
            let steps = vec![
                JournalStep { owner: StepOwner::Turn(1), id: "each".into(), output: output.clone() },
                JournalStep { owner: StepOwner::Task, id: "each".into(), output },
                JournalStep { owner: StepOwner::Turn(1), id: name, output: None },
            ];
            match step {
                Step::Pause { .. } => JournalChange::EndTurn(steps),
                _ => JournalChange::Write(steps),
            }
        }
    }
}

/// How a task came into its state.
pub(crate) struct Situation {
    pub(crate) name: &'static str,
    accepted: (TaskState, fn() -> WorkState),
    /// What each process did; between two of them is a crash.
    pub(crate) lives: &'static [&'static [Transition]],
}

impl Situation {
    pub(crate) fn accept(&self, no: TaskNo) -> Accept {
        let (state, work) = self.accepted;
        Accept {
            log: Log::pack([status(state, "first")]),
            state,
            work: work(),
            visibility: Visibility::Undecided,
            deadline: (no.0 % 3 > 0).then(|| at(84 + no.0 % 32)),
            progress_size: 2,
            journal: JournalChange::Write(vec![JournalStep {
                owner: StepOwner::Turn(1),
                id: "first".into(),
                output: Some(Bytes::new()),
            }]),
            ..task(no)
        }
    }
}

const fn situation(
    name: &'static str,
    accepted: (TaskState, fn() -> WorkState),
    lives: &'static [&'static [Transition]],
) -> Situation {
    Situation { name, accepted, lives }
}

const QUEUED: (TaskState, fn() -> WorkState) = (TaskState::Submitted, || WorkState::Due(at(80)));
const SUBMITTED: (TaskState, fn() -> WorkState) = (TaskState::Submitted, || WorkState::Held);
const WORKING: (TaskState, fn() -> WorkState) = (TaskState::Working, || WorkState::Held);
const ANSWERED: (TaskState, fn() -> WorkState) = (TaskState::Completed, || WorkState::Idle);

/// The most lives of a situation.
pub(crate) const MAX_LIVES: usize = 4;

pub(crate) const SITUATIONS: &[Situation] = &[
    situation("queued work", QUEUED, &[&[]]),
    situation("queued work that received a message", QUEUED, &[&[LISTEN]]),
    situation("queued work that was claimed", QUEUED, &[&[CLAIM]]),
    situation("submitted work", SUBMITTED, &[&[]]),
    situation("work", WORKING, &[&[REPORT]]),
    situation("work that received a message", WORKING, &[&[LISTEN]]),
    situation("work with one message less than the limit", WORKING, &[&[LISTEN; 15]]),
    situation("work with as many messages as the limit", WORKING, &[&[LISTEN; 16]]),
    situation("work that waits for its second attempt", WORKING, &[&[RETRY]]),
    situation("work in its second attempt", WORKING, &[&[RETRY, CLAIM]]),
    situation("work that was released", WORKING, &[&[RELEASE]]),
    situation("work that was released and claimed", WORKING, &[&[RELEASE, CLAIM]]),
    situation("work that is due for a message", WORKING, &[&[LISTEN, AGAIN]]),
    situation("a task that waits for input", WORKING, &[&[ASK_INPUT]]),
    situation("a task that waits for authentication", WORKING, &[&[ASK_AUTH]]),
    situation("a task that asked in its second attempt", WORKING, &[&[RETRY, CLAIM, ASK_INPUT]]),
    situation("an answered task", WORKING, &[&[ASK_INPUT, RESUME]]),
    situation("an answered task that received a message", WORKING, &[&[ASK_AUTH, RESUME, LISTEN]]),
    situation("an answered task in the queue", WORKING, &[&[ASK_INPUT, QUEUE]]),
    situation("an answered task that asked again", WORKING, &[&[ASK_INPUT, SETTLE_ASKING]]),
    situation("an answered task that was done at once", WORKING, &[&[ASK_INPUT, SETTLE]]),
    situation("a task that was done at once", ANSWERED, &[&[]]),
    situation("a completed task", WORKING, &[&[COMPLETE]]),
    situation("a completed task with a message left over", WORKING, &[&[LISTEN, COMPLETE]]),
    situation("a failed task", WORKING, &[&[FAIL]]),
    situation("a completed task that is open again", WORKING, &[&[COMPLETE, REOPEN]]),
    situation("a failed task that is open again in the queue", WORKING, &[&[LISTEN, FAIL, REOPEN_LATER]]),
    situation("a completed task that was done again", ANSWERED, &[&[REOPEN_AND_SETTLE]]),
    situation("a task canceled in its second turn", ANSWERED, &[&[REOPEN, CANCEL]]),
    situation("a rejected task", WORKING, &[&[REJECT]]),
    situation("a task whose client never answered", WORKING, &[&[ASK_INPUT, EXPIRE]]),
    situation("a canceled task", WORKING, &[&[CANCEL]]),
    situation("a task canceled in the queue", QUEUED, &[&[CANCEL]]),
    situation("a task canceled while it waited", WORKING, &[&[ASK_INPUT, CANCEL]]),
    situation("a task that expired while it ran", WORKING, &[&[EXPIRE]]),
    situation("a task that expired in the queue", QUEUED, &[&[EXPIRE]]),
    situation("work that crashed its process", WORKING, &[&[], &[]]),
    situation("work that crashed its process and runs again", WORKING, &[&[], &[CLAIM]]),
    situation("work that expired after a crash", WORKING, &[&[], &[EXPIRE]]),
    situation("a suspect", WORKING, &[&[], &[CLAIM], &[]]),
    situation("a suspect on probation", WORKING, &[&[], &[CLAIM], &[CLAIM_ON_PROBATION]]),
    situation("a suspect without probation", WORKING, &[&[], &[CLAIM], &[CLAIM]]),
    situation(
        "a suspect after its probation",
        WORKING,
        &[&[], &[CLAIM], &[CLAIM_ON_PROBATION, END_PROBATION]],
    ),
    situation("a suspect that made progress", WORKING, &[&[], &[CLAIM], &[CLAIM_ON_PROBATION, PROGRESS]]),
    situation("a suspect that is retried", WORKING, &[&[], &[CLAIM], &[CLAIM_ON_PROBATION, RETRY]]),
    situation("a suspect that asked", WORKING, &[&[], &[CLAIM], &[CLAIM_ON_PROBATION, ASK_INPUT]]),
    situation(
        "a suspect that asked after progress",
        WORKING,
        &[&[], &[CLAIM], &[CLAIM_ON_PROBATION, ASK_AFTER_PROGRESS]],
    ),
    situation("a suspect that crashed on probation", WORKING, &[&[], &[CLAIM], &[CLAIM_ON_PROBATION], &[]]),
    situation(
        "a suspect that crashed on probation and was claimed",
        WORKING,
        &[&[], &[CLAIM], &[CLAIM_ON_PROBATION], &[CLAIM_ON_PROBATION]],
    ),
    situation(
        "a suspect that crashed after its probation",
        WORKING,
        &[&[], &[CLAIM], &[CLAIM_ON_PROBATION, END_PROBATION], &[]],
    ),
    situation(
        "a suspect that crashed after progress",
        WORKING,
        &[&[], &[CLAIM], &[CLAIM_ON_PROBATION, PROGRESS], &[CLAIM]],
    ),
];
