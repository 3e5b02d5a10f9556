//! Agents for single tests.

use std::sync::Arc;

use engine::{Agent, AgentInfo, Outcome, RegisteredAgent, Turn, Update, Updates};
use futures_util::{FutureExt as _, future::BoxFuture};
use protocol::{Artifact, Json, Part, model::AgentSkill};
use tokio::sync::Semaphore;

/// An agent with one skill of the same name.
fn registered(name: &str, agent: Arc<dyn Agent>) -> RegisteredAgent {
    let skill = AgentSkill {
        id: name.into(),
        name: name.into(),
        description: "for a test".into(),
        tags: vec!["test".into()],
        examples: Vec::new(),
        input_modes: Vec::new(),
        output_modes: Vec::new(),
        security_requirements: Vec::new(),
    };
    let info = AgentInfo {
        id: name.into(),
        name: name.into(),
        description: "for a test".into(),
        version: "1.2.3".into(),
        skills: vec![skill],
        input_modes: vec!["text/plain".into()],
        output_modes: vec!["text/plain".into()],
    };
    RegisteredAgent::new(info, agent)
}

/// Panics.
pub(crate) fn panics() -> RegisteredAgent {
    struct Panics;
    impl Agent for Panics {
        fn run(&self, _: Turn, _: Updates) -> BoxFuture<'static, Outcome> {
            async { panic!("panic of the test") }.boxed()
        }
    }
    registered("panics", Arc::new(Panics))
}

/// Fails with a message.
pub(crate) fn fails() -> RegisteredAgent {
    struct Fails;
    impl Agent for Fails {
        fn run(&self, turn: Turn, _: Updates) -> BoxFuture<'static, Outcome> {
            let message = Some(turn.reply_text("out of paper"));
            async { Outcome::Failed { message, retryable: false } }.boxed()
        }
    }
    registered("fails", Arc::new(Fails))
}

/// Responds with a bare message.
pub(crate) fn chats() -> RegisteredAgent {
    struct Chats;
    impl Agent for Chats {
        fn run(&self, turn: Turn, out: Updates) -> BoxFuture<'static, Outcome> {
            async move {
                out.message(turn.reply_text(format!("reply to {}", turn.message.text()))).await;
                Outcome::done()
            }
            .boxed()
        }
    }
    registered("chats", Arc::new(Chats))
}

/// Writes `one`, `two` and `three` into an artifact, each after a permit of the semaphore.
pub(crate) fn paced() -> (RegisteredAgent, Arc<Semaphore>) {
    struct Paced(Arc<Semaphore>);
    impl Agent for Paced {
        fn run(&self, _: Turn, out: Updates) -> BoxFuture<'static, Outcome> {
            let pace = Arc::clone(&self.0);
            async move {
                out.working(None).await;
                for (at, text) in ["one", "two", "three"].into_iter().enumerate() {
                    pace.acquire().await.unwrap().forget();
                    let artifact = Artifact::new("words", vec![Part::text(text)]);
                    out.say([Update::Artifact { artifact, append: at > 0, last: at == 2 }]).await;
                }
                Outcome::done()
            }
            .boxed()
        }
    }
    let pace = Arc::new(Semaphore::new(0));
    (registered("paced", Arc::new(Paced(Arc::clone(&pace)))), pace)
}

/// Responds with data of 40 nested objects, which is deeper than a request may be.
pub(crate) fn deep() -> RegisteredAgent {
    struct Deep;
    impl Agent for Deep {
        fn run(&self, _: Turn, out: Updates) -> BoxFuture<'static, Outcome> {
            let data = Json::parse(&format!("{}1{}", r#"{"a":"#.repeat(40), "}".repeat(40))).unwrap();
            async move {
                let artifact = Artifact::new("deep", vec![Part::data(data)]);
                out.say([Update::Artifact { artifact, append: false, last: true }]).await;
                Outcome::done()
            }
            .boxed()
        }
    }
    registered("deep", Arc::new(Deep))
}

/// Writes many large chunks: more than connections buffer.
pub(crate) fn floods() -> RegisteredAgent {
    struct Floods;
    impl Agent for Floods {
        fn run(&self, _: Turn, out: Updates) -> BoxFuture<'static, Outcome> {
            async move {
                for at in 0..1_500 {
                    let artifact = Artifact::new("flood", vec![Part::text("x".repeat(16 << 10))]);
                    out.say([Update::Artifact { artifact, append: at > 0, last: false }]).await;
                }
                Outcome::done()
            }
            .boxed()
        }
    }
    registered("floods", Arc::new(Floods))
}
