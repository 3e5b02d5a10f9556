//! What the rows of each table mean, and the parts of them that are kept in memory.

pub(super) mod agent_switches;
pub(super) mod api_keys;
pub(super) mod counts;
pub(super) mod dead_letters;
pub(super) mod doc_format;
pub(super) mod docs;
pub(super) mod keys;
pub(super) mod rows;
pub(super) mod scopes;
pub(super) mod segments;
pub(super) mod usage;
pub(super) mod waiting;
pub(super) mod webhooks;
