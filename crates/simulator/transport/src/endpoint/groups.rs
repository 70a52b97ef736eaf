//! Queue pairs of one enforcement scope: they have one controller, or divide the allowances of their controllers.
//!
//! A group keeps the sums over its queue pairs. After each call of one of them the endpoint settles: it takes the new sums, and passes them
//! on to the others with the controller's new allowance, so that each of them is as ready to send as it should be. Where they share rate
//! and window, a [gate](super::candidates::Gate) does that for all of them at once. Else it takes time in proportion to the queue pairs of
//! the group, and is done where it changes their limits: in a destination when the allowance changes, at a host when the number of busy
//! queue pairs has changed by a 64th. It takes none where each queue pair is alone.

use super::candidates::Gate;
use super::controllers::ControllerId;
use super::reliability_scheme::{Rules, Sender};
use crate::congestion::scope::{Account, GroupKey, Others, Scope, ScopeParameters};
use crate::congestion::{Allowance, CongestionControl, Controller, NetworkFacts};
use crate::endpoint::flow::Pacer;
use clearway_units::Time;
use rustc_hash::FxHashMap;

/// Number of a group in its endpoint.
pub(super) type GroupId = u32;

/// The groups of an endpoint.
pub(super) struct Groups {
    pub(super) parameters: ScopeParameters,
    by_key: FxHashMap<GroupKey, GroupId>,
    pub(super) groups: Vec<Group>,
}

/// A shared controller, and the inputs to make it anew.
pub(super) struct SharedController {
    pub(super) id: ControllerId,
    pub(super) variant: u16,
    pub(super) network: NetworkFacts,
    /// Number of its random stream.
    pub(super) entity: u64,
}

/// The queue pairs of one scope.
pub(super) struct Group {
    /// The controller of all; none if each has its own.
    pub(super) controller: Option<SharedController>,
    /// Slots of the queue pairs, in the order of their opening.
    pub(super) members: Vec<u32>,
    /// Sums over all queue pairs, closed ones included.
    pub(super) total: Account,
    /// Pacing of all, where they share it.
    pub(super) pacer: Pacer,
    /// Values that the queue pairs were last told.
    pub(super) told: Option<(Account, Pacer, Allowance, Time)>,
    /// Number of queue pairs that have something to send or to be acknowledged.
    pub(super) busy: usize,
    /// Number of busy queue pairs that all were last told.
    busy_told: usize,
    /// The last time at which one of them did something.
    pub(super) last: Time,
    /// Condition under which they send, where they share one.
    pub(super) gate: Gate,
}

impl Group {
    fn new(controller: Option<SharedController>) -> Self {
        Self {
            controller,
            members: Vec::new(),
            total: Account::default(),
            pacer: Pacer::default(),
            told: None,
            busy: 0,
            busy_told: 0,
            last: Time::ZERO,
            gate: Gate::new(),
        }
    }

    /// True if the values that the queue pairs are to be told have changed; they then count as told. `with_sums` says whether these include
    /// the others' sums: queue pairs that share only the state of their controller may not send more or less for these sums, and hear of
    /// them when they are called.
    pub(super) fn tells(&mut self, controller: &Controller, with_sums: bool) -> bool {
        let (total, pacer) = match with_sums {
            true => (self.total, self.pacer),
            false => Default::default(),
        };
        let told = (total, pacer, controller.allowance(), controller.deadline());
        self.told.replace(told) != Some(told)
    }

    /// Tells a sender of the others' sums and of its controller's allowance.
    pub(super) fn tell(
        &self,
        sender: &mut Sender,
        scope: Scope,
        controller: &Controller,
        rules: &Rules,
    ) {
        let others = self.others(sender.account(), scope);
        let shared = sender.shared();
        *shared.others = others;
        if scope.shares_allowance() {
            *shared.pacer = self.pacer;
        }
        sender.take_allowance(controller, rules);
    }

    /// True if the number of busy queue pairs has changed by a 64th or more since all were told; they are told now. A queue pair that
    /// is called hears of every change, so that shares are never further from the truth than that.
    pub(super) fn tells_busy(&mut self) -> bool {
        let tells = self.busy.abs_diff(self.busy_told) * 64 >= self.busy_told.max(1);
        if tells {
            self.busy_told = self.busy;
        }
        tells
    }

    /// The part of its own controller's allowance that a queue pair may use.
    fn share(&self) -> f64 {
        1.0 / self.busy.max(1) as f64
    }

    /// Knowledge of the others for a sender with the account `own`.
    pub(super) fn others(&self, own: Account, scope: Scope) -> Others {
        if !scope.shares_controller() {
            return Others {
                share: self.share(),
                ..Others::NONE
            };
        }
        let account = self.total.without(own);
        let shares = scope.shares_allowance();
        Others {
            account,
            in_window: if shares { account.in_flight } else { 0 },
            share: 1.0,
        }
    }

    /// Takes the sums as `sender` has left them, which was `busy` before. Returns true if the number of busy queue pairs has changed.
    pub(super) fn take(
        &mut self,
        now: Time,
        sender: &mut Sender,
        was_busy: &mut bool,
        scope: Scope,
    ) -> bool {
        let (own, busy) = (sender.account(), sender.is_busy());
        let shared = sender.shared();
        if scope.shares_controller() {
            self.total = shared.others.account.with(own);
        }
        self.pacer = *shared.pacer;
        self.last = now;
        let changed = busy != *was_busy;
        if changed {
            *was_busy = busy;
            self.busy = self.busy + usize::from(busy) - usize::from(!busy);
        }
        changed
    }
}

impl Groups {
    /// Creates the groups of an endpoint; `None` if each queue pair is alone.
    pub(super) fn new(parameters: &ScopeParameters) -> Option<Box<Self>> {
        (parameters.scope != Scope::QueuePair).then(|| {
            Box::new(Self {
                parameters: parameters.clone(),
                by_key: FxHashMap::default(),
                groups: Vec::new(),
            })
        })
    }

    pub(super) fn scope(&self) -> Scope {
        self.parameters.scope
    }

    /// The group with a key; creates it with `controller` if it does not exist.
    pub(super) fn find(
        &mut self,
        key: GroupKey,
        controller: impl FnOnce() -> Option<SharedController>,
    ) -> GroupId {
        *self.by_key.entry(key).or_insert_with(|| {
            self.groups.push(Group::new(controller()));
            self.groups.len() as GroupId - 1
        })
    }
}

#[cfg(test)]
mod tests;
