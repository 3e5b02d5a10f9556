//! Security schemes and requirements, in the two forms used before 1.0.
//!
//! A scheme may have several OAuth flows here but only one in the model. It is split into several schemes,
//! `key`, `key-clientCredentials` and so on, and a requirement for `key` becomes one alternative per scheme.
//! A scheme that cannot be understood is omitted on decoding, one that these forms cannot express is omitted
//! on encoding. A requirement that names it is kept, so that a client knows it cannot call without it.

use std::collections::{HashMap, HashSet};

use crate::{
    dialect::card::{
        decode_map, decode_text, last_values,
        security::{
            API_KEY, Form, HTTP_AUTH, MUTUAL_TLS, OAUTH2, OPEN_ID_CONNECT, decode_api_key, decode_flows,
            decode_http_auth, decode_mutual_tls, decode_open_id_connect, decode_required_schemes,
            encode_requirements, encode_schemes,
        },
    },
    json::{
        Raw,
        read::{Node, Object, Read},
        write::Writer,
    },
    model::{SecurityRequirement, SecurityScheme},
};

/// Maximum number of alternatives one requirement may expand to.
const MAX_ALTERNATIVES: usize = 64;

/// The schemes of a card, and which of them were split from one.
pub(crate) struct Schemes {
    pub(crate) list: Vec<(String, SecurityScheme)>,
    split: HashMap<String, Vec<String>>,
}

/// Reads `securitySchemes` in either form.
pub(crate) fn decode_schemes(object: &Object<'_, '_>) -> Read<Schemes> {
    let read = decode_map(object, "securitySchemes", decode_scheme)?;
    let mut names: HashSet<String> = read.iter().map(|(name, _)| name.clone()).collect();
    let mut schemes = Schemes { list: Vec::with_capacity(read.len()), split: HashMap::new() };
    for (name, flows) in read {
        for (at, (flow, scheme)) in flows.into_iter().enumerate() {
            if at == 0 {
                schemes.list.push((name.clone(), scheme));
                continue;
            }
            let mut other = format!("{name}-{flow}");
            while !names.insert(other.clone()) {
                other.push('-');
            }
            schemes.split.entry(name.clone()).or_default().push(other.clone());
            schemes.list.push((other, scheme));
        }
    }
    Ok(schemes)
}

impl Schemes {
    /// Reads the requirements under `security` in either form.
    pub(crate) fn requirements(&self, object: &Object<'_, '_>) -> Read<Vec<SecurityRequirement>> {
        let written = object.list("security", decode_requirement)?;
        Ok(written.into_iter().flat_map(|requirement| self.alternatives(requirement)).collect())
    }

    /// Expands a requirement into one per combination of split schemes.
    fn alternatives(&self, requirement: SecurityRequirement) -> Vec<SecurityRequirement> {
        let named: Vec<String> = requirement.schemes.iter().map(|(name, _)| name.clone()).collect();
        let mut alternatives = vec![requirement];
        for (place, name) in named.iter().enumerate() {
            let others = self.split.get(name).into_iter().flatten();
            // A requirement may itself name one of the generated schemes.
            let others: Vec<&String> = others.filter(|other| !named.contains(other)).collect();
            if alternatives.len() * (1 + others.len()) > MAX_ALTERNATIVES {
                break;
            }
            let renamed = |requirement: &SecurityRequirement, name: &String| {
                let mut requirement = requirement.clone();
                requirement.schemes[place].0.clone_from(name);
                requirement
            };
            let more: Vec<_> = others
                .iter()
                .flat_map(|name| alternatives.iter().map(move |requirement| renamed(requirement, name)))
                .collect();
            alternatives.extend(more);
        }
        alternatives
    }
}

/// Writes `securitySchemes` and `security`, each omitted if empty.
pub(crate) fn encode(
    writer: &mut Writer,
    schemes: &[(String, SecurityScheme)],
    requirements: &[SecurityRequirement],
    form: Form,
) {
    encode_schemes(writer, schemes, form);
    encode_requirements(writer, requirements, form);
}

/// `{"key":["scope"]}` or `{"schemes":{"key":{"list":["scope"]}}}`. A scheme may itself be named `schemes`.
fn decode_requirement(node: Node<'_, '_>) -> Read<SecurityRequirement> {
    let object = node.object()?;
    let is_map = |raw: Raw<'_>| raw.get().starts_with('{');
    let schemes = if object.present("schemes").is_some_and(is_map) {
        decode_required_schemes(&object)?
    } else {
        last_values(&object, |node| if node.is_null() { Ok(Vec::new()) } else { node.list(decode_text) })?
    };
    Ok(SecurityRequirement { schemes })
}

/// Reads a scheme in either form: one scheme per flow, or none if it cannot be understood.
fn decode_scheme(node: Node<'_, '_>) -> Read<Vec<(&'static str, SecurityScheme)>> {
    if node.is_null() {
        return Ok(Vec::new());
    }
    let object = node.object()?;
    let one = |scheme| vec![("", scheme)];
    // A merged card has both forms with the same content.
    match object.text("type")?.as_deref() {
        Some("apiKey") => return decode_api_key(&object, "in").map(one),
        Some("http") => return decode_http_auth(&object).map(one),
        Some("oauth2") => return decode_oauth2(&object),
        Some("openIdConnect") => return decode_open_id_connect(&object).map(one),
        Some("mutualTLS") => return decode_mutual_tls(&object).map(one),
        _ => {}
    }
    let members = [
        object.maybe(API_KEY, |node| decode_api_key(&node.object()?, "location").map(one))?,
        object.maybe(HTTP_AUTH, |node| decode_http_auth(&node.object()?).map(one))?,
        object.maybe(OAUTH2, |node| decode_oauth2(&node.object()?))?,
        object.maybe(OPEN_ID_CONNECT, |node| decode_open_id_connect(&node.object()?).map(one))?,
        object.maybe(MUTUAL_TLS, |node| decode_mutual_tls(&node.object()?).map(one))?,
    ];
    Ok(members.into_iter().flatten().next().unwrap_or_default())
}

fn decode_oauth2(object: &Object<'_, '_>) -> Read<Vec<(&'static str, SecurityScheme)>> {
    let description = object.text("description")?;
    let metadata_url = object.text("oauth2MetadataUrl")?;
    let flows = object.maybe("flows", |node| decode_flows(node, Form::OpenApi))?.unwrap_or_default();
    let scheme = |(name, flow)| {
        let (description, metadata_url) = (description.clone(), metadata_url.clone());
        (name, SecurityScheme::OAuth2 { description, flow, metadata_url })
    };
    Ok(flows.into_iter().map(scheme).collect())
}
