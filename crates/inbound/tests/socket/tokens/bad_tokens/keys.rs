//! Keys: public ones as secrets, those of others, and secrets that are almost right.

use base64::{Engine as _, engine::general_purpose::STANDARD};

use super::{ACME_SECRET, Material, NOW, SECRET, Signer, encode, jwks};

pub(super) fn add(material: &mut Material) {
    public_keys_as_secrets(material);
    other_keys(material);
    other_secrets(material);
}

/// What everybody can read, as the secret of HS256.
fn public_keys_as_secrets(material: &mut Material) {
    let (claims, secret_claims) = (material.claims(), material.secret_claims());
    let mut tokens = Vec::new();
    for signer in material.signers() {
        let der = signer.public_key();
        let pem = |kind: &str| {
            let text = STANDARD.encode(&der);
            format!("-----BEGIN {kind}-----\n{text}\n-----END {kind}-----\n")
        };
        let forms = [
            der.clone(),
            encode(&der).into(),
            STANDARD.encode(&der).into(),
            pem("PUBLIC KEY").into(),
            pem("RSA PUBLIC KEY").into(),
            signer.jwk("").into(),
            jwks(&[signer]).into(),
            signer.id.clone().into(),
        ];
        for (number, form) in forms.into_iter().enumerate() {
            let confused = Signer::hs256(&form);
            let header = format!(r#"{{"alg":"HS256","typ":"JWT","kid":"{}"}}"#, signer.id);
            for (kind, claims) in [("issuer", &claims), ("no issuer", &secret_claims)] {
                let name = format!("public key of {} as secret, form {number}, {kind}", signer.algorithm);
                tokens.push((name, confused.token_with(&header, claims)));
                // Its signature under the name of the real algorithm.
                let header = format!(r#"{{"alg":"{}","kid":"{}"}}"#, signer.algorithm, signer.id);
                let name = format!("{} with a public key as secret, form {number}, {kind}", signer.algorithm);
                tokens.push((name, confused.token_with(&header, claims)));
            }
        }
    }
    tokens.into_iter().for_each(|(name, token)| material.add(name, token));
}

/// Keys of the same kind that the issuer does not have, under the id of one that it has.
fn other_keys(material: &mut Material) {
    let claims = material.claims();
    for other in [Signer::rs256(), Signer::es256(), Signer::es384(), Signer::eddsa()] {
        material.add(format!("another key for {}", other.algorithm), other.token(&claims));
        let header = format!(r#"{{"alg":"{}"}}"#, other.algorithm);
        material.add(
            format!("another key for {} without kid", other.algorithm),
            other.token_with(&header, &claims),
        );
    }
    // Another curve, padded or cut to the length of the right one.
    let (es256, es384) = (Signer::es256(), Signer::es384());
    let of_p384 = es384.token_with(r#"{"alg":"ES256","kid":"ES256"}"#, &claims);
    material.add("P-384 for ES256", of_p384.clone());
    material.add("P-384 for ES256, cut", &of_p384[..of_p384.len() - 42]);
    material.add("P-256 for ES384", es256.token_with(r#"{"alg":"ES384","kid":"ES384"}"#, &claims));
}

fn other_secrets(material: &mut Material) {
    let claims = material.secret_claims();
    let with_newline = [SECRET, b"\n"].concat();
    let twice = [SECRET, SECRET].concat();
    let secrets: [&[u8]; 10] = [
        b"",
        b"\0",
        &[0; 32],
        &SECRET[..31],
        &SECRET[1..],
        &with_newline,
        &twice,
        b"secret",
        b"A2A_SECRET",
        &SECRET.to_ascii_uppercase(),
    ];
    for (number, secret) in secrets.into_iter().enumerate() {
        material.add(format!("secret {number}"), Signer::hs256(secret).token(&claims));
    }
    let acme = Signer::hs256(ACME_SECRET);
    for more in [
        "",
        r#","org_domain":"""#,
        r#","org_domain":"other.example""#,
        r#","org_domain":"acme.example.""#,
        r#","orgDomain":"acme.example""#,
        r#","org_domain":"acme.example\u0000""#,
        r#","org_domain":"__proto__""#,
    ] {
        let claims = format!(r#"{{"sub":"x","exp":{}{more}}}"#, NOW + 600);
        material.add(format!("secret of acme{more}"), acme.token(&claims));
    }
}
