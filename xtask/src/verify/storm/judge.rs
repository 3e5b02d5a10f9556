//! The checker of T-R9: what the answers to all copies of one key must have in common.
//!
//! Pure: it is given answers and tasks as read, and asks nobody. It keeps these rules:
//!
//! - all answers under a key name one task, and no two keys of new tasks name the same;
//! - all streams under a key begin with one number, that of the status its message caused;
//! - one text is accepted under a key and every other is refused as `MESSAGE_ID_REUSED`;
//! - one answer is not flagged as a replay. When an answer was lost it may have been that one, so then there is
//!   at most one; and it was asked for before any other answer under the key had come;
//! - the tasks there are, are the tasks named; each holds each message that was sent to it once, with the
//!   accepted text.
//!
//! The rules hold once every key has been asked for again, so that no key is left whose every answer was lost.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde_json::Value;

use super::plan::{Plan, Target};

/// What came of one copy.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    /// Which of the key's texts was sent.
    pub(crate) text: usize,
    /// When it was sent and when the answer had come, on one clock that counts events.
    pub(crate) sent: u64,
    pub(crate) came: u64,
    /// The first number of its stream, if it was one.
    pub(crate) began: Option<u64>,
    pub(crate) verdict: Verdict,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Accepted {
        task: String,
        replayed: bool,
    },
    Reused,
    /// Nobody knows: the connection was reset or cut, or the server had no time.
    Lost,
}

pub(crate) struct Judge {
    pub(crate) findings: Vec<String>,
    /// By key.
    answers: Vec<Vec<Answer>>,
}

impl Judge {
    pub(crate) fn new(keys: usize) -> Self {
        Self { findings: Vec::new(), answers: vec![Vec::new(); keys] }
    }

    pub(crate) fn take(&mut self, key: usize, answer: Answer) {
        self.answers[key].push(answer);
    }

    /// Anything else that should not be.
    pub(crate) fn find(&mut self, what: String) {
        self.findings.push(what);
    }

    /// How often each verdict was given.
    pub(crate) fn tally(&self) -> BTreeMap<&'static str, u64> {
        let mut tally = BTreeMap::new();
        for answer in self.answers.iter().flatten() {
            let name = match answer.verdict {
                Verdict::Accepted { replayed: false, .. } => "first",
                Verdict::Accepted { replayed: true, .. } => "replayed",
                Verdict::Reused => "reused",
                Verdict::Lost => "lost",
            };
            *tally.entry(name).or_default() += 1;
        }
        tally
    }

    /// Compares all answers of every key; `waiting` are the tasks the follow-up messages went to.
    pub(crate) fn compare_answers(&mut self, plan: &Plan, waiting: &[String]) {
        let mut tasks: HashMap<String, usize> = HashMap::new();
        for key in 0..self.answers.len() {
            let named = self.compare_key(key);
            let (Some(task), target) = (named, plan.keys[key].target) else { continue };
            match target {
                Target::Turn(number) if waiting[number] != task => {
                    self.find(format!("key {key}: sent to task {} and answered by {task}", waiting[number]));
                }
                Target::Turn(_) => {}
                Target::New(_) => {
                    if let Some(other) = tasks.insert(task.clone(), key) {
                        self.find(format!("task {task}: made by key {other} and by key {key}"));
                    }
                }
            }
        }
    }

    /// Compares a list with the keys that made tasks of this agent.
    pub(crate) fn compare_list(&mut self, plan: &Plan, agent: &'static str, listed: &[Value], total: u64) {
        let new: Vec<usize> =
            (0..plan.keys.len()).filter(|key| plan.keys[*key].target == Target::New(agent)).collect();
        if listed.len() != new.len() || total != new.len() as u64 {
            let (found, keys) = (listed.len(), new.len());
            self.find(format!("{agent}: {keys} keys made {found} tasks, and the list says {total}"));
        }
        let by_id: HashMap<&str, &Value> =
            listed.iter().filter_map(|task| Some((task["id"].as_str()?, task))).collect();
        if by_id.len() != listed.len() {
            self.find(format!("{agent}: a task is twice in one walk through the list"));
        }
        for key in new {
            let Some((task, _)) = self.accepted(key) else { continue };
            match by_id.get(task.as_str()) {
                Some(found) => self.compare_messages(plan, &[key], found, 0),
                None => self.find(format!("key {key}: its task {task} is not in the list")),
            }
        }
    }

    /// Compares a waiting task with the keys that were sent to it; the first message was no key's.
    pub(crate) fn compare_turns(&mut self, plan: &Plan, number: usize, task: &Value) {
        let turns: Vec<usize> =
            (0..plan.keys.len()).filter(|key| plan.keys[*key].target == Target::Turn(number)).collect();
        self.compare_messages(plan, &turns, task, 1);
        let last = turns.last().and_then(|key| self.accepted_text(plan, *key)).unwrap_or_default();
        let expected = if last == "approve" { "TASK_STATE_COMPLETED" } else { "TASK_STATE_REJECTED" };
        if task["status"]["state"] != expected {
            self.find(format!("task {}: {last} left it {}", task["id"], task["status"]["state"]));
        }
    }

    /// Says which task a key stands for, if its answers agree on one.
    fn compare_key(&mut self, key: usize) -> Option<String> {
        let answers = std::mem::take(&mut self.answers[key]);
        let (mut tasks, mut accepted, mut refused) = (HashSet::new(), HashSet::new(), HashSet::new());
        let (mut firsts, mut lost) = (Vec::new(), 0);
        for answer in &answers {
            match &answer.verdict {
                Verdict::Accepted { task, replayed } => {
                    tasks.insert(task.as_str());
                    accepted.insert(answer.text);
                    if !replayed {
                        firsts.push(answer);
                    }
                }
                Verdict::Reused => {
                    refused.insert(answer.text);
                }
                Verdict::Lost => lost += 1,
            }
        }
        let mut found = Vec::new();
        if tasks.len() != 1 {
            found.push(format!("stands for {} tasks: {tasks:?}", tasks.len()));
        }
        if accepted.len() != 1 || !accepted.is_disjoint(&refused) {
            found.push(format!("accepted texts {accepted:?}, refused {refused:?}"));
        }
        if firsts.len() > 1 || (firsts.is_empty() && lost == 0) {
            found.push(format!("{} answers are not flagged as replays, {lost} lost", firsts.len()));
        }
        let known = answers.iter().filter(|answer| answer.verdict != Verdict::Lost).map(|answer| answer.came);
        if let (Some(known), Some(first)) = (known.min(), firsts.iter().map(|first| first.sent).max())
            && known < first
        {
            found
                .push("an answer is not flagged although the key was answered before it was sent".to_owned());
        }
        let began: HashSet<u64> = answers.iter().filter_map(|answer| answer.began).collect();
        if began.len() > 1 {
            found.push(format!("its streams begin with the numbers {began:?}"));
        }
        let named = tasks.iter().next().map(|task| (*task).to_owned());
        found.into_iter().for_each(|what| self.find(format!("key {key}: {what}")));
        self.answers[key] = answers;
        named
    }

    /// A task holds each key's message once, with the accepted text, and nothing else of its user.
    fn compare_messages(&mut self, plan: &Plan, keys: &[usize], task: &Value, others: usize) {
        let history = task["history"].as_array().map_or(&[][..], Vec::as_slice);
        let said: Vec<&Value> = history.iter().filter(|message| message["role"] == "ROLE_USER").collect();
        if said.len() != keys.len() + others {
            let what = format!("{} messages of its user, not {}", said.len(), keys.len() + others);
            self.find(format!("task {}: {what}", task["id"]));
        }
        for key in keys {
            let text = self.accepted_text(plan, *key).unwrap_or_default();
            let is_it = |message: &&&Value| {
                message["messageId"] == plan.keys[*key].message && message["parts"][0]["text"] == text
            };
            let times = said.iter().filter(is_it).count();
            if times != 1 {
                self.find(format!("task {}: key {key} took effect {times} times", task["id"]));
            }
        }
    }

    fn accepted(&self, key: usize) -> Option<(String, usize)> {
        self.answers[key].iter().find_map(|answer| match &answer.verdict {
            Verdict::Accepted { task, .. } => Some((task.clone(), answer.text)),
            Verdict::Reused | Verdict::Lost => None,
        })
    }

    fn accepted_text<'a>(&self, plan: &'a Plan, key: usize) -> Option<&'a str> {
        let (_, text) = self.accepted(key)?;
        Some(&plan.keys[key].texts[text])
    }
}

#[cfg(test)]
mod tests;
