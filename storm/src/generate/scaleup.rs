//! Scenarios of scale-up fabrics.

use crate::draft::Section;
use crate::files::{self, Use};
use crate::generated::GeneratedScenario;
use crate::named_parameters::{NamedParameters, covered};
use crate::random_choices::RandomChoices;
use crate::schema::{SCALE_UP_OWNER, ScaleupSchema};
use crate::values::text;
use clearway_lab::ScaleupScenario;
use clearway_lab::scaleup_fabric::{OperationKind, Tree};
use clearway_lab::scenario::{SampledSubjects, Sampling, ScaleupWorkload, ScaleupWorkloadKind};
use clearway_units::{ParameterInfo, Span, Value};
use std::cmp::Ordering;

/// Maximum number of GPUs of a drawn tree.
const MOST_GPUS: usize = 64;
/// Approximate maximum number of packets that GPUs receive for the operations of one section.
const MOST_DELIVERIES: u64 = 200_000;
/// Maximum number of rounds of the engine in a run.
const MOST_ROUNDS: u64 = 300_000;
/// Maximum number of points of all curves of a run together.
const MOST_POINTS: u64 = 300_000;
/// Maximum number of sets of a section.
const MOST_SETS: u64 = 12;
/// Maximum number of unicast operations for each multicast operation.
const MOST_UNICAST: u64 = 8;
/// Number of GPUs with curves, times the number of curves of each.
const CURVES_OF_GPUS: u64 = 16 * 5;

/// Pairs of keys of one section in which the second must not be below the first.
const ORDERED: [(&str, &str); 5] = [
    ("wm-min", "wm-max"),
    ("latency-threshold", "latency-max"),
    ("remote-scaling-from", "remote-scaling-to"),
    ("least-operations", "most-operations"),
    ("least-pause", "most-pause"),
];

/// Buffers that have to hold a packet.
const BUFFERS: [(Section, &str); 3] = [
    (Section::Switch, "input-buffer"),
    (Section::Switch, "output-queue"),
    (Section::Injection, "response-queue"),
];

impl GeneratedScenario {
    /// Draws the tree and its links.
    pub(super) fn scaleup_fabric(&mut self, schema: &ScaleupSchema) {
        let kind = self.choices.pick(&schema.topologies).clone();
        self.set_kind(Section::Topology, "kind", &kind.name);
        self.some(Section::Topology, &kind, None);
        let below = *self.choices.pick(&[1, 2, 3, 4, 5, 8, 16]);
        let leaves = *self.choices.pick(&[1, 1, 2, 2, 3, 4, 5, 8]);
        let gpus = below * usize::min(leaves, MOST_GPUS / below);
        self.number(Section::Topology, &kind, "gpus", gpus as u64);
        self.number(Section::Topology, &kind, "gpus-per-leaf", below as u64);
        self.fit_buffers(schema, 0.0);
    }

    /// Draws all sections except the tree and its links.
    pub(super) fn scaleup_rest(&mut self, schema: &ScaleupSchema, tree: &Tree) {
        self.some(Section::Top, &schema.general, None);
        for kind in &schema.switches {
            self.some(Section::Switch, kind, None);
        }
        let control = self.choices.pick(&schema.controls).clone();
        self.set_kind(Section::Injection, "kind", &control.name);
        self.some(Section::Injection, &control, None);
        for kind in &schema.gpus {
            self.some(Section::Injection, kind, None);
        }
        self.fit_buffers(schema, 0.25 * self.stress.hostility);
        let count = *self.choices.pick(&[1, 1, 1, 2, 3]);
        for number in 0..count {
            let section = Section::Workload(number);
            let kind = self.choices.pick(&schema.workloads).clone();
            self.set_kind(section, "kind", &kind.name);
            self.some(section, &kind, Some(tree));
            self.fit_members(section, &kind, tree);
        }
        self.some(Section::Observe, &schema.observe, Some(tree));
    }

    /// In most cases, gives a section that names a trace as many members as the trace has ranks.
    fn fit_members(&mut self, section: Section, kind: &NamedParameters, tree: &Tree) {
        let ranks = self.entry(section, "file").and_then(|value| match value {
            Value::Text(path) => files::ranks(path),
            _ => None,
        });
        let Some(ranks) = ranks.filter(|&ranks| ranks <= tree.gpus as usize) else {
            return;
        };
        if self.choices.chance(0.1) {
            return;
        }
        if self.entry(section, "random-members").is_some() {
            self.number(section, kind, "random-members", ranks as u64);
        } else {
            let first = self.choices.below(tree.gpus as usize - ranks + 1);
            let members = text(format!("{first}-{}", first + ranks - 1));
            let covers = covered(&kind.name, section.name(), "members");
            self.draft.set(section, "members", members, covers);
        }
    }

    /// Sets some of the keys of `kind`.
    fn some(&mut self, section: Section, kind: &NamedParameters, tree: Option<&Tree>) {
        for info in &kind.keys {
            let named = tree.and_then(|tree| named(section, info.key, tree, &mut self.choices));
            let value = match named {
                Some((often, value)) => self.choices.chance(often).then_some(value),
                None => self.usual(section, info),
            };
            if let Some(value) = value {
                let covers = covered(&kind.name, section.name(), info.key);
                self.draft.set(section, info.key, value, covers);
            }
        }
        for (least, most) in ORDERED {
            self.order(section, kind, [least, most]);
        }
    }

    /// Exchanges the values of two keys of `kind` if both exist and are not in order.
    fn order(&mut self, section: Section, kind: &NamedParameters, keys: [&str; 2]) {
        let find = |key: &str| kind.keys.iter().find(|info| info.key == key);
        let [Some(least), Some(most)] = keys.map(find) else {
            return;
        };
        let [small, large] = [least, most].map(|info| self.value_or_default(section, info));
        let order = as_f64(&small).partial_cmp(&as_f64(&large));
        if order == Some(Ordering::Greater) {
            for (info, value) in [(least, large), (most, small)] {
                let covers = covered(&kind.name, section.name(), info.key);
                self.draft.set(section, info.key, value, covers);
            }
        }
    }

    /// The current value of a key, or its default.
    fn value_or_default(&self, section: Section, info: &ParameterInfo) -> Value {
        self.entry(section, info.key)
            .unwrap_or(&info.default)
            .clone()
    }

    /// The value of a key, if it is set.
    fn entry(&self, section: Section, key: &str) -> Option<&Value> {
        let mut entries = self.draft.entries().iter();
        let set = entries.find(|entry| entry.section == section && entry.key == key);
        set.map(|entry| &entry.value)
    }

    /// Sets a key of `kind` to a number.
    fn number(&mut self, section: Section, kind: &NamedParameters, key: &str, value: u64) {
        let covers = covered(&kind.name, section.name(), key);
        let value = Value::Integer(i64::try_from(value).unwrap_or(i64::MAX));
        self.draft.set(section, key, value, covers);
    }

    /// Makes buffers that are too small hold one to four packets; changes other buffers in the same way with probability `often`.
    fn fit_buffers(&mut self, schema: &ScaleupSchema, often: f64) {
        let topology = schema.topologies.iter().flat_map(|kind| &kind.keys);
        let flits = topology.filter(|info| matches!(info.key, "header-flits" | "payload-flits"));
        let flits =
            flits.map(|info| as_f64(&self.value_or_default(Section::Topology, info)) as u64);
        let packet: u64 = flits.sum();
        let owners = [&schema.switches, &schema.gpus];
        for kind in owners.into_iter().flatten() {
            for info in &kind.keys {
                let own = BUFFERS.iter().find(|(_, key)| *key == info.key);
                let Some(&(section, key)) = own else {
                    continue;
                };
                let is_small = as_f64(&self.value_or_default(section, info)) < packet as f64;
                if is_small || self.choices.chance(often) {
                    let more = [
                        0,
                        1,
                        packet / 2,
                        packet.saturating_sub(1),
                        packet,
                        3 * packet,
                    ];
                    let value = packet + *self.choices.pick(&more);
                    self.number(section, kind, key, value);
                }
            }
        }
    }

    /// Shortens the run so that operations, rounds and points of curves are bounded.
    pub(super) fn limit_scaleup(&mut self, scenario: &ScaleupScenario) {
        let gpus = scenario.fabric.nvlink.gpus;
        for (number, workload) in scenario.workloads.iter().enumerate() {
            self.limit_operations(Section::Workload(number), workload, gpus);
        }
        let longest = longest(scenario);
        if scenario.general.at_most > longest {
            let covers = covered(SCALE_UP_OWNER, "", "stop.at-most");
            let value = text(longest.to_string());
            self.draft.set(Section::Top, "stop.at-most", value, covers);
        }
    }

    fn limit_operations(&mut self, section: Section, workload: &ScaleupWorkload, gpus: u32) {
        let keys = &workload.members;
        let all = (0..gpus).filter(|&gpu| keys.members.contains(gpu)).count() as u64;
        let members = keys
            .random_members
            .map_or(all, u64::from)
            .clamp(1, all.max(1));
        let kind = NamedParameters {
            name: workload.kind.name().into(),
            keys: Vec::new(),
        };
        let mut limit = |key: &str, value: u32, most: u64| {
            if u64::from(value) > most {
                self.number(section, &kind, key, most);
            }
        };
        let of_member = (MOST_DELIVERIES / (members * members)).max(1);
        match &workload.kind {
            ScaleupWorkloadKind::Collective(settings) => {
                let initiators = settings.initiators.map_or(members, u64::from);
                let initiators = initiators.clamp(1, members);
                let most = MOST_DELIVERIES / (2 * initiators * members);
                limit("transactions", settings.transactions, most.max(1));
            }
            ScaleupWorkloadKind::RandomSets(settings) => {
                let sets = u64::from(settings.sets).min(MOST_SETS);
                let most = (of_member / sets.max(1)).max(1);
                limit("sets", settings.sets, MOST_SETS);
                limit("least-operations", settings.least_operations, most);
                limit("most-operations", settings.most_operations, most);
                limit("unicast-factor", settings.unicast_factor, MOST_UNICAST);
            }
            ScaleupWorkloadKind::UniformUnicast(settings) => {
                limit("operations", settings.operations, MOST_DELIVERIES / members);
            }
            // The files are small.
            ScaleupWorkloadKind::Trace(_) => {}
        }
    }
}

/// The longest time in which a run cannot exceed its limits.
fn longest(scenario: &ScaleupScenario) -> Span {
    let (observe, configuration) = (&scenario.observe, &scenario.fabric.configuration);
    let tree = scenario.fabric.nvlink.tree();
    let cycle = configuration.cycle.as_ps();
    let round = cycle.saturating_mul(configuration.latency.into());
    let by_rounds = round.saturating_mul(MOST_ROUNDS);
    let idle = configuration.idle_latency(OperationKind::Read, true);
    let every = match observe.every {
        Sampling::Off => u64::MAX,
        Sampling::Auto => cycle.saturating_mul(idle / 4),
        Sampling::Every(span) => span.as_ps(),
    };
    let uplinks = u64::from(tree.leaves()) * u64::from(tree.uplinks());
    let links = 2 * (u64::from(tree.gpus) + uplinks);
    let followed = match &observe.links {
        SampledSubjects::Top(count) => links.min((*count).into()),
        SampledSubjects::Named(_) => links,
    };
    let curves = 2 * followed + u64::from(tree.switches()) + CURVES_OF_GPUS;
    let by_points = every.max(round).saturating_mul(MOST_POINTS / curves);
    Span::from_ps(by_rounds.min(by_points))
}

/// The value of a key that names GPUs or links, with the probability that it is set; `None` for any other key.
fn named(
    section: Section,
    key: &str,
    tree: &Tree,
    choices: &mut RandomChoices,
) -> Option<(f64, Value)> {
    let gpu = |choices: &mut RandomChoices| choices.below(tree.gpus.max(1) as usize);
    Some(match (section, key) {
        (Section::Workload(_), "members") => (0.5, members(tree.gpus.max(1) as usize, choices)),
        (Section::Workload(_), "random-members") => (0.25, Value::Integer(1 + gpu(choices) as i64)),
        (Section::Workload(_), "file") => {
            let files = files::names(Use::Collectives);
            (0.95, text(choices.pick(&files)))
        }
        (Section::Observe, "series.links") => {
            let count = 1 + choices.below(3);
            let links = (0..count).map(|_| text(link(tree, choices)));
            (0.3, Value::List(links.collect()))
        }
        _ => return None,
    })
}

/// Members of a group, in every syntax that a scenario allows.
fn members(gpus: usize, choices: &mut RandomChoices) -> Value {
    let mut cuts = [0; 3].map(|_| choices.below(gpus));
    cuts.sort_unstable();
    let [first, second, third] = cuts;
    match choices.below(6) {
        0 => text("all"),
        1 => text(format!("0-{third}")),
        2 if second < third => text(format!("{first}-{second},{third}")),
        3 if first < second => text(format!("{first},{second}-{third}")),
        4 if second < third => {
            let members = [second, third].map(|gpu| Value::Integer(gpu as i64));
            Value::List(members.into())
        }
        5 => Value::Integer(first as i64),
        _ => text(format!("{first}-{third}")),
    }
}

/// The name of a link.
fn link(tree: &Tree, choices: &mut RandomChoices) -> String {
    let number = |choices: &mut RandomChoices, count: u32| choices.below(count.max(1) as usize);
    let is_below = tree.spines == 0 || choices.chance(0.5);
    let (lower, upper) = if is_below {
        let gpu = number(choices, tree.gpus);
        (format!("gpu{gpu}"), gpu / tree.gpus_per_leaf as usize)
    } else {
        let leaf = number(choices, tree.leaves());
        (format!("leaf{leaf}"), number(choices, tree.spines))
    };
    let upper = match is_below {
        true => format!("leaf{upper}"),
        false => format!("spine{upper}"),
    };
    match choices.chance(0.5) {
        true => format!("{lower}-{upper}"),
        false => format!("{upper}-{lower}"),
    }
}

fn as_f64(value: &Value) -> f64 {
    match value {
        Value::Integer(number) => *number as f64,
        Value::Float(number) => *number,
        _ => f64::NAN,
    }
}
