//! Tests of the decisions, without processes.

use engine::ScopeParts;

use super::{
    starts::{AUTH_INTERVAL, BREAKER},
    *,
};

const ANSWER_TIME: Duration = Duration::from_secs(30);

type Answer = oneshot::Receiver<Result<Granted<u64>, Unavailable>>;

struct Fixture {
    slots: Slots<u64, Granted<u64>>,
    now: Instant,
    started: Vec<(u64, CancellationToken)>,
    cancelled: Vec<u64>,
}

impl Fixture {
    fn new(pool: Pool, isolation: Isolation) -> Self {
        let slots = Slots::new(pool, isolation, ANSWER_TIME, CancellationToken::new());
        let mut fixture = Self { slots, now: Instant::now(), started: Vec::new(), cancelled: Vec::new() };
        fixture.dispatch();
        fixture
    }

    fn dispatch(&mut self) {
        let Actions { grants, starts, cancelled } = self.slots.dispatch(self.now);
        for (grant, result) in grants {
            let _ = grant.send(result);
        }
        self.started.extend(starts);
        self.cancelled.extend(cancelled);
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
        self.call_of("a", context)
    }

    fn call_of(&mut self, principal: &str, context: &str) -> Answer {
        let (grant, granted) = oneshot::channel();
        self.slots.wait(conversation(principal, context), grant, self.now);
        self.dispatch();
        granted
    }

    /// A call of this principal whose server asks, one millisecond after the last one; the slot.
    fn ask(&mut self, principal: &str) -> u64 {
        let mut call = self.call_of(principal, "c");
        self.make_ready(true);
        let id = slot_of(&mut call).expect("a process is free");
        self.now += Duration::from_millis(1);
        self.slots.asked(id, &conversation(principal, "c").scope, self.now);
        self.dispatch();
        id
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
    let mut granted = it.call_of("b", "c");
    it.make_ready(false);
    assert!(slot_of(&mut granted).is_some_and(|slot| slot != own));
}

#[tokio::test]
async fn principals_take_turns() {
    let mut it = Fixture::new(pool(1, 1), Isolation::Shared);
    it.make_ready(true);
    let order = ["a1", "a2", "a3", "b1", "b2", "c1"];
    let mut calls: Vec<_> = order.map(|name| (name, it.call_of(&name[..1], name))).into();
    let mut served = Vec::new();
    while let Some(at) = calls.iter_mut().position(|(_, call)| slot_of(call).is_some()) {
        served.push(calls.remove(at).0);
        it.release(0, true);
    }
    assert_eq!(served, ["a1", "a2", "b1", "c1", "a3", "b2"], "the first had no other call before it");
}

#[tokio::test]
async fn call_that_cannot_run_yet_keeps_the_turn_of_its_principal() {
    let mut it = Fixture::new(pool(2, 2), Isolation::Context);
    it.make_ready(true);
    let own = slot_of(&mut it.call_of("a", "busy")).unwrap();
    let other = slot_of(&mut it.call_of("b", "busy")).unwrap();
    let (mut first, mut second) = (it.call_of("a", "busy"), it.call_of("b", "busy"));
    it.release(other, true);
    assert_eq!((slot_of(&mut first), slot_of(&mut second)), (None, Some(other)));
    it.release(own, true);
    assert_eq!(slot_of(&mut first), Some(own));
}

#[tokio::test]
async fn questions_of_one_principal_keep_half_of_the_slots() {
    for (max, kept) in [(1, 1), (2, 1), (3, 1), (4, 2), (9, 4)] {
        let mut it = Fixture::new(pool(0, max), Isolation::Shared);
        let asked: Vec<_> = (0..if max == 1 { 1 } else { max + 3 }).map(|_| it.ask("a")).collect();
        assert_eq!(it.cancelled, asked[..asked.len() - kept], "the oldest, in a pool of {max}");
        assert_eq!(it.retired(), it.cancelled);
        assert!(!it.slots.answered(asked[0]) || max == 1);
        assert!(it.slots.answered(asked[asked.len() - 1]));
        if max == 4 {
            it.ask("b");
            assert_eq!(it.cancelled.len(), asked.len() - kept, "another principal has its own half");
        }
    }
}

#[tokio::test]
async fn waiting_call_cancels_the_oldest_question_of_the_principal_with_most() {
    let mut it = Fixture::new(pool(1, 4), Isolation::Shared);
    let first = it.ask("b");
    let asked = [it.ask("a"), it.ask("a")];
    let mut last = it.call_of("b", "c");
    it.make_ready(true);
    let mut call = it.call_of("c", "c");
    assert_eq!(it.cancelled, [asked[0]], "at once, and one only");
    it.make_ready(true);
    assert!(slot_of(&mut call).is_some() && slot_of(&mut last).is_some());
    let _waiting = it.call_of("c", "c");
    assert_eq!(it.cancelled, [asked[0], first], "the older one of two principals with one each");
    assert!(!it.slots.answered(first) && it.slots.answered(asked[1]));
}

#[tokio::test]
async fn principal_waits_for_its_own_question_until_the_client_had_time_to_answer() {
    let mut it = Fixture::new(pool(1, 1), Isolation::Shared);
    let asked = it.ask("a");
    let mut own = it.call_of("a", "c");
    assert_eq!((it.cancelled.as_slice(), it.slots.next_wake(it.now)), (&[][..], Some(it.now + ANSWER_TIME)));
    it.now += ANSWER_TIME;
    it.dispatch();
    assert_eq!(it.cancelled, [asked]);
    it.make_ready(true);
    let again = slot_of(&mut own).unwrap();
    it.slots.asked(again, &conversation("a", "c").scope, it.now);
    it.dispatch();
    let _other = it.call_of("b", "c");
    assert_eq!(it.cancelled, [asked, again], "at once for another principal");
}

#[tokio::test]
async fn question_gives_way_only_to_calls_that_can_use_its_process() {
    let mut it = Fixture::new(pool(1, 2), Isolation::Context);
    let asked = it.ask("a");
    let mut busy = it.call_of("b", "busy");
    it.make_ready(true);
    let busy = slot_of(&mut busy).unwrap();
    let mut again = it.call_of("b", "busy");
    assert_eq!((slot_of(&mut again), it.cancelled.len()), (None, 0), "it waits for its own process");
    let mut same = it.call_of("a", "c");
    assert_eq!(
        (slot_of(&mut same), it.cancelled.len()),
        (None, 0),
        "the question is that of its conversation"
    );
    it.release(busy, true);
    let _other = it.call_of("c", "c");
    assert_eq!(it.cancelled, [asked]);
}

#[tokio::test]
async fn process_is_ready_for_others_while_questions_are_open() {
    let mut it = Fixture::new(pool(1, 4), Isolation::Shared);
    it.ask("a");
    it.ask("a");
    it.make_ready(true);
    assert!(slot_of(&mut it.call_of("b", "c")).is_some());
}

#[tokio::test]
async fn question_keeps_no_process_that_runs_many_calls() {
    let mut it = Fixture::new(pool(1, 2), Isolation::Shared);
    it.make_ready(false);
    for _ in 0..3 {
        let id = slot_of(&mut it.call_of("a", "c")).unwrap();
        it.slots.asked(id, &conversation("a", "c").scope, it.now);
    }
    assert_eq!(slot_of(&mut it.call_of("b", "c")), Some(0));
    assert_eq!((it.cancelled.len(), it.started.len()), (0, 1), "no other process is needed");
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
