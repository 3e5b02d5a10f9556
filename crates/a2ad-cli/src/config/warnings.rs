//! What an operator should know about who may call: listeners that are refused, and warnings for the log and
//! `a2ad check`.

use a2ad::internal::{ListenAddress, is_loopback};
use engine::{AuthMethod, Clock, EndUser};
use inbound::RouteSet;

use super::{AgentAuth, AgentConfig, AuthConfig, Config, Mode};

impl AgentConfig {
    /// What the agent requires and the server cannot verify, one text each.
    pub(crate) fn warnings(&self, auth: &AuthConfig) -> Vec<String> {
        let listed = self.auth.list().iter().filter_map(|method| auth.missing(*method)).map(str::to_owned);
        let end_user = match self.definition.settings.end_user {
            EndUser::Required if !auth.options.can_verify_end_users() => Some(
                "end_user is required and no token can be verified; set A2A_SECRET, auth.org_secrets or auth.issuers"
                    .to_owned(),
            ),
            EndUser::Required | EndUser::Off => None,
        };
        listed.chain(end_user).collect()
    }

    /// Whether no call can be accepted.
    pub(crate) fn refuses_every_call(&self, auth: &AuthConfig) -> bool {
        let no_caller = !self.auth.list().iter().any(|method| auth.options.can_verify(*method));
        let no_end_user =
            self.definition.settings.end_user == EndUser::Required && !auth.options.can_verify_end_users();
        no_caller || no_end_user
    }
}

impl Config {
    fn served(&self) -> impl Iterator<Item = &AgentConfig> {
        self.agents.iter().filter(|agent| agent.is_enabled())
    }

    /// The agents that everybody may call although nobody has decided that.
    pub(crate) fn unprotected(&self) -> Vec<&str> {
        let open = self.served().filter(|agent| agent.auth == AgentAuth::Open);
        open.map(|agent| agent.id()).collect()
    }

    /// Why a server would refuse to listen on its addresses.
    pub(super) fn unprotected_listener(&self) -> Option<String> {
        let agents = self.unprotected();
        let is_exposed =
            |one: &&ListenAddress| !is_loopback(one.address) && one.routes != RouteSet::Operators;
        let address = self.server.listen.iter().find(is_exposed).filter(|_| !agents.is_empty())?.address;
        Some(format!(
            "listening on {address} would accept calls from anyone: nobody has decided who may call {}; write auth for \
             each of them, such as auth = [\"api-key\"] or, if everybody may, auth = [\"anonymous\"]; or set A2A_SECRET or \
             another key of [auth]; or use a loopback address such as 127.0.0.1:{}",
            agents.join(", "),
            address.port()
        ))
    }

    /// Says that no agent is at `/`, if none is.
    pub(crate) fn default_agent_notice(&self) -> Option<String> {
        let ids = || self.served().map(AgentConfig::id).collect::<Vec<_>>().join(", ");
        self.server.default_agent.is_empty().then(|| {
            format!(
                "calls to / get 404: of several agents none is the default; set server.default_agent to one of {}, or call \
                 them at /a2a/ID",
                ids()
            )
        })
    }

    /// Says that credentials are sent in the clear, if an address that others can reach has no TLS. A proxy may have it.
    pub(crate) fn plain_http_warning(&self) -> Option<String> {
        let is_plain = |one: &&ListenAddress| {
            !is_loopback(one.address) && one.tls.is_none() && one.routes != RouteSet::Operators
        };
        let has_proxy = !self.server.trusted_proxies.is_empty()
            || self.server.public_url.as_ref().is_some_and(|url| url.starts_with("https:"));
        let is_sent = |agent: &AgentConfig| {
            let sent = |method: &AuthMethod| !matches!(method, AuthMethod::Anonymous | AuthMethod::Mtls);
            agent.auth.list().iter().any(sent) || agent.definition.settings.end_user == EndUser::Required
        };
        let listener = self.server.listen.iter().find(is_plain).filter(|_| !has_proxy)?;
        let agents: Vec<&str> = self.served().filter(|agent| is_sent(agent)).map(AgentConfig::id).collect();
        (!agents.is_empty()).then(|| {
            format!(
                "keys and tokens for {} are accepted over plain HTTP at {}, where others can read them on the way; set \
                 server.tls, or listen on loopback behind a proxy with TLS and set server.trusted_proxies",
                agents.join(", "),
                listener.address
            )
        })
    }

    /// Certificates that expire soon.
    pub(crate) fn tls_warnings(&self) -> Vec<String> {
        let now = Clock::system().now();
        self.server.all_tls().iter().filter_map(|tls| tls.expiry_warning(now)).collect()
    }

    /// Warnings about who may call and what is served, for the log of a server.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let names = |agents: Vec<&AgentConfig>| {
            agents.into_iter().map(|agent| agent.id()).collect::<Vec<_>>().join(", ")
        };
        let open: Vec<_> = self.served().filter(|agent| agent.definition.settings.is_open()).collect();
        let unconfigured: Vec<_> =
            self.served().filter(|agent| agent.auth == AgentAuth::Unconfigured).collect();
        let mut warnings = Vec::new();
        if self.server.mode.mode == Mode::Dev && !open.is_empty() {
            warnings.push(format!(
                "calls without a credential are accepted by {}: everybody who can reach this server is the same caller and \
                 sees the same tasks; set A2A_SECRET, another key of [auth], or auth of the agents",
                names(open)
            ));
        }
        if !unconfigured.is_empty() {
            let reason = match self.server.mode.decided_by {
                Some(variable) => format!("the environment variable {variable} is set"),
                None => "server.mode is prod".to_owned(),
            };
            warnings.push(format!(
                "every call of {} gets 503: this is production ({reason}) and no authentication is configured; set \
                 A2A_SECRET, another key of [auth], or auth of the agents",
                names(unconfigured)
            ));
        }
        warnings.extend(self.default_agent_notice());
        warnings.extend(self.plain_http_warning());
        warnings.extend(self.tls_warnings());
        for agent in self.served() {
            let of_agent = agent.warnings(&self.auth).into_iter();
            warnings.extend(of_agent.map(|text| format!("agents.{}: {text}", agent.id())));
        }
        warnings
    }
}
