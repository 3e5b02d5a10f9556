//! The wire forms of the protocol's generations. Each is a set of pure functions around the one model.

mod card_style;
mod codec;
pub mod draft;
mod family;
mod frames;
pub mod legacy;
pub mod merged;
mod page;
mod query;
mod rest;
pub mod v03;
pub mod v03_proto;
pub mod v1;

pub use card_style::CardStyle;
pub use family::{MethodFamily, nearest_method, not_found, of_method};
pub use frames::Frames;

use crate::{
    AgentCard,
    json::read::{Node, Read},
};

/// A generation of the protocol's wire form.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// The first public draft, up to 0.1.
    Draft,
    /// 0.2 and 0.3 over JSON-RPC.
    V03,
    /// 0.2.5 to 0.3 over HTTP+JSON and gRPC: the older protobuf file.
    V03Proto,
    /// 1.0.
    #[default]
    V1,
}

impl Dialect {
    /// Every dialect, oldest first.
    pub const ALL: [Self; 4] = [Self::Draft, Self::V03, Self::V03Proto, Self::V1];

    /// Its name in headers and logs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Draft => "draft",
            Self::V03 => "v03",
            Self::V03Proto => "v03-proto",
            Self::V1 => "v1",
        }
    }

    /// Its number in a store.
    pub fn number(self) -> u8 {
        match self {
            Self::V1 => 0,
            Self::Draft => 1,
            Self::V03 => 2,
            Self::V03Proto => 3,
        }
    }

    /// The dialect of a number.
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|dialect| dialect.number() == number)
    }

    /// The dialect of a version as headers and cards name it, over JSON-RPC. Patch numbers take no part.
    pub fn of_version(version: &str) -> Option<Self> {
        let mut numbers = version.split('.');
        match (numbers.next(), numbers.next()) {
            (Some("1"), None | Some("0")) => Some(Self::V1),
            (Some("0"), Some("2" | "3")) => Some(Self::V03),
            (Some("0"), Some("0" | "1")) => Some(Self::Draft),
            _ => None,
        }
    }

    /// The version that headers and cards name it by.
    pub fn version(self) -> &'static str {
        match self {
            Self::Draft => draft::VERSION,
            Self::V03 | Self::V03Proto => v03::VERSION,
            Self::V1 => v1::VERSION,
        }
    }

    /// The header that names extensions, in requests and answers.
    pub fn extensions_header(self) -> Option<&'static str> {
        match self {
            Self::Draft => None,
            Self::V03 | Self::V03Proto => Some("x-a2a-extensions"),
            Self::V1 => Some("a2a-extensions"),
        }
    }

    /// What HTTP+JSON calls its bodies.
    pub fn media_type(self) -> &'static str {
        match self {
            Self::Draft | Self::V03 | Self::V03Proto => "application/json",
            Self::V1 => "application/a2a+json",
        }
    }

    /// A client that does not speak an extension that is required is refused.
    pub fn insists_on_extensions(self) -> bool {
        self == Self::V1
    }

    /// Who asks for a stream reads a refusal that is none.
    pub fn reads_plain_refusals(self) -> bool {
        self == Self::V1
    }

    /// Clients choose the ids of their tasks: one that is not known begins a task.
    pub fn clients_name_tasks(self) -> bool {
        self == Self::Draft
    }

    /// A message to a completed or failed task opens its next turn.
    pub fn reopens(self) -> bool {
        self == Self::Draft
    }

    /// A send can be answered by a bare message; where it cannot, everything is a task.
    pub fn has_bare_messages(self) -> bool {
        self != Self::Draft
    }

    /// What is said about a request is said about its task.
    pub fn describes_tasks_by_requests(self) -> bool {
        self == Self::Draft
    }

    /// Tasks show what was said though nobody asked how much of it is wanted.
    pub fn shows_history_unasked(self) -> bool {
        self != Self::Draft
    }

    /// A subscription outlives the turns in which the task waits for its client.
    pub fn subscribes_beyond_turns(self) -> bool {
        self == Self::V1
    }

    /// Subscribing to a task that is over is answered by its last status instead of an error.
    pub fn shows_the_end_again(self) -> bool {
        self != Self::V1
    }
}

/// How a house spells what its generation leaves open. The default is the generation's own spelling.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Style {
    /// Parts say what they hold under both `type` and `kind`.
    pub both_tags: bool,
    /// `cancelled` instead of `canceled`.
    pub cancelled: bool,
    /// Data parts leave as text that holds their JSON.
    pub data_as_text: bool,
}

/// What a house lets pass that its generation does not. The default is nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Leniency {
    /// Clients of the draft may leave the task's id to the server.
    pub task_id_optional: bool,
    /// Clients of 0.3 may leave the message's id to the server.
    pub message_id_optional: bool,
}

/// Reads a stranger's card, and tells the generation in whose form it is by the members it has. Each interface says
/// itself which version it speaks.
pub fn read_card(node: Node<'_, '_>) -> Read<(Dialect, AgentCard)> {
    let object = node.object()?;
    let listed = object.present("supportedInterfaces").is_some_and(|raw| !raw.is_null());
    if listed {
        Ok((Dialect::V1, v1::card::decode(node)?))
    } else if v03::card::is_marked(&object) {
        Ok((Dialect::V03, v03::card::decode(node)?))
    } else {
        Ok((Dialect::Draft, draft::card::decode(node)?))
    }
}
