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
}

#[test]
fn fault_in_a_stream_is_found() {
    let unnumbered =
        Fact::Followed { stream: id(1), task: "t".to_owned(), seq: None, digest: 1, ends: false };
    let subscribing = Fact::Subscribing { stream: id(2), task: "t".to_owned() };
    for (facts, kind) in [
        (vec![followed(1, 3, 20, false)], Kind::Gap),
        (vec![followed(1, 1, 20, false)], Kind::Duplicate),
        (vec![followed(1, 2, 20, false), opened(2, 1), followed(2, 2, 21, false)], Kind::Duplicate),
        (vec![followed(1, 2, 20, true), followed(1, 3, 30, false)], Kind::Duplicate),
        (vec![followed(1, 2, 20, false), subscribing, opened(2, 1)], Kind::Lost),
        (vec![unnumbered], Kind::Gap),
        (vec![Fact::ClosedEarly { task: "t".to_owned() }], Kind::Gap),
    ] {
        let begun = [called(1, Operation::Write), accepted(1, "t"), opened(1, 1)];
        assert_eq!(kinds(&checker(&[&begun[..], &facts].concat())), [kind], "{facts:?}");
    }
}

#[test]
fn fault_in_what_the_server_returns_is_found() {
    let check = |found: &[Value], total| {
        let mut checker = checker(&[called(1, Operation::Send), accepted(1, "t"), ended(&completed(1, "t"))]);
        list(&mut checker, found, total);
        kinds(&checker)
    };
    let with = |state: &str, text: &str| vec![task(1, "t", state, text)];
    assert_eq!(check(&[], 0), [Kind::Lost]);
    assert_eq!(check(&with("TASK_STATE_WORKING", ""), 1), [Kind::Lost]);
    assert_eq!(check(&with("TASK_STATE_COMPLETED", "other"), 1), [Kind::Lost]);
    assert_eq!(check(&[completed(1, "t"), completed(1, "u")], 2), [Kind::Duplicate]);
    assert_eq!(check(&[completed(1, "t"), completed(1, "t")], 1), [Kind::Duplicate]);
    assert_eq!(check(&[completed(1, "t")], 2), [Kind::Wrong]);
}

#[test]
fn task_may_fail_at_the_third_crash_only_and_repeats_no_step() {
    let checked = |boot, reports: &str| {
        let text = "sections=1 delay=1ms".to_owned();
        let call = Fact::Called { call: id(1), operation: Operation::Journal, text };
        let mut checker = checker(&[call, accepted(1, "t"), Fact::Booted { boot }]);
        let mut failed = task(1, "t", "TASK_STATE_FAILED", "");
        failed["status"]["message"] = json!({"metadata": {"a2ad": {"reason": "poisoned"}}});
        checker.read("t", Some(&failed));
        checker.check_steps(&StepReports::of(reports));
        kinds(&checker)
    };
    let journaled = "boot;\nt begins 1;\nt journaled 1;\nboot;\nboot;";
    assert_eq!(checked(3, "boot;\nboot;\nboot;"), [Kind::Wrong]);
    assert_eq!(checked(4, "boot;\nboot;\nboot;"), []);
    assert_eq!(checked(4, journaled), [Kind::Wrong]);
    assert_eq!(checked(4, &format!("{journaled}\nboot;\nt begins 1;")), [Kind::Duplicate]);
}
