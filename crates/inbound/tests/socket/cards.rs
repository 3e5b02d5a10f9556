//! Agent cards: caching, and URLs that match the request.

use crate::common::{Server, Setup, hosts};

const CARD: &str = "/.well-known/agent-card.json";

#[tokio::test]
async fn each_agent_has_a_card() {
    let server = Server::open().await;
    for agent in ["approver", "slow-writer"] {
        let card = server.get(&format!("/a2a/{agent}{CARD}")).await;
        assert!(card.body.contains(&format!("http://example.test/a2a/{agent}\"")), "{}", card.body);
    }
    let nobody = server.exchange(&format!("GET /a2a/nobody{CARD} HTTP/1.1\r\na2a-version: 1.0"), "").await;
    assert_eq!((nobody.status, nobody.header("content-type")), (404, Some("application/json")));
    assert!(nobody.body.contains("AGENT_DISABLED"));
}

#[tokio::test]
async fn cached_card_is_not_modified() {
    let server = Server::open().await;
    let card = server.get(CARD).await;
    let etag = card.header("etag").unwrap().to_owned();
    assert_eq!(card.header("cache-control"), Some("private, max-age=60"));
    assert_eq!(card.header("access-control-allow-origin"), Some("*"));
    assert!(card.header("last-modified").is_some_and(|at| at.ends_with(" GMT")), "{:?}", card.head);
    let ask =
        async |tag: &str| server.exchange(&format!("GET {CARD} HTTP/1.1\r\nif-none-match: {tag}"), "").await;

    let known = ask(&etag).await;
    assert_eq!((known.status, known.body.as_str()), (304, ""));
    assert_eq!(
        (known.header("etag"), known.header("cache-control")),
        (Some(etag.as_str()), Some("private, max-age=60"))
    );
    let other = ask("\"other\"").await;
    assert_eq!((other.status, &other.body), (200, &card.body));
    // The same card keeps its tag; another card has another.
    assert_eq!(server.get(CARD).await.header("etag"), Some(etag.as_str()));
    assert_ne!(server.get(&format!("/a2a/echo{CARD}")).await.header("etag"), Some(etag.as_str()));
}

/// Without `public_url` the request decides the URLs in a card, and a shared cache may mix up requests.
#[tokio::test]
async fn only_cards_with_a_public_url_are_for_shared_caches() {
    let public =
        Setup::with(|options| options.public_url = Some("https://agents.example".into())).open().await;
    for path in [CARD.to_owned(), format!("/a2a/echo{CARD}")] {
        assert_eq!(public.get(&path).await.header("cache-control"), Some("public, max-age=60"));
    }
}

#[tokio::test]
async fn target_in_absolute_form_decides_the_card_url() {
    let server = Server::open().await;
    let head = format!("GET http://example.test:81{CARD} HTTP/1.1\r\nhost: x");
    let card = server.exchange(&head, "").await;
    assert!(card.body.contains(r#""url":"http://example.test:81/""#), "{}", card.body);
}

#[tokio::test]
async fn if_none_match_accepts_weak_tags_lists_and_wildcard() {
    let server = Server::open().await;
    let etag = server.get(CARD).await.header("etag").unwrap().to_owned();
    for asked in [format!("W/{etag}"), format!("\"other\", {etag}"), "*".to_owned()] {
        let head = format!("GET {CARD} HTTP/1.1\r\nif-none-match: {asked}");
        assert_eq!(server.exchange(&head, "").await.status, 304, "{asked}");
    }
}

#[tokio::test]
async fn card_url_has_the_requested_host() {
    let server = Setup::with(|options| options.allowed_hosts = hosts(&["agents.example.test"])).open().await;
    let get = async |host: &str| server.exchange(&format!("GET {CARD} HTTP/1.1\r\nhost: {host}"), "").await;
    let url = async |host: &str| {
        let card = get(host).await.body;
        let start = card.find("\"url\":\"").unwrap() + 7;
        card[start..start + card[start..].find('"').unwrap()].to_owned()
    };
    assert_eq!(url("127.0.0.1:4242").await, "http://127.0.0.1:4242/");
    assert_eq!(url("[::1]:4242").await, "http://[::1]:4242/");
    assert_eq!(url("agents.example.test").await, "http://agents.example.test/");
    for strange in ["a/b", "a\\b", "user@evil.test", "a<b"] {
        let refused = get(strange).await;
        assert_eq!(
            (refused.status, refused.header("content-type")),
            (400, Some("application/json")),
            "{strange}"
        );
        assert!(!refused.body.contains("\"url\""), "{}", refused.body);
    }
}

#[tokio::test]
async fn card_supports_head_requests() {
    let server = Server::open().await;
    let card = server.get(CARD).await;
    let mut wire = server.connect().await;
    wire.send(&format!("HEAD {CARD} HTTP/1.1\r\nconnection: close"), "").await;
    let head = wire.head().await;
    assert_eq!((head.status, head.header("etag")), (200, card.header("etag")));
    assert_eq!(wire.closed().await, "");
}
