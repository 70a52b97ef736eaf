//! Congestion control, recovery from losses and path selection.

use super::translation::{DEFAULT, Import};
use crate::import::draft::Effect;
use clearway_formats::{HtsimCommand, HtsimOption};
use clearway_units::{Bytes, RelativeSize, Span};

/// Bytes of the headers of a packet.
const HEADER: u64 = 64;

/// Congestion control of a command line. Later options override earlier ones, and some more than one setting.
#[derive(Debug, PartialEq)]
pub(super) struct CongestionControl {
    /// NSCC or another controller at the sender.
    sender: bool,
    /// An option has turned the sender's control on, which decides about the receiver's pacing on oversubscribed fabrics.
    named_sender: bool,
    /// Credits of the receiver.
    pub(super) receiver: bool,
    /// Pacing of the receiver for oversubscribed fabrics.
    pub(super) oversubscribed: bool,
    /// The receiver's pacing stays off on an oversubscribed fabric.
    never_oversubscribed: bool,
    /// Options that decide, as written.
    source: String,
}

impl CongestionControl {
    pub(super) fn of(command: &HtsimCommand) -> Self {
        let mut control = Self {
            sender: true,
            named_sender: false,
            receiver: false,
            oversubscribed: false,
            never_oversubscribed: false,
            source: String::new(),
        };
        for option in &command.options {
            control.apply(option);
        }
        control
    }

    fn apply(&mut self, option: &HtsimOption) {
        let decides = match option.name {
            "-sender_cc_only" => {
                (self.sender, self.named_sender, self.receiver) = (true, true, false);
                self.oversubscribed = false;
                true
            }
            "-receiver_cc_only" => {
                (self.sender, self.named_sender, self.receiver) = (false, false, true);
                self.oversubscribed = false;
                true
            }
            "-sender_cc" => {
                (self.sender, self.named_sender) = (true, true);
                self.oversubscribed = false;
                true
            }
            "-sender_cc_algo" => {
                (self.sender, self.named_sender) = (true, true);
                false
            }
            "-receiver_cc" => {
                self.receiver = true;
                true
            }
            "-oversubscribed_cc" => {
                self.oversubscribed = true;
                false
            }
            "-force_disable_oversubscribed_cc" => {
                (self.oversubscribed, self.never_oversubscribed) = (false, true);
                false
            }
            _ => false,
        };
        if decides {
            let gap = if self.source.is_empty() { "" } else { " " };
            self.source += &format!("{gap}{option}");
        }
    }

    /// True if `htsim_uec` turns the receiver's pacing on by itself on an oversubscribed fabric.
    pub(super) fn paces_if_oversubscribed(&self) -> bool {
        self.receiver && !self.named_sender && !self.never_oversubscribed
    }
}

impl Import<'_> {
    pub(super) fn transport(&mut self, queue: Option<Bytes>) {
        let control = CongestionControl::of(self.command);
        let trims = self.trims();
        let kind = match (control.receiver, trims) {
            (true, _) => "uet-rccc",
            (false, true) => "uet",
            (false, false) => "uet-no-trim",
        };
        let disable = self.last("-disable_trim").map(ToString::to_string);
        let source = match (control.source.as_str(), disable) {
            ("", None) => DEFAULT.to_owned(),
            ("", Some(disable)) => disable,
            (source, Some(disable)) if !control.receiver => format!("{source} {disable}"),
            (source, _) => source.to_owned(),
        };
        self.draft.text("transport", "kind", kind, source);
        self.controller(&control);
        let (mtu, source) = self.whole("-mtu", 4150);
        let payload = Bytes::new(mtu - HEADER);
        let source = format!("{source}: packets of {mtu} B with headers of {HEADER} B");
        self.draft.set("transport", "payload", payload, source);
        self.paths();
        self.recovery(kind, queue);
        if let Some(option) = self.last("-sack_threshold") {
            let bytes = Bytes::new(option.whole(0).unwrap_or(1));
            self.draft
                .set("transport", "ack-bytes", bytes, option.to_string());
        }
    }

    fn controller(&mut self, control: &CongestionControl) {
        let algorithm = self.last("-sender_cc_algo");
        if !control.sender {
            if let Some(option) = algorithm {
                let meaning = "`-receiver_cc_only` turns the sender's control off";
                self.draft
                    .note(Effect::None, format!("`{option}`"), meaning);
            }
            self.only_for_nscc("`-receiver_cc_only` has no NSCC");
            if let Some(option) = self.last("-cwnd") {
                let meaning =
                    "it is a window of the sender's control, which `-receiver_cc_only` turns off";
                self.draft
                    .note(Effect::None, format!("`{option}`"), meaning);
            }
            return;
        }
        let name = algorithm.map_or("nscc", HtsimOption::text);
        let source = algorithm.map_or_else(|| DEFAULT.to_owned(), ToString::to_string);
        if control.receiver || algorithm.is_some() {
            self.draft.text("transport", "controller", name, source);
        }
        match name {
            "constant" => self.constant(),
            "dctcp" => self.dctcp(),
            _ => return self.nscc(control),
        }
        self.only_for_nscc("it belongs to NSCC");
    }

    fn nscc(&mut self, control: &CongestionControl) {
        if control.receiver && !self.trims() {
            let source = format!("{DEFAULT} without trimming");
            self.draft
                .set("transport", "target-rtts", 1.0, source.clone());
            self.draft
                .set("transport", "quick-adapt-delay", 4.0, source);
        }
        if let Some(option) = self.last("-target_q_delay")
            && let Some(target) = option.duration().filter(|target| !target.is_zero())
        {
            self.draft
                .set("transport", "target-qdelay", target, option.to_string());
        }
        if let Some(option) = self.last("-qa_gate") {
            let fraction = 1u64 << option.whole(0).unwrap_or(3).min(30);
            let source = format!("{option}: 2^{}", option.text());
            let fraction = fraction as f64;
            self.draft
                .set("transport", "quick-adapt-fraction", fraction, source);
        }
        if let Some(option) = self.last("-disable_base_rtt_update_on_nack") {
            self.draft
                .set("transport", "base-rtt-by-nack", false, option.to_string());
        }
        if let Some(option) = self.last("-cwnd") {
            let (effect, meaning) = match option.whole(0) {
                Some(0) => (Effect::None, "the first window is 1.5 BDP"),
                _ => (
                    Effect::Results,
                    "the first window of NSCC is its largest one, 1.5 BDP; `transport.max-cwnd-bdps` sets both",
                ),
            };
            self.draft.note(effect, format!("`{option}`"), meaning);
        }
    }

    /// Notes options that only NSCC has.
    fn only_for_nscc(&mut self, meaning: &str) {
        for name in [
            "-target_q_delay",
            "-qa_gate",
            "-disable_base_rtt_update_on_nack",
        ] {
            if let Some(option) = self.last(name) {
                self.draft
                    .note(Effect::None, format!("`{option}`"), meaning);
            }
        }
    }

    /// Window of the controller in payload bytes, of which htsim counts whole packets with headers, and its source.
    fn first_window(&self) -> Option<(Bytes, String)> {
        let mtu = self.network.mtu;
        if let Some(option) = self.last("-cwnd")
            && let Some(packets @ 1..) = option.whole(0)
        {
            let bytes = Bytes::new(packets.saturating_mul(mtu - HEADER));
            return Some((bytes, option.to_string()));
        }
        let wire = self.network.bdp()?.saturating_mul(3) / 2;
        let payload = u128::from(wire) * u128::from(mtu - HEADER) / u128::from(mtu);
        let payload = u64::try_from(payload).ok()?.max(mtu - HEADER);
        Some((Bytes::new(payload), format!("{DEFAULT}: 1.5 BDP")))
    }

    fn constant(&mut self) {
        match self.first_window() {
            Some((window, source)) => self.draft.set("transport", "window", window, source),
            None => {
                let share = RelativeSize::percent_of_bdp(150);
                self.draft
                    .set("transport", "window", share, format!("{DEFAULT}: 1.5 BDP"));
            }
        }
    }

    fn dctcp(&mut self) {
        let half_again = format!("{DEFAULT}: 1.5 BDP");
        match self.first_window() {
            Some((window, source)) => {
                self.draft
                    .set("transport", "initial-window", window, source);
            }
            None => {
                let share = RelativeSize::percent_of_bdp(150);
                self.draft
                    .set("transport", "initial-window", share, half_again.clone());
            }
        }
        let share = RelativeSize::percent_of_bdp(150);
        self.draft.set("transport", "max-window", share, half_again);
        let meaning = "htsim cuts the window by a third of the bytes of each marked acknowledgement; here the cut follows the share of \
                       marks of a round trip";
        self.draft
            .note(Effect::Results, "`-sender_cc_algo dctcp`", meaning);
    }

    fn paths(&mut self) {
        if let Some(option) = self.last("-load_balancing_algo") {
            let selector = match option.text() {
                "reps_legacy" => {
                    let meaning = "this form of REPS is not available; the scenario has `reps`";
                    self.draft
                        .note(Effect::Results, format!("`{option}`"), meaning);
                    "reps"
                }
                other => other,
            };
            self.draft
                .text("transport", "spray", selector, option.to_string());
        }
        let (mut paths, mut source) = (64, DEFAULT.to_owned());
        for option in &self.command.options {
            match (option.name, option.text()) {
                ("-paths", _) => paths = option.whole(0).unwrap_or(64),
                ("-strat", "ecmp_ar" | "ecmp_rr") => paths = 1,
                _ => continue,
            }
            source = option.to_string();
        }
        self.draft.set("transport", "max-paths", paths, source);
    }

    fn recovery(&mut self, kind: &str, queue: Option<Bytes>) {
        let sleek = self.last("-sleek");
        match sleek {
            Some(option) => self
                .draft
                .text("transport", "recovery", "sleek", option.to_string()),
            None if kind == "uet-no-trim" => {
                let source = format!("{DEFAULT}: no -sleek");
                self.draft.text("transport", "recovery", "none", source);
            }
            None => {}
        }
        // The presets follow the default queue; htsim's timeout follows the queue in use.
        if let Some(queue) = queue {
            let timeout = self.network.timeout(queue);
            let source = format!("{DEFAULT}: 15 us, and the time to send six full queues");
            self.draft.set("transport", "rto", timeout, source.clone());
            self.draft
                .set("transport", "rto-rtts", 0.0, "part of the above");
        } else {
            let factor = if self.trims() { 6.0 } else { 30.0 };
            let base = Span::from_us(15);
            self.draft.set("transport", "rto", base, DEFAULT);
            self.draft.set("transport", "rto-rtts", factor, DEFAULT);
        }
    }
}
