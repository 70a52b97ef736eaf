//! A switch with its hosts, which one thread runs in a round.

use crate::command::{Command, Report};
use crate::flow::Flow;
use crate::host::{Context, Host};
use crate::link::{Arrival, LinkCounters, Sinks};
use crate::meter::LinkView;
use crate::observer::Observation;
use crate::path_table::PathTable;
use crate::switch::{Scratch, Switch};
use clearway_engine::{BufferPool, Domain, DomainHorizon, Round};
use clearway_prefetch::prefetch;
use clearway_transport::OpenFlow;
use clearway_transport::congestion::telemetry::Telemetry;
use clearway_units::{HostId, Span, Time};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The mailbox of an inlet is loaded into the caches so many inlets before.
const INLETS_AHEAD: usize = 4;
/// So many links that carry something in a round, and the ports and hosts at their ends, are more than the caches nearest to a processor
/// hold. With fewer, loading them costs more than it saves.
const MANY_INLETS: usize = 1500;

pub(crate) struct FabricDomain<O, T> {
    /// Flow table, for programs that post on flows and reactions that start them.
    pub(crate) flows: Arc<[Flow]>,
    /// The transport of each flow, listed or not; empty where there is one.
    pub(crate) transports: Arc<[u8]>,
    pub(crate) path_table: Arc<PathTable>,
    /// The hosts on this switch, inlets `0..hosts.len()` of the domain.
    pub(crate) hosts: Vec<Host<T>>,
    /// The next event of each host: looked at in every round, so it stands apart from the large hosts.
    pub(crate) host_next: Vec<Time>,
    pub(crate) switch: Switch<T>,
    pub(crate) counters: LinkCounters,
    pub(crate) observer: O,
    /// Domains of the run.
    pub(crate) domains: usize,
    /// Packet-hops of the whole run, for progress displays.
    pub(crate) hops: Arc<AtomicU64>,
}

/// Buffers that a thread lends to each domain that it runs.
#[derive(Debug)]
pub(crate) struct Workbench<T> {
    buffers: BufferPool<Arrival<T>>,
    scratch: Scratch,
}

impl<T> Default for Workbench<T> {
    fn default() -> Self {
        Self {
            buffers: BufferPool::default(),
            scratch: Scratch::default(),
        }
    }
}

impl<O: Observation, T: Telemetry> FabricDomain<O, T> {
    fn collect(
        &mut self,
        round: &Round,
        incoming: &[u32],
        buffers: &mut BufferPool<Arrival<T>>,
        prefetches: bool,
    ) {
        let hosts = self.hosts.len();
        for (place, &inlet) in incoming.iter().enumerate() {
            if prefetches && let Some(&later) = incoming.get(place + INLETS_AHEAD) {
                match (later as usize).checked_sub(hosts) {
                    None => self.hosts[later as usize].prefetch_mailbox(),
                    Some(port) => self.switch.prefetch_mailbox(port),
                }
            }
            let inlet = inlet as usize;
            if inlet < hosts {
                let arrival = self.hosts[inlet].collect(round, buffers);
                self.host_next[inlet] = self.host_next[inlet].min(arrival);
            } else {
                self.switch
                    .collect(inlet - hosts, round, buffers, prefetches);
            }
        }
    }

    /// The domain and its first event, as the engine wants them.
    pub(crate) fn with_first_event(self) -> (Self, Time) {
        let hosts = self.host_next.iter().copied();
        let first = hosts.fold(self.switch.next(), Time::min);
        (self, first)
    }

    /// Packets in queues, and packets and pause frames on wires towards nodes of this domain.
    pub(crate) fn in_network(&self) -> u64 {
        let wires: u64 = self.hosts.iter().map(Host::on_the_wire).sum();
        wires + self.switch.queued() + self.switch.on_the_wire()
    }

    /// Shows each link that begins here, as it is at `now`.
    pub(crate) fn for_each_link(&mut self, now: Time, look: &mut dyn FnMut(LinkView<'_>)) {
        self.switch.for_each_link(now, &mut *look);
        for host in &mut self.hosts {
            look(host.link_view(now));
        }
    }

    /// The next event here that waits for the clock and not for a packet.
    pub(crate) fn next_by_the_clock(&self) -> Time {
        let hosts = self.hosts.iter().map(Host::next_by_the_clock);
        hosts.min().unwrap_or(Time::NEVER)
    }

    /// The run skips time, and queue pairs skip as many packets as `packets` says.
    pub(crate) fn skip(&mut self, time: Span, packets: &mut dyn FnMut(&OpenFlow<'_>) -> u64) {
        for (host, next) in self.hosts.iter_mut().zip(&mut self.host_next) {
            host.skip_packets(packets);
            host.skip(time);
            *next = (*next).min(host.next_by_the_clock());
        }
    }

    /// A host has something to do at `at`.
    fn wake(&mut self, index: usize, at: Time) -> Time {
        self.host_next[index] = self.host_next[index].min(at);
        at
    }

    fn host_index(&self, host: HostId) -> usize {
        let position = self.hosts.iter().position(|at| at.id() == host);
        position.expect("commands go to the domain of the host")
    }
}

/// Loads parts of the hosts that come next into the caches: first the host, then what it points to, then what its flows point to.
#[inline]
fn prefetch_hosts<T: Telemetry>(next: &[Time], hosts: &[Host<T>], round: &Round) {
    let is_due = |place: usize| next.get(place).is_some_and(|next| *next < round.end());
    if is_due(0) {
        hosts[0].prefetch_flows();
    }
    if is_due(1) {
        hosts[1].prefetch_contents();
    }
    if is_due(2) {
        prefetch(&hosts[2]);
    }
}

impl<O: Observation, T: Telemetry> Domain for FabricDomain<O, T> {
    type Report = Report;
    type Command = Command;
    type Workbench = Workbench<T>;

    fn run(
        &mut self,
        round: &Round,
        incoming: &[u32],
        reports: &mut Vec<Report>,
        bench: &mut Workbench<T>,
    ) -> DomainHorizon {
        // An estimate: as if all domains had as much to do. Builds with assertions always load memory early, so that tests do.
        let prefetches = cfg!(debug_assertions) || incoming.len() * self.domains >= MANY_INLETS;
        bench.scratch.prefetches = prefetches;
        self.collect(round, incoming, &mut bench.buffers, prefetches);
        let hops = self.counters.hops;
        let mut outlook = DomainHorizon {
            next: Time::NEVER,
            sent: Time::NEVER,
        };
        let sinks = Sinks {
            counters: &mut self.counters,
            buffers: &mut bench.buffers,
            observer: &mut self.observer,
        };
        let mut context = Context {
            flows: &self.flows,
            transports: &self.transports,
            path_table: &self.path_table,
            sinks,
            reports,
        };
        let (mut nexts, mut hosts) = (&mut self.host_next[..], &mut self.hosts[..]);
        while let ([next, later @ ..], [host, later_hosts @ ..]) = (nexts, hosts) {
            if prefetches {
                prefetch_hosts(later, later_hosts, round);
            }
            if *next < round.end() {
                let ahead = host.run(round, &mut context);
                *next = ahead.next;
                outlook.sent = outlook.sent.min(ahead.sent);
            }
            outlook.next = outlook.next.min(*next);
            (nexts, hosts) = (later, later_hosts);
        }
        if self.switch.next() < round.end() {
            let ahead = self
                .switch
                .run(round, &mut bench.scratch, &mut context.sinks);
            outlook.sent = outlook.sent.min(ahead.sent);
        }
        outlook.next = outlook.next.min(self.switch.next());
        self.hops
            .fetch_add(self.counters.hops - hops, Ordering::Relaxed);
        outlook
    }

    fn accept(&mut self, command: Command) -> Time {
        match command {
            Command::Start(order) => {
                let index = self.host_index(order.flow.src);
                self.hosts[index].schedule(order);
                self.wake(index, order.at)
            }
            Command::Delivery { at, to, delivery } => {
                let index = self.host_index(to);
                self.hosts[index].deliver(at, delivery);
                self.wake(index, at)
            }
            Command::Wake => {
                let hosts = self.host_next.iter().copied();
                hosts.min().unwrap_or(Time::NEVER)
            }
        }
    }
}
