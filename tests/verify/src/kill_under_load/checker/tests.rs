//! Each rule is shown to fail: a clean history has no finding, and each planted fault has exactly its own.

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

fn failed(call: u128, id: &str, reason: &str) -> Value {
    let mut failed = task(call, id, "TASK_STATE_FAILED", "");
    failed["status"]["message"] = json!({"metadata": {"a2ad": {"reason": reason}}});
    failed
}

fn ended(value: &Value) -> Fact {
    let view = View::of(value).unwrap();
    Fact::Ended { task: view.task.clone(), outcome: view.outcome().unwrap() }
}

fn checker(facts: &[Fact]) -> Checker {
    let mut checker = Checker::default();
    checker.observe(&Fact::Booted { boot: 1 });
    facts.iter().for_each(|fact| checker.observe(fact));
    checker
}

fn kinds(checker: &Checker) -> Vec<Kind> {
    checker.findings.iter().map(|finding| finding.kind).collect()
}

/// Checks a last list of `echo`.
fn list(checker: &mut Checker, tasks: &[Value], total: u64) {
    let mut listed = HashSet::new();
    tasks.iter().for_each(|task| checker.check_listed(task, &mut listed));
    checker.finish_list("echo", &listed, total);
}

/// One accepted send whose task is `t`.
fn one_send() -> Checker {
    checker(&[called(1, Operation::Send), accepted(1, "t")])
}

#[test]
fn clean_history_has_no_finding() {
    let mut checker = checker(&[
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
    assert!(checker.read("t", Some(&completed(1, "t"))));
    list(&mut checker, &[completed(1, "t")], 1);
    assert_eq!(kinds(&checker), []);
    assert_eq!((checker.tally.streams, checker.tally.frames, checker.tally.cuts), (2, 3, 1));
    assert_eq!(checker.tally.acknowledged[&Operation::Stream], 1);
}

#[test]
fn missing_acknowledged_task_is_lost_once() {
    let checks: [fn(&mut Checker); 3] = [
        |checker| checker.observe(&Fact::Missing { task: "t".to_owned() }),
        |checker| assert!(checker.read("t", None)),
        |checker| list(checker, &[], 0),
    ];
    for check in checks {
        let mut checker = one_send();
        check(&mut checker);
        assert_eq!(kinds(&checker), [Kind::Lost]);
        checks.iter().for_each(|again| again(&mut checker));
        assert_eq!(kinds(&checker), [Kind::Lost]);
    }
}

#[test]
fn changed_terminal_state_is_lost() {
    for later in [
        task(1, "t", "TASK_STATE_WORKING", ""),
        task(1, "t", "TASK_STATE_FAILED", TEXT),
        task(1, "t", "TASK_STATE_COMPLETED", "other"),
    ] {
        let mut checker = one_send();
        checker.observe(&ended(&completed(1, "t")));
        checker.read("t", Some(&later));
        assert_eq!(kinds(&checker), [Kind::Lost], "{later}");
    }
}

#[test]
fn subscription_behind_seen_events_is_lost() {
    let checker = checker(&[
        called(1, Operation::Write),
        accepted(1, "t"),
        opened(1, 1),
        followed(1, 2, 20, false),
        Fact::Subscribing { stream: id(2), task: "t".to_owned() },
        opened(2, 1),
    ]);
    assert_eq!(kinds(&checker), [Kind::Lost]);
}

#[test]
fn one_call_with_two_tasks_is_a_duplicate() {
    let mut checker = one_send();
    list(&mut checker, &[completed(1, "t"), completed(1, "u")], 2);
    assert_eq!(kinds(&checker), [Kind::Duplicate]);
}

#[test]
fn one_task_for_two_calls_is_a_duplicate() {
    let checker = checker(&[
        called(1, Operation::Send),
        called(2, Operation::Send),
        accepted(1, "t"),
        accepted(2, "t"),
    ]);
    assert_eq!(kinds(&checker), [Kind::Duplicate]);
}

#[test]
fn event_number_with_two_contents_is_a_duplicate() {
    let checker = checker(&[
        called(1, Operation::Write),
        accepted(1, "t"),
        opened(1, 1),
        followed(1, 2, 20, false),
        opened(2, 1),
        followed(2, 2, 21, false),
    ]);
    assert_eq!(kinds(&checker), [Kind::Duplicate]);
}

#[test]
fn event_after_the_end_is_a_duplicate() {
    for ends in [true, false] {
        let checker = checker(&[
            called(1, Operation::Stream),
            accepted(1, "t"),
            opened(1, 1),
            followed(1, 2, 20, true),
            followed(1, 3, 30, ends),
        ]);
        assert_eq!(kinds(&checker), [Kind::Duplicate]);
    }
}

#[test]
fn skipped_or_repeated_event_number_is_found() {
    for (seq, kind) in [(3, Kind::Gap), (1, Kind::Duplicate)] {
        let checker = checker(&[
            called(1, Operation::Stream),
            accepted(1, "t"),
            opened(1, 1),
            followed(1, seq, 20, false),
        ]);
        assert_eq!(kinds(&checker), [kind]);
    }
}

#[test]
fn unnumbered_events_and_unfinished_streams_are_gaps() {
    let unnumbered =
        Fact::Followed { stream: id(1), task: "t".to_owned(), seq: None, digest: 1, ends: false };
    let checker = checker(&[unnumbered, Fact::ClosedEarly { task: "t".to_owned() }]);
    assert_eq!(kinds(&checker), [Kind::Gap, Kind::Gap]);
}

#[test]
fn echo_of_a_different_text_is_wrong() {
    let mut checker = one_send();
    checker.read("t", Some(&task(1, "t", "TASK_STATE_COMPLETED", "hellohello")));
    assert_eq!(kinds(&checker), [Kind::Wrong]);
}

#[test]
fn different_document_for_the_same_text_is_wrong() {
    let mut checker = checker(&[
        called(1, Operation::Write),
        accepted(1, "t"),
        called(2, Operation::Write),
        accepted(2, "u"),
    ]);
    checker.read("t", Some(&task(1, "t", "TASK_STATE_COMPLETED", "one two")));
    checker.read("u", Some(&task(2, "u", "TASK_STATE_COMPLETED", "one one two")));
    assert_eq!(kinds(&checker), [Kind::Wrong]);
}

#[test]
fn task_may_fail_at_the_third_crash_only() {
    for (boot, expected) in [(3, vec![Kind::Wrong]), (4, vec![])] {
        let mut checker = one_send();
        checker.observe(&Fact::Booted { boot });
        checker.read("t", Some(&failed(1, "t", "poisoned")));
        assert_eq!(kinds(&checker), expected, "boot {boot}");
        assert_eq!(checker.failed(), 1);
    }
}

#[test]
fn failure_needs_a_known_reason() {
    for (reason, expected) in
        [("attempts", vec![]), ("interrupted", vec![Kind::Wrong]), ("", vec![Kind::Wrong])]
    {
        let mut checker = one_send();
        checker.observe(&Fact::Booted { boot: 4 });
        checker.read("t", Some(&failed(1, "t", reason)));
        assert_eq!(kinds(&checker), expected, "{reason}");
    }
}

#[test]
fn steps_that_are_repeated_or_missing_are_found() {
    let text = "sections=1 delay=1ms report=x";
    let steps = |reports: &str, ended: &Value| {
        let call = Fact::Called { call: id(1), operation: Operation::Journal, text: text.to_owned() };
        let mut checker = checker(&[call, accepted(1, "t"), Fact::Booted { boot: 9 }]);
        checker.read("t", Some(ended));
        checker.check_steps(&StepReports::of(reports));
        kinds(&checker)
    };
    let (done, poisoned) = (completed(1, "t"), failed(1, "t", "poisoned"));
    assert_eq!(steps("t begins 1;\nboot;\nt begins 1;\nt journaled 1;", &done), []);
    assert_eq!(steps("t begins 1;\nt journaled 1;\nboot;\nt begins 1;", &done), [Kind::Duplicate]);
    assert_eq!(steps("t begins 1;", &done), [Kind::Wrong]);
    assert_eq!(steps("t begins 1;\nt journaled 1;\nboot;\nboot;", &poisoned), [Kind::Wrong]);
    assert_eq!(steps("t begins 1;\nt journaled 1;\nboot;\nboot;\nboot;", &poisoned), []);
}

#[test]
fn held_task_without_response_is_an_orphan_after_restart() {
    let mut checker =
        checker(&[called(1, Operation::Cancel), called(2, Operation::Cancel), accepted(2, "u")]);
    let (unknown, known) = (task(1, "t", "TASK_STATE_WORKING", ""), task(2, "u", "TASK_STATE_WORKING", ""));
    assert!(!checker.is_orphan(&unknown), "its client may still receive the response");
    checker.observe(&Fact::Booted { boot: 2 });
    assert!(checker.is_orphan(&unknown) && !checker.is_orphan(&known));
}

#[test]
fn list_without_message_or_with_wrong_total_is_found() {
    let mut checker = one_send();
    let mut without = completed(1, "t");
    without["history"] = json!([]);
    list(&mut checker, &[without], 2);
    assert_eq!(kinds(&checker), [Kind::Lost, Kind::Wrong]);
}

#[test]
fn task_listed_twice_is_a_duplicate() {
    let mut checker = one_send();
    list(&mut checker, &[completed(1, "t"), completed(1, "t")], 1);
    assert_eq!(kinds(&checker), [Kind::Duplicate]);
}
