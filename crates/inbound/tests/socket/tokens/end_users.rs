//! The token of the person on whose behalf a caller acts.

use a2ad_inbound::EndUser;

use super::{
    Fixture, NOW, SECRET,
    key_server::Availability,
    signer::{Signer, jwks},
};

#[tokio::test]
async fn end_user_is_the_subject_of_its_token() {
    let (caller, user) = (Signer::hs256(SECRET), Signer::es256());
    let fixture = Fixture::open(|_, settings| settings.end_user = EndUser::Required).await;
    fixture.keys.serve("/keys", &jwks(&[&user]));
    let own = caller.token(&format!(r#"{{"sub":"service","exp":{}}}"#, NOW + 60));
    let call = async |of_user: &str| {
        fixture.call_with(&format!("authorization: Bearer {own}\r\nx-end-user-token: {of_user}")).await
    };
    // Both kinds of tokens identify a user.
    let answer = call(&fixture.token(&user)).await;
    let expected = format!("<A2A_SECRET#service|{}>", fixture.alice());
    assert!(answer.body.contains(&expected), "{}", answer.body);
    let answer = call(&own).await;
    assert!(answer.body.contains("<A2A_SECRET#service|A2A_SECRET#service>"), "{}", answer.body);

    let missing = fixture.call(&own).await;
    assert_eq!(missing.status, 401);
    assert!(missing.body.contains("X-End-User-Token"), "{}", missing.body);
    for (token, reason) in [
        ("a.b.c".to_owned(), "the token in X-End-User-Token is not valid"),
        (Signer::es256().token(&fixture.claims("")), "its signature does not match"),
        (user.token(&format!(r#"{{"exp":{}}}"#, NOW + 60)), "it has no iss"),
    ] {
        let answer = call(&token).await;
        assert_eq!(answer.status, 401, "{}", answer.body);
        assert!(answer.body.contains(reason), "{reason}: {}", answer.body);
    }
}

#[tokio::test]
async fn keys_of_both_tokens_are_loaded() {
    let (one, other) = (Signer::es256(), Signer::eddsa());
    let fixture = Fixture::open(|options, settings| {
        settings.end_user = EndUser::Required;
        let mut second = options.issuers[0].clone();
        second.issuer = "https://people.example".into();
        second.jwks_uri = second.jwks_uri.map(|uri| uri.replace("/keys", "/people"));
        options.issuers.push(second);
    })
    .await;
    fixture.keys.serve("/keys", &jwks(&[&one]));
    fixture.keys.serve("/people", &jwks(&[&other]));
    let of_user = other.token(&fixture.claims("").replace(&fixture.keys.url(""), "https://people.example"));
    let headers = format!("authorization: Bearer {}\r\nx-end-user-token: {of_user}", fixture.token(&one));
    let answer = fixture.call_with(&headers).await;
    let expected = format!("<{}|https://people.example#alice>", fixture.alice());
    assert!(answer.body.contains(&expected), "{}", answer.body);

    // A credential that is refused anyway does not wait for the keys of the other token.
    let fixture = Fixture::open(|_, settings| settings.end_user = EndUser::Required).await;
    fixture.keys.set(Availability::Held);
    let headers = format!("authorization: Bearer a.b.c\r\nx-end-user-token: {}", fixture.token(&one));
    assert_eq!(fixture.call_with(&headers).await.status, 401);
}
