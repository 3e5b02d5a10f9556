//! Agent cards: built from how an agent presents itself and where it was asked.

use axum::response::Response;
use engine::Profile;
use http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use protocol::{
    Timestamp,
    dialect::v1,
    json::write::Writer,
    model::{AgentCapabilities, AgentCard, AgentInterface},
};
use sha2::{Digest as _, Sha256};

use crate::respond;

/// How long a card may be kept.
const CACHE: HeaderValue = HeaderValue::from_static("public, max-age=60");

/// Answers with an agent's card; `url` is where it takes calls.
pub(crate) fn respond(profile: &Profile, url: &str, headers: &HeaderMap, since: Timestamp) -> Response {
    let mut writer = Writer::new();
    v1::card::encode(&mut writer, &card(profile, url));
    let body = writer.finish();
    let etag = etag(&body);
    let fresh = has(headers, &etag);
    let mut response = respond::json(if fresh { Vec::new() } else { body });
    if fresh {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
    }
    let out = response.headers_mut();
    out.insert(header::ETAG, etag);
    out.insert(header::CACHE_CONTROL, CACHE);
    if let Ok(date) = HeaderValue::from_str(&since.http_date()) {
        out.insert(header::LAST_MODIFIED, date);
    }
    out.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    response
}

/// Whether the client has this card: any of the tags it names, or any card at all (RFC 9110 13.1.2).
fn has(headers: &HeaderMap, etag: &HeaderValue) -> bool {
    let asked = headers.get_all(header::IF_NONE_MATCH).into_iter().filter_map(|value| value.to_str().ok());
    let mut tags = asked.flat_map(|value| value.split(',')).map(|tag| tag.trim().trim_start_matches("W/"));
    tags.any(|tag| tag == "*" || tag.as_bytes() == etag.as_bytes())
}

/// The origin the client used, as it said itself; the card only ever points back to where it came from.
pub(crate) fn origin(uri: &Uri, headers: &HeaderMap) -> String {
    // HTTP/2 says it in the target, HTTP/1.1 in a header.
    let target = uri.authority().map(http::uri::Authority::as_str);
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).or(target);
    let clean =
        |host: &&str| host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_:[]".contains(&byte));
    format!("http://{}", host.filter(clean).unwrap_or("localhost"))
}

fn card(profile: &Profile, url: &str) -> AgentCard {
    AgentCard {
        name: profile.name.clone(),
        description: profile.description.clone(),
        interfaces: vec![AgentInterface {
            url: url.into(),
            binding: "JSONRPC".into(),
            tenant: None,
            version: v1::VERSION.into(),
        }],
        provider: None,
        version: profile.version.clone(),
        documentation_url: None,
        icon_url: None,
        capabilities: AgentCapabilities {
            streaming: Some(true),
            push_notifications: Some(false),
            extended_card: Some(false),
            extensions: Vec::new(),
        },
        security_schemes: Vec::new(),
        security_requirements: Vec::new(),
        default_input_modes: profile.input_modes.clone(),
        default_output_modes: profile.output_modes.clone(),
        skills: profile.skills.clone(),
        signatures: Vec::new(),
    }
}

fn etag(body: &[u8]) -> HeaderValue {
    let hash = Sha256::digest(body);
    let hex: String = hash[..12].iter().map(|byte| format!("{byte:02x}")).collect();
    HeaderValue::from_str(&format!("\"{hex}\"")).expect("hex digits and quotes make a header value")
}
