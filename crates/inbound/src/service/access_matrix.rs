//! The access matrix (T-S1): what a caller may not see does not exist for it.
//!
//! Cells are generated from the route table. In each, the owner of a task makes something with an id; another caller, or
//! the owner at another agent or tenant, sends one request that names it and one that names something absent. Both
//! responses must be the same but for the id, no response may have the text of somebody else, and the owner must still
//! see what it saw before. No webhook may be notified of a task of somebody else. For each kind of request the owner gets
//! another response for its own id, or an effect, which shows that the id is looked up at all. Every row of the table and
//! every operation must have cells: [`cells`] matches all handlers, and the counters of the server show which rows had
//! requests.

mod cells;
mod principals;
mod probe;
mod receiver;
mod seen;
mod world;

use std::{collections::BTreeSet, path::Path};

use futures_util::{StreamExt as _, stream};
use protocol::{OperationKind, grpc::Service};

use self::{
    cells::Cell,
    principals::{Identified, Principal},
    seen::Seen,
    world::{Lifetime, Need, State, Target, World},
};
use crate::routes::{Methods, TABLE};

/// What the matrix must have at least.
const LEAST: usize = 2_000;
/// How many cells run at a time.
const CONCURRENT: usize = 16;

#[test]
fn foreign_ids_are_absent_in_every_cell() {
    let (live, stored) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (mut results, mut rows) = (Results::default(), BTreeSet::new());
    // Tasks that run or wait in the process that is asked, of callers that an application has identified.
    in_process(live.path(), Identified::ByApplication, async |world| {
        results.add(check(world, cells::all(Lifetime::Live), None).await);
        rows.extend(world.rows_with_requests());
    });
    // Tasks that an earlier process has left, of callers with credentials.
    let cells = in_process(stored.path(), Identified::ByCredential, async |world| {
        let made = cells::all(Lifetime::Stored).into_iter().map(async |cell| {
            let target = world.make(&cell.owner, &cell.need()).await;
            (cell, target)
        });
        stream::iter(made).buffered(CONCURRENT).collect::<Vec<_>>().await
    });
    in_process(stored.path(), Identified::ByCredential, async |world| {
        let (cells, targets): (Vec<_>, Vec<_>) = cells.into_iter().unzip();
        results.add(check(world, cells, Some(targets)).await);
        rows.extend(world.rows_with_requests());
    });

    println!("access matrix: {} cells, {} leaks", results.cells, results.leaks.len());
    let shown: Vec<&str> = results.leaks.iter().take(20).map(String::as_str).collect();
    assert!(shown.is_empty(), "{} leaks:\n{}", results.leaks.len(), shown.join("\n"));
    assert!(results.cells >= LEAST, "{} cells", results.cells);
    let unserved = |number: &usize| TABLE[*number].methods == Methods::None;
    let without: Vec<_> =
        (0..TABLE.len()).filter(|number| !rows.contains(number) && !unserved(number)).collect();
    assert!(without.is_empty(), "rows without a cell: {without:?}");
    for kind in operations() {
        assert!(results.kinds.contains(&format!("{kind:?}")), "{kind:?} has no cell");
    }
}

/// Every operation; another one does not compile until [`probe::fields`] has its ids.
fn operations() -> impl Iterator<Item = OperationKind> {
    Service::V1.methods().iter().map(|(_, kind)| *kind)
}

#[derive(Default)]
struct Results {
    cells: usize,
    leaks: Vec<String>,
    /// The operations that had cells.
    kinds: BTreeSet<String>,
}

impl Results {
    fn add(&mut self, other: Self) {
        self.cells += other.cells;
        self.leaks.extend(other.leaks);
        self.kinds.extend(other.kinds);
    }
}

/// Runs one process with a store, until its runtime has ended.
fn in_process<T>(folder: &Path, identified: Identified, body: impl AsyncFnOnce(&World) -> T) -> T {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let (result, world) = runtime.block_on(async {
        let world = World::open(folder, identified).await;
        (body(&world).await, world)
    });
    runtime.shutdown_timeout(std::time::Duration::from_secs(10));
    drop(world);
    result
}

/// Checks all cells. `targets` has what the cells are about, if that was made earlier.
async fn check(world: &World, cells: Vec<Cell>, targets: Option<Vec<Target>>) -> Results {
    let mut results = check_without_ids(world).await;
    let targets: Vec<Option<Target>> = match targets {
        Some(targets) => targets.into_iter().map(Some).collect(),
        None => cells.iter().map(|_| None).collect(),
    };
    let checked = cells.iter().zip(targets).map(async |(cell, target)| {
        let target = match target {
            Some(target) => target,
            None => world.make(&cell.owner, &cell.need()).await,
        };
        let leak = check_cell(world, cell, &target).await.err();
        (cell.kind, leak.map(|leak| format!("{}: {leak}", cell.label)))
    });
    let mut checked = stream::iter(checked).buffer_unordered(CONCURRENT);
    while let Some((kind, leak)) = checked.next().await {
        results.cells += 1;
        results.kinds.extend(kind.map(|kind| format!("{kind:?}")));
        results.leaks.extend(leak);
    }
    results.leaks.extend(world.misdirected().await);
    // The owners send the texts of askers: their notifications are not checked.
    results.leaks.extend(check_lookups(world, &cells).await);
    results
}

/// Checks that what the cells ask for is looked up: one owner of each request asks for its own.
async fn check_lookups(world: &World, cells: &[Cell]) -> Vec<String> {
    let mut requests = BTreeSet::new();
    let looked_up = cells.iter().filter(|cell| cell.is_looked_up() && requests.insert(cell.request.clone()));
    let checked = looked_up.map(async |cell| {
        let need = Need { state: State::InputRequired, own_task: None, ..cell.need() };
        let target = world.make(&cell.owner, &need).await;
        let own = target.id(cell.field);
        let absent = seen::absent(&own);
        let probe = |id: &str| (cell.probe)(id, &target, world::serial());
        let unknown = world.send(cell.owner.principal, probe(&absent)).await.masked(&absent);
        let before = world.affected(&cell.owner, cell.field, &target).await;
        let differs = world.gets_other(cell.owner.principal, probe(&own), &own, &unknown).await;
        // Some requests have an effect and always the same response.
        let is_looked_up = differs || world.affected(&cell.owner, cell.field, &target).await != before;
        (!is_looked_up).then(|| format!("{}: the owner gets {unknown:?} for its own id too", cell.label))
    });
    stream::iter(checked).buffered(CONCURRENT).filter_map(async |leak| leak).collect().await
}

/// Requests without an id: nobody gets the text of somebody else, and what is public is the same for everybody.
async fn check_without_ids(world: &World) -> Results {
    let mut results = Results::default();
    for public in cells::without_ids() {
        let mut shown: Option<Seen> = None;
        for principal in Principal::ALL {
            let seen = world.send(principal, public.probe.clone()).await;
            results.cells += 1;
            results.kinds.extend(public.kind.map(|kind| format!("{kind:?}")));
            if let Some(marker) = seen.foreign_marker(Some(principal)) {
                results.leaks.push(format!("{} by {principal:?}: has {marker}", public.label));
            }
            let same = shown.get_or_insert_with(|| seen.clone());
            if public.is_same_for_all && *same != seen {
                results.leaks.push(format!("{} by {principal:?}: {same:?} is {seen:?}", public.label));
            }
        }
    }
    results
}

/// Compares the responses for a foreign and an absent id; an error is a leak.
async fn check_cell(world: &World, cell: &Cell, target: &Target) -> Result<(), String> {
    let asked = target.id(cell.field);
    let absent = seen::absent(&asked);
    let before = world.view(&cell.owner, cell.field, target).await;
    if !before.has_marker_of(&cell.owner) {
        return Err(format!("the owner does not see its own: {before:?}"));
    }
    let probe = |id: &str| (cell.probe)(id, target, world::serial());
    let foreign = world.send(cell.asker, probe(&asked)).await.masked(&asked);
    let unknown = world.send(cell.asker, probe(&absent)).await.masked(&absent);
    if foreign.status == 0 {
        return Err("the response does not end".to_owned());
    }
    if foreign != unknown {
        return Err(format!("{foreign:?} differs from {unknown:?}"));
    }
    let own = (!cell.is_other_tenant).then_some(cell.asker);
    if let Some(marker) = foreign.foreign_marker(own) {
        return Err(format!("the response has {marker}: {foreign:?}"));
    }
    let after = world.view(&cell.owner, cell.field, target).await;
    if before != after {
        return Err(format!("the owner saw {before:?} and now sees {after:?}"));
    }
    Ok(())
}
