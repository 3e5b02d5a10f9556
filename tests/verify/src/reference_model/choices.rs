//! What a driver calls next: every operation, filter and kind of invalid request, chosen at random.

use serde_json::{Value, json};

use super::driver::{Driver, Mode, Outcome, filter_params};
use super::reference::{Filter, OutgoingMessage, STATES, State, Verdict};

/// Limit of held tasks; each occupies one of the server's run slots.
const MAX_HELD: usize = 16;
/// Limit of messages to one task, below the server's own limit for a working task.
const MAX_TURNS: usize = 10;

pub(super) const NOT_FOUND: (i64, &str) = (-32001, "TASK_NOT_FOUND");
const INVALID: (i64, &str) = (-32602, "INVALID_PARAMS");

impl Driver {
    /// One call, or a few that belong together.
    pub(crate) async fn step(&mut self) -> Outcome {
        if self.reference.tasks.len() < 5 {
            return self.send_new().await;
        }
        let follow_ups = if matches!(self.agent, "approver" | "stepper") { 20 } else { 5 };
        match self.random.within(0..=99) {
            0..=29 => self.send_new().await,
            choice if choice < 30 + follow_ups => self.send_follow_up().await,
            50..=58 => self.resend(false).await,
            59..=61 => self.resend(true).await,
            62..=76 => {
                let (task, history) = (self.random_task(), self.random_history());
                self.get(task, history).await
            }
            77..=83 => self.list().await,
            84..=87 => self.next_page().await,
            88..=90 => self.cancel_one().await,
            91..=95 => self.watch().await,
            96..=99 => self.send_invalid().await,
            _ => self.send_new().await,
        }
    }

    /// Cancels the held tasks, so that the server can stop.
    pub(crate) async fn cancel_held(&mut self) -> Outcome {
        for task in std::mem::take(&mut self.open) {
            if self.reference.tasks[task].state() == State::Working {
                self.cancel(task).await?;
            }
        }
        let tasks = 0..self.reference.tasks.len();
        self.open = tasks.filter(|task| !self.reference.tasks[*task].state().is_terminal()).collect();
        Ok(())
    }

    async fn send_new(&mut self) -> Outcome {
        let held = self.open.iter().filter(|task| self.reference.tasks[**task].state() == State::Working);
        let may_hold = held.count() < MAX_HELD;
        let mut text = self.text();
        if self.agent == "echo" && may_hold && self.random.within(0..=15) == 0 {
            text = format!("hold {text}");
        }
        let context = match self.random.within(0..=3) {
            0 => Some(self.unique_word()),
            1 if !self.reference.tasks.is_empty() => {
                // Recently used contexts, so that some conversations become long.
                let newest = self.reference.tasks.len() as u64 - 1;
                let back = self.random.within(0..=newest.min(8));
                Some(self.reference.tasks[index(newest - back)].context.clone())
            }
            _ => None,
        };
        let outgoing = self.new_message(text, None, context);
        self.send_in_random_mode(outgoing).await
    }

    /// A message to an open task, or to one that may have ended.
    async fn send_follow_up(&mut self) -> Outcome {
        let task = match self.open.len() as u64 {
            0 => self.random_task(),
            _ if self.random.within(0..=7) == 0 => self.random_task(),
            open => self.open[index(self.random.within(0..=open - 1))],
        };
        let text = match self.random.within(0..=9) {
            _ if self.agent == "stepper" => self.text(),
            0..=3 => "approve".to_owned(),
            4..=6 => "deny".to_owned(),
            _ => self.unique_word(),
        };
        let context =
            Some(self.reference.tasks[task].context.clone()).filter(|_| self.random.within(0..=1) == 0);
        let outgoing = self.new_message(text, Some(task), context);
        self.send_in_random_mode(outgoing).await
    }

    /// A message that was sent before, or with `misuse` a different one under its key.
    async fn resend(&mut self, misuse: bool) -> Outcome {
        let mut outgoing = self.sent[index(self.random.within(0..=self.sent.len() as u64 - 1))].clone();
        if misuse {
            outgoing.text = self.text();
            outgoing.message["parts"][0]["text"] = outgoing.text.as_str().into();
        }
        self.send_in_random_mode(outgoing).await
    }

    async fn send_in_random_mode(&mut self, outgoing: OutgoingMessage) -> Outcome {
        let history = self.random_history();
        let target = outgoing.task.map(|task| &self.reference.tasks[task]);
        let (holds, verdict) = (outgoing.text.starts_with("hold"), self.reference.verdict_for(&outgoing));
        let is_full = verdict == Verdict::Accepted && target.is_some_and(|task| task.turns() >= MAX_TURNS);
        if is_full || (verdict == Verdict::Accepted && holds && self.open.len() > 2 * MAX_HELD) {
            let task = self.random_task();
            return self.get(task, history).await;
        }
        let at_work = |task: usize| self.reference.tasks[task].state() == State::Working;
        let would_wait_forever = match verdict {
            Verdict::Accepted => self.agent == "echo" && (outgoing.task.is_some_and(at_work) || holds),
            Verdict::Replay(task, _) => at_work(task),
            Verdict::Reused | Verdict::TooLate => false,
        };
        let mode = match self.random.within(0..=15) {
            0..=2 => Mode::Stream,
            3 => Mode::Immediate,
            _ if would_wait_forever => Mode::Immediate,
            _ => Mode::Wait,
        };
        self.send(outgoing, mode, history).await
    }

    async fn list(&mut self) -> Outcome {
        let filter = self.random_filter();
        let size = match self.random.within(0..=9) {
            0 => 100,
            1 => 50,
            _ => index(self.random.within(1..=12)),
        };
        self.page(filter, size, None).await
    }

    async fn next_page(&mut self) -> Outcome {
        match self.walk.take() {
            Some(walk) => self.page(walk.filter.clone(), walk.size, Some(walk)).await,
            None => self.list().await,
        }
    }

    async fn cancel_one(&mut self) -> Outcome {
        let open = self.open.len() as u64;
        if open == 0 || self.random.within(0..=2) == 0 {
            let task = self.random_task();
            self.open.retain(|open| *open != task);
            return self.cancel(task).await;
        }
        let task = self.open.swap_remove(index(self.random.within(0..=open - 1)));
        self.cancel(task).await
    }

    async fn watch(&mut self) -> Outcome {
        let open = self.open.len() as u64;
        let task = match open {
            0 => self.random_task(),
            _ if self.random.within(0..=1) == 0 => self.random_task(),
            _ => self.open[index(self.random.within(0..=open - 1))],
        };
        let newest = self.reference.tasks[task].log.len() as u64;
        let last = match self.random.within(0..=9) {
            0..=2 => None,
            3 => Some((newest + self.random.within(1..=3)).to_string()),
            4 => Some(
                ["x", "-1", "1.5", "99999999999999999999999"][index(self.random.within(0..=3))].to_owned(),
            ),
            5 => Some(newest.to_string()),
            _ => Some(self.random.within(0..=newest).to_string()),
        };
        self.subscribe(task, last.as_deref()).await
    }

    async fn send_invalid(&mut self) -> Outcome {
        let agent = self.agent;
        let unknown = json!({"id": format!("task_{}", self.random.uuid().simple())});
        let task = self.random_task();
        let parts = json!([{"text": "x"}]);
        let message = |message: Value| json!({"message": message});
        let (method, params, error) = match self.random.within(0..=12) {
            0 => ("GetTask", unknown, NOT_FOUND),
            1 => ("CancelTask", unknown, NOT_FOUND),
            2 => ("SubscribeToTask", unknown, NOT_FOUND),
            3 => ("ListTasks", json!({"pageSize": 101 * self.random.within(0..=1)}), INVALID),
            4 => ("ListTasks", json!({"pageToken": "AAAA"}), INVALID),
            5 => ("ListTasks", self.misused_token(), INVALID),
            6 => ("NoSuchMethod", json!({}), (-32601, "METHOD_NOT_FOUND")),
            7 => {
                let empty = json!({"messageId": "m", "role": "ROLE_USER", "parts": []});
                ("SendMessage", message(empty), INVALID)
            }
            8 => ("SendMessage", message(json!({"role": "ROLE_USER", "parts": parts})), INVALID),
            9 => {
                let lost =
                    json!({"messageId": "m", "taskId": unknown["id"], "role": "ROLE_USER", "parts": parts});
                ("SendMessage", message(lost), NOT_FOUND)
            }
            10 => {
                let id = &self.reference.tasks[task].id;
                ("GetTask", json!({"id": id, "historyLength": -1}), INVALID)
            }
            11 => {
                // Only for an open task is the context checked: an ended one accepts no message at all.
                let task = self.open.first().map(|open| self.reference.tasks[*open].id.clone());
                let mut astray = json!({"messageId": "m", "role": "ROLE_USER", "parts": parts});
                astray["contextId"] =
                    if task.is_some() { "another conversation".into() } else { Value::from(1) };
                astray["taskId"] = task.into();
                ("SendMessage", message(astray), INVALID)
            }
            _ => {
                let other = if agent == "echo" { "approver" } else { "echo" };
                let params = json!({"id": self.reference.tasks[task].id});
                return self.refused(other, "GetTask", params, NOT_FOUND).await;
            }
        };
        self.refused(agent, method, params, error).await
    }

    /// A page token of the current list, damaged or used with a different filter.
    fn misused_token(&mut self) -> Value {
        let Some(walk) = &self.walk else { return json!({"pageToken": "not a token"}) };
        let mut params = filter_params(&walk.filter);
        params["pageToken"] = walk.token.as_str().into();
        if self.random.within(0..=1) == 0 {
            params["contextId"] = "another conversation".into();
        } else {
            let first = if walk.token.starts_with('A') { "B" } else { "A" };
            params["pageToken"] = format!("{first}{}", &walk.token[1..]).into();
        }
        params
    }

    fn random_filter(&mut self) -> Filter {
        let mut filter = Filter::default();
        let task = self.random_task();
        let known = &self.reference.tasks[task];
        match self.random.within(0..=9) {
            0..=3 => filter.context = Some(known.context.clone()),
            4 => filter.context = Some("nobody knows".to_owned()),
            _ => {}
        }
        if self.random.within(0..=2) == 0 {
            filter.state = Some(STATES[index(self.random.within(0..=STATES.len() as u64 - 1))]);
        }
        if self.random.within(0..=2) == 0 {
            filter.since = known.status_at().map(str::to_owned);
        }
        filter
    }

    fn random_task(&mut self) -> usize {
        let newest = self.reference.tasks.len() as u64 - 1;
        // Half of the time a recent task, which may still be open.
        let from = if self.random.within(0..=1) == 0 { newest.saturating_sub(30) } else { 0 };
        index(self.random.within(from..=newest))
    }

    fn random_history(&mut self) -> Option<usize> {
        let length = self.random.within(0..=7);
        (length < 3).then(|| index(length))
    }

    fn new_message(&mut self, text: String, task: Option<usize>, context: Option<String>) -> OutgoingMessage {
        let (key, id) = match self.random.within(0..=4) {
            0 => (None, self.unique_word()),
            1 => (Some(self.unique_word()), self.unique_word()),
            _ => {
                let id = self.random.uuid().to_string();
                (Some(id.clone()), id)
            }
        };
        let mut message = json!({"messageId": id, "role": "ROLE_USER", "parts": [{"text": text}]});
        if let Some(task) = task {
            message["taskId"] = self.reference.tasks[task].id.as_str().into();
        }
        if let Some(context) = context {
            message["contextId"] = context.into();
        }
        OutgoingMessage { key, task, message, id, text }
    }

    /// A text that was not used before.
    fn text(&mut self) -> String {
        let unique_word = self.unique_word();
        match self.agent {
            "slow-writer" => {
                // Some logs are so long that the server folds them and reads their newest part only.
                let sections = if self.random.within(0..=15) == 0 { 40 } else { self.random.within(1..=3) };
                format!("{unique_word} sections={sections} delay=0ms")
            }
            "stepper" => match self.random.within(0..=11) {
                0..=2 => format!("end {unique_word}"),
                3..=5 => format!("retry {unique_word}"),
                6 => format!("large {unique_word}"),
                _ => unique_word,
            },
            _ => unique_word,
        }
    }

    /// A word that was not used before.
    fn unique_word(&mut self) -> String {
        self.words += 1;
        format!("word-{}", self.words)
    }
}

pub(super) fn index(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}
