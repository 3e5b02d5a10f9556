//! How messages without a skill id are routed: tables of messages with the skill that they are for, or that the router
//! has to ask. A wrong choice is worse than a question.

use std::sync::Arc;

use a2ad_outbound::agents;
use engine::{
    DynAgent, Outcome, SchemaCheck, Scope, ScopeParts, Skill, SkillInput, SkillSchema, SkillSet,
    SkillVisibility, agent_fn,
};
use protocol::{Json, Part, model::AgentSkill};

use super::common::{TestServer, message, show};

const DEMO: &str = include_str!("routing/demo.txt");
const TOOLS: &str = include_str!("routing/tools.txt");
const GITHUB: &str = include_str!("routing/github.txt");

/// Arguments with these properties.
struct Properties {
    text: Json,
    required: Vec<String>,
    allows: fn(&str) -> bool,
}

impl Properties {
    fn named(names: &str) -> Self {
        let properties: Vec<String> =
            names.split_whitespace().map(|name| format!(r#""{name}":{{}}"#)).collect();
        let text = format!(r#"{{"properties":{{{}}}}}"#, properties.join(","));
        Self { text: Json::parse(&text).unwrap(), required: Vec::new(), allows: |_| true }
    }
}

impl SkillSchema for Properties {
    fn text(&self) -> &Json {
        &self.text
    }

    fn required(&self) -> &[String] {
        &self.required
    }

    fn single_text(&self) -> Option<&str> {
        None
    }

    fn allows(&self, arguments: &Json, _: &mut u64) -> Option<bool> {
        Some((self.allows)(arguments.as_str()))
    }

    fn check(&self, _: &'static str, _: &Json) -> SchemaCheck {
        SchemaCheck::Done(Ok(()))
    }

    fn check_text(&self, _: &'static str, _: &str) -> SchemaCheck {
        SchemaCheck::Done(Ok(()))
    }
}

/// A skill whose agent answers with the id.
fn answering(card: AgentSkill) -> Skill {
    let id = card.id.clone();
    let agent = agent_fn(move |_| {
        let id = id.clone();
        async move { Outcome::artifact("chosen", vec![Part::text(id)]) }
    });
    Skill::new(card, DynAgent::new(agent))
}

fn with_schema(skill: Skill, schema: Properties) -> Skill {
    Skill { input: SkillInput::Arguments(Some(Arc::new(schema))), ..skill }
}

fn skill(id: &str, description: &str, tags: &[&str]) -> Skill {
    answering(AgentSkill {
        id: id.into(),
        name: id.into(),
        description: description.into(),
        tags: tags.iter().map(|&tag| tag.into()).collect(),
        examples: Vec::new(),
        ..agents::main_skill("echo").unwrap().card
    })
}

fn server(skills: impl IntoIterator<Item = Skill>) -> TestServer {
    TestServer::with(agents::builtin("echo").unwrap().info().clone(), SkillSet::separate(skills))
}

/// The skills of a table: `skill ID | description | properties | tag`.
fn server_of(table: &str) -> TestServer {
    let lines = table.lines().filter_map(|line| line.strip_prefix("skill "));
    server(lines.map(|line| {
        let mut fields = line.split('|').map(str::trim);
        let mut next = || fields.next().unwrap_or_default();
        let (id, description, properties, tag) = (next(), next(), next(), next());
        let tags: &[&str] = if tag.is_empty() { &[] } else { &[tag] };
        with_schema(skill(id, description, tags), Properties::named(properties))
    }))
}

/// The messages of a table: `expected | message`.
fn messages(table: &str) -> impl Iterator<Item = (&str, &str)> {
    let lines = table.lines().filter(|line| !line.starts_with('#') && !line.starts_with("skill "));
    lines.map(|line| line.split_once(" | ").expect("a skill and a message"))
}

#[derive(Debug, Default)]
struct Counts {
    right: usize,
    asked: usize,
    /// Asked although the message is clear to a person.
    unsure: usize,
    wrong: Vec<String>,
}

async fn count(server: &TestServer, table: &str) -> Counts {
    let mut counts = Counts::default();
    for (expected, text) in messages(table) {
        match chosen(&server.send_text(text).await.lines) {
            None if expected == "ask" => counts.asked += 1,
            None => counts.unsure += 1,
            Some(skill) if skill == expected => counts.right += 1,
            Some(skill) => counts.wrong.push(format!("{text:?}: {skill} instead of {expected}")),
        }
    }
    counts
}

/// The skill that has answered; `None` if the router asks.
fn chosen(lines: &[String]) -> Option<&str> {
    let answer = lines.iter().find_map(|line| line.strip_prefix("artifact chosen: "));
    assert!(answer.is_some() || lines[0].starts_with("input_required: Which skill"), "{lines:?}");
    answer
}

#[tokio::test]
async fn messages_to_the_demo_choose_a_skill_or_get_a_question() {
    // The agents behind the skills are replaced: the real ones are slow.
    let demo = agents::builtin("demo").unwrap();
    let replaced =
        |skill: &Arc<Skill>| Skill { keywords: skill.keywords.clone(), ..answering(skill.card.clone()) };
    let counts = count(&server(demo.skills().iter().map(replaced)), DEMO).await;
    assert_eq!(counts.wrong, Vec::<String>::new());
    assert_eq!((counts.right, counts.asked, counts.unsure), (27, 15, 0));
}

#[tokio::test]
async fn messages_to_tools_of_mcp_servers_choose_a_skill_or_get_a_question() {
    let counts = count(&server_of(TOOLS), TOOLS).await;
    assert_eq!(counts.wrong, Vec::<String>::new());
    assert_eq!((counts.right, counts.asked, counts.unsure), (49, 35, 18));
}

#[tokio::test]
async fn messages_to_a_large_api_choose_a_skill_or_get_a_question() {
    let counts = count(&server_of(GITHUB), GITHUB).await;
    assert_eq!(counts.wrong, Vec::<String>::new());
    assert_eq!((counts.right, counts.asked, counts.unsure), (54, 31, 20));
}

#[tokio::test]
async fn question_lists_the_skills_that_match_best() {
    let server = server_of(GITHUB);
    let asked = server.send_text("close issue 3").await.lines;
    let (text, data) = asked[0].rsplit_once(" | ").unwrap();
    assert_eq!(text.lines().count(), 12, "{text}");
    assert!(text.lines().skip(1).take(10).all(|line| line.starts_with("issues/")), "{text}");
    assert!(text.ends_with("\nand 177 more: see the agent card"), "{text}");
    assert_eq!(data.matches("issues/").count(), 10, "{data}");
    // Nothing matches.
    let asked = server.send_text("good evening").await.lines;
    assert!(
        asked[0].contains("\nemojis/get: Get emojis\n") && asked[0].contains("\nand 167 more"),
        "{asked:?}"
    );
}

#[tokio::test]
async fn data_that_fits_one_schema_chooses_its_skill() {
    type Row = (&'static str, &'static [&'static str], fn(&str) -> bool);
    let schemas: [Row; 3] = [
        ("pay", &["amount", "to"], |_| true),
        ("count", &["amount"], |arguments| !arguments.contains('.')),
        ("note", &["text"], |arguments| !arguments.contains("more")),
    ];
    let server = server(schemas.map(|(id, required, allows)| {
        let required = required.iter().map(|&name| name.to_owned()).collect();
        with_schema(skill(id, "", &[]), Properties { required, allows, ..Properties::named("") })
    }));
    for (data, expected) in [
        (r#"{"amount":1.5,"to":"Ann"}"#, Some("pay")),
        (r#"{"amount":2}"#, Some("count")),
        (r#"{"text":"hi"}"#, Some("note")),
        (r#"{"amount":2,"to":"Ann"}"#, None),
        (r#"{"text":"hi","more":1}"#, None),
        ("[1]", None),
    ] {
        let sent = server.send(message(vec![Part::data(Json::parse(data).unwrap())])).await;
        assert_eq!(chosen(&sent.lines), expected, "{data}");
    }
}

#[tokio::test]
async fn data_does_not_decide_between_too_many_schemas() {
    for (count, expected) in [(100, Some("skill0")), (101, None)] {
        let server = server((0..count).map(|number| {
            let allows: fn(&str) -> bool = if number == 0 { |_| true } else { |_| false };
            let skill = skill(&format!("skill{number}"), "", &[]);
            with_schema(skill, Properties { allows, ..Properties::named("") })
        }));
        let sent = server.send(message(vec![Part::data(Json::parse(r#"{"a":1}"#).unwrap())])).await;
        assert_eq!(chosen(&sent.lines), expected, "{count}");
    }
}

#[tokio::test]
async fn skill_for_known_callers_is_neither_chosen_nor_shown_to_others() {
    let ids = ["salary_report", "weather_report", "traffic_report"];
    let [salary, weather, traffic] = ids.map(|id| skill(id, "", &[]));
    let salary = Skill { visibility: SkillVisibility::Extended, ..salary };
    let server = server([salary, weather, traffic]);
    for text in ["salary report", "salary_report", "report"] {
        let asked = server.send_text(text).await.lines;
        assert!(asked[0].ends_with(r#"{"skills":["weather_report","traffic_report"]}"#), "{asked:?}");
        assert!(!asked[0].contains("salary"), "{asked:?}");
    }
    let known = Scope::new(ScopeParts {
        tenant: "default".into(),
        principal: "key:ann".into(),
        agent: "agent".into(),
        end_user: String::new(),
    });
    let task = server.send_as(known, message(vec![Part::text("the salary report")])).await;
    assert_eq!(show(&task.artifacts[0].parts), "salary_report");
}
