//! Conversations: a task begins one of its own, or joins one by its name.

use a2ad_engine::{Answer, Call, Clock, Outcome, Scope, TaskPolicy};
use protocol::{ContextId, ListTasks, Operation, Task, TaskState, Timestamp};

use crate::common::{
    Setup, Taken, answer, ask, done, done_saying, history, joined, refusal, reply, say, scope, task, voice,
};

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

/// A call through a door that answers the task that waits in a conversation.
fn resuming() -> Call {
    let task_policy = TaskPolicy { resume_by_context: true, ..TaskPolicy::default() };
    Call { task_policy, ..Call::new(scope()) }
}

#[tokio::test]
async fn a_message_to_a_conversation_answers_the_task_that_waits_there() {
    for setup in [Setup::overlapping(), Setup::plain()] {
        let mut house = setup.open();
        for outcome in [ask("which?"), Outcome::NeedAuth { message: voice("which?") }] {
            house.stage.prepare_turn([], outcome);
            let asked = house.send_for_task(say("one of them")).await;
            house.stage.turn().await;
            let context = || asked.context_id.clone();
            // Nobody's in another conversation, in none, or through another door.
            for other in [say("blue"), say("blue").context("elsewhere")] {
                house.stage.prepare_turn([], done());
                let begun = task(reply(house.send_as(resuming(), other).await.unwrap()));
                assert_ne!(begun.id, asked.id);
                house.stage.turn().await;
            }
            house.stage.prepare_turn([], done());
            assert_ne!(house.send_for_task(say("blue").context(context())).await.id, asked.id);
            house.stage.turn().await;

            house.stage.prepare_turn([], done());
            let told = house.send_as(resuming(), say("blue").context(context())).await.unwrap();
            let told = task(reply(told));
            assert_eq!((&told.id, told.status.state), (&asked.id, TaskState::Completed));
            assert_eq!(history(&told), ["one of them", "which?", "blue"]);
            house.stage.turn().await;
            // Now nothing waits there, and a task begins.
            house.stage.prepare_turn([], done());
            let next = house.send_as(resuming(), say("red").context(context())).await.unwrap();
            let next = task(reply(next));
            assert_ne!(next.id, asked.id);
            assert_eq!(next.context_id, asked.context_id);
            house.stage.turn().await;
        }
    }
}

#[tokio::test]
async fn of_several_that_wait_the_newest_is_answered() {
    let clock = Clock::manual(Timestamp::from_millis(1_000));
    let house = Setup::overlapping().clock(&clock).open();
    let auth = || Outcome::NeedAuth { message: voice("who?") };
    let mut waiting = Vec::new();
    for outcome in [ask("one?"), auth(), ask("two?"), auth(), ask("three?")] {
        clock.advance(std::time::Duration::from_millis(1));
        house.stage.prepare_turn([], outcome);
        waiting.push(house.send_for_task(say("hello").context("chat")).await.id);
    }
    for newest in waiting.into_iter().rev() {
        house.stage.prepare_turn([], done());
        let told = house.send_as(resuming(), say("here").context("chat")).await.unwrap();
        assert_eq!(task(reply(told)).id, newest);
    }
}

#[tokio::test]
async fn an_answer_to_a_conversation_is_repeated_like_any_other() {
    for setup in [Setup::overlapping(), Setup::plain()] {
        let house = setup.open();
        house.stage.prepare_turn([], ask("which?"));
        house.send(say("one of them").context("chat")).await.unwrap();
        let message = say("blue").context("chat");
        house.stage.prepare_turn([], done());
        let first = house.send_as(resuming(), message.clone()).await.unwrap();
        house.stage.prepare_turn([], done());
        let second = house.send_as(resuming(), message).await.unwrap();
        assert!(matches!(second, Answer::Replayed(_)), "the answer was taken for something new");
        assert_eq!(reply(first), reply(second));
        assert_eq!(house.list(ListTasks::default()).await.unwrap().total_size, 1);
    }
}

#[tokio::test]
async fn a_repeated_answer_reaches_no_other_task() {
    let house = Setup::overlapping().open();
    for _ in 0..2 {
        house.stage.prepare_turn([], ask("which?"));
        house.send(say("one of them").context("chat")).await.unwrap();
    }
    let message = say("blue").context("chat");
    house.stage.prepare_turn([], done());
    let first = house.send_as(resuming(), message.clone()).await.unwrap();
    // Another one waits there still.
    house.stage.prepare_turn([], done());
    let second = house.send_as(resuming(), message.clone()).await.unwrap();
    assert!(matches!(second, Answer::Replayed(_)), "the answer to one task was given to another");
    assert_eq!(reply(first), reply(second));
    assert_eq!(house.count(TaskState::InputRequired).await, 1);
    // Nor is it forgotten when the conversation goes on.
    house.stage.forget_prepared();
    house.stage.prepare_turn([], done());
    house.send(say("something else").context("chat")).await.unwrap();
    house.stage.prepare_turn([], done());
    let third = house.send_as(resuming(), message).await.unwrap();
    assert!(matches!(third, Answer::Replayed(_)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_answer_that_comes_too_late_begins_a_task() {
    let house = Setup::overlapping().open();
    for round in 0..50 {
        let chat = format!("chat {round}");
        house.stage.prepare_turn([], ask("which?"));
        house.send(say("one of them").context(chat.as_str())).await.unwrap();
        // More than enough: who is overtaken looks and tries again.
        for _ in 0..32 {
            house.stage.prepare_turn([], done());
        }
        let calls: Vec<_> = (0..4)
            .map(|number| {
                let message = say(&format!("answer {number}")).context(chat.as_str());
                house.send_aside_as(resuming(), message)
            })
            .collect();
        for call in calls {
            let told = task(reply(joined(call).await.unwrap()));
            assert_eq!(told.status.state, TaskState::Completed);
        }
        house.stage.forget_prepared();
    }
}

#[tokio::test]
async fn a_door_may_take_known_conversations_only() {
    let house = Setup::overlapping().open();
    let strict = |scope: Scope| {
        let task_policy = TaskPolicy { known_contexts_only: true, ..TaskPolicy::default() };
        Call { task_policy, ..Call::new(scope) }
    };
    house.stage.prepare_turn([], done());
    let own = house.send_for_task(say("hello")).await;
    house.stage.prepare_turn([], done());
    house.send(say("hello").context("chat")).await.unwrap();
    house.stage.prepare_turn([answer("a bare answer")], done());
    house.send(say("hello").context("bare")).await.unwrap();
    for known in [own.context_id.as_str(), "chat", "bare"] {
        house.stage.prepare_turn([], done());
        let told = house.send_as(strict(scope()), say("more").context(known)).await.unwrap();
        assert_eq!(task(reply(told)).context_id.as_str(), known);
    }
    // One that is somebody else's and one that is nobody's cannot be told apart.
    let stranger = Scope::anonymous("elsewhere", "scripted");
    let mut refusals = Vec::new();
    for unknown in [own.context_id.as_str(), "chat", "bare", "nobody's", ""] {
        let refused = house.send_as(strict(stranger.clone()), say("more").context(unknown)).await;
        refusals.push(format!("{:?}", refusal(refused)));
    }
    assert!(refusals.iter().all(|refusal| *refusal == refusals[0]), "{refusals:?}");
    assert!(refusals[0].contains("message.contextId"), "{}", refusals[0]);
    // Whoever names none begins one.
    house.stage.prepare_turn([], done());
    house.send_as(strict(stranger), say("hello")).await.unwrap();
}
