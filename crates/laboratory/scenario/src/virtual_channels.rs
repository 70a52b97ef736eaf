//! Checks of `topology.virtual-channels` = 2 against switches and priorities.

use crate::error::ScenarioError;
use crate::switch::SwitchSettings;
use crate::topology::TopologySettings;
use clearway_fabric::LosslessClasses;
use clearway_fabric::topology::Topology;
use clearway_transport::{Class, ClassSet};

/// The highest priority of flows: second channels are the classes 5 to 7.
const HIGHEST: u8 = 3;
const NAME: &str = "`topology.virtual-channels` = 2";

/// The highest of `classes` that flows cannot have beside virtual channels.
fn above_first_channels(classes: ClassSet) -> Option<usize> {
    let highest = classes.highest().map(Class::index);
    highest.filter(|class| *class > HIGHEST.into())
}

/// Checks the switches of a fabric with two virtual channels.
pub(crate) fn check_channels(
    topology: &TopologySettings,
    switch: &SwitchSettings,
) -> Result<(), ScenarioError> {
    let Some(buffer) = switch
        .buffer
        .as_ref()
        .filter(|_| topology.two_channels().is_some())
    else {
        return Ok(());
    };
    if !switch.ports.control_priority {
        return Err(ScenarioError::about(
            &["control-priority"],
            format!(
                "{NAME} needs `switch.control-priority`: otherwise acknowledgements are paused with data and do not change channels"
            ),
            "set `switch.control-priority = true`, or `topology.virtual-channels = 1`",
        ));
    }
    let lossless = buffer.lossless;
    let named = (lossless != LosslessClasses::ALL).then_some(lossless.classes());
    let marked = switch.ports.class_marks.iter();
    let marked = marked.fold(ClassSet::EMPTY, |all, marks| {
        all.union(ClassSet::only(marks.class))
    });
    for (key, classes) in [("pfc.classes", named), ("ecn.classes", Some(marked))] {
        if let Some(class) = classes.and_then(above_first_channels) {
            return Err(ScenarioError::about(
                &[key],
                format!(
                    "`switch.{key}` names priority {class}, and {NAME} leaves priorities 1 to {HIGHEST} to flows"
                ),
                format!(
                    "name priorities of 1 to {HIGHEST}: their second channels have the same settings"
                ),
            ));
        }
    }
    Ok(())
}

/// Checks the classes of flows on a fabric that may have two virtual channels.
///
/// # Errors
/// If a class is above those of first channels.
pub fn check_classes(
    switch: &SwitchSettings,
    topology: &Topology,
    classes: ClassSet,
) -> Result<(), ScenarioError> {
    let class = above_first_channels(classes);
    match class.filter(|_| pauses(switch) && topology.has_virtual_channels()) {
        None => Ok(()),
        Some(class) => Err(ScenarioError::about(
            &["priority", "file"],
            format!(
                "a flow has priority {class}, and {NAME} leaves priorities 1 to {HIGHEST} to flows"
            ),
            format!(
                "give flows priorities of 1 to {HIGHEST}, or set `topology.virtual-channels = 1`"
            ),
        )),
    }
}

/// True if links are paused instead of dropping some class.
fn pauses(switch: &SwitchSettings) -> bool {
    let buffer = switch.buffer.as_ref();
    buffer.is_some_and(|buffer| !buffer.lossless.classes().is_empty())
}

/// Warning about virtual channels that no packet changes.
pub(crate) fn idle_channels(
    topology: &TopologySettings,
    switch: &SwitchSettings,
) -> Option<String> {
    let is_closed = topology.two_channels()?;
    let (why, fix) = match (switch.buffer.is_some(), pauses(switch), is_closed) {
        (false, ..) => (
            "while `switch.kind` = \"lossy\"",
            "set that to \"shared-buffer\"",
        ),
        (true, false, _) => (
            "while `switch.pfc.classes` names no priority",
            "name the lossless priorities",
        ),
        (true, true, false) => (
            "on rings of less than three hosts, which do not close",
            "use larger rings",
        ),
        (true, true, true) => return None,
    };
    Some(format!(
        "{NAME} changes nothing {why}; {fix}, or leave the key out"
    ))
}
