//! The bound and the flows in sentences.

use super::{Bound, DelayPart, DelayRow, JobChain, JobWaitRow, Limit, SlowFlow, StepRow};
use crate::quantity::{bytes, count, factor, prefixed, share, span};
use clearway_units::Span;

/// Largest multiple of the ideal time at which a flow does not count as slow.
const NOT_SLOW: f64 = 1.05;

impl Bound {
    /// The bound of a run that took the time `took`; `None` if the run is not complete.
    pub fn new(limit: Limit, from: Span, least: Span, took: Option<Span>) -> Self {
        let sentence = sentence_of(&limit, least);
        let chain = match &limit {
            Limit::Job { label, steps } => Some(JobChain::from_steps(label, steps)),
            _ => None,
        };
        let (links, bytes, rate_bps, flows) = match limit {
            Limit::Nothing | Limit::Job { .. } => (Vec::new(), 0, 0, Vec::new()),
            Limit::Chain(flows) => (Vec::new(), 0, 0, flows),
            Limit::Links {
                links,
                bytes,
                rate_bps,
                ..
            } => (links, bytes, rate_bps, Vec::new()),
        };
        Self {
            from_us: from.as_us(),
            least_us: least.as_us(),
            took_us: took.map(Span::as_us),
            ratio: took
                .filter(|_| !least.is_zero())
                .map(|took| took.as_ps() as f64 / least.as_ps() as f64),
            sentence,
            links,
            bytes,
            rate_bps,
            flows,
            chain,
        }
    }

    /// Distance of the run from the bound, in words.
    pub fn verdict(&self) -> String {
        let Some(took) = self.took_us else {
            return "The run is not complete.".into();
        };
        let took = crate::quantity::microseconds(took);
        match self.ratio {
            Some(ratio) => format!("The run took {took}, {} that.", factor(ratio)),
            None => format!("The run took {took}."),
        }
    }
}

fn sentence_of(limit: &Limit, least: Span) -> String {
    let least = span(least);
    match limit {
        Limit::Nothing => "Nothing bounds the run.".into(),
        Limit::Chain(flows) => match flows[..] {
            [flow] => format!("Flow {flow} takes {least} even alone."),
            [] => "Nothing bounds the run.".into(),
            [first, .., last] => format!(
                "{} flows start one another, from flow {first} to flow {last}: {least} even if each is alone.",
                count(flows.len() as u64)
            ),
        },
        Limit::Job { label, steps } => sentence_of_job(label, steps, &least),
        Limit::Links {
            what,
            bytes: load,
            links,
            rate_bps,
        } => {
            let verb = if links.len() == 1 { "carries" } else { "carry" };
            let rate = prefixed(*rate_bps as f64);
            format!("{what} {verb} {} at {rate}b/s: {least}.", bytes(*load))
        }
    }
}

fn sentence_of_job(label: &str, steps: &[StepRow], least: &str) -> String {
    let of = |is_message: bool, one: &str, several: &str| {
        let own = steps
            .iter()
            .filter(|step| step.flow.is_some() == is_message);
        let time = span(Span::from_ps(own.clone().map(|step| step.ps).sum()));
        match own.count() {
            1 => format!("1 {one} of {time}"),
            number => format!("{} {several} of {time}", count(number as u64)),
        }
    };
    let messages = of(true, "message", "messages");
    let computations = of(false, "computation", "computations");
    format!(
        "In {label}, {messages} and {computations} wait for one another: {least} even if each message is alone."
    )
}

impl SlowFlow {
    /// Time of a part, over all links.
    pub fn total(&self, part: DelayPart) -> Span {
        let rows = self.parts.iter().filter(|row| row.part == part);
        Span::from_ps(rows.map(|row| row.ps).sum())
    }

    /// The completion time as a multiple of the ideal time, if the latter is known.
    pub fn slowdown(&self) -> Option<f64> {
        (self.ideal_ps > 0).then(|| self.completion_ps as f64 / self.ideal_ps as f64)
    }

    /// The flow in words: the largest part of its time that an idle network would have avoided.
    pub fn say(&self) -> String {
        let (flow, took) = (self.flow, span(Span::from_ps(self.completion_ps)));
        if let Some(slowdown) = self.slowdown().filter(|&slowdown| slowdown <= NOT_SLOW) {
            return format!(
                "Flow {flow}: nothing held it up: it took {took}, {} its ideal.",
                factor(slowdown)
            );
        }
        let Some(longest) = self.parts.iter().find(|row| self.is_avoidable(row)) else {
            return format!("Flow {flow}: its {took} went into sending and flight.");
        };
        let share = share(longest.ps, self.completion_ps);
        let head = format!("Flow {flow}: for {share} of its {took}");
        let link = longest.link.as_deref().unwrap_or("a link");
        let shared = self.shared();
        match longest.part {
            DelayPart::Queueing => format!("{head} it waited in the queue of {link}{shared}."),
            DelayPart::Pause => {
                format!("{head} it waited for {link}, which pause frames (PFC) held back.")
            }
            DelayPart::Serialisation => {
                format!(
                    "{head} its packets followed one another on {link}, the slowest link of its way."
                )
            }
            DelayPart::Window => format!("{head} its window held it back{}.", self.seen()),
            DelayPart::Credit => format!("{head} it waited for credit from its receiver."),
            DelayPart::Pacing => format!("{head} congestion control paced it{}.", self.seen()),
            DelayPart::Recovery => {
                format!(
                    "Flow {flow}: {share} of its {took} went into recovery: packets were taken for lost and sent again."
                )
            }
            DelayPart::Waiting => {
                format!(
                    "{head} it had nothing to send: it waited{}.",
                    self.awaited()
                )
            }
            part => format!("{head} is {}.", part.name()),
        }
    }

    /// False if the flow has the same delay alone on an idle network. Serialisation counts as avoidable on links that are not the fastest.
    fn is_avoidable(&self, row: &DelayRow) -> bool {
        match row.part {
            DelayPart::Propagation | DelayPart::SwitchLatency => false,
            DelayPart::Serialisation => {
                let rate = |link: &str| self.links.iter().find(|wait| wait.link == link);
                let own = row.link.as_deref().and_then(rate);
                let fastest = self.links.iter().map(|wait| wait.rate_bps).max();
                own.is_some_and(|own| Some(own.rate_bps) < fastest)
            }
            _ => true,
        }
    }

    fn shared(&self) -> String {
        match self.sharers {
            0 => String::new(),
            1 => ", which one other flow shared".into(),
            several => format!(", which {} other flows shared", count(several as u64)),
        }
    }

    /// Events that a connection of a job waited for longest.
    fn awaited(&self) -> String {
        const NAMED: usize = 3;
        let waits: Vec<String> = self.waits.iter().take(NAMED).map(JobWaitRow::say).collect();
        match waits.split_last() {
            None => " for computations or for messages of others".into(),
            Some((last, [])) => format!(" {last}"),
            Some((last, others)) => format!(" {} and {last}", others.join(", ")),
        }
    }

    /// Place where a delayed flow met other flows.
    fn seen(&self) -> String {
        match &self.bottleneck {
            Some(link) => format!("; its packets queued longest at {link}{}", self.shared()),
            None => String::new(),
        }
    }
}
