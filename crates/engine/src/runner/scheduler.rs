//! Decides which work gets a slot: in order within a caller, in turns between callers and agents.
//!
//! It mirrors the due work of the store in memory. The store stays authoritative: a claim is decided by its commit,
//! and what the mirror misses is found by the claimer's next read. Pure: it reads no clock and does no I/O.
//!
//! A free slot never waits for work that could take it: whoever frees a slot grants it in the same step, and a new
//! message starts at once only if nothing of its caller waits. So no message overtakes work of its caller, except
//! suspects, which wait for each other.

mod classes;
mod slab;
#[cfg(test)]
mod tests;

use std::{
    cmp::Reverse,
    collections::{BTreeSet, BinaryHeap, HashMap, VecDeque},
    sync::Arc,
    time::Duration,
};

use protocol::Timestamp;

pub(super) use self::classes::{AgentLimits, CallerId};
use self::classes::{Classes, Key};
use crate::{
    access::scope::Scope,
    ids::TaskNo,
    runner::AskingTurn,
    store::{DueTask, Step},
};

/// The state of all slots and of the work that waits for one.
pub(super) struct Scheduler {
    classes: Classes,
    /// Work that waits, becomes due later, or is being claimed.
    known: HashMap<TaskNo, Known>,
    /// Work that was running when processes crashed, sorted by key. It starts one at a time.
    suspects: VecDeque<(Key, CallerId)>,
    /// A suspect is on probation: no other starts.
    on_probation: bool,
    /// Suspects and other work take turns.
    suspect_is_next: bool,
    /// Work that is due later; entries that [`Self::known`] does not confirm are obsolete.
    later: BinaryHeap<Reverse<Key>>,
    /// Work whose skill is not known yet, by the time until which it waits.
    unselected: BTreeSet<Key>,
    /// How much work may be due later, and how much may wait for its skill.
    max_later: usize,
    /// Work that has a slot and is to be claimed.
    granted: Vec<Grant>,
    /// The claimer has something to do that it does not know of.
    wake: bool,
    arrivals: u64,
    /// While the store is read: tasks that were claimed meanwhile, which the read may still show as due.
    claimed_during_read: Option<Vec<TaskNo>>,
}

/// What becomes of a message that starts a turn.
#[derive(Debug)]
pub(super) enum Arrived {
    /// It has a slot.
    Start(CallerId),
    /// It waits for a slot, and for its commit.
    Wait(Ticket),
    /// Too much waits already.
    Full,
}

/// How long a task waits until its skill is known: longer than an MCP server may take to start.
const SKILL_WAIT: Duration = Duration::from_secs(70);

/// Until when a task waits that begins to wait for its skill now.
pub(super) fn skill_wait_end(now: Timestamp) -> Timestamp {
    let millis = i64::try_from(SKILL_WAIT.as_millis()).unwrap_or(i64::MAX);
    Timestamp::from_millis(now.as_millis().saturating_add(millis))
}

/// The place in the queue of work that is not recorded yet. Must be given back to [`Scheduler::recorded`] or
/// [`Scheduler::withdraw`].
#[derive(Debug)]
pub(super) struct Ticket {
    caller: CallerId,
    key: Key,
    number: u64,
    /// As in [`Grant`].
    skill_by: Option<Timestamp>,
    /// Of work that waits for its skill.
    asking: Option<Arc<AskingTurn>>,
}

/// Work to be claimed; it has a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Grant {
    pub(super) no: TaskNo,
    /// Whose slot it is.
    pub(super) caller: CallerId,
    /// It starts on probation, and no other suspect starts until [`Scheduler::end_probation`].
    pub(super) probation: bool,
    /// Its skill is selected before it is claimed, and must be known by this time.
    pub(super) skill_by: Option<Timestamp>,
}

impl Grant {
    /// The step that claims it.
    pub(super) fn step(&self) -> Step {
        Step::Claim { probation: self.probation }
    }
}

struct Known {
    caller: CallerId,
    at: Timestamp,
    suspect: bool,
    stage: Stage,
    /// It counts as a turn that may ask until its run does.
    asking: Option<Arc<AskingTurn>>,
    /// As in [`Grant`].
    skill_by: Option<Timestamp>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// In the queue, but not recorded yet; the number of its ticket.
    Arriving(u64),
    /// In a queue.
    Waiting,
    /// Due later.
    Later,
    /// Waiting until its skill is known. It has no slot, and nothing waits for it.
    Unselected,
    /// Its claim is being committed.
    Granted,
    /// Claimed during a read of the store.
    Claimed,
}

impl Scheduler {
    /// So many slots; so much work may wait before messages are rejected.
    pub(super) fn new(slots: usize, max_waiting: usize) -> Self {
        Self {
            classes: Classes::new(slots, max_waiting),
            known: HashMap::new(),
            suspects: VecDeque::new(),
            on_probation: false,
            suspect_is_next: true,
            later: BinaryHeap::new(),
            unselected: BTreeSet::new(),
            max_later: max_waiting.max(1_024),
            granted: Vec::new(),
            wake: false,
            arrivals: 0,
            claimed_during_read: None,
        }
    }

    pub(super) fn set_limits(&mut self, limits: AgentLimits) {
        self.classes.set_limits(limits);
        self.grant();
    }

    /// How much work waits for a slot.
    pub(super) fn waiting(&self) -> usize {
        self.classes.waiting() + self.suspects.len()
    }

    /// How many slots nobody has.
    pub(super) fn free_slots(&self) -> usize {
        self.classes.free_slots()
    }

    /// Since when the oldest of the waiting work is due. Looks at all that is known, which `limits.queued` bounds.
    pub(super) fn oldest(&self) -> Option<Timestamp> {
        if self.waiting() == 0 {
            return None;
        }
        let waits = |known: &&Known| matches!(known.stage, Stage::Arriving(_) | Stage::Waiting);
        let due = self.known.values().filter(waits).map(|known| known.at);
        // Work that was scheduled by a wrong clock has the time 0.
        due.filter(|at| at.as_millis() > 0).min()
    }

    /// The claimer must look at what has changed; `true` once.
    pub(super) fn take_wake(&mut self) -> bool {
        std::mem::take(&mut self.wake)
    }

    /// The place of a task among the waiting tasks of its agent and caller; 1 is next. `None` if it does not wait.
    pub(super) fn place(&self, no: TaskNo) -> Option<usize> {
        if self.waiting() == 0 {
            return None;
        }
        let known = self.known.get(&no)?;
        let before = match known.stage {
            Stage::Arriving(_) | Stage::Waiting if !known.suspect => {
                self.classes.position(known.caller, (known.at, no))?
            }
            Stage::Waiting => {
                let before = self.suspects.iter().take_while(|suspect| suspect.0 < (known.at, no));
                before.filter(|suspect| suspect.1 == known.caller).count()
            }
            Stage::Arriving(_) | Stage::Later | Stage::Unselected | Stage::Granted | Stage::Claimed => {
                return None;
            }
        };
        Some(before + 1)
    }

    /// Decides about a message that starts a turn.
    pub(super) fn arrive(
        &mut self,
        scope: &Scope,
        no: TaskNo,
        at: Timestamp,
        asking: Option<Arc<AskingTurn>>,
    ) -> Arrived {
        let caller = self.classes.caller(scope);
        if !self.classes.has_waiting(caller) && self.classes.may_start(caller) {
            self.classes.start(caller);
            return Arrived::Start(caller);
        }
        if !self.classes.may_wait(caller) {
            self.classes.remove_if_too_many(caller);
            return Arrived::Full;
        }
        self.classes.retain(caller);
        self.arrivals += 1;
        let number = self.arrivals;
        // A clock that was set back must not put it before what waits already.
        let at = self.classes.last_at(caller).map_or(at, |last| last.max(at));
        // Messages that race for the same task have one place; at most one of them is recorded.
        if self.known.get(&no).is_none_or(|known| known.stage == Stage::Claimed) {
            let stage = Stage::Arriving(number);
            self.insert(no, Known { caller, at, suspect: false, stage, skill_by: None, asking });
        }
        Arrived::Wait(Ticket { caller, key: (at, no), number, skill_by: None, asking: None })
    }

    /// Decides about a message whose skill is not known yet. `None`: too much waits already.
    pub(super) fn arrive_unselected(
        &mut self,
        scope: &Scope,
        no: TaskNo,
        at: Timestamp,
        skill_by: Timestamp,
        asking: Option<Arc<AskingTurn>>,
    ) -> Option<Ticket> {
        if self.unselected.len() >= self.max_later {
            return None;
        }
        let caller = self.classes.caller(scope);
        self.classes.retain(caller);
        self.arrivals += 1;
        Some(Ticket { caller, key: (at, no), number: self.arrivals, skill_by: Some(skill_by), asking })
    }

    /// The skill of a task whose caller has a slot is not known yet: the task waits until this time at most.
    pub(super) fn await_skill(
        &mut self,
        grant: Grant,
        skill_by: Timestamp,
        at: Timestamp,
        asking: Option<Arc<AskingTurn>>,
    ) {
        let Grant { no, caller, probation: suspect, .. } = grant;
        let asking = self.remove(no).or(asking);
        // What is left out is found by the next read of the store.
        if self.unselected.len() < self.max_later {
            let (stage, skill_by) = (Stage::Unselected, Some(skill_by));
            self.insert(no, Known { caller, at, suspect, stage, skill_by, asking });
        }
    }

    /// Agents may have other skills: the work that waits for its skill is tried again.
    pub(super) fn retry_unselected(&mut self) {
        while let Some(first) = self.unselected.first().copied() {
            self.begin_waiting(first.1);
        }
        self.grant();
    }

    /// The message of the ticket is recorded: its turn can be claimed.
    pub(super) fn recorded(&mut self, ticket: &Ticket) {
        let Ticket { caller, key: (at, no), number, skill_by, ref asking } = *ticket;
        match self.known.get_mut(&no) {
            Some(known) if known.stage == Stage::Arriving(number) => {
                known.stage = Stage::Waiting;
                self.classes.set_ready(caller, (at, no));
            }
            Some(Known { stage: Stage::Waiting | Stage::Granted, .. }) => {}
            Some(_) | None => {
                let asking = asking.clone().or(self.remove(no));
                let stage = skill_by.map_or(Stage::Waiting, |_| Stage::Unselected);
                self.insert(no, Known { caller, at, suspect: false, stage, skill_by, asking });
            }
        }
        self.classes.release(caller);
        self.grant();
    }

    /// The message of the ticket was not recorded.
    pub(super) fn withdraw(&mut self, ticket: &Ticket) {
        let no = ticket.key.1;
        if self.known.get(&no).is_some_and(|known| known.stage == Stage::Arriving(ticket.number)) {
            self.remove(no);
        }
        self.classes.release(ticket.caller);
        // It may have kept later work of its caller waiting.
        self.grant();
    }

    /// A slot is free again.
    pub(super) fn release(&mut self, caller: CallerId) {
        self.classes.stop(caller);
        self.grant();
    }

    /// A task whose caller has a slot is due again, now or later.
    pub(super) fn requeue(
        &mut self,
        caller: CallerId,
        no: TaskNo,
        at: Timestamp,
        suspect: bool,
        asking: Option<Arc<AskingTurn>>,
        now: Timestamp,
    ) {
        let stage = if at <= now { Stage::Waiting } else { Stage::Later };
        if self.known.get(&no).is_some_and(|known| known.stage == Stage::Granted) {
            // The store was read meanwhile, and the task is being claimed already.
            return;
        }
        self.remove(no);
        if stage == Stage::Waiting || self.later.len() < self.max_later {
            self.insert(no, Known { caller, at, suspect, stage, skill_by: None, asking });
        }
        self.grant();
    }

    /// Work that has become due waits from now on, and so does what has waited long enough for its skill. Returns when the
    /// next does.
    pub(super) fn promote(&mut self, now: Timestamp) -> Option<Timestamp> {
        while let Some((_, no)) = self.unselected.first().copied().filter(|(until, _)| *until <= now) {
            self.begin_waiting(no);
        }
        let next = loop {
            let Some(Reverse(key)) = self.later.peek().copied() else { break None };
            if key.0 > now {
                break Some(key.0);
            }
            self.later.pop();
            let known = self.known.get(&key.1);
            if known.is_some_and(|known| known.stage == Stage::Later && known.at == key.0) {
                self.begin_waiting(key.1);
            }
        };
        self.grant();
        next.into_iter().chain(self.unselected.first().map(|(until, _)| *until)).min()
    }

    /// Puts known work into a queue.
    fn begin_waiting(&mut self, no: TaskNo) {
        let Some(&Known { caller, at, suspect, skill_by, .. }) = self.known.get(&no) else { return };
        // The caller must exist until the work is in its queue.
        self.classes.retain(caller);
        let asking = self.remove(no);
        self.insert(no, Known { caller, at, suspect, stage: Stage::Waiting, skill_by, asking });
        self.classes.release(caller);
    }

    /// The store is going to be read; [`Self::finish_read`] follows.
    pub(super) fn begin_read(&mut self) {
        self.claimed_during_read = Some(Vec::new());
    }

    /// The store could not be read.
    pub(super) fn abandon_read(&mut self) {
        self.end_read();
    }

    /// Adds the due work that was read from the store at this time. `asking` is called for what was not known.
    pub(super) fn finish_read(
        &mut self,
        tasks: &[DueTask],
        now: Timestamp,
        asking: impl Fn(&DueTask) -> Option<Arc<AskingTurn>>,
    ) {
        for task in tasks {
            self.insert_due(task, now, &asking);
        }
        self.end_read();
        self.grant();
    }

    /// Adds work of the store that is due at this time.
    pub(super) fn add_due(
        &mut self,
        task: &DueTask,
        now: Timestamp,
        asking: impl Fn(&DueTask) -> Option<Arc<AskingTurn>>,
    ) {
        self.insert_due(task, now, &asking);
        self.grant();
    }

    fn insert_due(
        &mut self,
        task: &DueTask,
        now: Timestamp,
        asking: &impl Fn(&DueTask) -> Option<Arc<AskingTurn>>,
    ) {
        let asking = match self.known.get(&task.no).map(|known| known.stage) {
            Some(Stage::Later) => self.remove(task.no),
            Some(
                Stage::Arriving(_) | Stage::Waiting | Stage::Unselected | Stage::Granted | Stage::Claimed,
            ) => return,
            None => asking(task),
        };
        // Work that was scheduled by a wrong clock comes first.
        let at = if task.at > now { Timestamp::from_millis(0) } else { task.at };
        let caller = self.classes.caller(&task.scope);
        let skill_by = task.unselected.then(|| skill_wait_end(now));
        let stage = Stage::Waiting;
        self.insert(task.no, Known { caller, at, suspect: task.suspect, stage, skill_by, asking });
    }

    fn end_read(&mut self) {
        for no in self.claimed_during_read.take().unwrap_or_default() {
            if self.known.get(&no).is_some_and(|known| known.stage == Stage::Claimed) {
                self.known.remove(&no);
            }
        }
    }

    /// The work that has got slots since the last call.
    pub(super) fn take_granted(&mut self) -> Vec<Grant> {
        std::mem::take(&mut self.granted)
    }

    /// A claim was committed or rejected. Either way the task does not wait any more. Returns what counts it as a turn
    /// that may ask, until its run does.
    pub(super) fn finish_claim(&mut self, no: TaskNo) -> Option<Arc<AskingTurn>> {
        let known = self.known.get_mut(&no).filter(|known| known.stage == Stage::Granted)?;
        let asking = known.asking.take();
        if let Some(claimed) = &mut self.claimed_during_read {
            known.stage = Stage::Claimed;
            claimed.push(no);
        } else {
            self.known.remove(&no);
        }
        asking
    }

    /// The next suspect may start.
    pub(super) fn end_probation(&mut self) {
        self.on_probation = false;
        self.grant();
    }

    /// A task has ended while it waited.
    pub(super) fn cancel(&mut self, no: TaskNo) {
        let stage = self.known.get(&no).map(|known| known.stage);
        if matches!(stage, Some(Stage::Waiting | Stage::Later | Stage::Unselected)) {
            self.remove(no);
            self.grant();
        }
    }

    /// Adds work that is not known.
    fn insert(&mut self, no: TaskNo, known: Known) {
        let Known { caller, at, suspect, stage, skill_by, .. } = known;
        let key = (at, no);
        match stage {
            Stage::Unselected => {
                self.classes.retain(caller);
                let key = (skill_by.unwrap_or(at), no);
                self.wake |= self.unselected.first().is_none_or(|first| key < *first);
                self.unselected.insert(key);
            }
            Stage::Later => {
                self.classes.retain(caller);
                self.wake |= self.later.peek().is_none_or(|first| key < first.0);
                self.later.push(Reverse(key));
            }
            _ if suspect => {
                self.classes.retain(caller);
                let position = self.suspects.partition_point(|other| other.0 < key);
                self.suspects.insert(position, (key, caller));
            }
            _ => self.classes.insert(caller, key, stage == Stage::Waiting),
        }
        self.known.insert(no, known);
    }

    /// Removes work from where it waits, if it does. Returns what counts it as a turn that may ask.
    fn remove(&mut self, no: TaskNo) -> Option<Arc<AskingTurn>> {
        let Known { caller, at, suspect, stage, skill_by, asking } = self.known.remove(&no)?;
        match stage {
            Stage::Unselected => {
                self.unselected.remove(&(skill_by.unwrap_or(at), no));
                self.classes.release(caller);
            }
            Stage::Later => self.classes.release(caller),
            Stage::Waiting if suspect => {
                self.suspects.retain(|other| other.0 != (at, no));
                self.classes.release(caller);
            }
            Stage::Arriving(_) | Stage::Waiting => self.classes.remove(caller, (at, no)),
            Stage::Granted | Stage::Claimed => {}
        }
        asking
    }

    /// Gives the free slots to work that waits.
    fn grant(&mut self) {
        while self.classes.has_free_slots() && self.waiting() > 0 {
            let granted = if self.suspect_is_next {
                self.grant_suspect().or_else(|| self.grant_next())
            } else {
                self.grant_next().or_else(|| self.grant_suspect())
            };
            let Some(mut grant) = granted else { return };
            if let Some(known) = self.known.get_mut(&grant.no) {
                known.stage = Stage::Granted;
                grant.skill_by = known.skill_by;
            }
            self.suspect_is_next = !grant.probation;
            self.granted.push(grant);
            self.wake = true;
        }
    }

    fn grant_next(&mut self) -> Option<Grant> {
        let (caller, (_, no)) = self.classes.start_next()?;
        Some(Grant { no, caller, probation: false, skill_by: None })
    }

    /// The first suspect whose caller may start.
    fn grant_suspect(&mut self) -> Option<Grant> {
        if self.on_probation {
            return None;
        }
        let position = self.suspects.iter().position(|suspect| self.classes.may_start(suspect.1))?;
        let ((_, no), caller) = self.suspects.remove(position)?;
        self.classes.start(caller);
        self.classes.release(caller);
        self.on_probation = true;
        Some(Grant { no, caller, probation: true, skill_by: None })
    }
}
