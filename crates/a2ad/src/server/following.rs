//! Follows the tools of a server whose agents consist of skills.

use std::sync::Arc;

use engine::{Catalog, CurrentCatalog};
use inbound::{ConfigReport, OperatorReports};
use tokio_util::{
    sync::{CancellationToken, DropGuard},
    task::TaskTracker,
};

use super::agents::ServedAgent;
use crate::{
    assembly::{Backends, Reports, SkillAgent, SkillSource, hidden_skills},
    serve,
};

/// The agents of a server and what they are made of.
pub(super) struct Assembly {
    pub(super) default_agent: String,
    pub(super) agents: Vec<ServedAgent>,
    /// The skills of the builder, which its Rust agents can call.
    pub(super) skills: Vec<SkillSource>,
    pub(super) backends: Backends,
    pub(super) reports: Arc<Reports>,
}

/// Makes the agents again whenever there are other tools. Dropping it ends that and the backends in the background.
pub(super) struct CatalogUpdater {
    tasks: TaskTracker,
    stop: CancellationToken,
    _stop_on_drop: DropGuard,
}

impl Assembly {
    /// The agents with the skills that are known at the moment.
    pub(super) fn catalog(&self) -> Catalog {
        let hidden = Arc::new(hidden_skills(&self.skills, &self.backends));
        let agents = self.agents.iter().map(|agent| agent.registered(&self.backends, &hidden));
        Catalog::new(&self.default_agent, agents)
    }

    /// Tells operators what there is; `None` if no agent consists of skills.
    pub(super) fn report(&self) -> Option<Arc<dyn OperatorReports>> {
        self.skill_agents().next()?;
        #[cfg(feature = "mcp")]
        for missing in crate::assembly::missing_tools(self.skill_agents(), &self.backends) {
            tracing::warn!("{missing}");
        }
        self.reports.set(&self.backends, self.skill_agents(), ConfigReport::default());
        Some(Arc::clone(&self.reports) as _)
    }

    fn skill_agents(&self) -> impl Iterator<Item = &SkillAgent> {
        self.agents.iter().filter_map(|agent| match agent {
            ServedAgent::Registered(_) => None,
            ServedAgent::Skills(agent) => Some(&**agent),
        })
    }

    /// Begins to follow, and to keep the catalog up to date.
    pub(super) fn follow(mut self, current: CurrentCatalog) -> CatalogUpdater {
        let (tasks, stop) = (TaskTracker::new(), CancellationToken::new());
        let stopped = stop.clone();
        tasks.spawn(async move {
            while stopped.run_until_cancelled(self.backends.changed()).await.is_some() {
                self.report();
                serve::replace_catalog(&current, self.catalog()).await;
            }
            self.backends.stop().await;
        });
        tasks.close();
        CatalogUpdater { tasks, _stop_on_drop: stop.clone().drop_guard(), stop }
    }
}

impl CatalogUpdater {
    /// Ends the processes of the backends.
    pub(super) async fn stop(&self) {
        self.stop.cancel();
        self.tasks.wait().await;
    }
}
