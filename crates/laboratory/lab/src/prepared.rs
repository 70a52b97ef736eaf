//! Fabric of a scenario before routing, and the context for generating its traffic.

use crate::scenario::validation::packet_sizes;
use crate::scenario::{BuildContext, Scenario, ScenarioError, check_flows, slowest_link};
use clearway_fabric::topology::{Cable, PacketSizes, SwitchRole, Topology};
use clearway_transport::{Class, ClassSet};
use clearway_units::{HostId, Rate};
use clearway_workload::{Arrivals, MergedArrivals, WorkloadError};

/// Fabric for which traffic is generated. The fabric does not have routes yet, because a traffic file may still fail some of its links.
pub(crate) struct PreparedFabric {
    pub(crate) topology: Topology,
    gpus_per_node: u32,
    dimensions: Vec<u32>,
    pub(crate) host_numbers: Option<Vec<u32>>,
    /// Sizes of packets without telemetry, by transport.
    pub(crate) sizes: Vec<PacketSizes>,
    /// The transport of each section of the workload.
    pub(crate) transport_of_section: Vec<u8>,
    pub(crate) warnings: Vec<String>,
}

impl PreparedFabric {
    /// Builds the fabric of a scenario.
    ///
    /// # Errors
    /// If the fabric cannot be built.
    pub(crate) fn new(scenario: &Scenario) -> Result<Self, ScenarioError> {
        let transports = scenario.transports();
        let placed = |(place, error)| at_transport(scenario, place, error);
        let sizes = (0u8..).zip(&transports.settings);
        let sizes = sizes.map(|(place, settings)| packet_sizes(settings).map_err(|e| (place, e)));
        let sizes = sizes.collect::<Result<_, _>>().map_err(placed)?;
        let built = scenario.fabric();
        let built =
            built.map_err(|error: ScenarioError| error.or_in(scenario.places(), "topology", 0))?;
        Ok(Self {
            topology: built.topology,
            gpus_per_node: built.gpus_per_node,
            dimensions: built.dimensions,
            host_numbers: built.host_numbers,
            sizes,
            transport_of_section: transports.of_section,
            warnings: built.warnings,
        })
    }

    /// Sizes of the packets of a section's flows.
    pub(crate) fn sizes_of(&self, section: usize) -> PacketSizes {
        let transport = self.transport_of_section.get(section);
        self.sizes[usize::from(transport.copied().unwrap_or(0))]
    }
}

/// An error about a transport, at its place in the scenario.
pub(crate) fn at_transport(
    scenario: &Scenario,
    transport: u8,
    error: ScenarioError,
) -> ScenarioError {
    let section = scenario.transports().first_section(transport);
    match section.filter(|_| transport > 0) {
        Some(section) => error.of_own_transport(scenario.places(), section),
        None => error.or_in(scenario.places(), "transport", 0),
    }
}

/// The total rate of each host's NICs. NICs of a scale-up fabric do not count, and a NIC that hosts share counts in equal parts.
pub(crate) fn rates_of_hosts(topology: &Topology) -> Vec<Rate> {
    let mut rates = vec![0; topology.machines() as usize];
    let mut sharers = vec![0u64; topology.switches.len()];
    let network = topology.cables.iter();
    let network = network.filter(|cable| !topology.is_scale_up(cable));
    let ends = |cable: &Cable| cable.ends.map(|end| (end, topology.switch_index(end)));
    let is_nic = |switch: usize| matches!(topology.switches[switch].role, SwitchRole::Nic(_));
    for cable in network.clone() {
        if let [(_, None), (_, Some(switch))] | [(_, Some(switch)), (_, None)] = ends(cable)
            && is_nic(switch)
        {
            sharers[switch] += 1;
        }
    }
    for cable in network {
        let ends = ends(cable);
        let nic = ends
            .iter()
            .find_map(|(_, switch)| switch.filter(|own| is_nic(*own)));
        let parts = nic.map_or(1, |switch| sharers[switch].max(1));
        for (end, switch) in ends {
            if switch.is_none() {
                rates[topology.machine_of(HostId(end.0)).index()] += cable.rate.as_bps() / parts;
            }
        }
    }
    // The computation of routes rejects a host without a link.
    rates
        .into_iter()
        .map(|bps| Rate::from_bps(bps.max(1)))
        .collect()
}

/// Context for the generator of a `[[workload]]` section.
pub(crate) fn build_context<'a>(
    scenario: &'a Scenario,
    prepared: &'a PreparedFabric,
    nic_rates: &'a [Rate],
    section: usize,
) -> BuildContext<'a> {
    BuildContext {
        hosts: prepared.topology.machines(),
        nic_rates,
        gpus_per_node: prepared.gpus_per_node,
        dimensions: &prepared.dimensions,
        host_numbers: prepared.host_numbers.as_deref(),
        seed: scenario.general.seed,
        section: section as u32,
        taken: BuildContext::ALL_FREE,
        base_dir: scenario.base_dir.as_deref(),
    }
}

/// The streamed flows of a scenario; `None` if the scenario needs a list of all flows.
///
/// # Errors
/// If the flows do not fit the scenario.
pub(crate) fn arrivals(
    scenario: &Scenario,
    prepared: &PreparedFabric,
) -> Result<Option<MergedArrivals>, ScenarioError> {
    let observe = &scenario.observe;
    let is_listed = observe.perfetto || !observe.pcap.is_empty();
    if is_listed || prepared.topology.may_be_apart() || scenario.workloads.is_empty() {
        return Ok(None);
    }
    let nic_rates = rates_of_hosts(&prepared.topology);
    let slowest = slowest_link(&prepared.topology);
    let mut sections: Vec<Arrivals> = Vec::new();
    for (section, settings) in scenario.workloads.iter().enumerate() {
        let placed = |error: ScenarioError| error.or_in(scenario.places(), "workload", section);
        let context = build_context(scenario, prepared, &nic_rates, section);
        let arrivals = settings.arrivals(&context);
        let Some(arrivals) = arrivals.map_err(|error| placed(ScenarioError::from(error)))? else {
            return Ok(None);
        };
        // Generating the flows twice is cheap, and no flow can then be invalid during the run.
        check_flows(arrivals.clone(), slowest, prepared.sizes_of(section)).map_err(placed)?;
        sections.push(arrivals);
    }
    let merged = MergedArrivals::new(sections);
    if u32::try_from(merged.clone().count()).is_err() {
        let error = ScenarioError::from(WorkloadError::TooMany { what: "flows" });
        return Err(error.or_in(scenario.places(), "workload", 0));
    }
    Ok(Some(merged))
}

/// Classes beside those of the listed flows: the classes that the scenario reserves, and the data class if flows are streamed.
pub(crate) fn further_classes(scenario: &Scenario, one_by_one: bool) -> ClassSet {
    let mut classes = scenario.reserved_classes();
    if one_by_one {
        classes.insert(Class::DATA);
    }
    classes
}
