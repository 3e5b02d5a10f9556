//! Each rule is shown to fail: a clean key has no finding, and each planted fault has its own.

use serde_json::json;

use super::*;
use crate::duplicate_sends::plan::Key;

fn plan(targets: &[Target]) -> Plan {
    let key = |(number, target): (usize, &Target)| Key {
        target: *target,
        header: None,
        message: format!("m{number}"),
        texts: vec!["approve".to_owned(), "deny".to_owned()],
    };
    let keys = targets.iter().enumerate().map(key).collect();
    Plan { keys, waiting: 1, first: Vec::new(), second: Vec::new() }
}

fn accepted(task: &str, replayed: bool, sent: u64, received: u64) -> Response {
    Response {
        text: 0,
        sent,
        received,
        first_seq: None,
        verdict: Verdict::Accepted { task: task.to_owned(), replayed },
    }
}

fn other(text: usize, verdict: Verdict) -> Response {
    Response { text, sent: 90, received: 91, first_seq: None, verdict }
}

fn first_seq(number: u64, response: Response) -> Response {
    Response { first_seq: Some(number), ..response }
}

fn findings(responses: Vec<Response>) -> usize {
    let plan = plan(&[Target::New("echo")]);
    let mut checker = Checker::new(1);
    responses.into_iter().for_each(|response| checker.add_response(0, response));
    checker.compare_responses(&plan, &[]);
    checker.findings.len()
}

#[test]
fn consistent_key_has_no_finding() {
    let first = accepted("t", false, 2, 9);
    assert_eq!(findings(vec![first.clone(), accepted("t", true, 1, 8), other(1, Verdict::Reused)]), 0);
    assert_eq!(findings(vec![accepted("t", true, 1, 2), other(0, Verdict::Lost)]), 0);
    assert_eq!(findings(vec![first]), 0);
}

#[test]
fn each_violation_is_found() {
    let first = || accepted("t", false, 1, 5);
    for (responses, what) in [
        (vec![first(), accepted("u", true, 6, 7)], "two tasks"),
        (vec![first(), other(0, Verdict::Reused)], "the same text accepted and refused"),
        (vec![first(), Response { text: 1, ..accepted("t", true, 6, 7) }], "two texts accepted"),
        (vec![first(), accepted("t", false, 2, 6)], "two firsts"),
        (vec![first_seq(1, first()), first_seq(2, accepted("t", true, 2, 6))], "streams with two beginnings"),
        (vec![accepted("t", true, 1, 5)], "no first although no response was lost"),
        (
            vec![accepted("t", true, 1, 2), other(0, Verdict::Lost), accepted("t", false, 3, 4)],
            "a late first",
        ),
    ] {
        assert_eq!(findings(responses), 1, "{what}");
    }
}

#[test]
fn shared_task_or_wrong_turn_task_is_found() {
    let plan = plan(&[Target::New("echo"), Target::New("echo"), Target::FollowUp(0)]);
    let mut checker = Checker::new(3);
    for (key, task) in ["t", "t", "t"].into_iter().enumerate() {
        checker.add_response(key, accepted(task, false, 1, 2));
    }
    checker.compare_responses(&plan, &["w".to_owned()]);
    assert_eq!(checker.findings.len(), 2, "{:?}", checker.findings);
}

#[test]
fn extra_task_or_repeated_message_is_found() {
    let user_message =
        |message: &str| json!({"role": "ROLE_USER", "messageId": message, "parts": [{"text": "approve"}]});
    let task = |history: Value| json!({"id": "t", "history": history});
    let compare = |listed: &[Value], total: u64| {
        let mut checker = Checker::new(1);
        checker.add_response(0, accepted("t", false, 1, 2));
        checker.compare_list(&plan(&[Target::New("echo")]), "echo", listed, total);
        checker.findings.len()
    };
    let good = task(json!([user_message("m0")]));
    assert_eq!(compare(std::slice::from_ref(&good), 1), 0);
    assert_eq!(compare(std::slice::from_ref(&good), 2), 1);
    assert_eq!(compare(&[task(json!([user_message("m0"), user_message("m0")]))], 1), 2);
    assert_eq!(compare(&[good, json!({"id": "u", "history": []})], 2), 1);
}

#[test]
fn repeated_turn_is_found() {
    let plan = plan(&[Target::FollowUp(0)]);
    let task = |turns: usize, state: &str| {
        let opening = json!({"role": "ROLE_USER", "messageId": "m", "parts": [{"text": "x"}]});
        let turn = json!({"role": "ROLE_USER", "messageId": "m0", "parts": [{"text": "approve"}]});
        let history: Vec<Value> = std::iter::once(opening).chain(vec![turn; turns]).collect();
        json!({"id": "w", "status": {"state": state}, "history": history})
    };
    let compare = |task: &Value| {
        let mut checker = Checker::new(1);
        checker.add_response(0, accepted("w", false, 1, 2));
        checker.compare_turns(&plan, 0, task);
        checker.findings.len()
    };
    assert_eq!(compare(&task(1, "TASK_STATE_COMPLETED")), 0);
    assert_eq!(compare(&task(2, "TASK_STATE_COMPLETED")), 2);
    assert_eq!(compare(&task(1, "TASK_STATE_REJECTED")), 1);
}
