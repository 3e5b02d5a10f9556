//! Signatures: missing, of something else, changed, and values that broken libraries accept.

use super::{MARK, Material, encode};
use crate::tokens::signer::decode;

pub(super) fn add(material: &mut Material) {
    let tokens = material.valid();
    let mut bad = Vec::new();
    for (number, token) in tokens.iter().enumerate() {
        let mut add = |name: &str, token: String| bad.push((format!("{name}, valid token {number}"), token));
        let (signed, signature) = token.rsplit_once('.').unwrap();
        let (header, claims) = signed.split_once('.').unwrap();
        let original = decode(signature);
        let with = |bytes: &[u8]| format!("{signed}.{}", encode(bytes));
        add("empty signature", with(&[]));
        add("zeros", with(&vec![0; original.len()]));
        add("ones", with(&vec![0xff; original.len()]));
        add("one byte", with(&[1]));
        add("one byte less", with(&original[..original.len() - 1]));
        add("first byte missing", with(&original[1..]));
        add("trailing zero", with(&[&original[..], &[0]].concat()));
        add("leading zero", with(&[&[0], &original[..]].concat()));
        add("twice", with(&original.repeat(2)));
        add("reversed", with(&original.iter().rev().copied().collect::<Vec<_>>()));
        for at in [0, original.len() / 2, original.len() - 1] {
            let mut changed = original.clone();
            changed[at] ^= 1;
            add("one bit changed", with(&changed));
        }
        let other = &tokens[(number + 1) % tokens.len()];
        add("signature of another token", format!("{signed}.{}", other.rsplit_once('.').unwrap().1));
        let other_claims = String::from_utf8(decode(claims)).unwrap().replace(MARK, "admin");
        add("other claims", format!("{header}.{}.{signature}", encode(other_claims.as_bytes())));
        add("header as claims", format!("{header}.{header}.{signature}"));
        add(
            "claims with a space",
            format!("{header}.{}.{signature}", encode(&[&decode(claims)[..], b" "].concat())),
        );
    }
    bad.into_iter().for_each(|(name, token)| material.add(name, token));
    ecdsa(material);
    of_something_else(material);
}

/// CVE-2022-21449 and its relatives: numbers outside the group.
fn ecdsa(material: &mut Material) {
    const P256_ORDER: &str = "ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551";
    const P384_ORDER: &str =
        "ffffffffffffffffffffffffffffffffffffffffffffffffc7634d81f4372ddf581a0db248b0a77aecec196accc52973";
    let claims = material.claims();
    for (signer, order) in [(&material.es256, P256_ORDER), (&material.es384, P384_ORDER)] {
        let order = hex(order);
        let size = order.len();
        let token = signer.token(&claims);
        let (signed, signature) = token.rsplit_once('.').unwrap();
        let original = decode(signature);
        let (r, s) = original.split_at(size);
        let (zero, mut one) = (vec![0; size], vec![0; size]);
        one[size - 1] = 1;
        let pairs: [(&[u8], &[u8]); 10] = [
            (&zero, &zero),
            (&zero, s),
            (r, &zero),
            (&order, &order),
            (&order, s),
            (r, &order),
            (&one, &one),
            (&zero, &one),
            (&one, &zero),
            (s, r),
        ];
        let mut tokens: Vec<String> =
            pairs.iter().map(|(r, s)| format!("{signed}.{}", encode(&[*r, *s].concat()))).collect();
        tokens.push(format!("{signed}.{}", encode(&der(r, s))));
        tokens.push(format!("{signed}.{}", encode(&der(&zero, &zero))));
        let name = signer.algorithm;
        let tokens: Vec<_> = tokens.into_iter().map(|token| (name, token)).collect();
        for (number, (name, token)) in tokens.into_iter().enumerate() {
            material.tokens.push(super::BadToken { name: format!("{name}, numbers {number}"), token });
        }
    }
}

/// The form of signatures in certificates.
fn der(r: &[u8], s: &[u8]) -> Vec<u8> {
    let integer = |number: &[u8]| [&[2, number.len() as u8 + 1, 0], number].concat();
    let numbers = [integer(r), integer(s)].concat();
    [&[0x30, numbers.len() as u8], &numbers[..]].concat()
}

fn hex(text: &str) -> Vec<u8> {
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
}

/// The right key, but not over header, dot and claims.
fn of_something_else(material: &mut Material) {
    let (claims, mut bad) = (material.claims(), Vec::new());
    for signer in material.signers() {
        let token = signer.token(&claims);
        let (signed, _) = token.rsplit_once('.').unwrap();
        let (header, encoded) = signed.split_once('.').unwrap();
        for (name, message) in [
            ("without the dot", format!("{header}{encoded}")),
            ("claims only", encoded.to_owned()),
            ("header only", header.to_owned()),
            ("decoded claims", claims.clone()),
            ("nothing", String::new()),
            ("with a dot at the end", format!("{signed}.")),
        ] {
            let signature = encode(&signer.sign(message.as_bytes()));
            bad.push((format!("{} over {name}", signer.algorithm), format!("{signed}.{signature}")));
        }
    }
    bad.into_iter().for_each(|(name, token)| material.add(name, token));
}
