//! The files that a configuration names.

use super::fault::at;
use crate::error::ScenarioError;
use crate::graph::from_hpcc;
use crate::import::simai_files::SimaiFiles;
use clearway_fabric::topology::LinkId;
use clearway_formats::{
    HpccConfig, HpccHosts, HpccTopology, HpccValue, parse_hpcc_flows, parse_hpcc_topology,
    read_text,
};
use clearway_input::InputKind;
use clearway_units::{Rate, Time};
use clearway_workload::Start;
use std::collections::BTreeMap;
use std::path::Path;

/// Topology and traffic of a configuration.
#[derive(Debug)]
pub(super) struct Files {
    /// Path of the topology from the current folder.
    pub(super) topology_path: String,
    /// Path of the flows from the current folder; empty for SimAI.
    pub(super) flows_path: String,
    /// The topology, if its file exists.
    pub(super) topology: Option<HpccTopology>,
    /// NVSwitches, the first of the switches.
    nvswitches: u32,
    /// First start of a flow, if the files exist.
    pub(super) first_start: Option<Time>,
}

impl Files {
    pub(super) fn read(
        path: &str,
        config: &HpccConfig,
        simai: Option<SimaiFiles<'_>>,
    ) -> Result<Self, ScenarioError> {
        let named = |key| named(path, config, key);
        let (topology_path, flows_path) = match simai {
            Some(files) => (files.topology.to_owned(), String::new()),
            None => (named("TOPOLOGY_FILE")?, named("FLOW_FILE")?),
        };
        let mut files = Self {
            topology: None,
            nvswitches: 0,
            first_start: None,
            topology_path,
            flows_path,
        };
        if Path::new(&files.topology_path).exists() {
            let text = read_text(Path::new(&files.topology_path), InputKind::TOPOLOGY)?;
            let topology = parse_hpcc_topology(&files.topology_path, &text)?;
            files.nvswitches = nvswitches(&text);
            files.first_start = files.first_start(&topology)?;
            files.topology = Some(topology);
        }
        Ok(files)
    }

    fn first_start(&self, topology: &HpccTopology) -> Result<Option<Time>, ScenarioError> {
        let path = Path::new(&self.flows_path);
        if self.flows_path.is_empty() || !path.exists() {
            return Ok(None);
        }
        let text = read_text(path, InputKind::FLOWS)?;
        let hosts = HpccHosts {
            count: topology.hosts,
            numbers: topology.host_numbers.as_deref(),
        };
        let (workload, _) = parse_hpcc_flows(&self.flows_path, &text, hosts)?;
        let starts = workload.flows.iter().filter_map(|flow| match flow.start {
            Start::At(time) => Some(time),
            Start::On(_) | Start::Posted(_) => None,
        });
        Ok(starts.min())
    }

    /// Number of switch ports of each rate. Ports of NVSwitches do not count: SimAI marks no packets there.
    pub(super) fn ports(&self) -> Option<BTreeMap<Rate, u64>> {
        let topology = self.topology.as_ref()?;
        let marking = topology.hosts.saturating_add(self.nvswitches);
        let mut ports = BTreeMap::new();
        for link in &topology.links {
            let ends = link.ends.iter().filter(|end| **end >= marking).count() as u64;
            if ends > 0 {
                *ports.entry(link.rate).or_insert(0) += ends;
            }
        }
        Some(ports)
    }

    /// True if the topology has NVSwitches.
    pub(super) fn has_nvswitches(&self) -> bool {
        self.nvswitches > 0
    }

    /// Name of the link between two nodes of the file.
    pub(super) fn link_name(&self, ends: [u32; 2]) -> Option<String> {
        let topology = self.topology.as_ref()?;
        let index = |node: u32| -> Option<u32> {
            if let Some(switch) = topology.switches.iter().position(|number| *number == node) {
                return Some(topology.hosts + switch as u32);
            }
            match &topology.host_numbers {
                Some(numbers) => numbers.binary_search(&node).ok().map(|host| host as u32),
                None => (node < topology.hosts).then_some(node),
            }
        };
        let (a, b) = (index(ends[0])?, index(ends[1])?);
        // The simulator uses the last of several links.
        let cable = topology
            .links
            .iter()
            .rposition(|link| link.ends == [a, b] || link.ends == [b, a])?;
        // As the scenario builds it with go-back-N; a fabric that cannot be built is refused there.
        let graph = from_hpcc(topology).ok()?.split_hosts();
        Some(graph.link_name(LinkId::from_end(cable, 0)))
    }
}

/// The path of `key` from the current folder.
fn named(path: &str, config: &HpccConfig, key: &'static str) -> Result<String, ScenarioError> {
    let Some(setting) = config.get(key) else {
        let fix =
            format!("write `{key}` into {path}; for SimAI's files use `clearway import simai`");
        return Err(ScenarioError::about(
            &[],
            format!("{path}: there is no `{key}`"),
            fix,
        ));
    };
    match &setting.value {
        HpccValue::Path(name) => Ok(located(name, path)),
        _ => Err(at(path, setting, "this is no path", "write a path")),
    }
}

/// The path of a file that a configuration names. The simulator looks in its current folder, usually the folder above the configuration's:
/// `mix/topology.txt` of `simulation/mix/config.txt`.
fn located(name: &str, config: &str) -> String {
    if Path::new(name).exists() {
        return name.to_owned();
    }
    let folder = Path::new(config).parent().unwrap_or(Path::new(""));
    let above = folder.parent().unwrap_or(Path::new(".."));
    let found = [folder, above].map(|folder| folder.join(name));
    let found = found.into_iter().find(|path| path.exists());
    let found = found.and_then(|path| path.to_str().map(str::to_owned));
    found.unwrap_or_else(|| name.to_owned())
}

/// Number of NVSwitches in the first line of SimAI's topology.
fn nvswitches(text: &str) -> u32 {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let lines = text
        .lines()
        .map(|line| line.split('#').next().unwrap_or(""));
    let words = lines.map(|line| line.split_whitespace().collect::<Vec<_>>());
    let first = words.into_iter().find(|words| !words.is_empty());
    match first.as_deref() {
        Some([_, _, nvswitches, _, _, _]) => nvswitches.parse().unwrap_or(0),
        _ => 0,
    }
}
