//! `cargo xtask test`: sets up what the tests need and runs them all. The README and CI call this command.
//!
//! The format and the tests of the crates come first, so that mistakes show early. The rest runs the finished programs and
//! mostly waits: the fuzz targets, the program against other A2A implementations, and the proofs. These run side by side,
//! in lanes. Lints and documentation are checked at the same time, with the processor time that the others leave.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::Command,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Instant,
};

use anyhow::{Context as _, Result, bail, ensure};

use crate::{
    check,
    disk_space::{self, TargetDirectory},
    program, run,
};

/// What runs side by side. Each lane is a list of commands of `cargo xtask`, one after another; suites that share an
/// environment install it one after another. Some proofs are smaller than by default, and their time goals are relaxed to hang guards;
/// `cargo xtask verify` fails on the goals themselves.
const LANES: &[&[&str]] = &[
    &[
        "interop javascript",
        "interop python",
        "interop python03",
        "interop python02",
        "interop agent-native",
        "interop backends",
        "interop mcp",
        "interop auth",
    ],
    // These build programs, the last one in the directory that the lints use.
    &["interop rust", "interop draft", "fuzz", "check", "interop telemetry"],
    // Proofs that load the program.
    &[
        "acceptance",
        "verify kill_under_load",
        "verify duplicate_sends",
        "verify cancel_races",
        "verify recovery_time --relaxed",
        "verify stream_resume --relaxed",
        "verify webhook_kills --relaxed --kills 8 --deliveries 200",
        "verify retention_under_load --relaxed --tasks 20000 --cycles 3",
        "verify many_keys --relaxed --keys 300000 --seconds 2",
        "verify many_owners --relaxed --owners 20000",
        "verify many_skills --relaxed --skills 2000 --calls 200",
        "verify reference_model --operations 50000",
        "verify overload --relaxed --seconds 5",
        "verify fair_limits --relaxed --seconds 6",
        "verify reload_under_load --relaxed --reloads 60",
        "verify mcp_crosstalk --calls 5000",
        "verify malformed_requests --relaxed",
        "verify request_bombs --relaxed",
        "verify backup_under_load --rounds 5",
        "verify disk_faults --faults 6 --relaxed --unprivileged",
    ],
    // Proofs that wait, and then suites whose packages are installed by now.
    &[
        "verify slow_readers --relaxed --readers 100 --connections 10 --idle-seconds 15",
        "verify webhook_outage --relaxed --deliveries 1000 --down-seconds 15",
        "verify http2_floods --relaxed --connections 4 --seconds 1",
        "verify stuck_sockets --relaxed --sockets 500",
        "verify clock_steps",
        "verify long_turns --relaxed --tasks 20 --sections 10 --kills 4",
        "verify poison_tasks --relaxed",
        "interop push",
        "interop tls",
        "interop streams-1.3.0",
        "interop streams-0.3.26",
        "interop streams-0.3.22",
        "interop streams-0.3.10",
        "interop streams-0.2.16",
        "interop server-python",
        "interop server-python03",
        "interop server-javascript",
    ],
];

/// The programs that the lanes run.
const PROGRAMS: &[&str] = &["a2ad", "a2ad-acceptance", "a2ad-fixtures", "a2ad-verify", "a2ad-fuzz"];

/// Runs everything, or only the parts whose command begins like the arguments: `check`, `crates`, `interop tls`, `verify`.
/// The first failure ends the run.
pub(crate) fn run(args: Vec<String>) -> Result<()> {
    let only = args.into_iter().reduce(|only, arg| only + " " + &arg).unwrap_or_default();
    let is_chosen = |part: &str| part.starts_with(&only);
    let lanes: Vec<Vec<_>> =
        LANES.iter().map(|lane| lane.iter().copied().filter(|part| is_chosen(part)).collect()).collect();
    let has_lanes = lanes.iter().any(|lane| !lane.is_empty());
    ensure!(
        has_lanes || is_chosen("crates"),
        "no part of the tests is named {only}; there are acceptance, check, crates, fuzz, interop SUITE and verify PROOF"
    );
    let target = disk_space::check()?;
    let parts = Parts::begin()?;
    if only.is_empty() {
        parts.run("format", check::format)?;
    }
    if is_chosen("crates") {
        parts.run("build", || run::cargo(&["test", "--workspace", "--quiet", "--no-run"]))?;
        // Plain cargo test: no other test runner has to be installed.
        parts.run("crates", || run::cargo(&["test", "--workspace", "--quiet"]))?;
    }
    if has_lanes {
        let programs = copy_programs()?;
        // Where they were there before, they are kept: the next run needs them again.
        if target == TargetDirectory::Empty {
            disk_space::delete_test_programs()?;
        }
        let failed = AtomicBool::new(false);
        thread::scope(|scope| {
            for lane in lanes {
                let (parts, programs, failed) = (&parts, &programs, &failed);
                scope.spawn(move || run_lane(&lane, parts, programs, failed));
            }
        });
        ensure!(!failed.into_inner(), "a part has failed; its output is above");
    }
    parts.report();
    Ok(())
}

/// Builds the programs, and copies them to where no other build replaces them.
fn copy_programs() -> Result<PathBuf> {
    let folder = program::target()?.join("programs");
    fs::create_dir_all(&folder).context("cannot create the directory of the programs")?;
    for name in PROGRAMS {
        fs::copy(program::build_tool(name)?, folder.join(name)).context("cannot copy a program")?;
    }
    Ok(folder)
}

/// Runs the parts of a lane until one of any lane fails.
fn run_lane(lane: &[&str], parts: &Parts, programs: &Path, failed: &AtomicBool) {
    for part in lane {
        if failed.load(Ordering::Relaxed) {
            return;
        }
        let name = part.split_whitespace().take(2).collect::<Vec<_>>().join(" ");
        if let Err(error) = parts.run(&name, || run_part(part, &name, programs)) {
            failed.store(true, Ordering::Relaxed);
            eprintln!("{error:#}");
        }
    }
}

/// Runs a command of this program. Its output is printed at its end, so that those of the lanes do not mix.
fn run_part(part: &str, name: &str, programs: &Path) -> Result<()> {
    let log = programs.with_file_name("tmp").join(format!("{}.log", name.replace(' ', "-")));
    fs::create_dir_all(log.parent().context("a file has a parent")?)?;
    eprintln!("+ xtask {part}  (its output is in {} until it ends)", log.display());
    let output = File::create(&log).context("cannot create the log of a part")?;
    let program = std::env::current_exe()?;
    // The lints must not slow down proofs that measure times.
    let mut command = match name {
        "check" => Command::new("nice"),
        _ => Command::new(&program),
    };
    if name == "check" {
        command.arg(&program);
    }
    command.args(part.split_whitespace()).env(program::PREBUILT, programs);
    let status = command.stdout(output.try_clone()?).stderr(output).status()?;
    static PRINTING: Mutex<()> = Mutex::new(());
    let printing = PRINTING.lock().unwrap_or_else(PoisonError::into_inner);
    eprint!("{}", String::from_utf8_lossy(&fs::read(&log)?));
    drop(printing);
    if status.success() { Ok(()) } else { bail!("{name} failed ({status})") }
}

/// Time used by each part, and disk space used by all.
struct Parts {
    started: Instant,
    free_at_start: u64,
    /// The least free space at the end of a part.
    least_free: Mutex<u64>,
    lines: Mutex<Vec<String>>,
}

impl Parts {
    fn begin() -> Result<Self> {
        let free = disk_space::free(&program::target()?)?;
        Ok(Self {
            started: Instant::now(),
            free_at_start: free,
            least_free: Mutex::new(free),
            lines: Mutex::default(),
        })
    }

    fn run(&self, name: &str, part: impl FnOnce() -> Result<()>) -> Result<()> {
        let started = Instant::now();
        part()?;
        let free = disk_space::free(&program::target()?)?;
        let mut least = self.least_free.lock().unwrap_or_else(PoisonError::into_inner);
        *least = free.min(*least);
        let used = disk_space::format_mib(self.free_at_start.saturating_sub(free));
        let (took, at) = (started.elapsed().as_secs(), self.started.elapsed().as_secs());
        let line = format!("{name:28} {took:5} s, ended after {at:5} s with {used:>9} in use");
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).push(line);
        Ok(())
    }

    fn report(&self) {
        for line in self.lines.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            eprintln!("{line}");
        }
        let least = *self.least_free.lock().unwrap_or_else(PoisonError::into_inner);
        let peak = disk_space::format_mib(self.free_at_start.saturating_sub(least));
        eprintln!("everything passed in {} s; at most {peak} in use", self.started.elapsed().as_secs());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interop;

    #[test]
    fn each_suite_is_in_one_lane() {
        for suite in interop::names() {
            let command = format!("interop {suite}");
            assert_eq!(
                LANES.iter().flat_map(|lane| *lane).filter(|part| **part == command).count(),
                1,
                "{suite}"
            );
        }
    }
}
