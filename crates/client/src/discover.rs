//! From a URL to an agent's card, and from the card to the client that calls it.

use http::{HeaderValue, Method, StatusCode, header};
use protocol::{
    AgentCard, Dialect, Violation,
    dialect::{read_card, v1},
    json::read::{Node, Path},
};
use reqwest::Url;

use crate::{
    Client, Error, Options,
    choose::{Choice, choose},
    envelope::document,
    transport::{Transport, parse_url, read_body},
};

/// A card and where it was.
pub struct FoundCard {
    /// The card.
    pub card: AgentCard,
    /// The document as it came.
    pub document: Vec<u8>,
    url: Url,
    /// The card does not tell 0.2 and the draft apart: what it is taken for first, and what it may be instead.
    unmarked: Option<(Dialect, Dialect)>,
    transport: Transport,
}

/// Where a card may be.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// `agent-card.json`, since 0.3.
    AgentCard,
    /// `agent.json`, before that.
    Agent,
    /// The URL itself.
    Here,
}

/// Looks for the card of the agent at this URL: below it, or at it.
pub async fn find_card(url: &str, options: &Options) -> Result<FoundCard, Error> {
    let base = parse_url(url)?;
    let transport = Transport::to(&base)?;
    for (place, url) in places(&base) {
        if let Some(document) = fetch(&transport, &url, place, options).await? {
            match decode(&document) {
                Ok((form, card)) => {
                    let unmarked = unmarked(form, place);
                    return Ok(FoundCard { card, document, url, unmarked, transport });
                }
                // What is at an agent's own URL need not be its card.
                Err(_) if place == Place::Here && !is_card_name(&base) => {}
                Err(error) => return Err(error),
            }
        }
    }
    Err(Error::NoCard { url: base.into() })
}

/// Gets the JSON document at a URL that is not part of the protocol; gives whatever status it is answered with.
pub async fn get(url: &str, options: &Options) -> Result<(StatusCode, Vec<u8>), Error> {
    let url = parse_url(url)?;
    let mut headers = options.headers.clone();
    headers.insert(header::ACCEPT, HeaderValue::from_static("application/json"));
    let response = Transport::to(&url)?.send(Method::GET, url, headers, Vec::new()).await?;
    Ok((response.status(), read_body(response, options.max_answer_bytes).await?))
}

impl FoundCard {
    /// Where the card was.
    pub fn url(&self) -> &str {
        self.url.as_str()
    }

    /// The endpoint that would be called, when it is on another origin than the card.
    pub fn elsewhere(&self, options: &Options) -> Result<Option<String>, Error> {
        let endpoint = self.endpoint(&choose(&self.card, options.dialect)?.interface.url)?;
        Ok((endpoint.origin() != self.url.origin()).then(|| endpoint.into()))
    }

    /// A client of the interface that is chosen. Credentials stay with the origin they were given for.
    pub fn client(&self, options: Options) -> Result<Client, Error> {
        let choice = choose(&self.card, options.dialect)?;
        let endpoint = self.endpoint(&choice.interface.url)?;
        self.client_of(&choice, endpoint, options)
    }

    /// A client of the agent at this URL, which speaks what the card says: for callers who know where the agent is,
    /// though its card names the address that others reach it by. Credentials stay with the origin they were given for.
    pub fn client_at(&self, url: &str, options: Options) -> Result<Client, Error> {
        self.client_of(&choose(&self.card, options.dialect)?, parse_url(url)?, options)
    }

    fn client_of(&self, choice: &Choice<'_>, endpoint: Url, options: Options) -> Result<Client, Error> {
        let same_origin = endpoint.origin() == self.url.origin();
        if !same_origin && !options.headers.is_empty() {
            return Err(Error::Elsewhere { endpoint: endpoint.into() });
        }
        let transport = if same_origin { self.transport.clone() } else { Transport::to(&endpoint)? };
        let (dialect, other) = match self.unmarked.filter(|_| options.dialect.is_none()) {
            Some((first, second)) => (first, Some(second)),
            None => (choice.dialect, None),
        };
        let tenant = choice.interface.tenant.clone();
        Ok(Client::new(transport, endpoint, dialect, options).with_tenant(tenant).or_else_in(other))
    }

    fn endpoint(&self, url: &str) -> Result<Url, Error> {
        match self.url.join(url) {
            Ok(joined) if url.starts_with('/') => Ok(joined),
            _ => parse_url(url),
        }
    }
}

/// Where to look, in this order.
fn places(base: &Url) -> Vec<(Place, Url)> {
    if is_card_name(base) {
        return vec![(Place::Here, base.clone())];
    }
    let below = |name: &str| {
        let mut url = base.clone();
        url.set_query(None);
        url.set_fragment(None);
        url.set_path(&format!("{}/.well-known/{name}", base.path().trim_end_matches('/')));
        url
    };
    vec![
        (Place::AgentCard, below("agent-card.json")),
        (Place::Agent, below("agent.json")),
        (Place::Here, base.clone()),
    ]
}

fn is_card_name(url: &Url) -> bool {
    url.path().ends_with(".json")
}

/// What is at this place; `None` when nothing is.
async fn fetch(
    transport: &Transport,
    url: &Url,
    place: Place,
    options: &Options,
) -> Result<Option<Vec<u8>>, Error> {
    let mut headers = options.headers.clone();
    headers.insert("a2a-version", HeaderValue::from_static(v1::VERSION));
    headers.insert(header::ACCEPT, HeaderValue::from_static("application/json"));
    let response = match transport.send(Method::GET, url.clone(), headers, Vec::new()).await {
        Err(Error::Moved { .. }) if place == Place::Here => return Ok(None),
        answered => answered?,
    };
    match response.status() {
        status if status.is_success() => read_body(response, options.max_answer_bytes).await.map(Some),
        status @ (StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) => Err(Error::Status(status)),
        StatusCode::NOT_FOUND | StatusCode::GONE | StatusCode::METHOD_NOT_ALLOWED => Ok(None),
        _ if place == Place::Here => Ok(None),
        status => Err(Error::Status(status)),
    }
}

fn decode(body: &[u8]) -> Result<(Dialect, AgentCard), Error> {
    let raw = document(body).ok_or_else(|| Violation::new("", "expected a card in JSON"))?;
    Ok(read_card(Node::new(raw, &Path::Root))?)
}

/// A card without any mark is the draft's, or one of 0.2 that uses nothing new; by its place one is likelier.
fn unmarked(form: Dialect, place: Place) -> Option<(Dialect, Dialect)> {
    match (form, place) {
        (Dialect::Draft, Place::AgentCard) => Some((Dialect::V03, Dialect::Draft)),
        (Dialect::Draft, Place::Agent | Place::Here) => Some((Dialect::Draft, Dialect::V03)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_card_stands_below_the_base_or_is_named() {
        let looked = |base: &str| -> Vec<String> {
            places(&parse_url(base).unwrap()).into_iter().map(|place| place.1.into()).collect()
        };
        for base in ["http://h:1", "http://h:1/"] {
            let expected = [
                "http://h:1/.well-known/agent-card.json",
                "http://h:1/.well-known/agent.json",
                "http://h:1/",
            ];
            assert_eq!(looked(base), expected);
        }
        assert_eq!(looked("http://h/a/b/?x=1")[0], "http://h/a/b/.well-known/agent-card.json");
        assert_eq!(looked("http://h/card.json?x=1"), ["http://h/card.json?x=1"]);
    }
}
