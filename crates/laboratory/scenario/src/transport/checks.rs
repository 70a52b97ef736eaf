//! Checks of transports against fabrics and switches.

use crate::error::ScenarioError;
use crate::topology::TopologySettings;
use crate::{SwitchSettings, TransportSettings};
use clearway_fabric::topology::{GroupRouting, PortChoice};
use clearway_transport::congestion::ControllerSettings;
use clearway_transport::congestion::credit::CreditScheme;
use clearway_transport::{Reliability, Scope};
use clearway_units::Bytes;

/// Minimum size of a trimmed packet: the shortest header that receivers can answer (UEC: 24 B and IP).
const SMALLEST_TRIM: Bytes = Bytes::new(24);

/// Checks that the parts of a transport support receiver credits.
pub(crate) fn check_credit(transport: &TransportSettings) -> Result<(), ScenarioError> {
    let credit = &transport.credit;
    if credit.scheme == CreditScheme::None {
        return Ok(());
    }
    let error = |key, why: &str, fix: &str| {
        let message = format!(
            "`transport.credit.kind` = \"{}\" {why}",
            credit.scheme.name()
        );
        Err(ScenarioError::about(&[key, "credit.kind"], message, fix))
    };
    if !matches!(transport.reliability, Reliability::SelectiveRepeat(_)) {
        return error(
            "reliability",
            "needs selective repeat: go-back-N receivers discard packets that have used credit",
            "set `transport.reliability = \"selective-repeat\"`, `transport.kind = \"uet-rccc\"` or `transport.credit.kind = \"none\"`",
        );
    }
    if transport.scope.scope != Scope::QueuePair {
        return error(
            "scope",
            "grants credit to each flow separately, and the scope covers several flows",
            "set `transport.scope = \"queue-pair\"`, or `transport.credit.kind = \"none\"`",
        );
    }
    let full = transport.packets.payload.as_u64() + transport.packets.header.as_u64();
    let quantum = credit.quantum.as_u64();
    if quantum == 0 || quantum > full {
        return error(
            "credit.quantum",
            &format!("has no use for a quantum of {}", credit.quantum),
            "give `credit.quantum` at least a byte, and no more than a full packet",
        );
    }
    if credit.pull.is_some_and(|pull| pull < credit.quantum) {
        return error(
            "credit.pull",
            "grants nothing by a pull of less than a quantum",
            "give `credit.pull` a quantum or more, or \"auto\" for four full packets",
        );
    }
    if !(0.001..=1.0).contains(&credit.rate) {
        return error(
            "credit.rate",
            &format!("cannot grant {:?} of the line rate", credit.rate),
            "give `credit.rate` a share from 0.001 to 1",
        );
    }
    if !(0.01..=1000.0).contains(&credit.window_bdps) {
        return error(
            "credit.window-bdps",
            &format!(
                "cannot begin with {:?} bandwidth-delay products",
                credit.window_bdps
            ),
            "give `credit.window-bdps` 0.01 to 1000",
        );
    }
    Ok(())
}

/// Rejects fabrics in which each packet takes another path, if control packets must take the path of the data.
pub(crate) fn check_one_path(
    transport: &TransportSettings,
    topology: &TopologySettings,
) -> Result<(), ScenarioError> {
    let allocates = matches!(
        transport.controller,
        ControllerSettings::SPerc(_) | ControllerSettings::OneRc(_)
    );
    let (key, value, fix) = match topology.detours() {
        Some(routing) => ("routing", routing.name(), GroupRouting::Minimal.name()),
        None if topology.has_least_queue_nics() => (
            "port-choice",
            PortChoice::LeastQueue.name(),
            PortChoice::Hash.name(),
        ),
        None => return Ok(()),
    };
    if !allocates {
        return Ok(());
    }
    Err(ScenarioError::about(
        &[key, "kind"],
        format!(
            "`topology.{key}` = \"{value}\" takes another way for each packet, and control packets of `transport.controller` = \"{}\" take the path of the data",
            transport.controller.name()
        ),
        format!("set `topology.{key} = \"{fix}\"`, or another transport"),
    ))
}

/// Rejects packet trimming where it cannot work.
pub(crate) fn check_trimming(
    transport: &TransportSettings,
    switch: &SwitchSettings,
) -> Result<(), ScenarioError> {
    let ports = &switch.ports;
    if !ports.trimming {
        return Ok(());
    }
    if switch.buffer.is_some() {
        return Err(ScenarioError::about(
            &["trimming", "kind"],
            "`switch.trimming` = true is for lossy switches: one with a shared buffer pauses links instead",
            "set `switch.kind = \"lossy\"`, or `switch.trimming = false`",
        ));
    }
    if !ports.control_priority {
        return Err(ScenarioError::about(
            &["control-priority", "trimming"],
            "`switch.trimming` = true needs `control-priority`: otherwise trimmed packets wait in the congested queue that they report",
            "set `switch.control-priority = true`, or `switch.trimming = false`",
        ));
    }
    if !matches!(transport.reliability, Reliability::SelectiveRepeat(_)) {
        return Err(ScenarioError::about(
            &["trimming"],
            "`switch.trimming` = true needs a transport with selective repeat: go-back-N cannot use a report of a single lost packet",
            "set `transport.reliability = \"selective-repeat\"` or `transport.kind = \"uet\"`, or `switch.trimming = false`",
        ));
    }
    let full = transport.packets.payload.as_u64() + transport.packets.header.as_u64();
    if ports.trim_size < SMALLEST_TRIM || ports.trim_size.as_u64() >= full {
        return Err(ScenarioError::about(
            &["trim-size"],
            format!(
                "`switch.trim-size` = {} is not a valid trimmed size of a packet of {full} B",
                ports.trim_size
            ),
            format!("use at least {SMALLEST_TRIM}, and less than a full packet"),
        ));
    }
    Ok(())
}
