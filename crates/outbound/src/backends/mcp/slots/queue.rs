//! The calls that wait for a slot: in turns between principals, in order of arrival within one.

use std::collections::VecDeque;

use super::{ContextKey, Grant, same_principal};

pub(super) struct Waiter<L> {
    pub(super) context: ContextKey,
    pub(super) grant: Grant<L>,
}

/// One line for each principal whose calls wait, in the order of their turns. No line is empty.
pub(super) struct Queue<L>(VecDeque<VecDeque<Waiter<L>>>);

impl<L> Default for Queue<L> {
    fn default() -> Self {
        Self(VecDeque::new())
    }
}

impl<L> Queue<L> {
    pub(super) fn push(&mut self, waiter: Waiter<L>) {
        let scope = &waiter.context.scope;
        let own = |line: &&mut VecDeque<Waiter<L>>| same_principal(&line[0].context.scope, scope);
        match self.0.iter_mut().find(own) {
            Some(line) => line.push_back(waiter),
            None => self.0.push_back([waiter].into()),
        }
    }

    /// Removes calls that no longer wait.
    pub(super) fn remove_closed(&mut self) {
        self.0.iter_mut().for_each(|line| line.retain(|waiter| !waiter.grant.is_closed()));
        self.0.retain(|line| !line.is_empty());
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Offers a slot to the principals in turn until none of their calls takes one. Of a principal, the first call that
    /// takes it gets it; then it is the turn of all others.
    pub(super) fn serve<T>(
        &mut self,
        mut offer: impl FnMut(&ContextKey) -> Option<T>,
        mut give: impl FnMut(Grant<L>, T),
    ) {
        let mut passed = 0;
        while passed < self.0.len() {
            let Some(mut line) = self.0.pop_front() else { break };
            let taken = line.iter().enumerate().find_map(|(at, waiter)| Some((at, offer(&waiter.context)?)));
            match taken.and_then(|(at, slot)| Some((line.remove(at)?, slot))) {
                Some((waiter, slot)) => {
                    give(waiter.grant, slot);
                    passed = 0;
                }
                None => passed += 1,
            }
            if !line.is_empty() {
                self.0.push_back(line);
            }
        }
    }

    pub(super) fn drain(&mut self) -> impl Iterator<Item = Grant<L>> {
        self.0.drain(..).flatten().map(|waiter| waiter.grant)
    }

    pub(super) fn contexts(&self) -> impl Iterator<Item = &ContextKey> {
        self.0.iter().flatten().map(|waiter| &waiter.context)
    }
}
