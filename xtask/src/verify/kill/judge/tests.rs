//! Each rule seen red: a clean history has no finding, and each planted fault has exactly its own.

use serde_json::json;

use super::*;

const TEXT: &str = "hello";

fn id(number: u128) -> Uuid {
    Uuid::from_u128(number)
}

fn called(call: u128, operation: Operation) -> Fact {
    Fact::Called { call: id(call), operation, text: TEXT.to_owned() }
}

fn accepted(call: u128, task: &str) -> Fact {
    Fact::Accepted { call: id(call), task: task.to_owned() }
}

fn opened(stream: u128, seq: u64) -> Fact {
    Fact::Opened { stream: id(stream), task: "t".to_owned(), seq: Some(seq) }
}

fn followed(stream: u128, seq: u64, digest: u64, ends: bool) -> Fact {
    Fact::Followed { stream: id(stream), task: "t".to_owned(), seq: Some(seq), digest, ends }
}

fn task(call: u128, task: &str, state: &str, text: &str) -> Value {
    json!({
        "id": task,
        "status": {"state": state},
        "artifacts": [{"artifactId": "a", "parts": [{"text": text}]}],
        "history": [{"role": "ROLE_USER", "messageId": id(call).to_string(), "parts": [{"text": TEXT}]}]
    })
}

fn completed(call: u128, id: &str) -> Value {
    task(call, id, "TASK_STATE_COMPLETED", TEXT)
}

fn ended(value: &Value) -> Fact {
    let view = View::of(value).unwrap();
    Fact::Ended { task: view.task.clone(), outcome: view.outcome().unwrap() }
}

fn judge(facts: &[Fact]) -> Judge {
    let mut judge = Judge::default();
    judge.take(&Fact::Booted { boot: 1 });
    facts.iter().for_each(|fact| judge.take(fact));
    judge
}

fn kinds(judge: &Judge) -> Vec<Kind> {
    judge.findings.iter().map(|finding| finding.kind).collect()
}

/// A last walk through the list of `echo`.
fn list(judge: &mut Judge, tasks: &[Value], total: u64) {
    let mut met = HashSet::new();
    tasks.iter().for_each(|task| judge.meet_in_list(task, &mut met));
    judge.close_list("echo", &met, total);
}

/// One accepted send whose task is `t`.
fn one_send() -> Judge {
    judge(&[called(1, Operation::Send), accepted(1, "t")])
}

#[test]
fn a_clean_history_has_no_finding() {
    let mut judge = judge(&[
        called(1, Operation::Stream),
        accepted(1, "t"),
        opened(1, 1),
        followed(1, 2, 20, false),
        Fact::Subscribing { stream: id(2), task: "t".to_owned() },
        opened(2, 2),
        followed(2, 3, 30, true),
        followed(1, 3, 30, true),
        ended(&completed(1, "t")),
        Fact::Cut,
        Fact::Booted { boot: 2 },
    ]);
    assert!(judge.read("t", Some(&completed(1, "t"))));
    list(&mut judge, &[completed(1, "t")], 1);
    assert_eq!(kinds(&judge), []);
    assert_eq!((judge.tally.streams, judge.tally.frames, judge.tally.cuts), (2, 3, 1));
    assert_eq!(judge.tally.acknowledged[&Operation::Stream], 1);
}

#[test]
fn an_acknowledged_task_that_is_gone_is_lost_once() {
    let looks: [fn(&mut Judge); 3] = [
        |judge| judge.take(&Fact::Missing { task: "t".to_owned() }),
        |judge| assert!(judge.read("t", None)),
        |judge| list(judge, &[], 0),
    ];
    for look in looks {
        let mut judge = one_send();
        look(&mut judge);
        assert_eq!(kinds(&judge), [Kind::Lost]);
        looks.iter().for_each(|again| again(&mut judge));
        assert_eq!(kinds(&judge), [Kind::Lost]);
    }
}

#[test]
fn an_end_that_was_seen_and_differs_is_lost() {
    for later in [
        task(1, "t", "TASK_STATE_WORKING", ""),
        task(1, "t", "TASK_STATE_FAILED", TEXT),
        task(1, "t", "TASK_STATE_COMPLETED", "other"),
    ] {
        let mut judge = one_send();
        judge.take(&ended(&completed(1, "t")));
        judge.read("t", Some(&later));
        assert_eq!(kinds(&judge), [Kind::Lost], "{later}");
    }
}

#[test]
fn numbers_seen_before_a_subscription_must_still_be_known() {
    let judge = judge(&[
        called(1, Operation::Write),
        accepted(1, "t"),
        opened(1, 1),
        followed(1, 2, 20, false),
        Fact::Subscribing { stream: id(2), task: "t".to_owned() },
        opened(2, 1),
    ]);
    assert_eq!(kinds(&judge), [Kind::Lost]);
}

#[test]
fn one_call_with_two_tasks_is_a_duplicate_also_when_only_one_was_acknowledged() {
    let mut judge = one_send();
    list(&mut judge, &[completed(1, "t"), completed(1, "u")], 2);
    assert_eq!(kinds(&judge), [Kind::Duplicate]);
}

#[test]
fn one_task_for_two_calls_is_a_duplicate() {
    let judge =
        judge(&[called(1, Operation::Send), called(2, Operation::Send), accepted(1, "t"), accepted(2, "t")]);
    assert_eq!(kinds(&judge), [Kind::Duplicate]);
}

#[test]
fn a_number_with_two_contents_is_a_duplicate() {
    let judge = judge(&[
        called(1, Operation::Write),
        accepted(1, "t"),
        opened(1, 1),
        followed(1, 2, 20, false),
        opened(2, 1),
        followed(2, 2, 21, false),
    ]);
    assert_eq!(kinds(&judge), [Kind::Duplicate]);
}

#[test]
fn nothing_follows_an_end() {
    for ends in [true, false] {
        let judge = judge(&[
            called(1, Operation::Stream),
            accepted(1, "t"),
            opened(1, 1),
            followed(1, 2, 20, true),
            followed(1, 3, 30, ends),
        ]);
        assert_eq!(kinds(&judge), [Kind::Duplicate]);
    }
}

#[test]
fn numbers_rise_by_exactly_one() {
    for (seq, kind) in [(3, Kind::Gap), (1, Kind::Duplicate)] {
        let judge = judge(&[
            called(1, Operation::Stream),
            accepted(1, "t"),
            opened(1, 1),
            followed(1, seq, 20, false),
        ]);
        assert_eq!(kinds(&judge), [kind]);
    }
}

#[test]
fn events_without_numbers_and_streams_without_ends_are_gaps() {
    let unnumbered =
        Fact::Followed { stream: id(1), task: "t".to_owned(), seq: None, digest: 1, ends: false };
    let judge = judge(&[unnumbered, Fact::ClosedEarly { task: "t".to_owned() }]);
    assert_eq!(kinds(&judge), [Kind::Gap, Kind::Gap]);
}

#[test]
fn an_echo_of_another_text_is_wrong() {
    let mut judge = one_send();
    judge.read("t", Some(&task(1, "t", "TASK_STATE_COMPLETED", "hellohello")));
    assert_eq!(kinds(&judge), [Kind::Wrong]);
}

#[test]
fn one_text_is_written_the_same_way_each_time() {
    let mut judge = judge(&[
        called(1, Operation::Write),
        accepted(1, "t"),
        called(2, Operation::Write),
        accepted(2, "u"),
    ]);
    judge.read("t", Some(&task(1, "t", "TASK_STATE_COMPLETED", "one two")));
    judge.read("u", Some(&task(2, "u", "TASK_STATE_COMPLETED", "one one two")));
    assert_eq!(kinds(&judge), [Kind::Wrong]);
}

#[test]
fn a_task_fails_at_its_third_death_and_not_before() {
    for (boot, expected) in [(3, vec![Kind::Wrong]), (4, vec![])] {
        let mut judge = one_send();
        judge.take(&Fact::Booted { boot });
        judge.read("t", Some(&task(1, "t", "TASK_STATE_FAILED", "")));
        assert_eq!(kinds(&judge), expected, "boot {boot}");
        assert_eq!(judge.failed(), 1);
    }
}

#[test]
fn a_held_task_is_an_orphan_once_its_client_was_cut_off_without_an_answer() {
    let mut judge = judge(&[called(1, Operation::Cancel), called(2, Operation::Cancel), accepted(2, "u")]);
    let (unknown, known) = (task(1, "t", "TASK_STATE_WORKING", ""), task(2, "u", "TASK_STATE_WORKING", ""));
    assert!(!judge.is_orphan(&unknown), "its client may still be waiting");
    judge.take(&Fact::Booted { boot: 2 });
    assert!(judge.is_orphan(&unknown) && !judge.is_orphan(&known));
}

#[test]
fn a_list_must_carry_the_messages_and_the_right_total() {
    let mut judge = one_send();
    let mut without = completed(1, "t");
    without["history"] = json!([]);
    list(&mut judge, &[without], 2);
    assert_eq!(kinds(&judge), [Kind::Lost, Kind::Wrong]);
}

#[test]
fn a_task_twice_in_one_walk_is_a_duplicate() {
    let mut judge = one_send();
    list(&mut judge, &[completed(1, "t"), completed(1, "t")], 1);
    assert_eq!(kinds(&judge), [Kind::Duplicate]);
}
