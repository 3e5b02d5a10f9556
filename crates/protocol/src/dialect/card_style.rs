//! How a house spells its card.

/// What the cards before 1.0 leave open and houses spell in their own way. The default is the generation's own
/// spelling.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CardStyle {
    /// `capabilities.tools` lists the ids of the skills, in `agent.json`.
    pub tools_in_capabilities: bool,
    /// `text`, `data` and `file` instead of media types.
    pub modes_as_words: bool,
    /// The agent claims `capabilities.stateTransitionHistory`.
    pub state_transition_history: bool,
    /// The card says nothing about authentication.
    pub no_security: bool,
    /// `protocolVersion` without its patch number.
    pub short_version: bool,
    /// `authentication.credentials` of `agent.json`: how private cards are had.
    pub credentials: Option<String>,
}
