//! Replies, errors and event streams as HTTP responses.

pub(crate) mod keep_alive;
pub(crate) mod refusal;
pub(crate) mod reply_additions;
pub(crate) mod reply_form;
pub(crate) mod respond;
pub(crate) mod sse;
