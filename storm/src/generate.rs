//! Random scenarios.

mod scaleup;

use crate::draft::{Draft, Entry, Section};
use crate::files::{self, Use};
use crate::generated::GeneratedScenario;
use crate::named_parameters::{NamedParameters, covered, covered_by_section};
use crate::random_choices::RandomChoices;
use crate::schema::Schema;
use crate::typical_settings::{self, PACKETS, SCALE_UP, StressFactors};
use crate::values::{self, text};
use clearway_lab::scenario::Sampling;
use clearway_lab::{
    Assembly, Experiment, Laboratory, LinkId, ScaleupAssembly, ScaleupScenario, Scenario,
    ScenarioError, SourceLocation,
};
use clearway_units::{Bytes, Parameter, ParameterInfo, Span, Value, ValueDomain};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;

/// Maximum number of data packets that all hosts together can send at their full rates by the end of a run.
const MOST_PACKETS: u128 = 2_000_000;
/// Maximum number of rounds of the engine in a run.
const MOST_ROUNDS: u64 = 300_000;
/// Maximum number of points of all curves of a run together.
const MOST_POINTS: u64 = 300_000;
/// Largest ratio of the length of a stream of flows to the length of its run.
const STREAM_BEYOND_RUN: u64 = 4;
/// Approximate maximum number of messages of a collective: chunks times ranks.
const MOST_MESSAGES: u64 = 1_000_000;
/// Size of a collective without a given size: more than any default.
const USUAL_SIZE: Bytes = Bytes::new(600_000_000);
/// Maximum length of a run in a fabric of unknown size.
const SHORT: Span = Span::from_us(100);
/// Number of hosts up to which all take part by default: between thousands, messages of all pairs are millions.
const MOST_HOSTS: u32 = 128;
/// Largest whole number in a draft whose fabric is built here.
const MOST_IN_FABRIC: i64 = 64;
/// Attempts to mend a draft before it is dropped.
const MENDINGS: usize = 12;
/// Attempts to draw a scenario.
const ATTEMPTS: usize = 20;
/// Probability that a section of the workload names a transport.
const OWN_TRANSPORT: f64 = 0.12;
/// Probability that a scenario has a scale-up fabric.
const SCALE_UP_SHARE: f64 = 0.2;

/// Name of a draft in errors of the reader.
const NAME: &str = "storm";

/// Hosts, links, rates and delays of a fabric.
#[derive(Debug, Clone)]
struct Facts {
    hosts: u32,
    /// Names of links, each cable once.
    links: Vec<String>,
    /// Total rate of the NICs of all hosts.
    bits_per_second: u128,
    shortest_delay: Span,
    base_rtt: Span,
}

/// Draws scenarios.
#[derive(Debug)]
pub(crate) struct ScenarioGenerator {
    laboratory: Laboratory,
    schema: Schema,
    /// Folder of the scenarios, which also holds the files that they name.
    folder: PathBuf,
}

impl ScenarioGenerator {
    /// Creates a generator; `folder` is the folder of the scenarios and of the files that they name.
    pub(crate) fn new(folder: PathBuf) -> Self {
        let laboratory = Laboratory::new();
        let schema = Schema::from_laboratory(&laboratory);
        Self {
            laboratory,
            schema,
            folder,
        }
    }

    pub(crate) fn schema(&self) -> &Schema {
        &self.schema
    }

    /// The scenario `number` of the storm with this seed; `None` if no attempt gives a consistent scenario.
    pub(crate) fn draw(&self, seed: u64, number: u64) -> Option<GeneratedScenario> {
        let mut choices = RandomChoices::new(seed, number);
        let is_scaleup = choices.chance(SCALE_UP_SHARE);
        (0..ATTEMPTS).find_map(|_| self.attempt(is_scaleup, &mut choices))
    }

    fn attempt(&self, is_scaleup: bool, choices: &mut RandomChoices) -> Option<GeneratedScenario> {
        let stress = StressFactors::random(choices);
        let profile = if is_scaleup { &*SCALE_UP } else { &*PACKETS };
        let mut generated = GeneratedScenario::new(profile, stress, choices.clone());
        let fits = match is_scaleup {
            true => self.scaleup(&mut generated),
            false => self.packets(&mut generated),
        };
        *choices = generated.choices.clone();
        fits.map(|()| generated)
    }

    /// Draws a scenario of packets; `None` if its parts do not fit together.
    fn packets(&self, generated: &mut GeneratedScenario) -> Option<()> {
        generated.topology(&self.schema);
        let mut facts = self.fabric(generated)?;
        if let Some(plain) = &facts {
            generated.links(&self.schema, plain);
            facts = self.fabric(generated)?;
        }
        generated.top(&self.schema);
        generated.switch(&self.schema);
        let controller = self.transport(generated);
        generated.workloads(&self.schema, facts.as_ref(), controller.as_ref());
        generated.events(&self.schema, facts.as_ref());
        generated.observe(&self.schema, facts.as_ref());
        let scenario = self.mend(generated, |draft| self.read(draft))?;
        generated.limit(&scenario, facts.as_ref());
        Some(())
    }

    /// Draws a scenario of a scale-up fabric; `None` if its parts do not fit together.
    fn scaleup(&self, generated: &mut GeneratedScenario) -> Option<()> {
        let schema = &self.schema.scaleup;
        generated.scaleup_fabric(schema);
        let fabric = self.mend(generated, |draft| self.read_scaleup(draft))?;
        generated.scaleup_rest(schema, &fabric.fabric.nvlink.tree());
        let scenario = self.mend(generated, |draft| self.read_scaleup(draft))?;
        // First the number of operations, because all of them are created here.
        generated.limit_scaleup(&scenario);
        let assemble = |draft: &Draft| {
            let scenario = self.read_scaleup(draft)?;
            // A defect also shows in the program, and is found there.
            let built = catch_unwind(AssertUnwindSafe(|| {
                ScaleupAssembly::new(&scenario).map(drop)
            }));
            built.unwrap_or(Ok(())).map(|()| scenario.clone())
        };
        let scenario = self.mend(generated, assemble)?;
        generated.limit_scaleup(&scenario);
        Some(())
    }

    /// Reads a draft of a scale-up fabric as the program would.
    fn read_scaleup(&self, draft: &Draft) -> Result<ScaleupScenario, ScenarioError> {
        match self.read_any(draft)? {
            Experiment::Scaleup(scenario) => Ok(*scenario),
            Experiment::Packets(_) => unreachable!("the kind of topology is never mended"),
        }
    }

    /// Reads a draft of either kind of fabric.
    fn read_any(&self, draft: &Draft) -> Result<Experiment, ScenarioError> {
        self.laboratory
            .read_any(NAME, &draft.text(), Some(&self.folder), &[])
    }

    /// Reads a draft as the program would.
    fn read(&self, draft: &Draft) -> Result<Scenario, ScenarioError> {
        self.laboratory
            .read(NAME, &draft.text(), Some(&self.folder), &[])
    }

    /// Reads the draft repeatedly, and changes each refused entry until nothing is refused.
    fn mend<T>(
        &self,
        generated: &mut GeneratedScenario,
        attempt: impl Fn(&Draft) -> Result<T, ScenarioError>,
    ) -> Option<T> {
        for _ in 0..MENDINGS {
            match attempt(&generated.draft) {
                Ok(value) => return Some(value),
                Err(error) => match error.place {
                    // Files that a scenario names also have lines.
                    Some(SourceLocation::Line { file, line })
                        if file == NAME && generated.mend_line(line) => {}
                    _ => return None,
                },
            }
        }
        None
    }

    /// Builds the fabric drawn so far; `None` if the fabric is impossible, `Some(None)` if it is too large to be built here.
    fn fabric(&self, generated: &mut GeneratedScenario) -> Option<Option<Facts>> {
        let is_large = |entry: &Entry| matches!(entry.value, Value::Integer(number) if number > MOST_IN_FABRIC);
        if generated.draft.entries().iter().any(is_large) {
            return Some(None);
        }
        let build = |draft: &Draft| {
            let scenario = self.read(draft)?;
            // A defect also shows in the program, and is found there.
            let built = catch_unwind(AssertUnwindSafe(|| Assembly::new(&scenario)));
            built.map_or(Ok(None), |built| built.map(Some))
        };
        let assembly = self.mend(generated, build)?;
        Some(assembly.as_ref().map(Facts::from_assembly))
    }

    /// Draws a transport and the keys of its parts; returns its controller.
    fn transport(&self, generated: &mut GeneratedScenario) -> Option<NamedParameters> {
        let section = Section::Transport;
        let preset = generated.choices.pick(&self.schema.transports);
        generated.set_kind(section, "kind", &preset.name);
        for (part, kinds) in &self.schema.parts {
            if generated.choices.chance(0.3) {
                let kind = generated.choices.pick(kinds);
                generated.set_kind(section, part, &kind.name);
            }
        }
        let common = preset.keys.iter();
        let own = common.filter(|info| !self.schema.is_choice(info.key));
        let own: Vec<ParameterInfo> = own.cloned().collect();
        generated.keys(section, "transport", &own, None);
        let all = generated.draft.entries();
        let chosen = generated.draft.keep(|place| {
            let entry = &all[place];
            entry.section == section && self.schema.is_choice(&entry.key)
        });
        let settings = self.read(&chosen).ok()?.settings();
        let mut controller = None;
        for (part, kinds) in &self.schema.parts {
            let chosen = settings
                .iter()
                .find(|setting| setting.section == section.name() && setting.key == *part)?;
            let kind = kinds.iter().find(|kind| chosen.value == text(&kind.name))?;
            generated.keys(section, &kind.name, &kind.keys, None);
            if *part == "controller" {
                controller = Some(kind.clone());
            }
        }
        controller
    }
}

impl Facts {
    fn from_assembly(assembly: &Assembly) -> Self {
        let topology = &assembly.topology;
        let report = assembly.topology_report();
        let cables = 0..topology.cables.len();
        let is_host = |cable: &usize| {
            let ends = topology.cables[*cable].ends;
            ends.iter().any(|end| topology.switch_index(*end).is_none())
        };
        let bps = |cable: usize| u128::from(topology.cables[cable].rate.as_bps());
        Self {
            hosts: report.hosts,
            bits_per_second: cables.clone().filter(is_host).map(bps).sum(),
            links: cables
                .map(|cable| topology.link_name(LinkId::from_end(cable, 0)))
                .collect(),
            shortest_delay: report.shortest_delay,
            base_rtt: report.network.base_rtt,
        }
    }
}

impl GeneratedScenario {
    /// Sets some of the keys of `owner`.
    fn keys(
        &mut self,
        section: Section,
        owner: &str,
        infos: &[ParameterInfo],
        facts: Option<&Facts>,
    ) {
        for info in infos {
            if let Some(value) = self.value(section, info, facts) {
                let covers = covered(owner, section.name(), info.key);
                self.draft.set(section, info.key, value, covers);
            }
        }
    }

    /// The value of a key, if the key is to be set.
    fn value(
        &mut self,
        section: Section,
        info: &ParameterInfo,
        facts: Option<&Facts>,
    ) -> Option<Value> {
        let hosts = facts.map_or(4, |facts| facts.hosts);
        let choices = &mut self.choices;
        if let Some(value) = named(section, info, hosts, facts, choices) {
            let often = if ["file", "flows", "link"].contains(&info.key) {
                1.0
            } else {
                0.2
            };
            return choices.chance(often).then_some(value);
        }
        let is_list = matches!(info.domain, ValueDomain::List(_));
        let is_crowd =
            matches!(section, Section::Workload(_)) && matches!(info.key, "ranks" | "hosts");
        if is_crowd && !is_list && facts.is_none_or(|facts| facts.hosts > MOST_HOSTS) {
            return Some(Value::Integer(2 + choices.below(31) as i64));
        }
        self.usual(section, info)
    }

    fn top(&mut self, schema: &Schema) {
        self.keys(Section::Top, "scenario", &schema.general, None);
    }

    fn topology(&mut self, schema: &Schema) {
        let kinds = &schema.topologies;
        // The first kind has shown the most faults so far.
        let common = self.choices.chance(0.3);
        let kind = if common {
            &kinds[0]
        } else {
            self.choices.pick(kinds)
        };
        self.set_kind(Section::Topology, "kind", &kind.name);
        self.keys(Section::Topology, &kind.name, &kind.keys, None);
    }

    /// Exceptions for links.
    fn links(&mut self, schema: &Schema, facts: &Facts) {
        self.keys(Section::Topology, "links", &schema.links, Some(facts));
    }

    fn switch(&mut self, schema: &Schema) {
        let kind = self.choices.pick(&schema.switches);
        self.set_kind(Section::Switch, "kind", &kind.name);
        self.keys(Section::Switch, &kind.name, &kind.keys, None);
    }

    fn workloads(
        &mut self,
        schema: &Schema,
        facts: Option<&Facts>,
        controller: Option<&NamedParameters>,
    ) {
        let count = *self.choices.pick(&[1, 1, 1, 2, 3]);
        for number in 0..count {
            let section = Section::Workload(number);
            let kind = self.choices.pick(&schema.workloads);
            self.set_kind(section, "kind", &kind.name);
            self.keys(section, &kind.name, &kind.keys, facts);
            self.keys(section, "workload", &schema.flows, facts);
            if self.choices.chance(OWN_TRANSPORT) {
                let kind = self.choices.pick(&schema.transports);
                let covers = format!("transport.kind {}", kind.name);
                self.draft
                    .set(section, "transport.kind", text(&kind.name), covers);
            } else if let Some(controller) = controller.filter(|kind| !kind.keys.is_empty())
                && self.choices.chance(0.15)
            {
                let info = self.choices.pick(&controller.keys);
                let mut value = values::generated(info, &mut self.choices);
                if self.choices.chance(0.1) {
                    value = Value::List(vec![value, info.default.clone()]);
                }
                let covers = covered_by_section(&controller.name);
                let key = format!("transport.{}", info.key);
                self.draft.set(section, &key, value, covers);
            }
        }
    }

    /// Adds events of links to some scenarios.
    fn events(&mut self, schema: &Schema, facts: Option<&Facts>) {
        if facts.is_none() || !self.choices.chance(0.3) {
            return;
        }
        let count = *self.choices.pick(&[1, 1, 2, 3, 5]);
        for number in 0..count {
            let section = Section::Event(number);
            self.keys(section, "event", &schema.events, facts);
            let changes = ["state", "rate", "packet-loss", "pause-storm"];
            let own = self.draft.entries().iter();
            let mut own = own.filter(|entry| entry.section == section);
            if !own.any(|entry| changes.contains(&entry.key.as_str())) {
                let covers = covered("event", "event", "state");
                let state = *self.choices.pick(&["down", "down", "up"]);
                self.draft.set(section, "state", text(state), covers);
            }
        }
    }

    fn observe(&mut self, schema: &Schema, facts: Option<&Facts>) {
        self.keys(Section::Observe, "observe", &schema.observe, facts);
    }

    /// Limits the length of the run, so that its work is bounded.
    fn limit(&mut self, scenario: &Scenario, facts: Option<&Facts>) {
        let most = facts.map_or(SHORT, |facts| longest(scenario, &self.draft, facts));
        if scenario.general.at_most > most {
            let covers = covered("scenario", "", "stop.at-most");
            let value = text(most.to_string());
            self.draft.set(Section::Top, "stop.at-most", value, covers);
        }
        self.limit_streams(scenario.general.at_most.min(most));
        self.limit_messages(facts.map_or(MOST_HOSTS, |facts| facts.hosts));
    }

    /// Enlarges chunks so that the messages of collectives among `hosts` fit into memory.
    fn limit_messages(&mut self, hosts: u32) {
        for number in 0.. {
            let section = Section::Workload(number);
            if !self.draft.entries().iter().any(|e| e.section == section) {
                break;
            }
            let size = size_in(&self.draft, section, "size").map_or(USUAL_SIZE, |(_, size)| size);
            let least = size.as_u64().saturating_mul(hosts.into()) / MOST_MESSAGES;
            if let Some((place, chunk)) = size_in(&self.draft, section, "chunk")
                && chunk.as_u64() < least
            {
                self.draft = self.draft.with_value(place, Bytes::new(least).to_value());
            }
        }
    }

    /// Ends streams soon after the run: all their flows are drawn and have rows, including flows that never start.
    fn limit_streams(&mut self, end: Span) {
        let most = Span::from_ps(end.as_ps().saturating_mul(STREAM_BEYOND_RUN));
        for place in 0..self.draft.entries().len() {
            let entry = &self.draft.entries()[place];
            let is_stream = entry.section.name() == "workload" && entry.key == "duration";
            if is_stream && Span::from_value(&entry.value).is_some_and(|span| span > most) {
                self.draft = self.draft.with_value(place, text(most.to_string()));
            }
        }
    }
}

/// The longest time in which a run cannot exceed its limits.
fn longest(scenario: &Scenario, draft: &Draft, facts: &Facts) -> Span {
    let transports = scenario.transports().settings;
    let packets = transports.iter().map(|transport| &transport.packets);
    let payloads = packets.clone().map(|packets| packets.payload.as_u64());
    let payload = payloads.chain([smallest_message(draft)]).min();
    let payload = payload.unwrap_or_default();
    let headers = packets.map(|packets| packets.header.as_u64());
    let header = headers.min().unwrap_or_default();
    let bits = 8 * (u128::from(payload) + u128::from(header)).max(64);
    let by_packets = MOST_PACKETS * bits * 1_000_000_000_000 / facts.bits_per_second.max(1);
    let by_rounds = facts.shortest_delay.as_ps().saturating_mul(MOST_ROUNDS);
    let every = match scenario.observe.every {
        Sampling::Off => Span::MAX,
        Sampling::Auto => Span::from_ps(facts.base_rtt.as_ps() / 4),
        Sampling::Every(span) => span,
    };
    let every = every.as_ps().max(facts.shortest_delay.as_ps());
    let by_points = every.saturating_mul(MOST_POINTS / (facts.links.len() as u64 + 1));
    let by_packets = u64::try_from(by_packets).unwrap_or(u64::MAX);
    Span::from_ps(by_packets.min(by_rounds).min(by_points))
}

/// The entry of a section with this key, and its size.
fn size_in(draft: &Draft, section: Section, key: &str) -> Option<(usize, Bytes)> {
    let entries = draft.entries().iter().enumerate();
    let mut found = entries.filter(|(_, entry)| entry.section == section && entry.key == key);
    found.find_map(|(place, entry)| Some((place, Bytes::from_value(&entry.value)?)))
}

/// The smallest size that a workload names, in bytes: packets of a one-byte chunk carry no more than that.
fn smallest_message(draft: &Draft) -> u64 {
    let sizes = draft.entries().iter().filter_map(|entry| {
        let is_size = entry.section.name() == "workload" && matches!(entry.value, Value::Text(_));
        Bytes::from_value(&entry.value).filter(|_| is_size)
    });
    sizes.map(Bytes::as_u64).min().unwrap_or(u64::MAX)
}

/// The value of a key that names hosts, links or files; `None` for any other key.
fn named(
    section: Section,
    info: &ParameterInfo,
    hosts: u32,
    facts: Option<&Facts>,
    choices: &mut RandomChoices,
) -> Option<Value> {
    let host = |choices: &mut RandomChoices| choices.below(hosts.max(1) as usize);
    let list = |items: Vec<String>| Value::List(items.into_iter().map(Value::Text).collect());
    let link = |choices: &mut RandomChoices| {
        let links = facts.map_or(&[][..], |facts| &facts.links);
        match links.is_empty() {
            true => "leaf0-spine0".into(),
            false => choices.pick(links).clone(),
        }
    };
    let is_list = matches!(info.domain, ValueDomain::List(_));
    Some(match (section, info.key) {
        (Section::Topology, "links") => {
            let count = 1 + choices.below(3);
            let one = |choices: &mut RandomChoices| {
                let name = link(choices);
                typical_settings::link_exception(&name, choices)
            };
            list((0..count).map(|_| one(choices)).collect())
        }
        (Section::Event(_), "link") => text(link(choices)),
        (Section::Topology, "file") => text(choices.pick(&files::names(Use::Topology))),
        (Section::Workload(_), "file") => {
            let both = [Use::Flows, Use::Trace];
            let is_trace = info.meaning.contains("race");
            let wanted = if is_trace { both[1] } else { both[0] };
            text(choices.pick(&files::names(wanted)))
        }
        (Section::Workload(_), "sizes" | "prompts") if choices.chance(0.2) => {
            text(choices.pick(&files::names(Use::Sizes)))
        }
        (Section::Workload(_), "flows") if is_list => {
            let count = 1 + choices.below(5);
            list(
                (0..count)
                    .map(|_| flow(host(choices), host(choices), choices))
                    .collect(),
            )
        }
        (Section::Workload(_), "hosts" | "storage-hosts") if is_list => {
            let mut all: Vec<i64> = (0..i64::from(hosts)).collect();
            let count = (2 + choices.below(3)).min(all.len());
            let mut chosen = Vec::new();
            while chosen.len() < count {
                let place = choices.below(all.len());
                chosen.push(Value::Integer(all.swap_remove(place)));
            }
            Value::List(chosen)
        }
        (Section::Observe, "series.links") => list(vec![link(choices)]),
        (Section::Observe, "series.flows") => list(vec![choices.below(3).to_string()]),
        (Section::Observe, "trace.pcap") => {
            let place = match choices.chance(0.5) {
                true => format!("host:{}", host(choices)),
                false => format!("link:{}", link(choices)),
            };
            list(vec![place])
        }
        _ => return None,
    })
}

/// A flow in the syntax of `workload.flows`.
fn flow(src: usize, dst: usize, choices: &mut RandomChoices) -> String {
    const SIZES: [&str; 6] = ["1B", "4096B", "4097B", "100KB", "300KB", "1MB"];
    const STARTS: [&str; 4] = ["", " at 1ps", " at 5us", " at 50us"];
    // A host does not send to itself.
    let dst = if src == dst { src ^ 1 } else { dst };
    format!(
        "{src}->{dst} {}{}",
        choices.pick(&SIZES),
        choices.pick(&STARTS)
    )
}

#[cfg(test)]
mod tests;
