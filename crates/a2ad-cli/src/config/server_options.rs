//! Turns the configuration into the options of the inbound side and the settings of the agents.

use inbound::{AcceptedVersions, AgentSettings, CardOptions, Profile, ServerOptions};
use protocol::model::{ApiKeyLocation, SecurityScheme};

use super::{AgentConfig, AuthMethod, Config, Generation, ProfileName};

impl Config {
    pub(crate) fn server_options(&self) -> ServerOptions {
        let accepts = |generation| self.protocol.dialects.contains(&generation);
        ServerOptions {
            max_body_bytes: self.max_body_bytes,
            accepted_versions: AcceptedVersions {
                draft: accepts(Generation::Draft),
                v03: accepts(Generation::V03),
                v1: accepts(Generation::V1),
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
            cors_origins: self.server.cors_origins.clone(),
        }
    }
}

impl AgentConfig {
    /// How the agent is served.
    pub(super) fn settings(&self) -> AgentSettings {
        let preset = self.profile.preset();
        AgentSettings {
            profile: Profile { reply: self.reply.unwrap_or(preset.reply), ..preset },
            enabled: self.enabled,
            streaming: self.streaming,
            push: self.push,
            extended_card: self.extended_card,
            extended_skills: self.extended_skills.iter().cloned().collect(),
            extensions: self.extensions.clone(),
            check_media_types: self.check_media_types,
            concurrent: self.concurrent,
            anonymous: self.auth.contains(&AuthMethod::Anonymous),
            security: self.auth.iter().filter_map(|method| method.scheme()).collect(),
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

impl AuthMethod {
    /// The security scheme that the card declares; `None` for anonymous access.
    fn scheme(self) -> Option<(String, SecurityScheme)> {
        let bearer = |format: Option<&str>| SecurityScheme::HttpAuth {
            description: None,
            scheme: "Bearer".into(),
            bearer_format: format.map(Into::into),
        };
        let (name, scheme) = match self {
            Self::Anonymous => return None,
            Self::ApiKey => (
                "ApiKey",
                SecurityScheme::ApiKey {
                    description: None,
                    location: ApiKeyLocation::Header,
                    name: "X-Api-Key".into(),
                },
            ),
            Self::Jwt | Self::Oidc => ("jwtBearer", bearer(Some("JWT"))),
            Self::Bearer => ("apiKey", bearer(None)),
            Self::Mtls => ("mtls", SecurityScheme::MutualTls { description: None }),
        };
        Some((name.into(), scheme))
    }
}
