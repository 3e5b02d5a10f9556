//! A server is killed without warning while one task runs, one waits and one is over, and starts again.

use super::{
    Trouble,
    door::Door,
    fixture::begin,
    http::Answer,
    program::{Plan, Program},
    wrong,
};

/// What was left.
pub(super) struct Crash {
    /// Over before.
    pub(super) finished: (String, Answer),
    /// Answered as under way, and working when the process died.
    pub(super) running: (String, Answer),
    /// Answered as accepted, and not yet begun when the process died.
    pub(super) waiting: (String, Answer),
    /// What the new process said first of the task that was running.
    pub(super) readable: Answer,
    again: Program,
}

/// How many sections the running task writes.
pub(super) const SECTIONS: usize = 4;

impl Crash {
    /// The server runs one task at a time.
    pub(super) async fn happen(plan: Plan) -> Result<Self, Trouble> {
        let program = begin(&plan).await?;
        let door = Door::new(&program.server, "/_a2a/", "echo");
        let writer = door.by("slow-writer");
        let finished = door.say("before").await?;
        let running = writer.begin(&format!("the sea sections={SECTIONS} delay=250ms")).await?;
        let written = |answer: &Answer| answer.count("result.artifacts") > 0;
        writer.until(&running.0, "a first section", written).await?;
        let waiting = door.begin("after").await?;
        waiting.1.state("submitted")?;
        program.kill().await.map_err(|error| wrong("a process that can be killed", error))?;
        let again = begin(&plan).await?;
        let readable = Door { server: again.server.clone(), ..door }.get(&running.0).await?;
        Ok(Self { finished, running, waiting, readable, again })
    }

    /// The server after its new start.
    pub(super) fn door(&self) -> Door {
        Door::new(&self.again.server, "/_a2a/", "echo")
    }
}
