//! Content of a file as it is written: devices, links, instances, edges and annotations, each with its line.

use crate::text::{DecimalFault, Fault, Source, Token, exact_decimal, shown, whole_number};
use crate::yaml::{Content, Fields, Node, parse_yaml};
use clearway_units::{Rate, Span};
use clearway_workload::FileError;

/// Maximum count of instances, and of components of a device.
const MOST: u64 = 1 << 22;
const RATES: (u64, u64) = (1, 1 << 60);
const DELAYS: (Span, Span) = (Span::from_ns(1), Span::from_ms(1000));

/// Text and its place.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Placed {
    pub(super) text: String,
    pub(super) line: usize,
    pub(super) column: usize,
}

impl Placed {
    fn new((text, node): (&str, &Node)) -> Self {
        Self {
            text: text.into(),
            line: node.line,
            column: node.column,
        }
    }

    /// The text as a word of a line, for errors about it.
    pub(super) fn token(&self) -> Token<'_> {
        Token {
            text: &self.text,
            column: self.column,
        }
    }
}

/// An enum whose values have names in files.
pub(super) trait Named: Copy + 'static {
    /// The values and their names.
    const NAMES: &'static [(&'static str, Self)];

    /// The name of a value.
    fn name(self) -> &'static str
    where
        Self: PartialEq,
    {
        let own = Self::NAMES.iter().find(|(_, value)| *value == self);
        own.map_or("", |(name, _)| name)
    }
}

/// Type of a component.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ComponentKind {
    /// A type that InfraGraph does not know.
    Custom,
    /// Another device of the file.
    Device,
    Cpu,
    /// An accelerator.
    Xpu,
    Nic,
    Memory,
    Port,
    /// A switch between components.
    Switch,
}

impl Named for ComponentKind {
    const NAMES: &'static [(&'static str, Self)] = &[
        ("custom", Self::Custom),
        ("device", Self::Device),
        ("cpu", Self::Cpu),
        ("xpu", Self::Xpu),
        // The name in early versions.
        ("npu", Self::Xpu),
        ("nic", Self::Nic),
        ("memory", Self::Memory),
        ("port", Self::Port),
        ("switch", Self::Switch),
    ];
}

/// Rule by which an edge joins its endpoints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scheme {
    /// The first of one list with the first of the other, and so on.
    OneToOne,
    /// Each of one list with each of the other.
    ManyToMany,
    /// Each of a list with the next, and the last with the first.
    Ring,
}

impl Named for Scheme {
    const NAMES: &'static [(&'static str, Self)] = &[
        ("one2one", Self::OneToOne),
        ("many2many", Self::ManyToMany),
        ("ring", Self::Ring),
    ];
}

/// A component of a device.
#[derive(Debug)]
pub(super) struct Component {
    pub(super) name: Placed,
    pub(super) count: u32,
    pub(super) kind: ComponentKind,
}

/// A type of links.
#[derive(Debug)]
pub(super) struct LinkKind {
    pub(super) name: Placed,
    /// `None` if the file gives none, or only transfers per second.
    pub(super) rate: Option<Rate>,
    pub(super) delay: Option<Span>,
    /// True if the file gives transfers per second, which are no rate without the width of the link.
    pub(super) is_in_transfers: bool,
}

/// One end of an edge.
#[derive(Debug)]
pub(super) struct End {
    /// Instance of the infrastructure, or a device within a device.
    pub(super) owner: Option<Placed>,
    pub(super) component: Placed,
}

/// An edge.
#[derive(Debug)]
pub(super) struct Edge {
    pub(super) ends: [End; 2],
    pub(super) scheme: Scheme,
    pub(super) link: Placed,
    pub(super) line: usize,
}

/// A device.
#[derive(Debug)]
pub(super) struct Device {
    pub(super) name: Placed,
    pub(super) components: Vec<Component>,
    pub(super) links: Vec<LinkKind>,
    pub(super) edges: Vec<Edge>,
}

/// Copies of a device.
#[derive(Debug)]
pub(super) struct Instance {
    pub(super) name: Placed,
    pub(super) device: Placed,
    pub(super) count: u32,
}

/// What an annotation is about.
#[derive(Debug)]
pub(super) enum Target {
    Graph,
    Node(Placed),
    Edge([Placed; 2]),
    Link,
}

/// One attribute of an annotation.
#[derive(Debug)]
pub(super) struct Annotation {
    pub(super) target: Target,
    pub(super) attribute: Placed,
    pub(super) value: Placed,
}

/// A file.
#[derive(Debug)]
pub(super) struct Document {
    pub(super) name: String,
    pub(super) devices: Vec<Device>,
    pub(super) links: Vec<LinkKind>,
    pub(super) instances: Vec<Instance>,
    pub(super) edges: Vec<Edge>,
    pub(super) annotations: Vec<Annotation>,
}

const INFRASTRUCTURE: &[&str] = &[
    "name",
    "description",
    "devices",
    "links",
    "instances",
    "edges",
];

/// Reads the content of a file.
pub(super) fn document(source: Source<'_>, text: &str) -> Result<Document, FileError> {
    let root = parse_yaml(source, text)?;
    let wrapped = match &root.content {
        Content::Map(entries) => entries.iter().any(|entry| entry.key == "infrastructure"),
        _ => false,
    };
    if !wrapped {
        return infrastructure(source, &root, Vec::new());
    }
    let fields = Fields::of(
        source,
        &root,
        "the file",
        &["infrastructure", "annotations"],
    )?;
    let annotations = match fields.get("annotations") {
        Some(node) => annotations(source, node)?,
        None => Vec::new(),
    };
    match fields.get("infrastructure") {
        Some(node) => infrastructure(source, node, annotations),
        None => {
            let fault = source.fault(root.line, None, "`infrastructure` is empty");
            Err(fault.fix("write `devices`, `instances`, `links` and `edges` below it"))
        }
    }
}

fn infrastructure(
    source: Source<'_>,
    node: &Node,
    annotations: Vec<Annotation>,
) -> Result<Document, FileError> {
    refuse_old_form(source, node)?;
    let fields = Fields::of(source, node, "an infrastructure", INFRASTRUCTURE)?;
    let devices = each(fields.list("devices")?, |node| device(source, node))?;
    let instances = each(fields.list("instances")?, |node| instance(source, node))?;
    let links = each(fields.list("links")?, |node| link(source, node))?;
    let edges = each(fields.list("edges")?, |node| {
        edge(source, node, "instance", true)
    })?;
    check_names(source, "device", devices.iter().map(|device| &device.name))?;
    check_names(source, "instance", instances.iter().map(|own| &own.name))?;
    check_names(source, "link", links.iter().map(|link| &link.name))?;
    if instances.is_empty() {
        let fault = source.fault(node.line, None, "there are no instances of devices");
        return Err(fault.fix("add `instances`, each with a name, a device and a count"));
    }
    Ok(Document {
        name: fields
            .text("name")?
            .map_or_else(String::new, |(name, _)| name.into()),
        devices,
        links,
        instances,
        edges,
        annotations,
    })
}

/// Refuses files from before `edges` replaced `connections`, and files about devices alone.
fn refuse_old_form(source: Source<'_>, node: &Node) -> Result<(), FileError> {
    let Content::Map(entries) = &node.content else {
        return Ok(());
    };
    let of_devices = entries.iter().filter(|entry| entry.key == "devices");
    let devices = of_devices.flat_map(|entry| match &entry.value.content {
        Content::List(devices) => devices.as_slice(),
        _ => &[],
    });
    let in_devices = devices.flat_map(|device| match &device.content {
        Content::Map(entries) => entries.as_slice(),
        _ => &[],
    });
    let old = entries
        .iter()
        .chain(in_devices)
        .find(|entry| entry.key == "connections");
    match old {
        Some(entry) => {
            let message =
                "`connections` belongs to the first form of InfraGraph, which is not read";
            let fault = source.fault(entry.line, Some(entry.column), message);
            Err(fault.fix("write `edges` with `ep1`, `ep2`, `scheme` and `link`"))
        }
        None => Ok(()),
    }
}

/// Reads each item of a list.
fn each<T>(
    items: &[Node],
    read: impl Fn(&Node) -> Result<T, FileError>,
) -> Result<Vec<T>, FileError> {
    items.iter().map(read).collect()
}

/// Checks that names can stand in endpoints and differ.
fn check_names<'a>(
    source: Source<'_>,
    what: &str,
    names: impl Iterator<Item = &'a Placed>,
) -> Result<(), FileError> {
    let mut known = std::collections::BTreeMap::new();
    for name in names {
        if name.text.is_empty() || name.text.contains(['.', '[', ']', ':']) {
            let message = format!("`{}` cannot be the name of the {what}", shown(&name.text));
            let fault = source.fault(name.line, Some(name.column), message);
            return Err(fault.fix("leave out `.`, `:`, `[` and `]`, which endpoints use"));
        }
        if let Some(first) = known.insert(&name.text, name.line) {
            let shown = shown(&name.text);
            let message =
                format!("a second {what} is called `{shown}`, the first is on line {first}");
            let fault = source.fault(name.line, Some(name.column), message);
            return Err(fault.fix("give it another name"));
        }
    }
    Ok(())
}

fn device(source: Source<'_>, node: &Node) -> Result<Device, FileError> {
    let known = ["name", "description", "components", "links", "edges"];
    let fields = Fields::of(source, node, "a device", &known)?;
    let name = Placed::new(fields.need("name")?);
    let components = each(fields.list("components")?, |node| component(source, node))?;
    let links = each(fields.list("links")?, |node| link(source, node))?;
    let edges = each(fields.list("edges")?, |node| {
        edge(source, node, "device", false)
    })?;
    check_names(source, "component", components.iter().map(|own| &own.name))?;
    check_names(source, "link", links.iter().map(|link| &link.name))?;
    Ok(Device {
        name,
        components,
        links,
        edges,
    })
}

fn component(source: Source<'_>, node: &Node) -> Result<Component, FileError> {
    let known = [
        "name",
        "description",
        "count",
        "choice",
        "custom",
        "device",
        "cpu",
        "xpu",
        "npu",
        "nic",
        "memory",
        "port",
        "switch",
    ];
    let fields = Fields::of(source, node, "a component", &known)?;
    let (name, count) = (Placed::new(fields.need("name")?), count(source, &fields)?);
    let kind = match fields.text("choice")? {
        Some(choice) => choice_of(source, &Placed::new(choice))?,
        // A `custom` component may come without its choice.
        None if fields.get("custom").is_some() => ComponentKind::Custom,
        None => choice_of(source, &Placed::new(fields.need("choice")?))?,
    };
    Ok(Component { name, count, kind })
}

/// The choice that a text names.
fn choice_of<T: Named>(source: Source<'_>, text: &Placed) -> Result<T, FileError> {
    let found = T::NAMES.iter().find(|(name, _)| *name == text.text);
    let names = || T::NAMES.iter().map(|(name, _)| *name);
    match found {
        Some((_, value)) => Ok(*value),
        None => Err(source.unknown(text.line, text.token(), &names().collect::<Vec<_>>())),
    }
}

fn count(source: Source<'_>, fields: &Fields<'_>) -> Result<u32, FileError> {
    let (text, node) = fields.need("count")?;
    match whole_number(text).filter(|count| *count <= MOST) {
        Some(count) => Ok(count as u32),
        None => {
            let message = format!("`{}` is not a valid `count`", shown(text));
            let fault = source.fault(node.line, Some(node.column), message);
            Err(fault.fix(format!("write a whole number from 0 to {MOST}")))
        }
    }
}

fn instance(source: Source<'_>, node: &Node) -> Result<Instance, FileError> {
    let known = ["name", "description", "device", "count"];
    let fields = Fields::of(source, node, "an instance", &known)?;
    Ok(Instance {
        name: Placed::new(fields.need("name")?),
        device: Placed::new(fields.need("device")?),
        count: count(source, &fields)?,
    })
}

fn edge(
    source: Source<'_>,
    node: &Node,
    owner: &'static str,
    is_owned: bool,
) -> Result<Edge, FileError> {
    let fields = Fields::of(source, node, "an edge", &["ep1", "ep2", "scheme", "link"])?;
    let end = |key: &'static str| {
        let Some(node) = fields.get(key) else {
            let fault = source.fault(fields.line, None, format!("an edge has no `{key}`"));
            return Err(fault.fix(format!("add `{key}` with its `component`")));
        };
        let end = Fields::of(source, node, "an endpoint", &[owner, "component"])?;
        let text = match is_owned {
            true => Some(end.need(owner)?),
            false => end.text(owner)?,
        };
        Ok(End {
            owner: text.map(Placed::new),
            component: Placed::new(end.need("component")?),
        })
    };
    Ok(Edge {
        ends: [end("ep1")?, end("ep2")?],
        scheme: choice_of(source, &Placed::new(fields.need("scheme")?))?,
        link: Placed::new(fields.need("link")?),
        line: fields.line,
    })
}

fn link(source: Source<'_>, node: &Node) -> Result<LinkKind, FileError> {
    let fields = Fields::of(source, node, "a link", &["name", "description", "physical"])?;
    let mut link = LinkKind {
        name: Placed::new(fields.need("name")?),
        rate: None,
        delay: None,
        is_in_transfers: false,
    };
    let Some(physical) = fields.get("physical") else {
        return Ok(link);
    };
    let physical = Fields::of(source, physical, "`physical`", &["bandwidth", "latency"])?;
    if let Some(node) = physical.get("bandwidth") {
        let units = [
            ("gigabits_per_second", 9),
            ("gigabytes_per_second", 9),
            ("gigatransfers_per_second", 9),
        ];
        if let Some(given) = quantity(source, node, "a bandwidth", &units)? {
            let rate = match given.unit {
                "gigabytes_per_second" => given.value.saturating_mul(8),
                _ => given.value,
            };
            if rate < RATES.0 || rate > RATES.1 {
                let message = format!("a bandwidth of {rate} bit/s");
                let fix = "write a number above 0, as in `gigabits_per_second: 400`";
                return Err(given.fault(source, message).fix(fix));
            }
            link.is_in_transfers = given.unit == "gigatransfers_per_second";
            link.rate = (!link.is_in_transfers).then(|| Rate::from_bps(rate));
        }
    }
    if let Some(node) = physical.get("latency") {
        let units = [("ms", 9), ("us", 6), ("ns", 3)];
        if let Some(given) = quantity(source, node, "a latency", &units)? {
            let delay = Span::from_ps(given.value);
            if !(DELAYS.0..=DELAYS.1).contains(&delay) {
                let message = format!("a latency of {delay}");
                return Err(given.fault(source, message).fix("write 1 ns to 1 s"));
            }
            link.delay = Some(delay);
        }
    }
    Ok(link)
}

/// A number with its unit.
struct Quantity {
    unit: &'static str,
    /// Number times ten to the power of the unit.
    value: u64,
    line: usize,
    column: usize,
}

impl Quantity {
    fn fault(&self, source: Source<'_>, message: String) -> Fault {
        source.fault(self.line, Some(self.column), message)
    }
}

/// A quantity with a choice of units; `None` if it is empty.
fn quantity(
    source: Source<'_>,
    node: &Node,
    what: &'static str,
    units: &[(&'static str, i32); 3],
) -> Result<Option<Quantity>, FileError> {
    let known = [units[0].0, units[1].0, units[2].0, "choice"];
    let fields = Fields::of(source, node, what, &known)?;
    let given = units.iter().filter(|(unit, _)| fields.get(unit).is_some());
    let given: Vec<&(&'static str, i32)> = given.collect();
    let unit = match (fields.text("choice")?, &given[..]) {
        // InfraGraph's library writes a choice without a value where there is no quantity.
        (_, []) => return Ok(None),
        (Some((choice, place)), _) => {
            let unit = units.iter().find(|(unit, _)| *unit == choice);
            let token = Placed::new((choice, place));
            unit.ok_or_else(|| source.unknown(token.line, token.token(), &known[..3]))?
        }
        (None, [unit]) => unit,
        (None, _) => {
            let fault = source.fault(fields.line, None, format!("{what} in two units"));
            return Err(fault.fix("add `choice` with the unit, or leave one unit"));
        }
    };
    let (text, node) = fields.need(unit.0)?;
    let message = match exact_decimal(text, unit.1) {
        Ok(value) => {
            return Ok(Some(Quantity {
                unit: unit.0,
                value,
                line: node.line,
                column: node.column,
            }));
        }
        Err(DecimalFault::NotANumber) => format!("`{}` is not a number above zero", shown(text)),
        Err(DecimalFault::TooLarge) => format!("`{}` is too large", shown(text)),
        Err(DecimalFault::TooFine) => format!("`{}` has too many digits", shown(text)),
    };
    let fix = match units[0].0 {
        "ms" => "write a decimal number of whole picoseconds, as in `ns: 500`",
        _ => "write a decimal number of whole bit/s, as in `gigabits_per_second: 400`",
    };
    Err(source.fault(node.line, Some(node.column), message).fix(fix))
}

fn annotations(source: Source<'_>, node: &Node) -> Result<Vec<Annotation>, FileError> {
    let fields = Fields::of(
        source,
        node,
        "annotations",
        &["nodes", "edges", "links", "graph"],
    )?;
    let mut annotations = Vec::new();
    let mut attributes = |target: &dyn Fn() -> Target, items: &[Node]| {
        for item in items {
            let fields = Fields::of(source, item, "an attribute", &["attribute", "value"])?;
            annotations.push(Annotation {
                target: target(),
                attribute: Placed::new(fields.need("attribute")?),
                value: Placed::new(fields.need("value")?),
            });
        }
        Ok(())
    };
    for item in fields.list("nodes")? {
        let fields = Fields::of(source, item, "a node", &["name", "attributes"])?;
        let name = Placed::new(fields.need("name")?);
        attributes(&|| Target::Node(name.clone()), fields.list("attributes")?)?;
    }
    for item in fields.list("edges")? {
        let fields = Fields::of(source, item, "an edge", &["ep1", "ep2", "attributes"])?;
        let ends = [
            Placed::new(fields.need("ep1")?),
            Placed::new(fields.need("ep2")?),
        ];
        attributes(&|| Target::Edge(ends.clone()), fields.list("attributes")?)?;
    }
    for item in fields.list("links")? {
        let fields = Fields::of(source, item, "a link", &["name", "attributes"])?;
        attributes(&|| Target::Link, fields.list("attributes")?)?;
    }
    attributes(&|| Target::Graph, fields.list("graph")?)?;
    Ok(annotations)
}
