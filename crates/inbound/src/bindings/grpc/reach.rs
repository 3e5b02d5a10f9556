//! Where gRPC finds an agent, for its card.

use protocol::model::AgentInterface;

use super::address;

/// Host and port, and how the agent is named there.
#[derive(Debug)]
pub(crate) struct Reach {
    authority: String,
    tenant: Option<String>,
}

impl Reach {
    /// By the origin that clients see; `agent` is named where it is not the one that is called by default. There is none
    /// below a path: gRPC has no address for that.
    pub(crate) fn of(origin: &str, agent: Option<&str>) -> Option<Self> {
        let (scheme, authority) = origin.split_once("://")?;
        if authority.is_empty() || authority.contains('/') {
            return None;
        }
        let named = authority.rsplit(']').next().is_some_and(|end| end.contains(':'));
        let authority = match (named, scheme) {
            (true, _) => authority.to_owned(),
            // Clients take a host without a port for one that speaks TLS.
            (false, "https") => format!("{authority}:443"),
            (false, _) => format!("{authority}:80"),
        };
        Some(Self { authority, tenant: agent.map(address::of) })
    }

    /// What a card says of it. Clients of 0.3 have no way to name an agent.
    pub(crate) fn interface(&self, version: &str) -> Option<AgentInterface> {
        let known = version == "1.0" || version == "0.3" && self.tenant.is_none();
        known.then(|| AgentInterface {
            url: self.authority.clone(),
            binding: "GRPC".into(),
            tenant: self.tenant.clone(),
            version: version.into(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_a_port_and_no_scheme() {
        for (origin, expected) in [
            ("http://127.0.0.1:4242", Some("127.0.0.1:4242")),
            ("http://[::1]:4242", Some("[::1]:4242")),
            ("http://[::1]", Some("[::1]:80")),
            ("http://example.com", Some("example.com:80")),
            ("https://example.com", Some("example.com:443")),
            ("https://example.com/agents", None),
            ("example.com", None),
        ] {
            let found = Reach::of(origin, None).map(|reach| reach.authority);
            assert_eq!(found.as_deref(), expected, "{origin}");
        }
    }

    #[test]
    fn an_agent_is_named_to_those_who_can_name_it_back() {
        let named = |agent, version| Reach::of("http://a:1", agent)?.interface(version).map(|one| one.tenant);
        assert_eq!(named(None, "1.0"), Some(None));
        assert_eq!(named(None, "0.3"), Some(None));
        assert_eq!(named(None, "0.1"), None);
        assert_eq!(named(Some("echo"), "1.0"), Some(Some("default/echo".into())));
        assert_eq!(named(Some("echo"), "0.3"), None);
    }
}
