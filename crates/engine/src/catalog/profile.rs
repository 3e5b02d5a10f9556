//! Compatibility profiles: how an endpoint behaves where the protocol leaves a choice or a platform deviates from it. A
//! profile is only data; no other code refers to a profile by name.

use protocol::{
    Dialect, ErrorKind,
    dialect::{CardStyle, Leniency, Style},
    model::SecurityScheme,
};

use crate::engine::TaskPolicy;

/// The compatibility options of an endpoint.
#[derive(Clone, Debug)]
pub struct Profile {
    /// Sent in the `A2AD-Dialect` header.
    pub name: &'static str,
    /// The reply to a send whose task completed.
    pub reply: ReplyForm,
    /// Which required fields clients may omit.
    pub leniency: Leniency,
    /// How the engine treats contexts and history.
    pub task_policy: TaskPolicy,
    /// The dialect of method names that several versions share, if nothing else determines it.
    pub shared_names: Option<Dialect>,
    /// Variations in the encoding of replies.
    pub style: Style,
    /// Only message sends that wait for the result are supported.
    pub send_only: bool,
    /// The reply to a send whose task failed.
    pub failed_reply: FailedReply,
    /// The error for a streaming request to an agent that does not stream.
    pub stream_off: ErrorKind,
    /// The form of authentication and authorization errors.
    pub auth: AuthForm,
    /// The HTTP status of a JSON-RPC response to a caller that calls too often, which also has `Retry-After`.
    pub rate_limited_status: u16,
    /// Variations of the agent card.
    pub card: CardForm,
    /// Whether push notifications are offered if the agent's configuration does not specify it.
    pub push_default: bool,
    /// How many finished tasks are kept if the configuration does not specify it.
    pub max_tasks: Option<u64>,
}

/// The reply to a send whose task completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplyForm {
    /// The task.
    Task,
    /// A message with the task's results.
    Message,
}

/// The reply to a send whose task failed; the task is stored as failed in any case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailedReply {
    /// The failed task.
    Task,
    /// An internal error if the task failed or was rejected.
    Error,
    /// An internal error if the agent panicked or what does its work did not respond, otherwise the failed task.
    ErrorIfBroken,
}

/// Status and code of authentication and authorization errors; the body does not change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuthForm {
    /// 401, or 403 for a valid credential without the required permission.
    Standard,
    /// 403 for everything.
    Forbidden,
    /// The standard statuses with the JSON-RPC code -32001.
    LegacyCode,
}

/// Variations of an agent card.
#[derive(Clone, Debug, Default)]
pub struct CardForm {
    /// `url` is the origin instead of the endpoint; only for the agent that the origin serves.
    pub origin: bool,
    /// The card at the root names `/`; otherwise it names the agent's own path.
    pub root: bool,
    /// The default input and output media types shown, in place of the agent's own; none: its own.
    pub modes: &'static [&'static str],
    /// Skills have these media types too, in place of their own.
    pub modes_of_skills: bool,
    /// Names of HTTP authentication schemes are in lower case.
    pub lower_case_schemes: bool,
    /// The agent version shown, in place of the agent's own.
    pub version: Option<&'static str>,
    /// Variations of card fields before 1.0.
    pub style: CardStyle,
}

impl CardForm {
    /// A security scheme as the card shows it.
    pub fn scheme(&self, shown: SecurityScheme) -> SecurityScheme {
        match shown {
            SecurityScheme::HttpAuth { description, scheme, bearer_format } if self.lower_case_schemes => {
                SecurityScheme::HttpAuth { description, scheme: scheme.to_lowercase(), bearer_format }
            }
            shown => shown,
        }
    }
}

impl Profile {
    /// The behaviour of the A2A specification.
    pub fn neutral() -> Self {
        Self {
            name: "neutral",
            reply: ReplyForm::Task,
            leniency: Leniency::default(),
            task_policy: TaskPolicy::default(),
            shared_names: None,
            style: Style::OWN,
            send_only: false,
            failed_reply: FailedReply::Task,
            stream_off: ErrorKind::UnsupportedOperation,
            auth: AuthForm::Standard,
            rate_limited_status: 429,
            max_tasks: None,
            card: CardForm { root: true, ..CardForm::default() },
            push_default: true,
        }
    }

    /// fold.run: skills are called with bare arguments, results are JSON text.
    pub fn fold() -> Self {
        Self {
            name: "fold",
            leniency: Leniency { task_id_optional: true, ..Leniency::default() },
            task_policy: TaskPolicy { refuse_invalid_arguments: true, ..TaskPolicy::default() },
            shared_names: Some(Dialect::Draft),
            style: Style { data_as_text: true, draft_states: true, ..Style::OWN },
            failed_reply: FailedReply::ErrorIfBroken,
            card: CardForm {
                origin: true,
                root: true,
                modes: &["application/json"],
                modes_of_skills: true,
                style: CardStyle { no_security: true, ..CardStyle::default() },
                ..CardForm::default()
            },
            push_default: false,
            ..Self::neutral()
        }
    }

    /// Pinkfish: one synchronous method that replies with messages; contexts instead of tasks.
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
            rate_limited_status: 200,
            card: CardForm { modes: &["text/plain"], ..CardForm::default() },
            push_default: false,
            ..Self::neutral()
        }
    }

    /// agent-native: 0.3, with parts that also have the draft's type tag, and with the agent's text in every status.
    pub fn agent_native() -> Self {
        Self {
            name: "agent-native",
            leniency: Leniency { message_id_optional: true, key_in_params: true, ..Leniency::default() },
            task_policy: TaskPolicy { resume_by_context: true, ..TaskPolicy::default() },
            shared_names: Some(Dialect::V03),
            style: Style {
                both_tags: true,
                answer_in_status: true,
                status_in_artifacts: true,
                draft_states: true,
                update_ids: true,
                ..Style::OWN
            },
            stream_off: ErrorKind::MethodNotFound,
            auth: AuthForm::LegacyCode,
            card: CardForm {
                origin: true,
                root: true,
                modes: &["text", "text/plain"],
                lower_case_schemes: true,
                version: Some("1.0.0"),
                style: CardStyle {
                    state_transition_history: true,
                    short_version: true,
                    ..CardStyle::default()
                },
                ..CardForm::default()
            },
            push_default: false,
            ..Self::neutral()
        }
    }

    /// AgentOS: the draft, with the spelling `cancelled`, the agent's text in the status, and the whole history.
    pub fn agentos() -> Self {
        Self {
            name: "agentos",
            leniency: Leniency { message_id_optional: true, ..Leniency::default() },
            shared_names: Some(Dialect::Draft),
            style: Style {
                cancelled: true,
                answer_in_status: true,
                draft_states: true,
                created_at: true,
                ..Style::OWN
            },
            max_tasks: Some(1_000),
            task_policy: TaskPolicy { always_include_history: true, ..TaskPolicy::default() },
            card: CardForm {
                modes: &["text/plain"],
                style: CardStyle { tools_in_capabilities: true, short_modes: true, ..CardStyle::default() },
                ..CardForm::default()
            },
            ..Self::neutral()
        }
    }

    /// The specification's behaviour, at a path that only clients of the draft use.
    pub fn draft_alias() -> Self {
        Self { shared_names: Some(Dialect::Draft), ..Self::neutral() }
    }
}

impl Default for Profile {
    fn default() -> Self {
        Self::neutral()
    }
}
