//! What schemas become.

use serde_json::json;

use super::{super::parse, *};

/// Translates the schema `T` of a document with these schemas.
fn translated(version: &str, schemas: &Tree) -> (Tree, Map<String, Tree>, bool) {
    let text = json!({"openapi": version, "components": {"schemas": schemas}}).to_string();
    let document = parse(&text).unwrap();
    let mut translator = Translator::new(&document, Direction::Request);
    let schema = &document.root["components"]["schemas"]["T"];
    let schema = translator.translate(schema).unwrap();
    let definitions = translator.definitions().unwrap();
    (schema, definitions, translator.complete)
}

#[test]
fn nullable_of_3_0_allows_null() {
    for (schema, expected) in [
        (json!({"type": "string", "nullable": true}), json!({"type": ["string", "null"]})),
        (
            json!({"type": "string", "enum": ["a"], "nullable": true}),
            json!({"type": ["string", "null"], "enum": ["a", null]}),
        ),
        (
            json!({"allOf": [{"type": "object"}], "nullable": true}),
            json!({"anyOf": [{"allOf": [{"type": "object"}]}, {"type": "null"}]}),
        ),
        (json!({"nullable": true}), json!({})),
        (
            json!({"$ref": "#/components/schemas/T", "nullable": true}),
            json!({"anyOf": [{"$ref": "#/$defs/T"}, {"type": "null"}]}),
        ),
        (json!({"type": "string", "nullable": false}), json!({"type": "string"})),
    ] {
        assert_eq!(translated("3.0.0", &json!({"T": schema})).0, expected);
    }
    assert_eq!(
        translated("3.1.0", &json!({"T": {"type": "string", "nullable": true}})).0,
        json!({"type": "string"})
    );
}

#[test]
fn boolean_bounds_of_3_0_become_numbers() {
    let schema = json!({"minimum": 1, "exclusiveMinimum": true, "maximum": 9, "exclusiveMaximum": false});
    assert_eq!(translated("3.0.0", &json!({"T": schema})).0, json!({"exclusiveMinimum": 1, "maximum": 9}));
}

#[test]
fn recursive_schemas_stay_references() {
    let node = json!({"type": "object", "properties": {"next": {"$ref": "#/components/schemas/T"}}});
    let (schema, definitions, complete) = translated("3.0.0", &json!({"T": node}));
    let expected = json!({"type": "object", "properties": {"next": {"$ref": "#/$defs/T"}}});
    assert_eq!(schema, expected);
    assert_eq!(definitions["T"], expected);
    assert!(complete);
}

#[test]
fn large_and_deep_schemas_are_cut() {
    let wide: Map<String, Tree> = (0..3_000).map(|n| (format!("p{n}"), json!({}))).collect();
    let (schema, _, complete) = translated("3.0.0", &json!({"T": {"properties": wide}}));
    assert_eq!((schema, complete), (json!(true), false));
    let deep = (0..50).fold(json!({}), |inner, _| json!({"items": inner}));
    let (schema, _, complete) = translated("3.0.0", &json!({"T": deep}));
    assert!(schema.is_object() && !complete);
    // The definitions that fit are kept.
    let large = "x".repeat(MAX_BYTES);
    let (_, definitions, complete) = translated(
        "3.1.0",
        &json!({
            "T": {"allOf": [{"$ref": "#/components/schemas/A"}, {"$ref": "#/components/schemas/B"}]},
            "A": {"type": "string"}, "B": {"description": large},
        }),
    );
    assert_eq!(
        (&definitions["A"], &definitions["B"], complete),
        (&json!({"type": "string"}), &json!(true), false)
    );
}

#[test]
fn keywords_with_invalid_values_and_unknown_ones_are_dropped() {
    let schema = json!({"type": "any", "required": true, "minLength": -1, "example": 1, "xml": {}, "x-y": 1, "$id": "z"});
    assert_eq!(translated("3.0.0", &json!({"T": schema})).0, json!({}));
}

#[test]
fn read_only_properties_are_not_required_in_requests() {
    let schema = json!({
        "required": ["id", "name", "owner"],
        "properties": {"id": {"readOnly": true}, "name": {}, "owner": {"$ref": "#/components/schemas/Owner"}},
    });
    let (schema, ..) = translated("3.0.0", &json!({"T": schema, "Owner": {"readOnly": true}}));
    assert_eq!(schema["required"], json!(["name"]));
}

#[test]
fn other_documents_are_not_read() {
    let document =
        parse(r##"{"openapi":"3.1.0","x":{"$ref":"other.yaml#/Pet"},"y":{"$ref":"#/no"}}"##).unwrap();
    let refused = |name: &str| {
        Translator::new(&document, Direction::Request).translate(&document.root[name]).unwrap_err()
    };
    assert!(refused("x").contains("\"other.yaml#/Pet\" refers to another document"));
    assert!(refused("y").contains("leads to nothing"));
}
