//! Parts of layers that the policy of a workload does not run, as in SimAI.

use super::workload::{SimaiLayer, SimaiPhase, SimaiPolicy, SimaiWorkload};
use clearway_units::Span;
use clearway_workload::counted;

/// Numbers of the parts that do not run.
#[derive(Default)]
struct LeftOut {
    /// Collectives of forward passes, of input gradients and of weight gradients.
    collectives: [usize; 3],
    computations: usize,
    updates: usize,
    /// Time of the computations and updates.
    time: Span,
}

impl LeftOut {
    fn collective(&mut self, phase: usize, of: SimaiPhase) {
        self.collectives[phase] += usize::from(of.call.is_some());
    }

    fn computation(&mut self, of: SimaiPhase) {
        if !of.compute.is_zero() {
            self.computations += 1;
            self.time = self.time.checked_add(of.compute).unwrap_or(self.time);
        }
    }

    fn update(&mut self, layer: &SimaiLayer) {
        if !layer.update.is_zero() {
            self.updates += 1;
            self.time = self.time.checked_add(layer.update).unwrap_or(self.time);
        }
    }

    /// Records the parts of layer `index` that the policy does not run.
    fn layer(&mut self, index: usize, layer: &SimaiLayer, policy: SimaiPolicy) {
        let phases = [layer.forward, layer.input_gradient, layer.weight_gradient];
        let no_call = layer.weight_gradient.call.is_none();
        match policy {
            SimaiPolicy::Micro => {
                self.collective(0, phases[0]);
                self.collective(1, phases[1]);
                for phase in phases {
                    self.computation(phase);
                }
                self.update(layer);
            }
            SimaiPolicy::Data => {
                self.collective(0, phases[0]);
                self.collective(1, phases[1]);
                if index == 0 {
                    self.computation(phases[1]);
                }
                if no_call {
                    self.update(layer);
                }
            }
            SimaiPolicy::Model => {
                if index == 0 {
                    self.collective(1, phases[1]);
                }
                self.collective(2, phases[2]);
                self.update(layer);
            }
            SimaiPolicy::DistributedInference => {
                for (number, phase) in phases.into_iter().enumerate().skip(1) {
                    self.collective(number, phase);
                    self.computation(phase);
                }
                self.update(layer);
            }
            _ if no_call => self.update(layer),
            _ => {}
        }
    }

    /// Words for the parts that do not run; `None` if all run.
    fn words(&self) -> Option<String> {
        const PHASES: [&str; 3] = ["forward passes", "input gradients", "weight gradients"];
        let collectives = self.collectives.into_iter().zip(PHASES);
        let collectives = collectives
            .filter(|(count, _)| *count > 0)
            .map(|(count, of)| format!("{} of {of}", counted(count, "collective")));
        let others = [(self.computations, "computation"), (self.updates, "update")];
        let others = others
            .into_iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, what)| counted(count, what));
        let parts: Vec<String> = collectives.chain(others).collect();
        let time = match self.time.is_zero() {
            true => String::new(),
            false => format!(" ({} in all)", self.time),
        };
        (!parts.is_empty()).then(|| format!("{}{time}", parts.join(", ")))
    }
}

/// Warning about parts of layers that have no effect; `None` if all parts have an effect.
pub(super) fn warning(workload: &SimaiWorkload) -> Option<String> {
    let policy = workload.policy;
    let mut left_out = LeftOut::default();
    // A separate warning names the other layers.
    let layers = match policy {
        SimaiPolicy::Micro => workload.layers.get(..1).unwrap_or_default(),
        _ => &workload.layers,
    };
    for (index, layer) in layers.iter().enumerate() {
        left_out.layer(index, layer, policy);
    }
    let rule = match policy {
        SimaiPolicy::Micro => "`MICRO` runs the collective of weight gradients alone",
        SimaiPolicy::Data => "`DATA` runs the collectives of weight gradients alone",
        SimaiPolicy::Model => "`MODEL` has no collectives of weight gradients and no updates",
        SimaiPolicy::DistributedInference => "`DISTRIBUTED_INFERENCE` runs forward passes alone",
        _ => "weights are updated after a collective of their gradients alone",
    };
    left_out
        .words()
        .map(|words| format!("left out, as in SimAI: {words}; {rule}"))
}
