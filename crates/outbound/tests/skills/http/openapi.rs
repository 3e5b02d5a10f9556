//! Operations of OpenAPI documents: the requests that servers receive, and what their responses become.

use a2ad_outbound::{
    backends::openapi::{Credential, OpenApiConfig, Operations, parse},
    dial::Dialer,
};
use protocol::model::Secret;

use super::{
    function::{Function, Received},
    server::TestServer,
};

const SHOP: &str = r##"
openapi: 3.0.3
security: [{ key: [] }]
paths:
  /pets/{id}/{color}/{size}/x-{n}:
    parameters:
      - { in: path, name: id, required: true, schema: { type: string } }
      - { in: path, name: color, required: true, style: label, explode: true, schema: { type: array, items: {} } }
      - { in: path, name: size, required: true, style: matrix, schema: { type: object } }
      - { in: path, name: n, required: true, schema: { type: integer } }
    put:
      operationId: pets/styles
      parameters:
        - { in: query, name: form, schema: { type: array, items: { type: string } } }
        - { in: query, name: flat, explode: false, schema: { type: array, items: { type: string } } }
        - { in: query, name: space, style: spaceDelimited, explode: false, schema: { type: array, items: {} } }
        - { in: query, name: pipe, style: pipeDelimited, explode: false, schema: { type: array, items: {} } }
        - { in: query, name: 'deep[]', style: deepObject, schema: { type: object } }
        - { in: query, name: free, schema: { type: object } }
        - { in: query, name: none, schema: { type: string, nullable: true } }
        - { in: query, name: json, content: { application/json: { schema: {} } } }
        - { in: header, name: X-Trace, schema: { type: array, items: {} } }
        - { in: cookie, name: theme, schema: { type: string } }
      requestBody:
        required: true
        content: { application/json: { schema: { $ref: '#/components/schemas/Pet' } } }
      responses: { 200: { description: ok } }
  /pets:
    get:
      operationId: list
      parameters: [{ in: query, name: limit, schema: { type: integer, minimum: 0, exclusiveMinimum: true } }]
      responses:
        200:
          description: ok
          content: { application/json: { schema: { type: array, items: { $ref: '#/components/schemas/Pet' } } } }
        404: { description: There are no pets }
        4XX: { description: Something is wrong }
    post:
      operationId: add
      requestBody: { content: { application/x-www-form-urlencoded: { schema: { type: object } } } }
      responses: { 202: { description: accepted } }
components:
  securitySchemes:
    key: { type: apiKey, in: query, name: api_key }
    session: { type: apiKey, in: cookie, name: sid }
  schemas:
    Pet:
      type: object
      required: [name]
      properties: { name: { type: string }, next: { $ref: '#/components/schemas/Pet' } }
"##;

fn operations(function: &Function, security: &[&str]) -> Operations {
    let credential = |name: &&str| ((*name).to_owned(), Credential::Token(Secret::new("s3cret")));
    let config = OpenApiConfig {
        base_url: Some(function.url("/base/")),
        security: security.iter().map(credential).collect(),
        ..OpenApiConfig::new("shop")
    };
    parse(SHOP).unwrap().operations(&config).unwrap()
}

fn server(function: &Function, operation: &str) -> TestServer {
    let operations = operations(function, &["key"]);
    assert_eq!(operations.skipped, []);
    let found = operations.offered.iter().find(|offered| offered.id == operation).unwrap();
    TestServer::with(found.skill(&Dialer::new()))
}

/// The last event of a call with this response.
async fn outcome(operation: &str, respond: impl AsyncFnOnce(Received)) -> String {
    let function = Function::start().await;
    let server = server(&function, operation);
    let mut events = server.call("{}").await;
    respond(function.request().await).await;
    events.rest().await.pop().unwrap()
}

#[tokio::test]
async fn parameters_are_sent_in_their_style() {
    let function = Function::start().await;
    let server = server(&function, "pets/styles");
    let _events = server
        .call(
            r#"{"id":"a/b c","color":["red","dark blue"],"size":{"h":1.50,"w":2},"n":7,
            "form":["a&b","c"],"flat":["a,b","c"],"space":[1,2],"pipe":["x","y"],"deep[]":{"k":{"l":"v=w"}},
            "free":{"m":"1"},"none":null,"json":{"a":[1]},"X-Trace":["t1","t2"],"theme":"dark; sid=1",
            "body":{"name":"Rex","age":9007199254740993}}"#,
        )
        .await;
    let seen = function.request().await;
    let path = "/base/pets/a%2Fb%20c/.red.dark%20blue/;size=h,1.50,w,2/x-7";
    let query = "form=a%26b&form=c&flat=a%2Cb,c&space=1%202&pipe=x%7Cy&deep%5B%5D%5Bk%5D%5Bl%5D=v%3Dw&m=1\
                 &json=%7B%22a%22%3A%5B1%5D%7D&api_key=s3cret";
    assert_eq!(seen.line, format!("PUT {path}?{query} HTTP/1.1"));
    assert_eq!(seen.body, r#"{"name":"Rex","age":9007199254740993}"#);
    for (name, value) in [
        ("x-trace", "t1,t2"),
        ("cookie", "theme=dark%3B%20sid%3D1"),
        ("content-type", "application/json"),
        ("a2ad-skill", "pets/styles"),
        ("a2ad-attempt", "1"),
    ] {
        assert_eq!(seen.header(name), Some(value));
    }
    assert!(seen.header("idempotency-key").is_some_and(|key| !key.is_empty()));
}

#[tokio::test]
async fn arguments_that_cannot_be_sent_are_rejected_with_their_name() {
    let function = Function::start().await;
    let styles = server(&function, "pets/styles");
    let valid = r#""id":"1","color":["red"],"size":{},"n":1,"body":{"name":"Rex"}"#;
    for (change, problem) in [
        (r#""id":"..""#, "arguments.id: a path must not have a segment . or .."),
        (r#""color":["."]"#, "arguments.color: a path must not have a segment . or .."),
        (r#""n":"7""#, r#"arguments.n: "7" is not of type "integer""#),
        (r#""body":{"name":"Rex","next":{}}"#, r#"arguments.body.next: "name" is a required property"#),
        (
            r#""X-Trace":["a\r\nb"]"#,
            "arguments.X-Trace: must be printable ASCII, because it is sent in a header",
        ),
        (
            r#""free":{"API_KEY":"mine"}"#,
            "arguments.free: must not have the member \"API_KEY\", which is another parameter",
        ),
        (r#""other":1"#, "arguments: Additional properties are not allowed ('other' was unexpected)"),
    ] {
        let seen = styles.call(&format!("{{{valid},{change}}}")).await.rest().await;
        assert_eq!(seen.last().unwrap(), &format!("rejected: {problem}"));
    }
    let list = server(&function, "list");
    let seen = list.call(r#"{"limit":0}"#).await.rest().await;
    assert_eq!(
        seen.last().unwrap(),
        "rejected: arguments.limit: 0 is less than or equal to the minimum of 0"
    );
}

#[tokio::test]
async fn errors_carry_the_description_and_the_response() {
    let gone = |request: Received| async {
        request.respond("404 Not Found", "content-type: application/json\r\n", r#"{"code":7}"#).await;
    };
    let expected = "failed: the backend responded 404 Not Found: There are no pets | json {\"code\":7}";
    assert_eq!(outcome("list", gone).await, expected);
    let wrong = |request: Received| async { request.respond("409 Conflict", "", "").await };
    assert_eq!(
        outcome("list", wrong).await,
        "failed: the backend responded 409 Conflict: Something is wrong"
    );
    let mismatch = |request: Received| request.respond_with("application/json", r#"[{"name":1}]"#);
    assert_eq!(
        outcome("list", mismatch).await,
        "failed: the result of list does not match its output schema: result.0.name: 1 is not of type \"string\""
    );
    let empty = |request: Received| async { request.respond("202 Accepted", "", "").await };
    assert_eq!(outcome("add", empty).await, "completed");
}

#[tokio::test]
async fn response_with_more_than_a_data_part_holds_is_checked_too() {
    let pets = |name: &str| format!("[{}]", vec![format!(r#"{{"name":{name}}}"#); 6_000].join(","));
    let valid = |request: Received| async { request.respond_with("application/json", pets("\"Rex\"")).await };
    assert_eq!(outcome("list", valid).await, "completed");
    let invalid = |request: Received| async { request.respond_with("application/json", pets("1")).await };
    assert!(outcome("list", invalid).await.contains("does not match its output schema: result.0.name"));
}

#[tokio::test]
async fn only_idempotent_operations_are_repeated() {
    let function = Function::start().await;
    let list = server(&function, "list");
    let mut events = list.call("{}").await;
    function.request().await.respond("503 Service Unavailable", "", "").await;
    function.request().await.respond_with("application/json", "[]").await;
    assert_eq!(events.rest().await.last().unwrap(), "completed");
    let failed =
        outcome("add", async |request| request.respond("503 Service Unavailable", "", "").await).await;
    assert_eq!(failed, "failed: the backend responded 503 Service Unavailable");
}

#[tokio::test]
async fn stream_of_an_operation_is_passed_on() {
    let function = Function::start().await;
    let server = server(&function, "add");
    let mut events = server.call(r#"{"body":{"name":"a b"}}"#).await;
    let mut request = function.request().await;
    assert_eq!(request.body, "name=a%20b");
    request.begin("text/event-stream").await;
    for number in 1..=3 {
        request.piece(format!("data: {number}\n\n").as_bytes()).await;
        while !events.next().await.unwrap().ends_with(&format!("json {number}")) {}
    }
    request.end().await;
    assert_eq!(events.rest().await, ["completed"]);
}

#[test]
fn credential_for_an_unknown_scheme_is_rejected() {
    let security = vec![("sesion".to_owned(), Credential::Token(Secret::new("s3cret")))];
    let config = OpenApiConfig { security, base_url: Some("http://h/".into()), ..OpenApiConfig::new("shop") };
    let error = parse(SHOP).unwrap().operations(&config).err().unwrap().to_string();
    assert_eq!(error, "security.sesion: the document has no security scheme of this name");
}
