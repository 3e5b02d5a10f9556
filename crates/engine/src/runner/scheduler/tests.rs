use std::collections::{BTreeMap, BTreeSet};

use super::*;
use crate::{access::scope::ScopeParts, store::TenantAgent};

fn now() -> Timestamp {
    at(1_000)
}

fn agent(name: &str) -> Scope {
    Scope::anonymous("default", name)
}

fn caller(name: &str, principal: &str) -> Scope {
    Scope::new(ScopeParts {
        tenant: "default".into(),
        principal: principal.into(),
        agent: name.into(),
        end_user: String::new(),
    })
}

fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(millis)
}

fn due(no: i64, scope: &Scope, suspect: bool) -> DueTask {
    let (no, at) = (TaskNo(no), at(no));
    DueTask { no, at, scope: scope.clone(), skill: None, suspect, unselected: false }
}

fn shared(scheduler: &mut Scheduler) {
    scheduler.set_limits(AgentLimits { shared: true, ..AgentLimits::default() });
}

/// Starts work of a caller while it may start; returns how much.
fn fill(scheduler: &mut Scheduler, scope: &Scope) -> usize {
    for started in 0.. {
        match scheduler.arrive(scope, TaskNo(started), now(), None) {
            Arrived::Start(_) => {}
            Arrived::Wait(ticket) => {
                scheduler.withdraw(&ticket);
                return usize::try_from(started).unwrap();
            }
            Arrived::Full => panic!("the queue is full"),
        }
    }
    unreachable!()
}

/// Work that waits and is recorded.
fn queue(scheduler: &mut Scheduler, scope: &Scope, no: i64) {
    match scheduler.arrive(scope, TaskNo(no), at(no), None) {
        Arrived::Wait(ticket) => scheduler.recorded(&ticket),
        other => panic!("{other:?}"),
    }
}

fn start(scheduler: &mut Scheduler, scope: &Scope, no: i64) -> CallerId {
    match scheduler.arrive(scope, TaskNo(no), at(no), None) {
        Arrived::Start(caller) => caller,
        other => panic!("{other:?}"),
    }
}

fn granted(scheduler: &mut Scheduler) -> Vec<i64> {
    scheduler.take_granted().into_iter().map(|grant| grant.no.0).collect()
}

#[test]
fn limit_of_an_agent_is_exact() {
    let mut scheduler = Scheduler::new(8, 10);
    let name = TenantAgent::of(&agent("a"));
    scheduler.set_limits(AgentLimits { fixed: [(name.clone(), 2)].into(), shared: true });
    assert_eq!(fill(&mut scheduler, &agent("a")), 2);
    queue(&mut scheduler, &agent("a"), 10);
    assert_eq!(granted(&mut scheduler), [] as [i64; 0]);
    // A higher limit starts what waits.
    scheduler.set_limits(AgentLimits { fixed: [(name, 3)].into(), shared: true });
    assert_eq!(granted(&mut scheduler), [10]);
}

#[test]
fn freed_slots_go_round_agents_and_callers_and_in_order_within_them() {
    let mut scheduler = Scheduler::new(1, 100);
    let mut running = start(&mut scheduler, &agent("a"), 0);
    let (alice, bob) = (caller("b", "alice"), caller("b", "bob"));
    for (scope, nos) in [(agent("a"), [3, 1, 2]), (alice, [12, 11, 13]), (bob, [21, 22, 23])] {
        nos.iter().for_each(|no| queue(&mut scheduler, &scope, *no));
    }
    let mut order = Vec::new();
    loop {
        scheduler.release(running);
        let Some(grant) = scheduler.take_granted().pop() else { break };
        scheduler.finish_claim(grant.no);
        running = grant.caller;
        order.push(grant.no.0);
    }
    assert_eq!(order, [1, 11, 2, 21, 3, 12, 22, 13, 23]);
}

#[test]
fn full_queue_rejects_and_one_agent_cannot_fill_it() {
    let mut scheduler = Scheduler::new(1, 100);
    start(&mut scheduler, &agent("a"), 0);
    (1..=100).for_each(|no| queue(&mut scheduler, &agent("a"), no));
    assert!(matches!(scheduler.arrive(&agent("a"), TaskNo(101), now(), None), Arrived::Full));
    // Work that exists is never rejected.
    scheduler.finish_read(&[due(200, &agent("a"), false)], now(), |_| None);
    assert_eq!((scheduler.waiting(), scheduler.place(TaskNo(200))), (101, Some(101)));

    let mut scheduler = Scheduler::new(1, 100);
    shared(&mut scheduler);
    start(&mut scheduler, &agent("a"), 0);
    (1..=75).for_each(|no| queue(&mut scheduler, &agent("a"), no));
    assert!(matches!(scheduler.arrive(&agent("a"), TaskNo(76), now(), None), Arrived::Full));
    queue(&mut scheduler, &agent("b"), 77);
}

#[test]
fn nothing_may_wait_when_the_limit_is_zero() {
    let mut scheduler = Scheduler::new(1, 0);
    let running = start(&mut scheduler, &agent("a"), 1);
    assert!(matches!(scheduler.arrive(&agent("a"), TaskNo(2), now(), None), Arrived::Full));
    scheduler.release(running);
    start(&mut scheduler, &agent("a"), 2);
}

#[test]
fn place_counts_the_work_before_it() {
    let mut scheduler = Scheduler::new(1, 100);
    let running = start(&mut scheduler, &agent("a"), 1);
    assert_eq!(scheduler.place(TaskNo(1)), None);
    (2..5).for_each(|no| queue(&mut scheduler, &agent("a"), no));
    queue(&mut scheduler, &agent("b"), 5);
    let places = |scheduler: &Scheduler| (2..6).map(|no| scheduler.place(TaskNo(no))).collect::<Vec<_>>();
    assert_eq!(places(&scheduler), [Some(1), Some(2), Some(3), Some(1)]);
    scheduler.cancel(TaskNo(3));
    scheduler.release(running);
    assert_eq!(places(&scheduler), [None, None, Some(1), Some(1)]);
}

#[test]
fn suspects_start_one_at_a_time_and_do_not_stop_other_work() {
    let mut scheduler = Scheduler::new(4, 100);
    scheduler.begin_read();
    let tasks: Vec<_> = (1..=6).map(|no| due(no, &agent("a"), no <= 3)).collect();
    scheduler.finish_read(&tasks, now(), |_| None);
    let grants = scheduler.take_granted();
    let probation: Vec<_> = grants.iter().map(|grant| (grant.no.0, grant.probation)).collect();
    assert_eq!(probation, [(1, true), (4, false), (5, false), (6, false)]);
    assert_eq!(scheduler.place(TaskNo(3)), Some(2));
    scheduler.release(grants[1].caller);
    assert_eq!(granted(&mut scheduler), [] as [i64; 0], "a slot is free, but a suspect is on probation");
    scheduler.end_probation();
    assert_eq!(granted(&mut scheduler), [2]);
}

#[test]
fn suspects_and_other_work_take_turns() {
    let mut scheduler = Scheduler::new(1, 100);
    scheduler.begin_read();
    let tasks: Vec<_> = (1..=4).map(|no| due(no, &agent("a"), no <= 2)).collect();
    scheduler.finish_read(&tasks, now(), |_| None);
    let mut order = Vec::new();
    while let Some(grant) = scheduler.take_granted().pop() {
        order.push(grant.no.0);
        if grant.probation {
            scheduler.end_probation();
        }
        scheduler.release(grant.caller);
    }
    assert_eq!(order, [1, 3, 2, 4]);
}

#[test]
fn messages_that_race_for_a_task_have_one_place() {
    for winner in 0..2 {
        let mut scheduler = Scheduler::new(1, 100);
        let running = start(&mut scheduler, &agent("a"), 1);
        let tickets = [2, 3].map(|millis| match scheduler.arrive(&agent("a"), TaskNo(9), at(millis), None) {
            Arrived::Wait(ticket) => ticket,
            other => panic!("{other:?}"),
        });
        assert_eq!(scheduler.waiting(), 1);
        scheduler.recorded(&tickets[winner]);
        scheduler.withdraw(&tickets[1 - winner]);
        assert_eq!((scheduler.waiting(), scheduler.place(TaskNo(9))), (1, Some(1)));
        scheduler.release(running);
        assert_eq!(granted(&mut scheduler), [9]);
    }
}

#[test]
fn task_claimed_during_a_read_is_not_added_again() {
    let mut scheduler = Scheduler::new(1, 100);
    let running = start(&mut scheduler, &agent("a"), 1);
    queue(&mut scheduler, &agent("a"), 2);
    scheduler.release(running);
    scheduler.begin_read();
    let grants = scheduler.take_granted();
    scheduler.finish_claim(TaskNo(2));
    scheduler.finish_read(&[due(2, &agent("a"), false)], now(), |_| None);
    scheduler.release(grants[0].caller);
    assert_eq!(granted(&mut scheduler), [] as [i64; 0]);
    // Later it is due again.
    scheduler.begin_read();
    scheduler.finish_read(&[due(2, &agent("a"), false)], now(), |_| None);
    assert_eq!(granted(&mut scheduler), [2]);
}

#[test]
fn retry_waits_until_it_is_due() {
    let mut scheduler = Scheduler::new(1, 100);
    let running = start(&mut scheduler, &agent("a"), 1);
    scheduler.requeue(running, TaskNo(1), at(1_500), false, None, now());
    assert!(scheduler.take_wake(), "the claimer has to wait less");
    scheduler.release(running);
    assert_eq!(scheduler.promote(at(1_499)), Some(at(1_500)));
    assert_eq!(granted(&mut scheduler), [] as [i64; 0]);
    assert_eq!(scheduler.promote(at(1_500)), None);
    assert_eq!(granted(&mut scheduler), [1]);
}

#[test]
fn retry_scheduled_by_a_wrong_clock_starts_when_the_store_shows_it_as_due() {
    let mut scheduler = Scheduler::new(1, 100);
    let running = start(&mut scheduler, &agent("a"), 1);
    scheduler.requeue(running, TaskNo(1), at(90_000_000), false, None, at(89_999_000));
    queue(&mut scheduler, &agent("a"), 2);
    scheduler.begin_read();
    let late = DueTask { at: at(90_000_000), ..due(1, &agent("a"), false) };
    scheduler.finish_read(&[late, due(2, &agent("a"), false)], now(), |_| None);
    scheduler.release(running);
    assert_eq!(granted(&mut scheduler), [1]);
}

#[test]
fn idle_callers_are_bounded() {
    let mut scheduler = Scheduler::new(1, 100);
    for number in 0..3_000 {
        let running = start(&mut scheduler, &caller("a", &number.to_string()), 1);
        scheduler.release(running);
    }
    let kept = scheduler.classes.callers();
    assert!((1_000..1_100).contains(&kept), "{kept}");
}

/// Random work against a model that counts and compares by brute force.
#[test]
fn random_work_starts_in_order_within_limits_and_none_is_lost() {
    for seed in 0..300 {
        Model::new(seed).run(400);
    }
}

/// Until the skills of its agent change, or its time is over.
#[test]
fn work_waits_for_its_skill_without_a_slot() {
    let mut scheduler = Scheduler::new(1, 10);
    let scope = agent("a");
    let ticket = scheduler.arrive_unselected(&scope, TaskNo(1), at(1), at(500), None).unwrap();
    scheduler.recorded(&ticket);
    assert_eq!((scheduler.free_slots(), scheduler.waiting(), scheduler.place(TaskNo(1))), (1, 0, None));
    // The store shows it as due.
    scheduler.begin_read();
    scheduler.finish_read(&[DueTask { unselected: true, ..due(1, &scope, false) }], at(2), |_| None);
    assert!(granted(&mut scheduler).is_empty());
    // It does not hold up what comes later.
    let caller = start(&mut scheduler, &scope, 2);
    scheduler.retry_unselected();
    scheduler.release(caller);
    let [grant] = scheduler.take_granted()[..] else { panic!("one has a slot") };
    assert_eq!((grant.no, grant.skill_by), (TaskNo(1), Some(at(500))));
    scheduler.await_skill(grant, at(500), at(10), None);
    scheduler.release(grant.caller);
    assert_eq!(scheduler.promote(at(499)), Some(at(500)));
    assert!(granted(&mut scheduler).is_empty());
    assert_eq!(scheduler.promote(at(500)), None);
    let [grant] = scheduler.take_granted()[..] else { panic!("one has a slot") };
    assert_eq!((grant.no, grant.skill_by), (TaskNo(1), Some(at(500))));
    scheduler.finish_claim(grant.no);
    scheduler.release(grant.caller);
    assert!(scheduler.known.is_empty() && scheduler.unselected.is_empty());
}

#[test]
fn number_of_tasks_that_wait_for_their_skill_is_limited() {
    let mut scheduler = Scheduler::new(1, 1_024);
    let arrive = |scheduler: &mut Scheduler, no| {
        scheduler.arrive_unselected(&agent("a"), TaskNo(no), at(1), at(500), None)
    };
    for no in 0..1_024 {
        let ticket = arrive(&mut scheduler, no).unwrap();
        scheduler.recorded(&ticket);
    }
    assert!(arrive(&mut scheduler, 2_000).is_none());
    scheduler.cancel(TaskNo(7));
    let ticket = arrive(&mut scheduler, 2_000).unwrap();
    scheduler.withdraw(&ticket);
    assert_eq!(scheduler.unselected.len(), 1_023);
}

struct Model {
    random: fastrand::Rng,
    seed: u64,
    scheduler: Scheduler,
    slots: usize,
    shared: bool,
    fixed: usize,
    scopes: Vec<Scope>,
    next: i64,
    now: i64,
    tickets: Vec<(usize, Key, Ticket)>,
    /// Scope, key, and whether it is recorded.
    waiting: BTreeMap<TaskNo, (usize, Key, bool)>,
    later: BTreeMap<TaskNo, (usize, Key)>,
    running: Vec<(usize, CallerId, TaskNo)>,
    started: BTreeSet<TaskNo>,
}

impl Model {
    fn new(seed: u64) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let (slots, shared, fixed) = (random.usize(1..9), random.bool(), random.usize(0..3));
        let mut scheduler = Scheduler::new(slots, 1_000);
        let name = TenantAgent::of(&agent("a"));
        let limits: HashMap<_, _> = (fixed > 0).then_some((name, fixed)).into_iter().collect();
        scheduler.set_limits(AgentLimits { fixed: limits, shared });
        let scopes =
            vec![agent("a"), agent("b"), caller("b", "alice"), caller("b", "bob"), caller("c", "alice")];
        Self {
            random,
            seed,
            scheduler,
            slots,
            shared,
            fixed,
            scopes,
            next: 0,
            now: 1_000,
            tickets: Vec::new(),
            waiting: BTreeMap::new(),
            later: BTreeMap::new(),
            running: Vec::new(),
            started: BTreeSet::new(),
        }
    }

    fn run(mut self, steps: usize) {
        for _ in 0..steps {
            self.now += self.random.i64(0..3);
            match self.random.u8(0..10) {
                0..=3 => self.arrive(),
                4 | 5 => self.settle_ticket(),
                6 | 7 => self.end_run(),
                8 => self.cancel(),
                _ => self.promote(),
            }
            self.take_granted();
            self.check();
        }
        while !(self.tickets.is_empty() && self.running.is_empty() && self.later.is_empty()) {
            self.now += 50;
            self.settle_ticket();
            self.promote();
            self.take_granted();
            self.end_run();
            self.take_granted();
            self.check();
        }
        assert!(self.waiting.is_empty(), "seed {}: {:?} never start", self.seed, self.waiting);
        assert!(self.scheduler.known.is_empty() && self.scheduler.waiting() == 0, "seed {}", self.seed);
    }

    fn arrive(&mut self) {
        let (scope, no) = (self.random.usize(0..self.scopes.len()), TaskNo(self.next));
        self.next += 1;
        let key = (at(self.now), no);
        let may_start = self.may_start(scope) && !self.waiting.values().any(|other| other.0 == scope);
        match self.scheduler.arrive(&self.scopes[scope], no, key.0, None) {
            Arrived::Start(caller) => {
                assert!(may_start, "seed {}", self.seed);
                self.running.push((scope, caller, no));
            }
            Arrived::Wait(ticket) => {
                assert!(!may_start, "seed {}", self.seed);
                self.waiting.insert(no, (scope, key, false));
                self.tickets.push((scope, key, ticket));
            }
            Arrived::Full => panic!("seed {}", self.seed),
        }
    }

    fn settle_ticket(&mut self) {
        if self.tickets.is_empty() {
            return;
        }
        let (scope, key, ticket) = self.tickets.swap_remove(self.random.usize(0..self.tickets.len()));
        if self.random.u8(0..4) > 0 {
            self.waiting.insert(key.1, (scope, key, true));
            self.scheduler.recorded(&ticket);
        } else {
            self.waiting.remove(&key.1);
            self.scheduler.withdraw(&ticket);
        }
    }

    fn end_run(&mut self) {
        if self.running.is_empty() {
            return;
        }
        let (scope, caller, no) = self.running.swap_remove(self.random.usize(0..self.running.len()));
        if self.random.u8(0..4) == 0 {
            let due = self.now + self.random.i64(-5..20);
            let key = (at(due), no);
            self.scheduler.requeue(caller, no, key.0, false, None, at(self.now));
            if due <= self.now {
                self.waiting.insert(no, (scope, key, true));
            } else {
                self.later.insert(no, (scope, key));
            }
            // A slot that is free elsewhere may have been taken by it already.
            self.take_granted_before(scope);
        }
        self.scheduler.release(caller);
    }

    fn cancel(&mut self) {
        let ready: Vec<_> = self.waiting.iter().filter(|other| other.1.2).map(|other| *other.0).collect();
        let all: Vec<_> = ready.into_iter().chain(self.later.keys().copied()).collect();
        if let Some(no) = self.random.choice(all) {
            self.waiting.remove(&no);
            self.later.remove(&no);
            self.scheduler.cancel(no);
        }
    }

    fn promote(&mut self) {
        let now = at(self.now);
        let due: Vec<_> =
            self.later.iter().filter(|other| other.1.1.0 <= now).map(|other| *other.0).collect();
        for no in due {
            let (scope, key) = self.later.remove(&no).unwrap();
            self.waiting.insert(no, (scope, key, true));
        }
        self.scheduler.promote(now);
    }

    /// While the run that has just ended still counts.
    fn take_granted_before(&mut self, scope: usize) {
        self.running.push((scope, CallerId::MAX, TaskNo(-1)));
        self.take_granted();
        self.running.retain(|run| run.2 != TaskNo(-1));
    }

    fn take_granted(&mut self) {
        for grant in self.scheduler.take_granted() {
            let (scope, key, recorded) = self.waiting.remove(&grant.no).expect("granted work waited");
            assert!(recorded, "seed {}", self.seed);
            let earlier = self.waiting.values().any(|other| other.0 == scope && other.1 < key);
            assert!(!earlier, "seed {}: {key:?} overtakes", self.seed);
            assert!(self.may_start(scope), "seed {}: {key:?} is beyond a limit", self.seed);
            self.scheduler.finish_claim(grant.no);
            self.started.insert(grant.no);
            self.running.push((scope, grant.caller, grant.no));
        }
    }

    /// No work waits that could start.
    fn check(&self) {
        assert!(self.running.len() <= self.slots, "seed {}", self.seed);
        for scope in 0..self.scopes.len() {
            let first = self.waiting.values().filter(|other| other.0 == scope).min_by_key(|other| other.1);
            let stuck = first.is_some_and(|first| first.2) && self.may_start(scope);
            assert!(!stuck, "seed {}: {first:?} waits although it may start", self.seed);
        }
    }

    fn may_start(&self, scope: usize) -> bool {
        let of_agent = |index: usize| self.scopes[index].agent() == self.scopes[scope].agent();
        let free = self.slots - self.running.len();
        let by_agent = self.running.iter().filter(|run| of_agent(run.0)).count();
        let by_caller = self.running.iter().filter(|run| run.0 == scope).count();
        let may_take = |used: usize, free: usize| used < 3 * free;
        let limited = self.fixed > 0 && self.scopes[scope].agent() == "a";
        let free = match (limited, self.shared) {
            (true, _) => self.fixed.saturating_sub(by_agent).min(free),
            (false, false) => free,
            // One after the other.
            (false, true) => (0..free).take_while(|more| may_take(by_agent + more, free - more)).count(),
        };
        free > 0 && (self.scopes[scope].is_anonymous() || may_take(by_caller, free))
    }
}
