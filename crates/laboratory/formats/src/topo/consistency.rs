//! Check of a fabric: its numbers must be consistent.
//!
//! htsim derives the number of switches from bandwidths and `Oversubscribed`. This check derives it from ports, with the same result for
//! files that htsim accepts. `D`, `U` and `B` are the ports below, the ports above and the bundle of a tier. A pod has `podsize / D0`
//! leaves and `A = U0 / B1` aggregation switches, so `D1 = (podsize / D0) B1`. There are `A U1 / B2` cores, and each core reaches every pod
//! through one aggregation switch, so `D2 = pods B2`.

use super::fabric::{Fabric, GIGABIT, MOST_NODES, NumberAtLine};
use clearway_workload::FileError;

/// Checks `fabric`, and fills in the numbers that follow from its ports.
pub(super) fn consistent(mut fabric: Fabric<'_>) -> Result<Fabric<'_>, FileError> {
    fabric.check_pods()?;
    fabric.check_bundles()?;
    fabric.check_ports()?;
    fabric.check_switches()?;
    for tier in 0..fabric.tiers.len() - 1 {
        fabric.check_oversubscription(tier)?;
    }
    fabric.check_top_oversubscription();
    Ok(fabric)
}

impl Fabric<'_> {
    fn fault(&self, said: NumberAtLine, message: String, fix: String) -> FileError {
        self.source.fault(said.line, None, message).fix(fix)
    }

    fn check_pods(&self) -> Result<(), FileError> {
        let (nodes, podsize) = (self.nodes.value, self.podsize.value);
        if self.tiers.len() == 2 && podsize != nodes {
            let message =
                format!("`Podsize {podsize}`, but with two tiers all {nodes} hosts are one pod");
            let fix = format!("write `Podsize {nodes}`");
            return Err(self.fault(self.podsize, message, fix));
        }
        if nodes % podsize != 0 {
            let message = format!("`Podsize {podsize}` does not divide `Nodes {nodes}`");
            let fix = format!("choose a `Podsize` that divides {nodes}");
            return Err(self.fault(self.podsize, message, fix));
        }
        let radix_down = self.tiers[0].radix_down;
        let per_leaf = radix_down.value;
        if podsize % per_leaf != 0 {
            let message =
                format!("`Radix_Down {per_leaf}` of tier 0 does not divide `Podsize {podsize}`");
            let fix = format!("choose a `Radix_Down` that divides {podsize}");
            return Err(self.fault(radix_down, message, fix));
        }
        Ok(())
    }

    fn check_bundles(&self) -> Result<(), FileError> {
        let leaf = self.tiers[0].bundle;
        if leaf.value != 1 {
            let message = format!("`Bundle {}` in tier 0, but a host has one link", leaf.value);
            return Err(self.fault(leaf, message, "write `Bundle 1`, or remove the line".into()));
        }
        for (index, pair) in (1..).zip(self.tiers.windows(2)) {
            let [below, tier] = pair else { continue };
            let bundle = tier.bundle.value;
            let radix_up = below.radix_up.map(|said| ("Radix_Up", index - 1, said));
            let radix_down = Some(("Radix_Down", index, tier.radix_down));
            for (key, owner, radix) in radix_down.into_iter().chain(radix_up) {
                if radix.value % bundle != 0 {
                    let value = radix.value;
                    let message = format!(
                        "`Bundle {bundle}` of tier {index} does not divide `{key} {value}` of tier {owner}"
                    );
                    let fix = format!("choose a `Bundle` that divides {value}");
                    return Err(self.fault(tier.bundle, message, fix));
                }
            }
        }
        Ok(())
    }

    fn check_ports(&self) -> Result<(), FileError> {
        let leaves = self.podsize.value / self.tiers[0].radix_down.value;
        let pods = self.nodes.value / self.podsize.value;
        let groups = [
            (leaves, "leaves below each switch"),
            (pods, "pods below each core"),
        ];
        for ((index, tier), (count, what)) in (1..).zip(&self.tiers[1..]).zip(groups) {
            let bundle = tier.bundle.value;
            let (right, found) = (count * bundle, tier.radix_down.value);
            if found != right {
                let message = format!(
                    "`Radix_Down {found}` of tier {index}, but there are {count} {what}, with `Bundle {bundle}`"
                );
                let fix = format!("write `Radix_Down {right}`, or change the other numbers");
                return Err(self.fault(tier.radix_down, message, fix));
            }
        }
        Ok(())
    }

    /// Checks that no tier has more switches than the maximum number of hosts.
    fn check_switches(&self) -> Result<(), FileError> {
        let pods = self.nodes.value / self.podsize.value;
        let mut per_pod = 1;
        for (index, pair) in self.tiers.windows(2).enumerate() {
            let (Some(up), above) = (pair[0].radix_up, &pair[1]) else {
                continue;
            };
            per_pod *= up.value / above.bundle.value;
            let switches = if index == 0 { per_pod * pods } else { per_pod };
            if switches > MOST_NODES {
                let message = format!(
                    "`Radix_Up {}` of tier {index} makes {switches} switches in tier {}",
                    up.value,
                    index + 1
                );
                let fix = format!("choose numbers that make at most {MOST_NODES}");
                return Err(self.fault(up, message, fix));
            }
        }
        Ok(())
    }

    /// Checks `Oversubscribed` of a tier against its ports and speeds.
    fn check_oversubscription(&mut self, index: usize) -> Result<(), FileError> {
        let (tier, above) = (&self.tiers[index], &self.tiers[index + 1]);
        let Some(up) = tier.radix_up.map(|said| said.value) else {
            return Ok(());
        };
        let down = tier.radix_down.value;
        let (speed_down, speed_up) = (tier.speed.value, above.speed.value);
        let (below, beyond) = (down * speed_down, up * speed_up);
        let by_ports = (down / up).max(1);
        let by_bandwidth = (below / beyond).max(1);
        let [gbps_down, gbps_up] = [speed_down, speed_up].map(|bits| bits as f64 / GIGABIT as f64);
        let ratio = format!("{down} x {gbps_down}G below and {up} x {gbps_up}G above");
        match tier.oversubscribed {
            None => {
                let line = tier.line;
                self.tiers[index].oversubscribed = Some(NumberAtLine {
                    value: by_bandwidth,
                    line,
                });
                if by_bandwidth != 1 {
                    self.warn(line, format!("there is no `Oversubscribed` in tier {index}: taken as {by_bandwidth} from {ratio}"));
                }
            }
            Some(said) if said.value != by_ports && said.value != by_bandwidth => {
                let stated = said.value;
                let message =
                    format!("`Oversubscribed {stated}` in tier {index}, but it has {ratio}");
                let fix = format!("write `Oversubscribed {by_bandwidth}`, or change the ports");
                return Err(self.fault(said, message, fix));
            }
            Some(said) => {
                let for_ports = said.value * up == down;
                let for_bandwidth = said.value.checked_mul(beyond) == Some(below);
                let holds = match (for_ports, for_bandwidth) {
                    (true, true) => return Ok(()),
                    (true, false) => "holds for the ports but not for the bandwidth",
                    (false, true) => "holds for the bandwidth but not for the ports",
                    (false, false) => "is rounded down",
                };
                let stated = said.value;
                let message = format!(
                    "`Oversubscribed {stated}` in tier {index} {holds} ({ratio}); htsim refuses such a file, here the ports and speeds decide"
                );
                self.warn(said.line, message);
            }
        }
        Ok(())
    }

    fn check_top_oversubscription(&mut self) {
        let Some(top) = self.tiers.last_mut() else {
            return;
        };
        if let Some(said) = top.oversubscribed.take().filter(|said| said.value != 1) {
            let message = format!(
                "`Oversubscribed {}` is ignored: this is the top tier",
                said.value
            );
            self.warn(said.line, message);
        }
    }
}
