//! What a driver asks for next: every operation, every filter, every mistake, by chance.

use serde_json::{Value, json};

use super::driver::{Driver, Mode, Outcome, filter_params};
use super::reference::{Filter, STATES, Said, State, Verdict};

/// Tasks that are held at a time; each takes one of the server's runs.
const MOST_HELD: usize = 16;
/// Messages to one task; the server takes a few more while it is at work.
const MOST_TURNS: usize = 10;

const NOT_FOUND: (i64, &str) = (-32001, "TASK_NOT_FOUND");
const INVALID: (i64, &str) = (-32602, "INVALID_PARAMS");

impl Driver {
    /// One call, or a few that belong together.
    pub(crate) async fn step(&mut self) -> Outcome {
        if self.reference.tasks.len() < 5 {
            return self.say_new().await;
        }
        let follow_ups = if self.agent == "approver" { 20 } else { 5 };
        match self.random.within(0..=99) {
            0..=29 => self.say_new().await,
            choice if choice < 30 + follow_ups => self.say_more().await,
            50..=58 => self.say_again(false).await,
            59..=61 => self.say_again(true).await,
            62..=76 => {
                let (task, history) = (self.any_task(), self.any_history());
                self.get(task, history).await
            }
            77..=83 => self.list().await,
            84..=87 => self.walk_on().await,
            88..=90 => self.cancel_one().await,
            91..=95 => self.watch().await,
            96..=99 => self.mistake().await,
            _ => self.say_new().await,
        }
    }

    /// Ends what is held, so that the server can stop.
    pub(crate) async fn let_go(&mut self) -> Outcome {
        for task in std::mem::take(&mut self.open) {
            if self.reference.tasks[task].state() == State::Working {
                self.cancel(task).await?;
            }
        }
        let tasks = 0..self.reference.tasks.len();
        self.open = tasks.filter(|task| !self.reference.tasks[*task].state().is_terminal()).collect();
        Ok(())
    }

    async fn say_new(&mut self) -> Outcome {
        let held = self.open.iter().filter(|task| self.reference.tasks[**task].state() == State::Working);
        let may_hold = held.count() < MOST_HELD;
        let mut text = self.text();
        if self.agent == "echo" && may_hold && self.random.within(0..=15) == 0 {
            text = format!("hold {text}");
        }
        let context = match self.random.within(0..=3) {
            0 => Some(self.word()),
            1 if !self.reference.tasks.is_empty() => {
                // Lately used ones, so that some conversations grow long.
                let newest = self.reference.tasks.len() as u64 - 1;
                let back = self.random.within(0..=newest.min(8));
                Some(self.reference.tasks[index(newest - back)].context.clone())
            }
            _ => None,
        };
        let said = self.said(text, None, context);
        self.say_somehow(said).await
    }

    /// An answer to a task that is open, or a message to one that may not be.
    async fn say_more(&mut self) -> Outcome {
        let task = match self.open.len() as u64 {
            0 => self.any_task(),
            _ if self.random.within(0..=7) == 0 => self.any_task(),
            open => self.open[index(self.random.within(0..=open - 1))],
        };
        let text = match self.random.within(0..=9) {
            0..=3 => "approve".to_owned(),
            4..=6 => "deny".to_owned(),
            _ => self.word(),
        };
        let context =
            Some(self.reference.tasks[task].context.clone()).filter(|_| self.random.within(0..=1) == 0);
        let said = self.said(text, Some(task), context);
        self.say_somehow(said).await
    }

    /// A message that was sent before, or another one under its key.
    async fn say_again(&mut self, misuse: bool) -> Outcome {
        let mut said = self.said[index(self.random.within(0..=self.said.len() as u64 - 1))].clone();
        if misuse {
            said.text = self.text();
            said.message["parts"][0]["text"] = said.text.as_str().into();
        }
        self.say_somehow(said).await
    }

    async fn say_somehow(&mut self, said: Said) -> Outcome {
        let history = self.any_history();
        let target = said.task.map(|task| &self.reference.tasks[task]);
        let (holds, verdict) = (said.text.starts_with("hold"), self.reference.judge(&said));
        let is_full = verdict == Verdict::Taken && target.is_some_and(|task| task.turns() >= MOST_TURNS);
        if is_full || (verdict == Verdict::Taken && holds && self.open.len() > 2 * MOST_HELD) {
            let task = self.any_task();
            return self.get(task, history).await;
        }
        let at_work = |task: usize| self.reference.tasks[task].state() == State::Working;
        let would_wait_forever = match verdict {
            Verdict::Taken => self.agent == "echo" && (said.task.is_some_and(at_work) || holds),
            Verdict::Known(task, _) => at_work(task),
            Verdict::Reused | Verdict::TooLate => false,
        };
        let mode = match self.random.within(0..=15) {
            0..=2 => Mode::Stream,
            3 => Mode::AtOnce,
            _ if would_wait_forever => Mode::AtOnce,
            _ => Mode::Wait,
        };
        self.say(said, mode, history).await
    }

    async fn list(&mut self) -> Outcome {
        let filter = self.any_filter();
        let size = match self.random.within(0..=9) {
            0 => 100,
            1 => 50,
            _ => index(self.random.within(1..=12)),
        };
        self.page(filter, size, None).await
    }

    async fn walk_on(&mut self) -> Outcome {
        match self.walk.take() {
            Some(walk) => self.page(walk.filter.clone(), walk.size, Some(walk)).await,
            None => self.list().await,
        }
    }

    async fn cancel_one(&mut self) -> Outcome {
        let open = self.open.len() as u64;
        if open == 0 || self.random.within(0..=2) == 0 {
            let task = self.any_task();
            self.open.retain(|open| *open != task);
            return self.cancel(task).await;
        }
        let task = self.open.swap_remove(index(self.random.within(0..=open - 1)));
        self.cancel(task).await
    }

    async fn watch(&mut self) -> Outcome {
        let open = self.open.len() as u64;
        let task = match open {
            0 => self.any_task(),
            _ if self.random.within(0..=1) == 0 => self.any_task(),
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

    async fn mistake(&mut self) -> Outcome {
        let agent = self.agent;
        let unknown = json!({"id": format!("task_{}", self.random.uuid().simple())});
        let task = self.any_task();
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
                // Only an open task looks at the conversation: one that is over takes no message at all.
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

    /// A token of the walk under way, damaged or with another question.
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

    fn any_filter(&mut self) -> Filter {
        let mut filter = Filter::default();
        let task = self.any_task();
        let known = &self.reference.tasks[task];
        match self.random.within(0..=9) {
            0..=3 => filter.context = Some(known.context.clone()),
            4 => filter.context = Some("nobody knows".to_owned()),
            _ => {}
        }
        if self.random.within(0..=2) == 0 {
            filter.state = Some(STATES[index(self.random.within(0..=5))]);
        }
        if self.random.within(0..=2) == 0 {
            filter.since = known.status_at().map(str::to_owned);
        }
        filter
    }

    fn any_task(&mut self) -> usize {
        let newest = self.reference.tasks.len() as u64 - 1;
        // Half of the time a recent one, where something may still happen.
        let from = if self.random.within(0..=1) == 0 { newest.saturating_sub(30) } else { 0 };
        index(self.random.within(from..=newest))
    }

    fn any_history(&mut self) -> Option<usize> {
        let length = self.random.within(0..=7);
        (length < 3).then(|| index(length))
    }

    fn said(&mut self, text: String, task: Option<usize>, context: Option<String>) -> Said {
        let (key, id) = match self.random.within(0..=4) {
            0 => (None, self.word()),
            1 => (Some(self.word()), self.word()),
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
        Said { key, task, message, id, text }
    }

    /// Something to say that nobody has said.
    fn text(&mut self) -> String {
        let word = self.word();
        match self.agent {
            "slow-writer" => format!("{word} sections={} delay=0ms", self.random.within(1..=3)),
            _ => word,
        }
    }

    /// A word nobody has used.
    fn word(&mut self) -> String {
        self.words += 1;
        format!("word-{}", self.words)
    }
}

fn index(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}
