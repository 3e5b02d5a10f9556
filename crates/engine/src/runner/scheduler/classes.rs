//! Agents and their callers: how much each of them runs, what waits, and which of them is next.

use std::collections::{HashMap, VecDeque};

use protocol::Timestamp;

use super::slab::Slab;
use crate::{access::scope::Scope, ids::TaskNo, store::TenantAgent};

/// Callers without work that are kept, so that their next call allocates nothing.
const MAX_IDLE: usize = 1_024;

/// A caller of an agent. Valid while it runs or waits for something, or is retained.
pub(in super::super) type CallerId = usize;
type AgentId = usize;

/// Position in a queue: since when the work is due, then the task number.
pub(super) type Key = (Timestamp, TaskNo);

/// The concurrency limits of agents.
#[derive(Debug, Default)]
pub(in super::super) struct AgentLimits {
    /// Agents with a limit of their own.
    pub(in super::super) fixed: HashMap<TenantAgent, usize>,
    /// Whether there is more than one agent, so that those without a limit have to leave slots for others.
    pub(in super::super) shared: bool,
}

/// All agents and callers.
pub(super) struct Classes {
    /// Slots that nobody has.
    free: usize,
    /// How much work may wait.
    max_waiting: usize,
    waiting: usize,
    limits: AgentLimits,
    agents: Slab<Agent>,
    callers: Slab<Caller>,
    agent_ids: HashMap<TenantAgent, AgentId>,
    caller_ids: HashMap<Scope, CallerId>,
    /// Callers that nothing refers to.
    idle: usize,
    /// Agents with work that can start, in the order of their turns.
    ring: VecDeque<AgentId>,
}

struct Agent {
    name: TenantAgent,
    /// 0: a fair share.
    limit: usize,
    running: usize,
    waiting: usize,
    callers: usize,
    /// Callers whose first work can start, in the order of their turns.
    ring: VecDeque<CallerId>,
}

struct Caller {
    scope: Scope,
    agent: AgentId,
    /// Has a credential, so that there may be other callers to leave slots for.
    shared: bool,
    running: usize,
    references: usize,
    /// Sorted by key.
    queue: VecDeque<Waiting>,
    in_ring: bool,
}

impl Caller {
    /// Whether its first work is recorded and needs only a slot.
    fn first_is_ready(&self) -> bool {
        self.queue.front().is_some_and(|first| first.ready)
    }
}

/// Work that waits for a slot.
struct Waiting {
    key: Key,
    /// Whether it is recorded. Work behind one that is not recorded yet waits for it.
    ready: bool,
}

/// How many more of `free` places may be taken by someone who has `used`, one after the other. Where places are
/// shared, one is taken only while `used < 3 * free`; each one taken adds 1 to `used` and removes 1 from `free`, so
/// that is possible `(3 * free - used) / 4` times, rounded up.
fn available(used: usize, free: usize, shared: bool) -> usize {
    if shared { free.saturating_mul(3).saturating_sub(used).div_ceil(4) } else { free }
}

impl Classes {
    pub(super) fn new(slots: usize, max_waiting: usize) -> Self {
        Self {
            free: slots,
            max_waiting,
            waiting: 0,
            limits: AgentLimits::default(),
            agents: Slab::default(),
            callers: Slab::default(),
            agent_ids: HashMap::new(),
            caller_ids: HashMap::new(),
            idle: 0,
            ring: VecDeque::new(),
        }
    }

    pub(super) fn set_limits(&mut self, limits: AgentLimits) {
        for agent in self.agents.iter_mut() {
            agent.limit = limits.fixed.get(&agent.name).copied().unwrap_or_default();
        }
        self.limits = limits;
    }

    /// How much work waits.
    pub(super) fn waiting(&self) -> usize {
        self.waiting
    }

    /// How many callers are kept.
    #[cfg(test)]
    pub(super) fn callers(&self) -> usize {
        self.caller_ids.len()
    }

    pub(super) fn free_slots(&self) -> usize {
        self.free
    }

    pub(super) fn has_free_slots(&self) -> bool {
        self.free > 0
    }

    /// The caller with this scope.
    pub(super) fn caller(&mut self, scope: &Scope) -> CallerId {
        if let Some(id) = self.caller_ids.get(scope) {
            return *id;
        }
        let agent = self.agent(scope);
        self.agents[agent].callers += 1;
        let caller = Caller {
            scope: scope.clone(),
            agent,
            shared: !scope.is_anonymous(),
            running: 0,
            references: 0,
            queue: VecDeque::new(),
            in_ring: false,
        };
        let id = self.callers.insert(caller);
        self.caller_ids.insert(scope.clone(), id);
        self.idle += 1;
        id
    }

    fn agent(&mut self, scope: &Scope) -> AgentId {
        let name = TenantAgent::of(scope);
        if let Some(id) = self.agent_ids.get(&name) {
            return *id;
        }
        let limit = self.limits.fixed.get(&name).copied().unwrap_or_default();
        let (running, waiting, callers) = (0, 0, 0);
        let agent = Agent { name: name.clone(), limit, running, waiting, callers, ring: VecDeque::new() };
        let id = self.agents.insert(agent);
        self.agent_ids.insert(name, id);
        id
    }

    /// Keeps the caller until the same number of calls of [`Self::release`].
    pub(super) fn retain(&mut self, id: CallerId) {
        let caller = &mut self.callers[id];
        self.idle -= usize::from(caller.references == 0);
        caller.references += 1;
    }

    pub(super) fn release(&mut self, id: CallerId) {
        let caller = &mut self.callers[id];
        caller.references -= 1;
        if caller.references == 0 {
            self.idle += 1;
            self.remove_if_too_many(id);
        }
    }

    /// Removes a caller that nothing refers to, if too many of them are kept.
    pub(super) fn remove_if_too_many(&mut self, id: CallerId) {
        if self.idle <= MAX_IDLE || self.callers[id].references > 0 {
            return;
        }
        let caller = self.callers.remove(id);
        self.caller_ids.remove(&caller.scope);
        self.idle -= 1;
        let agent = &mut self.agents[caller.agent];
        agent.callers -= 1;
        if agent.callers == 0 {
            let agent = self.agents.remove(caller.agent);
            self.agent_ids.remove(&agent.name);
        }
    }

    /// Whether work of the caller may take a slot now.
    pub(super) fn may_start(&self, id: CallerId) -> bool {
        let caller = &self.callers[id];
        let free = self.free_for(&self.agents[caller.agent]);
        available(caller.running, free, caller.shared) > 0
    }

    fn free_for(&self, agent: &Agent) -> usize {
        match agent.limit {
            0 => available(agent.running, self.free, self.limits.shared),
            limit => limit.saturating_sub(agent.running).min(self.free),
        }
    }

    /// Whether more work of the caller may wait.
    pub(super) fn may_wait(&self, id: CallerId) -> bool {
        let caller = &self.callers[id];
        let free = self.max_waiting.saturating_sub(self.waiting);
        let free = available(self.agents[caller.agent].waiting, free, self.limits.shared);
        available(caller.queue.len(), free, caller.shared) > 0
    }

    /// Since when the last waiting work of the caller is due.
    pub(super) fn last_at(&self, id: CallerId) -> Option<Timestamp> {
        self.callers[id].queue.back().map(|last| last.key.0)
    }

    pub(super) fn has_waiting(&self, id: CallerId) -> bool {
        !self.callers[id].queue.is_empty()
    }

    /// Gives the caller a slot; it is retained until [`Self::stop`].
    pub(super) fn start(&mut self, id: CallerId) {
        self.retain(id);
        self.free -= 1;
        let caller = &mut self.callers[id];
        caller.running += 1;
        self.agents[caller.agent].running += 1;
    }

    /// Takes the slot back.
    pub(super) fn stop(&mut self, id: CallerId) {
        self.free += 1;
        let caller = &mut self.callers[id];
        caller.running -= 1;
        self.agents[caller.agent].running -= 1;
        self.release(id);
    }

    /// Adds work that waits; the caller is retained until it starts or is removed.
    pub(super) fn insert(&mut self, id: CallerId, key: Key, ready: bool) {
        self.retain(id);
        let caller = &mut self.callers[id];
        let at = caller.queue.partition_point(|waiting| waiting.key < key);
        caller.queue.insert(at, Waiting { key, ready });
        self.waiting += 1;
        self.agents[caller.agent].waiting += 1;
        self.update_ring(id);
    }

    /// Work that waits is recorded and can start.
    pub(super) fn set_ready(&mut self, id: CallerId, key: Key) {
        if let Some(at) = self.position(id, key) {
            self.callers[id].queue[at].ready = true;
            self.update_ring(id);
        }
    }

    pub(super) fn remove(&mut self, id: CallerId, key: Key) {
        if let Some(at) = self.position(id, key) {
            let caller = &mut self.callers[id];
            caller.queue.remove(at);
            self.waiting -= 1;
            self.agents[caller.agent].waiting -= 1;
            self.update_ring(id);
            self.release(id);
        }
    }

    /// How much work of the caller waits before this work.
    pub(super) fn position(&self, id: CallerId, key: Key) -> Option<usize> {
        self.callers[id].queue.binary_search_by(|waiting| waiting.key.cmp(&key)).ok()
    }

    /// The work that starts next: agents take turns, so do the callers of each, and each caller's work is in order.
    pub(super) fn start_next(&mut self) -> Option<(CallerId, Key)> {
        let (turn, caller_turn) = self.next_turn()?;
        let agent_id = self.ring.remove(turn)?;
        let agent = &mut self.agents[agent_id];
        let id = agent.ring.remove(caller_turn)?;
        let caller = &mut self.callers[id];
        let key = caller.queue.pop_front()?.key;
        self.waiting -= 1;
        agent.waiting -= 1;
        caller.in_ring = caller.first_is_ready();
        if caller.in_ring {
            agent.ring.push_back(id);
        }
        if !agent.ring.is_empty() {
            self.ring.push_back(agent_id);
        }
        self.start(id);
        self.release(id);
        Some((id, key))
    }

    /// The positions of the next agent and of its caller. Who may not start now keeps its turn; only those that have
    /// slots already are skipped, so they are few.
    fn next_turn(&self) -> Option<(usize, usize)> {
        self.ring.iter().enumerate().find_map(|(turn, agent)| {
            let agent = &self.agents[*agent];
            let free = self.free_for(agent);
            if free == 0 {
                return None;
            }
            let may_start = |id: &CallerId| {
                let caller = &self.callers[*id];
                available(caller.running, free, caller.shared) > 0
            };
            agent.ring.iter().position(may_start).map(|caller_turn| (turn, caller_turn))
        })
    }

    /// A caller takes turns while its first work can start, and its agent while it has such a caller.
    fn update_ring(&mut self, id: CallerId) {
        let caller = &mut self.callers[id];
        let ready = caller.first_is_ready();
        if ready == caller.in_ring {
            return;
        }
        caller.in_ring = ready;
        let (agent_id, agent) = (caller.agent, &mut self.agents[caller.agent]);
        if ready {
            if agent.ring.is_empty() {
                self.ring.push_back(agent_id);
            }
            agent.ring.push_back(id);
        } else {
            agent.ring.retain(|other| *other != id);
            if agent.ring.is_empty() {
                self.ring.retain(|other| *other != agent_id);
            }
        }
    }
}
