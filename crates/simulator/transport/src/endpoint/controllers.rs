//! The controllers of an endpoint.

use crate::congestion::Controller;
use crate::exact_push;
use clearway_prefetch::prefetch_first;

/// Number of a controller in its endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct ControllerId(u32);

/// The controllers of an endpoint's senders.
#[derive(Default)]
pub(crate) struct Controllers {
    /// Controllers by number; a free number keeps the one that had it last.
    table: Vec<Controller>,
    free: Vec<u32>,
}

impl Controllers {
    /// Adds a controller.
    pub(crate) fn add(&mut self, controller: Controller) -> ControllerId {
        match self.free.pop() {
            Some(number) => {
                self.table[number as usize] = controller;
                ControllerId(number)
            }
            None => {
                exact_push::push(&mut self.table, controller);
                ControllerId(self.table.len() as u32 - 1)
            }
        }
    }

    /// Loads the controllers into the caches.
    #[inline]
    pub(crate) fn prefetch(&self) {
        prefetch_first(&self.table, usize::MAX);
    }

    /// Frees the number of a controller.
    pub(crate) fn remove(&mut self, id: ControllerId) {
        self.free.push(id.0);
    }

    /// Number of controllers.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.table.len() - self.free.len()
    }

    /// A controller.
    ///
    /// # Panics
    /// If there has never been one of this number.
    pub(crate) fn get(&self, id: ControllerId) -> &Controller {
        &self.table[id.0 as usize]
    }

    /// Lends a controller for a call of a sender.
    ///
    /// # Panics
    /// If there has never been one of this number.
    #[inline]
    pub(crate) fn lend(&mut self, id: ControllerId) -> &mut Controller {
        &mut self.table[id.0 as usize]
    }
}
