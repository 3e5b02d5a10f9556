//! How an agent is served.

use protocol::model::{AgentExtension, SecurityScheme};

use super::{auth_methods::AuthMethods, profile::Profile};
use crate::{access::scope::Scope, push::PushEvents};

/// How one agent is served.
#[derive(Clone, Debug)]
pub struct AgentSettings {
    /// The compatibility profile at the agent's own path, and of its card.
    pub profile: Profile,
    /// A disabled agent rejects every call and has no card.
    pub enabled: bool,
    /// Whether streaming operations are supported.
    pub streaming: bool,
    /// Whether a response to a blocking send that takes long begins with spaces, so that clients with a short read timeout
    /// wait for it.
    pub keep_alive: bool,
    /// Whether push notifications are supported.
    pub push: bool,
    /// The events that webhooks are notified about.
    pub push_events: PushEvents,
    /// Which callers may get its extended card.
    pub extended_card: ExtendedCard,
    /// Supported protocol extensions, each marked as required or optional.
    pub extensions: Vec<AgentExtension>,
    /// Whether to reject message parts of a media type that the card does not list.
    pub check_media_types: bool,
    /// Concurrent runs of the agent; 0: a fair share of all slots.
    pub concurrent: usize,
    /// The credentials that it accepts.
    pub auth: AuthMethods,
    /// Whether callers identify the person on whose behalf they act.
    pub end_user: EndUser,
    /// Security schemes by name, as the card lists them.
    pub security: Vec<(String, SecurityScheme)>,
}

impl AgentSettings {
    /// Whether the skills that only the extended card shows exist for a caller: with a credential, or if everybody can get
    /// that card.
    pub fn sees_extended_skills(&self, caller: &Scope) -> bool {
        self.extended_card == ExtendedCard::Open || !caller.is_anonymous()
    }

    /// Whether calls without any credential are permitted.
    pub fn is_open(&self) -> bool {
        self.auth.permit_anonymous() && self.end_user == EndUser::Off
    }

    /// Whether streaming operations are supported at the agent's own path.
    pub fn offers_streaming(&self) -> bool {
        self.streaming && !self.profile.send_only
    }
}

impl Default for AgentSettings {
    fn default() -> Self {
        Self {
            profile: Profile::neutral(),
            enabled: true,
            streaming: true,
            keep_alive: true,
            push: false,
            push_events: PushEvents::default(),
            extended_card: ExtendedCard::default(),
            extensions: Vec::new(),
            check_media_types: true,
            concurrent: 0,
            auth: AuthMethods::default(),
            end_user: EndUser::default(),
            security: Vec::new(),
        }
    }
}

/// Which callers may get an agent's extended card.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ExtendedCard {
    /// None: the public card declares that there is no extended card.
    #[default]
    Off,
    /// All callers.
    Open,
    /// Callers with a credential.
    Protected,
    /// None, although the public card declares one. For testing clients.
    Missing,
}

/// Whether callers identify the person on whose behalf they act.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EndUser {
    /// No: tasks belong to the caller.
    #[default]
    Off,
    /// With every call, by a token of that person. Tasks belong to the caller and the person together.
    Required,
}
