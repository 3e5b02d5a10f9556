//! Encoding options for cards.

/// Encoding options of a compatibility profile for cards before 1.0. The default is the version's own
/// form.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CardStyle {
    /// `agent.json` lists the skill ids in `capabilities.tools`.
    pub tools_in_capabilities: bool,
    /// Modes are `text`, `data` and `file` instead of media types.
    pub short_modes: bool,
    /// The card sets `capabilities.stateTransitionHistory`.
    pub state_transition_history: bool,
    /// The card omits authentication.
    pub no_security: bool,
    /// `protocolVersion` has no patch number.
    pub short_version: bool,
    /// `authentication.credentials` of `agent.json`: how clients obtain the credentials for private cards.
    pub credentials: Option<String>,
}
