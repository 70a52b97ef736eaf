//! Simulation against reality: a scenario in the simulator and on a test bed, side by side, as `results.json` and as cells of tables.

use clearway_units::statistics::nearest_rank;
use serde::Serialize;

/// Version of `results.json`.
pub const SCHEMA: u32 = 1;
/// The name of the file in a result folder.
pub const FILE_NAME: &str = "results.json";
/// A scenario, simulated and measured.
#[derive(Debug, Clone, Default, Serialize)]
pub struct TestbedRecord {
    /// [`SCHEMA`].
    pub schema: u32,
    /// Version of the program.
    pub version: String,
    /// Revision of the program.
    pub revision: String,
    /// Command that asked for it.
    pub command: String,
    /// Name of the scenario.
    pub scenario: String,
    /// Seed of the scenario.
    pub seed: u64,
    /// Description of the fabric, in a few words.
    pub fabric: String,
    /// Kind of switches of the bed: "kernel" or "soft".
    pub switches: &'static str,
    /// Transport: "strack" or "rocev2".
    pub transport: &'static str,
    /// Paths of each connection.
    pub paths: u8,
    /// Rate of a host's link.
    pub line_rate_gbps: f64,
    /// Base round trips.
    pub round_trip: RoundTrips,
    /// Keys of the simulated scenario, as `KEY=VALUE`, that come from the software and not from the scenario.
    pub software: Vec<String>,
    /// Flows, in order of their numbers.
    pub flows: Vec<TestbedFlow>,
    /// Links between switches.
    pub links: Vec<TestbedLink>,
    /// Hosts, by number.
    pub hosts: Vec<TestbedHost>,
    /// CPU time of the whole machine during the flows, for all processes.
    pub machine_cpu_seconds: f64,
    /// Differences between the two sides, with their reasons.
    pub differences: Vec<Difference>,
    /// Windows of flows.
    pub windows: Vec<TestbedCurve>,
    /// Rates of data on the paths of measured flows.
    pub path_rates: Vec<TestbedCurve>,
    /// Rates of links.
    pub link_rates: Vec<TestbedCurve>,
}

/// Base round trips, without queues.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct RoundTrips {
    /// Minimum over the handshakes with the most links.
    pub measured_least_us: f64,
    /// Median over the connections.
    pub measured_median_us: f64,
    /// Round trip of a handshake's datagrams in the simulated fabric.
    pub simulated_us: f64,
    /// True if the delays of the simulated links come from the measured round trip.
    pub calibrated: bool,
}

/// Counters of a flow.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct SideCounts {
    /// Data packets sent, retransmissions included.
    pub packets: u64,
    /// Retransmissions among the data packets.
    pub retransmitted: u64,
    /// Acknowledgements that echoed a mark.
    pub marked: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
}

/// A path of a measured flow.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct PathUsed {
    /// Data packets and probes sent.
    pub packets: u64,
    /// Acknowledgements with a mark.
    pub marked: u64,
    /// Number of times that the path was declared dead.
    pub downs: u64,
}

/// A flow in the simulator and on the test bed.
#[derive(Debug, Clone, Default, Serialize)]
pub struct TestbedFlow {
    /// Number of the flow.
    pub flow: u32,
    /// Host that sends.
    pub src: u32,
    /// Host that receives.
    pub dst: u32,
    /// Payload.
    pub bytes: u64,
    /// Planned start time.
    pub start_us: f64,
    /// Delay of the start on the bed.
    pub late_us: f64,
    /// Completion time in the simulator; none if it did not finish.
    pub simulated_us: Option<f64>,
    /// Completion time on the bed: from the start to the last byte acknowledged.
    pub measured_us: Option<f64>,
    /// Counters in the simulator.
    pub simulated: SideCounts,
    /// Counters on the bed.
    pub measured: SideCounts,
    /// Paths on the bed.
    pub paths: Vec<PathUsed>,
    /// Number of deliveries of the message on the bed.
    pub deliveries: u32,
    /// True if every delivery had the bytes that were sent.
    pub intact: bool,
    /// Reason why the flow did not finish on the bed.
    pub error: Option<String>,
}

impl TestbedFlow {
    /// Measured over simulated completion time.
    pub fn ratio(&self) -> Option<f64> {
        Some(self.measured_us? / self.simulated_us?)
    }

    /// Paths that carried data.
    pub fn paths_used(&self) -> usize {
        self.paths.iter().filter(|path| path.packets > 0).count()
    }
}

/// A link in the simulator and on the test bed.
#[derive(Debug, Clone, Default, Serialize)]
pub struct TestbedLink {
    /// Name of the link.
    pub link: String,
    /// Bytes in the simulator.
    pub simulated_bytes: u64,
    /// Bytes on the bed, where they are counted.
    pub measured_bytes: Option<u64>,
    /// Packets that the simulated link lost or its queue dropped.
    pub simulated_drops: u64,
    /// Marks of its simulated queue.
    pub simulated_marks: u64,
    /// Packets lost on the bed, where they are counted.
    pub measured_drops: Option<u64>,
    /// Marks on the bed, where they are counted.
    pub measured_marks: Option<u64>,
}

/// Cost of a host's process.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct TestbedHost {
    /// Number of the host.
    pub host: u32,
    /// CPU time from the start to the end of all flows.
    pub cpu_seconds: f64,
    /// Wall time from the start to the end of all flows.
    pub wall_seconds: f64,
}

/// A difference between simulation and reality.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// The differing quantity, in a few words.
    pub what: String,
    /// The facts and their consequences.
    pub facts: String,
}

/// Side of a curve.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// In the simulator.
    Simulated,
    /// On the bed.
    Measured,
}

impl Side {
    /// Name of the side.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Simulated => "simulated",
            Self::Measured => "measured",
        }
    }
}

/// A curve over time. The unit follows from the list of the curve: bytes, or bits per second.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TestbedCurve {
    /// Name of the flow, path or link.
    pub name: String,
    /// Place of the flow, path or link in its list, which selects its colour.
    pub index: usize,
    /// Side of the curve.
    pub side: Side,
    /// Times after the start.
    pub at_us: Vec<f64>,
    /// Values.
    pub values: Vec<f64>,
}

/// Completion times of flows of similar size.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TestbedClass {
    /// Sizes, in words.
    pub name: String,
    /// Flows that completed on both sides.
    pub flows: usize,
    /// Median, 99th percentile and maximum, simulated.
    pub simulated_us: [f64; 3],
    /// The same, measured.
    pub measured_us: [f64; 3],
}

impl TestbedRecord {
    /// True if every flow finished on the bed, and was delivered exactly once and intact.
    pub fn is_sound(&self) -> bool {
        let sound =
            |flow: &TestbedFlow| flow.measured_us.is_some() && flow.deliveries == 1 && flow.intact;
        self.flows.iter().all(sound)
    }

    /// Number of flows that were delivered more than once, or with other bytes.
    pub fn broken(&self) -> usize {
        let broken = |flow: &&TestbedFlow| flow.deliveries > 1 || !flow.intact;
        self.flows.iter().filter(broken).count()
    }

    /// Median of measured over simulated completion times.
    pub fn median_ratio(&self) -> Option<f64> {
        let mut ratios: Vec<f64> = self.flows.iter().filter_map(TestbedFlow::ratio).collect();
        ratios.sort_by(f64::total_cmp);
        nearest_rank(&ratios, 500)
    }

    /// Completion times of all flows, and by decade of sizes if there are several.
    pub fn classes(&self) -> Vec<TestbedClass> {
        let done: Vec<&TestbedFlow> = self.flows.iter().filter(|f| f.ratio().is_some()).collect();
        let decades = [0, 10_000, 100_000, 1_000_000, 10_000_000, u64::MAX];
        let names = [
            "below 10 kB",
            "10 to 100 kB",
            "100 kB to 1 MB",
            "1 to 10 MB",
            "10 MB and more",
        ];
        let mut classes = Vec::new();
        for (range, name) in decades.windows(2).zip(names) {
            let own = |flow: &&&TestbedFlow| (range[0]..range[1]).contains(&flow.bytes);
            let flows: Vec<_> = done.iter().filter(own).copied().collect();
            classes.extend(TestbedClass::from_flows(name, &flows));
        }
        if classes.len() > 1 {
            classes.extend(TestbedClass::from_flows("all", &done));
        }
        classes
    }

    /// `results.json`.
    pub fn to_json(&self) -> String {
        #[derive(Serialize)]
        struct Document<'a> {
            #[serde(flatten)]
            record: &'a TestbedRecord,
            completion: Vec<TestbedClass>,
            median_ratio: Option<f64>,
            sound: bool,
        }
        let document = Document {
            record: self,
            completion: self.classes(),
            median_ratio: self.median_ratio(),
            sound: self.is_sound(),
        };
        serde_json::to_string_pretty(&document).unwrap_or_default() + "\n"
    }

    /// Links that carried data, each with its share of the traffic that leaves the same switch.
    pub fn link_rows(&self) -> Vec<Vec<String>> {
        let from = |link: &TestbedLink| link.link.split('-').next().unwrap_or("").to_owned();
        let used = |link: &&TestbedLink| {
            link.simulated_bytes > 0 || link.measured_bytes.is_some_and(|bytes| bytes > 0)
        };
        let row = |link: &TestbedLink| {
            let beside = || self.links.iter().filter(|other| from(other) == from(link));
            let simulated: u64 = beside().map(|other| other.simulated_bytes).sum();
            let measured: u64 = beside().filter_map(|other| other.measured_bytes).sum();
            let mb = |bytes: u64| format!("{:.2}", bytes as f64 / 1e6);
            let share = |part: u64, all: u64| match all {
                0 => "-".to_owned(),
                all => format!("{:.0} %", part as f64 / all as f64 * 100.0),
            };
            vec![
                link.link.clone(),
                mb(link.simulated_bytes),
                share(link.simulated_bytes, simulated),
                link.measured_bytes.map_or("-".into(), mb),
                link.measured_bytes
                    .map_or("-".into(), |own| share(own, measured)),
                both(Some(link.simulated_drops), link.measured_drops),
                both(Some(link.simulated_marks), link.measured_marks),
            ]
        };
        self.links.iter().filter(used).map(row).collect()
    }
}

/// Simulated and measured number in one cell.
fn both(simulated: Option<u64>, measured: Option<u64>) -> String {
    let number = |value: Option<u64>| value.map_or("-".to_owned(), |value| value.to_string());
    format!("{} / {}", number(simulated), number(measured))
}

fn ms(us: Option<f64>) -> String {
    us.map_or("not done".into(), |us| format!("{:.2}", us / 1000.0))
}

impl TestbedFlow {
    /// Cells of the flow's row: number, hosts, size, simulated and measured time, their ratio, retransmissions, marks, paths.
    pub fn cells(&self) -> Vec<String> {
        let (simulated, measured) = (&self.simulated, &self.measured);
        vec![
            self.flow.to_string(),
            format!("{} to {}", self.src, self.dst),
            format!("{:.2}", self.bytes as f64 / 1e6),
            ms(self.simulated_us),
            ms(self.measured_us),
            self.ratio()
                .map_or("-".into(), |ratio| format!("{ratio:.3}")),
            both(Some(simulated.retransmitted), Some(measured.retransmitted)),
            both(Some(simulated.marked), Some(measured.marked)),
            self.paths_used().to_string(),
        ]
    }
}

impl TestbedClass {
    fn from_flows(name: &str, flows: &[&TestbedFlow]) -> Option<Self> {
        let of = |time: fn(&TestbedFlow) -> Option<f64>| {
            let mut times: Vec<f64> = flows.iter().filter_map(|flow| time(flow)).collect();
            times.sort_by(f64::total_cmp);
            [500, 990, 1000].map(|rank| nearest_rank(&times, rank).unwrap_or(0.0))
        };
        (!flows.is_empty()).then(|| Self {
            name: name.into(),
            flows: flows.len(),
            simulated_us: of(|flow| flow.simulated_us),
            measured_us: of(|flow| flow.measured_us),
        })
    }

    /// Cells of the class's row: name, number of flows, simulated and measured times, ratio of the medians.
    pub fn cells(&self) -> Vec<String> {
        let mut cells = vec![self.name.clone(), self.flows.to_string()];
        let times = self.simulated_us.iter().chain(&self.measured_us);
        cells.extend(times.map(|us| format!("{:.2}", us / 1000.0)));
        cells.push(format!("{:.3}", self.measured_us[0] / self.simulated_us[0]));
        cells
    }
}
