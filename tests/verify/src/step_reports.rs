//! The reports of `journal-writer`: a file outside the server in which each of its steps is counted, across every
//! SIGKILL. A step that has been journaled must never begin again.
//!
//! A line is `TASK begins N;`, `TASK journaled N;`, or `boot;`, which the proof itself adds before it starts the server.
//! SIGKILL can tear a line; an incomplete one is ignored. Deliberately not here: the document that the steps write
//! (`writer.rs`).

use std::collections::{HashMap, HashSet};
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::PathBuf;

use anyhow::{Context, Result};

use super::writer::Document;

pub(crate) const AGENT: &str = "journal-writer";

/// The file with the reports.
pub(crate) struct ReportFile(PathBuf);

impl ReportFile {
    /// The path must not contain line breaks.
    pub(crate) fn new(path: PathBuf) -> Self {
        Self(path)
    }

    /// The text of a message that requests a document whose steps are reported here.
    pub(crate) fn request(&self, document: Document) -> String {
        format!("{} report={}", document.text(), self.0.display())
    }

    /// Records that the server is about to be started.
    pub(crate) fn add_boot(&self) -> Result<()> {
        let mut file = OpenOptions::new().create(true).append(true).open(&self.0)?;
        file.write_all(b"\nboot;").context("cannot write to the file with the reports of steps")
    }

    pub(crate) fn read(&self) -> Result<StepReports> {
        let text = fs::read(&self.0).context("cannot read the reports of steps")?;
        Ok(StepReports::of(&String::from_utf8_lossy(&text)))
    }
}

/// What the steps have reported.
#[derive(Default)]
pub(crate) struct StepReports {
    tasks: HashMap<String, TaskSteps>,
    boots: u64,
    /// How often a step began.
    pub(crate) begun: u64,
    /// Steps that began again because they were not journaled when the server was killed.
    pub(crate) begun_again: u64,
    /// How often an attempt got the output of a finished step from the journal.
    pub(crate) replayed: u64,
    /// Violations: steps that began although they were journaled.
    pub(crate) repeated: Vec<String>,
}

/// The steps of one task.
#[derive(Default)]
struct TaskSteps {
    begun: HashSet<u64>,
    journaled: HashSet<u64>,
    /// The steps that began and have not been journaled since the last boot.
    running: HashSet<u64>,
    first_boot: u64,
    last_boot: u64,
    /// The boot in which a step was journaled for the first time, of the newest such step.
    progress_boot: u64,
}

impl StepReports {
    pub(crate) fn of(text: &str) -> Self {
        let mut reports = Self::default();
        for line in text.lines().filter_map(|line| line.strip_suffix(';')) {
            match line.split(' ').collect::<Vec<_>>()[..] {
                ["boot"] => reports.add_boot(),
                [task, "begins", step] => reports.add(task, step, Self::begin),
                [task, "journaled", step] => reports.add(task, step, Self::journal),
                _ => {}
            }
        }
        reports
    }

    /// Number of steps of a task that were journaled.
    pub(crate) fn journaled(&self, task: &str) -> u64 {
        self.tasks.get(task).map_or(0, |steps| steps.journaled.len() as u64)
    }

    /// Number of boots since a step of the task was journaled for the first time, or since its first step began; at
    /// least the number of crashes since its last progress.
    pub(crate) fn boots_since_progress(&self, task: &str) -> u64 {
        self.tasks.get(task).map_or(self.boots, |steps| self.boots - steps.progress_boot)
    }

    /// For each task, in how many boots after its first one it was still running, in ascending order.
    pub(crate) fn crashes_survived(&self) -> Vec<u64> {
        let mut survived: Vec<u64> =
            self.tasks.values().map(|steps| steps.last_boot - steps.first_boot).collect();
        survived.sort_unstable();
        survived
    }

    fn add_boot(&mut self) {
        self.boots += 1;
        self.tasks.values_mut().for_each(|steps| steps.running.clear());
    }

    fn add(&mut self, task: &str, step: &str, record: fn(&mut Self, &str, u64)) {
        let Ok(step) = step.parse() else { return };
        let boot = self.boots;
        let steps = self.tasks.entry(task.to_owned()).or_insert_with(|| TaskSteps {
            first_boot: boot,
            progress_boot: boot,
            ..TaskSteps::default()
        });
        steps.last_boot = boot;
        record(self, task, step);
    }

    fn begin(&mut self, task: &str, step: u64) {
        let Some(steps) = self.tasks.get_mut(task) else { return };
        self.begun += 1;
        self.begun_again += u64::from(!steps.begun.insert(step));
        if steps.journaled.contains(&step) || !steps.running.insert(step) {
            let what = format!("task {task}: step {step} began again in boot {}", self.boots);
            self.repeated.push(what);
        }
    }

    fn journal(&mut self, task: &str, step: u64) {
        let boot = self.boots;
        let Some(steps) = self.tasks.get_mut(task) else { return };
        let ran = steps.running.remove(&step);
        self.replayed += u64::from(!ran);
        if steps.journaled.insert(step) {
            steps.progress_boot = boot;
        }
    }
}
