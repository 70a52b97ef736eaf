//! Queues, marks, trimming and routing of switches.

use super::translation::{DEFAULT, Import, fault};
use crate::error::ScenarioError;
use crate::import::draft::Effect;
use clearway_formats::HtsimOption;
use clearway_units::{Bytes, RelativeSize, Span};

impl Import<'_> {
    /// Writes the section, and returns the limit of queues if it is known in bytes.
    ///
    /// # Errors
    /// If `htsim_uec` stops because marks end above the queue.
    pub(super) fn switch(&mut self) -> Result<Option<Bytes>, ScenarioError> {
        let queue = self.queue();
        self.check_marks(queue)?;
        match self.marks_by_half_queues() {
            Some(option) => self.half_queue_marks(&option.to_string(), queue),
            None => self.marks(),
        }
        self.trimming();
        self.routing();
        if let Some(option) = self.last("-queue_type")
            && option.text() != "composite"
        {
            let meaning = "switches have drop-tail queues with marks and trimming, `composite`";
            self.draft
                .note(Effect::Results, format!("`{option}`"), meaning);
        }
        Ok(queue)
    }

    /// True if full queues trim packets.
    pub(super) fn trims(&self) -> bool {
        !self.command.has("-disable_trim")
    }

    /// Writes the limit of queues, and returns it if it is known in bytes.
    fn queue(&mut self) -> Option<Bytes> {
        if let Some(option) = self.last("-q") {
            let packets = option.whole(0).unwrap_or(1);
            let (queue, mtu) = (self.network.packets(packets), self.network.mtu);
            let source = format!("{option}: packets of {mtu} B");
            let size = self.size(queue);
            self.draft.set("switch", "queue", size, source);
            return Some(queue);
        }
        let default = if self.trims() { 1 } else { 5 };
        let (factor, source) = self.whole("-queue_size_bdp_factor", 0);
        let (factor, source) = match factor {
            0 => (default, DEFAULT.into()),
            factor => (factor, source),
        };
        let Some(bdp) = self.network.bdp_packets() else {
            let queue = RelativeSize::percent_of_bdp(factor.saturating_mul(100));
            self.draft
                .set("switch", "queue", queue, format!("{source}: {factor} BDP"));
            return None;
        };
        let (packets, mtu) = (bdp.saturating_mul(factor), self.network.mtu);
        let queue = self.network.packets(packets);
        let source = format!("{source}: {factor} BDP, {packets} packets of {mtu} B");
        let size = self.size(queue);
        self.draft.set("switch", "queue", size, source);
        Some(queue)
    }

    /// Packets in a queue at which marks begin and end, and their source.
    fn thresholds(&self) -> Option<[(u64, String); 2]> {
        if let Some(option) = self.last("-ecn") {
            let source = format!("{option}: packets of {} B", self.network.mtu);
            let packets = |index| option.whole(index).unwrap_or(0);
            return Some([(packets(0), source.clone()), (packets(1), source)]);
        }
        let bdp = self.network.bdp_packets()?;
        Some([20u64, 80].map(|percent| {
            let packets = bdp.saturating_mul(percent).div_ceil(100);
            let source = format!("{DEFAULT}: {percent} % of a BDP, {packets} packets");
            (packets, source)
        }))
    }

    /// `htsim_uec` asserts that marks end within the queue.
    fn check_marks(&self, queue: Option<Bytes>) -> Result<(), ScenarioError> {
        let Some([(low, _), (high, _)]) = self.thresholds() else {
            return Ok(());
        };
        if low > high {
            return Err(fault(
                format!("marks begin at {low} packets and end at {high}: `htsim_uec` stops"),
                "write the smaller number of `-ecn` first",
            ));
        }
        let Some(queue) = queue.filter(|queue| self.network.packets(high) > *queue) else {
            return Ok(());
        };
        let limit = queue.as_u64() / self.network.mtu;
        Err(fault(
            format!("marks end at {high} packets, above the queue of {limit}: `htsim_uec` stops"),
            "write a larger `-q`, or smaller thresholds with `-ecn LOW HIGH`, in packets",
        ))
    }

    fn marks(&mut self) {
        let keys = ["ecn.kmin", "ecn.kmax"];
        match self.thresholds() {
            Some(thresholds) => {
                for (key, (packets, source)) in keys.into_iter().zip(thresholds) {
                    let size = self.size(self.network.packets(packets));
                    self.draft.set("switch", key, size, source);
                }
            }
            None => {
                for (key, percent) in keys.into_iter().zip([20, 80]) {
                    let share = RelativeSize::percent_of_bdp(percent);
                    self.draft.set("switch", key, share, DEFAULT);
                }
            }
        }
    }

    /// A size of a queue: bytes, or with slower links the time in which a link sends it, which shrinks the queues of these links as in
    /// htsim.
    fn size(&self, bytes: Bytes) -> RelativeSize {
        let time = self.slow_links_of().and_then(|rate| {
            let bits = u128::from(bytes.as_u64()) * 8_000_000_000_000;
            let rate = u128::from(rate.as_bps());
            let ps = bits.is_multiple_of(rate).then_some(bits / rate)?;
            u64::try_from(ps).ok().map(Span::from_ps)
        });
        time.map_or(RelativeSize::Absolute(bytes), RelativeSize::OfTime)
    }

    /// The option that replaces marks between two thresholds by marks from half a queue, if the last word about queues is one.
    fn marks_by_half_queues(&self) -> Option<HtsimOption> {
        const MARKING: [&str; 3] = ["rr_ecmp", "ecmp_host_ecn", "reactive_ecn"];
        let options = self.command.options.iter().rev();
        let mut options = options.filter(|option| match option.name {
            "-strat" => MARKING.contains(&option.text()),
            name => name == "-queue_type",
        });
        let last = options.next()?;
        (last.name == "-strat").then(|| last.clone())
    }

    fn half_queue_marks(&mut self, source: &str, queue: Option<Bytes>) {
        let source = format!("{source}: half a queue");
        for key in ["ecn.kmin", "ecn.kmax"] {
            match queue {
                Some(queue) => {
                    let half = self.size(Bytes::new(queue.as_u64() / 2));
                    self.draft.set("switch", key, half, source.clone());
                }
                None => {
                    let factor = if self.trims() { 50 } else { 250 };
                    let half = RelativeSize::percent_of_bdp(factor);
                    self.draft.set("switch", key, half, source.clone());
                }
            }
        }
        if let Some(option) = self.last("-ecn") {
            let meaning = "`htsim_uec` replaces it by half a queue with this `-strat`";
            self.draft
                .note(Effect::None, format!("`{option}`"), meaning);
        }
    }

    fn trimming(&mut self) {
        if let Some(option) = self.last("-disable_trim") {
            self.draft
                .set("switch", "trimming", false, option.to_string());
        }
        let size = self.last("-trimsize");
        match (size, self.trims()) {
            (Some(option), true) => {
                let size = Bytes::new(option.whole(0).unwrap_or(64));
                self.draft
                    .set("switch", "trim-size", size, option.to_string());
            }
            (Some(option), false) => {
                let meaning = "nothing is trimmed with `-disable_trim`";
                self.draft
                    .note(Effect::None, format!("`{option}`"), meaning);
            }
            (None, _) => {}
        }
    }

    fn routing(&mut self) {
        let known = [
            "ecmp_host",
            "ecmp_host_ecn",
            "reactive_ecn",
            "ecmp_ar",
            "ecmp_rr",
            "ecmp_host_ar",
            "rr_ecmp",
        ];
        let options = self.command.options.iter().filter(|o| o.name == "-strat");
        for ignored in options.clone().filter(|o| !known.contains(&o.text())) {
            let meaning = "`htsim_uec` ignores this value, and so does the scenario";
            self.draft
                .note(Effect::None, format!("`{ignored}`"), meaning);
        }
        let strategy = options.rev().find(|o| known.contains(&o.text()));
        let Some(option) = strategy else {
            self.unused_adaptive_options();
            return;
        };
        let source = option.to_string();
        match option.text() {
            "ecmp_ar" => return self.adaptive_routing(&source),
            "ecmp_rr" => self.draft.text("switch", "routing", "round-robin", source),
            "ecmp_host_ar" => {
                let meaning = "a switch that replaces half of the choices of the hash by less loaded ports is not available; \
                               `switch.routing = \"adaptive\"` replaces all of them";
                self.draft
                    .note(Effect::Results, format!("`{source}`"), meaning);
            }
            "rr_ecmp" => {
                let meaning = "round robin at leaves alone is not available; `switch.routing = \"round-robin\"` is at all switches";
                self.draft
                    .note(Effect::Results, format!("`{source}`"), meaning);
            }
            _ => self.draft.text("switch", "routing", "ecmp", source),
        }
        self.unused_adaptive_options();
    }

    fn unused_adaptive_options(&mut self) {
        for name in ["-ar_granularity", "-ar_method", "-ar_sticky_delta"] {
            if let Some(option) = self.last(name) {
                let meaning = "without effect unless `-strat ecmp_ar`";
                self.draft
                    .note(Effect::None, format!("`{option}`"), meaning);
            }
        }
    }

    fn adaptive_routing(&mut self, source: &str) {
        let flowlets = self.last("-ar_granularity").filter(|o| o.text() == "flow");
        match flowlets {
            None => self.draft.text("switch", "routing", "adaptive", source),
            Some(option) => {
                let source = format!("{source} {option}");
                self.draft.text("switch", "routing", "flowlet", source);
            }
        }
        let levels = vec![0.05, 0.1, 0.2];
        self.draft.set("switch", "adaptive.levels", levels, DEFAULT);
        self.draft
            .text("switch", "adaptive.refresh", "100ns", DEFAULT);
        if let Some(option) = self.last("-ar_sticky_delta") {
            match (flowlets, option.duration()) {
                (Some(_), Some(gap)) => {
                    let source = option.to_string();
                    self.draft
                        .set("switch", "adaptive.flowlet-gap", gap, source);
                }
                _ => {
                    let meaning = "without effect unless `-ar_granularity flow`";
                    self.draft
                        .note(Effect::None, format!("`{option}`"), meaning);
                }
            }
        }
        if let Some(option) = self.last("-ar_method").filter(|o| o.text() != "queue") {
            let meaning = "switches compare the queues of ports, `queue`";
            self.draft
                .note(Effect::Results, format!("`{option}`"), meaning);
        }
    }
}
