//! Tokens that are signed with a shared secret.

use super::{ACME_SECRET, Fixture, NOW, OWN_URL, SECRET, signer::Signer};

fn claims(more: &str) -> String {
    format!(r#"{{"sub":"alice","exp":{}{more}}}"#, NOW + 600)
}

#[tokio::test]
async fn secret_of_the_server_is_tried_before_that_of_the_organisation() {
    let fixture = Fixture::open(|_, _| {}).await;
    let (server, acme) = (Signer::hs256(SECRET), Signer::hs256(ACME_SECRET));
    let of_acme = claims(r#","org_domain":"acme.example""#);
    assert_eq!(fixture.principal(&server.token(&claims(""))).await, "A2A_SECRET#alice");
    assert_eq!(fixture.principal(&server.token(&of_acme)).await, "A2A_SECRET#alice");
    assert_eq!(fixture.principal(&acme.token(&of_acme)).await, "acme.example#alice");
    assert!(fixture.keys.requests().is_empty());

    // The same secret twice: the server's comes first.
    let fixture = Fixture::open(|options, _| {
        let secret = options.secret.as_ref().unwrap().secret.clone();
        options.org_secrets.insert("acme.example".into(), secret);
    })
    .await;
    assert_eq!(fixture.principal(&server.token(&of_acme)).await, "A2A_SECRET#alice");
}

#[tokio::test]
async fn token_without_a_subject_is_refused_unless_allowed() {
    let with = |claims: &str| Signer::hs256(SECRET).token(&format!(r#"{{"exp":{}{claims}}}"#, NOW + 600));
    let of_acme =
        Signer::hs256(ACME_SECRET).token(&format!(r#"{{"exp":{},"org_domain":"acme.example"}}"#, NOW + 600));
    let tokens = [with(""), with(r#","sub":"""#), of_acme];
    let fixture = Fixture::open(|_, _| {}).await;
    for token in &tokens {
        fixture.refuses(token, "it has no sub").await;
    }
    let fixture = Fixture::open(|options, _| options.allow_anonymous_tokens = true).await;
    for (token, principal) in tokens.iter().zip(["A2A_SECRET#", "A2A_SECRET#", "acme.example#"]) {
        assert_eq!(fixture.principal(token).await, principal);
    }
}

#[tokio::test]
async fn secret_of_the_organisation_counts_without_one_of_the_server() {
    let fixture = Fixture::open(|options, _| options.secret = None).await;
    let of_acme = claims(r#","org_domain":"acme.example""#);
    assert_eq!(fixture.principal(&Signer::hs256(ACME_SECRET).token(&of_acme)).await, "acme.example#alice");
    fixture.refuses(&Signer::hs256(SECRET).token(&of_acme), "its signature does not match").await;
    let fixture = Fixture::open(|options, _| {
        options.secret = None;
        options.org_secrets.clear();
    })
    .await;
    fixture.refuses(&Signer::hs256(SECRET).token(&claims("")), "this server has no shared secret").await;
}

#[tokio::test]
async fn organisation_is_found_without_regard_to_case() {
    let fixture = Fixture::open(|_, _| {}).await;
    for domain in ["ACME.example", "Acme.Example", "acme.example"] {
        let token = Signer::hs256(ACME_SECRET).token(&claims(&format!(r#","org_domain":"{domain}""#)));
        assert_eq!(fixture.principal(&token).await, "acme.example#alice", "{domain}");
    }
}

#[tokio::test]
async fn issuer_has_to_be_an_accepted_one_where_some_are_listed() {
    let token = |iss: &str| Signer::hs256(SECRET).token(&claims(iss));
    let (mail, other) =
        (token(r#","iss":"https://mail.example""#), token(r#","iss":"https://evil.example""#));
    let fixture = Fixture::open(|_, _| {}).await;
    assert_eq!(fixture.principal(&other).await, "A2A_SECRET#alice");
    let accepted = || vec!["https://mail.example".to_owned(), "http://localhost:3000".to_owned()];
    let fixture = Fixture::open(|options, _| options.accepted_issuers = accepted()).await;
    assert_eq!(fixture.principal(&mail).await, "A2A_SECRET#alice");
    assert_eq!(fixture.principal(&token("")).await, "A2A_SECRET#alice");
    fixture.refuses(&other, "its issuer is unknown here").await;
}

#[tokio::test]
async fn wrong_signature_and_unknown_organisation_get_the_same_response() {
    let fixture = Fixture::open(|_, _| {}).await;
    let other = Signer::hs256(b"a secret that nobody has entered");
    let mut bodies = Vec::new();
    for organisation in ["acme.example", "unknown.example", ""] {
        let token = other.token(&claims(&format!(r#","org_domain":"{organisation}""#)));
        let answer = fixture.call(&token).await;
        assert_eq!(answer.status, 401);
        bodies.push(answer.body);
    }
    // An organisation's secret is for that organisation only.
    let stolen = Signer::hs256(ACME_SECRET).token(&claims(r#","org_domain":"unknown.example""#));
    bodies.push(fixture.call(&stolen).await.body);
    bodies.push(fixture.call(&Signer::hs256(ACME_SECRET).token(&claims(""))).await.body);
    // In the place of an unknown organisation's secret.
    let zeros = Signer::hs256(&[0; 32]).token(&claims(r#","org_domain":"unknown.example""#));
    bodies.push(fixture.call(&zeros).await.body);
    assert!(bodies[0].contains("its signature does not match"), "{}", bodies[0]);
    assert!(bodies.iter().all(|body| *body == bodies[0]), "{bodies:?}");
}

#[tokio::test]
async fn empty_secret_verifies_nothing() {
    let fixture = Fixture::open(|options, _| {
        options.secret.as_mut().unwrap().secret = protocol::model::Secret::new("");
        options.org_secrets.insert("empty.example".into(), protocol::model::Secret::new(""));
    })
    .await;
    let empty = Signer::hs256(b"");
    for more in ["", r#","org_domain":"empty.example""#, r#","org_domain":"""#] {
        fixture.refuses(&empty.token(&claims(more)), "its signature does not match").await;
    }
}

#[tokio::test]
async fn lifetime_issuer_and_audience_are_checked() {
    let fixture = Fixture::open(|_, _| {}).await;
    let signer = Signer::hs256(SECRET);
    let issuer = fixture.keys.url("");
    for more in [
        String::new(),
        r#","iss":"billing""#.into(),
        format!(r#","aud":"{OWN_URL}""#),
        r#","aud":["x","https://other-name.example"]"#.into(),
        format!(r#","nbf":{},"iat":{NOW}.25"#, NOW + 29),
    ] {
        assert_eq!(fixture.principal(&signer.token(&claims(&more))).await, "A2A_SECRET#alice", "{more}");
    }
    for (more, reason) in [
        (format!(r#","iss":"{issuer}""#), "its issuer signs with a key of its own"),
        (r#","iss":"""#.into(), "its issuer is unknown here"),
        (format!(r#","aud":"{OWN_URL}/""#), "it is for another audience"),
        (r#","aud":[]"#.into(), "it is for another audience"),
        (format!(r#","nbf":{}"#, NOW + 31), "it is not valid yet"),
    ] {
        fixture.refuses(&signer.token(&claims(&more)), reason).await;
    }
    fixture.refuses(&signer.token(&format!(r#"{{"exp":{}}}"#, NOW - 30)), "it has expired").await;
    fixture.refuses(&signer.token(r#"{"sub":"alice"}"#), "it has no exp").await;
}

#[tokio::test]
async fn token_of_another_library_is_accepted() {
    let fixture = Fixture::open(|options, _| {
        let secret = protocol::model::Secret::new("a sample secret of 32 characters");
        options.secret.as_mut().unwrap().secret = secret;
    })
    .await;
    assert_eq!(fixture.principal(include_str!("samples/hs256.txt").trim()).await, "A2A_SECRET#sample");
}
