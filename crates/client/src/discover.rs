//! Discovery: from a URL to an agent's card, and from the card to a client.

use std::sync::Arc;

use http::{HeaderValue, Method, StatusCode, header};
use protocol::{
    AgentCard, Dialect, Violation,
    dialect::{read_card, v1},
    json::read::{Node, Path},
};
use url::Url;

use crate::{
    Client, ClientOptions, Error,
    choose::{Choice, choose},
    envelope::document,
    exchange::{parse_url, read_body, send},
    transport::Transport,
};

/// An agent's card and the URL it was found at.
pub struct FoundCard {
    /// The decoded card.
    pub card: AgentCard,
    /// The document as received.
    pub document: Vec<u8>,
    url: Url,
    /// Set if the card could be 0.2 or the draft: the dialect to try first, and the fallback.
    ambiguous: Option<(Dialect, Dialect)>,
    transport: Arc<dyn Transport>,
}

/// The possible locations of a card.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CardLocation {
    /// `.well-known/agent-card.json`, since 0.3.
    AgentCard,
    /// `.well-known/agent.json`, before 0.3.
    Agent,
    /// The URL itself.
    Here,
}

/// Finds the card of the agent at this URL: at a well-known path below it, or at the URL itself.
pub async fn find_card(url: &str, options: &ClientOptions) -> Result<FoundCard, Error> {
    let base = parse_url(url)?;
    let transport = options.transport_to(&base)?;
    for (location, url) in locations(&base) {
        if let Some(document) = fetch(&*transport, &url, location, options).await? {
            match decode(&document) {
                Ok((form, card)) => {
                    let ambiguous = ambiguous(form, location);
                    return Ok(FoundCard { card, document, url, ambiguous, transport });
                }
                // The document at an agent's own URL need not be a card.
                Err(_) if location == CardLocation::Here && !is_card_name(&base) => {}
                Err(error) => return Err(error),
            }
        }
    }
    Err(Error::NoCard { url: base.into() })
}

/// Fetches a JSON document that is not part of the protocol; any status is returned, not treated as an error.
pub async fn get(url: &str, options: &ClientOptions) -> Result<(StatusCode, Vec<u8>), Error> {
    let url = parse_url(url)?;
    let mut headers = options.headers.clone();
    headers.insert(header::ACCEPT, HeaderValue::from_static("application/json"));
    let transport = options.transport_to(&url)?;
    let response = send(&*transport, Method::GET, &url, headers, Vec::new()).await?;
    Ok((response.status(), read_body(response, options.max_response_bytes).await?))
}

impl FoundCard {
    /// The URL the card was found at.
    pub fn url(&self) -> &str {
        self.url.as_str()
    }

    /// The selected endpoint, if its origin differs from the card's.
    pub fn endpoint_on_other_origin(&self, options: &ClientOptions) -> Result<Option<String>, Error> {
        let endpoint = self.endpoint(&choose(&self.card, options.dialect)?.interface.url)?;
        Ok((endpoint.origin() != self.url.origin()).then(|| endpoint.into()))
    }

    /// A client for the selected interface. Fails if credentials would be sent to another origin than the
    /// card's.
    pub fn client(&self, options: ClientOptions) -> Result<Client, Error> {
        let choice = choose(&self.card, options.dialect)?;
        let endpoint = self.endpoint(&choice.interface.url)?;
        self.client_of(&choice, endpoint, options)
    }

    /// A client for the agent at this URL with the dialect from the card: for callers that reach the agent at
    /// another URL than the one in the card. Fails if credentials would be sent to another origin than the
    /// card's.
    pub fn client_at(&self, url: &str, options: ClientOptions) -> Result<Client, Error> {
        self.client_of(&choose(&self.card, options.dialect)?, parse_url(url)?, options)
    }

    fn client_of(&self, choice: &Choice<'_>, endpoint: Url, options: ClientOptions) -> Result<Client, Error> {
        let same_origin = endpoint.origin() == self.url.origin();
        if !same_origin && !options.headers.is_empty() {
            return Err(Error::OtherOrigin { endpoint: endpoint.into() });
        }
        let transport = if same_origin {
            Arc::clone(&self.transport)
        } else {
            options.transport_to_other_origin(&endpoint)?
        };
        let (dialect, fallback) = match self.ambiguous.filter(|_| options.dialect.is_none()) {
            Some((first, second)) => (first, Some(second)),
            None => (choice.dialect, None),
        };
        let tenant = choice.interface.tenant.clone();
        Ok(Client::new(transport, endpoint, dialect, options).with_tenant(tenant).with_fallback(fallback))
    }

    fn endpoint(&self, url: &str) -> Result<Url, Error> {
        match self.url.join(url) {
            Ok(joined) if url.starts_with('/') => Ok(joined),
            _ => parse_url(url),
        }
    }
}

/// The locations to try, in order.
fn locations(base: &Url) -> Vec<(CardLocation, Url)> {
    if is_card_name(base) {
        return vec![(CardLocation::Here, base.clone())];
    }
    let below = |name: &str| {
        let mut url = base.clone();
        url.set_query(None);
        url.set_fragment(None);
        url.set_path(&format!("{}/.well-known/{name}", base.path().trim_end_matches('/')));
        url
    };
    vec![
        (CardLocation::AgentCard, below("agent-card.json")),
        (CardLocation::Agent, below("agent.json")),
        (CardLocation::Here, base.clone()),
    ]
}

fn is_card_name(url: &Url) -> bool {
    url.path().ends_with(".json")
}

/// The document at this location; `None` if there is none.
async fn fetch(
    transport: &dyn Transport,
    url: &Url,
    location: CardLocation,
    options: &ClientOptions,
) -> Result<Option<Vec<u8>>, Error> {
    let mut headers = options.headers.clone();
    headers.insert("a2a-version", HeaderValue::from_static(v1::VERSION));
    headers.insert(header::ACCEPT, HeaderValue::from_static("application/json"));
    let response = match send(transport, Method::GET, url, headers, Vec::new()).await {
        Err(Error::Redirected { .. }) if location == CardLocation::Here => return Ok(None),
        result => result?,
    };
    match response.status() {
        status if status.is_success() => read_body(response, options.max_response_bytes).await.map(Some),
        status @ (StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) => Err(Error::Status(status)),
        StatusCode::NOT_FOUND | StatusCode::GONE | StatusCode::METHOD_NOT_ALLOWED => Ok(None),
        _ if location == CardLocation::Here => Ok(None),
        status => Err(Error::Status(status)),
    }
}

fn decode(body: &[u8]) -> Result<(Dialect, AgentCard), Error> {
    let raw = document(body).ok_or_else(|| Violation::new("", "expected a card in JSON"))?;
    Ok(read_card(Node::new(raw, &Path::Root))?)
}

/// A card without members of a later version is a draft card or a minimal 0.2 card; its location tells
/// which is more likely.
fn ambiguous(form: Dialect, location: CardLocation) -> Option<(Dialect, Dialect)> {
    match (form, location) {
        (Dialect::Draft, CardLocation::AgentCard) => Some((Dialect::V03, Dialect::Draft)),
        (Dialect::Draft, CardLocation::Agent | CardLocation::Here) => Some((Dialect::Draft, Dialect::V03)),
        (Dialect::V03 | Dialect::V03Proto | Dialect::V1, _) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn card_is_searched_below_the_base_or_at_a_json_url() {
        let searched = |base: &str| -> Vec<String> {
            locations(&parse_url(base).unwrap()).into_iter().map(|location| location.1.into()).collect()
        };
        for base in ["http://h:1", "http://h:1/"] {
            let expected = [
                "http://h:1/.well-known/agent-card.json",
                "http://h:1/.well-known/agent.json",
                "http://h:1/",
            ];
            assert_eq!(searched(base), expected);
        }
        assert_eq!(searched("http://h/a/b/?x=1")[0], "http://h/a/b/.well-known/agent-card.json");
        assert_eq!(searched("http://h/card.json?x=1"), ["http://h/card.json?x=1"]);
    }
}
