//! Client for one remote agent over JSON-RPC, in whichever version of the protocol the agent supports.
//!
//! [`call_agent`] sends a text and returns the text of the result. [`Client`] has one method for each
//! operation of A2A. [`Follow`] follows one message to its outcome: it reconnects when the connection breaks
//! and delivers every event once. [`find_card`] finds an agent's card, from which a client is made.
//!
//! ```no_run
//! # use a2ad_client::{Client, Error};
//! # async fn example() -> Result<(), Error> {
//! let client = Client::discover("https://agent.example").await?;
//! let task = client.send("how much is 10 USD in INR?").await?.into_task();
//! if let Some(task) = task {
//!     println!("{:?}", client.get_task(task.id).await?.status.state);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! - **Errors.** Each variant of [`Error`] is one cause: no connection, an HTTP status, an error of the agent
//!   ([`Error::Protocol`]), a response that is not valid A2A, which includes one of the wrong kind
//!   ([`Error::Malformed`]), and so on. [`Error::is_retryable`] is true if the same call may succeed later. A
//!   task that failed is not an error of the call: its state is in the task.
//! - **Timeouts.** Connecting takes at most 10 seconds. A call has no other timeout, because agents may work
//!   for hours: use `tokio::time::timeout` around it. Dropping a future or a stream cancels its request. Only
//!   [`call_agent`] has a timeout, of five minutes.
//! - **Redirects** are not followed, because credentials must not be sent to a host that the caller did not
//!   choose. They are [`Error::Redirected`] with the target.
//! - **Retries.** A [`Client`] does not retry. One exception is safe: if an agent's card does not show which
//!   of two old versions it uses and it does not know the method of the first, the call is made in the
//!   other one. [`Follow`] retries with backoff for as long as the caller waits, and sends a message again
//!   only to agents that deduplicate it.
//! - **TLS** uses rustls with aws-lc-rs and the root certificates of the platform, unless
//!   [`ClientTls`] names others. The default provider of the process is neither used nor set.
//! - **Proxies** of the environment (`HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY`, `NO_PROXY`) are used, except for
//!   loopback addresses.
//!
//! Restricting which hosts may be called is the task of a [`Transport`] that the caller passes.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod ask;
mod choose;
mod client;
mod delivered_task;
mod discover;
mod envelope;
mod error;
mod exchange;
mod follow;
mod history;
mod operations;
mod options;
mod reply;
#[doc(hidden)]
pub mod sse;
mod stream;
pub mod text;
mod tls;
pub mod transport;
mod validators;

pub use ask::call_agent;
pub use client::Client;
pub use discover::{FoundCard, find_card, get};
pub use error::Error;
pub use follow::{Follow, FollowEvent};
pub use options::ClientOptions;
pub use reply::SendReply;
pub use stream::EventStream;
pub use tls::{ClientTls, ClientTlsError};
pub use transport::{Transport, TransportError};
pub use validators::{Validators, WatchedDocument};
