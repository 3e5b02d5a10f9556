//! Claims: missing, of another type, or not true.

use super::{AUDIENCE, MARK, Material, NOW};

pub(super) fn add(material: &mut Material) {
    times(material);
    audiences(material);
    issuers_and_subjects(material);
    repeated_members(material);
}

/// Adds a token of the issuer and one with the secret, both with these claims in addition to valid ones.
fn add_both(material: &mut Material, expiry: &str, more: &str) {
    let subject = format!(r#""sub":"{MARK}""#);
    let of_issuer = format!(r#"{{"iss":"{}","aud":"{AUDIENCE}",{subject}{expiry}{more}}}"#, material.issuer);
    material.add(format!("issuer{expiry}{more}"), material.es256.token(&of_issuer));
    let with_secret = format!("{{{subject}{expiry}{more}}}");
    material.add(format!("secret{expiry}{more}"), material.secret.token(&with_secret));
}

fn times(material: &mut Material) {
    let later = NOW + 600;
    let texts = [
        format!(r#""{later}""#),
        format!(r#""{later}.0""#),
        "\"\"".into(),
        "\"never\"".into(),
        "\"2030-01-01T00:00:00Z\"".into(),
        "null".into(),
        "true".into(),
        "[]".into(),
        format!("[{later}]"),
        "{}".into(),
        format!(r#"{{"$numberLong":"{later}"}}"#),
        "0".into(),
        "-1".into(),
        format!("-{later}"),
        "-0".into(),
        "1.5".into(),
        format!("{}", NOW - 31),
        format!("{}.999", NOW - 31),
        "1e9".into(),
        "1e400".into(),
        "-1e400".into(),
        "1e308".into(),
        "253402300800".into(),
        "18446744073709551616".into(),
        "9223372036854775807".into(),
        format!("{later}000000"),
        "NaN".into(),
        "Infinity".into(),
        format!("0{later}"),
        format!("+{later}"),
        "0x7fffffffffff".into(),
        format!("{later}."),
        format!("{later} 1"),
    ];
    for text in texts {
        add_both(material, &format!(r#","exp":{text}"#), "");
    }
    add_both(material, "", "");
    for expiry in ["Exp", "EXP", "expires", "exp\\u0000", "exp "] {
        add_both(material, &format!(r#","{expiry}":{later}"#), "");
    }
    let expiry = format!(r#","exp":{later}"#);
    for nbf in [
        format!("{}", NOW + 31),
        "1e10".into(),
        "253402300799".into(),
        format!(r#""{NOW}""#),
        "null".into(),
        "[]".into(),
    ] {
        add_both(material, &expiry, &format!(r#","nbf":{nbf}"#));
    }
    for iat in ["\"0\"", "null", "{}", "1e999"] {
        add_both(material, &expiry, &format!(r#","iat":{iat}"#));
    }
}

fn audiences(material: &mut Material) {
    for audience in [
        "\"other\"",
        "\"\"",
        "[]",
        "[\"other\"]",
        "null",
        "1",
        "true",
        "{}",
        "[1]",
        "[null]",
        "[[\"a2ad\"]]",
        "{\"a2ad\":true}",
        "\"A2AD\"",
        "\"a2ad \"",
        "\"a2ad/\"",
        "\"a2a\"",
        "\"a2ad,other\"",
        "\"a2ad\\u0000\"",
        "\"*\"",
        "[\"a2ad\",1]",
    ] {
        let of_issuer =
            format!(r#"{{"iss":"{}","aud":{audience},"sub":"{MARK}","exp":{}}}"#, material.issuer, NOW + 600);
        material.add(format!("issuer, aud {audience}"), material.es256.token(&of_issuer));
        let with_secret = format!(r#"{{"aud":{audience},"sub":"{MARK}","exp":{}}}"#, NOW + 600);
        material.add(format!("secret, aud {audience}"), material.secret.token(&with_secret));
    }
    let none = format!(r#"{{"iss":"{}","sub":"{MARK}","exp":{}}}"#, material.issuer, NOW + 600);
    material.add("issuer without aud", material.es256.token(&none));
}

fn issuers_and_subjects(material: &mut Material) {
    let issuer = material.issuer.clone();
    for other in [
        "\"\"".to_owned(),
        "null".into(),
        "1".into(),
        format!(r#"["{issuer}"]"#),
        format!(r#"{{"a":"{issuer}"}}"#),
        format!(r#""{issuer}/""#),
        format!(r#"" {issuer}""#),
        format!(r#""{}""#, issuer.to_uppercase()),
        format!(r#""{}""#, &issuer[..issuer.len() - 1]),
        "\"https://other.example\"".into(),
    ] {
        let claims = format!(r#"{{"iss":{other},"aud":"{AUDIENCE}","sub":"{MARK}","exp":{}}}"#, NOW + 600);
        material.add(format!("iss {other}"), material.es256.token(&claims));
    }
    let none = format!(r#"{{"aud":"{AUDIENCE}","sub":"{MARK}","exp":{}}}"#, NOW + 600);
    material.add("without iss", material.es256.token(&none));
    // The issuer's name with the secret.
    material.add("issuer with the secret", material.secret.token(&material.claims()));
    let own = format!(r#"{{"iss":"{issuer}","sub":"{MARK}","exp":{}}}"#, NOW + 600);
    material.add("issuer with the secret, without aud", material.secret.token(&own));

    let long = format!("\"{}\"", "s".repeat(257));
    for subject in
        ["\"\"", "null", "1", "[]", "{}", "\"a\\u0000b\"", "\"a\\nb\"", "\"a\\u0085b\"", "\"\\ud800\"", &long]
    {
        let claims =
            format!(r#"{{"iss":"{issuer}","aud":"{AUDIENCE}","sub":{subject},"exp":{}}}"#, NOW + 600);
        material.add(format!("issuer, sub {subject:.20}"), material.es256.token(&claims));
        let claims = format!(r#"{{"sub":{subject},"exp":{}}}"#, NOW + 600);
        material.add(format!("secret, sub {subject:.20}"), material.secret.token(&claims));
    }
    let none = format!(r#"{{"iss":"{issuer}","aud":"{AUDIENCE}","exp":{}}}"#, NOW + 600);
    material.add("issuer without sub", material.es256.token(&none));
    material.add("secret without sub", material.secret.token(&format!(r#"{{"exp":{}}}"#, NOW + 600)));
    for organisation in ["null", "1", "[\"acme.example\"]", "{}"] {
        let claims = format!(r#"{{"org_domain":{organisation},"sub":"a","exp":{}}}"#, NOW + 600);
        material.add(format!("org_domain {organisation}"), material.secret.token(&claims));
    }
}

fn repeated_members(material: &mut Material) {
    let expiry = format!(r#","exp":{}"#, NOW + 600);
    for more in [
        format!(r#","exp":{}"#, NOW + 600),
        format!(r#","exp":{}"#, NOW + 700),
        format!(r#","\u0065xp":{}"#, NOW + 600),
        r#","sub":"admin""#.to_owned(),
        r#","s\u0075b":"admin""#.into(),
        r#","x":1,"x":1"#.into(),
        r#","x":{},"y":[],"x":null"#.into(),
        r#","nbf":0,"nbf":0"#.into(),
    ] {
        add_both(material, &expiry, &more);
    }
    add_both(material, &expiry, r#","aud":"a2ad","aud":"a2ad""#);
}
