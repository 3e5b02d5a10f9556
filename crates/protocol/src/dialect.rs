//! The wire forms of the protocol's generations. Each is a set of pure encode and decode functions on the one
//! model.

mod card_style;
mod codec;
pub mod draft;
mod family;
mod frames;
pub mod legacy;
pub mod merged;
mod notification;
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

/// A generation of the protocol together with its wire form.
///
/// Code that depends on the dialect matches all variants by name, so that a new dialect does not compile until each
/// rule has been decided for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// The first public draft, up to 0.1.
    Draft,
    /// 0.2 and 0.3 over JSON-RPC.
    V03,
    /// 0.2.5 to 0.3 over HTTP+JSON and gRPC, as defined by the older protobuf file.
    V03Proto,
    /// 1.0.
    #[default]
    V1,
}

impl Dialect {
    /// Every dialect, oldest first.
    pub const ALL: [Self; 4] = [Self::Draft, Self::V03, Self::V03Proto, Self::V1];

    /// The generation as people read it, in headers, logs and output.
    pub fn label(self) -> &'static str {
        match self {
            Self::Draft => "draft",
            Self::V03 | Self::V03Proto => "0.3",
            Self::V1 => "1.0",
        }
    }

    /// The number used in the store.
    pub fn number(self) -> u8 {
        match self {
            Self::V1 => 0,
            Self::Draft => 1,
            Self::V03 => 2,
            Self::V03Proto => 3,
        }
    }

    /// The dialect with this number.
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|dialect| dialect.number() == number)
    }

    /// The JSON-RPC dialect of a version as written in headers and cards. Patch numbers are ignored.
    pub fn of_version(version: &str) -> Option<Self> {
        let mut numbers = version.split('.');
        match (numbers.next(), numbers.next()) {
            (Some("1"), None | Some("0")) => Some(Self::V1),
            (Some("0"), Some("2" | "3")) => Some(Self::V03),
            (Some("0"), Some("0" | "1")) => Some(Self::Draft),
            _ => None,
        }
    }

    /// The version to write in headers and cards.
    pub fn version(self) -> &'static str {
        match self {
            Self::Draft => draft::VERSION,
            Self::V03 | Self::V03Proto => v03::VERSION,
            Self::V1 => v1::VERSION,
        }
    }

    /// The header that lists extensions, in requests and responses.
    pub fn extensions_header(self) -> Option<&'static str> {
        match self {
            Self::Draft => None,
            Self::V03 | Self::V03Proto => Some("x-a2a-extensions"),
            Self::V1 => Some("a2a-extensions"),
        }
    }

    /// The media type of HTTP+JSON bodies.
    pub fn media_type(self) -> &'static str {
        match self {
            Self::Draft | Self::V03 | Self::V03Proto => "application/json",
            Self::V1 => "application/a2a+json",
        }
    }

    /// Whether a client that does not declare a required extension is rejected.
    pub fn requires_extensions(self) -> bool {
        match self {
            Self::V1 => true,
            Self::Draft | Self::V03 | Self::V03Proto => false,
        }
    }

    /// Whether clients accept a plain JSON error as the response to a streaming request.
    pub fn accepts_plain_stream_errors(self) -> bool {
        match self {
            Self::V1 => true,
            Self::Draft | Self::V03 | Self::V03Proto => false,
        }
    }

    /// Whether clients choose task ids: an unknown id creates a task.
    pub fn clients_choose_task_ids(self) -> bool {
        match self {
            Self::Draft => true,
            Self::V03 | Self::V03Proto | Self::V1 => false,
        }
    }

    /// Whether a message to a completed or failed task opens its next turn.
    pub fn reopens_finished_tasks(self) -> bool {
        match self {
            Self::Draft => true,
            Self::V03 | Self::V03Proto | Self::V1 => false,
        }
    }

    /// Whether a send can be answered with a message instead of a task. Without it every send creates a
    /// visible task.
    pub fn supports_message_replies(self) -> bool {
        match self {
            Self::Draft => false,
            Self::V03 | Self::V03Proto | Self::V1 => true,
        }
    }

    /// Whether the metadata of a request becomes the metadata of its task.
    pub fn copies_request_metadata(self) -> bool {
        match self {
            Self::Draft => true,
            Self::V03 | Self::V03Proto | Self::V1 => false,
        }
    }

    /// Whether tasks include their history when the request has no `historyLength`.
    pub fn includes_history_by_default(self) -> bool {
        match self {
            Self::Draft => false,
            Self::V03 | Self::V03Proto | Self::V1 => true,
        }
    }

    /// Whether a subscription stays open when the task is interrupted.
    pub fn subscription_survives_interruption(self) -> bool {
        match self {
            Self::V1 => true,
            Self::Draft | Self::V03 | Self::V03Proto => false,
        }
    }

    /// Whether every message has an id.
    pub fn has_message_ids(self) -> bool {
        match self {
            Self::Draft => false,
            Self::V03 | Self::V03Proto | Self::V1 => true,
        }
    }

    /// Whether a stream sends a whole task as one frame. Otherwise it is split into its status and its artifacts.
    pub fn streams_whole_tasks(self) -> bool {
        match self {
            Self::Draft => false,
            Self::V03 | Self::V03Proto | Self::V1 => true,
        }
    }

    /// Whether a stream identifies an artifact by its index among the task's artifacts.
    pub fn streams_artifact_indexes(self) -> bool {
        match self {
            Self::Draft => true,
            Self::V03 | Self::V03Proto | Self::V1 => false,
        }
    }

    /// Whether subscribing to a finished task yields its final status instead of an error.
    pub fn replays_final_status(self) -> bool {
        match self {
            Self::V1 => false,
            Self::Draft | Self::V03 | Self::V03Proto => true,
        }
    }
}

/// Encoding options of a compatibility profile, where a generation leaves the form open. The default is the
/// generation's own form.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Style {
    /// Write the content type of a part under both `type` and `kind`.
    pub both_tags: bool,
    /// Write `cancelled` instead of `canceled`.
    pub cancelled: bool,
    /// Write data parts as text parts that contain the JSON.
    pub data_as_text: bool,
}

/// Decoding options of a compatibility profile that relax a generation's rules. The default is strict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Leniency {
    /// Draft clients may omit the task id; the server assigns one.
    pub task_id_optional: bool,
    /// 0.3 clients may omit the message id; the server assigns one.
    pub message_id_optional: bool,
}

/// Reads the card of a remote agent and detects its generation by its members. Each interface states its own
/// protocol version.
pub fn read_card(node: Node<'_, '_>) -> Read<(Dialect, AgentCard)> {
    let object = node.object()?;
    let listed = object.present("supportedInterfaces").is_some_and(|raw| !raw.is_null());
    if listed {
        Ok((Dialect::V1, v1::card::decode(node)?))
    } else if v03::card::has_own_members(&object) {
        Ok((Dialect::V03, v03::card::decode(node)?))
    } else {
        Ok((Dialect::Draft, draft::card::decode(node)?))
    }
}
