//! Structure: parts, encoding, and what the parts contain.

use super::{Material, encode};

pub(super) fn add(material: &mut Material) {
    parts(material);
    encodings(material);
    contents(material);
}

fn parts(material: &mut Material) {
    let tokens = [material.es256.token(&material.claims()), material.secret.token(&material.secret_claims())];
    let mut bad = Vec::new();
    for token in &tokens {
        let (signed, signature) = token.rsplit_once('.').unwrap();
        let (header, claims) = signed.split_once('.').unwrap();
        bad.extend([
            format!("{token}."),
            format!(".{token}"),
            format!("{token}.{signature}"),
            format!("{token}.AAAA.AAAA"),
            format!("{header}..{claims}.{signature}"),
            format!("{header}.{claims}"),
            format!("{header}.{claims}."),
            format!("{header}..{signature}"),
            format!(".{claims}.{signature}"),
            format!("..{signature}"),
            format!("{header},{claims},{signature}"),
            format!("{header}.{signature}.{claims}"),
            format!("{claims}.{header}.{signature}"),
            format!("\"{token}\""),
            format!("Bearer {token}"),
            format!("{token} {token}"),
            format!("{token},{token}"),
            format!("{token};x=y"),
            format!("{header}. {claims}.{signature}"),
            format!("{header}.{claims}\t.{signature}"),
            token[1..].to_owned(),
            token[..token.len() / 2].to_owned(),
            token[..token.len() - 1].to_owned(),
            token[..token.len() - 5].to_owned(),
            token.to_uppercase(),
            token.to_lowercase(),
            token.repeat(2),
        ]);
        for at in [1, header.len() - 1, header.len() + 2, signed.len() - 1, token.len() - 2] {
            let mut shorter = token.clone();
            shorter.remove(at);
            bad.push(shorter);
        }
    }
    // An encrypted token has five parts; an unsecured one has an empty third part.
    bad.extend([
        format!("{}.AAAA.AAAA.AAAA.AAAA", encode(br#"{"alg":"dir","enc":"A256GCM"}"#)),
        format!("{}..AAAA.AAAA.AAAA", encode(br#"{"alg":"RSA-OAEP","enc":"A128CBC-HS256","cty":"JWT"}"#)),
        "..".into(),
        "a.b.c".into(),
        "...".into(),
        ".".into(),
        "null".into(),
        "undefined".into(),
        "{}.{}.{}".into(),
        "YQ.YQ.YQ".into(),
    ]);
    bad.into_iter().enumerate().for_each(|(number, token)| material.add(format!("parts {number}"), token));
}

fn encodings(material: &mut Material) {
    let token = material.es256.token(&material.claims());
    let (signed, signature) = token.rsplit_once('.').unwrap();
    let (header, claims) = signed.split_once('.').unwrap();
    let mut bad = vec![
        format!("{token}="),
        format!("{token}=="),
        format!("{token}%3D"),
        format!("{header}=.{claims}.{signature}"),
        format!("{header}.{claims}=.{signature}"),
        format!("{header}.{claims}==.{signature}"),
        // The standard alphabet. Claims that need other characters are signed as they are.
        standard_alphabet(material),
    ];
    // The last character of a signature has unused bits.
    let (start, last) = token.split_at(token.len() - 1);
    bad.extend((1..4).map(|step| format!("{start}{}", char::from(last.as_bytes()[0] + step))));
    // Signed in this spelling: padding is refused whoever has made it.
    for signed in
        [format!("{header}=.{claims}"), format!("{header}.{claims}="), format!("{header}.{claims}==")]
    {
        let signature = encode(&material.es256.sign(signed.as_bytes()));
        bad.push(format!("{signed}.{signature}"));
    }
    bad.into_iter().enumerate().for_each(|(number, token)| material.add(format!("encoding {number}"), token));
}

fn standard_alphabet(material: &Material) -> String {
    let claims = material.claims().replace('}', r#","x":"???>>>~~~"}"#);
    let token = material.es256.token(&claims);
    let (signed, _) = token.rsplit_once('.').unwrap();
    let signed = signed.replace('-', "+").replace('_', "/");
    assert!(signed.contains(['+', '/']), "{signed}");
    format!("{signed}.{}", encode(&material.es256.sign(signed.as_bytes())))
}

fn contents(material: &mut Material) {
    let header = br#"{"alg":"ES256","typ":"JWT","kid":"ES256"}"#;
    let valid = material.claims().into_bytes();
    let nested = material.es256.token(&material.claims());
    let deep = [&b"["[..]; 3_000].concat();
    let mut invalid_text = valid.clone();
    let at = invalid_text.len() - 3;
    invalid_text[at] = 0xff;
    let claims: Vec<Vec<u8>> = vec![
        nested.into_bytes(),
        [b"\xef\xbb\xbf", &valid[..]].concat(),
        [&valid[..], b"\0"].concat(),
        [&valid[..], b"{}"].concat(),
        [&valid[..], b","].concat(),
        [b"[", &valid[..], b"]"].concat(),
        [b"\"", encode(&valid).as_bytes(), b"\""].concat(),
        valid[..valid.len() - 1].to_vec(),
        valid.iter().map(|byte| if *byte == b'"' { b'\'' } else { *byte }).collect(),
        invalid_text,
        deep,
        Vec::new(),
        b"null".to_vec(),
        b"{}".to_vec(),
        b"true".to_vec(),
        b"<xml/>".to_vec(),
        [&valid[..valid.len() - 1], b",}"].concat(),
        [&valid[..valid.len() - 1], b",\"x\":\"\\ud800\",}"].concat(),
        [&valid[..valid.len() - 1], b"/**/}"].concat(),
        valid.iter().flat_map(|byte| [*byte, 0]).collect(),
    ];
    for (number, claims) in claims.into_iter().enumerate() {
        material.add(format!("claims {number}"), material.es256.token_of(header, &claims));
    }
    let headers: [&[u8]; 9] = [
        b"",
        b"{",
        b"null",
        b"[]",
        b"\"HS256\"",
        b"\xef\xbb\xbf{\"alg\":\"ES256\"}",
        b"{\"alg\":\"ES256\"}\0",
        b"{\"alg\":\"ES256\",\"x\":\"\xff\"}",
        b"alg=ES256",
    ];
    for (number, header) in headers.into_iter().enumerate() {
        material.add(format!("header {number}"), material.es256.token_of(header, &valid));
    }
    let long = material.claims().replace('}', &format!(r#","x":"{}"}}"#, "x".repeat(6_200)));
    material.add("more than 8 KiB", material.es256.token(&long));
    let wide: String = (0..900).map(|number| format!(r#","{number}":0"#)).collect();
    let repeated = material.claims().replace('}', &format!(r#"{wide},"7":0}}"#));
    material.add("many members, one twice", material.es256.token(&repeated));
}
