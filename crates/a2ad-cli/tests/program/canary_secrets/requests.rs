//! Requests with credentials in every place where a client may put one.

use std::net::SocketAddr;

use base64::{Engine as _, prelude::BASE64_STANDARD, prelude::BASE64_URL_SAFE_NO_PAD};
use testkit::{
    http1::{self, Connection},
    http2,
};

use super::canaries::Canaries;

/// Valid credentials.
pub(crate) struct Credentials {
    /// With their agents.
    pub(crate) api_keys: Vec<(&'static str, String)>,
    pub(crate) tokens: Vec<String>,
    pub(crate) bearer: String,
    pub(crate) end_user: String,
    pub(crate) admin: String,
}

/// Requests to the program, with everything that it responds.
pub(crate) struct Exchanges {
    address: SocketAddr,
    pub(crate) outputs: Vec<(String, Vec<u8>)>,
}

const JSON: &str = "application/json";
const LIST: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ListTasks","params":{}}"#;
const SEND: &str = r#"{"jsonrpc":"2.0","id":1,"method":"message/send","params":{"message":{"kind":"message","messageId":"m","role":"user","parts":[{"kind":"text","text":"hi"}]}}}"#;
const DRAFT: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"id":"none"}}"#;
const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}"#;

/// Method, path, media type and body of requests to every kind of route.
const ROUTES: [(&str, &str, &str, &str); 28] = [
    ("POST", "/", JSON, LIST),
    ("POST", "/a2a/any", JSON, SEND),
    ("POST", "/a2a/keys", JSON, LIST),
    ("POST", "/a2a/bearer", JSON, DRAFT),
    ("POST", "/a2a/jwt", JSON, LIST),
    ("POST", "/a2a/oidc", JSON, LIST),
    ("POST", "/a2a/person", JSON, SEND),
    ("POST", "/a2a/bank", JSON, SEND),
    ("POST", "/a2a/nobody", JSON, SEND),
    ("POST", "/_agent-native/a2a", JSON, DRAFT),
    ("GET", "/tasks", "", ""),
    ("GET", "/a2a/keys/tasks/none", "", ""),
    ("POST", "/a2a/jwt/v1/message:send", JSON, "{}"),
    ("POST", "/a2a/bearer", "text/plain", "hi"),
    ("POST", "/a2a/bearer", JSON, r#"{"message":"hi","chatId":"x"}"#),
    ("POST", "/run/say", "text/plain", "hi"),
    ("POST", "/a2a/keys/run/say", JSON, "{}"),
    ("POST", "/a2a/jwt/mcp", JSON, INITIALIZE),
    ("GET", "/.well-known/agent-card.json", "", ""),
    ("GET", "/.well-known/agents.json", "", ""),
    ("GET", "/a2a/keys/openapi.json", "", ""),
    ("GET", "/a2a/keys/agent/authenticatedExtendedCard", "", ""),
    ("GET", "/", "", ""),
    ("GET", "/readyz", "", ""),
    ("GET", "/console/api/keys", "", ""),
    ("POST", "/console/api/keys", JSON, r#"{"agent":"keys"}"#),
    ("POST", "/_agent-native/a2a/_process-task", JSON, r#"{"taskId":"task_none"}"#),
    ("GET", "/no/such/path", "", ""),
];

/// The headers in which a client may put a credential, with the text around it. `{}` is the credential, `{base64}` the
/// user name and password of HTTP Basic, and `{token}` a JSON Web Token whose signature it is.
const HEADERS: [(&str, &str); 12] = [
    ("authorization", "Bearer {}"),
    ("authorization", "{}"),
    ("authorization", "Basic {base64}"),
    ("authorization", "Bearer {token}"),
    ("authorization", "Bearer v1.9999999999.{}"),
    ("authorization", "Bearer a2ad_aaaaaaaaaaaa_{}"),
    ("x-api-key", "{}"),
    ("x-api-key", "a2ad_aaaaaaaaaaaa_{}"),
    ("x-end-user-token", "{token}"),
    ("proxy-authorization", "Bearer {}"),
    ("cookie", "session={}"),
    ("x-any-header", "{}"),
];

impl Exchanges {
    pub(crate) fn new(address: SocketAddr) -> Self {
        Self { address, outputs: Vec::new() }
    }

    /// Sends a request and keeps the response. Returns its status.
    async fn send(&mut self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> u16 {
        let shown = path.split('?').next().unwrap_or_default();
        let response = http1::request(self.address, method, path, headers, body.as_bytes()).await.unwrap();
        let mut output: Vec<u8> = response
            .headers
            .iter()
            .flat_map(|(name, value)| format!("{name}: {value}\n").into_bytes())
            .collect();
        output.extend(response.body);
        self.outputs.push((format!("response {} to {method} {shown}", response.status), output));
        response.status
    }

    /// Sends credentials that are not valid, in each header and in the query, to each route.
    pub(crate) async fn send_wrong_credentials(&mut self, canaries: &mut Canaries) {
        for (method, path, media_type, body) in ROUTES {
            for (name, form) in HEADERS {
                let canary = canaries.make(&format!("{name} {form} to {method} {path}"));
                let value = fill(form, &canary);
                let headers = with_media_type(media_type, &[(name, &value)]);
                self.send(method, path, &headers, body).await;
            }
            let canary = canaries.make(&format!("the query of {method} {path}"));
            let target = format!("{path}?access_token={canary}&api_key={canary}");
            self.send(method, &target, &with_media_type(media_type, &[]), body).await;
        }
        self.send_in_authority(canaries).await;
        self.send_over_grpc(canaries).await;
    }

    /// Addresses with a user name and password: the request target, the host and the origin.
    async fn send_in_authority(&mut self, canaries: &mut Canaries) {
        let at = self.address;
        for form in [
            "GET http://someone:{}@{at}/tasks HTTP/1.1\r\nhost: {at}\r\n\r\n",
            "GET /tasks HTTP/1.1\r\nhost: someone:{}@{at}\r\n\r\n",
            "GET /tasks HTTP/1.1\r\nhost: {at}\r\norigin: http://someone:{}@{at}\r\n\r\n",
            "GET /tasks HTTP/1.1\r\nhost: {at}\r\nreferer: http://someone:{}@{at}/\r\n\r\n",
        ] {
            let canary = canaries.make(&format!("the password in {form:?}"));
            let request = form.replace("{}", &canary).replace("{at}", &at.to_string());
            let mut connection = Connection::open(at).await.unwrap();
            connection.write(request.as_bytes()).await.unwrap();
            let response = connection.response().await.unwrap();
            self.outputs.push((format!("response {} to {form:?}", response.status), response.body));
        }
    }

    async fn send_over_grpc(&mut self, canaries: &mut Canaries) {
        let channel = http2::Channel::open(self.address).await.unwrap();
        for agent in ["keys", "bearer", "jwt", "oidc", "person"] {
            for (name, form) in HEADERS {
                let canary = canaries.make(&format!("{name} {form} over gRPC to {agent}"));
                let value = fill(form, &canary);
                let metadata = [("a2a-agent", agent), (name, value.as_str())];
                let path = "/lf.a2a.v1.A2AService/ListTasks";
                let request = channel.grpc(path, &metadata, http2::framed(b"")).unwrap();
                let mut response = channel.request(request).await.unwrap();
                let body = response.body().await.unwrap();
                let shown = format!("{:?} {:?} {body:?}", response.headers, response.trailers);
                self.outputs.push((format!("gRPC response of {agent}"), shown.into_bytes()));
            }
        }
    }

    /// Sends credentials in bodies that are refused, so that nothing of them is content, and those of a webhook, which are
    /// sealed.
    pub(crate) async fn send_credentials_in_bodies(&mut self, canaries: &mut Canaries) {
        for form in [
            // There is no such task.
            r#"{"jsonrpc":"2.0","id":1,"method":"CreateTaskPushNotificationConfig","params":{"taskId":"t","url":"https://receiver.example/","token":"{}","authentication":{"scheme":"Bearer","credentials":"{}"}}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tasks/pushNotification/set","params":{"id":"t","pushNotificationConfig":{"url":"https://someone:{}@receiver.example/","token":"{}"}}}"#,
            // Registered: URL, token and credentials are sealed in the store.
            r#"{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"hi"}]},"configuration":{"taskPushNotificationConfig":{"url":"https://receiver.example/?key={}","token":"{}","authentication":{"scheme":"Bearer","credentials":"{}"}}}}}"#,
            // Not valid.
            r#"{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"password":"{}"}]}}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":{"messageId":"m","role":"{}","parts":[{"text":"hi"}]}}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":5,"authorization":"Bearer {}"}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"GetTask","params":"Bearer {}"}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"token":"{}""#,
            r#"{"password":"{}"}"#,
            r#"{"message":"{}","metadata":["{}"]}"#,
            r#"{} "#,
        ] {
            let canary = canaries.make(&format!("the body {form}"));
            self.send("POST", "/a2a/open", &[("content-type", JSON)], &form.replace("{}", &canary)).await;
        }
        for (method, path, media_type, body) in [
            ("POST", "/console/api/keys", JSON, r#"{"agent":"keys","owner":"{}"}"#),
            ("POST", "/_agent-native/a2a/_process-task", JSON, r#"{"taskId":"{}"}"#),
            ("POST", "/a2a/open/run/say", "application/xml", "<password>{}</password>"),
            ("POST", "/a2a/open/run/say", JSON, r#"{"password":"{}""#),
            ("POST", "/a2a/keys/run/say", JSON, r#"{"password":"{}"}"#),
            ("POST", "/a2a/open/v1/message:send", JSON, r#"{"message":{"password":"{}"}}"#),
            (
                "POST",
                "/a2a/open/mcp",
                JSON,
                r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"password":"{}"}}"#,
            ),
            ("POST", "/a2a/open/mcp", JSON, r#"{"password":"{}""#),
        ] {
            let canary = canaries.make(&format!("the body {body} to {path}"));
            self.send(method, path, &[("content-type", media_type)], &body.replace("{}", &canary)).await;
        }
    }

    /// Calls with valid credentials: agents whose skills succeed, fail and panic.
    pub(crate) async fn call_with(&mut self, credentials: &Credentials) {
        let bearer = |token: &str| format!("Bearer {token}");
        for (agent, key) in &credentials.api_keys {
            for header in [("x-api-key", key.clone()), ("authorization", bearer(key))] {
                let headers = [(header.0, header.1.as_str()), ("content-type", JSON)];
                assert_eq!(self.send("POST", &format!("/a2a/{agent}"), &headers, SEND).await, 200, "{agent}");
            }
            // A key is for one agent.
            let headers = [("x-api-key", key.as_str()), ("content-type", JSON)];
            self.send("POST", "/a2a/jwt", &headers, SEND).await;
        }
        for token in &credentials.tokens {
            let value = bearer(token);
            let headers = [("authorization", value.as_str()), ("content-type", JSON)];
            assert_eq!(self.send("POST", "/a2a/jwt", &headers, SEND).await, 200);
            // Of another kind than the agent accepts.
            self.send("POST", "/a2a/oidc", &headers, SEND).await;
            self.send("GET", "/a2a/jwt/openapi.json", &headers, "").await;
        }
        let value = bearer(&credentials.bearer);
        let text = [("authorization", value.as_str()), ("content-type", "text/plain")];
        for (skill, status) in [
            ("say", 200),
            ("environment", 200),
            ("function", 502),
            ("denied", 502),
            ("listPets", 502),
            ("addPet", 502),
            ("remote", 409),
        ] {
            let answered = self.send("POST", &format!("/a2a/bearer/run/{skill}"), &text, "{}").await;
            assert_eq!(answered, status, "{skill}: {:?}", self.outputs.last());
        }
        let panics = self.send("POST", "/a2a/bearer/run/conformance", &text, "a2ad-panic").await;
        assert_eq!(panics, 502, "{:?}", self.outputs.last());
        let headers = [text[0], text[1], ("x-end-user-token", credentials.end_user.as_str())];
        assert_eq!(self.send("POST", "/a2a/person/run/say", &headers, "hi").await, 200);
        let value = bearer(&credentials.admin);
        let admin = [("authorization", value.as_str()), ("content-type", JSON)];
        for path in ["/console/api/keys", "/console/api/backends", "/console/api/config"] {
            assert_eq!(self.send("GET", path, &admin, "").await, 200);
        }
        self.send("POST", "/console/api/keys", &admin, r#"{"agent":"nobody"}"#).await;
        // The admin token is no credential of a caller.
        self.send("POST", "/a2a/keys", &admin, SEND).await;
    }

    /// Stores a text, which the search must find.
    pub(crate) async fn store_text(&mut self, text: &str) {
        let headers = [("content-type", "text/plain")];
        assert_eq!(self.send("POST", "/a2a/open/run/say", &headers, text).await, 200);
    }
}

fn with_media_type<'a>(media_type: &'a str, headers: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    let media_type = Some(("content-type", media_type)).filter(|header| !header.1.is_empty());
    headers.iter().copied().chain(media_type).collect()
}

/// A header with a credential.
fn fill(form: &str, canary: &str) -> String {
    let part = |json: &str| BASE64_URL_SAFE_NO_PAD.encode(json);
    let token = format!(
        "{}.{}.{canary}",
        part(r#"{"alg":"HS256","kid":"k"}"#),
        part(r#"{"sub":"x","exp":9999999999}"#)
    );
    let form = form.replace("{base64}", &BASE64_STANDARD.encode(format!("someone:{canary}")));
    form.replace("{token}", &token).replace("{}", canary)
}
