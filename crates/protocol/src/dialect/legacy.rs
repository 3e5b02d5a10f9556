//! What the JSON-RPC generations before 1.0 have in common.
//!
//! `draft` and `v03` tag their parts, spell states and roles in lower case, fix the text of their errors and
//! nest a webhook's config. The pieces for that stand here once; what each generation builds of them stands
//! in its own folder. Neither can say all the model can: what is left goes through [`carrier`].

pub mod carrier;
pub(crate) mod error;
pub(crate) mod operation;
pub(crate) mod part;
pub(crate) mod push;
pub(crate) mod time;
pub(crate) mod word;
