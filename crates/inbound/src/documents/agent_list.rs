//! The list of agents at `/.well-known/agents.json`: those that everybody may see, with the skills on their public cards.
//!
//! `?q=` searches it. Without a query, an agent is listed with its first skills; the card that it refers to has all of
//! them. The list is one encoded document, like a card; the result of a search is encoded for each request.

use axum::response::Response;
use engine::{AgentInfo, AgentSettings, CardDocument, CardKey, FoundAgent, RegisteredAgent};
use http::{StatusCode, Uri, header};
use protocol::{Dialect, Error, ErrorKind, Violation, json::write::Writer, model::AgentSkill};

use crate::{
    addresses::cross_origin::ANY_ORIGIN,
    documents::card::{CachePolicy, document},
    request::exchange::Exchange,
    response::refusal,
    routes,
};

/// The skills listed for each agent without a query, and matches with one, unless `limit` is given.
const DEFAULT_LIMIT: usize = 20;
const MAX_LIMIT: usize = 100;
/// The longest query, in bytes.
const MAX_QUERY: usize = 1_000;

/// Handles a request for the list.
pub(crate) fn handle(exchange: &Exchange) -> Response {
    let found = Query::read(&exchange.head.uri).and_then(|query| respond(exchange, &query));
    found.unwrap_or_else(|error| {
        let status = StatusCode::from_u16(error.kind.row().http).unwrap_or(StatusCode::BAD_REQUEST);
        refusal::error_response(exchange, Dialect::V1, status, &error)
    })
}

fn respond(exchange: &Exchange, query: &Query) -> Result<Response, Error> {
    let (catalog, origin) = (&exchange.catalog, exchange.origin());
    let caching = CachePolicy {
        scope: exchange.server.origins.cache_scope(),
        max_age: exchange.server.card.max_age,
        since: catalog.since(),
        memory: exchange.server.engine.memory(),
    };
    let list = List { exchange, origin: &origin };
    let headers = &exchange.head.headers;
    let Some(text) = &query.text else {
        let unknown = || Error::new(ErrorKind::AgentDisabled, "there are no agents here");
        let lists = catalog.agent_lists(exchange.endpoint.tenant.id()).ok_or_else(unknown)?;
        let key = CardKey { form: query.limit, url: origin.clone() };
        let document = lists.get_or_build(key, || Ok::<_, Error>(list.of_all(query.limit)))?;
        return caching.respond(&document, headers).map(public);
    };
    let found = catalog.search(exchange.endpoint.tenant.id(), text, query.limit.into());
    caching.respond(&list.of_found(&found), headers).map(public)
}

/// Web pages of every origin may read it.
fn public(mut response: Response) -> Response {
    response.headers_mut().insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, ANY_ORIGIN);
    response
}

/// What the client asks for.
struct Query {
    /// `None`: everything.
    text: Option<String>,
    limit: u8,
}

impl Query {
    fn read(uri: &Uri) -> Result<Self, Error> {
        let mut query = Self { text: None, limit: DEFAULT_LIMIT as u8 };
        for (name, value) in form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes()) {
            match name.as_ref() {
                "q" if value.len() > MAX_QUERY => {
                    let wanted = format!("expected at most {MAX_QUERY} bytes");
                    return Err(Error::invalid_params(Violation::new("q", wanted)));
                }
                "q" => query.text = Some(value.trim().to_owned()).filter(|text| !text.is_empty()),
                "limit" => query.limit = limit(&value)?,
                _ => {}
            }
        }
        Ok(query)
    }
}

fn limit(text: &str) -> Result<u8, Error> {
    let limit = text.parse().ok().filter(|limit| (1..=MAX_LIMIT as u8).contains(limit));
    let wanted = || format!("expected a number from 1 to {MAX_LIMIT}");
    limit.ok_or_else(|| Error::invalid_params(Violation::new("limit", wanted())))
}

/// Writes lists.
struct List<'a> {
    exchange: &'a Exchange,
    /// Scheme and host as the client sees them.
    origin: &'a str,
}

impl List<'_> {
    /// Every enabled agent, by id, each with its first skills.
    fn of_all(&self, skills: u8) -> CardDocument {
        let agents = self.exchange.agents();
        let enabled = agents.filter(|agent| agent.settings().enabled);
        self.document(enabled, |out, agent| {
            self.agent(out, agent, agent.public_skills().take(skills.into()));
        })
    }

    fn of_found(&self, found: &[FoundAgent<'_>]) -> CardDocument {
        self.document(found, |out, found| self.agent(out, found.agent, found.skills.iter().copied()))
    }

    fn document<T>(
        &self,
        agents: impl IntoIterator<Item = T>,
        each: impl FnMut(&mut Writer, T),
    ) -> CardDocument {
        let default = self.exchange.catalog.enabled_default_agent(self.exchange.endpoint.tenant.id());
        let mut writer = Writer::new();
        writer.object(|out| {
            out.maybe_text("defaultAgent", default);
            out.key("agents").array(agents, each);
        });
        document(writer)
    }

    fn agent<'s>(
        &self,
        out: &mut Writer,
        agent: &RegisteredAgent,
        skills: impl Iterator<Item = &'s AgentSkill>,
    ) {
        out.object(|out| {
            encode_agent(out, agent.info(), agent.settings(), self.origin);
            out.text("version", &agent.info().version);
            out.key("skillCount").int(i64::try_from(agent.public_skill_count()).unwrap_or(i64::MAX));
            out.key("skills").array(skills, |out, skill| {
                out.object(|out| {
                    out.text("id", &skill.id);
                    out.text("name", &skill.name);
                    out.text("description", &skill.description);
                    out.texts("tags", &skill.tags);
                });
            });
        });
    }
}

/// The members by which this list and the one at `/` show an agent. `origin` is scheme and host as the client sees them.
pub(crate) fn encode_agent(out: &mut Writer, info: &AgentInfo, settings: &AgentSettings, origin: &str) {
    let url = format!("{origin}{}", routes::agent_path(&info.id));
    out.text("id", &info.id);
    out.text("name", &info.name);
    out.text("description", &info.description);
    out.text("url", &url);
    out.text("card", &format!("{url}{}", routes::CARD));
    out.key("anonymous").boolean(settings.is_open());
}
