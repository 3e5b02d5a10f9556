//! Rows with stable ids.

use std::ops::{Index, IndexMut};

/// Rows with stable ids. The id of a removed row is used again.
pub(super) struct Slab<T> {
    rows: Vec<Option<T>>,
    unused: Vec<usize>,
}

const PRESENT: &str = "an id is used only while its row is referred to";

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self { rows: Vec::new(), unused: Vec::new() }
    }
}

impl<T> Slab<T> {
    pub(super) fn insert(&mut self, row: T) -> usize {
        let Some(id) = self.unused.pop() else {
            self.rows.push(Some(row));
            return self.rows.len() - 1;
        };
        self.rows[id] = Some(row);
        id
    }

    pub(super) fn remove(&mut self, id: usize) -> T {
        self.unused.push(id);
        self.rows[id].take().expect(PRESENT)
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.rows.iter_mut().flatten()
    }
}

impl<T> Index<usize> for Slab<T> {
    type Output = T;

    fn index(&self, id: usize) -> &T {
        self.rows[id].as_ref().expect(PRESENT)
    }
}

impl<T> IndexMut<usize> for Slab<T> {
    fn index_mut(&mut self, id: usize) -> &mut T {
        self.rows[id].as_mut().expect(PRESENT)
    }
}
