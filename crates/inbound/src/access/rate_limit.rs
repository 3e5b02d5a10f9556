//! How often callers may call: the generic cell rate algorithm (GCRA) per API key or principal, tenant and agent.
//!
//! A rate such as `600/min` permits 600 calls at once and one more every tenth of a second. What is counted is decided
//! in `exchange.rs` and `sender.rs`; here a caller is only a [`RateKey`]. Keys are hashed under a random key of the process, so that a
//! check allocates nothing, whatever the length of a principal, and nobody can choose keys that collide.
//!
//! Memory is bounded: a limit has at most 262,144 keys. Those that are back to their full rate are removed,
//! because they do not differ from keys that are absent; if all of them are active, further keys share one state, so
//! that they are still limited.
//!
//! A reload replaces the limits ([`RateLimiters::with_limits`]). A limit that stays keeps its states; one that changes
//! starts with them in proportion, so that nobody who has used up the old rate gets the new one at once.
//!
//! A caller that goes on calling although it is refused is slowed down: [`PROMPT_REFUSALS`] are sent at once, further ones
//! after [`REFUSAL_DELAY`]. Otherwise a client in a loop would use the processor for refusals alone, and others would
//! wait for it.

mod limiter;
mod rate;

use std::{
    hash::{BuildHasher as _, Hash, RandomState},
    net::IpAddr,
    num::NonZeroU32,
    sync::Arc,
    time::Duration,
};

use protocol::{Error, ErrorKind};

use crate::addresses::network::network;
use limiter::Limiter;
pub use rate::Rate;

/// Refusals of one caller that are sent at once.
const PROMPT_REFUSALS: Rate = Rate::per_second(NonZeroU32::new(20).expect("not zero"));
/// How long further ones are held back. A connection of HTTP/1.1 then has five of them a second; one of HTTP/2 has as many
/// times more as it has streams.
const REFUSAL_DELAY: Duration = Duration::from_millis(200);

/// The rate limits of a server; `None` is no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RateLimits {
    /// Of each API key, of each principal with another credential, and of each address without a credential.
    pub per_key: Option<Rate>,
    /// Of each tenant.
    pub per_tenant: Option<Rate>,
    /// Of each agent.
    pub per_agent: Option<Rate>,
}

/// What the calls of a caller are counted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum RateKey<'a> {
    /// The id of an API key. One principal may have several.
    ApiKey(&'a str),
    /// Of a caller with another credential.
    Principal(&'a str),
    /// The network address of a caller without a credential.
    Address(IpAddr),
    /// The network address of somebody whose credentials are refused. Apart from callers without one: neither takes
    /// from the rate of the other.
    Refused(IpAddr),
}

impl RateKey<'_> {
    /// The key of an anonymous caller at this address. A network of IPv6 is one caller: its owner can use any address in
    /// it.
    pub(crate) fn of_address(address: IpAddr) -> Self {
        Self::Address(network(address))
    }

    /// The key of somebody at this address whose credentials are refused.
    pub(crate) fn of_refused(address: IpAddr) -> RateKey<'static> {
        RateKey::Refused(network(address))
    }
}

/// The limits of a server with the state of every key.
pub(crate) struct RateLimiters {
    hasher: RandomState,
    per_key: Option<Arc<Limiter>>,
    per_tenant: Option<Arc<Limiter>>,
    per_agent: Option<Arc<Limiter>>,
    prompt_refusals: Arc<Limiter>,
}

impl RateLimiters {
    pub(crate) fn new(limits: RateLimits, clock: &engine::Clock) -> Self {
        let limiter = |rate: Rate| Arc::new(Limiter::new(rate, clock.clone()));
        Self {
            hasher: RandomState::new(),
            per_key: limits.per_key.map(limiter),
            per_tenant: limits.per_tenant.map(limiter),
            per_agent: limits.per_agent.map(limiter),
            prompt_refusals: limiter(PROMPT_REFUSALS),
        }
    }

    /// The same callers with other limits.
    pub(crate) fn with_limits(&self, limits: RateLimits, clock: &engine::Clock) -> Self {
        let limiter = |old: &Option<Arc<Limiter>>, rate: Option<Rate>| {
            rate.map(|rate| match old {
                Some(old) if old.rate == rate => Arc::clone(old),
                Some(old) => Arc::new(old.with_rate(rate)),
                None => Arc::new(Limiter::new(rate, clock.clone())),
            })
        };
        Self {
            hasher: self.hasher.clone(),
            per_key: limiter(&self.per_key, limits.per_key),
            per_tenant: limiter(&self.per_tenant, limits.per_tenant),
            per_agent: limiter(&self.per_agent, limits.per_agent),
            prompt_refusals: Arc::clone(&self.prompt_refusals),
        }
    }

    /// Counts a request whose credentials were refused.
    pub(crate) fn check_refused(&self, tenant: &str, sender: RateKey<'_>) -> Result<(), Error> {
        let Some(limiter) = &self.per_key else { return Ok(()) };
        limiter.check(self.hasher.hash_one((tenant, sender))).map_err(too_many_refused)
    }

    /// Whether so many credentials of a sender were refused that no more are verified where that is costly.
    pub(crate) fn is_refused(&self, tenant: &str, sender: RateKey<'_>) -> Result<(), Error> {
        let Some(limiter) = &self.per_key else { return Ok(()) };
        limiter.peek(self.hasher.hash_one((tenant, sender))).map_err(too_many_refused)
    }

    /// Counts a call of a caller. Its own limit comes first: what it exceeds does not count against its tenant.
    pub(crate) fn check_caller(&self, tenant: &str, caller: Option<RateKey<'_>>) -> Result<(), Error> {
        if let (Some(limiter), Some(caller)) = (&self.per_key, caller) {
            self.check(limiter, (tenant, caller), "you")?;
        }
        match &self.per_tenant {
            Some(limiter) => self.check(limiter, tenant, "all callers of this tenant together"),
            None => Ok(()),
        }
    }

    /// Counts a call of an agent.
    pub(crate) fn check_agent(&self, tenant: &str, agent: &str) -> Result<(), Error> {
        match &self.per_agent {
            Some(limiter) => self.check(limiter, (tenant, agent), "all callers of this agent together"),
            None => Ok(()),
        }
    }

    /// Counts a refusal by one of these limits; returns how long to hold it back.
    pub(crate) fn refusal_delay(&self, tenant: &str, caller: RateKey<'_>) -> Option<Duration> {
        let key = self.hasher.hash_one((tenant, caller));
        self.prompt_refusals.check(key).is_err().then_some(REFUSAL_DELAY)
    }

    fn check(&self, limiter: &Limiter, key: impl Hash, who: &str) -> Result<(), Error> {
        limiter.check(self.hasher.hash_one(key)).map_err(|seconds| {
            let rate = limiter.rate;
            let text = format!("too many calls: {who} may call {rate}; call again in {seconds} s");
            Error::new(ErrorKind::RateLimited, text).with("limit", rate).with_retry_after(seconds)
        })
    }
}

fn too_many_refused(seconds: u64) -> Error {
    let text =
        format!("too many requests with refused credentials from your address; try again in {seconds} s");
    Error::new(ErrorKind::RateLimited, text).with_retry_after(seconds)
}

/// One caller's limit, for the measurement of what a check costs.
#[doc(hidden)]
pub struct RateCheck {
    limiters: RateLimiters,
    principals: Vec<String>,
}

impl RateCheck {
    /// The highest rate for this many principals.
    pub fn new(principals: usize) -> Self {
        let limits = RateLimits { per_key: Some(Rate::max()), ..RateLimits::default() };
        let principals = (0..principals).map(|number| format!("key:{number}")).collect();
        Self { limiters: RateLimiters::new(limits, &engine::Clock::system()), principals }
    }

    /// Checks one call of one of the principals; whether it is permitted.
    pub fn check(&self, call: usize) -> bool {
        let principal = &self.principals[call % self.principals.len()];
        self.limiters.check_caller("default", Some(RateKey::Principal(principal))).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use protocol::Timestamp;

    use super::*;

    fn limits(per_key: &str) -> RateLimits {
        RateLimits { per_key: Some(per_key.parse().unwrap()), ..RateLimits::default() }
    }

    fn clock() -> engine::Clock {
        engine::Clock::manual(Timestamp::from_millis(0))
    }

    #[test]
    fn what_a_caller_may_not_call_does_not_count_against_its_tenant() {
        let rates = RateLimits { per_tenant: Some("3/min".parse().unwrap()), ..limits("1/min") };
        let limiters = RateLimiters::new(rates, &clock());
        let call = |tenant, principal| limiters.check_caller(tenant, Some(RateKey::Principal(principal)));
        call("t", "a").unwrap();
        for _ in 0..10 {
            call("t", "a").unwrap_err();
        }
        call("t", "b").unwrap();
        limiters.check_caller("t", None).unwrap();
        assert!(call("t", "c").unwrap_err().message.contains("tenant"));
        call("other", "c").unwrap();
    }

    #[test]
    fn refusals_beyond_the_prompt_ones_are_held_back_also_after_a_reload() {
        let clock = clock();
        let limiters = RateLimiters::new(limits("1/h"), &clock);
        let delay = |limiters: &RateLimiters| limiters.refusal_delay("t", RateKey::Principal("a"));
        assert!((0..20).all(|_| delay(&limiters).is_none()));
        assert_eq!(delay(&limiters), Some(REFUSAL_DELAY));
        assert_eq!(limiters.refusal_delay("t", RateKey::Principal("b")), None);
        assert_eq!(delay(&limiters.with_limits(limits("2/h"), &clock)), Some(REFUSAL_DELAY));
        clock.advance(Duration::from_millis(50));
        assert_eq!([delay(&limiters), delay(&limiters)], [None, Some(REFUSAL_DELAY)]);
    }

    #[test]
    fn a_network_of_ipv6_is_one_caller() {
        let key = |text: &str| RateKey::of_address(text.parse().unwrap());
        assert_eq!(key("2001:db8::1"), key("2001:db8::ffff:2"));
        assert_ne!(key("2001:db8::1"), key("2001:db8:0:1::1"));
        assert_eq!(key("::ffff:192.0.2.1"), key("192.0.2.1"));
        assert_ne!(key("192.0.2.1"), key("192.0.2.2"));
    }
}
