//! `a2ad card`: prints an agent's card.

use clap::Args;
use protocol::{
    AgentCard,
    dialect::v1,
    json::write::Writer,
    model::{AgentSkill, SecurityScheme},
};

use crate::cli::failure::{Failure, code};

use super::session::{Session, SessionFlags};

#[derive(Debug, Args)]
pub(crate) struct CardFlags {
    #[command(flatten)]
    session: SessionFlags,
}

pub(crate) fn run(flags: CardFlags) -> Result<u8, Failure> {
    Session::run(flags.session, |session| async move {
        let found = session.card().await?;
        if session.json() {
            let mut writer = Writer::new();
            v1::card::encode(&mut writer, &found.card);
            session.output.document(&writer.finish())?;
        } else {
            session.output.text(&describe(&found.card))?;
        }
        Ok(code::SUCCESS)
    })
}

fn describe(card: &AgentCard) -> String {
    let mut out = String::new();
    let mut line = |name: &str, value: &str| {
        if !value.is_empty() {
            out += &format!("{name:<14}{value}\n");
        }
    };
    line("name", &card.name);
    line("description", &card.description);
    line("version", &card.version);
    let provider = card.provider.as_ref();
    line("provider", &provider.map(|one| format!("{} {}", one.organization, one.url)).unwrap_or_default());
    line("documentation", card.documentation_url.as_deref().unwrap_or_default());
    for interface in &card.interfaces {
        line("interface", &format!("{} {} {}", interface.binding, interface.version, interface.url));
    }
    line("capabilities", &capabilities(card).join(", "));
    line("input", &card.default_input_modes.join(", "));
    line("output", &card.default_output_modes.join(", "));
    for (name, scheme) in &card.security_schemes {
        line("security", &format!("{name}: {}", kind(scheme)));
    }
    for skill in &card.skills {
        line("skill", &title(skill));
    }
    out
}

/// A skill's id and description on one line.
pub(crate) fn title(skill: &AgentSkill) -> String {
    format!("{}: {}", skill.id, if skill.description.is_empty() { &skill.name } else { &skill.description })
}

fn capabilities(card: &AgentCard) -> Vec<&str> {
    let capabilities = &card.capabilities;
    let flags = [
        (capabilities.streaming, "streaming"),
        (capabilities.push_notifications, "push notifications"),
        (capabilities.extended_card, "extended card"),
    ];
    let flags = flags.into_iter().filter(|flag| flag.0 == Some(true)).map(|flag| flag.1);
    flags.chain(capabilities.extensions.iter().map(|extension| extension.uri.as_str())).collect()
}

fn kind(scheme: &SecurityScheme) -> String {
    match scheme {
        SecurityScheme::ApiKey { location, name, .. } => format!("API key {name} in the {location:?}"),
        SecurityScheme::HttpAuth { scheme, .. } => format!("HTTP {scheme}"),
        SecurityScheme::OAuth2 { .. } => "OAuth 2.0".to_owned(),
        SecurityScheme::OpenIdConnect { url, .. } => format!("OpenID Connect {url}"),
        SecurityScheme::MutualTls { .. } => "client certificate".to_owned(),
    }
}
