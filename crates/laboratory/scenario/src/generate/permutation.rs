//! Every host sends to one other host and receives from one other host.

use super::{BuildContext, Bursts, LoadedWorkload, WorkloadDefinition, chosen_hosts, some_bytes};
use clearway_units::{Bytes, HostId, OmitDefaults, RandomStream, Time, parameters};
use clearway_workload::{FlowSpec, Workload, WorkloadError};

parameters! {
    /// A random permutation of the hosts without fixed points: each host sends one message and receives one.
    pub struct PermutationSettings {
        /// Payload of each message.
        pub message: Bytes = Bytes::new(2_000_000), "message", "the 2 MB messages usual with htsim";
        /// Start of all messages, or of the first burst.
        pub start: Time = Time::ZERO, "start", "all at once is the hardest case";
        /// Number of hosts that take part, from host 0 on; "auto": all.
        pub hosts: Option<u32> = None, "hosts", "all hosts";
        with {
            /// Repetition.
            pub bursts: OmitDefaults<Bursts>,
        }
    }
}

impl WorkloadDefinition for PermutationSettings {
    const NAME: &'static str = "permutation";
    const SUMMARY: &'static str = "every host sends to one random host and receives from one";

    fn load(&self, context: &BuildContext<'_>) -> Result<LoadedWorkload, WorkloadError> {
        let hosts = chosen_hosts::<Self>("hosts", self.hosts, context)?;
        if hosts < 2 {
            let message = "a permutation without fixed points needs at least 2 hosts";
            return Err(Self::fault("hosts", message, "take 2 hosts or more"));
        }
        let message = some_bytes::<Self>(self.message)?;
        self.bursts.check::<Self>(self.start, hosts)?;
        let mut receivers = derangement(hosts, &mut context.random());
        let mut flows = Vec::new();
        for mut burst in self.bursts.each(self.start, context) {
            if self.bursts.redraw && burst.number > 0 {
                receivers = derangement(hosts, &mut burst.random);
            }
            let label = burst.first_label(hosts);
            flows.extend((0u32..).zip(&receivers).map(|(src, &dst)| {
                let label = label + u64::from(src);
                FlowSpec::timed(label, HostId(src), HostId(dst), message, burst.start)
            }));
        }
        let workload = Workload {
            flows,
            triggers: Vec::new(),
        };
        Ok(LoadedWorkload {
            setting_warnings: self.bursts.warnings("permutation", true),
            ..workload.into()
        })
    }
}

/// Random permutation of `0..n` without fixed points, uniform over all such permutations.
///
/// Shuffles until no number stays in place. Each shuffle is uniform over all permutations, so the first shuffle without fixed points is
/// uniform over all permutations without fixed points. These are about 1/e of all permutations for any `n`, so 2.7 shuffles are expected.
/// (Sattolo's algorithm takes a single pass but yields only permutations of one cycle: 6 of the 9 for 4 hosts.)
///
/// # Panics
/// If `n` is 1: then every permutation has a fixed point.
pub fn derangement(n: u32, random: &mut RandomStream) -> Vec<u32> {
    assert!(n != 1, "one number has nowhere to go");
    let mut items: Vec<u32> = (0..n).collect();
    loop {
        random.shuffle(&mut items);
        if (0..).zip(&items).all(|(place, &item)| place != item) {
            return items;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clearway_units::Purpose;
    use std::collections::BTreeMap;

    #[test]
    fn derangements_of_four_are_uniform() {
        const DRAWS: u32 = 90_000;
        let mut random = RandomStream::new(1, Purpose::Test, 0);
        let mut counts: BTreeMap<Vec<u32>, u32> = BTreeMap::new();
        for _ in 0..DRAWS {
            *counts.entry(derangement(4, &mut random)).or_default() += 1;
        }
        assert_eq!(counts.len(), 9, "{counts:?}");
        let expected = f64::from(DRAWS) / 9.0;
        let chi_square: f64 = counts
            .values()
            .map(|&count| (f64::from(count) - expected) * (f64::from(count) - expected) / expected)
            .sum();
        // 8 degrees of freedom: 26.1 is exceeded once in a thousand.
        assert!(chi_square < 26.1, "{chi_square} {counts:?}");
    }

    #[test]
    fn derangements_move_every_number() {
        for n in [0, 2, 3, 5, 1000] {
            let mut items = derangement(n, &mut RandomStream::new(7, Purpose::Test, n.into()));
            assert!((0..).zip(&items).all(|(place, &item)| place != item));
            items.sort_unstable();
            assert_eq!(items, (0..n).collect::<Vec<_>>());
        }
    }
}
