//! Card messages shared by both versions.

use crate::{
    Json,
    json::read::{Path, Read},
    model::{AgentCardSignature, AgentExtension, AgentProvider, AgentSkill},
};

use super::{
    generated::v1 as pb,
    read::{list, need_text, object, text},
    security, values,
};

pub(super) fn decode_provider(provider: pb::AgentProvider) -> AgentProvider {
    AgentProvider { url: provider.url, organization: provider.organization }
}

pub(super) fn encode_provider(provider: &AgentProvider) -> pb::AgentProvider {
    pb::AgentProvider { url: provider.url.clone(), organization: provider.organization.clone() }
}

pub(super) fn decode_extension(extension: pb::AgentExtension, path: &Path<'_>) -> Read<AgentExtension> {
    Ok(AgentExtension {
        uri: need_text(extension.uri, path, "uri")?,
        description: text(extension.description),
        required: extension.required,
        params: object(extension.params, path, "params")?,
    })
}

pub(super) fn encode_extension(extension: &AgentExtension) -> pb::AgentExtension {
    pb::AgentExtension {
        uri: extension.uri.clone(),
        description: extension.description.clone().unwrap_or_default(),
        required: extension.required,
        params: extension.params.as_ref().map(values::pack_object),
    }
}

/// Reads a skill; `security` is the version's name of its requirements.
pub(super) fn decode_skill(skill: pb::AgentSkill, path: &Path<'_>, security: &str) -> Read<AgentSkill> {
    Ok(AgentSkill {
        id: need_text(skill.id, path, "id")?,
        name: skill.name,
        description: skill.description,
        tags: skill.tags,
        examples: skill.examples,
        input_modes: skill.input_modes,
        output_modes: skill.output_modes,
        security_requirements: list(skill.security_requirements, path, security, |requirement, _| {
            Ok(security::decode_requirement(requirement))
        })?,
    })
}

pub(super) fn encode_skill(skill: &AgentSkill) -> pb::AgentSkill {
    pb::AgentSkill {
        id: skill.id.clone(),
        name: skill.name.clone(),
        description: skill.description.clone(),
        tags: skill.tags.clone(),
        examples: skill.examples.clone(),
        input_modes: skill.input_modes.clone(),
        output_modes: skill.output_modes.clone(),
        security_requirements: security::encode_requirements(&skill.security_requirements),
    }
}

pub(super) fn decode_signature(
    signature: pb::AgentCardSignature,
    path: &Path<'_>,
) -> Read<AgentCardSignature> {
    Ok(AgentCardSignature {
        protected: need_text(signature.protected, path, "protected")?,
        signature: need_text(signature.signature, path, "signature")?,
        header: object(signature.header, path, "header")?,
    })
}

pub(super) fn encode_signature(signature: &AgentCardSignature) -> pb::AgentCardSignature {
    pb::AgentCardSignature {
        protected: signature.protected.clone(),
        signature: signature.signature.clone(),
        header: signature.header.as_ref().map(|header: &Json| values::pack_object(header)),
    }
}
