//! Tokens of issuers that sign with keys of their own.

use a2ad_inbound::{AuthMethod, AuthMethods, KeyUrl};

use super::{
    AUDIENCE, Fixture, NOW, SECRET,
    signer::{Signer, decode, encode, jwks, jwks_of},
};

#[tokio::test]
async fn each_algorithm_is_accepted() {
    let signers = [Signer::rs256(), Signer::ps256(), Signer::es256(), Signer::es384(), Signer::eddsa()];
    let fixture = Fixture::with_keys(&signers.each_ref()).await;
    for signer in &signers {
        let algorithm = signer.algorithm;
        let token = fixture.token(signer);
        assert_eq!(fixture.principal(&token).await, fixture.alice(), "{algorithm}");
        assert_eq!(fixture.principal(&token).await, fixture.alice(), "{algorithm}, again");
        let without_id = signer.token_with(&format!(r#"{{"alg":"{algorithm}"}}"#), &fixture.claims(""));
        assert_eq!(fixture.principal(&without_id).await, fixture.alice(), "{algorithm}, without kid");
    }
    assert_eq!(fixture.keys.requests(), ["/keys"]);
}

#[tokio::test]
async fn tokens_of_another_library_are_accepted() {
    let fixture = Fixture::open(|options, _| {
        options.issuers[0].issuer = "https://samples.example".into();
        options.issuers[0].audience = "samples".into();
    })
    .await;
    fixture.keys.serve("/keys", include_str!("samples/jwks.json"));
    for token in include_str!("samples/tokens.txt").lines() {
        assert_eq!(fixture.principal(token).await, "https://samples.example#sample", "{token}");
    }
}

/// RFC 7518 does not choose between the two values that are valid for every ECDSA signature.
#[tokio::test]
async fn both_forms_of_an_ecdsa_signature_are_accepted() {
    let signer = Signer::es256();
    let fixture = Fixture::with_keys(&[&signer]).await;
    let token = fixture.token(&signer);
    let (signed, signature) = token.rsplit_once('.').unwrap();
    let mut signature = decode(signature);
    negate(&mut signature[32..]);
    let other = format!("{signed}.{}", encode(&signature));
    assert_eq!(fixture.principal(&token).await, fixture.alice());
    assert_eq!(fixture.principal(&other).await, fixture.alice());
}

/// The order of the curve P-256 less the number.
fn negate(number: &mut [u8]) {
    const ORDER: [u8; 32] = [
        0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xbc, 0xe6, 0xfa,
        0xad, 0xa7, 0x17, 0x9e, 0x84, 0xf3, 0xb9, 0xca, 0xc2, 0xfc, 0x63, 0x25, 0x51,
    ];
    let mut borrow = 0;
    for (digit, order) in number.iter_mut().zip(ORDER).rev() {
        let difference = i16::from(order) - i16::from(*digit) - borrow;
        borrow = i16::from(difference < 0);
        *digit = (difference & 0xff) as u8;
    }
}

#[tokio::test]
async fn token_has_to_be_signed_by_the_issuer_that_it_names() {
    let (one, other) = (Signer::es256().named("k"), Signer::es256().named("k"));
    let fixture = Fixture::open(|options, _| {
        let mut second = options.issuers[0].clone();
        second.issuer = "https://second.example".into();
        second.jwks_uri = second.jwks_uri.map(|uri| uri.replace("/keys", "/second"));
        options.issuers.push(second);
    })
    .await;
    fixture.keys.serve("/keys", &jwks(&[&one]));
    fixture.keys.serve("/second", &jwks(&[&other]));
    assert_eq!(fixture.principal(&fixture.token(&one)).await, fixture.alice());
    let of_second = fixture.claims("").replace(&fixture.keys.url(""), "https://second.example");
    assert_eq!(fixture.principal(&other.token(&of_second)).await, "https://second.example#alice");
    fixture.refuses(&other.token(&fixture.claims("")), "its signature does not match").await;
    fixture.refuses(&one.token(&of_second), "its signature does not match").await;
    let of_third = of_second.replace("second", "third");
    fixture.refuses(&one.token(&of_third), "its issuer is unknown here").await;
}

#[tokio::test]
async fn claims_of_issuers_are_required() {
    let signer = Signer::eddsa();
    let fixture = Fixture::with_keys(&[&signer]).await;
    let issuer = fixture.keys.url("");
    let exp = NOW + 600;
    let cases = [
        (format!(r#"{{"iss":"{issuer}","aud":"{AUDIENCE}","sub":"a"}}"#), "it has no exp"),
        (format!(r#"{{"iss":"{issuer}","aud":"{AUDIENCE}","exp":{exp}}}"#), "it has no sub"),
        (format!(r#"{{"iss":"{issuer}","aud":"{AUDIENCE}","sub":"","exp":{exp}}}"#), "it has no sub"),
        (format!(r#"{{"iss":"{issuer}","sub":"a","exp":{exp}}}"#), "it has no aud"),
        (format!(r#"{{"aud":"{AUDIENCE}","sub":"a","exp":{exp}}}"#), "it has no iss"),
        (format!(r#"{{"iss":"{issuer}","aud":"x","sub":"a","exp":{exp}}}"#), "it is for another audience"),
        (
            format!(r#"{{"iss":"{issuer}","aud":"{AUDIENCE}","sub":"a","exp":{}}}"#, NOW - 60),
            "it has expired",
        ),
        (fixture.claims(&format!(r#","nbf":{}"#, NOW + 60)), "it is not valid yet"),
    ];
    for (claims, reason) in cases {
        fixture.refuses(&signer.token(&claims), reason).await;
    }
    // The clocks of issuer and server may differ by 30 seconds.
    let recent = format!(r#"{{"iss":"{issuer}","aud":["x","{AUDIENCE}"],"sub":"a","exp":{}.5}}"#, NOW - 29);
    assert_eq!(fixture.principal(&signer.token(&recent)).await, fixture.keys.url("#a"));
    let soon = fixture.claims(&format!(r#","nbf":{}"#, NOW + 29));
    assert_eq!(fixture.principal(&signer.token(&soon)).await, fixture.alice());
}

#[tokio::test]
async fn agent_accepts_only_the_methods_that_it_lists() {
    let signer = Signer::es256();
    for (listed, accepted) in [(AuthMethod::Oidc, true), (AuthMethod::Jwt, false)] {
        let fixture = Fixture::open(|_, settings| settings.auth = AuthMethods::NONE.with(listed)).await;
        fixture.keys.serve("/keys", &jwks(&[&signer]));
        let with_key = fixture.call(&fixture.token(&signer)).await.status;
        let with_secret = Signer::hs256(SECRET).token(&format!(r#"{{"sub":"a","exp":{}}}"#, NOW + 600));
        let with_secret = fixture.call(&with_secret).await.status;
        let expected = if accepted { (200, 401) } else { (401, 200) };
        assert_eq!((with_key, with_secret), expected, "{listed:?}");
    }
}

#[tokio::test]
async fn discovery_document_names_the_keys() {
    let signer = Signer::es256();
    let fixture = Fixture::open(|options, _| options.issuers[0].jwks_uri = None).await;
    let (url, discovery) = (fixture.keys.url(""), "/.well-known/openid-configuration");
    fixture.keys.serve(discovery, &format!(r#"{{"issuer":"{url}","jwks_uri":"{url}/elsewhere"}}"#));
    fixture.keys.serve("/elsewhere", &jwks(&[&signer]));
    assert_eq!(fixture.principal(&fixture.token(&signer)).await, fixture.alice());
    assert_eq!(
        fixture.keys.asked(),
        [KeyUrl::Configured(format!("{url}{discovery}")), KeyUrl::Configured(format!("{url}/elsewhere"))]
    );

    // An address at another origin is not the operator's.
    let fixture = Fixture::open(|options, _| options.issuers[0].jwks_uri = None).await;
    let url = fixture.keys.url("");
    let elsewhere = url.replace("http://", "http://user@");
    fixture.keys.serve(discovery, &format!(r#"{{"issuer":"{url}","jwks_uri":"{elsewhere}/keys"}}"#));
    assert_eq!(fixture.call(&fixture.token(&signer)).await.status, 503);
    assert_eq!(fixture.keys.asked()[1], KeyUrl::Discovered(format!("{elsewhere}/keys")));

    // The document has to be that of the configured issuer.
    let fixture = Fixture::open(|options, _| options.issuers[0].jwks_uri = None).await;
    let url = fixture.keys.url("");
    fixture.keys.serve(discovery, &format!(r#"{{"issuer":"{url}/","jwks_uri":"{url}/keys"}}"#));
    fixture.keys.serve("/keys", &jwks(&[&signer]));
    assert_eq!(fixture.call(&fixture.token(&signer)).await.status, 503);
    assert_eq!(fixture.keys.requests(), [discovery]);
}

#[tokio::test]
async fn keys_for_other_purposes_are_not_used() {
    let (signer, rsa) = (Signer::es256(), Signer::rs256());
    let secret = Signer::hs256(b"published by mistake, 32 bytes..");
    let published =
        format!(r#"{{"kty":"oct","kid":"oct","k":"{}"}}"#, encode(b"published by mistake, 32 bytes.."));
    let cases = [
        (signer.jwk(r#","use":"enc""#), signer.algorithm, &signer),
        (signer.jwk(r#","key_ops":["sign"]"#), signer.algorithm, &signer),
        (signer.jwk(r#","alg":"ES384""#), signer.algorithm, &signer),
        (signer.jwk(r#","d":"AAAA""#), signer.algorithm, &signer),
        (signer.jwk(r#","use":"sig","use":"sig""#), signer.algorithm, &signer),
        (signer.jwk("").replace("P-256", "P-384"), signer.algorithm, &signer),
        (signer.jwk("").replace(r#""kty":"EC""#, r#""kty":"OKP""#), signer.algorithm, &signer),
        (rsa.jwk(r#","alg":"PS256""#), rsa.algorithm, &rsa),
        (rsa.jwk(r#","alg":"RSA-OAEP-256""#), rsa.algorithm, &rsa),
        (published, "HS256", &secret),
    ];
    for (key, algorithm, signer) in cases {
        let fixture = Fixture::open(|_, _| {}).await;
        fixture.keys.serve("/keys", &jwks_of(std::slice::from_ref(&key)));
        let header = format!(r#"{{"alg":"{algorithm}"}}"#);
        let claims = if algorithm == "HS256" {
            fixture.claims("").replace(r#""iss""#, r#""other""#)
        } else {
            fixture.claims("")
        };
        fixture.refuses(&signer.token_with(&header, &claims), "its signature does not match").await;
        // The same key without the member that makes it unusable.
        if !key.contains("oct") {
            let fixture = Fixture::with_keys(&[signer]).await;
            let token = signer.token_with(&header, &fixture.claims(""));
            assert_eq!(fixture.principal(&token).await, fixture.alice());
        }
    }
    let fixture = Fixture::open(|options, _| {
        options.issuers[0].issuer = "https://samples.example".into();
        options.issuers[0].audience = "samples".into();
    })
    .await;
    fixture.keys.serve("/keys", include_str!("samples/weak_jwks.json"));
    fixture
        .refuses(include_str!("samples/weak_token.txt").trim(), "its issuer has no key with its kid")
        .await;
}
