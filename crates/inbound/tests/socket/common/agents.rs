//! Agents for single tests.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use engine::{
    Agent, AgentInfo, AgentResult, DeclaredSchema, DynAgent, Outcome, RegisteredAgent, SkillInput, SkillSet,
    SkillVisibility, Turn, agent_fn,
};
use protocol::{Content, Json, Part, model::AgentSkill};
use tokio::sync::Semaphore;

/// An agent with one skill of the same name.
fn registered(name: &str, agent: impl Agent) -> RegisteredAgent {
    with_skills(name, &[name], agent)
}

/// An agent with these skills.
fn with_skills(name: &str, skills: &[&str], agent: impl Agent) -> RegisteredAgent {
    let skill = |id: &&str| AgentSkill {
        id: (*id).into(),
        name: (*id).into(),
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
        input_modes: vec!["text/plain".into()],
        output_modes: vec!["text/plain".into()],
    };
    RegisteredAgent::new(info, SkillSet::of_cards(DynAgent::new(agent), skills.iter().map(skill)))
}

/// The same agent, with a skill that only the extended card shows.
pub(crate) fn with_extended_skill(agent: RegisteredAgent, skill: &str) -> RegisteredAgent {
    agent.with_skill(skill, |skill| skill.visibility = SkillVisibility::Extended)
}

/// The same agent, with schemas of a skill that it checks itself.
pub(crate) fn with_schemas(
    agent: RegisteredAgent,
    skill: &str,
    input: &str,
    output: &str,
) -> RegisteredAgent {
    let schema = |text| Arc::new(DeclaredSchema(Json::parse(text).unwrap()));
    agent.with_skill(skill, |skill| {
        skill.input = SkillInput::Arguments(Some(schema(input)));
        skill.output = Some(schema(output));
    })
}

/// An agent that is an async function.
pub(crate) fn of_turn<F, T>(name: &str, run: F) -> RegisteredAgent
where
    F: Fn(Turn) -> T + Send + Sync + 'static,
    T: Future<Output = Outcome> + Send + 'static,
{
    registered(name, agent_fn(run))
}

/// Panics.
pub(crate) fn panics() -> RegisteredAgent {
    async fn run(_: Turn) {
        panic!("panic of the test")
    }
    registered("panics", agent_fn(run))
}

/// Fails with a message.
pub(crate) fn fails() -> RegisteredAgent {
    registered("fails", agent_fn(async |_| Outcome::fail("out of paper")))
}

/// Responds with a bare message.
pub(crate) fn chats() -> RegisteredAgent {
    async fn run(turn: Turn) -> Outcome {
        Outcome::message(format!("reply to {}", turn.text()))
    }
    registered("chats", agent_fn(run))
}

/// Writes `one`, `two` and `three` into an artifact, each after a permit of the semaphore.
pub(crate) fn paced() -> (RegisteredAgent, Arc<Semaphore>) {
    struct Paced(Arc<Semaphore>);
    impl Agent for Paced {
        async fn run(&self, turn: Turn) -> AgentResult<Outcome> {
            turn.record().working().await?;
            for text in ["one", "two"] {
                self.0.acquire().await?.forget();
                turn.chunk("words", text).await?;
            }
            self.0.acquire().await?.forget();
            turn.record().last_chunk("words", "three").await?;
            Ok(Outcome::done())
        }
    }
    let pace = Arc::new(Semaphore::new(0));
    (registered("paced", Paced(Arc::clone(&pace))), pace)
}

/// Responds with data of 40 nested objects, which is deeper than a request may be.
pub(crate) fn deep() -> RegisteredAgent {
    async fn run(_: Turn) -> Outcome {
        let data = Json::parse(&format!("{}1{}", r#"{"a":"#.repeat(40), "}".repeat(40))).unwrap();
        Outcome::artifact("deep", Part::data(data))
    }
    registered("deep", agent_fn(run))
}

/// Writes many large chunks: more than connections buffer.
pub(crate) fn floods() -> RegisteredAgent {
    async fn run(turn: Turn) -> AgentResult<Outcome> {
        for _ in 0..1_500 {
            turn.chunk("flood", "x".repeat(16 << 10)).await?;
        }
        Ok(Outcome::done())
    }
    registered("floods", agent_fn(run))
}

/// Has these skills; each responds in the form that the message names.
pub(crate) fn skilled(skills: &[&str]) -> RegisteredAgent {
    async fn run(turn: Turn) -> Outcome {
        let file = |name: &str| Part {
            media_type: Some("image/x-test".into()),
            filename: Some(name.into()),
            ..Part::new(Content::Raw(vec![0, b'a', b'\n']))
        };
        match turn.text().as_str() {
            "nothing" => Outcome::done(),
            "file" => Outcome::artifact("a", file("a \u{fc}.bin")),
            "document" => {
                let document = Part { media_type: None, ..file("a.bin") };
                Outcome::artifact("a", document)
            }
            "url" => Outcome::artifact("a", Part::new(Content::Url("http://example.test/x".into()))),
            "markdown" => {
                Outcome::artifact("a", Part { media_type: Some("text/markdown".into()), ..Part::text("# x") })
            }
            "html" => {
                let page = Part::text("<script>alert(1)</script>");
                Outcome::artifact("a", Part { media_type: Some("text/html".into()), ..page })
            }
            "two" => Outcome::artifact("a", vec![Part::text("one"), Part::data(Json::parse("[2]").unwrap())]),
            "reject" => Outcome::reject("arguments.x: expected a number"),
            text => Outcome::fail(format!("no form {text:?}")),
        }
    }
    with_skills("skilled", skills, agent_fn(run))
}

/// Asks for a form with two fields, then returns what it was given.
pub(crate) fn asks_for_a_form() -> RegisteredAgent {
    async fn run(turn: Turn) -> AgentResult<Outcome> {
        if turn.saved::<bool>()?.is_some() {
            return Ok(Outcome::artifact("form", turn.message.parts.clone()));
        }
        let schema = r#"{"type":"object","properties":{"name":{"type":"string"},"age":{"type":"integer"}},
            "required":["name"]}"#;
        let question = vec![Part::text("Who?"), Part::data(Json::parse(schema).unwrap())];
        turn.record().save(&true).then(Outcome::ask(question))
    }
    registered("form", agent_fn(run))
}

/// Responds with the principal and the end user of its caller; its runs are counted.
pub(crate) fn who_calls() -> (RegisteredAgent, Arc<AtomicUsize>) {
    struct WhoCalls(Arc<AtomicUsize>);
    impl Agent for WhoCalls {
        async fn run(&self, turn: Turn) -> AgentResult<Outcome> {
            self.0.fetch_add(1, Ordering::Relaxed);
            let caller = turn.scope.parts();
            Ok(Outcome::message(format!("<{}|{}>", caller.principal, caller.end_user)))
        }
    }
    let runs = Arc::new(AtomicUsize::new(0));
    (registered("who", WhoCalls(Arc::clone(&runs))), runs)
}
