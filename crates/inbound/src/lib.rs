//! Bytes from a socket become a call by a known caller; the answer becomes bytes.
//!
//! A [`Front`] is everything a server answers, to be mounted anywhere; [`listen`] is our own way of accepting
//! connections, with the timers and caps that a bare accept loop lacks. Nothing here decides about tasks.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod admit;
mod auth;
mod bindings;
mod body;
mod card;
mod choose;
mod front;
pub mod listen;
mod origin;
mod page;
mod perform;
mod profile;
mod project;
mod ready;
mod respond;
mod routes;
mod server_state;
mod sse;
mod trace;
mod version;

pub use admit::ExtendedCard;
pub use card::{CardOptions, CardShape};
pub use front::Front;
pub use ipnet::IpNet;
pub use profile::{AuthForm, CardForm, FailedReply, Profile, ReplyForm};
pub use ready::Ready;
pub use routes::is_own_path;
pub use server_state::{AgentSettings, Options};
pub use version::AcceptedVersions;
