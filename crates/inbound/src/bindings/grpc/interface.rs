//! The gRPC interface of an agent, for its card.

use engine::Tenant;
use protocol::model::AgentInterface;

use super::address;

/// Host and port of the server, and the tenant value that names the agent.
#[derive(Debug)]
pub(crate) struct GrpcInterface {
    authority: String,
    tenant: Option<String>,
}

impl GrpcInterface {
    /// From the origin that clients see; the agent is given if it is not the default one. `None` if the origin has a
    /// path: a gRPC address cannot have one.
    pub(crate) fn of(origin: &str, agent: Option<(&Tenant, &str)>) -> Option<Self> {
        let (scheme, authority) = origin.split_once("://")?;
        if authority.is_empty() || authority.contains('/') {
            return None;
        }
        let has_port = authority.rsplit(']').next().is_some_and(|end| end.contains(':'));
        let authority = match (has_port, scheme) {
            (true, _) => authority.to_owned(),
            // Clients use TLS for an address without a port.
            (false, "https") => format!("{authority}:443"),
            (false, _) => format!("{authority}:80"),
        };
        Some(Self { authority, tenant: agent.map(|(tenant, agent)| address::of(tenant, agent)) })
    }

    /// The card's entry for a version. There is none for an agent that must be named and version 0.3, whose clients
    /// cannot name one.
    pub(crate) fn for_version(&self, version: &str) -> Option<AgentInterface> {
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
    fn address_has_port_and_no_scheme() {
        for (origin, expected) in [
            ("http://127.0.0.1:4242", Some("127.0.0.1:4242")),
            ("http://[::1]:4242", Some("[::1]:4242")),
            ("http://[::1]", Some("[::1]:80")),
            ("http://example.com", Some("example.com:80")),
            ("https://example.com", Some("example.com:443")),
            ("https://example.com/agents", None),
            ("example.com", None),
        ] {
            let found = GrpcInterface::of(origin, None).map(|grpc| grpc.authority);
            assert_eq!(found.as_deref(), expected, "{origin}");
        }
    }

    #[test]
    fn interface_is_listed_only_where_clients_can_name_the_agent() {
        let tenant = Tenant::default();
        let named = |agent: Option<&str>, version| {
            GrpcInterface::of("http://a:1", agent.map(|agent| (&tenant, agent)))?
                .for_version(version)
                .map(|one| one.tenant)
        };
        assert_eq!(named(None, "1.0"), Some(None));
        assert_eq!(named(None, "0.3"), Some(None));
        assert_eq!(named(None, "0.1"), None);
        assert_eq!(named(Some("echo"), "1.0"), Some(Some("default/echo".into())));
        assert_eq!(named(Some("echo"), "0.3"), None);
    }
}
