//! An agent whose every word is decided by the test.

use std::{
    collections::VecDeque,
    ops::Deref,
    sync::{Arc, Mutex},
};

use a2ad_engine::{Agent, ExecutionPolicy, Outcome, Turn, Update, Updates};
use futures_util::{FutureExt as _, future::BoxFuture};
use protocol::{Artifact, Message, Part, Role};
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};

/// What the agent is told to do next.
enum Order {
    Say(Vec<Update>),
    /// Be pending once.
    Pause,
    End(Outcome),
    Panic(String),
}

/// Hands each turn to the test and does what it is told. With no orders it hangs.
pub(super) struct Script {
    policy: ExecutionPolicy,
    turns: UnboundedSender<Taken>,
    prepared: Arc<Mutex<VecDeque<Vec<Order>>>>,
}

/// The test's end of the agent.
pub(crate) struct Stage {
    turns: UnboundedReceiver<Taken>,
    prepared: Arc<Mutex<VecDeque<Vec<Order>>>>,
}

/// A turn the agent has taken. Dropping it leaves the agent hanging.
pub(crate) struct Taken {
    turn: Arc<Turn>,
    orders: UnboundedSender<Order>,
}

pub(super) fn stage(policy: ExecutionPolicy) -> (Script, Stage) {
    let (started, turns) = mpsc::unbounded_channel();
    let prepared = Arc::default();
    (Script { policy, turns: started, prepared: Arc::clone(&prepared) }, Stage { turns, prepared })
}

impl Agent for Script {
    fn run(&self, turn: Turn, out: Updates) -> BoxFuture<'static, Outcome> {
        let (orders, mut todo) = mpsc::unbounded_channel();
        for order in self.prepared.lock().unwrap().pop_front().unwrap_or_default() {
            orders.send(order).ok();
        }
        let turn = Arc::new(turn);
        self.turns.send(Taken { turn: Arc::clone(&turn), orders }).ok();
        async move {
            while let Some(order) = todo.recv().await {
                match order {
                    Order::Say(updates) => out.say(updates).await,
                    Order::Pause => tokio::task::yield_now().await,
                    Order::End(outcome) => return outcome,
                    Order::Panic(text) => panic!("{text}"),
                }
            }
            std::future::pending().await
        }
        .boxed()
    }

    fn policy(&self) -> ExecutionPolicy {
        self.policy
    }
}

impl Stage {
    /// The next turn the agent has taken.
    pub(crate) async fn turn(&mut self) -> Taken {
        super::within(self.turns.recv()).await.expect("the agent is still hosted")
    }

    /// Whether the agent has been asked for nothing that the test has not seen.
    pub(crate) fn is_quiet(&mut self) -> bool {
        self.turns.try_recv().is_err()
    }

    /// Orders that are there before the next unprepared turn begins: the agent is ready at its first look if they
    /// end it.
    fn prepare(&self, orders: impl IntoIterator<Item = Order>) {
        self.prepared.lock().unwrap().push_back(orders.into_iter().collect());
    }

    /// The next turn says this and ends so, without being asked.
    pub(crate) fn prepare_turn(&self, updates: impl IntoIterator<Item = Update>, outcome: Outcome) {
        self.prepare([Order::Say(updates.into_iter().collect()), Order::End(outcome)]);
    }

    /// The next turn is not ready at its first look, and then ends so without being asked.
    pub(crate) fn prepare_slow_turn(&self, updates: impl IntoIterator<Item = Update>, outcome: Outcome) {
        self.prepare([Order::Pause, Order::Say(updates.into_iter().collect()), Order::End(outcome)]);
    }

    /// The next turn says this and waits for orders.
    pub(crate) fn prepare_words(&self, updates: impl IntoIterator<Item = Update>) {
        self.prepare([Order::Say(updates.into_iter().collect())]);
    }

    /// Takes back what no turn has begun with.
    pub(crate) fn forget_prepared(&self) {
        self.prepared.lock().unwrap().clear();
    }

    /// The next turn panics at its first look.
    pub(crate) fn prepare_panic(&self, text: &str) {
        self.prepare([Order::Panic(text.into())]);
    }
}

impl Deref for Taken {
    type Target = Turn;

    fn deref(&self) -> &Turn {
        &self.turn
    }
}

impl Taken {
    /// Says things together.
    pub(crate) fn say(&self, updates: impl IntoIterator<Item = Update>) {
        self.orders.send(Order::Say(updates.into_iter().collect())).ok();
    }

    /// Ends the turn.
    pub(crate) fn end(&self, outcome: Outcome) {
        self.orders.send(Order::End(outcome)).ok();
    }

    /// Panics.
    pub(crate) fn panic(&self, text: &str) {
        self.orders.send(Order::Panic(text.into())).ok();
    }

    /// Resolves when the agent's future is gone.
    pub(crate) async fn gone(&self) {
        super::within(self.orders.closed()).await;
    }
}

/// Something the agent says.
pub(crate) fn voice(text: &str) -> Message {
    Message::new(uuid::Uuid::new_v4().to_string(), Role::Agent, vec![Part::text(text)])
}

pub(crate) fn working() -> Update {
    Update::Working(None)
}

pub(crate) fn progress(text: &str) -> Update {
    Update::Working(Some(voice(text)))
}

pub(crate) fn artifact(id: &str, text: &str) -> Update {
    Update::Artifact { artifact: Artifact::new(id, vec![Part::text(text)]), append: false, last: true }
}

pub(crate) fn chunk(id: &str, text: &str) -> Update {
    Update::Artifact { artifact: Artifact::new(id, vec![Part::text(text)]), append: true, last: false }
}

pub(crate) fn save(bytes: &'static str) -> Update {
    Update::Save(bytes.into())
}

pub(crate) fn answer(text: &str) -> Update {
    Update::Message(voice(text))
}

pub(crate) fn done() -> Outcome {
    Outcome::done()
}

pub(crate) fn done_saying(text: &str) -> Outcome {
    Outcome::Done { message: Some(voice(text)) }
}

pub(crate) fn failed(text: &str) -> Outcome {
    Outcome::Failed { message: Some(voice(text)), retryable: false }
}

pub(crate) fn try_again(text: &str) -> Outcome {
    Outcome::Failed { message: Some(voice(text)), retryable: true }
}

pub(crate) fn ask(text: &str) -> Outcome {
    Outcome::NeedInput { message: voice(text) }
}
