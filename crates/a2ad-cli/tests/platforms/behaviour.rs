//! What clients of a platform rely on, with a user's own tools behind agents of its profile.

use serde_json::{Value, json};

use crate::own_tools::{self, Function, Served};

fn send(skill: &str, message: &Value) -> Value {
    let params = json!({"skill": skill, "message": message});
    json!({"jsonrpc": "2.0", "id": 1, "method": "tasks/send", "params": params})
}

/// A message of 0.3 as the package of agent-native sends it.
fn native(method: &str, parts: &Value, more: &Value) -> Value {
    let mut params = json!({"message": {"role": "user", "parts": parts}});
    params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
}

const SCHEMA: &str =
    r#"{ type = "object", properties = { city = { type = "string" }, parts = {} }, required = ["city"] }"#;

#[tokio::test]
async fn fold_refuses_arguments_that_break_the_schema_and_stores_nothing() {
    let function = Function::returning("application/json", r#"{"temp":62}"#);
    let config = format!(
        "[agents.main]\nprofile = \"fold\"\n\
         [skills.weather]\nhttp = {{ url = {:?} }}\ninput_schema = {SCHEMA}\n\
         [skills.climate]\ncommand = {{ argv = [\"cat\"] }}\ninput_schema = {SCHEMA}\n",
        function.url
    );
    let served = Served::start(&config).await;
    for skill in ["weather", "climate"] {
        for arguments in [json!({"city": 5}), json!({"town": "Oslo"})] {
            let response = served.post("/", &send(skill, &arguments)).await;
            assert_eq!(response["error"]["code"], -32602, "{response}");
            assert!(response["error"]["data"].to_string().contains("city"), "{response}");
        }
        let response = served.post("/", &send(skill, &json!({"city": "Oslo"}))).await;
        assert_eq!(response["result"]["status"]["state"], "completed", "{response}");
    }
    assert_eq!(function.calls(), 1);
    assert_eq!(served.get("/tasks").await["totalSize"], 2);
}

#[tokio::test]
async fn arguments_with_the_names_of_message_members_reach_a_named_skill() {
    let served =
        Served::start("[agents.main]\nprofile = \"fold\"\n[skills.echo]\ncommand = { argv = [\"cat\"] }\n")
            .await;
    for arguments in [
        json!({"role": "admin", "parts": ["bolt", "nut"]}),
        json!({"role": "user", "city": "Oslo"}),
        json!({"parts": 5}),
        json!({"data": [1, 2]}),
    ] {
        let response = served.post("/_a2a/", &send("echo", &arguments)).await;
        let text = response["result"]["artifacts"][0]["parts"][0]["text"].as_str();
        let returned: Value = serde_json::from_str(text.unwrap_or_else(|| panic!("{response}"))).unwrap();
        assert_eq!(returned, arguments);
    }
    // What can be nothing but a message is one, with its mistake.
    let wrong = json!({"role": "user", "parts": [{"type": "text", "text": 5}]});
    let response = served.post("/_a2a/", &send("echo", &wrong)).await;
    assert_eq!(response["error"]["code"], -32602, "{response}");
}

#[tokio::test]
async fn a_function_that_is_down_is_an_internal_error_or_a_failed_task() {
    // Nothing listens there.
    let down = own_tools::closed_address();
    let agents = ["fold", "pinkfish", "agent-native", "agentos"];
    let mut config = format!(
        "[server]\ndefault_agent = \"fold\"\n[skills.fx]\nattempts = 1\nhttp = {{ url = \"http://{down}/\" }}\n"
    );
    for agent in agents {
        config += &format!("[agents.{agent}]\nprofile = \"{agent}\"\n");
    }
    let served = Served::start(&config).await;
    for agent in agents {
        let message = json!({"messageId": "m", "role": "user", "parts": [{"type": "text", "text": "1 USD"}]});
        let request =
            json!({"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": {"message": message}});
        let response = served.post(&format!("/a2a/{agent}"), &request).await;
        if ["fold", "pinkfish"].contains(&agent) {
            assert_eq!(response["error"]["code"], -32603, "{agent}: {response}");
        } else {
            assert_eq!(response["result"]["status"]["state"], "failed", "{agent}: {response}");
        }
    }
}

#[tokio::test]
async fn pinkfish_answers_too_many_calls_with_200_and_counts_each_key_apart() {
    let config = "[limits.rate]\nper_key = \"2/h\"\n\
                  [agents.main]\nprofile = \"pinkfish\"\nauth = [\"api-key\"]\n\
                  [skills.say]\ncommand = { argv = [\"cat\"] }\n";
    let folder = own_tools::configured(config);
    // Two keys of the same owner.
    let keys = [own_tools::new_key(&folder, "main").await, own_tools::new_key(&folder, "main").await];
    let served = Served::start_in(folder).await;
    let message = json!({"messageId": "m", "role": "user", "parts": [{"kind": "data", "data": {"n": 1}}]});
    let request =
        json!({"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": {"message": message}});
    for key in &keys {
        for _ in 0..2 {
            let response = served.respond("/", &[("x-api-key", key)], &request).await;
            let body = response.json().unwrap();
            // A text comes first, also where the result is data.
            assert_eq!(body["result"]["parts"][0], json!({"kind": "text", "text": "{\"n\":1}"}), "{body}");
            assert_eq!(body["result"]["parts"][1]["data"], json!({"n": 1}), "{body}");
        }
        let response = served.respond("/", &[("x-api-key", key)], &request).await;
        assert_eq!(response.status, 200, "{}", response.text());
        assert_eq!(response.json().unwrap()["error"]["code"], -32012);
        assert!(response.headers.get("retry-after").is_some());
    }
}

#[tokio::test]
async fn every_update_of_a_stream_has_a_status_with_the_text_so_far() {
    let script = r#"for n in 1 2; do printf '{"type":"artifact","text":"section %s"}\n' $n; sleep 0.3; done"#;
    let served = Served::start(&format!(
        "[agents.main]\nprofile = \"agent-native\"\n\
         [skills.write]\ncommand = {{ argv = [\"sh\", \"-c\", {script:?}], protocol = \"jsonl\" }}\n"
    ))
    .await;
    let events = served
        .stream("/", &native("message/stream", &json!([{"type": "text", "text": "go"}]), &json!({})))
        .await;
    let texts: Vec<_> =
        events.iter().map(|event| event["result"]["status"]["message"]["parts"][0]["text"].clone()).collect();
    for event in &events {
        let (result, id) = (&event["result"], &events[0]["result"]["id"]);
        assert!(result["status"]["state"].is_string(), "{event}");
        assert_eq!(&result["id"], id, "{event}");
        assert_eq!(result["taskId"].as_str().unwrap_or(id.as_str().unwrap()), id.as_str().unwrap());
    }
    assert!(texts.contains(&json!("section 1")), "{texts:?}");
    assert_eq!(texts.last().unwrap(), "section 1\nsection 2");
    let last = &events.last().unwrap()["result"];
    assert_eq!((&last["status"]["state"], &last["final"]), (&json!("completed"), &json!(true)), "{last}");
    // The same as the task that is read later.
    let get = json!({"jsonrpc": "2.0", "id": 2, "method": "tasks/get", "params": {"id": last["taskId"], "historyLength": 1}});
    let task = served.post("/", &get).await;
    assert_eq!(task["result"]["status"]["message"], last["status"]["message"]);
    assert_eq!(task["result"]["history"], json!([last["status"]["message"]]));
}

#[tokio::test]
async fn states_and_messages_are_those_that_the_client_of_agent_native_knows() {
    let function = Function::returning("text/plain", "done");
    let asks = r#"if [ -z "$A2AD_CALL_ANSWER" ]; then printf '{"type":"ask","text":"which?"}\n'; else printf '{"type":"result","text":"that"}\n'; fi"#;
    let served = Served::start(&format!(
        "[server]\ndefault_agent = \"asker\"\n\
         [agents.asker]\nprofile = \"agent-native\"\nskills = [\"ask\"]\n\
         [agents.strict]\nprofile = \"agent-native\"\nskills = [\"weather\"]\n\
         [skills.ask]\ncommand = {{ argv = [\"sh\", \"-c\", {asks:?}], protocol = \"jsonl\" }}\n\
         [skills.weather]\nhttp = {{ url = {:?} }}\ninput_schema = {SCHEMA}\n",
        function.url
    ))
    .await;
    let wrong = native("message/send", &json!([{"type": "data", "data": {"city": 5}}]), &json!({}));
    let rejected = served.post("/a2a/strict/_agent-native/a2a", &wrong).await;
    assert_eq!(rejected["result"]["status"]["state"], "failed", "{rejected}");
    assert_eq!(rejected["result"]["metadata"]["a2ad"]["state"], "rejected", "{rejected}");
    // The answer names nothing but the context.
    let asked = served
        .post("/", &native("message/send", &json!([{"type": "text", "text": "one"}]), &json!({})))
        .await;
    assert_eq!(asked["result"]["status"]["state"], "input-required", "{asked}");
    let context = json!({"contextId": asked["result"]["contextId"]});
    let answered =
        served.post("/", &native("message/send", &json!([{"type": "text", "text": "two"}]), &context)).await;
    assert_eq!(answered["result"]["id"], asked["result"]["id"], "{answered}");
    assert_eq!(answered["result"]["status"]["message"]["parts"][0]["text"], "that", "{answered}");
    // The repeated key runs nothing.
    let text = json!([{"type": "data", "data": {"city": "Oslo"}}]);
    let keyed = native("message/send", &text, &json!({"idempotencyKey": "k-1"}));
    let once = served.post("/a2a/strict", &keyed).await;
    assert_eq!(once["result"]["status"]["message"]["parts"][0]["text"], "done", "{once}");
    let again = served.post("/a2a/strict", &keyed).await;
    assert_eq!((&again["result"]["id"], function.calls()), (&once["result"]["id"], 1), "{again}");
    let long = native("message/send", &text, &json!({"idempotencyKey": "k".repeat(129)}));
    let refused = served.respond("/a2a/strict", &[], &long).await;
    assert!(refused.text().contains("idempotencyKey"), "{}", refused.text());
    let differs = served.respond("/a2a/strict", &[("idempotency-key", "k-2")], &keyed).await;
    assert_eq!(differs.json().unwrap()["error"]["code"], -32602);
}

#[tokio::test]
async fn agentos_keeps_a_thousand_tasks_unless_it_is_configured() {
    let config = "[agents.main]\nprofile = \"agentos\"\n[skills.say]\ncommand = { argv = [\"cat\"] }\n";
    let served = Served::start(config).await;
    let checked = served.check().await;
    assert!(checked.replace(' ', "").contains("\"max_tasks\":1000"), "{checked}");
    let config = format!("{config}[agents.main.retention]\nmax_tasks = 3\n");
    let served = Served::start(&config).await;
    let (mut ids, mut created) = (Vec::new(), 0);
    for number in 0..5 {
        let message = json!({"role": "user", "parts": [{"type": "text", "text": format!("{number}")}]});
        let request =
            json!({"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": {"message": message}});
        let task = served.post("/", &request).await["result"].clone();
        // In milliseconds, and not in seconds.
        created = task["createdAt"].as_u64().unwrap_or_else(|| panic!("{task}"));
        assert!(created > 1_600_000_000_000, "{task}");
        ids.push(task["id"].as_str().unwrap().to_owned());
    }
    let ended = std::time::Instant::now();
    loop {
        let left = served.get("/tasks").await["totalSize"].as_u64().unwrap();
        if left <= 3 {
            break;
        }
        assert!(ended.elapsed().as_secs() < 5, "{left} tasks are left");
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    let get = |id: &str| json!({"jsonrpc": "2.0", "id": 2, "method": "tasks/get", "params": {"id": id}});
    assert_eq!(served.post("/", &get(&ids[0])).await["error"]["code"], -32001);
    assert_eq!(served.post("/", &get(&ids[4])).await["result"]["createdAt"], created);
}

#[tokio::test]
async fn paths_of_later_versions_say_so() {
    let served = Served::start("[skills.say]\ncommand = { argv = [\"cat\"] }\n").await;
    for (method, path) in [
        ("POST", "/api/a2a/send"),
        ("GET", "/api/a2a/task?taskId=t"),
        ("GET", "/apps/mail"),
        ("POST", "/apps/mail/_agent-native/a2a"),
        ("GET", "/console"),
        ("GET", "/console/"),
    ] {
        let response = served.request(method, path, &[], "").await;
        assert_eq!(response.status, 501, "{path}: {}", response.text());
        assert!(response.text().contains("not built yet"), "{path}: {}", response.text());
    }
    for path in ["/api", "/apps", "/api/other", "/console/api/unknown"] {
        assert_eq!(served.request("GET", path, &[], "").await.status, 404, "{path}");
    }
    // Without tenants the header of an organisation has no effect.
    let message = json!({"messageId": "m", "role": "user", "parts": [{"kind": "text", "text": "hello"}]});
    let request =
        json!({"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": {"message": message}});
    let response = served.respond("/", &[("x-selected-org", "acme")], &request).await;
    assert_eq!(response.json().unwrap()["result"]["status"]["state"], "completed");
}
