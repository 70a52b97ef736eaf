//! Single events: drops, detected losses and pauses.

use super::Merge;
use clearway_fabric::topology::LinkId;
use clearway_fabric::{DropCause, Interests, Observer};
use clearway_results::{EventLog, TraceEvent, TraceRecord};
use clearway_transport::congestion::LossCause;
use clearway_transport::{Class, ClassSet, Event, Packet};
use clearway_units::{FlowId, HostId, Time};
use std::collections::BTreeMap;
use std::mem;

/// The entries with the smallest keys, independent of the order in which entries are added.
///
/// Events do not arrive in the order of time, neither within a domain nor across domains. Only a selection by time gives the same first
/// events for every partition and every number of threads.
#[derive(Debug, Clone)]
struct Earliest<T> {
    limit: usize,
    entries: Vec<T>,
    left_out: u64,
    key: fn(&T) -> (Time, u32),
}

impl<T> Earliest<T> {
    fn new(limit: usize, key: fn(&T) -> (Time, u32)) -> Self {
        Self {
            limit,
            entries: Vec::new(),
            left_out: 0,
            key,
        }
    }

    fn add(&mut self, entry: T) {
        self.entries.push(entry);
        // Sorting is cheap because it runs once per `limit` new entries.
        if self.entries.len() > 2 * self.limit {
            self.settle();
        }
    }

    /// Sorts the entries and drops entries beyond the limit. Entries with equal keys keep their order.
    fn settle(&mut self) {
        self.entries.sort_by_key(self.key);
        let surplus = self.entries.len().saturating_sub(self.limit);
        self.entries.truncate(self.limit);
        self.left_out += surplus as u64;
    }

    fn merge(&mut self, other: Self) {
        self.left_out += other.left_out;
        other.entries.into_iter().for_each(|entry| self.add(entry));
    }

    fn finish(mut self) -> (Vec<T>, u64) {
        self.settle();
        (self.entries, self.left_out)
    }
}

#[derive(Debug, Clone, Copy)]
struct Dropped {
    time: Time,
    link: LinkId,
    flow: FlowId,
}

#[derive(Debug, Clone, Copy)]
struct Lost {
    time: Time,
    flow: FlowId,
    packets: u32,
    cause: LossCause,
}

/// A pause with its beginning and end, so that a kept pause never lacks its end.
#[derive(Debug, Clone, Copy)]
struct Paused {
    begin: Time,
    /// End of the pause; `None` if it lasted until the end of the run.
    end: Option<Time>,
    link: LinkId,
    classes: ClassSet,
}

/// Records the first `limit` drops, detected losses and pauses of a run, and counts the rest.
#[derive(Debug, Clone)]
pub struct TraceEventRecorder {
    drops: Earliest<Dropped>,
    losses: Earliest<Lost>,
    pauses: Earliest<Paused>,
    /// Paused links, with the start of the pause and the paused classes.
    paused: BTreeMap<LinkId, (Time, ClassSet)>,
}

impl TraceEventRecorder {
    /// Keeps the first `limit` events of each kind. Until all domains are joined, each domain keeps up to twice that number, of 16 to 40
    /// bytes each.
    pub fn new(limit: usize) -> Self {
        // Entries with equal keys come from the same place, and therefore in order.
        Self {
            drops: Earliest::new(limit, |drop| (drop.time, drop.link.0)),
            losses: Earliest::new(limit, |loss| (loss.time, loss.flow.0)),
            pauses: Earliest::new(limit, |pause| (pause.begin, pause.link.0)),
            paused: BTreeMap::new(),
        }
    }

    /// The events of the run.
    pub fn finish(mut self) -> EventLog {
        for (link, (begin, classes)) in mem::take(&mut self.paused) {
            self.pauses.add(Paused {
                begin,
                end: None,
                link,
                classes,
            });
        }
        let (drops, more_drops) = self.drops.finish();
        let (losses, more_losses) = self.losses.finish();
        let (pauses, more_pauses) = self.pauses.finish();
        let drops = drops.into_iter().map(|drop| TraceRecord {
            time: drop.time,
            event: TraceEvent::Dropped {
                link: drop.link.0,
                flow: drop.flow.0,
            },
        });
        let losses = losses.into_iter().map(|loss| TraceRecord {
            time: loss.time,
            event: TraceEvent::LossDetected {
                flow: loss.flow.0,
                cause: loss.cause.words(),
                packets: loss.packets,
            },
        });
        let pauses = pauses.into_iter().flat_map(|pause| {
            let at = |time, classes| TraceRecord {
                time,
                event: TraceEvent::Pause {
                    link: pause.link.0,
                    classes,
                },
            };
            let end = pause.end.map(|end| at(end, 0));
            let begin = at(pause.begin, bits(pause.classes));
            [begin].into_iter().chain(end)
        });
        let mut records: Vec<TraceRecord> = drops.chain(losses).chain(pauses).collect();
        // The sort is stable because another pause may begin at the end of a pause, and already follows it.
        records.sort_by_key(|record| record.time);
        EventLog {
            records,
            left_out: more_drops + more_losses + more_pauses,
            dependencies: Vec::new(),
        }
    }
}

fn bits(set: ClassSet) -> u8 {
    let classes = (0..8).filter_map(Class::new);
    let held = classes.filter(|&class| set.contains(class));
    held.fold(0, |bits, class| bits | 1 << class.index())
}

impl Observer for TraceEventRecorder {
    fn interests(&self) -> Interests {
        Interests {
            transport: true,
            ..Interests::NONE
        }
    }

    fn on_drop(&mut self, now: Time, link: LinkId, packet: &Packet, _: DropCause) {
        self.drops.add(Dropped {
            time: now,
            link,
            flow: packet.flow,
        });
    }

    fn on_pause(&mut self, now: Time, link: LinkId, classes: ClassSet) {
        let before = self.paused.get(&link).copied();
        if before.is_some_and(|(_, held)| held == classes) {
            return;
        }
        if let Some((begin, held)) = before {
            self.pauses.add(Paused {
                begin,
                end: Some(now),
                link,
                classes: held,
            });
        }
        if classes.is_empty() {
            self.paused.remove(&link);
        } else {
            self.paused.insert(link, (now, classes));
        }
    }

    fn on_transport(&mut self, _: Time, _: HostId, event: &Event) {
        if let Event::Loss {
            flow,
            now,
            cause,
            packets,
        } = *event
        {
            self.losses.add(Lost {
                time: now,
                flow,
                packets,
                cause,
            });
        }
    }
}

impl Merge for TraceEventRecorder {
    /// Events of another domain. Each link and each sender belongs to only one domain.
    fn merge(&mut self, other: Self) {
        self.drops.merge(other.drops);
        self.losses.merge(other.losses);
        self.pauses.merge(other.pauses);
        self.paused.extend(other.paused);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::merge_all;
    use crate::{Assembly, Finished, Laboratory, RunOptions};
    use clearway_fabric::{RunDecision, Watch};
    use clearway_transport::Header;
    use clearway_units::Span;

    fn ns(ns: u64) -> Time {
        Time::ZERO + Span::from_ns(ns)
    }

    fn packet(flow: u32) -> Packet {
        Packet {
            stamp: Time::ZERO,
            flow: FlowId(flow),
            src: HostId(0),
            dst: HostId(1),
            header_hash: 0,
            size: 64,
            source_port: 0,
            class: Class::DATA,
            queue_pair: 0,
            ecn: false,
            via: 0,
            header: Header::Notification,
        }
    }

    fn classes(numbers: &[u8]) -> ClassSet {
        let mut set = ClassSet::EMPTY;
        for &number in numbers {
            set.insert(Class::new(number).unwrap());
        }
        set
    }

    #[test]
    fn the_first_by_time_are_kept_whatever_came_first() {
        // 40 drops at distinct times, scattered over three domains with separate links.
        let times: Vec<u64> = (0..40).map(|i| i * 7 % 40).collect();
        for limit in [0, 1, 5, 39, 40, 100] {
            let mut domains = vec![TraceEventRecorder::new(limit); 3];
            for (i, &time) in (0..).zip(&times) {
                let link = LinkId(i % 3);
                let domain = &mut domains[(i % 3) as usize];
                domain.on_drop(ns(time), link, &packet(i), DropCause::QueueFull);
            }
            let log = merge_all(domains).unwrap().finish();
            let kept: Vec<Time> = log.records.iter().map(|record| record.time).collect();
            let expected: Vec<Time> = (0..40).take(limit).map(ns).collect();
            assert_eq!(kept, expected);
            assert_eq!(log.left_out, 40 - kept.len() as u64);
        }
    }

    #[test]
    fn pauses_are_kept_from_beginning_to_end_or_not_at_all() {
        let mut recorder = TraceEventRecorder::new(3);
        let changes: [(u64, u32, &[u8]); 9] = [
            (10, 1, &[3]),
            (20, 1, &[3, 4]),
            (25, 1, &[3, 4]),
            (15, 2, &[3]),
            (30, 1, &[]),
            (40, 1, &[3]),
            (40, 1, &[]),
            (16, 2, &[]),
            (12, 0, &[]),
        ];
        for (time, link, held) in changes {
            recorder.on_pause(ns(time), LinkId(link), classes(held));
        }
        recorder.on_pause(ns(50), LinkId(3), classes(&[1]));
        let log = recorder.clone().finish();
        let words: Vec<(u64, u32, u8)> = log
            .records
            .iter()
            .map(|record| match record.event {
                TraceEvent::Pause { link, classes } => (record.time.as_ps() / 1000, link, classes),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(
            words,
            [
                (10, 1, 0b1000),
                (15, 2, 0b1000),
                (16, 2, 0),
                (20, 1, 0),
                (20, 1, 0b11000),
                (30, 1, 0)
            ]
        );
        assert_eq!(log.left_out, 2, "that at 40 and that at 50");
    }

    fn run(threads: usize, overrides: &[&str]) -> (Finished, EventLog) {
        let overrides: Vec<String> = overrides.iter().map(ToString::to_string).collect();
        let scenario = Laboratory::new().read("test", "", None, &overrides);
        let assembly = Assembly::new(&scenario.unwrap()).unwrap();
        let options = RunOptions {
            threads: threads.into(),
            on_progress: &mut |_| RunDecision::Continue,
            on_flow: &mut |_, _, _| (),
        };
        let mut observers = assembly.per_domain(|| TraceEventRecorder::new(1 << 20));
        let finished = assembly.run(options, Watch::by(&mut observers));
        (finished, merge_all(observers).unwrap().finish())
    }

    const FABRIC: [&str; 5] = [
        "topology.kind=leaf-spine",
        "topology.hosts=16",
        "topology.hosts-per-leaf=4",
        "workload.kind=incast",
        "workload.senders=12",
    ];

    #[test]
    fn losses_of_a_run_are_those_that_it_counts() {
        let settings: Vec<&str> = FABRIC
            .into_iter()
            .chain(["switch.queue=41600B", "workload.message=400KB"])
            .collect();
        let (finished, log) = run(1, &settings);
        assert_eq!(run(3, &settings).1, log, "threads change nothing");
        assert!(log.records.is_sorted_by_key(|record| record.time));
        assert_eq!(log.left_out, 0);
        let (mut drops, mut lost) = (0, 0);
        for record in &log.records {
            match record.event {
                TraceEvent::Dropped { .. } => drops += 1,
                TraceEvent::LossDetected { packets, .. } => lost += u64::from(packets),
                TraceEvent::Pause { .. } => panic!("nothing pauses here"),
            }
        }
        assert!(drops > 0);
        assert_eq!(drops, finished.links.dropped);
        let endpoints = &finished.endpoints;
        assert_eq!(
            lost,
            endpoints.lost_out_of_order
                + endpoints.lost_probe
                + endpoints.lost_timeout
                + endpoints.lost_go_back
        );
    }

    #[test]
    fn pauses_of_a_run_are_those_that_it_counts() {
        let settings: Vec<&str> = FABRIC
            .into_iter()
            .chain(["switch.kind=shared-buffer", "transport.kind=rocev2"])
            .chain(["transport.controller=constant", "workload.message=1MB"])
            .collect();
        let (finished, log) = run(2, &settings);
        let mut totals: BTreeMap<LinkId, (u64, Span)> = BTreeMap::new();
        let mut open: BTreeMap<LinkId, Time> = BTreeMap::new();
        for record in &log.records {
            let TraceEvent::Pause { link, classes } = record.event else {
                continue;
            };
            let link = LinkId(link);
            if classes == 0 {
                let (pauses, time) = totals.entry(link).or_default();
                *pauses += 1;
                *time += record.time - open.remove(&link).unwrap();
            } else {
                assert_eq!(open.insert(link, record.time), None);
            }
        }
        assert!(open.is_empty() && !totals.is_empty());
        let counted = finished
            .pauses
            .iter()
            .map(|link| (link.link, (link.pauses, link.time)));
        assert_eq!(totals, counted.collect());
    }
}
