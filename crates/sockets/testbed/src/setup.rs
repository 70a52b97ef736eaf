//! Setup of a bed and of its simulation, derived from a scenario.
//!
//! Keys of the scenario hold for both. The software determines the rest: packet sizes, number of paths, timers. These values become keys of
//! the simulated scenario, and the results list them.

use crate::delays::{LINK_DELAY, LinkDelays, NETWORK, fabric, transmission};
use crate::fault::Fault;
use crate::plan::{ETHERNET, LinkImpairment, PortFacts, Switches};
use clearway_fabric::topology::{LinkId, Topology};
use clearway_lab::{Assembly, FlowSpec, Laboratory, Scenario};
use clearway_transport::congestion::ControllerSettings;
use clearway_transport::congestion::feedback::FeedbackSettings;
use clearway_transport::paths::SelectorSettings;
use clearway_transport::{Profile, Reliability};
use clearway_udp::settings::{JUMBO_DATAGRAM, MAX_UNPROVEN_DATAGRAM, MOST_PATHS};
use clearway_udp::{Security, Settings, Transport};
use clearway_units::{HostId, Rate, Span, Time};
use clearway_workload::Start;
use std::collections::{BTreeMap, BTreeSet};

/// Default queue, and default thresholds between which it marks, in full frames.
const QUEUE: [(&str, u64); 3] = [("queue", 64), ("ecn.kmin", 8), ("ecn.kmax", 24)];

/// Most flows of a run, and of one sender: each is a connection, with a socket for each path.
const MOST_FLOWS: usize = 1024;
const MOST_FLOWS_OF_HOST: usize = 64;
/// Longest message, which is in memory at both ends.
const LONGEST_FLOW: u64 = 256 << 20;
/// Longest datagram of a bed.
const LONGEST_DATAGRAM: u64 = JUMBO_DATAGRAM as u64;

/// A scenario that a bed can carry.
#[derive(Debug, Clone)]
pub struct BedSetup {
    source: String,
    overrides: Vec<String>,
    given: BTreeSet<String>,
    delays: LinkDelays,
    /// The scenario of the bed.
    pub scenario: Scenario,
    /// The assembled scenario.
    pub assembly: Assembly,
    /// Switches that forward.
    pub switches: Switches,
    /// Settings of all connections, except the key.
    pub settings: Settings,
    /// Keys that the scenario does not give, from the software: `KEY=VALUE`.
    pub software: Vec<String>,
}

impl BedSetup {
    /// Parses a scenario and checks that a bed can carry it.
    ///
    /// # Errors
    /// If a bed cannot carry the scenario.
    pub fn new(
        laboratory: &Laboratory,
        source: &str,
        overrides: &[String],
        switches: Switches,
    ) -> Result<Self, Fault> {
        let user = laboratory.load(source, overrides)?;
        let settings = user.settings().into_iter().filter(|setting| setting.given);
        let given: BTreeSet<String> = settings.map(|setting| setting.path()).collect();
        check_fabric(&user)?;
        // Default queues relative to round trips cannot hold a packet at scaled rates.
        let mut queues = Keys::new(&given);
        for (key, frames) in QUEUE {
            queues.add(
                &format!("switch.{key}"),
                format!("\"{}B\"", frames * LONGEST_DATAGRAM),
            );
        }
        let usual = Settings::new(Security::Insecure)
            .profile(Span::ZERO)
            .network;
        queues.add("transport.payload", format!("\"{}B\"", usual.payload));
        add_timeouts(&mut queues, &user);
        let first: Vec<String> = overrides.iter().cloned().chain(queues.keys).collect();
        let user = laboratory.load(source, &first)?;
        let assembly = Assembly::new(&user)?;
        check_flows(&assembly)?;
        let connection = connection(&user, &assembly, &given, switches)?;
        let mut setup = Self {
            source: source.into(),
            overrides: overrides.to_vec(),
            given,
            delays: LinkDelays::read(laboratory, source, overrides)?,
            scenario: user,
            assembly,
            switches,
            settings: connection,
            software: Vec::new(),
        };
        setup.software = setup.of_software()?;
        (setup.scenario, setup.assembly) = setup.with(laboratory, &setup.provisional(&[]))?;
        Ok(setup)
    }

    /// The scenario and further keys.
    fn with(
        &self,
        laboratory: &Laboratory,
        further: &[String],
    ) -> Result<(Scenario, Assembly), Fault> {
        let all: Vec<String> = self.overrides.iter().chain(further).cloned().collect();
        let scenario = laboratory.load(&self.source, &all)?;
        let assembly = Assembly::new(&scenario)?;
        Ok((scenario, assembly))
    }

    /// All keys from the software, with timers that fit any round trip, until it is known.
    fn provisional(&self, further: &[String]) -> Vec<String> {
        let mut timers = Keys::new(&self.given);
        add_timeouts(&mut timers, &self.scenario);
        let all = self.software.iter().chain(further).cloned();
        all.chain(timers.keys).collect()
    }

    /// Header bytes in front of the bytes that the connection counts: IP and UDP, and Ethernet where present.
    fn lower_header(&self) -> u32 {
        match self.switches {
            Switches::Kernel => ETHERNET,
            Switches::Soft => 0,
        }
    }

    /// Bytes of a full frame.
    fn frame(&self) -> u64 {
        u64::from(u32::from(self.settings.datagram) + NETWORK + self.lower_header())
    }

    /// Keys that do not depend on round trips.
    fn of_software(&self) -> Result<Vec<String>, Fault> {
        let network = self.settings.profile(Span::ZERO).network;
        let lower = self.lower_header();
        let mut keys = Keys::new(&self.given);
        keys.add("transport.payload", format!("\"{}B\"", network.payload));
        keys.add(
            "transport.header",
            format!("\"{}B\"", network.header + lower),
        );
        keys.add(
            "transport.ack-size",
            format!("\"{}B\"", network.ack + lower),
        );
        if self.settings.transport == Transport::Strack {
            keys.add("transport.max-paths", self.settings.paths.to_string());
            keys.add("transport.min-paths", self.settings.paths.to_string());
        }
        // Acknowledgements wait behind data, as in any network without classes.
        keys.add("switch.control-priority", "false".into());
        let round_trip = self.assembly.network.propagation_rtt;
        let bdp = self.settings.line_rate.bytes_in(round_trip);
        let ports = &self.scenario.switch.ports;
        let sizes = [ports.queue, ports.kmin, ports.kmax];
        for ((key, frames), size) in QUEUE.into_iter().zip(sizes) {
            let key = format!("switch.{key}");
            let bytes = match self.given.contains(&key) {
                // Absolute, because round trips differ between the bed and the simulation.
                true => size.resolve(self.settings.line_rate, bdp).as_u64(),
                false => frames * self.frame(),
            };
            if bytes < self.frame() {
                return Err(Fault::new(
                    format!(
                        "`{key}` comes to {bytes} bytes, less than a frame of {} bytes",
                        self.frame()
                    ),
                    format!(
                        "give an absolute size, such as `{key} = \"{}KB\"`",
                        frames * 3 / 2
                    ),
                ));
            }
            keys.set(&key, format!("\"{bytes}B\""));
        }
        Ok(keys.keys)
    }

    /// The scenario to simulate for a measured base round trip, and the keys that follow from the round trip.
    ///
    /// # Errors
    /// If the scenario cannot be assembled with these keys.
    pub fn simulated(
        &self,
        laboratory: &Laboratory,
        round_trip: Span,
    ) -> Result<(Assembly, Vec<String>), Fault> {
        let mut keys = Keys::new(&self.given);
        if let Some(delay) = self.link_delay(round_trip) {
            keys.add(LINK_DELAY, format!("\"{}ps\"", delay.as_ps()));
        }
        let (_, assembly) = self.with(laboratory, &self.provisional(&keys.keys))?;
        let propagation = assembly.network.propagation_rtt;
        let profile = self.settings.profile(round_trip);
        add_timers(&mut keys, &profile, propagation);
        let mut all = self.software.clone();
        all.append(&mut keys.keys);
        let (_, assembly) = self.with(laboratory, &all)?;
        Ok((assembly, all))
    }

    /// Delay of the links without a delay in the scenario, at which the simulated round trip of a handshake equals the measured one; `None`
    /// if there are no such links.
    fn link_delay(&self, round_trip: Span) -> Option<Span> {
        let assembly = &self.assembly;
        let time = |link, bytes| match self.switches {
            Switches::Soft => transmission(&assembly.topology, link, bytes),
            // An idle `tbf` passes a packet immediately.
            Switches::Kernel => Span::ZERO,
        };
        self.delays.calibrate(assembly, round_trip, &time)
    }

    /// Facts for the ports of a bed.
    pub fn ports(&self) -> PortFacts {
        let frame = u32::from(self.settings.datagram) + NETWORK;
        let topology = &self.assembly.topology;
        let links = (0..topology.cables.len() as u32 * 2).map(LinkId);
        let impairment = |link: LinkId| {
            let cable = &topology.cables[link.cable()];
            // `netem` does not know bits: a packet counts as a full frame.
            let bits = (self.frame() * 8) as i32;
            let corrupt = 1.0 - (1.0 - cable.bit_error_rate).powi(bits);
            LinkImpairment {
                delay: self.delays.given(link),
                loss: cable.packet_loss + (1.0 - cable.packet_loss) * corrupt,
            }
        };
        PortFacts {
            mtu: frame.max(1500),
            queue: self.assembly.network.size(self.scenario.switch.ports.queue),
            impairments: links.map(impairment).collect(),
        }
    }
}

impl Switches {
    /// Switches that a scenario needs: in user space if packets are marked, delayed, or lost on the way.
    ///
    /// # Errors
    /// If the scenario cannot be read.
    pub fn read(
        laboratory: &Laboratory,
        source: &str,
        overrides: &[String],
    ) -> Result<Self, Fault> {
        let scenario = laboratory.load(source, overrides)?;
        if scenario.switch.ports.ecn {
            return Ok(Self::Soft);
        }
        let topology = fabric(&scenario)?;
        let delays = LinkDelays::read(laboratory, source, overrides)?;
        let is_impaired = |link: LinkId| {
            let cable = &topology.cables[link.cable()];
            let loses = cable.packet_loss > 0.0 || cable.bit_error_rate > 0.0;
            loses || cable.dead_from != Time::NEVER || !delays.given(link).is_zero()
        };
        Ok(match topology.links_up().any(is_impaired) {
            true => Self::Soft,
            false => Self::Kernel,
        })
    }
}

/// Keys from the software. `add` skips keys that the scenario gives; `set` replaces them.
struct Keys<'a> {
    given: &'a BTreeSet<String>,
    keys: Vec<String>,
}

impl<'a> Keys<'a> {
    fn new(given: &'a BTreeSet<String>) -> Self {
        Self {
            given,
            keys: Vec::new(),
        }
    }

    fn add(&mut self, key: &str, value: String) {
        if !self.given.contains(key) {
            self.set(key, value);
        }
    }

    fn set(&mut self, key: &str, value: String) {
        self.keys.push(format!("{key}={value}"));
    }
}

/// Adds timeouts that are longer than any round trip.
fn add_timeouts(keys: &mut Keys<'_>, scenario: &Scenario) {
    keys.add("transport.rto", "\"1s\"".into());
    if let Reliability::GoBackN(_) = scenario.transport.reliability {
        keys.add("transport.rto-max", "\"8s\"".into());
    }
}

/// Timers of a connection, as keys.
fn add_timers(keys: &mut Keys<'_>, profile: &Profile, propagation: Span) {
    let ps = |span: Span| format!("\"{}ps\"", span.as_ps());
    match &profile.reliability {
        Reliability::SelectiveRepeat(repeat) => {
            let scale = profile.network.propagation_rtt.as_ps() as f64;
            let times = |factor: f64| format!("{:?}", factor * scale / propagation.as_ps() as f64);
            keys.add("transport.rto", ps(repeat.timeout));
            keys.add("transport.probe-after", times(repeat.probe_after));
            keys.add("transport.probe-rtt-limit", times(repeat.probe_rtt_limit));
            if let Some(bitmap) = repeat.bitmap {
                keys.add("transport.bitmap", bitmap.to_string());
            }
        }
        Reliability::GoBackN(repeat) => {
            keys.add("transport.rto", ps(repeat.timeout));
            keys.add("transport.rto-max", ps(repeat.timeout_max));
        }
    }
}

fn check_fabric(scenario: &Scenario) -> Result<(), Fault> {
    if scenario.transports().settings.len() > 1 {
        return Err(Fault::new(
            "sections of the workload have their own transports (`workload.transport`), but all hosts of a test bed use the same one",
            "give all sections the transport of `[transport]`, or simulate the scenario alone with `clearway run`",
        ));
    }
    if scenario.switch.buffer.is_some() {
        return Err(Fault::new(
            "this scenario has lossless switches, and a test bed has no pause frames",
            "use `switch.kind = \"lossy\"`",
        ));
    }
    // The assembly rejects a fabric that cannot be built.
    let built = scenario.fabric();
    let specs = built.iter().flat_map(|built| &built.topology.switches);
    let mut rules = specs.map(|spec| scenario.switch.ports.path_choice(spec.role));
    if rules.any(|rule| rule.is_local()) {
        return Err(Fault::new(
            "switches or NICs of this scenario choose ports by their queues, but those of a test bed use a hash",
            "use `switch.routing = \"ecmp\"`, and with NICs of several ports `topology.port-choice = \"hash\"`",
        ));
    }
    if !scenario.events.is_empty() {
        return Err(Fault::new(
            "this scenario has link events, which a test bed does not support",
            "leave the `[[event]]` sections out; a link that dies for good is `dead-from=300ms` in `topology.links`",
        ));
    }
    Ok(())
}

fn check_flows(assembly: &Assembly) -> Result<(), Fault> {
    let flows = &assembly.workload.flows;
    if flows.is_empty() {
        return Err(Fault::new(
            "this scenario has no flows",
            "add a `[[workload]]`",
        ));
    }
    if flows.iter().any(|flow| start_of(flow).is_none()) {
        return Err(Fault::new(
            "flows of this scenario wait for others, or belong to jobs, and hosts of a test bed begin theirs by the clock",
            "use workloads such as \"permutation\", \"incast\", \"poisson\" or \"flows\"",
        ));
    }
    let mut of_host: BTreeMap<HostId, usize> = BTreeMap::new();
    for flow in flows {
        *of_host.entry(flow.src).or_default() += 1;
    }
    let most = of_host.values().max().copied().unwrap_or(0);
    if flows.len() > MOST_FLOWS || most > MOST_FLOWS_OF_HOST {
        return Err(Fault::new(
            format!(
                "{} flows, at most {most} of one host: each is a connection, and a test bed has {MOST_FLOWS} of them, \
                 {MOST_FLOWS_OF_HOST} for each host",
                flows.len()
            ),
            "use fewer and longer flows",
        ));
    }
    let longest = flows
        .iter()
        .map(|flow| flow.bytes.as_u64())
        .max()
        .unwrap_or(0);
    if longest > LONGEST_FLOW {
        return Err(Fault::new(
            format!(
                "a flow has {longest} bytes, and messages of a test bed have at most {LONGEST_FLOW}"
            ),
            "use shorter messages: at scaled rates they last as long",
        ));
    }
    Ok(())
}

/// Start of a flow by the clock.
pub(crate) fn start_of(flow: &FlowSpec) -> Option<Time> {
    match flow.start {
        Start::At(time) => Some(time),
        _ => None,
    }
}

/// Settings of the connections that carry the scenario's transport.
fn connection(
    scenario: &Scenario,
    assembly: &Assembly,
    given: &BTreeSet<String>,
    switches: Switches,
) -> Result<Settings, Fault> {
    let profile = scenario.transport.profile(assembly.network);
    let (transport, paths) = transport(&profile, given)?;
    let mut settings = Settings::new(Security::Insecure);
    settings.transport = transport;
    settings.paths = paths;
    settings.ecn = switches == Switches::Soft && scenario.switch.ports.ecn;
    settings.line_rate = slowest_host(&assembly.topology);
    settings.datagram = MAX_UNPROVEN_DATAGRAM;
    if given.contains("transport.payload") {
        let overhead = u32::from(settings.datagram) - settings.profile(Span::ZERO).network.payload;
        let datagram = u64::from(assembly.network.payload + overhead);
        if !(512..=LONGEST_DATAGRAM).contains(&datagram) {
            return Err(Fault::new(
                format!(
                    "packets of {} bytes of payload make datagrams of {datagram}, but datagrams of a test bed have 512 to {LONGEST_DATAGRAM}",
                    assembly.network.payload
                ),
                "leave `transport.payload` out, and it fits Ethernet",
            ));
        }
        settings.datagram = datagram as u16;
    }
    let longest = assembly
        .workload
        .flows
        .iter()
        .map(|flow| flow.bytes.as_u64())
        .max();
    settings.receive_memory = settings.receive_memory.max(2 * longest.unwrap_or(0));
    settings.send_memory = settings.receive_memory;
    Ok(settings)
}

fn slowest_host(topology: &Topology) -> Rate {
    topology.slowest_host_rate().unwrap_or(Rate::from_gbps(1))
}

/// The UDP transport that matches a profile, and its paths.
fn transport(profile: &Profile, given: &BTreeSet<String>) -> Result<(Transport, u8), Fault> {
    let controller = &profile.controller;
    let usual = ControllerSettings::named(controller.name()).as_ref() == Some(controller);
    if usual
        && profile.variants.is_empty()
        && let Reliability::SelectiveRepeat(_) = profile.reliability
        && controller.name() == "strack"
        && let SelectorSettings::Adaptive(adaptive) = &profile.selector
    {
        let paths = match given.contains("transport.max-paths") {
            true => adaptive.max_paths.get(),
            false => 8,
        };
        return match u8::try_from(paths) {
            Ok(paths) if paths <= MOST_PATHS => Ok((Transport::Strack, paths)),
            _ => Err(Fault::new(
                format!(
                    "{paths} paths, each with a socket, and connections have at most {MOST_PATHS}"
                ),
                "use `transport.max-paths = 8`",
            )),
        };
    }
    let interval = FeedbackSettings::named("interval");
    if usual
        && let Reliability::GoBackN(repeat) = &profile.reliability
        && repeat.queue_pairs.get() == 1
        && controller.name() == "dcqcn"
        && profile.selector.name() == "single"
        && Some(&profile.feedback) == interval.as_ref()
    {
        return Ok((Transport::GoBackN, 1));
    }
    Err(Fault::new(
        format!(
            "the software has no transport of {}, {}, {} and {} with these settings",
            profile.reliability.name(),
            controller.name(),
            profile.selector.name(),
            profile.feedback.name()
        ),
        "use `transport.kind = \"strack\"`, or \"rocev2\", and leave its parts and the settings of the controller as they are",
    ))
}
