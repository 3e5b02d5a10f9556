//! What each kind of response becomes.

use a2ad_outbound::backends::http::HttpConfig;

use super::{
    function::{Function, Received},
    server::{Events, TestServer},
};

/// A call whose request has arrived.
async fn called(change: impl FnOnce(&mut HttpConfig)) -> (TestServer, Events, Received) {
    let function = Function::start().await;
    let mut config = HttpConfig::new(function.url("/fx"));
    change(&mut config);
    let server = TestServer::new(&config);
    let events = server.call(r#"{"a":1}"#).await;
    let request = function.request().await;
    (server, events, request)
}

/// The last events of a call with this response.
async fn outcome(status: &str, headers: &str, body: &[u8]) -> Vec<String> {
    let (_server, mut events, request) = called(|_| ()).await;
    request.respond(status, headers, body).await;
    let mut seen = events.rest().await;
    seen.retain(|line| line != "working");
    seen
}

#[tokio::test]
async fn media_type_decides_what_the_result_is() {
    let deep = format!("{}{}", "[".repeat(70), "]".repeat(70));
    let deep_text = format!("fx-result: [application/json] {deep}");
    let cases: Vec<(&str, &[u8], &str)> = vec![
        ("application/json", b" {\"rate\": 1.10} ", "fx-result: json {\"rate\":1.10}"),
        (
            "application/problem+json; charset=utf-8",
            b"[9007199254740993]",
            "fx-result: json [9007199254740993]",
        ),
        ("application/json", deep.as_bytes(), &deep_text),
        ("text/plain", "grüße".as_bytes(), "fx-result: grüße"),
        ("Text/HTML; charset=UTF-8", b"<p>", "fx-result: [text/html] <p>"),
        ("text/plain; charset=iso-8859-1", b"gr\xfc", "fx-result: [text/plain] 3 bytes None"),
        ("image/png", b"\x89PNG", "fx-result: [image/png] 4 bytes None"),
        ("text/event-stream", b"data: {\"a\":1}\n\ndata: b\n\n", "fx-result: json {\"a\":1} | b"),
        ("application/x-ndjson", b"{\"a\":1}\n2\n", "fx-result: json {\"a\":1} | json 2"),
        ("application/jsonl", b"1", "fx-result: json 1"),
    ];
    for (media_type, body, expected) in cases {
        let seen = outcome("200 OK", &format!("content-type: {media_type}\r\n"), body).await;
        assert_eq!(seen, [expected, "completed"], "{media_type}");
    }
    for (body, expected) in
        [(&b"{\"a\":1}"[..], "json {\"a\":1}"), (b"hello", "hello"), (b"\xff", "1 bytes None")]
    {
        let seen = outcome("201 Created", "", body).await;
        assert_eq!(seen, [format!("fx-result: {expected}"), "completed".into()]);
    }
}

#[tokio::test]
async fn plain_file_name_is_kept() {
    for (name, expected) in
        [("a b.pdf", "Some(\"a b.pdf\")"), ("../x", "None"), ("a/b", "None"), (".x", "None")]
    {
        let headers = format!(
            "content-type: application/pdf\r\ncontent-disposition: attachment; filename=\"{name}\"\r\n"
        );
        let seen = outcome("200 OK", &headers, b"%PDF").await;
        assert_eq!(seen[0], format!("fx-result: [application/pdf] 4 bytes {expected}"));
    }
}

#[tokio::test]
async fn response_without_content_completes_without_a_result() {
    for (status, headers) in [
        ("204 No Content", ""),
        ("200 OK", "content-type: application/json\r\n"),
        ("200 OK", "content-type: text/event-stream\r\n"),
        ("200 OK", ""),
    ] {
        let seen = outcome(status, headers, b"").await;
        assert_eq!(seen, ["completed"], "{status} {headers}");
    }
}

#[tokio::test]
async fn error_status_has_the_text_or_the_json_of_the_response() {
    let json = "content-type: application/problem+json\r\n";
    let text = "content-type: text/plain\r\n";
    let long = "x".repeat(10_000);
    let cut = format!("failed: the backend responded 500 Internal Server Error: {}", "x".repeat(4096));
    let cases = [
        (
            "400 Bad Request",
            json,
            "{\"a\":1}",
            "rejected: the backend responded 400 Bad Request | json {\"a\":1}",
        ),
        (
            "422 Unprocessable Entity",
            text,
            "no",
            "rejected: the backend responded 422 Unprocessable Entity: no",
        ),
        ("401 Unauthorized", "", "", "failed: the backend responded 401 Unauthorized"),
        ("403 Forbidden", text, "key", "failed: the backend responded 403 Forbidden: key"),
        ("404 Not Found", "content-type: image/png\r\n", "x", "failed: the backend responded 404 Not Found"),
        ("409 Conflict", json, "not json", "failed: the backend responded 409 Conflict: not json"),
        ("500 Internal Server Error", text, &long, &cut),
        (
            "302 Found",
            "location: http://127.0.0.1:1/\r\n",
            "",
            "failed: the backend responded 302 Found: redirects are not followed",
        ),
    ];
    for (status, headers, body, expected) in cases {
        assert_eq!(outcome(status, headers, body.as_bytes()).await, [expected]);
    }
    let broken = outcome("200 OK", "content-type: application/json\r\n", b"{").await;
    assert_eq!(broken, ["failed: the backend responded with content that is not the JSON it is declared as"]);
}

/// S0-46: the function sends the next piece only after the client has received the one before.
#[tokio::test]
async fn each_piece_of_a_stream_reaches_the_client_before_the_next_is_sent() {
    for (media_type, piece, seen) in [
        ("text/event-stream", "event: tick\ndata: {\"n\":#}\n\n", "json {\"n\":#}"),
        ("text/event-stream; charset=utf-8", "data: line #\r\n\r\n", "line #"),
        ("application/x-ndjson", "{\"n\":#}\n", "json {\"n\":#}"),
        ("text/plain", "piece # ", "piece # "),
    ] {
        let (_server, mut events, mut request) = called(|_| ()).await;
        request.begin(media_type).await;
        for number in ["1", "2", "3", "4", "5"] {
            request.piece(piece.replace('#', number).as_bytes()).await;
            let line = loop {
                let line = events.next().await.unwrap();
                if line != "working" {
                    break line;
                }
            };
            let append = if number == "1" { "" } else { "+" };
            assert_eq!(line, format!("fx-result{append}: {}", seen.replace('#', number)), "{media_type}");
        }
        request.end().await;
        assert_eq!(events.rest().await, ["completed"]);
    }
}

#[tokio::test]
async fn content_encoding_that_was_not_asked_for_fails_the_task() {
    let headers = "content-type: application/json\r\ncontent-encoding: gzip\r\n";
    let expected = "failed: the response has the content encoding \"gzip\", which was not asked for";
    assert_eq!(outcome("200 OK", headers, b"\x1f\x8b").await, [expected]);
}

#[tokio::test]
async fn stream_that_breaks_fails_the_task() {
    let (_server, mut events, mut request) = called(|_| ()).await;
    request.begin("text/event-stream").await;
    request.piece(b"data: 1\n\n").await;
    drop(request);
    let seen = events.rest().await;
    assert_eq!(seen.last().unwrap(), "failed: the connection to the backend was lost within the response");
}

#[tokio::test]
async fn response_that_is_too_large_fails_the_task() {
    let (_server, mut events, request) = called(|config| config.max_response = 9).await;
    request.respond_with("application/json", "[1,2,3,4,5]").await;
    let seen = events.rest().await;
    assert_eq!(
        seen.last().unwrap(),
        "failed: the response of the backend is larger than max_response, 9 bytes"
    );
}

#[tokio::test]
async fn silence_longer_than_the_timeout_fails_the_task() {
    let short = |config: &mut HttpConfig| config.timeout = std::time::Duration::from_millis(200);
    let (_server, mut events, request) = called(short).await;
    let seen = events.rest().await;
    assert_eq!(seen.last().unwrap(), "failed: the backend did not respond within 0.2 s");
    request.closed().await;
    let (_server, mut events, mut request) = called(short).await;
    request.begin("text/plain").await;
    let seen = events.rest().await;
    assert_eq!(seen.last().unwrap(), "failed: the backend sent no further data for 0.2 s");
    request.closed().await;
}

#[tokio::test]
async fn cancellation_closes_the_connection() {
    for begins in [false, true] {
        let (server, mut events, mut request) = called(|_| ()).await;
        if begins {
            request.begin("text/plain").await;
            request.piece(b"a").await;
        }
        while events.task.is_none() {
            events.next().await.unwrap();
        }
        server.cancel(events.task.as_ref().unwrap()).await;
        request.closed().await;
        assert_eq!(events.rest().await.last().unwrap(), "canceled");
    }
}
