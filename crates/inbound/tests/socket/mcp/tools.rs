//! Which tools and resources there are.

use a2ad_inbound::{AgentSettings, AuthMethods};
use serde_json::{Value, json};

use super::Client;
use crate::common::{Server, Setup, agents};

fn names(listed: &Value, of: &str) -> Vec<String> {
    listed[of].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn skills_are_tools_of_their_agent() {
    let server = Server::open().await;
    for (path, expected) in [("/mcp", vec!["echo"]), ("/a2a/approver/mcp", vec!["approver", "approver-auth"])]
    {
        for client in [Client::newest(&server, path), Client::with_session(&server, path, json!({})).await] {
            let listed = client.request("tools/list", json!({})).await;
            assert_eq!(names(&listed, "tools"), expected, "{path}");
            let tool = &listed["tools"][0];
            assert_eq!(tool["inputSchema"]["required"], json!(["message"]), "{tool}");
            assert_eq!(tool["inputSchema"]["type"], "object", "{tool}");
            assert!(tool["description"].as_str().is_some_and(|text| !text.is_empty()), "{tool}");
        }
    }
    // A list for one caller is not for the cache of others.
    let listed = Client::newest(&server, "/mcp").request("tools/list", json!({})).await;
    assert_eq!((&listed["cacheScope"], &listed["ttlMs"]), (&json!("private"), &json!(0)));
}

#[tokio::test]
async fn schemas_of_skills_are_those_of_tools() {
    let object = r#"{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}"#;
    let agents = vec![
        agents::with_schemas(
            agents::fails(),
            "fails",
            object,
            r#"{"type":"object","properties":{"n":{"type":"integer"}}}"#,
        ),
        agents::with_schemas(agents::chats(), "chats", r#"{"type":"array"}"#, r#"{"type":"array"}"#),
    ];
    let server = Setup { agents, ..Setup::default() }.open().await;
    let listed = Client::newest(&server, "/a2a/fails/mcp").request("tools/list", json!({})).await;
    let tool = &listed["tools"][0];
    assert_eq!(tool["inputSchema"], serde_json::from_str::<Value>(object).unwrap());
    assert_eq!(tool["outputSchema"]["properties"]["n"]["type"], "integer");
    // Tools take objects, and their structured results are objects.
    let listed = Client::newest(&server, "/a2a/chats/mcp").request("tools/list", json!({})).await;
    let tool = &listed["tools"][0];
    assert_eq!(tool["inputSchema"]["properties"]["input"], json!({"type": "array"}));
    assert_eq!(tool["outputSchema"], Value::Null);
}

#[tokio::test]
async fn skills_and_agents_that_a_caller_may_not_use_do_not_exist() {
    let server = Setup::with(|options| {
        options.extended_skills = vec![("approver", "approver-auth")];
        options
            .agents
            .insert("demo".into(), AgentSettings { auth: AuthMethods::NONE, ..AgentSettings::default() });
        options
            .agents
            .insert("currency".into(), AgentSettings { enabled: false, ..AgentSettings::default() });
    })
    .open()
    .await;
    let client = Client::newest(&server, "/a2a/approver/mcp");
    assert_eq!(names(&client.request("tools/list", json!({})).await, "tools"), ["approver"]);
    let params = |name: &str| json!({"name": name, "arguments": {"message": "hi"}});
    let refused = client.start(1, "tools/call", params("approver-auth")).await.response().await;
    let unknown = client.start(1, "tools/call", params("no-such-tool")).await.response().await;
    assert_eq!((&refused["error"]["code"], &unknown["error"]["code"]), (&json!(-32602), &json!(-32602)));
    let listed = client.request("resources/list", json!({})).await;
    assert_eq!(names(&listed, "resources"), ["approver", "echo", "slow-writer"]);
    for (agent, status) in [("demo", 401), ("currency", 404), ("no-such-agent", 404)] {
        let path = format!("/a2a/{agent}/mcp");
        let answer = Client::newest(&server, &path).start(1, "tools/list", json!({})).await;
        assert_eq!(answer.status, status, "{agent}");
        let uri = format!("a2a://agents/{agent}/card");
        let answer = client.start(1, "resources/read", json!({"uri": uri})).await.response().await;
        assert_eq!(answer["error"]["code"], -32602, "{agent}");
    }
}

#[tokio::test]
async fn cards_are_resources() {
    let server = Server::open().await;
    let client = Client::with_session(&server, "/mcp", json!({})).await;
    let templates = client.request("resources/templates/list", json!({})).await;
    assert_eq!(templates["resourceTemplates"][0]["uriTemplate"], "a2a://agents/{name}/card");
    let listed = client.request("resources/list", json!({})).await;
    for resource in listed["resources"].as_array().unwrap() {
        let read = client.request("resources/read", json!({"uri": resource["uri"]})).await;
        let contents = &read["contents"][0];
        assert_eq!((&contents["uri"], &contents["mimeType"]), (&resource["uri"], &json!("application/json")));
        let card: Value = serde_json::from_str(contents["text"].as_str().unwrap()).unwrap();
        assert_eq!(card["name"], resource["title"]);
        let url = card["supportedInterfaces"][0]["url"].as_str().unwrap();
        assert!(url.ends_with(resource["name"].as_str().unwrap()), "{url}");
    }
    let read = client.request("resources/read", json!({"uri": "a2a://agents/echo/card?v=0.3"})).await;
    assert!(read["contents"][0]["text"].as_str().unwrap().contains(r#""protocolVersion":"0.3.0""#), "{read}");
}
