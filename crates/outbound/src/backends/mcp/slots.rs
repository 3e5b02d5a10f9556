//! Decides which call gets which process, and when processes start and stop. Pure: `server` does what is decided.
//!
//! A slot is a process or connection: first starting, then ready. Calls are granted slots in turns between principals
//! ([`Queue`]). A start that fails is repeated with backoff; after several failures in a row calls fail at once, and one
//! start is tried every now and then ([`Starts`]).
//!
//! A slot that runs one call at a time is kept by an open question of its server, for as long as the client does not
//! answer. The questions of one principal keep at most half of the slots, but one at least: the oldest is cancelled when
//! there are more. If a call waits, the oldest question of the principal with most of them is cancelled: at once if the
//! call is another principal's, else when its client has had some time to answer.

mod queue;
mod starts;

use std::{cmp::Reverse, time::Duration};

use engine::Scope;
use protocol::model::ContextId;
use tokio::{sync::oneshot, time::Instant};
use tokio_util::sync::CancellationToken;

use self::{
    queue::{Queue, Waiter},
    starts::Starts,
};
use super::{Isolation, Pool, Status, sdk::ConnectError};

/// A process that ends earlier, without having served a call, counts as one that did not start.
const MIN_LIFE: Duration = Duration::from_secs(5);
/// Calls on each process above which another one is started.
const BUSY: usize = 16;

/// A conversation (A2A context). Its id may be chosen by the client, so it is unique only within the scope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ContextKey {
    pub(super) scope: Scope,
    pub(super) context: ContextId,
}

/// The processes of a server and the calls that wait for one. `C` is a connection, `L` what a call receives.
pub(super) struct Slots<C, L> {
    pool: Pool,
    isolation: Isolation,
    /// How long a client has to answer before calls of its own principal may take the slot.
    answer_time: Duration,
    slots: Vec<Slot<C>>,
    waiting: Queue<L>,
    /// Slots whose questions are cancelled, until this is returned as an action.
    cancelled: Vec<u64>,
    next_id: u64,
    earlier_starts: Starts,
    restarts: u64,
    /// Until the tools are known, one process is started whatever the minimum is.
    tools_known: bool,
    /// Parent of the tokens of all slots.
    stop: CancellationToken,
}

struct Slot<C> {
    id: u64,
    /// Fires when the process is to end.
    retire: CancellationToken,
    ready: Option<Ready<C>>,
    calls: usize,
    served: u64,
    /// The conversation that it belongs to, with [`Isolation::Context`].
    context: Option<ContextKey>,
    /// That of its only call.
    question: Option<Question>,
    idle_since: Instant,
}

/// A question that the client has not answered.
struct Question {
    scope: Scope,
    since: Instant,
}

struct Ready<C> {
    connection: C,
    /// It runs one call at a time.
    exclusive: bool,
    since: Instant,
}

type Grant<L> = oneshot::Sender<Result<L, Unavailable>>;

/// A call, and what it gets.
type Granting<C, L> = (Grant<L>, Result<Granted<C>, Unavailable>);

/// A slot that a call may use; to be released.
pub(super) struct Granted<C> {
    pub(super) slot: u64,
    pub(super) connection: C,
}

/// Why a call gets no slot. Nothing was sent.
#[derive(Clone, Debug)]
pub(super) enum Unavailable {
    Auth {
        challenge: String,
    },
    /// Starting has failed repeatedly.
    Failed,
    Stopped,
}

/// What is to be done after a change.
#[must_use]
pub(super) struct Actions<C, L> {
    pub(super) grants: Vec<Granting<C, L>>,
    /// Slots to start, each until its token fires.
    pub(super) starts: Vec<(u64, CancellationToken)>,
    /// Slots whose questions are cancelled; their tokens have fired.
    pub(super) cancelled: Vec<u64>,
}

impl<C: Clone, L> Slots<C, L> {
    pub(super) fn new(
        pool: Pool,
        isolation: Isolation,
        answer_time: Duration,
        stop: CancellationToken,
    ) -> Self {
        Self {
            pool: Pool { max: pool.max.max(1), ..pool },
            isolation,
            answer_time,
            slots: Vec::new(),
            waiting: Queue::default(),
            cancelled: Vec::new(),
            next_id: 0,
            earlier_starts: Starts::default(),
            restarts: 0,
            tools_known: false,
            stop,
        }
    }

    /// A call waits for a slot. Call [`dispatch`](Self::dispatch) after this and the following methods.
    pub(super) fn wait(&mut self, context: ContextKey, grant: Grant<L>, now: Instant) {
        self.earlier_starts.call_waits(now);
        self.waiting.push(Waiter { context, grant });
    }

    /// The server asks the client of the call on this slot. Only a process that runs one call at a time is kept by that.
    pub(super) fn asked(&mut self, id: u64, scope: &Scope, now: Instant) {
        let exclusive = |slot: &&mut Slot<C>| slot.ready.as_ref().is_some_and(|ready| ready.exclusive);
        let Some(slot) = self.slot(id).filter(exclusive) else { return };
        slot.question = Some(Question { scope: scope.clone(), since: now });
        let own = || self.questions().filter(|(_, question)| same_principal(&question.scope, scope));
        if own().count() > (self.pool.max / 2).max(1)
            && let Some((oldest, _)) = own().min_by_key(|(_, question)| question.since)
        {
            self.cancel(oldest);
        }
    }

    /// The client has answered. `false`: its question was cancelled before, or the process has ended.
    pub(super) fn answered(&mut self, id: u64) -> bool {
        let slot = self.slot(id);
        slot.map(|slot| slot.question = None).is_some()
    }

    /// A call no longer uses its slot. `ended`: the server has answered it. Otherwise a process that runs one call at a
    /// time is stopped: a late question of the old call could not be distinguished from one of the next.
    pub(super) fn release(&mut self, id: u64, ended: bool, now: Instant) {
        let once = self.isolation == Isolation::Call;
        let Some(slot) = self.slot(id) else { return };
        slot.calls -= 1;
        slot.served += 1;
        slot.idle_since = now;
        let abandoned = !ended && slot.ready.as_ref().is_some_and(|ready| ready.exclusive);
        if once || abandoned {
            self.retire(id);
        }
        if ended {
            self.earlier_starts.served();
        }
    }

    pub(super) fn ready(&mut self, id: u64, connection: C, exclusive: bool, now: Instant) {
        if let Some(slot) = self.slot(id) {
            slot.ready = Some(Ready { connection, exclusive, since: now });
            slot.idle_since = now;
            self.earlier_starts.succeeded();
        }
    }

    pub(super) fn failed(&mut self, id: u64, error: ConnectError, now: Instant, random: u64) {
        if self.remove(id).is_some() {
            self.count_failure(error, now, random);
        }
    }

    /// A process has ended by itself, or was stopped by us.
    pub(super) fn ended(&mut self, id: u64, now: Instant, random: u64) {
        let Some(slot) = self.remove(id) else { return };
        self.restarts += 1;
        let short = slot.ready.is_none_or(|ready| now - ready.since < MIN_LIFE);
        if short && slot.served == 0 && slot.calls == 0 {
            let error = ConnectError::Failed("it ended right after its start".into());
            self.count_failure(error, now, random);
        }
    }

    pub(super) fn tools_are_known(&mut self) {
        self.tools_known = true;
    }

    /// Grants slots, and decides which to start and stop.
    pub(super) fn dispatch(&mut self, now: Instant) -> Actions<C, L> {
        let mut actions = Actions { grants: Vec::new(), starts: Vec::new(), cancelled: Vec::new() };
        self.stop_idle(now);
        self.waiting.remove_closed();
        if let Some(why) = self.unavailable() {
            actions.grants.extend(self.waiting.drain().map(|grant| (grant, Err(why.clone()))));
        }
        let mut waiting = std::mem::take(&mut self.waiting);
        waiting
            .serve(|context| self.grant(context), |grant, granted| actions.grants.push((grant, Ok(granted))));
        self.waiting = waiting;
        let mut starts = self.wanted_starts(now);
        if starts == 0
            && let Some(id) = self.question_in_the_way(now)
        {
            self.cancel(id);
            starts = self.wanted_starts(now);
        }
        for _ in 0..starts {
            let retire = self.stop.child_token();
            self.slots.push(Slot {
                id: self.next_id,
                retire: retire.clone(),
                ready: None,
                calls: 0,
                served: 0,
                context: None,
                question: None,
                idle_since: now,
            });
            actions.starts.push((self.next_id, retire));
            self.next_id += 1;
        }
        actions.cancelled = std::mem::take(&mut self.cancelled);
        actions
    }

    /// When [`dispatch`](Self::dispatch) has something to do even if nothing happens before.
    pub(super) fn next_wake(&self, now: Instant) -> Option<Instant> {
        let idle = self.slots.iter().filter(|slot| self.may_stop(slot)).map(|slot| self.idle_end(slot));
        let questions = self.questions_in_the_way().map(|(_, at)| at);
        let later = questions.chain(self.earlier_starts.next()).filter(|at| *at > now);
        idle.chain(later).min()
    }

    /// A connection that is ready, whatever it does.
    pub(super) fn any_ready(&self) -> Option<C> {
        self.slots.iter().find_map(|slot| slot.ready.as_ref()).map(|ready| ready.connection.clone())
    }

    pub(super) fn ready_count(&self) -> usize {
        self.slots.iter().filter(|slot| slot.ready.is_some()).count()
    }

    pub(super) fn restarts(&self) -> u64 {
        self.restarts
    }

    /// Why the last start failed, and when; it may have been repeated with success since.
    pub(super) fn last_start_failure(&self) -> Option<(String, Instant)> {
        self.earlier_starts.last_failure()
    }

    pub(super) fn status(&self) -> Status {
        let starts = &self.earlier_starts;
        match starts.next() {
            _ if self.stop.is_cancelled() => Status::Failed { error: "it was stopped".into() },
            _ if self.ready_count() > 0 => Status::Ready,
            _ if starts.is_broken() => Status::Failed { error: starts.error() },
            Some(until) => Status::BackingOff { until, error: starts.error() },
            None => Status::Starting,
        }
    }

    fn count_failure(&mut self, error: ConnectError, now: Instant, random: u64) {
        if let ConnectError::Auth { challenge } = &error {
            let unavailable = Unavailable::Auth { challenge: challenge.clone() };
            for grant in self.waiting.drain() {
                let _ = grant.send(Err(unavailable.clone()));
            }
        }
        self.earlier_starts.failed(error, now, random);
    }

    fn unavailable(&self) -> Option<Unavailable> {
        if self.stop.is_cancelled() {
            return Some(Unavailable::Stopped);
        }
        (self.earlier_starts.is_broken() && self.ready_count() == 0).then_some(Unavailable::Failed)
    }

    /// The slot for a call: the one with the fewest calls among those that it may use.
    fn grant(&mut self, context: &ContextKey) -> Option<Granted<C>> {
        let isolation = self.isolation;
        let fits = |slot: &&mut Slot<C>| {
            let Some(ready) = &slot.ready else { return false };
            let free = slot.calls == 0 || !ready.exclusive;
            match isolation {
                Isolation::Shared => free,
                Isolation::Context => free && slot.context.as_ref().is_none_or(|bound| bound == context),
                Isolation::Call => slot.calls == 0 && slot.served == 0,
            }
        };
        if isolation == Isolation::Context && self.is_bound(context) {
            // Never a second process for the same conversation.
            let own = self.slots.iter_mut().filter(fits).find(|slot| slot.context.is_some());
            return own.and_then(take);
        }
        let slot =
            self.slots.iter_mut().filter(fits).min_by_key(|slot| (slot.context.is_some(), slot.calls))?;
        if isolation == Isolation::Context {
            slot.context = Some(context.clone());
        }
        take(slot)
    }

    fn is_bound(&self, context: &ContextKey) -> bool {
        self.bound(context).is_some()
    }

    /// The slot that belongs to this conversation.
    fn bound(&self, context: &ContextKey) -> Option<&Slot<C>> {
        self.slots.iter().find(|slot| slot.context.as_ref() == Some(context))
    }

    /// A question to cancel now, because a call waits and no process is going to be started for it.
    fn question_in_the_way(&self, now: Instant) -> Option<u64> {
        let starting = self.slots.iter().any(|slot| slot.ready.is_none());
        if starting || self.stop.is_cancelled() || self.earlier_starts.is_delayed(now) {
            return None;
        }
        self.questions_in_the_way().find(|(_, at)| *at <= now).map(|(id, _)| id)
    }

    /// For each call that waits, the question which gives way to it, and when.
    fn questions_in_the_way(&self) -> impl Iterator<Item = (u64, Instant)> {
        let of_most = if self.waiting.is_empty() { None } else { self.oldest_question_of_most() };
        self.waiting.contexts().filter_map(move |context| {
            // The call of a conversation that has a process waits for that one.
            let (id, question) = match self.bound(context) {
                Some(own) => (own.id, own.question.as_ref()?),
                None => of_most?,
            };
            let own = same_principal(&question.scope, &context.scope);
            Some((id, question.since + if own { self.answer_time } else { Duration::ZERO }))
        })
    }

    fn oldest_question_of_most(&self) -> Option<(u64, &Question)> {
        let questions: Vec<_> = self.questions().collect();
        let asked: Vec<_> = questions.iter().map(|(_, question)| (&question.scope, question.since)).collect();
        oldest_of_most(&asked).map(|at| questions[at])
    }

    fn questions(&self) -> impl Iterator<Item = (u64, &Question)> {
        self.slots.iter().filter_map(|slot| Some((slot.id, slot.question.as_ref()?)))
    }

    /// Stops the process of a question, whose call is then cancelled.
    fn cancel(&mut self, id: u64) {
        self.retire(id);
        self.cancelled.push(id);
    }

    fn wanted_starts(&mut self, now: Instant) -> usize {
        let starting = self.slots.iter().filter(|slot| slot.ready.is_none()).count();
        if self.stop.is_cancelled() || self.earlier_starts.is_delayed(now) {
            return 0;
        }
        let queued = self.waiting.contexts().filter(|context| !self.is_bound(context)).count();
        let for_calls = (queued + usize::from(self.is_overloaded())).saturating_sub(starting);
        if for_calls > 0 && self.slots.len() >= self.pool.max {
            self.make_place();
        }
        // Calls do not wait for a server that does not start, so a start of its own shows whether it works again.
        let probe = usize::from(self.earlier_starts.is_broken() && self.slots.is_empty());
        let wanted = for_calls.max(self.min().saturating_sub(self.without_question())).max(probe);
        let wanted = wanted.min(self.pool.max.saturating_sub(self.slots.len()));
        // A server that does not start is tried by one process only.
        if self.earlier_starts.is_failing() { wanted.min(1usize.saturating_sub(starting)) } else { wanted }
    }

    /// All processes run many calls at once.
    fn is_overloaded(&self) -> bool {
        self.isolation == Isolation::Shared
            && !self.slots.is_empty()
            && self.slots.iter().all(|slot| slot.ready.is_some() && slot.calls >= BUSY)
    }

    /// Stops the process of the conversation that has been idle longest.
    fn make_place(&mut self) {
        let idle = self.slots.iter().filter(|slot| slot.context.is_some() && slot.calls == 0);
        if let Some(id) = idle.min_by_key(|slot| slot.idle_since).map(|slot| slot.id) {
            self.retire(id);
        }
    }

    fn stop_idle(&mut self, now: Instant) {
        while let Some(id) = self
            .slots
            .iter()
            .find(|slot| self.may_stop(slot) && self.idle_end(slot) <= now)
            .map(|slot| slot.id)
        {
            self.retire(id);
        }
    }

    fn may_stop(&self, slot: &Slot<C>) -> bool {
        let spare = self.without_question() > self.min() || slot.context.is_some();
        slot.ready.is_some() && slot.calls == 0 && spare
    }

    fn idle_end(&self, slot: &Slot<C>) -> Instant {
        slot.idle_since + self.pool.idle_stop
    }

    fn min(&self) -> usize {
        if self.tools_known { self.pool.min } else { self.pool.min.max(1) }
    }

    /// Slots that calls can use now or later: the minimum is for these.
    fn without_question(&self) -> usize {
        self.slots.iter().filter(|slot| slot.question.is_none()).count()
    }

    fn slot(&mut self, id: u64) -> Option<&mut Slot<C>> {
        self.slots.iter_mut().find(|slot| slot.id == id)
    }

    fn retire(&mut self, id: u64) {
        if let Some(slot) = self.remove(id) {
            slot.retire.cancel();
        }
    }

    fn remove(&mut self, id: u64) -> Option<Slot<C>> {
        let at = self.slots.iter().position(|slot| slot.id == id)?;
        Some(self.slots.swap_remove(at))
    }
}

/// Whether two callers take turns as one: the agent and the end user do not count.
pub(super) fn same_principal(one: &Scope, other: &Scope) -> bool {
    let (one, other) = (one.parts(), other.parts());
    (&one.principal, &one.tenant) == (&other.principal, &other.tenant)
}

/// Of open questions, each with whose it is and since when it is open, the oldest of the principal that has most of them.
pub(super) fn oldest_of_most(questions: &[(&Scope, Instant)]) -> Option<usize> {
    let count = |scope: &Scope| questions.iter().filter(|(other, _)| same_principal(scope, other)).count();
    let key = |at: &usize| {
        let (scope, since) = questions[*at];
        (Reverse(count(scope)), since)
    };
    (0..questions.len()).min_by_key(key)
}

fn take<C: Clone>(slot: &mut Slot<C>) -> Option<Granted<C>> {
    let connection = slot.ready.as_ref()?.connection.clone();
    slot.calls += 1;
    Some(Granted { slot: slot.id, connection })
}

#[cfg(test)]
mod tests;
