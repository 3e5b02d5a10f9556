//! Each security scheme in each form, decoding and encoding.

use a2ad_protocol::model::{SecurityRequirement, SecurityScheme};

use crate::codec::{Form, card, sample};

#[test]
fn every_scheme_has_an_openapi_and_a_protobuf_form() {
    let cases = [
        (
            r#"{"type":"apiKey","in":"header","name":"X-Key"}"#,
            r#"{"apiKeySecurityScheme":{"location":"header","name":"X-Key"}}"#,
        ),
        (
            r#"{"type":"apiKey","description":"d","in":"query","name":"key"}"#,
            r#"{"apiKeySecurityScheme":{"description":"d","location":"query","name":"key"}}"#,
        ),
        (
            r#"{"type":"apiKey","in":"cookie","name":"c"}"#,
            r#"{"apiKeySecurityScheme":{"location":"cookie","name":"c"}}"#,
        ),
        (
            r#"{"type":"http","scheme":"bearer","bearerFormat":"JWT"}"#,
            r#"{"httpAuthSecurityScheme":{"scheme":"bearer","bearerFormat":"JWT"}}"#,
        ),
        (r#"{"type":"http","scheme":"Basic"}"#, r#"{"httpAuthSecurityScheme":{"scheme":"Basic"}}"#),
        (
            r#"{"type":"oauth2","flows":{"authorizationCode":{"authorizationUrl":"a","tokenUrl":"t","refreshUrl":"r","scopes":{"s":"S"}}},"oauth2MetadataUrl":"m"}"#,
            r#"{"oauth2SecurityScheme":{"flows":{"authorizationCode":{"authorizationUrl":"a","tokenUrl":"t","refreshUrl":"r","scopes":{"s":"S"}}},"oauth2MetadataUrl":"m"}}"#,
        ),
        (
            r#"{"type":"oauth2","flows":{"clientCredentials":{"tokenUrl":"t","scopes":{}}}}"#,
            r#"{"oauth2SecurityScheme":{"flows":{"clientCredentials":{"tokenUrl":"t","scopes":{}}}}}"#,
        ),
        (
            r#"{"type":"oauth2","flows":{"implicit":{"authorizationUrl":"a","scopes":{}}}}"#,
            r#"{"oauth2SecurityScheme":{"flows":{"implicit":{"authorizationUrl":"a","scopes":{}}}}}"#,
        ),
        (
            r#"{"type":"oauth2","flows":{"password":{"tokenUrl":"t","scopes":{}}}}"#,
            r#"{"oauth2SecurityScheme":{"flows":{"password":{"tokenUrl":"t","scopes":{}}}}}"#,
        ),
        (
            r#"{"type":"openIdConnect","openIdConnectUrl":"o"}"#,
            r#"{"openIdConnectSecurityScheme":{"openIdConnectUrl":"o"}}"#,
        ),
        (r#"{"type":"mutualTLS"}"#, r#"{"mtlsSecurityScheme":{}}"#),
    ];
    for (openapi, protobuf) in cases {
        let old =
            with_security(&format!(r#""securitySchemes":{{"k":{openapi}}},"security":[{{"k":["s"]}}]"#));
        let proto = with_security(&format!(
            r#""securitySchemes":{{"k":{protobuf}}},"security":[{{"schemes":{{"k":{{"list":["s"]}}}}}}]"#
        ));
        let read = Form::V03.decode(&old).unwrap();
        assert_eq!(Form::V03Proto.decode(&proto), Ok(read.clone()), "{openapi}");
        assert_eq!(read.security_schemes.len(), 1, "{openapi}");
        assert_eq!(read.security_requirements, [requirement(&[("k", &["s"])])], "{openapi}");
        assert!(Form::V03.encode(&read).contains(openapi), "{openapi}");
        assert!(Form::V03Proto.encode(&read).contains(protobuf), "{openapi}");
        assert!(Form::V1.decode(&Form::V1.encode(&read)) == Ok(read), "{openapi}");
    }
}

#[test]
fn several_flows_become_several_schemes_and_alternatives() {
    let card = Form::V03.decode(&sample("careless.v03.json")).unwrap();
    let names: Vec<&str> = card.security_schemes.iter().map(|(name, _)| name.as_str()).collect();
    // A name that is already taken stays with its scheme.
    assert_eq!(names, ["oneof", "twice", "many", "many-implicit-", "many-implicit"]);
    let oauth2 = |at: usize| matches!(&card.security_schemes[at].1, SecurityScheme::OAuth2 { description, .. } if description.as_deref() == Some("Two ways."));
    assert!(oauth2(2) && oauth2(3));
    assert_eq!(
        card.security_requirements,
        [
            requirement(&[("many", &["a"]), ("oneof", &[])]),
            requirement(&[("many-implicit-", &["a"]), ("oneof", &[])]),
            requirement(&[("nothing", &[])]),
            requirement(&[("twice", &["s"]), ("oneof", &[])]),
        ]
    );
    assert_eq!(
        card.skills[0].security_requirements,
        [requirement(&[("many", &[])]), requirement(&[("many-implicit-", &[])])]
    );
}

#[test]
fn number_of_alternatives_is_limited() {
    let flows = r#"{"type":"oauth2","flows":{"implicit":{},"password":{}}}"#;
    let schemes: Vec<String> = (0..40).map(|at| format!(r#""k{at}":{flows}"#)).collect();
    let names: Vec<String> = (0..40).map(|at| format!(r#""k{at}":[]"#)).collect();
    let card = with_security(&format!(
        r#""securitySchemes":{{{}}},"security":[{{{}}}]"#,
        schemes.join(","),
        names.join(",")
    ));
    let card = Form::V03.decode(&card).unwrap();
    assert_eq!((card.security_schemes.len(), card.security_requirements.len()), (80, 64));
}

#[test]
fn inexpressible_scheme_is_omitted_but_still_required() {
    let full = card("full.json");
    for form in Form::OLD {
        let read = form.decode(&form.encode(&full)).unwrap();
        assert!(read.security_schemes.iter().all(|(name, _)| name != "device"), "{form:?}");
        assert!(read.security_requirements.contains(&requirement(&[("device", &[])])), "{form:?}");
        // An empty alternative still means no authentication.
        assert!(read.security_requirements.contains(&requirement(&[])), "{form:?}");
    }
}

#[test]
fn scheme_may_be_named_schemes() {
    let card = with_security(r#""security":[{"schemes":["a"]},{"schemes":[],"k":["b"]}]"#);
    let card = Form::V03.decode(&card).unwrap();
    assert_eq!(
        card.security_requirements,
        [requirement(&[("schemes", &["a"])]), requirement(&[("schemes", &[]), ("k", &["b"])])]
    );
    let written = Form::V03.encode(&card);
    assert_eq!(Form::V03.decode(&written).unwrap().security_requirements, card.security_requirements);
}

fn with_security(members: &str) -> String {
    format!(r#"{{"name":"n","url":"u","protocolVersion":"0.3.0",{members}}}"#)
}

fn requirement(schemes: &[(&str, &[&str])]) -> SecurityRequirement {
    let scopes = |scopes: &[&str]| scopes.iter().map(|scope| (*scope).to_owned()).collect();
    SecurityRequirement {
        schemes: schemes.iter().map(|(name, list)| ((*name).to_owned(), scopes(list))).collect(),
    }
}
