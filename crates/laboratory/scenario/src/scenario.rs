//! A scenario: reading, writing, hash.

use crate::entries::{
    by_section, each_of, hash_bytes, in_section, kind_of, without_kind, write_entries,
};
use crate::error::{ScenarioError, SourceLocation};
use crate::event::{self, EventSettings};
use crate::file_hashes::FileHashes;
use crate::generate::{JobSettings, ListOrder, ListSettings, WorkloadSettings, trace_files};
use crate::limits::{check_general, check_observe, check_switch};
use crate::locations::SourceLocations;
use crate::pause_storm::PauseStorms;
use crate::scaleup::NVLINK;
use crate::section::fill;
use crate::section_name::section_names;
use crate::source::{self, Entry};
use crate::tenant::Tenants;
use crate::topology::built_fabric::BuiltFabric;
use crate::topology::file::find_file;
use crate::topology::{self, TopologySettings};
use crate::transport::checks::check_one_path;
use crate::transport::own::UsualTransport;
use crate::transport::sections::{Transports, check_transports};
use crate::virtual_channels::check_channels;
use crate::workload;
use crate::{
    FastForward, General, ObserveSettings, Priority, SwitchKind, SwitchSettings, TransportSettings,
    WorkloadSection,
};
use clearway_fabric::LinkSchedule;
use clearway_fabric::topology::Topology;
use clearway_scaleup::injection::InjectionRegistry;
use clearway_transport::congestion::ControllerSettings;
use clearway_transport::{ClassSet, Registry, Reliability};
use clearway_units::{ParameterSet, Value};
use clearway_workload::FlowSpec;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// A scenario with every default filled in.
#[derive(Debug, Clone, PartialEq)]
pub struct Scenario {
    /// Name, seed, limits.
    pub general: General,
    /// `[topology]`.
    pub topology: TopologySettings,
    /// `[switch]`.
    pub switch: SwitchSettings,
    /// `[transport]`.
    pub transport: TransportSettings,
    /// `[[workload]]`, one or more.
    pub workloads: Vec<WorkloadSection>,
    /// `[[event]]`.
    pub events: Vec<EventSettings>,
    /// `[fast-forward]`.
    pub fast_forward: FastForward,
    /// `[observe]`.
    pub observe: ObserveSettings,
    /// The folder of the scenario file, searched first for other files.
    pub base_dir: Option<PathBuf>,
    places: SourceLocations,
}

impl Scenario {
    /// Reads the scenario `text`; errors call it `file`, and `overrides` are `KEY=VALUE`.
    ///
    /// # Errors
    /// At the first invalid entry.
    pub fn read(
        registry: &Registry,
        file: &str,
        text: &str,
        base_dir: Option<&Path>,
        overrides: &[String],
    ) -> Result<Self, ScenarioError> {
        let mut entries = source::read(file, text)?;
        let lines = entries.len();
        for text in overrides {
            let new = source::read_override(text)?.into_iter();
            new.for_each(|entry| apply_override(&mut entries, entry));
        }
        let places = SourceLocations::of_file(file, lines, &entries);
        let mut scenario = Self::from_entries(registry, &entries, places)?;
        scenario.base_dir = base_dir.map(Path::to_path_buf);
        Ok(scenario)
    }

    /// The scenario of `entries`, whose places are `places`.
    ///
    /// # Errors
    /// At the first invalid entry.
    pub fn from_entries(
        registry: &Registry,
        entries: &[Entry],
        places: SourceLocations,
    ) -> Result<Self, ScenarioError> {
        Self::of_sections(registry, entries, places)
            .map_err(|error| error.with_owner((registry, &InjectionRegistry::builtin())))
    }

    fn of_sections(
        registry: &Registry,
        entries: &[Entry],
        places: SourceLocations,
    ) -> Result<Self, ScenarioError> {
        let mut general = General::default();
        fill("the scenario", &mut general, &in_section(entries, "", 0))?;
        check_general(&general).map_err(|error| error.or_in(&places, "", 0))?;

        refuse_scaleup(entries)?;
        let own = in_section(entries, "topology", 0);
        let kinds = topology::TopologyKind::KINDS.iter().map(|(name, _)| *name);
        let kinds: Vec<&str> = kinds.chain([NVLINK]).collect();
        let mut topology = TopologySettings::default();
        if let Some(kind) = kind_of(&own, &kinds, topology::TopologyKind::named, "topology")? {
            topology.kind = kind;
        }
        let name = format!("a topology of kind \"{}\"", topology.kind.name());
        fill(&name, &mut topology, &without_kind(&own))?;
        topology.settle();

        let own = in_section(entries, "switch", 0);
        let kinds = SwitchKind::KINDS.map(|(name, _)| name);
        let kind = kind_of(&own, &kinds, SwitchKind::named, "switch")?;
        let designed = TransportSettings::switch_keys(&in_section(entries, "transport", 0))?;
        let kind = kind.unwrap_or_else(|| SwitchSettings::designed_kind(&designed));
        let mut switch = SwitchSettings::of_kind(kind);
        switch.design_for(&designed);
        let name = format!("a {} switch", switch.kind().name());
        fill(&name, &mut switch, &without_kind(&own))?;
        let checked = check_switch(&switch).and_then(|()| check_channels(&topology, &switch));
        checked.map_err(|error| error.or_in(&places, "switch", 0))?;

        let own = in_section(entries, "transport", 0);
        let (mut transport, rest) = TransportSettings::choose(registry, &own)?;
        let name = transport.parts();
        fill(&name, &mut transport, &rest)?;
        check_transports(&transport, &[], &switch, &places)?;

        check_one_path(&transport, &topology)
            .map_err(|error| error.or_in(&places, "topology", 0))?;

        let events = events(entries, &places)?;
        let mut observe = ObserveSettings::default();
        let observed = in_section(entries, "observe", 0);
        fill("[observe]", &mut observe, &observed)?;
        check_observe(&observe).map_err(|error| error.or_in(&places, "observe", 0))?;

        let usual = UsualTransport {
            registry,
            settings: &transport,
            entries: &own,
        };
        let workloads = workloads(entries, &usual, &places)?;
        check_transports(&transport, &workloads, &switch, &places)?;
        Ok(Self {
            general,
            topology,
            switch,
            transport,
            workloads,
            events,
            fast_forward: FastForward::read(entries, &places)?,
            observe,
            base_dir: None,
            places,
        })
    }

    /// The events of links of the fabric that the scenario describes, and the pause storms of its attackers.
    ///
    /// # Errors
    /// If the events do not fit the fabric, or contradict each other.
    pub fn link_schedule(
        &self,
        topology: &Topology,
        storms: &PauseStorms,
    ) -> Result<LinkSchedule, ScenarioError> {
        let delay = self.topology.links.rerouting.delay;
        let fabric = (topology, &self.switch);
        event::schedule((&self.events, delay), fabric, storms, &self.places)
    }

    /// The pause storms of attackers among the senders of these flows.
    ///
    /// # Errors
    /// If an attack has no end, if its hosts send nothing, or if switches do not support pause frames.
    pub fn pause_storms<'a>(
        &self,
        flows: impl IntoIterator<Item = &'a FlowSpec>,
    ) -> Result<PauseStorms, ScenarioError> {
        PauseStorms::build((&self.workloads, &self.switch), &self.places, flows)
    }

    /// Adds a workload section that lists `flows`, which start at given times and have numbers after all other flows. Switches reserve
    /// buffers and queues for these priorities.
    ///
    /// # Panics
    /// If a flow does not start at a given time.
    pub fn list_flows<'a>(
        &mut self,
        flows: impl IntoIterator<Item = &'a FlowSpec>,
        priorities: Vec<Priority>,
    ) {
        // A list that is the only section need not come after other flows.
        let mut flows = flows.into_iter().peekable();
        let posted = !self.workloads.is_empty() || flows.peek().is_none();
        let order = ListOrder { posted, priorities };
        let list = WorkloadSettings::List(ListSettings::from_flows(flows, order));
        let section = WorkloadSection::with_usual_controller(list, &self.transport.controller);
        self.workloads.push(section);
    }

    /// The classes that switches reserve buffers and queues for, beside those of the flows.
    pub fn reserved_classes(&self) -> ClassSet {
        let reserved = self.workloads.iter().map(WorkloadSection::reserved_classes);
        reserved.fold(ClassSet::EMPTY, ClassSet::union)
    }

    /// Builds the fabric.
    ///
    /// # Errors
    /// If the fabric cannot be built.
    pub fn fabric(&self) -> Result<BuiltFabric, ScenarioError> {
        let mut transports = self.transports().settings.into_iter();
        let in_order =
            transports.any(|transport| matches!(transport.reliability, Reliability::GoBackN(_)));
        let mut built = self.topology.build(self.base_dir.as_deref(), in_order)?;
        built.warnings.extend(self.unused_queues(&built.topology));
        Ok(built)
    }

    /// Warning about queues that are set twice, or that no port uses.
    fn unused_queues(&self, topology: &Topology) -> Option<String> {
        let keys = "`Queue_Up` and `Queue_Down` of `topology.file`";
        if topology.queues.is_empty() {
            return None;
        }
        if self.switch.buffer.is_some() {
            return Some(format!(
                "{keys} are not used: with `switch.kind` = \"shared-buffer\" all ports share a buffer"
            ));
        }
        self.places().is_given("switch", 0, "queue").then(|| {
            format!(
                "`switch.queue` = {} is not used at ports whose queue length {keys} set; set `topology.port-queues` to \"switch\" to ignore those keys",
                self.switch.ports.queue
            )
        })
    }

    /// The transports of the run.
    pub fn transports(&self) -> Transports<'_> {
        Transports::from_sections(&self.transport, &self.workloads)
    }

    /// Separate controller settings of the sections with this transport, section by section.
    pub fn variants_of(&self, transport: u8) -> Vec<ControllerSettings> {
        let transports = self.transports();
        let sections = self.workloads.iter().zip(&transports.of_section);
        let own = sections.filter(|(_, of)| **of == transport);
        own.flat_map(|(section, _)| section.variants()).collect()
    }

    /// Sections with this transport whose attackers' NICs disobey. Their variants have numbers after [`variants_of`](Self::variants_of).
    pub fn disobedient(&self, transport: u8) -> Vec<usize> {
        let transports = self.transports();
        let sections = self.workloads.iter().zip(&transports.of_section);
        let own = sections.enumerate();
        let own = own.filter(|(_, (section, of))| **of == transport && section.attack.disobeys());
        own.map(|(index, _)| index).collect()
    }

    /// Controller variant of a section's disobedient NICs; 0 if all obey.
    pub fn disobedient_variant(&self, section: usize) -> u16 {
        let transport = self.transports().of_section[section];
        let disobedient = self.disobedient(transport);
        let place = disobedient.iter().position(|own| *own == section);
        place.map_or(0, |place| {
            (1 + self.variants_of(transport).len() + place) as u16
        })
    }

    /// Places of the keys.
    pub fn places(&self) -> &SourceLocations {
        &self.places
    }

    /// Name of each workload section in results: the given name, or the kind, with a number if several sections have the same kind.
    pub fn section_names(&self) -> Vec<String> {
        let sections = self.workloads.iter();
        section_names(sections.map(|section| (&section.keys, section.kind().to_owned())))
    }

    /// Tenants of the workload sections.
    pub fn tenants(&self) -> Tenants<'_> {
        Tenants::from_sections(self.workloads.iter().map(|section| &section.tenant))
    }

    /// The scenario with every default written out, as TOML. Reading the text gives the same scenario.
    pub fn resolved(&self) -> String {
        let mut text = self.written(|name| {
            let path = find_file(name, self.base_dir.as_deref());
            // Absolute paths do not depend on the folder of the resolved scenario.
            std::path::absolute(path)
                .map_or_else(|_| name.into(), |full| full.to_string_lossy().into_owned())
        });
        self.write_observe(&mut text);
        text
    }

    /// Hash of the resolved scenario and of the contents of its files. Equal scenarios have equal hashes, independent of the paths of the
    /// files.
    pub fn hash(&self) -> String {
        let content = self.content(&FileHashes::default());
        format!("{:08x}", hash_bytes(0, content.as_bytes()) >> 32)
    }

    /// As [`hash`](Self::hash), but in 64 bits and including `[observe]`, which determines the files of the results.
    pub fn fingerprint(&self) -> u64 {
        self.fingerprint_with(&FileHashes::default())
    }

    /// As [`fingerprint`](Self::fingerprint), without reading the files known to `files` again.
    pub fn fingerprint_with(&self, files: &FileHashes) -> u64 {
        let mut text = self.content(files);
        self.write_observe(&mut text);
        hash_bytes(0, text.as_bytes())
    }

    /// Simulated part of the scenario with the hashes of its files in place of their names.
    fn content(&self, known: &FileHashes) -> String {
        self.written(|name| {
            let path = find_file(name, self.base_dir.as_deref());
            let files = trace_files(&path);
            format!(
                "{:016x}",
                files
                    .iter()
                    .fold(0, |hash, file| known.hash_file(hash, file))
            )
        })
    }

    fn write_observe(&self, text: &mut String) {
        *text += "\n[observe]\n";
        write_entries(text, self.observe.entries());
    }

    /// The files that the scenario reads besides its own file, with the keys that name them.
    pub fn files(&self) -> Vec<(String, PathBuf)> {
        let mut files = Vec::new();
        let mut add = |key: String, value: &Value| {
            if let Value::Text(name) = value {
                let path = find_file(name, self.base_dir.as_deref());
                files.extend(
                    trace_files(&path)
                        .into_iter()
                        .map(|path| (key.clone(), path)),
                );
            }
        };
        for (key, value) in self.topology.entries() {
            if key == "file" {
                add("topology.file".into(), &value);
            }
        }
        for (index, workload) in self.workloads.iter().enumerate() {
            let named = workload.traffic.files();
            for (key, value) in workload.entries() {
                if named.contains(&key) {
                    add(format!("workload[{index}].{key}"), &value);
                }
            }
        }
        files
    }

    /// Simulated part of the scenario as TOML, without `[observe]`. `file` maps the names of files.
    fn written(&self, file: impl Fn(&str) -> String) -> String {
        let named = |mut entries: Vec<(&'static str, Value)>, files: &[&str]| {
            for (key, value) in &mut entries {
                if let (true, Value::Text(name)) = (files.contains(key), value) {
                    *name = file(name);
                }
            }
            entries
        };
        let mut text =
            String::from("# Every parameter of the run. `clearway explain` says what they mean.\n");
        write_entries(&mut text, self.general.entries());
        let _ = write!(
            text,
            "\n[topology]\nkind = \"{}\"\n",
            self.topology.kind.name()
        );
        write_entries(&mut text, named(self.topology.entries(), &["file"]));
        let _ = write!(
            text,
            "\n[switch]\nkind = \"{}\"\n",
            self.switch.kind().name()
        );
        write_entries(&mut text, self.switch.entries());
        text += "\n[transport]\n";
        write_entries(&mut text, self.transport.entries());
        for workload in &self.workloads {
            let _ = write!(text, "\n[[workload]]\nkind = \"{}\"\n", workload.kind());
            let files = workload.traffic.files();
            write_entries(&mut text, named(workload.entries(), &files));
            for (key, value) in workload.transport_entries() {
                let _ = writeln!(text, "transport.{key} = {value}");
            }
        }
        for event in &self.events {
            text += "\n[[event]]\n";
            write_entries(&mut text, event.written());
        }
        let fast_forward = self.fast_forward.written();
        if !fast_forward.is_empty() {
            text += "\n[fast-forward]\n";
            write_entries(&mut text, fast_forward);
        }
        text
    }
}

/// Rejects entries that belong to scale-up fabrics.
fn refuse_scaleup(entries: &[Entry]) -> Result<(), ScenarioError> {
    let own = in_section(entries, "topology", 0);
    let kind = own.iter().find(|entry| entry.key == "kind");
    if let Some(entry) = kind.filter(|entry| entry.value == Value::Text(NVLINK.into())) {
        return Err(ScenarioError::at(
            &entry.place,
            "a scale-up fabric has no flows, hosts or transports, which are needed here",
            "use `clearway run`, `compare`, `topology` or `reproduce` for it",
        ));
    }
    let injection = entries.iter().find(|entry| entry.section == "injection");
    injection.map_or(Ok(()), |entry| {
        Err(ScenarioError::at(
            &entry.place,
            "`[injection]` is for scale-up fabrics, and this scenario has another topology",
            "set `topology.kind = \"nvlink\"`, or leave the section out",
        ))
    })
}

/// The `[[workload]]` sections; one permutation if there are no sections.
fn workloads(
    entries: &[Entry],
    usual: &UsualTransport<'_>,
    places: &SourceLocations,
) -> Result<Vec<WorkloadSection>, ScenarioError> {
    let sections = by_section(entries)?;
    let kinds: Vec<&str> = WorkloadSettings::KINDS
        .iter()
        .map(|(name, _)| *name)
        .collect();
    let mut workloads = Vec::new();
    for (index, own) in sections.into_iter().enumerate() {
        let kind = kind_of(&own, &kinds, WorkloadSettings::named, "workload")?;
        let traffic =
            kind.unwrap_or_else(|| WorkloadSettings::named("permutation").expect("it exists"));
        let section = WorkloadSection::read(traffic, usual, &without_kind(&own))
            .map_err(|error| error.or_in(places, "workload", index))?;
        workloads.push(section);
    }
    let variants = workloads.iter().map(|section| section.variants().len());
    // Attackers need at most one further variant per section.
    if variants.sum::<usize>() + workloads.len() >= usize::from(u16::MAX) {
        return Err(ScenarioError::about(
            &["transport"],
            "more than 65535 variants of the controller",
            "write one value for all jobs of a section",
        ));
    }
    Ok(workloads)
}

/// The `[[event]]` sections.
fn events(
    entries: &[Entry],
    places: &SourceLocations,
) -> Result<Vec<EventSettings>, ScenarioError> {
    let mut events = Vec::new();
    for (index, own) in each_of(entries, "event")?.into_iter().enumerate() {
        let mut event = EventSettings::default();
        fill("an event", &mut event, &own)?;
        let is_given = |key: &str| own.iter().any(|entry| entry.key == key);
        let checked = event.check(is_given);
        checked.map_err(|error| error.or_in(places, "event", index))?;
        events.push(event);
    }
    Ok(events)
}

/// Adds an override, or replaces the overridden entry. An override that chooses another kind removes keys of the old kind.
pub(crate) fn apply_override(entries: &mut Vec<Entry>, new: Entry) {
    let same_section = |entry: &Entry| entry.section == new.section && entry.index == new.index;
    let is_chosen = |entry: &Entry| {
        let by_override = entry.key == "kind" && matches!(entry.place, SourceLocation::Override(_));
        by_override || is_kind_with_file(entry)
    };
    let is_of_kind = entries
        .iter()
        .any(|entry| same_section(entry) && is_chosen(entry));
    let chooses_kind =
        new.key == "kind" || (new.key == "file" && !new.section.is_empty() && !is_of_kind);
    let former = entries
        .iter()
        .find(|entry| same_section(entry) && entry.key == "kind");
    let stays_with_job = new.key == "kind" && is_job(&new) && former.is_some_and(is_job);
    if chooses_kind {
        // Keys of the old kind stay only if an earlier override set them.
        entries.retain(|entry| {
            !same_section(entry)
                || matches!(entry.place, SourceLocation::Override(_))
                || is_common(&entry.section, &entry.key)
                || stays_with_job && is_of_jobs(&entry.key)
        });
        entries.retain(|entry| !(same_section(entry) && new.key == "file" && entry.key == "kind"));
        if new.section == "transport" {
            forget_old_transport(entries);
        }
    }
    if new.section == "workload" && new.key == "transport.kind" {
        // A separate transport starts from its preset; only keys that all transports have stay.
        entries.retain(|entry| {
            !same_section(entry)
                || matches!(entry.place, SourceLocation::Override(_))
                || !workload::is_of_transport(&entry.key)
                || workload::is_of_any_transport(&entry.key)
        });
    }
    entries.retain(|entry| !(same_section(entry) && entry.key == new.key));
    entries.push(new);
}

/// Drops the sections' keys of a controller that `[transport]` no longer has. Separate transports stay.
fn forget_old_transport(entries: &mut Vec<Entry>) {
    let of_kind = |entry: &&Entry| entry.section == "workload" && entry.key == "transport.kind";
    let own = entries.iter().filter(of_kind);
    let independent: Vec<usize> = own.map(|entry| entry.index).collect();
    entries.retain(|entry| {
        entry.section != "workload"
            || matches!(entry.place, SourceLocation::Override(_))
            || independent.contains(&entry.index)
            || !workload::is_of_transport(&entry.key)
            || workload::is_of_any_transport(&entry.key)
    });
}

/// A kind of workload that has a `file` key but is not `file`. Setting `file` does not change such a kind.
fn is_kind_with_file(entry: &Entry) -> bool {
    let (true, Value::Text(kind)) = (entry.key == "kind", &entry.value) else {
        return false;
    };
    let settings = WorkloadSettings::named(kind).filter(|_| kind != "file");
    let mut keys = settings.iter().flat_map(WorkloadSettings::describe);
    entry.section == "workload" && keys.any(|parameter| parameter.key == "file")
}

/// A kind of workload that runs a collective.
fn is_job(kind: &Entry) -> bool {
    let Value::Text(name) = &kind.value else {
        return false;
    };
    let settings = WorkloadSettings::named(name).filter(|_| kind.section == "workload");
    let mut keys = settings.iter().flat_map(WorkloadSettings::describe);
    keys.any(|parameter| parameter.key == "buckets")
}

/// Keys that all collectives share, such as hosts and iterations. They stay when one collective replaces another.
fn is_of_jobs(key: &str) -> bool {
    key == "size"
        || JobSettings::describe()
            .iter()
            .any(|parameter| parameter.key == key)
}

/// Keys that all kinds of a section share.
fn is_common(section: &str, key: &str) -> bool {
    match section {
        "topology" => topology::LinkSettings::describe()
            .iter()
            .any(|parameter| parameter.key == key),
        "transport" => TransportSettings::is_common(key),
        "workload" => workload::is_common(key),
        _ => false,
    }
}
