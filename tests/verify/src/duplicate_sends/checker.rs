//! The checker of duplicate_sends: what the responses to all copies of one key must have in common.
//!
//! Pure: it gets responses and tasks as read, and makes no calls. The rules:
//!
//! - all responses for a key name one task, and no two keys of new tasks name the same;
//! - all streams of a key begin with the same number, that of the status its message caused;
//! - one text is accepted for a key and every other is refused as `MESSAGE_ID_REUSED`;
//! - exactly one response is not flagged as a replay. If a response was lost it may have been that one, so then
//!   there is at most one; and it was requested before any other response for the key had arrived;
//! - the tasks in the lists are the tasks named; each contains each message that was sent to it once, with the
//!   accepted text.
//!
//! The rules apply after every key has been sent once more, so that every key has a response that was not lost.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde_json::Value;

use super::plan::{Plan, Target};

/// The result of sending one copy.
#[derive(Clone, Debug)]
pub(crate) struct Response {
    /// Index of the key's text that was sent.
    pub(crate) text: usize,
    /// When it was sent and when the response had arrived, on a clock that counts events.
    pub(crate) sent: u64,
    pub(crate) received: u64,
    /// The first event number of its stream, if it was one.
    pub(crate) first_seq: Option<u64>,
    pub(crate) verdict: Verdict,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Accepted {
        task: String,
        replayed: bool,
    },
    Reused,
    /// Unknown: the connection was reset or lost, or the server was temporarily unavailable.
    Lost,
}

pub(crate) struct Checker {
    pub(crate) findings: Vec<String>,
    /// Indexed by key.
    responses: Vec<Vec<Response>>,
}

impl Checker {
    pub(crate) fn new(keys: usize) -> Self {
        Self { findings: Vec::new(), responses: vec![Vec::new(); keys] }
    }

    pub(crate) fn add_response(&mut self, key: usize, response: Response) {
        self.responses[key].push(response);
    }

    /// Adds any other finding.
    pub(crate) fn add_finding(&mut self, what: String) {
        self.findings.push(what);
    }

    /// Number of responses by verdict.
    pub(crate) fn tally(&self) -> BTreeMap<&'static str, u64> {
        let mut tally = BTreeMap::new();
        for response in self.responses.iter().flatten() {
            let name = match response.verdict {
                Verdict::Accepted { replayed: false, .. } => "first",
                Verdict::Accepted { replayed: true, .. } => "replayed",
                Verdict::Reused => "reused",
                Verdict::Lost => "lost",
            };
            *tally.entry(name).or_default() += 1;
        }
        tally
    }

    /// Compares all responses of every key; `waiting` are the tasks the follow-up messages went to.
    pub(crate) fn compare_responses(&mut self, plan: &Plan, waiting: &[String]) {
        let mut tasks: HashMap<String, usize> = HashMap::new();
        for key in 0..self.responses.len() {
            let named = self.compare_key(key);
            let (Some(task), target) = (named, plan.keys[key].target) else { continue };
            match target {
                Target::FollowUp(number) if waiting[number] != task => {
                    self.add_finding(format!(
                        "key {key}: sent to task {}, response from {task}",
                        waiting[number]
                    ));
                }
                Target::FollowUp(_) => {}
                Target::New(_) => {
                    if let Some(other) = tasks.insert(task.clone(), key) {
                        self.add_finding(format!("task {task}: created by key {other} and by key {key}"));
                    }
                }
            }
        }
    }

    /// Compares a list with the keys that created tasks of this agent.
    pub(crate) fn compare_list(&mut self, plan: &Plan, agent: &'static str, listed: &[Value], total: u64) {
        let new: Vec<usize> =
            (0..plan.keys.len()).filter(|key| plan.keys[*key].target == Target::New(agent)).collect();
        if listed.len() != new.len() || total != new.len() as u64 {
            let (found, keys) = (listed.len(), new.len());
            self.add_finding(format!(
                "{agent}: {keys} keys created {found} tasks, and the total of the list is {total}"
            ));
        }
        let by_id: HashMap<&str, &Value> =
            listed.iter().filter_map(|task| Some((task["id"].as_str()?, task))).collect();
        if by_id.len() != listed.len() {
            self.add_finding(format!("{agent}: a task is twice in one list"));
        }
        for key in new {
            let Some((task, _)) = self.accepted(key) else { continue };
            match by_id.get(task.as_str()) {
                Some(found) => self.compare_messages(plan, &[key], found, 0),
                None => self.add_finding(format!("key {key}: its task {task} is not in the list")),
            }
        }
    }

    /// Compares a waiting task with the keys that were sent to it; its first message belongs to no key.
    pub(crate) fn compare_turns(&mut self, plan: &Plan, number: usize, task: &Value) {
        let turns: Vec<usize> =
            (0..plan.keys.len()).filter(|key| plan.keys[*key].target == Target::FollowUp(number)).collect();
        self.compare_messages(plan, &turns, task, 1);
        let last = turns.last().and_then(|key| self.accepted_text(plan, *key)).unwrap_or_default();
        let expected = if last == "approve" { "TASK_STATE_COMPLETED" } else { "TASK_STATE_REJECTED" };
        if task["status"]["state"] != expected {
            self.add_finding(format!("task {}: {last} left it {}", task["id"], task["status"]["state"]));
        }
    }

    /// Returns the task of a key, if its responses agree on one.
    fn compare_key(&mut self, key: usize) -> Option<String> {
        let responses = std::mem::take(&mut self.responses[key]);
        let (mut tasks, mut accepted, mut refused) = (HashSet::new(), HashSet::new(), HashSet::new());
        let (mut firsts, mut lost) = (Vec::new(), 0);
        for response in &responses {
            match &response.verdict {
                Verdict::Accepted { task, replayed } => {
                    tasks.insert(task.as_str());
                    accepted.insert(response.text);
                    if !replayed {
                        firsts.push(response);
                    }
                }
                Verdict::Reused => {
                    refused.insert(response.text);
                }
                Verdict::Lost => lost += 1,
            }
        }
        let mut found = Vec::new();
        if tasks.len() != 1 {
            found.push(format!("belongs to {} tasks: {tasks:?}", tasks.len()));
        }
        if accepted.len() != 1 || !accepted.is_disjoint(&refused) {
            found.push(format!("accepted texts {accepted:?}, refused {refused:?}"));
        }
        if firsts.len() > 1 || (firsts.is_empty() && lost == 0) {
            found.push(format!("{} responses are not flagged as replays, {lost} lost", firsts.len()));
        }
        let known = responses
            .iter()
            .filter(|response| response.verdict != Verdict::Lost)
            .map(|response| response.received);
        if let (Some(known), Some(first)) = (known.min(), firsts.iter().map(|first| first.sent).max())
            && known < first
        {
            found.push(
                "a response is not flagged as a replay although the key had a response before it was sent"
                    .to_owned(),
            );
        }
        let first_seq: HashSet<u64> = responses.iter().filter_map(|response| response.first_seq).collect();
        if first_seq.len() > 1 {
            found.push(format!("its streams begin with different numbers: {first_seq:?}"));
        }
        let named = tasks.iter().next().map(|task| (*task).to_owned());
        found.into_iter().for_each(|what| self.add_finding(format!("key {key}: {what}")));
        self.responses[key] = responses;
        named
    }

    /// Checks that a task contains each key's message once, with the accepted text, and no other user messages.
    fn compare_messages(&mut self, plan: &Plan, keys: &[usize], task: &Value, others: usize) {
        let history = task["history"].as_array().map_or(&[][..], Vec::as_slice);
        let user_messages: Vec<&Value> =
            history.iter().filter(|message| message["role"] == "ROLE_USER").collect();
        if user_messages.len() != keys.len() + others {
            let what = format!("{} user messages, not {}", user_messages.len(), keys.len() + others);
            self.add_finding(format!("task {}: {what}", task["id"]));
        }
        for key in keys {
            let text = self.accepted_text(plan, *key).unwrap_or_default();
            let is_it = |message: &&&Value| {
                message["messageId"] == plan.keys[*key].message && message["parts"][0]["text"] == text
            };
            let times = user_messages.iter().filter(is_it).count();
            if times != 1 {
                self.add_finding(format!(
                    "task {}: the message of key {key} is stored {times} times",
                    task["id"]
                ));
            }
        }
    }

    fn accepted(&self, key: usize) -> Option<(String, usize)> {
        self.responses[key].iter().find_map(|response| match &response.verdict {
            Verdict::Accepted { task, .. } => Some((task.clone(), response.text)),
            Verdict::Reused | Verdict::Lost => None,
        })
    }

    fn accepted_text<'a>(&self, plan: &'a Plan, key: usize) -> Option<&'a str> {
        let (_, text) = self.accepted(key)?;
        Some(&plan.keys[key].texts[text])
    }
}
