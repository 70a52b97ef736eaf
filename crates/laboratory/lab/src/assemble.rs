//! Assembly of a scenario into a run.

use crate::grants::Grants;
use crate::ideal_paths::ideal_paths;
use crate::idle_nics;
use crate::jobs::Jobs;
use crate::lanes::SharedNics;
use crate::observe::WatchPlan;
use crate::prepared::{PreparedFabric, arrivals, build_context, further_classes, rates_of_hosts};
use crate::record::CapturePlan;
use crate::scenario::ScenarioError;
use crate::scenario::topology::Uplinks;
use crate::scenario::validation::check_setup;
use crate::scenario::warnings::warnings_of;
use crate::scenario::{
    FastForward, Scenario, SwitchSettings, between_nics, check_flows, check_jobs, slowest_link,
};
use crate::sections::{append, merge, split_posted};
use crate::shared_routes::routes_of;
use crate::spreading::Spreading;
use crate::transports::{RunTransports, network_of_section};
use clearway_fabric::topology::{NodeId, PacketSizes, Paths, Routes, Topology, TopologyError};
use clearway_fabric::{
    Flow, FlowEvent, FlowMilestone, FurtherTransports, LinkSchedule, Reactions, Setup,
};
use clearway_scenario::generate::TakenHosts;
use clearway_scenario::{AttackContext, AttackKeys, BdpValues, BuildContext, LoadedWorkload};
use clearway_transport::congestion::NetworkFacts;
use clearway_transport::{Class, ClassSet};
use clearway_units::{FlowId, HostId, Rate, Span, Time};
use clearway_workload::{
    FlowSpec, MergedArrivals, Start, Trigger, TriggerIndex, Triggers, Workload,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// An assembled scenario: every number that a run needs.
#[derive(Debug, Clone)]
pub struct Assembly {
    /// The fabric.
    pub topology: Topology,
    /// Routes and path lengths of the fabric.
    pub routes: Routes,
    /// Sizes of packets without telemetry, of the transport of `[transport]`.
    pub sizes: PacketSizes,
    /// Facts that the transport of `[transport]` knows about the network.
    pub network: NetworkFacts,
    /// All traffic between hosts; empty if flows are [streamed](Self::streaming).
    pub workload: Workload,
    /// Jobs, whose connections are flows of the workload.
    pub(crate) jobs: Jobs,
    /// Streamed traffic, which is not listed.
    pub(crate) arrivals: Option<MergedArrivals>,
    flow_count: usize,
    /// The same traffic between NICs, if hosts have several.
    nic_traffic: Option<Workload>,
    /// Warnings for the user.
    pub warnings: Vec<String>,
    /// Plan of the samples; `None` if nothing is sampled.
    pub(crate) watch: Option<WatchPlan>,
    /// Plan of the capture; `None` if no frames are captured.
    pub capture: Option<Arc<CapturePlan>>,
    /// Numbers of the hosts in the fabric file; `None` if the numbers are 0, 1, 2 and so on.
    pub(crate) host_numbers: Option<Vec<u32>>,
    pub(crate) transports: RunTransports,
    further_transports: FurtherTransports,
    flows: Arc<[Flow]>,
    /// Events of links during the run.
    pub link_events: Arc<LinkSchedule>,
    /// Classes of the streamed and posted flows, which are not listed.
    further_classes: ClassSet,
    pub(crate) spreading: Spreading,
    /// Paths from which ideal times are computed.
    pub(crate) ideal_paths: Arc<Paths>,
    /// Time at which the run stops even if flows or jobs are not done.
    pub(crate) at_most: Time,
    pub(crate) trigger_delay: Option<Span>,
    pub(crate) switch: SwitchSettings,
    pub(crate) fast_forward: FastForward,
    pub(crate) seed: u64,
}

/// The traffic of a run, either listed or streamed.
enum Traffic {
    Listed(Workload, Jobs),
    OneByOne(MergedArrivals),
}

impl Traffic {
    fn parts(self) -> (Workload, Jobs, Option<MergedArrivals>) {
        match self {
            Self::Listed(workload, jobs) => (workload, jobs, None),
            Self::OneByOne(arrivals) => (Workload::default(), Jobs::default(), Some(arrivals)),
        }
    }
}

impl Assembly {
    /// Assembles a scenario.
    ///
    /// # Errors
    /// If its parts do not fit together.
    pub fn new(scenario: &Scenario) -> Result<Self, ScenarioError> {
        let mut prepared = PreparedFabric::new(scenario)?;
        let (mut loaded, posted) = load_workloads(scenario, &mut prepared)?;
        prepared
            .warnings
            .extend(loaded.warnings.iter().map(ToString::to_string));
        prepared.warnings.append(&mut loaded.setting_warnings);
        let listed = loaded.workload.flows.len();
        let shared = SharedNics::new(scenario, &prepared.topology);
        let jobs = Jobs::new(loaded.jobs, &mut loaded.workload, &shared)
            .map_err(|error| error.or_in(scenario.places(), "workload", 0))?;
        // `load_workloads` has checked the other flows; connections of jobs exist only now.
        let slowest = slowest_link(&prepared.topology);
        for connection in &loaded.workload.flows[listed..] {
            let section = connection.section as usize;
            check_flows([connection], slowest, prepared.sizes_of(section))
                .map_err(|error| error.or_in(scenario.places(), "workload", 0))?;
        }
        // After the connections, because flows of posted sections have the last numbers.
        append(scenario, &mut loaded.workload, posted)?;
        Self::on(prepared, scenario, Traffic::Listed(loaded.workload, jobs))
    }

    /// As [`new`](Self::new), but streams flows where possible: memory then holds only the flows under way. The run is the same: flows have
    /// the same numbers, and the digest is the same. Only [`RunOptions::on_flow`](crate::RunOptions::on_flow) receives the outcome of a
    /// flow.
    ///
    /// # Errors
    /// As `new`.
    pub fn streaming(scenario: &Scenario) -> Result<Self, ScenarioError> {
        let prepared = PreparedFabric::new(scenario)?;
        match arrivals(scenario, &prepared)? {
            // Time is skipped beside listed flows alone.
            Some(arrivals) if scenario.fast_forward.error.is_none() => {
                Self::on(prepared, scenario, Traffic::OneByOne(arrivals))
            }
            _ => Self::new(scenario),
        }
    }

    /// Assembles a scenario on its prepared fabric.
    fn on(
        prepared: PreparedFabric,
        scenario: &Scenario,
        traffic: Traffic,
    ) -> Result<Self, ScenarioError> {
        let (workload, jobs, arrivals) = traffic.parts();
        let places = scenario.places();
        let topology_error = |error: ScenarioError| error.or_in(places, "topology", 0);
        let (topology, all_sizes) = (prepared.topology, prepared.sizes);
        let (mut warnings, sizes) = (prepared.warnings, all_sizes[0]);
        let routes = routes_of(&topology)
            .map_err(|error| topology_error(routing_error(&topology, &error)))?;
        check_reach(&topology, &routes.paths, sizes).map_err(topology_error)?;
        let link_events = link_events(scenario, &topology, &workload)?;
        let transports = RunTransports::new(scenario, (&all_sizes, &topology), &routes.paths)?;
        let networks = transports.networks();
        let network = networks[0];
        warnings.extend(warnings_of(scenario, &networks, &routes.paths));
        let capture = capture_plan(scenario, &topology, &transports)
            .map_err(|error| error.or_in(places, "observe", 0))?;
        let nic_traffic = nic_traffic(scenario, &topology, &routes.paths, (&workload, &jobs))
            .map_err(topology_error)?;
        let traffic = nic_traffic.as_ref().unwrap_or(&workload);
        warnings.extend(idle_nics::warning(&topology, &jobs, traffic));
        let listed = workload.flows.iter().cloned();
        let all = || listed.clone().chain(arrivals.iter().cloned().flatten());
        let flow_bytes = all().map(|flow| flow.bytes.as_u64());
        let watch = WatchPlan::new(&topology, flow_bytes, network.base_rtt, &scenario.observe)
            .map_err(|error| error.or_in(places, "observe", 0))?;
        let first_start = first_start(all()).min(jobs.first_start());
        let flow_count = all().count();
        let fabric = |flow| transports.fabric_flow(flow);
        let mut flows: Vec<Flow> = traffic.flows.iter().map(fabric).collect();
        jobs.set_phases(&mut flows);
        let stream = arrivals.iter().cloned().flatten();
        let further_transports = transports.further(stream);
        let ideal_paths = ideal_paths(&topology, &link_events, &routes)
            .map_err(|error| topology_error(routing_error(&topology, &error)))?;
        let assembly = Self {
            spreading: Spreading::from_topology(&topology, &scenario.switch.ports),
            jobs,
            further_classes: further_classes(scenario, arrivals.is_some()),
            host_numbers: prepared.host_numbers,
            arrivals,
            flow_count,
            ideal_paths,
            link_events,
            watch,
            flows: flows.into(),
            further_transports,
            transports,
            switch: scenario.switch.clone(),
            fast_forward: scenario.fast_forward.clone(),
            seed: scenario.general.seed,
            at_most: first_start.saturating_add(scenario.general.at_most),
            trigger_delay: scenario.general.trigger_delay,
            topology,
            routes,
            sizes,
            network,
            workload,
            nic_traffic,
            warnings,
            capture: capture.map(Arc::new),
        };
        check_setup(scenario, &assembly.setup())?;
        Ok(assembly)
    }

    /// Prepares for messages of these classes that are posted during the run; the time limit then counts from time zero.
    pub(crate) fn accept_posted(&mut self, scenario: &Scenario, classes: ClassSet) {
        self.further_classes = self.further_classes.union(classes);
        self.at_most = Time::ZERO + scenario.general.at_most;
    }

    /// The set-up of a simulation.
    pub(crate) fn setup(&self) -> Setup<'_> {
        Setup {
            topology: &self.topology,
            routes: self.routes.clone(),
            flows: Arc::clone(&self.flows),
            further_classes: self.further_classes,
            profile: Arc::clone(&self.transports.first().profile),
            further_transports: self.further_transports.clone(),
            switch: self.switch.ports.clone(),
            buffer: self.switch.buffer.clone(),
            link_events: Arc::clone(&self.link_events),
            seed: self.seed,
        }
    }

    /// The traffic as the fabric carries it: from NIC to NIC.
    pub(crate) fn nic_traffic(&self) -> &Workload {
        self.nic_traffic.as_ref().unwrap_or(&self.workload)
    }

    /// The same fabric with only one of its jobs.
    pub fn alone(&self, job: usize) -> Self {
        let mut assembly = self.clone();
        assembly.jobs.leave(job);
        assembly
    }

    /// The scenario with every default written out and the resolved amounts of relative values.
    pub fn resolved(&self, scenario: &Scenario) -> String {
        let cables = self.topology.cables.iter().filter(|cable| cable.up);
        let rates = cables.filter(|cable| !self.topology.is_scale_up(cable));
        let rates = BTreeSet::from_iter(rates.map(|cable| cable.rate));
        let bdp = |rate: Rate| (rate, self.network.port_bdp(rate));
        let amounts = BdpValues {
            transport: (self.network.line_rate, self.network.bdp),
            ports: rates.into_iter().map(bdp).collect(),
        };
        scenario.resolved_with(&amounts)
    }

    /// Number of flows.
    pub fn flow_count(&self) -> usize {
        self.flow_count
    }

    /// True if flows are streamed instead of listed.
    pub fn is_streaming(&self) -> bool {
        self.arrivals.is_some()
    }

    /// Source and destination NICs of a listed flow, as hosts of the fabric. If hosts have one NIC each, a NIC has the number of its host.
    pub fn nics(&self, flow: FlowId) -> (HostId, HostId) {
        let flow = self.nic_traffic().flow(flow);
        (flow.src, flow.dst)
    }

    /// As [`nics`](Self::nics), for listed and streamed flows. `flow` is between hosts.
    pub fn ends(&self, id: FlowId, flow: &FlowSpec) -> (HostId, HostId) {
        match &self.nic_traffic {
            Some(_) => self.nics(id),
            None => (flow.src, flow.dst),
        }
    }

    /// The triggers, split by place: the triggers of single NICs, and all other triggers. A notification between two NICs of a host takes
    /// as long as a notification to another host.
    pub(crate) fn reactions(
        &self,
    ) -> (BTreeMap<HostId, TriggerReactions>, Option<TriggerReactions>) {
        let workload = self.nic_traffic();
        let homes = workload.trigger_homes();
        let mut local: BTreeMap<HostId, TriggerReactions> = BTreeMap::new();
        let mut global = TriggerReactions::default();
        for (index, trigger) in Triggers::new(workload).into_vec().into_iter().enumerate() {
            let owner = match homes[index] {
                Some(host) => local.entry(host).or_default(),
                None => &mut global,
            };
            owner.triggers.insert(TriggerIndex(index as u32), trigger);
        }
        for (id, flow) in workload.numbered() {
            // The source of a flow sees `Sent`, its destination `Received`.
            let activations = [
                (FlowMilestone::Sent, flow.on_sent, flow.src),
                (FlowMilestone::Received, flow.on_received, flow.dst),
            ];
            for (milestone, trigger, host) in activations {
                let Some(trigger) = trigger else { continue };
                let owner = match homes[trigger.index()] {
                    Some(_) => local.entry(host).or_default(),
                    None => &mut global,
                };
                owner.activations.insert((id, milestone), trigger);
            }
        }
        let global = (!global.activations.is_empty()).then_some(global);
        (local, global)
    }

    /// Reactions between hosts: the triggers that do not belong to a single NIC, and grants of messages; `None` if there are neither.
    pub(crate) fn coordinator(
        &self,
        triggers: Option<TriggerReactions>,
    ) -> Option<Box<dyn Reactions>> {
        let grants = self.jobs.grants();
        if triggers.is_none() && grants.is_none() {
            return None;
        }
        Some(Box::new(Coordinator { triggers, grants }))
    }

    /// The class of a listed flow's data.
    pub(crate) fn class_of(&self, flow: FlowId) -> Class {
        self.flows[flow.index()].class
    }

    /// True if acknowledgements have separate queues.
    pub(crate) fn has_control_priority(&self) -> bool {
        self.switch.ports.control_priority
    }
}

fn capture_plan(
    scenario: &Scenario,
    topology: &Topology,
    transports: &RunTransports,
) -> Result<Option<CapturePlan>, ScenarioError> {
    let buffer = scenario.switch.buffer.as_ref();
    let pauses = buffer.map(|buffer| (buffer.reaction, buffer.frame.as_u64() as usize));
    let format = transports.widest_format();
    CapturePlan::new(&scenario.observe, topology, format, pauses)
}

/// Triggers at run time: the events that activate each trigger, and the flows that it starts.
#[derive(Debug, Default)]
pub(crate) struct TriggerReactions {
    triggers: BTreeMap<TriggerIndex, Trigger>,
    activations: BTreeMap<(FlowId, FlowMilestone), TriggerIndex>,
}

impl Reactions for TriggerReactions {
    fn on_event(&mut self, event: FlowEvent, start: &mut Vec<FlowId>) {
        // Each event activates its trigger once, even if the event is reported several times.
        let Some(index) = self.activations.remove(&(event.flow, event.milestone)) else {
            return;
        };
        if let Some(trigger) = self.triggers.get_mut(&index) {
            start.extend_from_slice(trigger.activate());
        }
    }
}

/// Reactions that act between hosts.
struct Coordinator {
    triggers: Option<TriggerReactions>,
    grants: Option<Grants>,
}

impl Reactions for Coordinator {
    fn on_event(&mut self, event: FlowEvent, start: &mut Vec<FlowId>) {
        if let Some(triggers) = &mut self.triggers {
            triggers.on_event(event, start);
        }
        if let Some(grants) = &mut self.grants {
            grants.on_event(event, start);
        }
    }
}

/// Rejects fabrics with several NICs per host if no host reaches another.
fn check_reach(
    topology: &Topology,
    paths: &Paths,
    sizes: PacketSizes,
) -> Result<(), ScenarioError> {
    if !topology.may_be_apart() || paths.longest_pair(sizes).is_some() {
        return Ok(());
    }
    let error = TopologyError::Impossible {
        what: "no host reaches another".into(),
        fix: "add links between switches".into(),
    };
    Err(routing_error(topology, &error))
}

/// Time of the first flow start that does not wait for a trigger; files of some simulators begin seconds after time zero.
fn first_start(flows: impl Iterator<Item = FlowSpec>) -> Time {
    let starts = flows.filter_map(|flow| match flow.start {
        Start::At(time) => Some(time),
        Start::On(_) | Start::Posted(_) => None,
    });
    starts.min().unwrap_or(Time::NEVER)
}

/// Generates all traffic, and separately the traffic of the sections whose flows follow all others. A traffic file may fail links of the
/// fabric.
fn load_workloads(
    scenario: &Scenario,
    prepared: &mut PreparedFabric,
) -> Result<(LoadedWorkload, Vec<Workload>), ScenarioError> {
    let mut all = LoadedWorkload::default();
    let mut parts = Vec::new();
    // One counter for each transport.
    let mut next_variant = vec![1; prepared.sizes.len()];
    let nic_rates = rates_of_hosts(&prepared.topology);
    let slowest = slowest_link(&prepared.topology);
    let mut uplinks = None;
    let mut taken = TakenHosts::new();
    for (section, settings) in scenario.workloads.iter().enumerate() {
        let context = BuildContext {
            taken: &taken,
            ..build_context(scenario, prepared, &nic_rates, section)
        };
        let placed = |error: ScenarioError| error.or_in(scenario.places(), "workload", section);
        let transport = usize::from(prepared.transport_of_section[section]);
        let variant = &mut next_variant[transport];
        let loaded = settings.load(&context, *variant).map_err(placed)?;
        *variant += settings.variants().len() as u16;
        check_flows(&loaded.workload.flows, slowest, prepared.sizes_of(section)).map_err(placed)?;
        for failure in &loaded.failures {
            let uplinks = uplinks.get_or_insert_with(|| Uplinks::from_topology(&prepared.topology));
            let cable = uplinks.named(failure).map_err(placed)?;
            prepared.topology.cables[cable].up = false;
        }
        all.warnings.extend(loaded.warnings);
        let warnings = loaded.setting_warnings.into_iter();
        all.setting_warnings
            .extend(warnings.map(|warning| match scenario.workloads.len() {
                1 => warning,
                _ => format!("workload {} ({}): {warning}", section + 1, settings.kind()),
            }));
        check_jobs(&loaded.jobs).map_err(placed)?;
        taken.extend(loaded.jobs.iter().flat_map(|job| job.hosts.iter().copied()));
        all.jobs.extend(loaded.jobs);
        parts.push(loaded.workload);
    }
    attack(scenario, prepared, &mut parts)?;
    let (posted, others) = split_posted(scenario, parts);
    all.workload = merge(scenario, others)?;
    Ok((all, posted))
}

/// Applies the attacks of the sections that have one. Attacks need routes, and all failed links are known only now.
fn attack(
    scenario: &Scenario,
    prepared: &PreparedFabric,
    parts: &mut [Workload],
) -> Result<(), ScenarioError> {
    if !scenario
        .workloads
        .iter()
        .any(|section| section.attack.is_on())
    {
        return Ok(());
    }
    let topology = &prepared.topology;
    let routes = routes_of(topology)
        .map_err(|error| routing_error(topology, &error).or_in(scenario.places(), "topology", 0))?;
    let sections = scenario.workloads.iter();
    let needs_busiest = sections
        .clone()
        .any(|section| section.attack.needs_busiest());
    let busiest = needs_busiest.then(|| {
        let flows = parts.iter().map(|part| &part.flows[..]);
        AttackKeys::busiest_receiver(sections.clone().map(|section| &section.attack).zip(flows))
    });
    for (index, (section, part)) in sections.zip(parts).enumerate() {
        if section.attack.is_on() {
            let plain = std::mem::take(part);
            let network = network_of_section(scenario, prepared, index, &routes.paths)?;
            let context = AttackContext {
                network: &network,
                hosts: topology.machines(),
                drawn: (scenario.general.seed, index as u32),
                busiest: busiest.flatten(),
                variant: scenario.disobedient_variant(index),
            };
            let attacked = section.attack.apply(plain, &context);
            *part = attacked.map_err(|error| error.or_in(scenario.places(), "workload", index))?;
        }
    }
    Ok(())
}

/// Link events, including the events of attackers.
fn link_events(
    scenario: &Scenario,
    topology: &Topology,
    workload: &Workload,
) -> Result<Arc<LinkSchedule>, ScenarioError> {
    let storms = scenario.pause_storms(&workload.flows)?;
    Ok(Arc::new(scenario.link_schedule(topology, &storms)?))
}

/// The traffic between NICs, if hosts have several.
fn nic_traffic(
    scenario: &Scenario,
    topology: &Topology,
    paths: &Paths,
    (workload, jobs): (&Workload, &Jobs),
) -> Result<Option<Workload>, ScenarioError> {
    let choice = scenario.topology.nic_choice(scenario.general.seed);
    topology
        .may_be_apart()
        .then(|| between_nics(topology, paths, workload, choice, |id| jobs.lane(id)))
        .transpose()
}

/// Error for a topology that failed links have broken.
fn routing_error(topology: &Topology, error: &TopologyError) -> ScenarioError {
    const KEYS: [&str; 3] = ["links", "failed-uplinks.per-leaf", "failed-uplinks.leaves"];
    let (message, fix) = match error {
        TopologyError::HostCables { host, cables: 0 } => (
            format!(
                "host {} has no link that is up",
                topology.node_name(NodeId(*host)).trim_start_matches("host")
            ),
            "leave each host its link".to_string(),
        ),
        error => (error.message(), error.fix().into()),
    };
    let down = topology.cables.iter().filter(|cable| !cable.up).count();
    let links = if down == 1 { "link" } else { "links" };
    ScenarioError::about(
        &KEYS,
        format!("impossible topology, with {down} {links} down: {message}"),
        fix,
    )
}
