//! A scenario on a bed and in the simulator.

use crate::bed::{down, find, up};
use crate::counters::LinkCounters;
use crate::delays::{hops, most_hops};
use crate::fault::Fault;
use crate::hosts::Hosts;
use crate::name::{BedName, address_of};
use crate::plan::{BedPlan, CommandBatch, Switches, deaths};
use crate::process::have_ended;
use crate::record::{Measured, build};
use crate::setup::{BedSetup, start_of};
use crate::simulate::{simulate, watched_links};
use crate::softswitch::{SoftSwitch, scenario_text};
use crate::state::{self, BedState};
use crate::system::{carry_out, look};
use crate::task::{FlowTask, HostCommand, HostReply, HostTask, SentFlow};
use clearway_fabric::topology::LinkId;
use clearway_lab::Laboratory;
use clearway_report::testbed::TestbedRecord;
use clearway_udp::Transport;
use clearway_udp::net::new_key;
use clearway_udp::wire::PORT;
use clearway_units::{Span, Time};
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Time limit of hosts for steps that take almost no time.
pub(crate) const SHORT: Duration = Duration::from_secs(30);
/// Time limit for processes of an earlier run to end.
const ENDING: Duration = Duration::from_secs(2);
/// Time from the start command to the start.
pub(crate) const LEAD: Duration = Duration::from_millis(200);
/// Time between samples of a short run.
const SAMPLE: Span = Span::from_ms(2);

/// Time between two requests for counters.
const ASK: Span = Span::from_ms(20);

/// Request for a run.
pub struct BedRequest<'a> {
    /// Components that scenarios may name.
    pub laboratory: &'a Laboratory,
    /// The scenario, as the user names it.
    pub source: &'a str,
    /// Changes to it.
    pub overrides: &'a [String],
    /// Name of the bed.
    pub name: &'a BedName,
    /// Switches that forward.
    pub switches: Switches,
    /// The program to start for hosts and for switches in user space.
    pub program: &'a Path,
    /// Arguments of the program for a host.
    pub agent: &'a [&'a str],
    /// The bed stays.
    pub keep: bool,
    /// True once the user interrupts.
    pub interrupted: &'a dyn Fn() -> bool,
    /// Receiver of progress messages.
    pub tell: &'a dyn Fn(&str),
}

/// End of a run.
pub enum Ended {
    /// Both sides.
    Done(Box<TestbedRecord>),
    /// The user has interrupted the run; the state before the run is restored.
    Interrupted,
}

/// Sends the scenario's flows over a bed, and simulates them.
///
/// # Errors
/// If a bed cannot carry the scenario, or the system refuses a step.
pub fn run(request: &BedRequest<'_>) -> Result<Ended, Fault> {
    let result = both(request);
    match result {
        Err(_) if (request.interrupted)() => Ok(Ended::Interrupted),
        result => result.map(|record| Ended::Done(Box::new(record))),
    }
}

fn both(request: &BedRequest<'_>) -> Result<TestbedRecord, Fault> {
    let BedRequest {
        laboratory,
        source,
        overrides,
        switches,
        ..
    } = *request;
    let setup = BedSetup::new(laboratory, source, overrides, switches)?;
    let plan = BedPlan::new(request.name, &setup.assembly, &setup.ports(), switches)?;
    let measured = on_bed(request, &setup, &plan)?;
    (request.tell)("simulating the same");
    let (assembly, keys) = setup.simulated(laboratory, measured.base_round_trip())?;
    let simulated = simulate(&assembly, SAMPLE, request.interrupted);
    match (request.interrupted)() {
        true => Err(interrupted()),
        false => Ok(build(&setup, &assembly, keys, &measured, &simulated)),
    }
}

pub(crate) fn interrupted() -> Fault {
    Fault::new("interrupted", "run the command again")
}

/// Guard that removes a bed at the end in any case.
pub(crate) struct Guard<'a> {
    pub(crate) name: &'a BedName,
    pub(crate) keep: bool,
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        if !self.keep {
            // The record names the remaining parts, so the user can call `down` again.
            let _ = down(self.name);
        }
    }
}

fn on_bed(request: &BedRequest<'_>, setup: &BedSetup, plan: &BedPlan) -> Result<Measured, Fault> {
    let was_up = find(plan, request.switches)?;
    match &was_up {
        Some(state) => begin_again(plan, state)?,
        None => {
            (request.tell)(&format!("making {} namespaces", plan.namespaces().count()));
            up(plan, request.source, request.switches, request.interrupted)?;
        }
    }
    let guard = Guard {
        name: &plan.name,
        keep: request.keep || was_up.is_some(),
    };
    let mut fabric = Fabric::start(request, setup, plan)?;
    let mut measured = drive(request, setup, plan, &mut fabric)?;
    fabric.end(setup, plan, &mut measured)?;
    drop(guard);
    Ok(measured)
}

/// Resets a bed that is up to its initial state, for another run.
fn begin_again(plan: &BedPlan, state: &BedState) -> Result<(), Fault> {
    if state.has_switch() {
        return Err(Fault::new(
            format!(
                "the switches of bed `{}` run in a separate process, which cannot be told of failing links",
                plan.name
            ),
            format!(
                "take it away first: `clearway testbed down --name {}`",
                plan.name
            ),
        ));
    }
    // Processes of a killed run exit on their own.
    if !have_ended(&state.children, ENDING) {
        return Err(Fault::new(
            format!("another run on bed `{}` is under way", plan.name),
            format!(
                "wait for its end, or take both away: `clearway testbed down --name {}`",
                plan.name
            ),
        ));
    }
    state::update(&plan.name, |state| state.children.clear())?;
    // Links may have died in an earlier run, whatever its scenario.
    plan.shapes().try_for_each(carry_out)
}

/// The fabric of a bed during a run: its switches, counters and upcoming failures.
struct Fabric {
    switch: Option<SoftSwitch>,
    counters: Option<LinkCounters>,
    first: Vec<u64>,
    /// Packets that queues of the kernel had dropped before the run.
    dropped: BTreeMap<String, u64>,
    failures: VecDeque<(Time, Vec<CommandBatch>, String)>,
    /// Names of the watched links, and the time of the last request for counters to switches in user space.
    names: Vec<String>,
    asked: Time,
}

impl Fabric {
    fn start(request: &BedRequest<'_>, setup: &BedSetup, plan: &BedPlan) -> Result<Self, Fault> {
        let topology = &setup.assembly.topology;
        let facts = setup.ports();
        let failures = deaths(topology).into_iter().map(|(at, cable)| {
            let steps = match request.switches {
                Switches::Kernel => plan.death(&setup.assembly, &facts, cable),
                Switches::Soft => Vec::new(),
            };
            let name = topology.link_name(LinkId::from_end(cable, 0));
            (at, steps, format!("link {name} down"))
        });
        let names = watched_links(topology).into_iter();
        let names = names.map(|link| topology.link_name(link));
        let mut fabric = Self {
            switch: None,
            counters: None,
            first: Vec::new(),
            dropped: BTreeMap::new(),
            failures: failures.collect(),
            names: names.collect(),
            asked: Time::ZERO,
        };
        match request.switches {
            Switches::Soft => {
                let scenario = scenario_text(setup);
                let switch = SoftSwitch::start(request.program, &plan.name, &scenario)?;
                fabric.switch = Some(switch);
            }
            Switches::Kernel => {
                let opened = LinkCounters::open(plan, topology);
                let mut counters = opened.map_err(|error| no_counters(&error))?;
                fabric.first = counters.read().map_err(|error| no_counters(&error))?;
                fabric.counters = Some(counters);
                fabric.dropped = kernel_drops(setup, plan)?;
            }
        }
        Ok(fabric)
    }

    /// Fails links that are due, and takes a sample.
    fn look(&mut self, at: Time, measured: &mut Measured) -> Result<(), Fault> {
        while self.failures.front().is_some_and(|(due, ..)| *due <= at) {
            let Some((_, steps, line)) = self.failures.pop_front() else {
                break;
            };
            steps.iter().try_for_each(carry_out)?;
            if let Some(switch) = &mut self.switch {
                switch.tell(&line)?;
            }
        }
        if let Some(counters) = &mut self.counters {
            let bytes = counters.read().map_err(|error| no_counters(&error))?;
            let since = bytes
                .iter()
                .zip(&self.first)
                .map(|(now, first)| now - first);
            measured.add_links(at, since.collect());
        }
        if let Some(switch) = &mut self.switch
            && at.since(self.asked) >= ASK
        {
            self.asked = at;
            if let Some(totals) = switch.counters()? {
                let bytes = |name: &String| totals.get(name).map_or(0, |link| link.bytes);
                measured.add_links(at, self.names.iter().map(bytes).collect());
            }
        }
        Ok(())
    }

    /// Ends the switches and records their counts.
    fn end(self, setup: &BedSetup, plan: &BedPlan, measured: &mut Measured) -> Result<(), Fault> {
        if let Some(switch) = self.switch {
            measured.link_totals = switch.end();
            return Ok(());
        }
        let mut drops = kernel_drops(setup, plan)?;
        for (link, count) in &mut drops {
            *count -= self.dropped.get(link).copied().unwrap_or(0).min(*count);
        }
        measured.kernel_drops = drops;
        Ok(())
    }
}

fn no_counters(error: &std::io::Error) -> Fault {
    Fault::new(
        format!("cannot read the counters of the bed's links: {error}"),
        "run as root",
    )
}

/// Packets that queues of switches dropped, by link.
fn kernel_drops(setup: &BedSetup, plan: &BedPlan) -> Result<BTreeMap<String, u64>, Fault> {
    let topology = &setup.assembly.topology;
    let ports = topology.ports();
    let mut drops = BTreeMap::new();
    for (switch, namespace) in plan.switches.iter().enumerate() {
        let text = look("tc", &["-n", namespace, "-s", "-j", "qdisc", "show"])?;
        let shown: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
        for queue in shown.as_array().into_iter().flatten() {
            let device = queue["dev"].as_str().unwrap_or_default();
            let port = device
                .strip_prefix('p')
                .and_then(|port| port.parse::<usize>().ok());
            let node = topology.switch_node(switch).0 as usize;
            // A `netem` also counts the drops of the `tbf` within it.
            if queue["root"] == true
                && let Some(&link) = port.and_then(|port| ports[node].get(port))
            {
                let count = queue["drops"].as_u64().unwrap_or(0);
                *drops.entry(topology.link_name(link)).or_default() += count;
            }
        }
    }
    Ok(drops)
}

/// Drives the hosts through a run.
fn drive(
    request: &BedRequest<'_>,
    setup: &BedSetup,
    plan: &BedPlan,
    fabric: &mut Fabric,
) -> Result<Measured, Fault> {
    let mut stop = || match (request.interrupted)() {
        true => Err(interrupted()),
        false => Ok(()),
    };
    let mut hosts = Hosts::start(request.program, request.agent, plan)?;
    let (tasks, last_start) = tasks(setup)?;
    for (host, task) in tasks.into_iter().enumerate() {
        hosts.tell(host, &HostCommand::Task(Box::new(task)))?;
    }
    let listening = |reply| matches!(reply, HostReply::Listening).then_some(());
    hosts.answers(SHORT, listening, &mut stop)?;
    hosts.tell_all(&HostCommand::Connect)?;
    let connected = |reply| match reply {
        HostReply::Connected { round_trips_us } => Some(round_trips_us),
        _ => None,
    };
    let round_trips = hosts.answers(SHORT, connected, &mut stop)?;
    let mut measured = Measured {
        round_trips_us: farthest(setup, &round_trips),
        ..Measured::default()
    };
    (request.tell)(&format!(
        "{} connections, base round trip {:.0} us; the flows begin",
        measured.round_trips_us.len(),
        measured.base_round_trip().as_us()
    ));
    let before = machine_cpu_seconds();
    let zero = unix() + LEAD;
    hosts.tell_all(&HostCommand::Start {
        unix_ns: zero.as_nanos() as u64,
    })?;
    let longest =
        LEAD + SHORT + Duration::from_micros((last_start + at_most(setup)).as_us() as u64);
    let sent = |reply| match reply {
        HostReply::Sent { flows } => Some(flows),
        _ => None,
    };
    let mut course = || {
        stop()?;
        let passed = unix().saturating_sub(zero);
        let at = Time::from_ps(passed.as_nanos() as u64 * 1000);
        fabric.look(at, &mut measured)
    };
    let flows: Vec<Vec<SentFlow>> = hosts.answers(longest, sent, &mut course)?;
    hosts.tell_all(&HostCommand::Report)?;
    let report = |reply| match reply {
        HostReply::Report(report) => Some(report),
        _ => None,
    };
    measured.hosts = hosts.answers(SHORT, report, &mut stop)?;
    measured.machine_cpu_seconds = machine_cpu_seconds() - before;
    measured.sent = flows.into_iter().flatten().collect();
    hosts.tell_all(&HostCommand::End)?;
    Ok(measured)
}

/// Round trips of the connections over the most links, selected from the round trips of each host; the simulation uses these.
fn farthest(setup: &BedSetup, round_trips: &[Vec<f64>]) -> Vec<f64> {
    let assembly = &setup.assembly;
    let most = most_hops(assembly);
    let mut far = Vec::new();
    for (host, trips) in round_trips.iter().enumerate() {
        let flows = assembly.workload.flows.iter();
        let own = flows.filter(|flow| flow.src.index() == host);
        let both = own.zip(trips);
        far.extend(
            both.filter(|(flow, _)| hops(assembly, flow) == most)
                .map(|(_, trip)| *trip),
        );
    }
    far
}

/// Processor time of the whole machine so far, over all processes; zero if the system does not report it.
fn machine_cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    let line = stat.lines().find_map(|line| line.strip_prefix("cpu "));
    let ticks = line.unwrap_or_default().split_whitespace();
    let ticks: Vec<f64> = ticks.filter_map(|tick| tick.parse().ok()).collect();
    // Fields of `proc_stat(5)`: user, nice, system, idle, iowait, irq, softirq, steal. All but idle and iowait count.
    let busy = [0, 1, 2, 5, 6, 7].map(|index| ticks.get(index).copied().unwrap_or(0.0));
    busy.iter().sum::<f64>() / 100.0
}

fn at_most(setup: &BedSetup) -> Span {
    setup.scenario.general.at_most
}

#[expect(
    clippy::disallowed_methods,
    reason = "the clock that all hosts of one machine share"
)]
pub(crate) fn unix() -> Duration {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
}

/// Tasks of all hosts, and the last start of a flow.
pub(crate) fn tasks(setup: &BedSetup) -> Result<(Vec<HostTask>, Span), Fault> {
    let key = new_key().map_err(|error| {
        Fault::new(
            format!("no key for the connections: {error}"),
            "see to it that the system has random bytes",
        )
    })?;
    let settings = &setup.settings;
    let address = |host: u32| SocketAddr::from((address_of(host), PORT));
    let starts = setup.assembly.workload.flows.iter().filter_map(start_of);
    let (first, last) = starts.fold((Time::NEVER, Time::ZERO), |(first, last), start| {
        (first.min(start), last.max(start))
    });
    let deadline = first.since(Time::ZERO) + at_most(setup);
    let task = |host: u32| HostTask {
        host,
        listen: address(host),
        key: key.to_hex(),
        go_back_n: settings.transport == Transport::GoBackN,
        ecn: settings.ecn,
        paths: settings.paths,
        line_rate_bps: settings.line_rate.as_bps(),
        datagram_bytes: settings.datagram,
        memory_bytes: settings.receive_memory,
        soak: None,
        flows: flows_of(setup, host, address),
        sample_us: SAMPLE.as_us() as u64,
        deadline_us: deadline.as_us() as u64,
    };
    let hosts = 0..setup.assembly.topology.hosts;
    Ok((hosts.map(task).collect(), last.since(Time::ZERO)))
}

fn flows_of(setup: &BedSetup, host: u32, address: impl Fn(u32) -> SocketAddr) -> Vec<FlowTask> {
    let flows = setup.assembly.workload.numbered();
    let own = flows.filter(|(_, flow)| flow.src.0 == host);
    let task = own.filter_map(|(id, flow)| {
        Some(FlowTask {
            flow: id.0,
            to: address(flow.dst.0),
            bytes: flow.bytes.as_u64(),
            start_us: start_of(flow)?.since(Time::ZERO).as_us(),
        })
    });
    task.collect()
}
