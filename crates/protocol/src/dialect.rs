//! The wire forms of the protocol's versions. Each is a set of pure encode and decode functions on the one
//! model.

pub(crate) mod card;
mod card_style;
mod codec;
pub mod draft;
mod family;
mod frames;
pub mod legacy;
pub mod merged;
mod notification;
mod page;
mod projection;
mod proto_json;
mod query;
mod rest;
mod rules;
pub mod v03;
pub mod v03_proto;
pub mod v1;

pub use card_style::CardStyle;
pub use family::{MethodFamily, nearest_method, not_found, of_method};
pub use frames::Frames;
pub use rules::DialectRules;

use crate::{
    AgentCard,
    json::read::{Node, Read},
};

/// A version of the protocol together with its wire form.
///
/// Code asks for a rule ([`Dialect::rules`]) or matches all variants by name, so that a new dialect does not compile until
/// each rule has been decided for it.
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

    /// The version as people read it, in headers, logs and output.
    pub fn label(self) -> &'static str {
        self.rules().label
    }

    /// The version to write in headers and cards.
    pub fn version(self) -> &'static str {
        self.rules().version
    }

    /// The number used in the store.
    pub fn number(self) -> u8 {
        self.rules().number
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
}

/// Encoding options of a compatibility profile, where a version leaves the form open. The default is the
/// version's own form.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Style {
    /// Write the content type of a part under both `type` and `kind`.
    pub both_tags: bool,
    /// Write `cancelled` instead of `canceled`.
    pub cancelled: bool,
    /// Write data parts as text parts that contain the JSON.
    pub data_as_text: bool,
    /// Write a completed status without a message with the text of the artifacts as its message, with which the history
    /// ends.
    pub answer_in_status: bool,
    /// Write each artifact update with a status, whose message has the text so far.
    pub status_in_artifacts: bool,
    /// Write states that the draft has no name for as the closest one that it has.
    pub draft_states: bool,
    /// Write `id` beside `taskId` in updates.
    pub update_ids: bool,
    /// Write when a task was created.
    pub created_at: bool,
}

impl Style {
    /// The version's own form.
    pub const OWN: Self = Self {
        both_tags: false,
        cancelled: false,
        data_as_text: false,
        answer_in_status: false,
        status_in_artifacts: false,
        draft_states: false,
        update_ids: false,
        created_at: false,
    };
}

/// Decoding options of a compatibility profile that relax a version's rules. The default is strict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Leniency {
    /// Draft clients may omit the task id; the server assigns one.
    pub task_id_optional: bool,
    /// 0.3 clients may omit the message id; the server assigns one.
    pub message_id_optional: bool,
    /// A send may have its idempotency key in the parameter `idempotencyKey`.
    pub key_in_params: bool,
}

/// Reads the card of a remote agent and detects its version by its members. Each interface states its own
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
