//! House styles: how a door behaves where the protocol leaves it open, or a platform went its own way. All of it is
//! data; nothing else asks for a profile by name.

use engine::TaskPolicy;
use protocol::{
    Dialect, ErrorKind,
    dialect::{CardStyle, Leniency, Style},
};

/// The knobs of a door.
#[derive(Clone, Debug)]
pub struct Profile {
    /// Shown in the `A2AD-Dialect` header.
    pub name: &'static str,
    /// What a finished send is answered with.
    pub reply: ReplyForm,
    /// What clients may leave out.
    pub leniency: Leniency,
    /// How conversations and what was said in them are treated.
    pub task_policy: TaskPolicy,
    /// The dialect of the method names that several generations share, where nothing else tells.
    pub shared_names: Option<Dialect>,
    /// How answers are spelled.
    pub style: Style,
    /// Only sends that are answered at once are served.
    pub send_only: bool,
    /// What a run that failed is answered with.
    pub failed_reply: FailedReply,
    /// What asking for a stream is answered with where there are none.
    pub stream_off: ErrorKind,
    /// How a caller that is not let in is told so.
    pub auth: AuthForm,
    /// How the card is spelled.
    pub card: CardForm,
    /// Whether webhooks are offered where the agent does not say.
    pub push_default: bool,
}

/// What a finished send is answered with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplyForm {
    /// The task.
    Task,
    /// What the task produced, as a message.
    Message,
}

/// What a run that failed is answered with; the task is stored as failed either way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailedReply {
    /// The failed task.
    Task,
    /// An internal error, for failed and rejected tasks.
    Error,
    /// An internal error where the agent panicked, else the failed task.
    ErrorAfterPanic,
}

/// How a caller that is not let in is told so, beside the usual body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuthForm {
    /// 401, or 403 where the credential is good and not good enough.
    Usual,
    /// 403 for everything.
    Forbidden,
    /// The usual statuses with the code -32001.
    OldCode,
}

/// How a card is spelled.
#[derive(Clone, Debug, Default)]
pub struct CardForm {
    /// `url` is the origin instead of the endpoint; only where the origin takes calls for this agent.
    pub origin: bool,
    /// The path `/` keeps what the card promises, so that the card there may name it; else it names the agent's own.
    pub root: bool,
    /// The one media type in and out, whatever the agent says of itself.
    pub mode: Option<&'static str>,
    /// The version of the agent, whatever it says of itself.
    pub version: Option<&'static str>,
    /// How the members before 1.0 are spelled.
    pub style: CardStyle,
}

impl Profile {
    /// The protocol's own way.
    pub fn neutral() -> Self {
        Self {
            name: "neutral",
            reply: ReplyForm::Task,
            leniency: Leniency::default(),
            task_policy: TaskPolicy::default(),
            shared_names: None,
            style: Style::default(),
            send_only: false,
            failed_reply: FailedReply::Task,
            stream_off: ErrorKind::UnsupportedOperation,
            auth: AuthForm::Usual,
            card: CardForm { root: true, ..CardForm::default() },
            push_default: true,
        }
    }

    /// fold.run: skills called with bare arguments, results as JSON text.
    pub fn fold() -> Self {
        Self {
            name: "fold",
            leniency: Leniency { task_id_optional: true, ..Leniency::default() },
            shared_names: Some(Dialect::Draft),
            style: Style { data_as_text: true, ..Style::default() },
            failed_reply: FailedReply::ErrorAfterPanic,
            card: CardForm {
                origin: true,
                root: true,
                mode: Some("application/json"),
                version: None,
                style: CardStyle { no_security: true, ..CardStyle::default() },
            },
            push_default: false,
            ..Self::neutral()
        }
    }

    /// Pinkfish: one synchronous method that answers with messages, conversations instead of tasks.
    pub fn pinkfish() -> Self {
        Self {
            name: "pinkfish",
            reply: ReplyForm::Message,
            task_policy: TaskPolicy {
                resume_by_context: true,
                known_contexts_only: true,
                ..TaskPolicy::default()
            },
            shared_names: Some(Dialect::V03),
            send_only: true,
            failed_reply: FailedReply::Error,
            stream_off: ErrorKind::MethodNotFound,
            auth: AuthForm::Forbidden,
            card: CardForm::default(),
            push_default: false,
            ..Self::neutral()
        }
    }

    /// agent-native: 0.3 with parts tagged the draft's way too.
    pub fn agent_native() -> Self {
        Self {
            name: "agent-native",
            leniency: Leniency { message_id_optional: true, ..Leniency::default() },
            shared_names: Some(Dialect::V03),
            style: Style { both_tags: true, ..Style::default() },
            stream_off: ErrorKind::MethodNotFound,
            auth: AuthForm::OldCode,
            card: CardForm {
                origin: true,
                root: true,
                mode: None,
                version: Some("1.0.0"),
                style: CardStyle {
                    state_transition_history: true,
                    short_version: true,
                    ..CardStyle::default()
                },
            },
            push_default: false,
            ..Self::neutral()
        }
    }

    /// AgentOS: the draft with two l and the whole history.
    pub fn agentos() -> Self {
        Self {
            name: "agentos",
            shared_names: Some(Dialect::Draft),
            style: Style { cancelled: true, ..Style::default() },
            task_policy: TaskPolicy { whole_history: true, ..TaskPolicy::default() },
            card: CardForm {
                style: CardStyle {
                    tools_in_capabilities: true,
                    modes_as_words: true,
                    ..CardStyle::default()
                },
                ..CardForm::default()
            },
            ..Self::neutral()
        }
    }

    /// The protocol's own way at a path that only clients of the draft know.
    pub(crate) fn draft_alias() -> Self {
        Self { shared_names: Some(Dialect::Draft), ..Self::neutral() }
    }
}

impl Default for Profile {
    fn default() -> Self {
        Self::neutral()
    }
}
