//! Each rule seen red: a clean key has no finding, and each planted fault has its own.

use serde_json::json;

use super::*;
use crate::verify::storm::plan::Key;

fn plan(targets: &[Target]) -> Plan {
    let key = |(number, target): (usize, &Target)| Key {
        target: *target,
        header: None,
        message: format!("m{number}"),
        texts: vec!["approve".to_owned(), "deny".to_owned()],
    };
    let keys = targets.iter().enumerate().map(key).collect();
    Plan { keys, waiting: 1, storm: Vec::new(), second: Vec::new() }
}

fn accepted(task: &str, replayed: bool, sent: u64, came: u64) -> Answer {
    Answer {
        text: 0,
        sent,
        came,
        began: None,
        verdict: Verdict::Accepted { task: task.to_owned(), replayed },
    }
}

fn other(text: usize, verdict: Verdict) -> Answer {
    Answer { text, sent: 90, came: 91, began: None, verdict }
}

fn began(number: u64, answer: Answer) -> Answer {
    Answer { began: Some(number), ..answer }
}

fn findings(answers: Vec<Answer>) -> usize {
    let plan = plan(&[Target::New("echo")]);
    let mut judge = Judge::new(1);
    answers.into_iter().for_each(|answer| judge.take(0, answer));
    judge.compare_answers(&plan, &[]);
    judge.findings.len()
}

#[test]
fn a_key_that_kept_its_word_has_no_finding() {
    let first = accepted("t", false, 2, 9);
    assert_eq!(findings(vec![first.clone(), accepted("t", true, 1, 8), other(1, Verdict::Reused)]), 0);
    assert_eq!(findings(vec![accepted("t", true, 1, 2), other(0, Verdict::Lost)]), 0);
    assert_eq!(findings(vec![first]), 0);
}

#[test]
fn each_broken_promise_is_found() {
    let first = || accepted("t", false, 1, 5);
    for (answers, what) in [
        (vec![first(), accepted("u", true, 6, 7)], "two tasks"),
        (vec![first(), other(0, Verdict::Reused)], "the same text accepted and refused"),
        (vec![first(), Answer { text: 1, ..accepted("t", true, 6, 7) }], "two texts accepted"),
        (vec![first(), accepted("t", false, 2, 6)], "two firsts"),
        (vec![began(1, first()), began(2, accepted("t", true, 2, 6))], "streams with two beginnings"),
        (vec![accepted("t", true, 1, 5)], "no first although every answer came"),
        (
            vec![accepted("t", true, 1, 2), other(0, Verdict::Lost), accepted("t", false, 3, 4)],
            "a late first",
        ),
    ] {
        assert_eq!(findings(answers), 1, "{what}");
    }
}

#[test]
fn two_keys_are_two_tasks_and_a_turn_stays_with_its_task() {
    let plan = plan(&[Target::New("echo"), Target::New("echo"), Target::Turn(0)]);
    let mut judge = Judge::new(3);
    for (key, task) in ["t", "t", "t"].into_iter().enumerate() {
        judge.take(key, accepted(task, false, 1, 2));
    }
    judge.compare_answers(&plan, &["w".to_owned()]);
    assert_eq!(judge.findings.len(), 2, "{:?}", judge.findings);
}

#[test]
fn a_list_with_a_task_too_many_or_a_message_too_often_is_found() {
    let said =
        |message: &str| json!({"role": "ROLE_USER", "messageId": message, "parts": [{"text": "approve"}]});
    let task = |history: Value| json!({"id": "t", "history": history});
    let compare = |listed: &[Value], total: u64| {
        let mut judge = Judge::new(1);
        judge.take(0, accepted("t", false, 1, 2));
        judge.compare_list(&plan(&[Target::New("echo")]), "echo", listed, total);
        judge.findings.len()
    };
    let good = task(json!([said("m0")]));
    assert_eq!(compare(std::slice::from_ref(&good), 1), 0);
    assert_eq!(compare(std::slice::from_ref(&good), 2), 1);
    assert_eq!(compare(&[task(json!([said("m0"), said("m0")]))], 1), 2);
    assert_eq!(compare(&[good, json!({"id": "u", "history": []})], 2), 1);
}

#[test]
fn a_turn_taken_twice_is_found() {
    let plan = plan(&[Target::Turn(0)]);
    let task = |turns: usize, state: &str| {
        let opening = json!({"role": "ROLE_USER", "messageId": "m", "parts": [{"text": "x"}]});
        let turn = json!({"role": "ROLE_USER", "messageId": "m0", "parts": [{"text": "approve"}]});
        let history: Vec<Value> = std::iter::once(opening).chain(vec![turn; turns]).collect();
        json!({"id": "w", "status": {"state": state}, "history": history})
    };
    let compare = |task: &Value| {
        let mut judge = Judge::new(1);
        judge.take(0, accepted("w", false, 1, 2));
        judge.compare_turns(&plan, 0, task);
        judge.findings.len()
    };
    assert_eq!(compare(&task(1, "TASK_STATE_COMPLETED")), 0);
    assert_eq!(compare(&task(2, "TASK_STATE_COMPLETED")), 2);
    assert_eq!(compare(&task(1, "TASK_STATE_REJECTED")), 1);
}
