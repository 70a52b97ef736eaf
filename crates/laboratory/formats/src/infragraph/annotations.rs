//! Annotations: facts that InfraGraph has no words for, as attributes that begin with `clearway-`.

use super::document::{Annotation, Placed, Target};
use super::endpoint::{Segment, indices, segments};
use super::model::{
    InfragraphFabric, InfragraphLink, InfragraphQueues, InfragraphRole, InfragraphSwitch,
};
use super::nodes::Nodes;
use super::plan::{Plan, Port};
use crate::text::{shown, whole_number};
use clearway_units::{Bytes, Parameter as _, Span, Time, Value};
use clearway_workload::{FileError, counted};
use rustc_hash::FxHashMap;

pub(super) const PREFIX: &str = "clearway-";
/// Maximum number of tiers that queues can be given for.
const MOST_TIERS: usize = 64;

/// Maximum number of switches that all annotations name.
const MOST_NAMED: u64 = 1 << 24;

/// Attributes that InfraGraph derives from the infrastructure and writes beside it.
const DERIVED: &[&str] = &[
    "type",
    "instance",
    "instance_idx",
    "device",
    "composed_device",
    "link",
    "bandwidth",
    "latency",
    "name",
    "description",
];

/// Adds the annotations of a file to its fabric.
pub(super) fn apply(
    plan: &mut Plan<'_>,
    nodes: &Nodes,
    fabric: &mut InfragraphFabric,
) -> Result<(), FileError> {
    let is_own = |annotation: &&Annotation| annotation.attribute.text.starts_with(PREFIX);
    let document = plan.document;
    let others = document.annotations.iter().filter(|own| !is_own(own));
    let mut others = others
        .filter(|own| !DERIVED.contains(&own.attribute.text.as_str()))
        .peekable();
    if let Some(first) = others.peek() {
        let (line, name) = (first.attribute.line, shown(&first.attribute.text));
        let attributes = counted(others.count(), "attribute");
        plan.warn(
            line,
            format!("{attributes} of annotations not used, the first is `{name}`"),
        );
    }
    let (mut places, mut named) = (None, 0);
    for annotation in document.annotations.iter().filter(is_own) {
        match &annotation.target {
            Target::Graph => of_graph(plan, fabric, annotation)?,
            Target::Node(name) => of_switches(plan, nodes, fabric, annotation, (name, &mut named))?,
            Target::Link => return Err(unknown(plan, annotation, "a link")),
            Target::Edge(ends) => {
                let places = places.get_or_insert_with(|| places_of(plan));
                let ports = [port_of(plan, &ends[0])?, port_of(plan, &ends[1])?];
                let pair = [ports[0].min(ports[1]), ports[0].max(ports[1])];
                let Some(&place) = places.get(&pair) else {
                    let text = format!("`{}` and `{}`", shown(&ends[0].text), shown(&ends[1].text));
                    let message = format!("no edge joins {text}");
                    return Err(plan.fault(ends[0].line, message, "name the two ends of an edge"));
                };
                of_link(plan, &mut fabric.links[place], annotation)?;
            }
        }
    }
    Ok(())
}

/// Places of all cables between instances; their links are the first ones.
fn places_of(plan: &Plan<'_>) -> FxHashMap<[Port; 2], usize> {
    let pairs = plan.cables.iter().map(|cable| cable.ends);
    pairs.map(|[a, b]| [a.min(b), a.max(b)]).zip(0..).collect()
}

fn unknown(plan: &Plan<'_>, annotation: &Annotation, of: &str) -> FileError {
    let name = shown(&annotation.attribute.text);
    let message = format!("`{name}` is not an attribute of {of}");
    plan.fault(
        annotation.attribute.line,
        message,
        "use the attributes that `clearway topology --infragraph` writes",
    )
}

fn no_value(plan: &Plan<'_>, annotation: &Annotation, expected: &str) -> FileError {
    let (name, value) = (
        shown(&annotation.attribute.text),
        shown(&annotation.value.text),
    );
    let message = format!("`{value}` is not a valid value for `{name}`");
    plan.fault(annotation.value.line, message, format!("write {expected}"))
}

fn of_graph(
    plan: &Plan<'_>,
    fabric: &mut InfragraphFabric,
    annotation: &Annotation,
) -> Result<(), FileError> {
    let value = annotation.value.text.as_str();
    let name = &annotation.attribute.text[PREFIX.len()..];
    if name == "nics" {
        if value != "separate" {
            return Err(no_value(plan, annotation, "`separate`"));
        }
        fabric.separates_nics = true;
        return Ok(());
    }
    let queue = |side| {
        let tier = name.strip_prefix(side)?.parse::<usize>().ok()?;
        (tier < MOST_TIERS).then_some(tier)
    };
    let (up, down) = (queue("queue-up-"), queue("queue-down-"));
    let Some(tier) = up.or(down) else {
        return Err(unknown(plan, annotation, "the graph"));
    };
    let Some(bytes) = whole_number(value).filter(|bytes| *bytes > 0) else {
        return Err(no_value(plan, annotation, "a number of bytes above 0"));
    };
    if fabric.queues.len() <= tier {
        fabric.queues.resize(tier + 1, InfragraphQueues::default());
    }
    let queues = &mut fabric.queues[tier];
    let side = if up.is_some() {
        &mut queues.up
    } else {
        &mut queues.down
    };
    *side = Some(Bytes::new(bytes));
    Ok(())
}

fn of_switches(
    plan: &Plan<'_>,
    nodes: &Nodes,
    fabric: &mut InfragraphFabric,
    annotation: &Annotation,
    (name, named): (&Placed, &mut u64),
) -> Result<(), FileError> {
    let owner = copy_of(name);
    let segment = segments(plan.source, &owner)?[0];
    let instance = plan.instance(segment.name, name)?;
    let count = plan.document.instances[instance].count;
    let copies = indices(plan.source, name, segment, count)?;
    *named = named.saturating_add(copies.len.into());
    if *named > MOST_NAMED {
        let message = format!("annotations name more than {MOST_NAMED} switches");
        return Err(plan.fault(name.line, message, "name fewer with slices"));
    }
    for index in copies.iter() {
        let Some(switch) = nodes.switch(plan, instance, index) else {
            let message = format!(
                "`{}[{index}]` is not a switch with cables",
                shown(segment.name)
            );
            return Err(plan.fault(name.line, message, "name instances of switches"));
        };
        of_switch(plan, &mut fabric.switches[switch], annotation, index)?;
    }
    Ok(())
}

/// The instance of a node: InfraGraph's `get_graph` writes an attribute of `leaf[0:2]` at each component of it, as `leaf.0.port.3`.
fn copy_of(name: &Placed) -> Placed {
    let mut parts = name.text.split('.');
    let text = match (parts.next(), parts.next()) {
        (Some(owner), Some(index)) if whole_number(index).is_some() => format!("{owner}[{index}]"),
        (Some(owner), _) => owner.to_owned(),
        (None, _) => String::new(),
    };
    Placed {
        text,
        ..name.clone()
    }
}

/// Sets an attribute of a switch, which is copy `index` of its instance.
fn of_switch(
    plan: &Plan<'_>,
    switch: &mut InfragraphSwitch,
    annotation: &Annotation,
    index: u32,
) -> Result<(), FileError> {
    let value = annotation.value.text.as_str();
    let refused = |expected: &str| no_value(plan, annotation, expected);
    match &annotation.attribute.text[PREFIX.len()..] {
        "name" => {
            let name = counted_up(value, index);
            switch.name = name.ok_or_else(|| {
                refused("the name of copy 0, which ends with a number if there are several")
            })?;
        }
        "tier" => switch.tier = Some(value.parse().map_err(|_| refused("a tier from 0 to 255"))?),
        "group" => {
            let group = value.parse().ok().filter(|group| *group < u16::MAX);
            switch.group = Some(group.ok_or_else(|| refused("a group from 0 to 65534"))?);
        }
        "latency" => {
            let latency = time(value);
            switch.latency = latency.ok_or_else(|| refused("a time up to 1s, as in `500ns`"))?;
        }
        "role" => {
            let role = InfragraphRole::from_value(&Value::Text(value.into()));
            switch.role = role.ok_or_else(|| refused(&InfragraphRole::expected()))?;
        }
        _ => return Err(unknown(plan, annotation, "a switch")),
    }
    Ok(())
}

/// The name of copy `index`, if copy 0 is called `first`.
fn counted_up(first: &str, index: u32) -> Option<String> {
    if first.is_empty() {
        return None;
    }
    if index == 0 {
        return Some(first.to_owned());
    }
    let start = first.trim_end_matches(|last: char| last.is_ascii_digit());
    let number = whole_number(&first[start.len()..])?;
    Some(format!("{start}{}", number.checked_add(index.into())?))
}

fn time(text: &str) -> Option<Span> {
    let span = Span::from_value(&Value::Text(text.into()))?;
    (span <= Span::from_ms(1000)).then_some(span)
}

fn of_link(
    plan: &Plan<'_>,
    link: &mut InfragraphLink,
    annotation: &Annotation,
) -> Result<(), FileError> {
    let value = annotation.value.text.as_str();
    let refused = |expected: &str| no_value(plan, annotation, expected);
    let probability = || {
        let value = value
            .parse::<f64>()
            .ok()
            .filter(|value| (0.0..1.0).contains(value));
        value.ok_or_else(|| refused("a probability from 0 to below 1"))
    };
    match &annotation.attribute.text[PREFIX.len()..] {
        "packet-loss" => link.packet_loss = probability()?,
        "bit-error-rate" => link.bit_error_rate = probability()?,
        "dead-from" => {
            let after = Span::from_value(&Value::Text(value.into()));
            let after = after.ok_or_else(|| refused("a time, as in `1ms`"))?;
            link.dead_from = Some(Time::ZERO.saturating_add(after));
        }
        "order" => {
            let order = value.parse();
            link.order = order.map_err(|_| refused("a place from 0 to 255"))?;
        }
        "dateline" if value == "true" => link.is_dateline = true,
        "dateline" => return Err(refused("`true`")),
        "down" if value == "true" => link.is_up = false,
        "down" => return Err(refused("`true`")),
        _ => return Err(unknown(plan, annotation, "an edge")),
    }
    Ok(())
}

/// The port that a name with dots stands for: `host.0.nic.1`, or with slices that select one.
fn port_of(plan: &Plan<'_>, text: &Placed) -> Result<Port, FileError> {
    let fault = || {
        let message = format!("`{}` is not one port", shown(&text.text));
        plan.fault(
            text.line,
            message,
            "write instance, index, component and index, as in `leaf.0.port.3`",
        )
    };
    let parts: Vec<&str> = text.text.split('.').collect();
    let pairs = parts.chunks(2).map(|pair| match pair {
        [name, index] if whole_number(index).is_some() => Some(format!("{name}[{index}]")),
        _ => None,
    });
    let parts: Vec<String> = pairs.collect::<Option<_>>().ok_or_else(fault)?;
    let [owner, rest @ ..] = &parts[..] else {
        return Err(fault());
    };
    let placed = |text_of: String| Placed {
        text: text_of,
        ..text.clone()
    };
    let owner = placed(owner.clone());
    let segment: Segment<'_> = segments(plan.source, &owner)?[0];
    let instance = plan.instance(segment.name, &owner)?;
    let count = plan.document.instances[instance].count;
    let index = indices(plan.source, &owner, segment, count)?.at(0);
    let component = placed(rest.join("."));
    let elements = plan
        .devices
        .select(plan.device_of[instance], None, &component)?;
    match elements[..] {
        [element] => Ok(Port {
            instance: instance as u32,
            index,
            element,
        }),
        _ => Err(fault()),
    }
}
