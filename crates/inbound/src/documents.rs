//! What is served beside the calls: cards, the list of agents, the page at `/`, the OpenAPI document, public keys, readiness.

pub(crate) mod agent_list;
pub(crate) mod card;
pub(crate) mod home_page;
pub(crate) mod openapi;
pub(crate) mod published_keys;
pub(crate) mod ready;
