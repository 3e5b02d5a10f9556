//! Tests of the decisions, without processes.

use engine::ScopeParts;

use super::{
    starts::{AUTH_INTERVAL, BREAKER},
    *,
};

type Answer = oneshot::Receiver<Result<Granted<u64>, Unavailable>>;

struct Fixture {
    slots: Slots<u64, Granted<u64>>,
    now: Instant,
    started: Vec<(u64, CancellationToken)>,
}

impl Fixture {
    fn new(pool: Pool, isolation: Isolation) -> Self {
        let slots = Slots::new(pool, isolation, CancellationToken::new());
        let mut fixture = Self { slots, now: Instant::now(), started: Vec::new() };
        fixture.dispatch();
        fixture
    }

    fn dispatch(&mut self) {
        let Actions { grants, starts } = self.slots.dispatch(self.now);
        for (grant, result) in grants {
            let _ = grant.send(result);
        }
        self.started.extend(starts);
    }

    /// All starting processes are ready.
    fn make_ready(&mut self, exclusive: bool) {
        for (id, _) in self.started.clone() {
            if self.slots.slot(id).is_some_and(|slot| slot.ready.is_none()) {
                self.slots.ready(id, id, exclusive, self.now);
            }
        }
        self.dispatch();
    }

    fn call(&mut self, context: &str) -> Answer {
        let (grant, granted) = oneshot::channel();
        self.slots.wait(conversation("a", context), grant, self.now);
        self.dispatch();
        granted
    }

    fn release(&mut self, id: u64, ended: bool) {
        self.slots.release(id, ended, self.now);
        self.dispatch();
    }

    fn retired(&self) -> Vec<u64> {
        self.started.iter().filter(|(_, retire)| retire.is_cancelled()).map(|(id, _)| *id).collect()
    }
}

fn conversation(principal: &str, context: &str) -> ContextKey {
    let scope = Scope::new(ScopeParts {
        tenant: "default".into(),
        principal: principal.into(),
        agent: "main".into(),
        end_user: String::new(),
    });
    ContextKey { scope, context: context.into() }
}

fn pool(min: usize, max: usize) -> Pool {
    Pool { min, max, idle_stop: Duration::from_secs(60) }
}

fn slot_of(granting: &mut Answer) -> Option<u64> {
    granting.try_recv().ok().map(|granted| granted.ok().unwrap().slot)
}

#[tokio::test]
async fn exclusive_processes_run_one_call_each_and_the_rest_waits_in_order() {
    let mut it = Fixture::new(pool(1, 2), Isolation::Shared);
    it.make_ready(true);
    let mut calls: Vec<_> = (0..4).map(|_| it.call("c")).collect();
    assert_eq!(it.started.len(), 2, "one more process is started, up to the maximum");
    it.make_ready(true);
    let slots: Vec<_> = calls.iter_mut().map(slot_of).collect();
    assert_eq!(slots, [Some(0), Some(1), None, None]);
    it.release(1, true);
    assert_eq!((slot_of(&mut calls[2]), slot_of(&mut calls[3])), (Some(1), None));
}

#[tokio::test]
async fn abandoned_call_ends_its_exclusive_process_only() {
    for (exclusive, retired) in [(true, vec![0]), (false, vec![])] {
        let mut it = Fixture::new(pool(1, 1), Isolation::Shared);
        it.make_ready(exclusive);
        let id = slot_of(&mut it.call("c")).unwrap();
        it.release(id, false);
        assert_eq!(it.retired(), retired);
        assert_eq!(it.started.len(), 1 + retired.len(), "it is replaced");
    }
}

#[tokio::test]
async fn shared_process_takes_many_calls_and_an_overload_starts_another() {
    let mut it = Fixture::new(pool(1, 2), Isolation::Shared);
    it.make_ready(false);
    for _ in 0..BUSY {
        assert_eq!(slot_of(&mut it.call("c")), Some(0));
    }
    assert_eq!(it.started.len(), 2);
    it.make_ready(false);
    assert_eq!(slot_of(&mut it.call("c")), Some(1));
}

#[tokio::test]
async fn conversation_keeps_its_process_until_another_needs_it() {
    let mut it = Fixture::new(pool(1, 2), Isolation::Context);
    it.make_ready(true);
    let a = slot_of(&mut it.call("a")).unwrap();
    let mut again = it.call("a");
    assert_eq!(slot_of(&mut again), None, "no second process for the same conversation");
    let mut b = it.call("b");
    it.make_ready(true);
    let b = slot_of(&mut b).unwrap();
    assert_ne!(a, b);
    it.release(a, true);
    assert_eq!(slot_of(&mut again), Some(a));
    it.release(b, true);
    let mut c = it.call("c");
    assert_eq!(it.retired(), [b], "the idle process of another conversation makes place");
    it.make_ready(true);
    assert!(slot_of(&mut c).is_some_and(|slot| slot != a && slot != b));
}

#[tokio::test]
async fn same_context_id_of_two_callers_is_not_one_conversation() {
    let mut it = Fixture::new(pool(1, 2), Isolation::Context);
    it.make_ready(false);
    let own = slot_of(&mut it.call("c")).unwrap();
    let (grant, mut granted) = oneshot::channel();
    it.slots.wait(conversation("b", "c"), grant, it.now);
    it.dispatch();
    it.make_ready(false);
    assert!(slot_of(&mut granted).is_some_and(|slot| slot != own));
}

#[tokio::test]
async fn slots_are_wanted_when_a_call_waits_and_no_process_can_be_started() {
    let mut it = Fixture::new(pool(1, 2), Isolation::Shared);
    it.make_ready(true);
    let _first = it.call("a");
    assert_eq!(it.slots.wanted(it.now), Vec::<u64>::new());
    let _second = it.call("b");
    assert_eq!(it.slots.wanted(it.now), Vec::<u64>::new(), "another one is starting");
    it.make_ready(true);
    let _third = it.call("c");
    assert_eq!(it.slots.wanted(it.now), [0, 1]);
    it.release(0, true);
    assert_eq!(it.slots.wanted(it.now), Vec::<u64>::new());
}

#[tokio::test]
async fn server_that_requires_credentials_is_tried_again_for_calls_only() {
    let mut it = Fixture::new(pool(1, 1), Isolation::Shared);
    it.slots.failed(0, ConnectError::Auth { challenge: "Bearer".into() }, it.now, 0);
    it.dispatch();
    assert_eq!(it.slots.next_wake(it.now), Some(it.now + AUTH_INTERVAL));
    let mut waiting = it.call("c");
    it.now = it.slots.next_wake(it.now).unwrap();
    it.dispatch();
    assert_eq!(it.started.len(), 2);
    it.slots.failed(1, ConnectError::Auth { challenge: "Bearer".into() }, it.now, 0);
    assert!(matches!(waiting.try_recv(), Ok(Err(Unavailable::Auth { .. }))));
}

#[tokio::test]
async fn process_of_one_call_is_used_once() {
    let mut it = Fixture::new(pool(1, 2), Isolation::Call);
    it.make_ready(false);
    let first = slot_of(&mut it.call("c")).unwrap();
    it.release(first, true);
    assert_eq!(it.retired(), [first]);
    it.make_ready(false);
    assert_ne!(slot_of(&mut it.call("c")), Some(first));
}

#[tokio::test]
async fn calls_fail_at_once_after_five_failed_starts_until_a_probe_succeeds() {
    for min in [0, 1] {
        fail_five_times_and_recover(Fixture::new(pool(min, 4), Isolation::Shared));
    }
}

fn fail_five_times_and_recover(mut it: Fixture) {
    it.slots.tools_are_known();
    let mut waiting = it.call("c");
    for failure in 1..=BREAKER {
        assert_eq!(it.started.len(), failure as usize, "one start at a time");
        let error = ConnectError::Failed(format!("failure {failure}"));
        it.slots.failed(u64::from(failure) - 1, error, it.now, 0);
        it.dispatch();
        it.now = it.slots.next_wake(it.now).unwrap();
        if failure < BREAKER {
            assert!(waiting.try_recv().is_err(), "it waits for the next start");
            it.dispatch();
        }
    }
    assert!(matches!(waiting.try_recv(), Ok(Err(Unavailable::Failed))));
    assert!(matches!(it.call("c").try_recv(), Ok(Err(Unavailable::Failed))));
    assert_eq!(it.slots.status(), Status::Failed { error: "failure 5".into() });
    it.dispatch();
    it.make_ready(false);
    assert!(slot_of(&mut it.call("c")).is_some());
}

#[tokio::test]
async fn process_that_ends_right_after_its_start_is_restarted_with_backoff() {
    let mut it = Fixture::new(pool(1, 1), Isolation::Shared);
    it.make_ready(false);
    it.slots.ended(0, it.now, 0);
    it.dispatch();
    assert_eq!(it.started.len(), 1);
    assert!(matches!(it.slots.status(), Status::BackingOff { .. }));
    it.now = it.slots.next_wake(it.now).unwrap();
    it.dispatch();
    assert_eq!(it.started.len(), 2);
}

#[tokio::test]
async fn idle_processes_above_the_minimum_stop() {
    let mut it = Fixture::new(pool(1, 2), Isolation::Shared);
    it.slots.tools_are_known();
    it.make_ready(true);
    let mut calls = [it.call("a"), it.call("b")];
    it.make_ready(true);
    for call in &mut calls {
        let id = slot_of(call).unwrap();
        it.release(id, true);
    }
    it.now = it.slots.next_wake(it.now).unwrap();
    it.dispatch();
    assert_eq!((it.retired().len(), it.slots.ready_count()), (1, 1));
}
