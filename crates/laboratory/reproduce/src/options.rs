//! The options of measures.

use clearway_lab::observe::FAIR;
use clearway_lab::scaleup_fabric::OperationKind;
use clearway_units::{Bytes, HostId, Rate, Span, Time};

/// Default rate below which a receiver counts as slow: four fifths of TMDML's links.
const SLOW: Rate = Rate::from_gbps(8);

/// Instant of a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum RunInstant {
    /// A share of the longest completion time.
    Share(f64),
    /// A time.
    At(Time),
    /// Time at which the first flow is done.
    FirstFinish,
}

/// Hosts between two numbers, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Hosts {
    first: u32,
    last: u32,
}

impl Hosts {
    const ALL: Self = Self {
        first: 0,
        last: u32::MAX,
    };

    /// Hosts from a text such as `7` or `0-3`.
    fn read(text: &str) -> Option<Self> {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        Some(Self {
            first: first.parse().ok()?,
            last: last.parse().ok()?,
        })
    }

    pub(super) fn contain(self, host: HostId) -> bool {
        (self.first..=self.last).contains(&host.0)
    }
}

/// The options of a measure.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Options {
    pub(super) from: RunInstant,
    /// End of the window; by default the end of the longest completion time.
    pub(super) to: Option<RunInstant>,
    pub(super) at: RunInstant,
    pub(super) within: Span,
    pub(super) low: Span,
    pub(super) high: Span,
    pub(super) factor: f64,
    /// Jain's index from which on flows share fairly.
    pub(super) fair: f64,
    /// A percentile in thousandths.
    pub(super) per_mille: usize,
    /// Lower limit on the bytes of a flow, exclusive.
    pub(super) above: Option<Bytes>,
    /// Upper limit on the bytes of a flow, inclusive.
    pub(super) up_to: Bytes,
    /// Place of a flow among the recorded flows.
    pub(super) flow: Option<u32>,
    /// Sources of flows.
    pub(super) src: Hosts,
    /// Destinations of flows.
    pub(super) dst: Hosts,
    pub(super) rate: Rate,
    /// Name of a switch; without a number, all switches of a kind.
    pub(super) switch: String,
    /// Places of a job and of another job in the scenario.
    pub(super) job: usize,
    pub(super) with: usize,
    /// Number of a job's iteration, from 0.
    pub(super) iteration: usize,
    /// Number of first iterations that are left out.
    pub(super) after: usize,
    /// First iteration of the end that is left out.
    pub(super) before: usize,
    /// A key of the scenario.
    pub(super) key: String,
    /// Name of a link of a plan; all links if empty.
    pub(super) link: String,
    /// Place of a `[[workload]]` section in the scenario.
    pub(super) section: Option<usize>,
    /// A kind of operations.
    pub(super) kind: Option<OperationKind>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            from: RunInstant::At(Time::ZERO),
            to: None,
            at: RunInstant::At(Time::ZERO),
            within: Span::ZERO,
            low: Span::ZERO,
            high: Span::MAX,
            factor: 1.0,
            fair: FAIR,
            per_mille: 500,
            above: None,
            up_to: Bytes::new(u64::MAX),
            flow: None,
            src: Hosts::ALL,
            dst: Hosts::ALL,
            rate: SLOW,
            switch: String::new(),
            job: 0,
            with: 1,
            iteration: 0,
            after: 0,
            before: usize::MAX,
            key: String::new(),
            link: String::new(),
            section: None,
            kind: None,
        }
    }
}

impl Options {
    /// Sets the option `key`; `None` if `text` is not valid for it.
    pub(super) fn set(&mut self, key: &str, text: &str) -> Option<()> {
        match key {
            "from" => self.from = RunInstant::read(text)?,
            "to" => self.to = Some(RunInstant::read(text)?),
            "at" => self.at = RunInstant::read(text)?,
            "fair" => self.fair = text.parse().ok()?,
            "percentile" => self.per_mille = read_percentile(text)?,
            "above" => self.above = Some(text.parse().ok()?),
            "up_to" => self.up_to = text.parse().ok()?,
            "within" => self.within = text.parse().ok()?,
            "low" => self.low = text.parse().ok()?,
            "high" => self.high = text.parse().ok()?,
            "factor" => self.factor = text.parse().ok()?,
            "job" => self.job = text.parse().ok()?,
            "with" => self.with = text.parse().ok()?,
            "iteration" => self.iteration = text.parse().ok()?,
            "after" => self.after = text.parse().ok()?,
            "before" => self.before = text.parse().ok()?,
            "flow" => self.flow = Some(text.parse().ok()?),
            "src" => self.src = Hosts::read(text)?,
            "dst" => self.dst = Hosts::read(text)?,
            "rate" => self.rate = text.parse().ok()?,
            "switch" => self.switch = text.to_owned(),
            "key" => self.key = text.to_owned(),
            "link" => self.link = text.to_owned(),
            "section" => self.section = Some(text.parse().ok()?),
            "kind" => self.kind = Some(read_kind(text)?),
            _ => return None,
        }
        Some(())
    }
}

impl RunInstant {
    fn read(text: &str) -> Option<Self> {
        if text == "first-finish" {
            return Some(Self::FirstFinish);
        }
        if let Some(percent) = text.strip_suffix('%') {
            let percent: f64 = percent.parse().ok()?;
            return (0.0..=100.0)
                .contains(&percent)
                .then_some(Self::Share(percent / 100.0));
        }
        let span: Span = text.parse().ok()?;
        Some(Self::At(Time::ZERO + span))
    }
}

/// A kind of operations: `read` or `write`.
fn read_kind(text: &str) -> Option<OperationKind> {
    match text {
        "read" => Some(OperationKind::Read),
        "write" => Some(OperationKind::Write),
        _ => None,
    }
}

/// A percentile, such as 99.9, in thousandths.
fn read_percentile(text: &str) -> Option<usize> {
    let per_mille = text.parse::<f64>().ok()? * 10.0;
    let whole = (per_mille + 0.5) as usize;
    let exact = (per_mille - whole as f64).abs() < 1e-6;
    (exact && (1..=1000).contains(&whole)).then_some(whole)
}
