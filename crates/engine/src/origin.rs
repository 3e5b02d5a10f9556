//! Through which kind of endpoint a call arrives.

use protocol::{Dialect, Json};

/// The kind of endpoint through which a call arrives. A task keeps that of the call that created it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Origin {
    /// A binding of A2A, in this dialect.
    A2a(Dialect),
    /// `/mcp`.
    Mcp,
    /// `/run/{skill}`.
    Run,
}

/// The first number in the store that is not a dialect; dialects have their own numbers.
const FIRST_OTHER: u8 = 64;

impl Origin {
    /// The number used in the store.
    pub fn number(self) -> u8 {
        match self {
            Self::A2a(dialect) => dialect.number(),
            Self::Mcp => FIRST_OTHER,
            Self::Run => FIRST_OTHER + 1,
        }
    }

    /// The origin with this number.
    pub fn from_number(number: u8) -> Option<Self> {
        let other = [Self::Mcp, Self::Run].into_iter().find(|origin| origin.number() == number);
        other.or_else(|| Dialect::from_number(number).map(Self::A2a))
    }

    /// The dialect whose rules for tasks apply.
    pub fn dialect(self) -> Dialect {
        match self {
            Self::A2a(dialect) => dialect,
            Self::Mcp | Self::Run => Dialect::V1,
        }
    }

    /// The endpoint or version as people read it, in logs and output.
    pub fn label(self) -> &'static str {
        match self {
            Self::A2a(dialect) => dialect.label(),
            Self::Mcp => "mcp",
            Self::Run => "run",
        }
    }

    /// Whether a send can be answered with a message instead of a task. Without it every send creates a visible task.
    pub fn supports_message_replies(self) -> bool {
        match self {
            Self::A2a(dialect) => dialect.rules().supports_message_replies,
            Self::Mcp | Self::Run => false,
        }
    }

    /// What the metadata of its tasks shows: `{"a2ad":{"origin":…}}`, and nothing for tasks of A2A.
    pub(crate) fn task_metadata(self) -> Option<Json> {
        match self {
            Self::A2a(_) => None,
            Self::Mcp | Self::Run => {
                let text = format!(r#"{{"a2ad":{{"origin":"{}"}}}}"#, self.label());
                Some(Json::parse(&text).expect("this is JSON"))
            }
        }
    }
}

impl From<Dialect> for Origin {
    fn from(dialect: Dialect) -> Self {
        Self::A2a(dialect)
    }
}

impl Default for Origin {
    fn default() -> Self {
        Self::A2a(Dialect::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_unique_and_those_of_dialects_are_theirs() {
        let all = Dialect::ALL.into_iter().map(Origin::A2a).chain([Origin::Mcp, Origin::Run]);
        for origin in all {
            assert_eq!(Origin::from_number(origin.number()), Some(origin));
        }
        assert_eq!(Origin::from_number(0), Some(Origin::default()));
        assert_eq!(Origin::from_number(66), None);
    }
}
