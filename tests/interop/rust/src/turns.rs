//! A task that asks, is answered in a second message, and goes on under the same id.

use a2a::{Role, TaskState};

use crate::talk::{BINDINGS, ask, assert_ends_once, collect, each, first, get, say};

#[tokio::test]
async fn the_answer_decides_what_becomes_of_the_task() {
    each(async |binding| {
        let client = binding.client("approver").await;
        for (answer, outcome) in [("approve", TaskState::Completed), ("deny", TaskState::Rejected)] {
            let question = say("please do it", None);
            let asked = ask(&client, &question).await;
            assert_eq!(asked.status.state, TaskState::InputRequired);
            let said = asked.status.message.as_ref().unwrap();
            assert!(said.role == Role::Agent && !said.parts.is_empty(), "{said:?}");

            let reply = say(answer, Some(&asked));
            let decided = ask(&client, &reply).await;
            assert_eq!((&decided.id, &decided.context_id), (&asked.id, &asked.context_id));
            assert_eq!(decided.status.state, outcome);
            let stored = get(&client, &asked).await.unwrap();
            assert_eq!(stored.status, decided.status);
            let by_user = stored.history.iter().flatten().filter(|message| message.role == Role::User);
            let ids: Vec<&String> = by_user.map(|message| &message.message_id).collect();
            assert_eq!(ids, [&question.message.message_id, &reply.message.message_id]);
        }
    })
    .await;
}

#[tokio::test]
async fn the_second_turn_can_be_streamed() {
    each(async |binding| {
        let client = binding.client("approver").await;
        let asked = ask(&client, &say("please do it", None)).await;
        let reply = say("approve", Some(&asked));
        let events = collect(client.send_streaming_message(&reply).await.unwrap()).await;
        let shown = first(&events);
        assert_eq!(shown.id, asked.id);
        let last = shown.history.as_ref().unwrap().last().unwrap();
        assert_eq!(last.message_id, reply.message.message_id);
        assert_ends_once(&events, &TaskState::Completed);
    })
    .await;
}

#[tokio::test]
async fn a_task_can_change_bindings_between_its_turns() {
    each(async |binding| {
        for other in BINDINGS {
            let asked = ask(&binding.client("approver").await, &say("please do it", None)).await;
            let decided = ask(&other.client("approver").await, &say("approve", Some(&asked))).await;
            assert_eq!((&decided.id, &decided.status.state), (&asked.id, &TaskState::Completed), "{other:?}");
        }
    })
    .await;
}
