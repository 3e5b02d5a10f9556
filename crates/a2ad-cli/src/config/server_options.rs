//! Turns the configuration into the options of the inbound side.

use a2ad::internal::ListenAddress;
use inbound::{AcceptedVersions, CardOptions, MountedHosts, Profile, ServerOptions};

use super::{Config, ProfileName, ProtocolVersion};

impl Config {
    /// The options of a server that listens on these addresses.
    pub(crate) fn server_options(&self, addresses: &[ListenAddress]) -> ServerOptions {
        let accepts = |version| self.protocol.dialects.contains(&version);
        ServerOptions {
            max_body_bytes: self.max_body_bytes,
            accepted_versions: AcceptedVersions {
                draft: accepts(ProtocolVersion::Draft),
                v03: accepts(ProtocolVersion::V03),
                v1: accepts(ProtocolVersion::V1),
                lenient_version: self.protocol.lenient_version,
            },
            errors: self.protocol.errors,
            card: CardOptions {
                shape: self.card.style,
                max_age: self.card.max_age,
                grpc_scheme: self.card.grpc_scheme,
            },
            keep_alive: self.server.keep_alive,
            public_url: self.server.public_url.clone(),
            trusted_proxies: self.server.trusted_proxies.clone(),
            allowed_hosts: self.server.allowed_hosts.clone(),
            mounted_hosts: MountedHosts::default(),
            cors_origins: self.server.cors_origins.clone(),
            auth: self.auth.options(&self.server, addresses, &self.backends.dialer),
            rate_limits: self.rate_limits,
            // Set by whoever serves.
            audit: None,
            published_keys: None,
            reports: None,
        }
    }
}

impl ProfileName {
    pub(super) fn preset(self) -> Profile {
        match self {
            Self::Neutral => Profile::neutral(),
            Self::Fold => Profile::fold(),
            Self::Pinkfish => Profile::pinkfish(),
            Self::AgentNative => Profile::agent_native(),
            Self::Agentos => Profile::agentos(),
        }
    }
}
