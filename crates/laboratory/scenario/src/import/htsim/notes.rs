//! Options without a counterpart.

use super::translation::Import;
use super::transport::CongestionControl;
use crate::import::draft::Effect;
use clearway_formats::HtsimOption;

/// Options that only say what `htsim_uec` writes.
const OUTPUT: [&str; 5] = ["-o", "-log", "-logtime", "-logtime_us", "-debug"];

impl Import<'_> {
    pub(super) fn notes(&mut self) {
        self.receiver_pacing();
        if let Some(option) = self.last("-enable_accurate_base_rtt") {
            let meaning =
                "windows begin with the round trip of the network, not of the pair of hosts";
            self.draft
                .note(Effect::Results, format!("`{option}`"), meaning);
        }
        if let Some(option) = self.last("-pcie") {
            let meaning = "transfers between NIC and memory take no time";
            self.draft
                .note(Effect::Results, format!("`{option}`"), meaning);
        }
        if let Some(option) = self
            .last("-host_queue_type")
            .filter(|o| o.text() != "fair_prio")
        {
            let meaning = "NICs send control packets first and flows in turn, as with `fair_prio`";
            self.draft
                .note(Effect::Results, format!("`{option}`"), meaning);
        }
        self.triggers();
        let written = OUTPUT.iter().filter_map(|name| self.last(name));
        let written: Vec<String> = written.map(|option| format!("`{option}`")).collect();
        if !written.is_empty() {
            let meaning = "results are in the folder of `clearway run --out DIR`, and `[observe]` has curves, timelines and captures";
            self.draft.note(Effect::Output, written.join(", "), meaning);
        }
    }

    fn receiver_pacing(&mut self) {
        let control = CongestionControl::of(self.command);
        let parameters = ["-Ai", "-Md", "-alpha"];
        let named = ["-oversubscribed_cc"].iter().chain(&parameters);
        let named: Vec<&HtsimOption> = named.filter_map(|name| self.last(name)).collect();
        let oversubscribed = self.inputs.topo.as_ref().is_some_and(|topo| {
            let below_the_top = topo.tiers.split_last().map_or(&[][..], |(_, below)| below);
            below_the_top.iter().any(|tier| tier.oversubscribed > 1)
        });
        let by_itself = oversubscribed && control.paces_if_oversubscribed();
        if control.receiver && (control.oversubscribed || by_itself) {
            let shown: Vec<String> = named.iter().map(|option| format!("`{option}`")).collect();
            let what = match control.oversubscribed {
                true => shown.join(", "),
                false => {
                    "`-oversubscribed_cc` (htsim's default on an oversubscribed topology)".into()
                }
            };
            let meaning = "receivers grant credit at 0.99 of their rate (`transport.credit.rate`), and do not slow down when the fabric is \
                           congested";
            self.draft.note(Effect::Results, what, meaning);
        } else {
            for option in named {
                let meaning =
                    "without effect: receivers grant no credit, or another option turns it off";
                self.draft
                    .note(Effect::None, format!("`{option}`"), meaning);
            }
        }
        if let Some(option) = self.last("-force_disable_oversubscribed_cc") {
            let meaning = "there is no such control here";
            self.draft
                .note(Effect::None, format!("`{option}`"), meaning);
        }
    }

    /// Triggers that `htsim_uec` never fires.
    fn triggers(&mut self) {
        let reuses = self.last("-conn_reuse");
        if let Some(option) = reuses {
            let meaning =
                "lines with `msg` and the same `id` are messages of one connection in any case";
            self.draft
                .note(Effect::None, format!("`{option}`"), meaning);
        }
        let Some(matrix) = &self.inputs.matrix else {
            return;
        };
        let mut flows = matrix.workload.flows.iter();
        if reuses.is_none() && flows.any(|flow| flow.on_received.is_some()) {
            let meaning = "`htsim_uec` never fires it without `-conn_reuse`, and the flows that wait for it never start; here they start";
            self.draft.note(
                Effect::Results,
                "`recv_done_trigger` of the matrix",
                meaning,
            );
        }
    }
}
