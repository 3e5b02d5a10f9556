//! Every call of a skill passes its guards: once for each message before the work, and once for each result after it.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use a2ad_engine::{
    AgentError, AgentInfo, AgentResult, Catalog, DynAgent, Guard, GuardedCall, Guards, HiddenSkills, Outcome,
    RegisteredAgent, SchemaCheck, Skill, SkillInput, SkillSchema, SkillSet, Turn, agent_fn,
};
use futures_util::future::BoxFuture;
use protocol::{Json, TaskState};

use crate::common::{MessageBuilder, Setup, TestServer, join, msg, skill, status_text};

/// Counts what it judges. Blocks messages and results with the word "secret".
#[derive(Default)]
struct Counter {
    before: AtomicU32,
    after: AtomicU32,
}

impl Counter {
    fn counts(&self) -> (u32, u32) {
        (self.before.load(Ordering::SeqCst), self.after.load(Ordering::SeqCst))
    }
}

impl Guard for Counter {
    fn before<'a>(&'a self, call: GuardedCall<'a>) -> BoxFuture<'a, Option<Outcome>> {
        self.before.fetch_add(1, Ordering::SeqCst);
        let arguments = call.arguments.map(Json::as_str).unwrap_or_default();
        let is_secret = call.message.text().contains("secret") || arguments.contains("secret");
        Box::pin(async move { is_secret.then(|| Outcome::reject("blocked before")) })
    }

    fn after<'a>(
        &'a self,
        _: &'a Skill,
        result: AgentResult<Outcome>,
    ) -> BoxFuture<'a, AgentResult<Outcome>> {
        self.after.fetch_add(1, Ordering::SeqCst);
        let is_secret = format!("{result:?}").contains("secret");
        Box::pin(async move { if is_secret { Ok(Outcome::fail("blocked after")) } else { result } })
    }
}

/// Allows everything, after a while.
struct Large(Json);

impl SkillSchema for Large {
    fn text(&self) -> &Json {
        &self.0
    }

    fn required(&self) -> &[String] {
        &[]
    }

    fn single_text(&self) -> Option<&str> {
        None
    }

    fn allows(&self, _value: &Json, _steps: &mut u64) -> Option<bool> {
        None
    }

    fn check(&self, _root: &'static str, _value: &Json) -> SchemaCheck {
        let result: BoxFuture<'static, Result<(), String>> = Box::pin(async {
            tokio::task::yield_now().await;
            Ok(())
        });
        SchemaCheck::Large(Box::pin(std::future::ready(result)))
    }

    fn check_text(&self, root: &'static str, _text: &str) -> SchemaCheck {
        self.check(root, &self.0)
    }
}

/// Does what the message asks for.
async fn work(turn: Turn) -> AgentResult<Outcome> {
    let text = turn.text();
    let text = turn.arguments().map_or(text.as_str(), Json::as_str);
    match turn.attempt {
        1 if text.contains("retry") => Ok(Outcome::retry("busy")),
        _ if text.contains("call") => {
            let called = turn.call("inner", "hello").await?;
            Ok(Outcome::done_with(called.text()))
        }
        _ if text.contains("broken") => Err(AgentError::new("a secret error")),
        _ if text.contains("leak") => Ok(Outcome::done_with("a secret")),
        _ if text.contains("ask") => Ok(Outcome::ask("which?")),
        _ => Ok(Outcome::done_with("fine")),
    }
}

fn guarded(id: &str, input: SkillInput, guard: &Arc<Counter>) -> Skill {
    let guards = Guards::new([Arc::clone(guard) as Arc<dyn Guard>]);
    Skill { input, guards, ..Skill::new(skill(id), DynAgent::new(agent_fn(work))) }
}

/// A server for each kind of skill, with one slot, and a hidden skill that has a guard of its own.
fn servers(guard: &Arc<Counter>, inner: &Arc<Counter>) -> Vec<TestServer> {
    let schema: Arc<dyn SkillSchema> = Arc::new(Large(Json::parse("{}").unwrap()));
    let inputs = [SkillInput::Message, SkillInput::Arguments(None), SkillInput::Arguments(Some(schema))];
    let of = |skills: SkillSet| {
        let server = Setup::plain().slots(1).open();
        let hidden = HiddenSkills::new([guarded("inner", SkillInput::Message, inner)], Vec::new());
        let current = server.engine.catalog().load();
        let info: AgentInfo = current.agents("default").next().unwrap().info().clone();
        let agent = RegisteredAgent::new(info, skills).with_hidden_skills(Arc::new(hidden));
        let own = Guards::new([Arc::clone(guard) as Arc<dyn Guard>]);
        let agent = agent.with_skill("", |skill| skill.guards = own);
        server.engine.catalog().swap(Catalog::new("scripted", [agent]));
        server
    };
    let separate = inputs.map(|input| of(SkillSet::separate([guarded("only", input, guard)])));
    separate.into_iter().chain([of(DynAgent::new(agent_fn(work)).into())]).collect()
}

/// A text for the skills that get messages, else arguments.
fn message(server: usize, text: &str) -> MessageBuilder {
    match server {
        0 | 3 => msg(text),
        _ => msg("").data(&format!(r#"{{"text":{text:?}}}"#)),
    }
}

#[tokio::test]
async fn every_kind_of_call_passes_its_guards_once() {
    let (guard, inner) = <(Arc<Counter>, Arc<Counter>)>::default();
    for (number, server) in servers(&guard, &inner).iter().enumerate() {
        for (text, counts, state, status) in [
            ("hello", (1, 1), TaskState::Completed, "fine"),
            ("secret", (1, 0), TaskState::Rejected, "blocked before"),
            ("leak", (1, 1), TaskState::Failed, "blocked after"),
            ("broken", (1, 1), TaskState::Failed, "blocked after"),
            ("retry", (1, 2), TaskState::Completed, "fine"),
            ("call", (1, 1), TaskState::Completed, "fine"),
        ] {
            let (guard_before, inner_before) = (guard.counts(), inner.counts());
            let task = server.send_for_task(message(number, text)).await;
            let done = (task.status.state, status_text(&task).unwrap_or_default());
            assert_eq!(done, (state, status.to_owned()), "{number} {text}");
            let (now, calls) = (guard.counts(), u32::from(text == "call"));
            assert_eq!((now.0 - guard_before.0, now.1 - guard_before.1), counts, "{number} {text}");
            assert_eq!(inner.counts(), (inner_before.0 + calls, inner_before.1 + calls), "{number} {text}");
        }
    }
}

/// A turn that waits for a slot or is tried again has passed them; a message to a working task passes them when its turn
/// begins.
#[tokio::test]
async fn turns_that_begin_later_pass_their_guards_once() {
    let (guard, inner) = <(Arc<Counter>, Arc<Counter>)>::default();
    for (number, server) in servers(&guard, &inner).iter().enumerate() {
        let before = guard.counts();
        let text = |text| message(number, text);
        server.store.block_step("finish");
        let first = server.spawn_send(text("hello"));
        server.store.until_blocked(1).await;
        let queued = server.spawn_send(text("retry"));
        server.store.until("accept", 2).await;
        server.store.unblock_commits();
        join(first).await.unwrap();
        join(queued).await.unwrap();
        let now = guard.counts();
        assert_eq!((now.0 - before.0, now.1 - before.1), (2, 3));

        server.store.block_step("pause");
        let asked = server.send_for_task(text("ask").return_immediately()).await;
        server.store.until_blocked(1).await;
        let answered = server.spawn_send(text("retry").to(&asked.id));
        server.store.until("queuemessage", 1).await;
        server.store.unblock_commits();
        join(answered).await.unwrap();
        let last = guard.counts();
        assert_eq!((last.0 - now.0, last.1 - now.1), (2, 3));
    }
}
