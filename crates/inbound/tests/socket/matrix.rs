//! One task in every generation: every client gets the same content in its own generation, whichever generation created
//! the task.

use protocol::{ErrorKind, Role, TaskState};

use crate::common::{
    Server, Setup,
    agents::{fails, paced},
    generation::{Client, Frame, Generation, TaskSummary, UserMessage},
};

/// Every combination of the generation that creates a task and the one that reads it.
fn pairs<'a>(server: &'a Server, path: &'a str) -> impl Iterator<Item = (Client<'a>, Client<'a>)> {
    let client = move |generation| Client { server, path, generation };
    let pairs =
        Generation::ALL.into_iter().flat_map(|creator| Generation::ALL.map(|reader| (creator, reader)));
    pairs.map(move |(creator, reader)| (client(creator), client(reader)))
}

fn lines(frames: &[Frame]) -> Vec<String> {
    frames.iter().map(Frame::summary).collect()
}

#[tokio::test]
async fn open_task_is_read_subscribed_and_cancelled() {
    let server = Server::open().await;
    for (creator, reader) in pairs(&server, "/a2a/echo") {
        let case = format!("made in {:?}, asked in {:?}", creator.generation, reader.generation);
        let made = TaskSummary::of(&creator.send(UserMessage::new("hold on").without_waiting()).await);
        let id = made.id.as_str();
        assert_eq!(made.state, TaskState::Working, "{case}");
        assert_eq!(made.history, [(Role::User, "hold on".into())], "{case}");
        assert_eq!(id.starts_with("job-"), creator.generation == Generation::Draft, "{case}");
        assert_eq!(TaskSummary::of(&reader.get(id).await), made, "{case}");

        let mut watched = Vec::new();
        for generation in Generation::ALL {
            let watcher = Client { generation, ..reader };
            let mut wire = watcher.subscribe(id, None).await;
            assert_eq!(
                watcher.frame(&mut wire).await.unwrap().summary(),
                "2 Working",
                "{case}, {generation:?}"
            );
            watched.push((watcher, wire));
        }
        let canceled = TaskSummary { state: TaskState::Canceled, ..made.clone() };
        let result = TaskSummary::of(&reader.cancel(id).await);
        // The draft returns a history only on request, and its cancel has no field for that.
        let history =
            if reader.generation == Generation::Draft { Vec::new() } else { canceled.history.clone() };
        assert_eq!(result, TaskSummary { history, ..canceled.clone() }, "{case}");
        for (watcher, mut wire) in watched {
            let rest = watcher.frames(&mut wire).await;
            assert_eq!(lines(&rest), ["3 Canceled"], "{case}, {:?}", watcher.generation);
        }
        assert_eq!(TaskSummary::of(&creator.get(id).await), canceled, "{case}");

        // The task is final in every generation.
        reader.check_error(&reader.try_cancel(id).await, ErrorKind::TaskNotCancelable);
        let more = reader.try_send(UserMessage::new("go on").to_task(id)).await;
        reader.check_error(&more, ErrorKind::UnsupportedOperation);
        check_finished(reader, id, "3 Canceled").await;
        assert_eq!(TaskSummary::of(&creator.get(id).await), canceled, "{case}");
    }
}

/// Subscribing to a finished task: its last status in the older generations, an error in 1.0.
async fn check_finished(reader: Client<'_>, id: &str, last: &str) {
    if reader.generation == Generation::V1 {
        return reader.check_error(&reader.try_subscribe(id).await, ErrorKind::UnsupportedOperation);
    }
    let mut wire = reader.subscribe(id, None).await;
    assert_eq!(lines(&reader.frames(&mut wire).await), [last], "{:?}", reader.generation);
}

#[tokio::test]
async fn stream_is_resumed_in_another_generation() {
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
    for (creator, reader) in pairs(&server, "/a2a/slow-writer") {
        let case = format!("made in {:?}, asked in {:?}", creator.generation, reader.generation);
        let mut wire = creator.stream(UserMessage::new("the sea sections=3 delay=1ms")).await;
        let made = creator.frames(&mut wire).await;
        assert_eq!(made[0].summary(), "1 Submitted", "{case}");
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
            assert_eq!(missed[0].summary(), first, "{case} from {seen}");
            let from = usize::try_from(seen).unwrap().saturating_sub(1);
            let behind = if seen == 0 { &lines(&missed[1..])[1..] } else { &lines(&missed[1..])[..] };
            assert_eq!(behind, &expected[from..], "{case} from {seen}");
        }
        check_finished(reader, &id, expected[6]).await;

        let facts = TaskSummary::of(&reader.get(&id).await);
        assert_eq!(facts, TaskSummary::of(&creator.get(&id).await), "{case}");
        assert_eq!(
            (facts.state, facts.status_text.as_deref()),
            (TaskState::Completed, Some("3 sections written"))
        );
        let section = |number| format!("Section {number} of 3: more about the sea.\n");
        let text = [1, 2, 3].map(section).concat();
        assert_eq!(facts.artifacts, [(Some("text".into()), text)], "{case}");
        let history = [
            (Role::User, "the sea sections=3 delay=1ms".to_owned()),
            (Role::Agent, "3 sections written".to_owned()),
        ];
        assert_eq!(facts.history, history, "{case}");
        reader.check_error(&reader.try_cancel(&id).await, ErrorKind::TaskNotCancelable);
    }
}

#[tokio::test]
async fn subscribers_of_every_generation_get_the_same_events() {
    let (agent, pace) = paced();
    let server = Setup { agents: vec![agent], ..Setup::default() }.open().await;
    for creator in
        Generation::ALL.map(|generation| Client { server: &server, path: "/a2a/paced", generation })
    {
        let id = TaskSummary::of(&creator.send(UserMessage::new("go").without_waiting()).await).id;
        let mut watched = Vec::new();
        for generation in Generation::ALL {
            let watcher = Client { generation, ..creator };
            let mut wire = watcher.subscribe(&id, None).await;
            assert_eq!(watcher.frame(&mut wire).await.unwrap().summary(), "2 Working");
            watched.push((watcher, wire));
        }
        pace.add_permits(1);
        for (watcher, wire) in &mut watched {
            assert_eq!(watcher.frame(wire).await.unwrap().summary(), "3 = one", "{:?}", watcher.generation);
        }
        // A later subscriber gets the current content; the draft sends it in chunks.
        for generation in Generation::ALL {
            let late = Client { generation, ..creator };
            let mut wire = late.subscribe(&id, None).await;
            assert_eq!(late.frame(&mut wire).await.unwrap().summary(), "3 Working", "{generation:?}");
            if generation == Generation::Draft {
                assert_eq!(late.frame(&mut wire).await.unwrap().summary(), "3 = one");
            }
            watched.push((late, wire));
        }
        pace.add_permits(2);
        for (watcher, mut wire) in watched {
            let rest = watcher.frames(&mut wire).await;
            assert_eq!(lines(&rest), ["4 + two", "5 + three .", "6 Completed"], "{:?}", watcher.generation);
        }
    }
}

#[tokio::test]
async fn input_is_provided_and_finished_task_is_reopened_only_by_the_draft() {
    let server = Server::open().await;
    let question = "May I proceed with: jump? Answer approve or deny.";
    for (creator, reader) in pairs(&server, "/a2a/approver") {
        let case = format!("made in {:?}, asked in {:?}", creator.generation, reader.generation);
        let asked = TaskSummary::of(&creator.send(UserMessage::new("jump")).await);
        let id = asked.id.as_str();
        assert_eq!(
            (asked.state, asked.status_text.as_deref()),
            (TaskState::InputRequired, Some(question)),
            "{case}"
        );
        assert_eq!(asked.history.last(), Some(&(Role::Agent, question.into())), "{case}");
        assert_eq!(TaskSummary::of(&reader.get(id).await), asked, "{case}");
        // A subscriber of a task that waits for input gets that status, and then the next turn.
        let mut wire = creator.subscribe(id, None).await;
        let waits = creator.frame(&mut wire).await.unwrap();
        assert_eq!((waits.summary(), waits.last), (format!("3 InputRequired: {question}"), false), "{case}");

        let message = UserMessage::new("approve").to_task(id).in_context(&asked.context);
        let done = TaskSummary::of(&reader.send(message).await);
        let expected = TaskSummary {
            state: TaskState::Completed,
            status_text: Some("Done: jump".into()),
            artifacts: vec![(Some("approval".into()), "Approved: jump".into())],
            history: [
                asked.history.clone(),
                vec![(Role::User, "approve".into()), (Role::Agent, "Done: jump".into())],
            ]
            .concat(),
            ..asked.clone()
        };
        assert_eq!(done, expected, "{case}");
        assert_eq!(TaskSummary::of(&creator.get(id).await), expected, "{case}");
        let rest = creator.frames(&mut wire).await;
        assert_eq!(lines(&rest), ["4 Working", "5 = Approved: jump .", "6 Completed: Done: jump"], "{case}");

        let again = reader.try_send(UserMessage::new("run").to_task(id)).await;
        if reader.generation == Generation::Draft {
            let reopened = TaskSummary::of(&reader.get(id).await);
            assert_eq!((reopened.state, reopened.history.len()), (TaskState::InputRequired, 6), "{case}");
            assert_eq!((&reopened.context, reopened.artifacts.len()), (&asked.context, 1), "{case}");
            assert_eq!(TaskSummary::of(&creator.get(id).await), reopened, "{case}");
            let canceled = creator.cancel(id).await;
            assert_eq!(canceled.status.state, TaskState::Canceled, "{case}");
        } else {
            reader.check_error(&again, ErrorKind::UnsupportedOperation);
            assert_eq!(TaskSummary::of(&creator.get(id).await), expected, "{case}");
        }
    }
}

#[tokio::test]
async fn failed_task_is_reopened_only_by_the_draft() {
    let server = Setup { agents: vec![fails()], ..Setup::default() }.open().await;
    for (creator, reader) in pairs(&server, "/a2a/fails") {
        let case = format!("made in {:?}, asked in {:?}", creator.generation, reader.generation);
        let failed = TaskSummary::of(&creator.send(UserMessage::new("print")).await);
        assert_eq!(
            (failed.state, failed.status_text.as_deref()),
            (TaskState::Failed, Some("out of paper")),
            "{case}"
        );
        assert_eq!(TaskSummary::of(&reader.get(&failed.id).await), failed, "{case}");
        let again = reader.try_send(UserMessage::new("try again").to_task(&failed.id)).await;
        let after = TaskSummary::of(&creator.get(&failed.id).await);
        if reader.generation == Generation::Draft {
            assert_eq!((after.state, after.history.len()), (TaskState::Failed, 4), "{case}");
        } else {
            reader.check_error(&again, ErrorKind::UnsupportedOperation);
            assert_eq!(after, failed, "{case}");
        }
    }
}

#[tokio::test]
async fn rejected_and_auth_required_are_distinct_in_every_generation() {
    let server = Server::open().await;
    for (creator, reader) in pairs(&server, "/a2a/approver") {
        let case = format!("made in {:?}, asked in {:?}", creator.generation, reader.generation);
        let asked = TaskSummary::of(&creator.send(UserMessage::new("jump")).await);
        let denied = TaskSummary::of(&reader.send(UserMessage::new("deny").to_task(&asked.id)).await);
        assert_eq!(
            (denied.state, denied.status_text.as_deref()),
            (TaskState::Rejected, Some("Denied: jump")),
            "{case}"
        );
        assert_eq!(TaskSummary::of(&creator.get(&asked.id).await), denied, "{case}");
        // A rejected task cannot be reopened in any generation.
        let again = reader.try_send(UserMessage::new("now").to_task(&asked.id)).await;
        reader.check_error(&again, ErrorKind::UnsupportedOperation);

        let login = TaskSummary::of(&creator.send(UserMessage::new("login to it")).await);
        assert_eq!(login.state, TaskState::AuthRequired, "{case}");
        assert_eq!(TaskSummary::of(&reader.get(&login.id).await), login, "{case}");
    }
}

#[tokio::test]
async fn context_is_shared_by_every_generation() {
    let server = Server::open().await;
    for (creator, reader) in pairs(&server, "/a2a/echo") {
        let case = format!("made in {:?}, joined in {:?}", creator.generation, reader.generation);
        for name in [Some("talk-1"), None] {
            let message = UserMessage { context: name, ..UserMessage::new("one") };
            let first = TaskSummary::of(&creator.send(message).await);
            let second =
                TaskSummary::of(&reader.send(UserMessage::new("two").in_context(&first.context)).await);
            assert_eq!(first.context, second.context, "{case}");
            assert!(name.is_none_or(|name| first.context == name), "{case}");
            assert_ne!(first.id, second.id, "{case}");
            let elsewhere =
                reader.try_send(UserMessage::new("three").to_task(&first.id).in_context("elsewhere")).await;
            reader.check_error(&elsewhere, ErrorKind::InvalidParams);
        }
    }
}
