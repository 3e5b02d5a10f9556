//! The forms of a card, by name.

use a2ad_protocol::{
    AgentCard, Violation,
    dialect::{self, CardStyle, Dialect, draft, merged, v1, v03, v03_proto},
    json::{
        Raw,
        read::{Node, Path},
        write::Writer,
    },
};

/// The form a card is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    V1,
    V03,
    V03Proto,
    AgentJson,
    Merged,
}

impl Form {
    /// The forms a 0.3 card round-trips in.
    pub(crate) const OLD: [Self; 3] = [Self::V03, Self::V03Proto, Self::AgentJson];

    pub(crate) fn encode(self, card: &AgentCard) -> String {
        self.encode_styled(card, &CardStyle::default())
    }

    pub(crate) fn encode_styled(self, card: &AgentCard, style: &CardStyle) -> String {
        let mut writer = Writer::new();
        match self {
            Self::V1 => v1::card::encode(&mut writer, card),
            Self::V03 => v03::card::encode_styled(&mut writer, card, style),
            Self::V03Proto => v03_proto::card::encode_styled(&mut writer, card, style),
            Self::AgentJson => draft::card::encode_styled(&mut writer, card, style),
            Self::Merged => merged::encode_styled(&mut writer, card, style),
        }
        String::from_utf8(writer.finish()).unwrap()
    }

    pub(crate) fn decode(self, text: &str) -> Result<AgentCard, Violation> {
        let node = Node::new(Raw::parse_text(text).unwrap(), &Path::Root);
        match self {
            Self::V1 => v1::card::decode(node),
            Self::V03 => v03::card::decode(node),
            Self::V03Proto => v03_proto::card::decode(node),
            Self::AgentJson => draft::card::decode(node),
            Self::Merged => merged::decode(node),
        }
    }
}

/// Reads the card of a remote agent.
pub(crate) fn read(text: &str) -> Result<(Dialect, AgentCard), Violation> {
    dialect::read_card(Node::new(Raw::parse_text(text).unwrap(), &Path::Root))
}

pub(crate) fn sample(name: &str) -> String {
    std::fs::read_to_string(format!("tests/cards/samples/{name}")).unwrap()
}

/// A 1.0 card from a file.
pub(crate) fn card(name: &str) -> AgentCard {
    Form::V1.decode(&sample(name)).unwrap()
}
