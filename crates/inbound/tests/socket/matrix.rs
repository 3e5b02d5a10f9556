//! One task, every generation: whoever made it, whoever asks is answered in its own generation and told the same.

use protocol::{ErrorKind, Role, TaskState};

use crate::common::{
    Server, Setup,
    agents::{fails, paced},
    tongue::{Client, Facts, Frame, Tongue, Words},
};

/// Who made a task and who asks about it, in every combination.
fn pairs<'a>(server: &'a Server, path: &'a str) -> impl Iterator<Item = (Client<'a>, Client<'a>)> {
    let client = move |tongue| Client { server, path, tongue };
    let pairs = Tongue::ALL.into_iter().flat_map(|maker| Tongue::ALL.map(|reader| (maker, reader)));
    pairs.map(move |(maker, reader)| (client(maker), client(reader)))
}

fn lines(frames: &[Frame]) -> Vec<String> {
    frames.iter().map(Frame::line).collect()
}

#[tokio::test]
async fn an_open_task_is_read_watched_and_cancelled() {
    let server = Server::open().await;
    for (maker, reader) in pairs(&server, "/a2a/echo") {
        let case = format!("made in {:?}, asked in {:?}", maker.tongue, reader.tongue);
        let made = Facts::of(&maker.send(Words::new("hold on").at_once()).await);
        let id = made.id.as_str();
        assert_eq!(made.state, TaskState::Working, "{case}");
        assert_eq!(made.history, [(Role::User, "hold on".into())], "{case}");
        assert_eq!(id.starts_with("job-"), maker.tongue == Tongue::Draft, "{case}");
        assert_eq!(Facts::of(&reader.get(id).await), made, "{case}");

        let mut watched = Vec::new();
        for tongue in Tongue::ALL {
            let watcher = Client { tongue, ..reader };
            let mut wire = watcher.subscribe(id, None).await;
            assert_eq!(watcher.frame(&mut wire).await.unwrap().line(), "2 Working", "{case}, {tongue:?}");
            watched.push((watcher, wire));
        }
        let canceled = Facts { state: TaskState::Canceled, ..made.clone() };
        let told = Facts::of(&reader.cancel(id).await);
        // The draft shows a history only to those who ask for one, and cannot ask for it here.
        let history = if reader.tongue == Tongue::Draft { Vec::new() } else { canceled.history.clone() };
        assert_eq!(told, Facts { history, ..canceled.clone() }, "{case}");
        for (watcher, mut wire) in watched {
            let rest = watcher.frames(&mut wire).await;
            assert_eq!(lines(&rest), ["3 Canceled"], "{case}, {:?}", watcher.tongue);
        }
        assert_eq!(Facts::of(&maker.get(id).await), canceled, "{case}");

        // It is over for everybody.
        reader.check_refused(&reader.try_cancel(id).await, ErrorKind::TaskNotCancelable);
        let more = reader.say(Words::new("go on").to(id)).await;
        reader.check_refused(&more, ErrorKind::UnsupportedOperation);
        check_over(reader, id, "3 Canceled").await;
        assert_eq!(Facts::of(&maker.get(id).await), canceled, "{case}");
    }
}

/// Watching a task that is over: its last status in the older generations, a refusal in 1.0.
async fn check_over(reader: Client<'_>, id: &str, last: &str) {
    if reader.tongue == Tongue::V1 {
        return reader.check_refused(&reader.try_subscribe(id).await, ErrorKind::UnsupportedOperation);
    }
    let mut wire = reader.subscribe(id, None).await;
    assert_eq!(lines(&reader.frames(&mut wire).await), [last], "{:?}", reader.tongue);
}

#[tokio::test]
async fn a_stream_is_taken_up_by_another_generation() {
    let server = Server::open().await;
    let expected = [
        "2 Working: writing section 1 of 3",
        "3 = Section 1 of 3: more about the sea.",
        "4 Working: writing section 2 of 3",
        "5 + Section 2 of 3: more about the sea.",
        "6 Working: writing section 3 of 3",
        "7 + Section 3 of 3: more about the sea. .",
        "8 Completed: 3 sections written",
    ];
    for (maker, reader) in pairs(&server, "/a2a/slow-writer") {
        let case = format!("made in {:?}, asked in {:?}", maker.tongue, reader.tongue);
        let mut wire = maker.stream(Words::new("the sea sections=3 delay=1ms")).await;
        let made = maker.frames(&mut wire).await;
        assert_eq!(made[0].line(), "1 Submitted", "{case}");
        assert_eq!(lines(&made[1..]), expected, "{case}");
        let id = match &made[1].event {
            protocol::Event::Status(update) => update.task_id.to_string(),
            other => panic!("{other:?}"),
        };

        for seen in [0, 1, 4, 7] {
            let mut wire = reader.subscribe(&id, Some(seen)).await;
            let missed = reader.frames(&mut wire).await;
            let first = match seen {
                0 | 1 => format!("{seen} Submitted"),
                4 => "4 Working: writing section 2 of 3".to_owned(),
                _ => "7 Working: writing section 3 of 3".to_owned(),
            };
            assert_eq!(missed[0].line(), first, "{case} from {seen}");
            let from = usize::try_from(seen).unwrap().saturating_sub(1);
            let behind = if seen == 0 { &lines(&missed[1..])[1..] } else { &lines(&missed[1..])[..] };
            assert_eq!(behind, &expected[from..], "{case} from {seen}");
        }
        check_over(reader, &id, expected[6]).await;

        let facts = Facts::of(&reader.get(&id).await);
        assert_eq!(facts, Facts::of(&maker.get(&id).await), "{case}");
        assert_eq!((facts.state, facts.said.as_deref()), (TaskState::Completed, Some("3 sections written")));
        let section = |number| format!("Section {number} of 3: more about the sea.\n");
        let text = [1, 2, 3].map(section).concat();
        assert_eq!(facts.artifacts, [(Some("text".into()), text)], "{case}");
        let history = [
            (Role::User, "the sea sections=3 delay=1ms".to_owned()),
            (Role::Agent, "3 sections written".to_owned()),
        ];
        assert_eq!(facts.history, history, "{case}");
        reader.check_refused(&reader.try_cancel(&id).await, ErrorKind::TaskNotCancelable);
    }
}

#[tokio::test]
async fn every_generation_watches_the_same_work() {
    let (agent, pace) = paced();
    let server = Setup { agents: vec![agent], ..Setup::default() }.open().await;
    for maker in Tongue::ALL.map(|tongue| Client { server: &server, path: "/a2a/paced", tongue }) {
        let id = Facts::of(&maker.send(Words::new("go").at_once()).await).id;
        let mut watched = Vec::new();
        for tongue in Tongue::ALL {
            let watcher = Client { tongue, ..maker };
            let mut wire = watcher.subscribe(&id, None).await;
            assert_eq!(watcher.frame(&mut wire).await.unwrap().line(), "2 Working");
            watched.push((watcher, wire));
        }
        pace.add_permits(1);
        for (watcher, wire) in &mut watched {
            assert_eq!(watcher.frame(wire).await.unwrap().line(), "3 = one", "{:?}", watcher.tongue);
        }
        // Who comes later is shown what is there; the draft shows it piece by piece.
        for tongue in Tongue::ALL {
            let late = Client { tongue, ..maker };
            let mut wire = late.subscribe(&id, None).await;
            assert_eq!(late.frame(&mut wire).await.unwrap().line(), "3 Working", "{tongue:?}");
            if tongue == Tongue::Draft {
                assert_eq!(late.frame(&mut wire).await.unwrap().line(), "3 = one");
            }
            watched.push((late, wire));
        }
        pace.add_permits(2);
        for (watcher, mut wire) in watched {
            let rest = watcher.frames(&mut wire).await;
            assert_eq!(lines(&rest), ["4 + two", "5 + three .", "6 Completed"], "{:?}", watcher.tongue);
        }
    }
}

#[tokio::test]
async fn a_question_is_answered_and_a_finished_task_is_reopened_by_the_draft_alone() {
    let server = Server::open().await;
    let question = "May I proceed with: jump? Answer approve or deny.";
    for (maker, reader) in pairs(&server, "/a2a/approver") {
        let case = format!("made in {:?}, asked in {:?}", maker.tongue, reader.tongue);
        let asked = Facts::of(&maker.send(Words::new("jump")).await);
        let id = asked.id.as_str();
        assert_eq!(
            (asked.state, asked.said.as_deref()),
            (TaskState::InputRequired, Some(question)),
            "{case}"
        );
        assert_eq!(asked.history.last(), Some(&(Role::Agent, question.into())), "{case}");
        assert_eq!(Facts::of(&reader.get(id).await), asked, "{case}");
        // One who watches a task that waits sees it wait, and then its next turn.
        let mut wire = maker.subscribe(id, None).await;
        let waits = maker.frame(&mut wire).await.unwrap();
        assert_eq!((waits.line(), waits.last), (format!("3 InputRequired: {question}"), false), "{case}");

        let words = Words::new("approve").to(id).within(&asked.context);
        let done = Facts::of(&reader.send(words).await);
        let expected = Facts {
            state: TaskState::Completed,
            said: Some("Done: jump".into()),
            artifacts: vec![(Some("approval".into()), "Approved: jump".into())],
            history: [
                asked.history.clone(),
                vec![(Role::User, "approve".into()), (Role::Agent, "Done: jump".into())],
            ]
            .concat(),
            ..asked.clone()
        };
        assert_eq!(done, expected, "{case}");
        assert_eq!(Facts::of(&maker.get(id).await), expected, "{case}");
        let rest = maker.frames(&mut wire).await;
        assert_eq!(lines(&rest), ["4 Working", "5 = Approved: jump .", "6 Completed: Done: jump"], "{case}");

        let again = reader.say(Words::new("run").to(id)).await;
        if reader.tongue == Tongue::Draft {
            let reopened = Facts::of(&reader.get(id).await);
            assert_eq!((reopened.state, reopened.history.len()), (TaskState::InputRequired, 6), "{case}");
            assert_eq!((&reopened.context, reopened.artifacts.len()), (&asked.context, 1), "{case}");
            assert_eq!(Facts::of(&maker.get(id).await), reopened, "{case}");
            let canceled = maker.cancel(id).await;
            assert_eq!(canceled.status.state, TaskState::Canceled, "{case}");
        } else {
            reader.check_refused(&again, ErrorKind::UnsupportedOperation);
            assert_eq!(Facts::of(&maker.get(id).await), expected, "{case}");
        }
    }
}

#[tokio::test]
async fn a_failed_task_is_tried_again_by_the_draft_alone() {
    let server = Setup { agents: vec![fails()], ..Setup::default() }.open().await;
    for (maker, reader) in pairs(&server, "/a2a/fails") {
        let case = format!("made in {:?}, asked in {:?}", maker.tongue, reader.tongue);
        let failed = Facts::of(&maker.send(Words::new("print")).await);
        assert_eq!(
            (failed.state, failed.said.as_deref()),
            (TaskState::Failed, Some("out of paper")),
            "{case}"
        );
        assert_eq!(Facts::of(&reader.get(&failed.id).await), failed, "{case}");
        let again = reader.say(Words::new("try again").to(&failed.id)).await;
        let after = Facts::of(&maker.get(&failed.id).await);
        if reader.tongue == Tongue::Draft {
            assert_eq!((after.state, after.history.len()), (TaskState::Failed, 4), "{case}");
        } else {
            reader.check_refused(&again, ErrorKind::UnsupportedOperation);
            assert_eq!(after, failed, "{case}");
        }
    }
}

#[tokio::test]
async fn refusals_and_logins_are_told_apart_in_every_generation() {
    let server = Server::open().await;
    for (maker, reader) in pairs(&server, "/a2a/approver") {
        let case = format!("made in {:?}, asked in {:?}", maker.tongue, reader.tongue);
        let asked = Facts::of(&maker.send(Words::new("jump")).await);
        let denied = Facts::of(&reader.send(Words::new("deny").to(&asked.id)).await);
        assert_eq!(
            (denied.state, denied.said.as_deref()),
            (TaskState::Rejected, Some("Denied: jump")),
            "{case}"
        );
        assert_eq!(Facts::of(&maker.get(&asked.id).await), denied, "{case}");
        // What was rejected is not opened again by anybody.
        let again = reader.say(Words::new("now").to(&asked.id)).await;
        reader.check_refused(&again, ErrorKind::UnsupportedOperation);

        let login = Facts::of(&maker.send(Words::new("login to it")).await);
        assert_eq!(login.state, TaskState::AuthRequired, "{case}");
        assert_eq!(Facts::of(&reader.get(&login.id).await), login, "{case}");
    }
}

#[tokio::test]
async fn a_conversation_is_one_in_every_generation() {
    let server = Server::open().await;
    for (maker, reader) in pairs(&server, "/a2a/echo") {
        let case = format!("made in {:?}, joined in {:?}", maker.tongue, reader.tongue);
        for name in [Some("talk-1"), None] {
            let words = Words { context: name, ..Words::new("one") };
            let first = Facts::of(&maker.send(words).await);
            let second = Facts::of(&reader.send(Words::new("two").within(&first.context)).await);
            assert_eq!(first.context, second.context, "{case}");
            assert!(name.is_none_or(|name| first.context == name), "{case}");
            assert_ne!(first.id, second.id, "{case}");
            let elsewhere = reader.say(Words::new("three").to(&first.id).within("elsewhere")).await;
            reader.check_refused(&elsewhere, ErrorKind::InvalidParams);
        }
    }
}
