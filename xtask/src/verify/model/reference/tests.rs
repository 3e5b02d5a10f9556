//! The reference itself, on a few lives that can be checked by eye.

use super::*;

fn said(text: &str, task: Option<usize>, key: &str) -> Said {
    let message = json!({"text": text});
    Said { key: Some(key.to_owned()), task, message, id: key.to_owned(), text: text.to_owned() }
}

fn taken(reference: &mut Reference, said: &Said) -> usize {
    reference.take(said, false, "t", "c").0
}

#[test]
fn an_echo_is_four_events_and_a_held_one_two() {
    let mut echo = Reference::new("echo");
    let task = taken(&mut echo, &said("hello", None, "1"));
    assert_eq!((echo.tasks[task].log.len(), echo.tasks[task].state()), (4, State::Completed));
    let shown = echo.tasks[task].shown(4, Some(1), true);
    assert_eq!(shown["history"], json!([["ROLE_USER", "hello", "1"]]));
    assert_eq!(shown["artifacts"], json!([["echo-result", ["hello"]]]));
    assert_eq!(echo.tasks[task].shown(2, Some(0), true)["artifacts"], json!([]));

    let held = taken(&mut echo, &said("hold", None, "2"));
    taken(&mut echo, &said("more", Some(held), "3"));
    assert_eq!((echo.tasks[held].log.len(), echo.tasks[held].state()), (3, State::Working));
    echo.cancel(held);
    assert_eq!(echo.tasks[held].state(), State::Canceled);
}

#[test]
fn an_approval_takes_turns_and_ends() {
    let mut approver = Reference::new("approver");
    let task = taken(&mut approver, &said("it", None, "1"));
    for (text, state, events) in [("hm", State::InputRequired, 5), ("approve", State::Completed, 8)] {
        assert_eq!(approver.judge(&said(text, Some(task), text)), Verdict::Taken);
        taken(&mut approver, &said(text, Some(task), text));
        assert_eq!((approver.tasks[task].state(), approver.tasks[task].log.len()), (state, events));
    }
    assert_eq!(approver.judge(&said("hm", Some(task), "9")), Verdict::TooLate);
    assert_eq!(
        approver.tasks[task].shown(8, None, true)["artifacts"],
        json!([["approval", ["Approved: it"]]])
    );
}

#[test]
fn a_key_is_known_again_with_the_same_body_only() {
    let mut echo = Reference::new("echo");
    let task = taken(&mut echo, &said("hello", None, "1"));
    assert_eq!(echo.judge(&said("hello", None, "1")), Verdict::Known(task, 1));
    assert_eq!(echo.judge(&said("other", None, "1")), Verdict::Reused);
    assert_eq!(echo.judge(&said("hello", None, "2")), Verdict::Taken);
    assert_eq!(echo.judge(&said("hello", Some(task), "1")), Verdict::TooLate);
}

#[test]
fn times_are_learned_once_and_order_the_list() {
    let mut echo = Reference::new("echo");
    let [old, new] = ["1", "2"].map(|key| taken(&mut echo, &said(key, None, key)));
    assert!(echo.learn(old, 4, "12:00").is_ok() && echo.learn(new, 4, "12:00").is_ok());
    assert!(echo.learn(old, 4, "12:01").is_err() && echo.learn(old, 2, "12:01").is_ok());
    assert!(echo.learn(old, 4, "12:00").is_err(), "the end is older than what came before it");

    let places = |behind: Option<&Place>, since: &str| {
        let filter = Filter { since: Some(since.to_owned()), ..Filter::default() };
        let (total, places) = echo.list(&filter, behind, 9);
        (total, places.iter().map(|place| place.1.0).collect::<Vec<_>>())
    };
    assert_eq!(places(None, "12:00"), (2, vec![new, old]));
    assert_eq!(places(Some(&(Reverse("12:00".to_owned()), Reverse(new))), "11:00"), (2, vec![old]));
    assert_eq!(places(None, "12:01"), (0, vec![]));
}

#[test]
fn a_piece_is_written_section_by_section() {
    let mut writer = Reference::new("slow-writer");
    let task = taken(&mut writer, &said("sea sections=2 delay=0ms", None, "1"));
    let whole = writer.tasks[task].shown(writer.tasks[task].log.len(), None, true);
    let sections = json!(["Section 1 of 2: more about sea.\n", "Section 2 of 2: more about sea.\n"]);
    assert_eq!(whole["artifacts"], json!([["text", sections]]));
    assert_eq!(whole["status"]["said"], "2 sections written");
}
