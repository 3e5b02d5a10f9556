//! Headers: algorithms, types, extensions, and addresses of keys.

use super::{Material, Signer, encode, header_with};

pub(super) fn add(material: &mut Material) {
    unsigned(material);
    other_algorithms(material);
    other_members(material);
    foreign_keys(material);
}

/// `none` in all spellings, with and without a signature.
fn unsigned(material: &mut Material) {
    let claims = material.claims();
    let spellings =
        ["none", "None", "NONE", "nOnE", "none ", " none", "\\u006eone", "n\\u00f6ne", "", "null", "false"];
    for spelling in spellings {
        let header = format!(r#"{{"alg":"{spelling}","typ":"JWT"}}"#);
        let signed = format!("{}.{}", encode(header.as_bytes()), encode(claims.as_bytes()));
        material.add(format!("alg {spelling:?} without a signature"), format!("{signed}."));
        let token = material.secret.token_with(&header, &material.secret_claims());
        material.add(format!("alg {spelling:?} with a secret"), token);
        let token = material.es256.token_with(&header, &claims);
        material.add(format!("alg {spelling:?} with a key"), token);
    }
    for value in ["null", "0", "256", "true", "[]", "{}", r#"["HS256"]"#, r#"{"HS256":1}"#] {
        let token = material.secret.token_with(&format!(r#"{{"alg":{value}}}"#), &material.secret_claims());
        material.add(format!("alg {value}"), token);
    }
    for header in ["{}", r#"{"typ":"JWT"}"#, r#"{"ALG":"HS256"}"#, r#"{"algorithm":"HS256"}"#] {
        material
            .add(format!("header {header}"), material.secret.token_with(header, &material.secret_claims()));
    }
}

/// Algorithms that are not supported, or not with this key.
fn other_algorithms(material: &mut Material) {
    let claims = material.claims();
    for algorithm in ["HS384", "HS512", "hs256", "HS256 ", "HMACSHA256", "RS256", "ES256", "dir", "A128KW"] {
        let token =
            material.secret.token_with(&format!(r#"{{"alg":"{algorithm}"}}"#), &material.secret_claims());
        material.add(format!("{algorithm} with a secret"), token);
    }
    let mut tokens = Vec::new();
    for signer in material.signers() {
        for algorithm in [
            "HS256", "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512",
            "ES256K", "EdDSA", "Ed25519", "Ed448", "RSA-OAEP", "ECDH-ES",
        ] {
            if algorithm != signer.algorithm {
                let token = signer.token_with(&header_with(signer, algorithm), &claims);
                tokens.push((format!("{algorithm} for {}", signer.algorithm), token));
                let token = signer.token_with(&format!(r#"{{"alg":"{algorithm}"}}"#), &claims);
                tokens.push((format!("{algorithm} for {} without kid", signer.algorithm), token));
            }
        }
    }
    tokens.into_iter().for_each(|(name, token)| material.add(name, token));
}

fn other_members(material: &mut Material) {
    for header in [
        r#"{"alg":"HS256","alg":"HS256"}"#,
        r#"{"alg":"none","alg":"HS256"}"#,
        r#"{"alg":"HS256","\u0061lg":"HS256"}"#,
        r#"{"alg":"HS256","typ":"JWT","typ":"JWT"}"#,
        r#"{"alg":"HS256","x":1,"x":2}"#,
        r#"{"alg":"HS256","crit":[]}"#,
        r#"{"alg":"HS256","crit":["exp"],"exp":9999999999}"#,
        r#"{"alg":"HS256","crit":["b64"],"b64":true}"#,
        r#"{"alg":"HS256","crit":null}"#,
        r#"{"alg":"HS256","typ":"JWE"}"#,
        r#"{"alg":"HS256","typ":"secevent+jwt"}"#,
        r#"{"alg":"HS256","typ":"dpop+jwt"}"#,
        r#"{"alg":"HS256","typ":""}"#,
        r#"{"alg":"HS256","typ":1}"#,
        r#"{"alg":"HS256","typ":null}"#,
        r#"{"alg":"HS256","kid":1}"#,
        r#"{"alg":"HS256","kid":null}"#,
        r#"{"alg":"HS256","kid":["a"]}"#,
    ] {
        material
            .add(format!("header {header}"), material.secret.token_with(header, &material.secret_claims()));
    }
}

/// A key of somebody else, which the header names or contains.
fn foreign_keys(material: &mut Material) {
    let (claims, issuer) = (material.claims(), material.issuer.clone());
    let foreign = Signer::es256().named("foreign");
    let key = foreign.jwk("");
    for id in ["ES256", "foreign"] {
        for more in [
            format!(r#""jwk":{key}"#),
            format!(r#""jku":"{issuer}/evil""#),
            format!(r#""x5u":"{issuer}/evil""#),
            r#""x5c":["AAAA"]"#.to_owned(),
            format!(r#""jwk":{key},"jku":"{issuer}/evil","x5t":"AAAA""#),
        ] {
            let header = format!(r#"{{"alg":"ES256","kid":"{id}",{more}}}"#);
            material.add(format!("kid {id} with {more:.12}"), foreign.token_with(&header, &claims));
        }
    }
    for id in [
        "../../../../dev/null",
        "/proc/self/environ",
        "file:///etc/passwd",
        "http://169.254.169.254/",
        "' OR '1'='1",
        "x' UNION SELECT 'key' --",
        "$(id)",
        "`id`",
        "\\u0000",
        "",
        "*",
        "%",
        "es256",
        "ES256 ",
        "ES256\\u0000",
        "{{7*7}}",
        "${jndi:ldap://x/}",
        "\\ud83d\\ude00",
    ] {
        let header = format!(r#"{{"alg":"ES256","kid":"{id}"}}"#);
        material.add(format!("kid {id:?}"), foreign.token_with(&header, &claims));
        material.add(format!("kid {id:?} by the issuer"), material.es256.token_with(&header, &claims));
    }
    let long = format!(r#"{{"alg":"ES256","kid":"{}"}}"#, "k".repeat(4_000));
    material.add("long kid", foreign.token_with(&long, &claims));
}
