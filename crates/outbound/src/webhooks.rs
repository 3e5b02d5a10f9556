//! Push notifications: sends them ([`sender`]), so that their receiver can tell that the server has sent them.
//!
//! Every delivery is signed as the Standard Webhooks specification says ([`signature`]), with a key that the server shares
//! with one receiver. A receiver that asked for the scheme `jwt` also gets a token that the server has signed with its own
//! key pair ([`token_signer`]), for which it needs no shared secret. That key pair is made when it is first needed
//! ([`push_key`]).

mod pem;
pub mod push_key;
#[cfg(feature = "backends")]
pub mod sender;
pub mod signature;
pub mod token_signer;
