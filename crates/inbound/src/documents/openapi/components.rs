//! What all operations of the document share: parameters, responses, and the schemas of their bodies.

use protocol::json::write::Writer;

use super::schema::ComponentSchema;

/// Name and definition of each parameter of an operation.
pub(super) const PARAMETERS: [(&str, &str); 2] = [
    (
        "wait",
        r#"{"name":"wait","in":"query","description":"How many seconds to wait for the result; 0 does not wait.","schema":{"type":"number","minimum":0,"maximum":3600,"default":30}}"#,
    ),
    (
        "idempotencyKey",
        r#"{"name":"Idempotency-Key","in":"header","description":"A request with the key of an earlier one gets the result of that one.","schema":{"type":"string","minLength":1,"maxLength":255}}"#,
    ),
];

/// The responses other than that of a completed call.
pub(super) const RESPONSES: [(&str, &str); 5] =
    [("202", "Running"), ("409", "Waiting"), ("422", "Rejected"), ("502", "Failed"), ("default", "Error")];

pub(super) const COMPLETED: &str = "The result.";
/// The schema of a result with several parts.
pub(super) const PARTS: &str = "a2ad.Parts";
const STATE: &str = "a2ad.State";
const ERROR: &str = "a2ad.Error";

const PARTS_SCHEMA: &str = r##"{"type":"object","description":"A result that is not a single value, text or file.","properties":{"parts":{"type":"array","items":{"$ref":"#/components/schemas/a2ad.Part"}}},"required":["parts"]}"##;
const PART_SCHEMA: &str = r#"{"type":"object","description":"Has exactly one of text, data, raw and url.","properties":{"text":{"type":"string"},"data":{},"raw":{"type":"string","contentEncoding":"base64"},"url":{"type":"string"},"filename":{"type":"string"},"mediaType":{"type":"string"},"metadata":{"type":"object"}}}"#;
const STATE_SCHEMA: &str = r##"{"type":"object","properties":{"taskId":{"type":"string"},"contextId":{"type":"string"},"state":{"type":"string","enum":["submitted","working","input-required","auth-required","canceled","rejected","failed"]},"message":{"type":"string","description":"What the agent says about it."},"parts":{"type":"array","items":{"$ref":"#/components/schemas/a2ad.Part"}}},"required":["taskId","contextId","state"]}"##;
const ERROR_SCHEMA: &str = r#"{"type":"object","properties":{"error":{"type":"object","properties":{"code":{"type":"integer"},"status":{"type":"string"},"message":{"type":"string"},"details":{"type":"array","items":{"type":"object"}}},"required":["code","message"]}},"required":["error"]}"#;

/// Writes the members of `components`.
pub(super) fn encode<'a>(out: &mut Writer, schemas: impl Iterator<Item = &'a ComponentSchema<'a>>) {
    out.key("parameters").object(|out| {
        for (name, parameter) in PARAMETERS {
            out.key(name).raw(parameter);
        }
    });
    out.key("headers").object(|out| {
        let task = r#"{"description":"The task of the call: GET reads it.","schema":{"type":"string","format":"uri-reference"}}"#;
        out.key("Location").raw(task);
    });
    out.key("responses").object(|out| {
        out.key("Completed").object(encode_completed);
        for (name, description, schemas) in [
            ("Running", "The call is not finished after the time to wait.", &[STATE] as &[&str]),
            (
                "Waiting",
                "The call waits for input or credentials, or was cancelled; or the idempotency key belongs to another call.",
                &[STATE, ERROR],
            ),
            ("Rejected", "The arguments are not valid, or the skill rejects the call.", &[STATE, ERROR]),
            ("Failed", "The call failed.", &[STATE, ERROR]),
        ] {
            out.key(name).object(|out| {
                out.text("description", description);
                out.key("headers").object(encode_task_headers);
                encode_json_content(out, schemas);
            });
        }
        out.key("Error").object(|out| {
            out.text("description", "The request was not accepted.");
            encode_json_content(out, &[ERROR]);
        });
    });
    out.key("schemas").object(|out| {
        for (name, schema) in
            [(PARTS, PARTS_SCHEMA), ("a2ad.Part", PART_SCHEMA), (STATE, STATE_SCHEMA), (ERROR, ERROR_SCHEMA)]
        {
            out.key(name).raw(schema);
        }
        for schema in schemas {
            schema.encode(out.key(&schema.name));
        }
    });
}

/// Writes a reference to a component.
pub(super) fn reference(out: &mut Writer, kind: &str, name: &str) {
    out.object(|out| out.text("$ref", &format!("#/components/{kind}/{name}")));
}

/// Writes the headers of every response that has a task.
pub(super) fn encode_task_headers(out: &mut Writer) {
    reference(out.key("Location"), "headers", "Location");
}

/// The response of a skill that does not declare its result.
fn encode_completed(out: &mut Writer) {
    out.text("description", COMPLETED);
    out.key("headers").object(encode_task_headers);
    out.key("content").object(|out| {
        out.key("application/json").object(|_| ());
        for media_type in ["text/plain", "*/*"] {
            out.key(media_type).object(|out| out.key("schema").object(|out| out.text("type", "string")));
        }
        encode_event_stream(out);
    });
}

/// Writes the form of a response that callers get who prefer events.
pub(super) fn encode_event_stream(out: &mut Writer) {
    let text = r#"{"type":"string","description":"The events task, progress, artifact and final."}"#;
    out.key("text/event-stream").object(|out| out.key("schema").raw(text));
}

fn encode_json_content(out: &mut Writer, schemas: &[&str]) {
    out.key("content").object(|out| {
        out.key("application/json").object(|out| {
            let out = out.key("schema");
            match schemas {
                [schema] => reference(out, "schemas", schema),
                _ => out.object(|out| {
                    out.key("anyOf").array(schemas, |out, schema| reference(out, "schemas", schema));
                }),
            }
        });
    });
}
