//! The operations of A2A, one method each.

use protocol::{
    AgentCard, CancelTask, GetExtendedCard, GetTask, ListTasks, Operation, PushConfig, PushConfigPage,
    PushConfigQuery, PushConfigRef, SendMessage, SubscribeToTask, Task, TaskPage,
};

use crate::{Client, Error, EventStream, SendReply, client::assign_message_id, reply};

/// # Messages
impl Client {
    /// Sends a message and returns the agent's response: a task or a direct message.
    ///
    /// A text, a [`Message`](protocol::Message) or a whole [`SendMessage`] can be sent. The agent waits for
    /// the task to settle unless `return_immediately` is set, but many agents return earlier: check the state
    /// of the task. [`Follow::send`](crate::Follow::send) polls it until it is settled.
    ///
    /// A message without an id gets a random one.
    ///
    /// ```no_run
    /// # use a2ad_client::{Client, Error, SendReply};
    /// # use protocol::{Message, Part, Role, SendMessage};
    /// # async fn example() -> Result<(), Error> {
    /// let client = Client::discover("https://agent.example").await?;
    /// let reply = client.send("how much is 10 USD in INR?").await?;
    /// println!("{}", reply.text());
    ///
    /// // A second message in the same context, without waiting for the result.
    /// if let SendReply::Task(task) = reply {
    ///     let mut message = Message::new("message-2", Role::User, vec![Part::text("and 20 USD?")]);
    ///     message.context_id = Some(task.context_id);
    ///     client.send(SendMessage { return_immediately: true, ..message.into() }).await?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn send(&self, request: impl Into<SendMessage>) -> Result<SendReply, Error> {
        let mut request = request.into();
        assign_message_id(&mut request);
        reply::sent(self.call(Operation::SendMessage(request)).await?)
    }

    /// Sends a message and streams the events of its task.
    ///
    /// The stream belongs to this connection: if it breaks, the stream ends with an error while the task
    /// continues. [`Follow::stream`](crate::Follow::stream) reconnects and also works with agents that do not
    /// stream.
    ///
    /// ```no_run
    /// # use a2ad_client::{Client, Error, text};
    /// # use protocol::Event;
    /// # async fn example(client: Client) -> Result<(), Error> {
    /// let mut events = client.stream("write a report about the sea").await?;
    /// while let Some(event) = events.next().await {
    ///     match event? {
    ///         Event::Artifact(update) => print!("{}", text::of_parts(&update.artifact.parts)),
    ///         Event::Status(update) => println!("{:?}", update.status.state),
    ///         Event::Task(task) => println!("task {}", task.id),
    ///         Event::Message(message) => println!("{}", message.text()),
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn stream(&self, request: impl Into<SendMessage>) -> Result<EventStream, Error> {
        let mut request = request.into();
        assign_message_id(&mut request);
        self.open_stream(Operation::SendStreamingMessage(request), None).await
    }
}

/// # Tasks
///
/// ```no_run
/// # use a2ad_client::{Client, Error};
/// # use protocol::{GetTask, ListTasks, TaskState};
/// # async fn example(client: Client) -> Result<(), Error> {
/// let task = client.get_task("task-1").await?;
/// let short = client.get_task(GetTask { history_length: Some(0), ..GetTask::from(&task.id) }).await?;
/// println!("{} is {:?}", short.id, short.status.state);
///
/// let mut filter = ListTasks { status: Some(TaskState::Working), ..ListTasks::default() };
/// loop {
///     let page = client.list_tasks(filter.clone()).await?;
///     for task in &page.tasks {
///         client.cancel(&task.id).await?;
///     }
///     filter.page_token = page.next_page_token;
///     if filter.page_token.is_none() {
///         break;
///     }
/// }
/// # Ok(())
/// # }
/// ```
impl Client {
    /// Reads a task, given by its id or as a [`GetTask`].
    pub async fn get_task(&self, request: impl Into<GetTask>) -> Result<Task, Error> {
        reply::task(self.call(Operation::GetTask(request.into())).await?)
    }

    /// Reads one page of the tasks that match a filter. A2A has this operation since 1.0; with an older agent
    /// it is [`Error::NoMethod`].
    pub async fn list_tasks(&self, request: ListTasks) -> Result<TaskPage, Error> {
        reply::tasks(self.call(Operation::ListTasks(request)).await?)
    }

    /// Cancels a task, given by its id or as a [`CancelTask`], and returns it. A task that has already ended
    /// cannot be canceled: that is an [`Error::Protocol`].
    pub async fn cancel(&self, request: impl Into<CancelTask>) -> Result<Task, Error> {
        reply::task(self.call(Operation::CancelTask(request.into())).await?)
    }

    /// Streams the events of an existing task, given by its id or as a [`SubscribeToTask`]. The first event
    /// is a snapshot of the task. Agents reject this for a task that has ended.
    pub async fn subscribe(&self, request: impl Into<SubscribeToTask>) -> Result<EventStream, Error> {
        self.open_stream(Operation::SubscribeToTask(request.into()), None).await
    }

    /// Like [`subscribe`](Self::subscribe), and requests the events after this sequence number
    /// (`Last-Event-ID`). Agents that do not number their events ignore the number.
    ///
    /// ```no_run
    /// # use a2ad_client::{Client, Error};
    /// # async fn example(client: Client) -> Result<(), Error> {
    /// let mut events = client.subscribe("task-1").await?;
    /// while let Some(Ok(event)) = events.next().await {
    ///     println!("{event:?}");
    /// }
    /// if let Some(last) = events.last_event_id() {
    ///     let events = client.resume("task-1", last).await?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn resume(
        &self,
        request: impl Into<SubscribeToTask>,
        after: u64,
    ) -> Result<EventStream, Error> {
        self.open_stream(Operation::SubscribeToTask(request.into()), Some(after)).await
    }
}

/// # Push notifications
///
/// ```no_run
/// # use a2ad_client::{Client, Error};
/// # use protocol::PushConfig;
/// # async fn example(client: Client) -> Result<(), Error> {
/// let webhook = PushConfig {
///     id: Some("config-1".into()),
///     task_id: Some("task-1".into()),
///     ..PushConfig::new("https://me.example/webhook")
/// };
/// client.create_push_config(webhook).await?;
/// let webhook = client.get_push_config(("task-1", "config-1")).await?;
/// let all = client.list_push_configs("task-1").await?.configs;
/// client.delete_push_config(("task-1", "config-1")).await?;
/// # Ok(())
/// # }
/// ```
impl Client {
    /// Registers a webhook for the task named in the config, and returns it as stored by the agent.
    pub async fn create_push_config(&self, config: PushConfig) -> Result<PushConfig, Error> {
        reply::push_config(self.call(Operation::CreatePushConfig(config)).await?)
    }

    /// Reads a webhook, given by its task id and its own id or as a [`PushConfigRef`].
    pub async fn get_push_config(&self, request: impl Into<PushConfigRef>) -> Result<PushConfig, Error> {
        reply::push_config(self.call(Operation::GetPushConfig(request.into())).await?)
    }

    /// Reads one page of the webhooks of a task, given by its id or as a [`PushConfigQuery`].
    pub async fn list_push_configs(
        &self,
        request: impl Into<PushConfigQuery>,
    ) -> Result<PushConfigPage, Error> {
        reply::push_configs(self.call(Operation::ListPushConfigs(request.into())).await?)
    }

    /// Removes a webhook, given by its task id and its own id or as a [`PushConfigRef`].
    pub async fn delete_push_config(&self, request: impl Into<PushConfigRef>) -> Result<(), Error> {
        reply::deleted(&self.call(Operation::DeletePushConfig(request.into())).await?)
    }
}

/// # Cards
impl Client {
    /// Reads the card that the agent shows to authenticated callers. [`find_card`](crate::find_card) reads
    /// the public one.
    ///
    /// ```no_run
    /// # use a2ad_client::{Client, Error};
    /// # use protocol::GetExtendedCard;
    /// # async fn example(client: Client) -> Result<(), Error> {
    /// let card = client.extended_card(GetExtendedCard::default()).await?;
    /// println!("{} has {} skills", card.name, card.skills.len());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn extended_card(&self, request: GetExtendedCard) -> Result<AgentCard, Error> {
        reply::card(self.call(Operation::GetExtendedCard(request)).await?)
    }
}
