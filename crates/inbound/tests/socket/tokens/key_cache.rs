//! When the keys of an issuer are fetched, and for how long they are used.

use std::time::Duration;

use futures_util::future::join_all;

use super::{
    Fixture, NOW,
    key_server::Availability,
    log::Log,
    signer::{Signer, jwks, jwks_of},
    skip,
};
use crate::common::with_timeout;

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);

/// Calls with a token until the response has this status. The keys are fetched beside the calls.
async fn until(fixture: &Fixture, token: &str, status: u16) {
    with_timeout(async { while fixture.call(token).await.status != status {} }).await;
}

#[tokio::test]
async fn concurrent_first_calls_cause_one_fetch() {
    let signer = Signer::es256();
    let fixture = Fixture::with_keys(&[&signer]).await;
    let token = fixture.token(&signer);
    fixture.keys.set(Availability::Held);
    let calls = join_all((0..100).map(|_| fixture.call(&token)));
    let release = async {
        fixture.keys.requested(1).await;
        // Accepted after the connections of all calls.
        assert_eq!(fixture.server.get("/healthz").await.status, 200);
        fixture.keys.set(Availability::Up);
    };
    let (answers, ()) = tokio::join!(calls, release);
    assert!(answers.iter().all(|answer| answer.status == 200 && answer.body.contains("#alice|")));
    assert_eq!(fixture.keys.requests(), ["/keys"]);
}

/// A client that disconnects does not end the fetch that others wait for.
#[tokio::test]
async fn fetch_goes_on_without_the_caller_that_began_it() {
    let signer = Signer::es256();
    let fixture = Fixture::with_keys(&[&signer]).await;
    let token = fixture.token(&signer);
    fixture.keys.set(Availability::Held);
    tokio::select! {
        _ = fixture.call(&token) => panic!("answered without keys"),
        () = fixture.keys.requested(1) => {}
    }
    let call = fixture.call(&token);
    let release = async {
        assert_eq!(fixture.server.get("/healthz").await.status, 200);
        fixture.keys.set(Availability::Up);
    };
    let (answer, ()) = tokio::join!(call, release);
    assert_eq!(answer.status, 200);
    assert_eq!(fixture.keys.requests(), ["/keys"]);
}

#[tokio::test]
async fn new_key_is_found_and_a_removed_one_is_refused() {
    let (old, new) = (Signer::es256().named("old"), Signer::es256().named("new"));
    let fixture = Fixture::with_keys(&[&old]).await;
    let (of_old, of_new) = (fixture.token(&old), fixture.token(&new));
    assert_eq!(fixture.principal(&of_old).await, fixture.alice());
    fixture.keys.serve("/keys", &jwks(&[&old, &new]));
    fixture.refuses(&of_new, "its issuer has no key with its kid").await;
    assert_eq!(fixture.keys.requests().len(), 1, "fetched a moment ago");

    skip(30 * SECOND).await;
    assert_eq!(fixture.principal(&of_new).await, fixture.alice());
    assert_eq!(fixture.principal(&of_old).await, fixture.alice());
    assert_eq!(fixture.keys.requests().len(), 2);

    fixture.keys.serve("/keys", &jwks(&[&new]));
    skip(4 * MINUTE).await;
    assert_eq!(fixture.principal(&of_old).await, fixture.alice(), "not fetched yet");
    skip(6 * MINUTE).await;
    // The keys are not fresh: they are used once more while they are fetched.
    assert_eq!(fixture.principal(&of_old).await, fixture.alice());
    until(&fixture, &of_old, 401).await;
    assert_eq!(fixture.principal(&of_new).await, fixture.alice());
    assert_eq!(fixture.keys.requests().len(), 3);
}

/// Also if the token was verified shortly before the keys changed.
#[tokio::test]
async fn verified_token_is_refused_when_its_key_is_gone() {
    let (old, new) = (Signer::es256().named("old"), Signer::es256().named("new"));
    let fixture = Fixture::with_keys(&[&old]).await;
    let of_old = fixture.token(&old);
    assert_eq!(fixture.principal(&of_old).await, fixture.alice());
    skip(30 * SECOND).await;
    fixture.keys.serve("/keys", &jwks(&[&new]));
    // This one causes the fetch.
    assert_eq!(fixture.principal(&fixture.token(&new)).await, fixture.alice());
    fixture.refuses(&of_old, "its issuer has no key with its kid").await;
    // The same id for another key.
    skip(30 * SECOND).await;
    let impostor = Signer::es256().named("new");
    let of_new = fixture.token(&new);
    assert_eq!(fixture.principal(&of_new).await, fixture.alice());
    fixture.keys.serve("/keys", &jwks(&[&impostor]));
    fixture.refuses(&of_old, "its issuer has no key with its kid").await;
    fixture.refuses(&of_new, "its signature does not match").await;
}

#[tokio::test]
async fn verified_token_is_refused_outside_its_lifetime() {
    let signer = Signer::es256();
    let fixture = Fixture::with_keys(&[&signer]).await;
    let clock = fixture.server.engine.clock();
    let claims = fixture.claims(&format!(r#","nbf":{NOW}"#));
    let token = signer.token(&claims);
    assert_eq!(fixture.principal(&token).await, fixture.alice());
    let start = clock.now();
    clock.set(protocol::Timestamp::from_millis(start.as_millis() - 120_000));
    fixture.refuses(&token, "it is not valid yet").await;
    clock.set(start);
    assert_eq!(fixture.principal(&token).await, fixture.alice());
    clock.advance(Duration::from_secs(629));
    assert_eq!(fixture.principal(&token).await, fixture.alice());
    clock.advance(SECOND);
    fixture.refuses(&token, "it has expired").await;
}

#[tokio::test]
async fn unreachable_issuer_is_unavailable_until_it_is_back() {
    let (log, _guard) = Log::start();
    let signer = Signer::es256();
    let fixture = Fixture::with_keys(&[&signer]).await;
    let token = fixture.token(&signer);
    fixture.keys.set(Availability::Down);
    for _ in 0..3 {
        let answer = fixture.call(&token).await;
        assert_eq!(answer.status, 503, "{}", answer.body);
        assert!(answer.header("retry-after").is_some());
        assert!(answer.body.contains("credentials cannot be verified right now"), "{}", answer.body);
    }
    assert_eq!(fixture.keys.requests().len(), 1, "not repeated at once");
    let logged = log.text();
    let reasons = logged.lines().filter(|line| line.contains("keys of the issuer cannot be fetched"));
    assert_eq!(
        reasons.filter(|line| line.contains("WARN") && line.contains("status 503")).count(),
        1,
        "{logged}"
    );

    fixture.keys.set(Availability::Up);
    skip(2 * SECOND).await;
    assert_eq!(fixture.call(&token).await.status, 503);
    skip(3 * SECOND).await;
    assert_eq!(fixture.principal(&token).await, fixture.alice());
    assert_eq!(fixture.keys.requests().len(), 2);
}

#[tokio::test]
async fn keys_are_used_for_an_hour_without_their_issuer() {
    let signer = Signer::es256();
    let fixture = Fixture::with_keys(&[&signer]).await;
    let clock = fixture.server.engine.clock();
    let issuer = fixture.keys.url("");
    let claims = format!(r#"{{"iss":"{issuer}","aud":"a2ad","sub":"alice","exp":{}}}"#, NOW + 9_000);
    let token = signer.token(&claims);
    assert_eq!(fixture.principal(&token).await, fixture.alice());
    fixture.keys.set(Availability::Down);
    for minutes in [10, 20, 29] {
        skip(minutes * MINUTE).await;
        clock.advance(minutes * MINUTE);
        assert_eq!(fixture.principal(&token).await, fixture.alice(), "{minutes}");
    }
    skip(MINUTE).await;
    until(&fixture, &token, 503).await;
    fixture.keys.set(Availability::Up);
    skip(5 * SECOND).await;
    assert_eq!(fixture.principal(&token).await, fixture.alice());
}

/// A key that is not among those in memory may be a new one.
#[tokio::test]
async fn unknown_key_of_an_unreachable_issuer_is_unavailable() {
    let (old, new) = (Signer::es256().named("old"), Signer::es256().named("new"));
    let fixture = Fixture::with_keys(&[&old]).await;
    assert_eq!(fixture.principal(&fixture.token(&old)).await, fixture.alice());
    fixture.keys.set(Availability::Down);
    skip(30 * SECOND).await;
    assert_eq!(fixture.call(&fixture.token(&new)).await.status, 503);
    assert_eq!(fixture.principal(&fixture.token(&old)).await, fixture.alice());
    assert_eq!(fixture.call(&fixture.token(&new)).await.status, 503);
    assert_eq!(fixture.keys.requests().len(), 2);
}

#[tokio::test]
async fn documents_that_are_too_large_or_malformed_are_not_used() {
    let signer = Signer::es256();
    let many: Vec<String> = (0..101).map(|_| signer.jwk("")).collect();
    let documents = [
        format!(r#"{{"keys":[{}],"x":"{}"}}"#, signer.jwk(""), "x".repeat(256 << 10)),
        jwks_of(&many),
        format!(r#"{{"keys":{}}}"#, signer.jwk("")),
        format!(r#"{{"keys":[{}],"keys":[]}}"#, signer.jwk("")),
        jwks(&[&signer]) + "x",
        "<html>".into(),
        String::new(),
    ];
    for document in documents {
        let fixture = Fixture::open(|_, _| {}).await;
        fixture.keys.serve("/keys", &document);
        let answer = fixture.call(&fixture.token(&signer)).await;
        assert_eq!(answer.status, 503, "{document:.80}");
    }
    // The most keys, one of which is the right one, beside some that cannot be used.
    let mut keys: Vec<String> = (0..99).map(|_| r#"{"kty":"EC"}"#.to_owned()).collect();
    keys.push(signer.jwk(""));
    let fixture = Fixture::open(|_, _| {}).await;
    fixture.keys.serve("/keys", &jwks_of(&keys));
    assert_eq!(fixture.principal(&fixture.token(&signer)).await, fixture.alice());
}
