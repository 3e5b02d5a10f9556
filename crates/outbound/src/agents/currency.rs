//! Converts an amount from one currency into another, and asks for missing parts of the question.
//!
//! The parsed question is saved with every turn, so that the next message needs only the missing part, or the
//! part to change after an answer: "and in EUR?". A new task of the same conversation takes it from the
//! earlier messages.

mod question;
mod rates;

use engine::{Agent, AgentResult, Conversation, Error, ExecutionPolicy, Outcome, Turn};
use protocol::{Artifact, Content, Message, Part, Role, model::AgentSkill};

use question::{Missing, Question};

/// Converts amounts between currencies.
pub struct Currency;

pub(super) const ABOUT: &str = "Converts amounts between currencies, at bundled rates of April 2025";

pub(super) fn skills() -> Vec<AgentSkill> {
    let tags = ["currency", "money", "exchange", "convert", "rate"];
    let examples = ["How much is the exchange rate for 1 USD to INR?", "how much is 1 USD?"];
    vec![super::skill("currency", "Currency", ABOUT, &tags, &examples)]
}

/// All currency codes and names, in lower case.
pub(super) fn words() -> impl Iterator<Item = String> {
    rates::words().map(str::to_lowercase)
}

impl Agent for Currency {
    async fn run(&self, turn: Turn) -> AgentResult<Outcome> {
        let Some(text) = text_of(&turn.message) else {
            let text = "I cannot read files. Please write your question, such as: 10 USD in INR";
            return Ok(Outcome::ask(text));
        };
        let asked = Question::read(&text);
        let asks_nothing = asked == Question::default();
        let (question, answers) = match turn.saved().unwrap_or_default().and_then(from_saved) {
            Some((earlier, answers)) => (asked.following(earlier), answers),
            None => match resolve_first_question(asked, &turn.conversation).await {
                Ok(question) => (question, 0),
                Err(_) => return Ok(Outcome::retry("I cannot read the earlier messages.")),
            },
        };
        let answer = match question.answer() {
            Ok(answer) if !asks_nothing => answer,
            unanswered => {
                // The earlier question is still saved, but this message does not repeat it.
                let missing = unanswered.err().unwrap_or(Missing::Everything);
                turn.record().working().save(&saved(&question, answers)).await?;
                return Ok(Outcome::ask(ask(&missing)));
            }
        };
        for progress in ["Looking up the exchange rates...", "Processing the exchange rates.."] {
            turn.progress(progress).await?;
        }
        let artifact = artifact(answers, answer);
        turn.record().artifact(artifact).save(&saved(&question, answers + 1)).await?;
        Ok(Outcome::done())
    }

    fn policy(&self) -> ExecutionPolicy {
        ExecutionPolicy::default().with_overlap(true)
    }
}

/// The first question of a task: parts it leaves open are taken from the conversation.
async fn resolve_first_question(asked: Question, conversation: &Conversation) -> Result<Question, Error> {
    if let Some(standalone) = asked.standalone() {
        return Ok(standalone);
    }
    let messages = conversation.messages().await?;
    let text = messages.iter().filter(|message| message.role == Role::User).filter_map(text_of);
    let earlier = text.fold(Question::default(), |earlier, text| earlier.merge_earlier_message(&text));
    Ok(asked.following(earlier))
}

/// The text and data parts of a message as one text; JSON names and values parse like a question too. `None`
/// for files only.
fn text_of(message: &Message) -> Option<String> {
    let words = message.parts.iter().filter_map(|part| match &part.content {
        Content::Text(text) => Some(text.as_str()),
        Content::Data(json) => Some(json.as_str()),
        Content::Raw(_) | Content::Url(_) => None,
    });
    let words: Vec<&str> = words.collect();
    (!words.is_empty()).then(|| words.join(" "))
}

fn ask(missing: &Missing) -> String {
    match missing {
        Missing::Everything => "What shall I convert? Ask, for example: how much is 10 USD in INR?".into(),
        Missing::Source => "Which currency do you want to convert from?".into(),
        Missing::Target => "Which currency do you want to convert to?".into(),
        Missing::Rate(code) => format!(
            "I have no rate for {code}. Which currency do you want instead? I know {}.",
            rates::codes().collect::<Vec<_>>().join(", ")
        ),
    }
}

/// A finished artifact never changes: another answer in the same task is another artifact.
fn artifact(answers: u32, answer: String) -> Artifact {
    let id = if answers == 0 { "currency-result".into() } else { format!("currency-result-{}", answers + 1) };
    Artifact { name: None, ..Artifact::new(id, vec![Part::text(answer)]) }
}

/// Checkpoint: the number of answers in this task, and the question so far.
type Saved = (u32, String);

fn saved(question: &Question, answers: u32) -> Saved {
    (answers, question.save())
}

fn from_saved((answers, question): Saved) -> Option<(Question, u32)> {
    Some((Question::from_saved(&question)?, answers))
}
