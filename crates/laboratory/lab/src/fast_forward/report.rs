//! Report on what a run simulated and what it remembered.

use super::calls::{Accounts, Snapshot};
use super::kinds::Kinds;
use super::limits::{SHARE_OF_ERROR, Wish};
use super::samples::SampleKey;
use super::skips::SkippedTime;
use clearway_units::{Bytes, Time};

/// What a run simulated and what it remembered.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct FastForwardReport {
    /// The wanted error, as a fraction.
    pub wanted: f64,
    /// Estimated error of the simulated time, as a fraction: the spread of samples and what checks found, for each family of calls, and the
    /// difference that another seed makes to simulated calls, added up as independent errors are; half of the time that void calls spent
    /// beside remembered ones; and half of the wanted error for what no sample shows, if anything is remembered.
    pub estimated: f64,
    /// Calls by sort.
    pub calls: Vec<RememberedCalls>,
    /// Number of simulated calls that were compared with what is remembered.
    pub verified: u64,
    /// Largest difference of the mean transfer time of a verified call from the remembered mean, as a fraction; zero without one.
    pub found: f64,
    /// Bytes of messages with packets.
    pub simulated_bytes: Bytes,
    /// Bytes of messages without packets.
    pub remembered_bytes: Bytes,
    /// Skipped time, in which long flows were steady.
    pub skipped: SkippedTime,
    /// Reason why no time may be skipped, apart from remembered calls.
    pub no_skips: Option<&'static str>,
    /// Jobs that are simulated as a whole, with the reason.
    pub declined_jobs: Vec<(String, &'static str)>,
}

/// Calls of a sort: with as many ranks, messages and bytes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RememberedCalls {
    /// Ranks of a call.
    pub ranks: u32,
    /// Messages of a call.
    pub messages: u32,
    /// Bytes of a call.
    pub bytes: Bytes,
    /// Different calls of this sort: of other ranks, or of messages in another order.
    pub kinds: u32,
    /// Kinds whose transfer times do not agree. They are remembered only as far as the run as a whole stays within the error.
    pub declined: u32,
    /// Simulated calls.
    pub simulated: u64,
    /// Remembered calls.
    pub remembered: u64,
    /// Simulated calls that were beside remembered ones, whose packets were missing.
    pub void: u64,
}

impl FastForwardReport {
    /// Report on the calls of a run that has simulated this time.
    pub(super) fn of_calls(
        (kinds, accounts, snapshot): (&Kinds, &Accounts, &Snapshot),
        (wish, simulated): (&Wish, Time),
    ) -> Self {
        let mut calls: Vec<RememberedCalls> = Vec::new();
        for (sort, counts) in kinds.sorts.iter().zip(&accounts.sorts) {
            calls.push(RememberedCalls {
                ranks: sort.ranks,
                messages: sort.messages,
                bytes: sort.bytes,
                simulated: counts.simulated,
                remembered: counts.remembered,
                void: counts.void,
                ..RememberedCalls::default()
            });
        }
        let disagreeing = snapshot.samples.iter().filter(|(_, own)| own.disagree());
        let disagreeing: Vec<SampleKey> = disagreeing.map(|(key, _)| *key).collect();
        for (id, kind) in (0..).zip(&kinds.all) {
            let sort = &mut calls[kind.sort as usize];
            sort.kinds += 1;
            let mut keys = disagreeing.iter();
            sort.declined += u32::from(keys.any(|key| kinds.key(id, key.0) == *key));
        }
        let are_remembered = accounts.remembered_bytes > Bytes::ZERO;
        let squares = snapshot.errors.iter().map(|error| error * error);
        // Half of the time that void calls spent beside remembered ones: they may have lost half of their bandwidth.
        let counts = calls.iter().map(|sort| f64::from(sort.kinds.max(1)));
        let shadows = accounts.sorts.iter().zip(counts);
        let shadows = shadows.map(|(counts, kinds)| counts.shadow.as_ps() as f64 / kinds / 2.0);
        let simulated = (simulated.as_ps() as f64).max(1.0);
        // Calls of a family that are under way together may add up to more than the run.
        let chances = snapshot.samples.values().map(|own| own.chance().powi(2));
        let squares: f64 = match are_remembered {
            true => squares.chain(chances).sum(),
            false => 0.0,
        };
        let errors = squares.sqrt() + shadows.sum::<f64>();
        let errors = (errors / simulated).min(1.0);
        // What no sample shows: calls that overlap in another way, and paths through the program.
        let unseen = match are_remembered {
            true => wish.error * (1.0 - SHARE_OF_ERROR),
            false => 0.0,
        };
        Self {
            wanted: wish.error,
            estimated: errors + unseen,
            calls,
            verified: accounts.verified,
            found: accounts.found,
            simulated_bytes: accounts.simulated_bytes,
            remembered_bytes: accounts.remembered_bytes,
            skipped: SkippedTime::default(),
            no_skips: None,
            declined_jobs: Vec::new(),
        }
    }

    /// The report, with the jobs that are simulated as a whole.
    pub(super) fn declining(self, declined_jobs: Vec<(String, &'static str)>) -> Self {
        Self {
            declined_jobs,
            ..self
        }
    }

    /// Adds what was skipped in a run of this length, with the error in picoseconds that it may have caused; half of the wanted error comes
    /// on top.
    pub(crate) fn add_skips(
        &mut self,
        (skipped, error): (SkippedTime, f64),
        (bytes, simulated): (Bytes, Time),
    ) {
        let share = |part: u64, all: u64| part as f64 / all.max(1) as f64;
        self.skipped = SkippedTime {
            shares: (
                share(skipped.bytes.as_u64(), bytes.as_u64()),
                share(skipped.time.as_ps(), simulated.as_ps()),
            ),
            ..skipped
        };
        if skipped.stretches > 0 {
            let unseen = self.wanted * (1.0 - SHARE_OF_ERROR);
            self.estimated += error / (simulated.as_ps() as f64).max(1.0) + unseen;
        }
    }

    /// Part of the bytes that took no packets.
    pub fn remembered_share(&self) -> f64 {
        let all = (self.simulated_bytes + self.remembered_bytes).as_u64();
        self.remembered_bytes.as_u64() as f64 / all.max(1) as f64
    }
}
