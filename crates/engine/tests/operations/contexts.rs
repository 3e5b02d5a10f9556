//! Conversations: a task begins one of its own, or joins one by its name.

use a2ad_engine::Scope;
use protocol::{ContextId, ListTasks, Operation, Task};

use crate::common::{Setup, Taken, answer, done_saying, history, reply, say, task};

async fn earlier(turn: &Taken) -> Vec<String> {
    turn.conversation.messages().await.unwrap().iter().map(protocol::Message::text).collect()
}

#[tokio::test]
async fn a_task_begins_a_conversation_that_others_join() {
    for setup in [Setup::overlapping(), Setup::plain()] {
        let mut house = setup.open();
        let mut said = Vec::new();
        let mut context: Option<ContextId> = None;
        for number in 1..=3 {
            let (question, told) = (format!("question {number}"), format!("answer {number}"));
            house.stage.prepare_turn([], done_saying(&told));
            let asked = say(&question);
            let asked = if let Some(context) = &context { asked.context(context.clone()) } else { asked };
            let task = house.send_for_task(asked).await;
            let turn = house.stage.turn().await;
            assert_eq!(turn.context_id, task.context_id);
            assert_eq!(earlier(&turn).await, said);
            assert!(turn.history.is_empty(), "another task's messages are not this one's");
            assert_eq!(history(&task), [question.clone(), told.clone()]);
            assert_eq!(context.get_or_insert(task.context_id.clone()), &task.context_id);
            said.extend([question, told]);
        }
        house.stage.prepare_turn([], done_saying("elsewhere"));
        assert_ne!(Some(house.send_for_task(say("alone")).await.context_id), context);
        let page = house.list(ListTasks { context_id: context, ..ListTasks::default() }).await.unwrap();
        assert_eq!(page.total_size, 3);
        assert_eq!(history(&page.tasks[2]), ["question 1", "answer 1"]);
    }
}

#[tokio::test]
async fn a_client_names_a_conversation() {
    let mut house = Setup::overlapping().open();
    let mut before = Vec::new();
    for text in ["one", "two", "three"] {
        house.stage.prepare_turn([], done_saying("ok"));
        let task = house.send_for_task(say(text).context("my chat")).await;
        assert_eq!(task.context_id.as_str(), "my chat");
        assert_eq!(earlier(&house.stage.turn().await).await, before);
        before.extend([text.to_owned(), "ok".to_owned()]);
    }
    let named = ListTasks { context_id: Some("my chat".into()), ..ListTasks::default() };
    assert_eq!(house.list(named).await.unwrap().total_size, 3);
    let unknown = ListTasks { context_id: Some("your chat".into()), ..ListTasks::default() };
    assert_eq!(house.list(unknown).await.unwrap().total_size, 0);
}

#[tokio::test]
async fn a_bare_answer_is_part_of_its_conversation() {
    let mut house = Setup::overlapping().open();
    house.stage.prepare_turn([answer("hello yourself")], done_saying(""));
    house.send(say("hello").context("chat")).await.unwrap();
    house.stage.turn().await;
    house.stage.prepare_turn([], done_saying("ok"));
    house.send(say("go on").context("chat")).await.unwrap();
    assert_eq!(earlier(&house.stage.turn().await).await, ["hello", "hello yourself"]);
}

#[tokio::test]
async fn a_foreign_conversation_is_only_a_name() {
    let mut house = Setup::overlapping().open();
    house.stage.prepare_turn([], done_saying("ours"));
    let ours = house.send_for_task(say("hello")).await;
    house.stage.turn().await;
    for name in [ours.context_id.as_str(), "shared name"] {
        let mut tasks: Vec<Task> = Vec::new();
        for tenant in ["default", "elsewhere"] {
            house.stage.prepare_turn([], done_saying("ok"));
            let send = Operation::SendMessage(say("hi").context(name).into());
            let answered = house.call(Scope::anonymous(tenant, "scripted"), send).await.unwrap();
            tasks.push(task(reply(answered)));
            let turn = house.stage.turn().await;
            let known = tenant == "default" && name != "shared name";
            assert_eq!(earlier(&turn).await.len(), if known { 2 } else { 0 }, "{tenant} {name}");
        }
        assert!(tasks.iter().all(|task| task.context_id.as_str() == name));
    }
}
