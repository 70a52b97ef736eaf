//! A run: a fabric put together, run on threads, accounted for.

use crate::channel::{CHANNELS, LANES};
use crate::domain::{SwitchDomain, UnderWay, instant};
use crate::gpu::Gpu;
use crate::injection::{InjectionControl, InjectionFacts, InjectionGauges, Membership};
use crate::plan::{Place, Plan};
use crate::program::Program;
use crate::record::{LinkTotals, OperationRecord};
use crate::switch::Switch;
use crate::tree::Groups;
use crate::wiring::Message;
use crate::{Configuration, Cycle, GroupId, Target, Tree};
use clearway_engine::{
    Conductor, Domains, Engine, Inlet, MailboxBuilder, Outlet, Round, RunDecision, StopReason,
    Threads,
};
use clearway_units::{Digest, HostId, Span, Time};
use std::sync::Arc;

/// Task of a run.
pub struct Setup<'a> {
    /// Settings of switches, links and GPUs.
    pub configuration: Configuration,
    /// The network.
    pub tree: Tree,
    /// Members of each group.
    pub groups: Vec<Vec<HostId>>,
    /// Seed of the run.
    pub seed: u64,
    /// Makes the injection control of a GPU.
    pub control: &'a dyn Fn(&InjectionFacts<'_>) -> Box<dyn InjectionControl>,
    /// The program of each GPU.
    pub programs: Vec<Box<dyn Program>>,
}

/// Conditions of a run that have no effect on results.
#[derive(Debug, Clone, Copy)]
pub struct RunLimits {
    /// Threads.
    pub threads: Threads,
    /// Cycle before which the run ends, even with work left: nothing happens in it or later.
    pub at_most: Option<Cycle>,
}

/// State of a run between two rounds, for those who watch.
#[derive(Debug)]
pub struct RoundState<'a, 'b> {
    domains: &'a Domains<'b, SwitchDomain>,
    /// The cycle that comes next.
    pub now: Cycle,
}

/// Sees a run between rounds.
pub trait Watcher {
    /// Called between rounds, at cycles that do not depend on threads. False stops the run.
    fn on_round(&mut self, watched: &RoundState<'_, '_>) -> bool;
}

/// State of a GPU between two rounds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GpuGauges {
    /// Injection control of the GPU.
    pub injection: InjectionGauges,
    /// Requests that wait for injection.
    pub requests: usize,
    /// Responses that wait for injection.
    pub responses: usize,
    /// Flits sent so far.
    pub flits_sent: u64,
}

/// State of a switch between two rounds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SwitchGauges {
    /// Entries of its reduction table in use.
    pub entries: u32,
    /// Flits in the output queues of each port: responses, requests.
    pub queues: Vec<[u32; 2]>,
    /// Flits sent through each port so far.
    pub flits_sent: Vec<u64>,
}

impl RoundState<'_, '_> {
    /// Shows each GPU, in order.
    pub fn gpus(&self, mut look: impl FnMut(HostId, GpuGauges)) {
        let mut id = 0;
        self.domains.for_each(|domain| {
            for gpu in &mut domain.gpus {
                let [requests, responses] = gpu.waiting();
                let gauges = GpuGauges {
                    injection: gpu.gauges(self.now),
                    requests,
                    responses,
                    flits_sent: gpu.counters.flits_sent,
                };
                look(HostId(id), gauges);
                id += 1;
            }
        });
    }

    /// Shows each switch, leaves first.
    pub fn switches(&self, mut look: impl FnMut(u32, SwitchGauges)) {
        let mut number = 0;
        self.domains.for_each(|domain| {
            look(
                number,
                SwitchGauges {
                    entries: domain.switch.entries(),
                    queues: domain.switch.queues().collect(),
                    flits_sent: domain.switch.flits_sent().collect(),
                },
            );
            number += 1;
        });
    }

    /// Operations completed so far, and flits carried over links.
    pub fn progress(&self) -> (u64, u64) {
        let (mut operations, mut flit_hops) = (0, 0);
        self.domains.for_each(|domain| {
            operations += domain.records.len() as u64;
            flit_hops += domain.switch.counters().flit_hops;
        });
        (operations, flit_hops)
    }
}

/// A run that is over.
#[derive(Debug, Clone, PartialEq)]
pub struct Finished {
    /// Completed operations, by GPU and number.
    pub operations: Vec<OperationRecord>,
    /// Operations posted and not completed.
    pub unfinished: u64,
    /// True if all programs are over. If not, and the run was not stopped, they wait for events that never came.
    pub is_over: bool,
    /// True if the run was stopped before all programs were over and all operations complete.
    pub is_stopped: bool,
    /// Cycles from the first injection to the end.
    pub cycles: Cycle,
    /// Cycle of the last response, or at which the run was stopped.
    pub end: Cycle,
    /// Flits that GPUs received, each response counted as often as GPUs answered.
    pub effective_flits: u64,
    /// Number of GPUs.
    pub gpus: u32,
    /// Packets over links.
    pub packet_hops: u64,
    /// Flits over links.
    pub flit_hops: u64,
    /// Most entries of a reduction table in use at once.
    pub peak_entries: u32,
    /// Mean entries in use of a switch over the time of the run.
    pub mean_entries: f64,
    /// Requests that waited for an entry.
    pub waits_for_entries: u64,
    /// Longest output queue of a channel, in flits.
    pub peak_queue: u32,
    /// Work of each link: links out of the ports of each switch, leaves first, then links out of GPUs.
    pub links: Vec<LinkTotals>,
    /// Most responses that waited for injection at a GPU.
    pub peak_responses: usize,
    /// Hash over completed operations.
    pub digest: Digest,
    /// Number of threads in the end.
    pub threads: usize,
    /// Fault in the accounts of the run, if there is one.
    pub fault: Option<String>,
}

impl Finished {
    /// Effective flits for each GPU and cycle (§6.1.4).
    pub fn effective_bandwidth(&self) -> f64 {
        match self.cycles {
            0 => 0.0,
            cycles => self.effective_flits as f64 / (f64::from(self.gpus) * cycles as f64),
        }
    }
}

/// A fabric that is ready to run.
#[derive(Debug)]
pub struct Simulation {
    plan: Arc<Plan>,
    domains: Vec<SwitchDomain>,
    mailroom: MailboxBuilder,
}

impl Simulation {
    /// Puts a fabric together.
    ///
    /// # Errors
    /// The key of a setting that cannot be, and the reason.
    ///
    /// # Panics
    /// If there is not one program for each GPU, or a group is empty, not in ascending order or has a GPU that does not exist.
    pub fn new(setup: Setup<'_>) -> Result<Self, (&'static str, String)> {
        let Setup {
            configuration,
            tree,
            groups,
            seed,
            control,
            programs,
        } = setup;
        configuration.check()?;
        tree.check()?;
        assert_eq!(programs.len(), tree.gpus as usize, "a program for each GPU");
        for members in &groups {
            assert!(
                members.is_sorted_by(|a, b| a < b),
                "members in ascending order"
            );
            assert!(
                members.last().is_some_and(|last| last.0 < tree.gpus),
                "members are GPUs"
            );
        }
        let groups = Groups::new(groups, &tree);
        let plan = Arc::new(Plan::new(configuration, tree, groups));
        let gpu = |(id, program): (usize, Box<dyn Program>)| {
            let id = HostId(id as u32);
            let memberships = memberships(&plan.groups, id);
            let control = control(&InjectionFacts {
                gpu: id,
                seed,
                memberships: &memberships,
                sizes: plan.configuration.sizes(),
            });
            Gpu::new(Arc::clone(&plan), id, program, control)
        };
        let gpus: Vec<Gpu> = programs.into_iter().enumerate().map(gpu).collect();
        let (domains, mailroom) = wire(&plan, gpus);
        Ok(Self {
            plan,
            domains,
            mailroom,
        })
    }

    /// Runs until nothing is left to happen, or to the limit.
    pub fn run(self, limits: RunLimits, watcher: Option<&mut dyn Watcher>) -> Finished {
        let cycle = self.plan.configuration.cycle;
        let lookahead = Span::from_ps(u64::from(self.plan.configuration.latency) * cycle.as_ps());
        let end = limits.at_most.unwrap_or(Cycle::MAX);
        let domains = self.domains.into_iter().map(|mut domain| {
            let first = domain.start(end);
            (domain, first)
        });
        let domains = domains.collect();
        let engine = Engine::new(
            lookahead,
            limits.threads,
            domains,
            self.mailroom.into_mailrooms(),
        );
        let mut leader = Leader {
            cycle,
            end,
            now: 0,
            watcher,
        };
        let concluded = engine.run(&mut leader);
        let stopped_at = (concluded.ending == StopReason::Stopped).then_some(leader.now.min(end));
        Finished {
            threads: concluded.threads,
            ..account(&self.plan, concluded.domains, stopped_at)
        }
    }
}

fn memberships(groups: &Groups, gpu: HostId) -> Vec<Membership> {
    let membership = |(group, members): (GroupId, &[HostId])| {
        let rank = groups.rank(group, gpu)?;
        Some(Membership {
            group,
            members: members.len() as u32,
            rank,
        })
    };
    groups.iter().filter_map(membership).collect()
}

/// Ends of the mailboxes of one switch, by port.
#[derive(Default)]
struct Ends {
    outlets: Vec<Outlet<Message>>,
    inlets: Vec<Inlet<Message>>,
}

impl Ends {
    fn add(&mut self, outlet: Outlet<Message>, inlet: Inlet<Message>) {
        self.outlets.push(outlet);
        self.inlets.push(inlet);
    }
}

/// Makes switches and the mailboxes between them.
fn wire(plan: &Arc<Plan>, gpus: Vec<Gpu>) -> (Vec<SwitchDomain>, MailboxBuilder) {
    let tree = &plan.tree;
    let leaves = (0..tree.leaves()).map(Place::Leaf);
    let places: Vec<Place> = leaves.chain((0..tree.spines).map(Place::Spine)).collect();
    let inlets: Vec<usize> = places
        .iter()
        .map(|&place| plan.ports(place) - plan.gpus_at(place))
        .collect();
    let mut mailroom = MailboxBuilder::new(&inlets);
    let (leaves, links) = (tree.leaves() as usize, tree.links_per_spine as usize);
    let mut ends: Vec<Ends> = places.iter().map(|_| Ends::default()).collect();
    // Inlets are numbered in the order of creation, which is the order of ports: at a leaf by uplink, at a spine by leaf and link.
    for leaf in 0..leaves {
        for uplink in 0..tree.uplinks() as usize {
            let spine = leaves + uplink / links;
            let (down, at_leaf) = mailroom.mailbox(leaf);
            let (up, at_spine) = mailroom.mailbox(spine);
            ends[leaf].add(up, at_leaf);
            ends[spine].add(down, at_spine);
        }
    }
    let mut gpus = gpus.into_iter();
    let domains = places.into_iter().zip(ends).map(|(place, ends)| {
        let below = gpus.by_ref().take(plan.gpus_at(place)).collect();
        let switch = Switch::new(Arc::clone(plan), place);
        SwitchDomain::new(plan, switch, below, ends.outlets, ends.inlets)
    });
    (domains.collect(), mailroom)
}

/// Conductor of a run: stops it at its limit.
struct Leader<'a> {
    cycle: Span,
    /// Cycle before which the run ends.
    end: Cycle,
    /// First cycle of the next round.
    now: Cycle,
    watcher: Option<&'a mut dyn Watcher>,
}

impl Conductor<SwitchDomain> for Leader<'_> {
    fn before_round(&mut self, start: Time, domains: &Domains<'_, SwitchDomain>) -> RunDecision {
        let now = start.as_ps() / self.cycle.as_ps();
        self.now = now;
        if now >= self.end {
            return RunDecision::Stop;
        }
        let watcher = self.watcher.as_mut();
        match watcher.is_none_or(|watcher| watcher.on_round(&RoundState { domains, now })) {
            true => RunDecision::Continue,
            false => RunDecision::Stop,
        }
    }

    fn between_rounds(
        &mut self,
        _: &Round,
        _: &mut Vec<()>,
        _: &mut Vec<(usize, ())>,
    ) -> RunDecision {
        RunDecision::Continue
    }
}

/// Builds the result of a run, and checks that nothing was lost.
fn account(plan: &Plan, domains: Vec<SwitchDomain>, stopped_at: Option<Cycle>) -> Finished {
    let fault = fault(plan, &domains, stopped_at.is_some());
    let gpus = || domains.iter().flat_map(|domain| &domain.gpus);
    // Credits may still be on their way.
    let is_done = gpus().all(|gpu| gpu.is_over() && gpu.unfinished() == 0);
    let stopped_at = stopped_at.filter(|_| !is_done);
    let is_stopped = stopped_at.is_some();
    let last = gpus().map(|gpu| gpu.counters.last_completed).max();
    let end = stopped_at.or(last).unwrap_or(0);
    let mut finished = Finished {
        operations: Vec::new(),
        unfinished: 0,
        is_over: true,
        is_stopped,
        cycles: 0,
        end,
        effective_flits: 0,
        gpus: plan.tree.gpus,
        packet_hops: 0,
        flit_hops: 0,
        peak_entries: 0,
        mean_entries: 0.0,
        waits_for_entries: 0,
        peak_queue: 0,
        links: Vec::new(),
        peak_responses: 0,
        digest: Digest::default(),
        threads: 1,
        fault,
    };
    let (mut first, mut entries, mut of_gpus) = (Cycle::MAX, 0, Vec::new());
    let switches = domains.len();
    for domain in domains {
        let counters = domain.switch.counters();
        finished.packet_hops += counters.packet_hops;
        finished.flit_hops += counters.flit_hops;
        let used = domain.switch.use_of_entries();
        entries += used.integral(end);
        finished.peak_entries = finished.peak_entries.max(used.peak);
        finished.waits_for_entries += domain.switch.waits_for_entries();
        finished.links.extend(domain.switch.links());
        for gpu in &domain.gpus {
            let counters = &gpu.counters;
            finished.unfinished += gpu.unfinished();
            finished.is_over &= gpu.is_over();
            finished.packet_hops += counters.packets_sent;
            finished.flit_hops += counters.flits_sent;
            finished.effective_flits += counters.effective_flits;
            finished.peak_responses = finished.peak_responses.max(counters.peak_responses);
            first = first.min(counters.first_sent.unwrap_or(Cycle::MAX));
            of_gpus.push(LinkTotals {
                flits: counters.flits_sent,
                packets: counters.packets_sent,
                peak_queue: 0,
            });
        }
        finished.operations.extend(domain.records);
    }
    let queues = finished.links.iter().map(|link| link.peak_queue);
    finished.peak_queue = queues.max().unwrap_or(0);
    finished.links.extend(of_gpus);
    finished.cycles = end.saturating_sub(first);
    if end > 0 {
        finished.mean_entries = entries as f64 / (switches as f64 * end as f64);
    }
    finish_operations(&mut finished);
    finished
}

/// Orders the operations, and digests them.
fn finish_operations(finished: &mut Finished) {
    finished
        .operations
        .sort_unstable_by_key(|record| (record.gpu, record.number));
    for record in &finished.operations {
        finished.digest.add(&digest_fields(record));
    }
}

fn digest_fields(record: &OperationRecord) -> [u64; 7] {
    let target = match record.target {
        Target::Gpu(gpu) => u64::from(gpu.0),
        Target::Group(group) => 1 << 32 | u64::from(group.0),
    };
    [
        u64::from(record.gpu.0),
        u64::from(record.number),
        record.kind as u64,
        target,
        record.posted,
        record.sent,
        record.completed,
    ]
}

/// Fault in the conservation of a run, which holds at any last cycle: each response contains the answer of each GPU, and every packet and
/// every credit has arrived or is somewhere. If no event was left, each operation is complete, and buffers and tables are empty.
fn fault(plan: &Plan, domains: &[SwitchDomain], is_stopped: bool) -> Option<String> {
    let gpus = || domains.iter().flat_map(|domain| &domain.gpus);
    let wrong: u64 = gpus().map(|gpu| gpu.counters.wrong_answers).sum();
    if wrong > 0 {
        return Some(format!(
            "{wrong} responses without the answer of each GPU just once"
        ));
    }
    let counters = || domains.iter().map(|domain| domain.switch.counters());
    let copies: u64 = counters().map(|counters| counters.copies).sum();
    let merged: u64 = counters().map(|counters| counters.merged).sum();
    let injected: u64 = gpus().map(|gpu| gpu.counters.packets_sent).sum();
    let received: u64 = gpus().map(|gpu| gpu.counters.packets_received).sum();
    let under_way: Vec<UnderWay> = domains.iter().map(SwitchDomain::under_way).collect();
    let on_links: u64 = under_way.iter().map(|sum| sum.packets).sum();
    let held: u64 = domains.iter().map(|domain| domain.switch.packets()).sum();
    if injected + copies != received + merged + held + on_links {
        return Some(format!(
            "{injected} packets injected and {copies} copied, {received} received and {merged} merged, {held} in switches, {on_links} on links"
        ));
    }
    let here: u64 = domains
        .iter()
        .map(|domain| domain.switch.credits() + domain.switch.buffered())
        .sum();
    let at_gpus: u64 = gpus().map(|gpu| gpu.credits() + gpu.buffered()).sum();
    let between: u64 = under_way.iter().map(|sum| sum.credits + sum.credited).sum();
    let (found, all) = (here + at_gpus + between, all_credits(plan));
    if found != all {
        return Some(format!(
            "{found} credits of {all}, flits that hold one included"
        ));
    }
    (!is_stopped)
        .then(|| unfinished(domains, held + on_links))
        .flatten()
}

/// Credits of all buffers.
fn all_credits(plan: &Plan) -> u64 {
    let leaves = (0..plan.tree.leaves()).map(Place::Leaf);
    let ports: usize = leaves
        .chain((0..plan.tree.spines).map(Place::Spine))
        .map(|place| plan.ports(place))
        .sum();
    let of_gpus = plan.tree.gpus as usize * CHANNELS;
    (ports * LANES + of_gpus) as u64 * u64::from(plan.configuration.input_buffer)
}

/// Work that is left although nothing is left to happen.
fn unfinished(domains: &[SwitchDomain], packets: u64) -> Option<String> {
    let gpus = || domains.iter().flat_map(|domain| &domain.gpus);
    let sent: u64 = gpus().map(|gpu| gpu.counters.operations_sent).sum();
    let complete: u64 = domains
        .iter()
        .map(|domain| domain.records.len() as u64)
        .sum();
    let unfinished: u64 = gpus().map(Gpu::unfinished).sum();
    if sent != complete || unfinished > 0 {
        return Some(format!(
            "{sent} operations sent, {complete} complete, {unfinished} unfinished, and nothing left to happen"
        ));
    }
    let entries: u32 = domains.iter().map(|domain| domain.switch.entries()).sum();
    (packets > 0 || entries > 0)
        .then(|| format!("{packets} packets and {entries} entries of reduction tables are left"))
}

/// Length of a span in cycles, rounded up.
pub fn cycles_of(span: Span, cycle: Span) -> Cycle {
    span.as_ps().div_ceil(cycle.as_ps())
}

/// The instant at which a cycle begins.
pub fn time_of(cycle: Cycle, length: Span) -> Time {
    instant(cycle, length)
}
