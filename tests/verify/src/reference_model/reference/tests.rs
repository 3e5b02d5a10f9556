//! The model itself, on a few task histories that can be checked by eye.

use super::*;

fn message(text: &str, task: Option<usize>, key: &str) -> OutgoingMessage {
    let message = json!({"text": text});
    OutgoingMessage { key: Some(key.to_owned()), task, message, id: key.to_owned(), text: text.to_owned() }
}

fn apply(reference: &mut Reference, outgoing: &OutgoingMessage) -> usize {
    reference.apply_message(outgoing, false, "t", "c").0
}

#[test]
fn echo_has_four_events_and_held_task_two() {
    let mut echo = Reference::new("echo");
    let task = apply(&mut echo, &message("hello", None, "1"));
    assert_eq!((echo.tasks[task].log.len(), echo.tasks[task].state()), (4, State::Completed));
    let shown = echo.tasks[task].shown(4, Some(1), true);
    assert_eq!(shown["history"], json!([["ROLE_USER", "hello", "1"]]));
    assert_eq!(shown["artifacts"], json!([["echo-result", ["hello"]]]));
    assert_eq!(echo.tasks[task].shown(2, Some(0), true)["artifacts"], json!([]));

    let held = apply(&mut echo, &message("hold", None, "2"));
    apply(&mut echo, &message("more", Some(held), "3"));
    assert_eq!((echo.tasks[held].log.len(), echo.tasks[held].state()), (3, State::Working));
    echo.cancel(held);
    assert_eq!(echo.tasks[held].state(), State::Canceled);
}

#[test]
fn approval_takes_turns_and_ends() {
    let mut approver = Reference::new("approver");
    let task = apply(&mut approver, &message("it", None, "1"));
    for (text, state, events) in [("hm", State::InputRequired, 5), ("approve", State::Completed, 8)] {
        assert_eq!(approver.verdict_for(&message(text, Some(task), text)), Verdict::Accepted);
        apply(&mut approver, &message(text, Some(task), text));
        assert_eq!((approver.tasks[task].state(), approver.tasks[task].log.len()), (state, events));
    }
    assert_eq!(approver.verdict_for(&message("hm", Some(task), "9")), Verdict::TooLate);
    assert_eq!(
        approver.tasks[task].shown(8, None, true)["artifacts"],
        json!([["approval", ["Approved: it"]]])
    );
}

#[test]
fn key_is_replayed_only_with_the_same_body() {
    let mut echo = Reference::new("echo");
    let task = apply(&mut echo, &message("hello", None, "1"));
    assert_eq!(echo.verdict_for(&message("hello", None, "1")), Verdict::Replay(task, 1));
    assert_eq!(echo.verdict_for(&message("other", None, "1")), Verdict::Reused);
    assert_eq!(echo.verdict_for(&message("hello", None, "2")), Verdict::Accepted);
    assert_eq!(echo.verdict_for(&message("hello", Some(task), "1")), Verdict::TooLate);
}

#[test]
fn timestamps_are_learned_once_and_order_the_list() {
    let mut echo = Reference::new("echo");
    let [old, new] = ["1", "2"].map(|key| apply(&mut echo, &message(key, None, key)));
    assert!(echo.learn_timestamp(old, 4, "12:00").is_ok() && echo.learn_timestamp(new, 4, "12:00").is_ok());
    assert!(echo.learn_timestamp(old, 4, "12:01").is_err() && echo.learn_timestamp(old, 2, "12:01").is_ok());
    assert!(echo.learn_timestamp(old, 4, "12:00").is_err(), "the end is older than what came before it");

    let positions = |after: Option<&ListPosition>, since: &str| {
        let filter = Filter { since: Some(since.to_owned()), ..Filter::default() };
        let (total, positions) = echo.list(&filter, after, 9);
        (total, positions.iter().map(|position| position.1.0).collect::<Vec<_>>())
    };
    assert_eq!(positions(None, "12:00"), (2, vec![new, old]));
    assert_eq!(positions(Some(&(Reverse("12:00".to_owned()), Reverse(new))), "11:00"), (2, vec![old]));
    assert_eq!(positions(None, "12:01"), (0, vec![]));
}

#[test]
fn step_is_of_its_turn_and_checkpoint_of_the_task() {
    let mut stepper = Reference::new("stepper");
    let task = apply(&mut stepper, &message("one", None, "1"));
    apply(&mut stepper, &message("retry two", Some(task), "2"));
    assert_eq!(stepper.tasks[task].state(), State::InputRequired);
    let status = |stepper: &Reference| stepper.tasks[task].shown(stepper.tasks[task].log.len(), None, true);
    assert_eq!(status(&stepper)["status"]["text"], "one in attempt 1, retry two in attempt 1");
    let retried = stepper.tasks[task].log.iter().filter(|event| event.shown()["reason"] == "retry").count();
    assert_eq!((retried, stepper.steps), (1, 2));
    apply(&mut stepper, &message("large", Some(task), "3"));
    assert_eq!(status(&stepper)["status"]["reason"], "too_large");
    assert_eq!(stepper.verdict_for(&message("end", Some(task), "4")), Verdict::TooLate);
}

#[test]
fn document_is_written_section_by_section() {
    let mut writer = Reference::new("slow-writer");
    let task = apply(&mut writer, &message("sea sections=2 delay=0ms", None, "1"));
    let whole = writer.tasks[task].shown(writer.tasks[task].log.len(), None, true);
    let sections = json!(["Section 1 of 2: more about sea.\n", "Section 2 of 2: more about sea.\n"]);
    assert_eq!(whole["artifacts"], json!([["text", sections]]));
    assert_eq!(whole["status"]["text"], "2 sections written");
}
