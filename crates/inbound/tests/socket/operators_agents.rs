//! The operators' API: `/console/api/agents`.

use engine::{Catalog, DEFAULT_TENANT, RegisteredAgent};

use crate::{
    common::{NOW, Server, member, send_params},
    operators::{open, refused, send},
};

const AGENTS: &str = "/console/api/agents";
const CARD: &str = "/a2a/approver/.well-known/agent-card.json";

async fn call_approver(server: &Server) -> crate::common::Answer {
    server.call("approver", "SendMessage", &send_params("hello", "")).await
}

#[tokio::test]
async fn agents_are_listed_with_their_state_and_tasks() {
    let server = open().await;
    call_approver(&server).await;
    let list = send(&server, "GET", AGENTS, "").await;
    assert_eq!(list.status, 200);
    let approver = r#"{"id":"approver","name":"Approver","enabled":true,"decidedBy":"configuration","default":false,"skills":2,"endpoints":["/a2a/approver"],"tasks":{"input-required":1}}"#;
    assert!(list.body.contains(approver), "{list:?}");
    assert!(
        list.body.contains(r#""default":true,"skills":1,"endpoints":["/","/a2a/echo"],"tasks":{}"#),
        "{list:?}"
    );
}

#[tokio::test]
async fn a_disabled_agent_does_not_exist_for_callers_and_its_work_goes_on() {
    let server = open().await;
    let waiting = call_approver(&server).await;
    let id = member(&waiting.body, "id");
    let disabled = send(&server, "POST", &format!("{AGENTS}/approver/disable"), "").await;
    let shown = format!(r#"{{"id":"approver","enabled":false,"decidedBy":"operator","decidedAt":"{NOW}"}}"#);
    assert_eq!((disabled.status, disabled.body), (200, shown));
    assert_eq!(server.get(CARD).await.status, 404);
    let refused_call = call_approver(&server).await;
    assert_eq!(refused_call.status, 404);
    assert!(refused_call.body.contains("AGENT_DISABLED"), "{refused_call:?}");
    let legacy =
        server.post("/a2a/approver", r#"{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"id":"x"}}"#);
    let legacy = legacy.await;
    assert!(legacy.status == 404 && legacy.body.contains("-32011"), "{legacy:?}");
    let other = server.call("currency", "SendMessage", &send_params("hello", "")).await;
    assert_eq!(other.status, 200, "other agents are not affected: {other:?}");
    let list = send(&server, "GET", AGENTS, "").await.body;
    assert!(list.contains(r#""tasks":{"input-required":1}"#), "{list}");

    // A reloaded configuration does not enable it.
    let catalog = server.engine.catalog();
    let agents = outbound::agents::demo();
    catalog.swap(Catalog::new("echo", agents));
    assert_eq!(server.get(CARD).await.status, 404);
    let enabled =
        |agent: &str| catalog.load().get(DEFAULT_TENANT, agent).map(|agent| agent.settings().enabled);
    assert_eq!((enabled("approver"), enabled("echo")), (Some(false), Some(true)));
    // Nor does a configuration that does not have it make the decision forgotten.
    let without = outbound::agents::demo().into_iter().filter(|agent| agent.info().id != "approver");
    catalog.swap(Catalog::new("echo", without.collect::<Vec<RegisteredAgent>>()));
    catalog.swap(Catalog::new("echo", outbound::agents::demo()));
    assert_eq!(enabled("approver"), Some(false));

    let again = send(&server, "POST", &format!("{AGENTS}/approver/enable"), "").await;
    assert_eq!(member(&again.body, "decidedBy"), "operator");
    assert_eq!(server.get(CARD).await.status, 200);
    let found = server.call("approver", "GetTask", &format!(r#"{{"id":"{id}"}}"#)).await;
    assert!(found.body.contains("INPUT_REQUIRED"), "{found:?}");
}

#[tokio::test]
async fn a_switch_that_cannot_be_used_names_what_is_wrong() {
    let server = open().await;
    for unknown in ["nobody", "%ff", "a%20b"] {
        let answer = send(&server, "POST", &format!("{AGENTS}/{unknown}/disable"), "").await;
        refused(&answer, 404, "AGENT_DISABLED", &["there is no agent"]);
    }
    let answer = send(&server, "POST", &format!("{AGENTS}/echo/disable?for=1h"), "").await;
    refused(&answer, 400, "INVALID_PARAMS", &["for: unknown parameter"]);
    let answer = send(&server, "GET", &format!("{AGENTS}/echo/disable"), "").await;
    refused(&answer, 405, "METHOD_NOT_FOUND", &[]);
    assert_eq!(answer.header("allow"), Some("POST"));
    for path in ["/a2a/echo", AGENTS] {
        let answer = server.exchange(&format!("POST {path}/echo/disable HTTP/1.1"), "").await;
        assert!(matches!(answer.status, 401 | 404), "{answer:?}");
    }
    assert!(!send(&server, "GET", AGENTS, "").await.body.contains(r#""enabled":false"#));
}
