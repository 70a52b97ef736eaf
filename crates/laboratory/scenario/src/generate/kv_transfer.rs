//! Transfers of key-value caches from hosts that prefill to hosts that decode.

use super::{BuildContext, LoadedWorkload, WorkloadDefinition, located};
use crate::LONGEST;
use clearway_formats::{parse_sizes, read_text, shown};
use clearway_input::InputKind;
use clearway_units::{Bytes, HostId, Rate, Span, Time, parameters};
use clearway_workload::sizes::LARGEST_SIZE;
use clearway_workload::{FlowSpec, PoissonSource, SizeDistribution, Workload, WorkloadError};
use std::num::NonZero;
use std::path::Path;

/// Maximum expected number of flows of a section. All flows are listed before the run.
const MOST_FLOWS: f64 = 2e6;

/// Maximum standard deviation of the logarithm of prompt lengths.
const MOST_SIGMA: f64 = 4.0;

/// Minimum mean time between requests of a host: far above a picosecond, so that time advances between requests.
const SHORTEST_GAP: Span = Span::from_ns(1);

/// Elements for each dimension: a key and a value.
const KEY_AND_VALUE: u64 = 2;

/// Constant that is not zero.
const fn count(number: u16) -> NonZero<u16> {
    NonZero::new(number).expect("above zero")
}

parameters! {
    /// Disaggregated serving of a language model. Requests come to prefill hosts as a Poisson process, and each sends the key-value cache
    /// of its prompt to a random decode host. A cache has two elements (a key and a value) for each token, layer, head and dimension.
    /// Prefill hosts are the first hosts, decode hosts follow them. Requests do not wait for each other.
    pub struct KvTransferSettings {
        /// Number of prefill hosts, from host 0 on; "auto": half of all hosts.
        pub prefill: Option<u32> = None, "prefill", "Splitwise (Patel et al., ISCA 2024) has both ratios from 1:1 on";
        /// Number of decode hosts, after the prefill hosts; "auto": all remaining hosts.
        pub decode: Option<u32> = None, "decode", "all other hosts";
        /// Average payload that each prefill host offers, as a share of the rate of its NIC (or of all its NICs together), above 0 and at
        /// most 1.
        pub load: f64 = 0.1, "load", "decision";
        /// Number of requests per second at all prefill hosts together, instead of `load`; "auto": by `load`.
        pub rate: Option<f64> = None, "rate", "by load";
        /// Length of the time in which requests come; "auto": ten mean times between requests, and at least 10 ms. A run goes on until all
        /// transfers have ended, or until `stop.at-most`.
        pub duration: Option<Span> = None, "duration", "decision";
        /// Time from which requests come.
        pub start: Time = Time::ZERO, "start", "the start of the run";
        /// Median number of tokens of a prompt. Lengths are log-normal.
        pub prompt_median: NonZero<u32> = NonZero::new(1020).expect("above zero"), "prompt-median",
            "Splitwise §3: 1020 in conversations, 1500 in coding, at Azure";
        /// Standard deviation of the natural logarithm of the number of tokens; 0: all prompts are of the median length.
        pub prompt_sigma: f64 = 0.5, "prompt-sigma", "decision: 95 % of the prompts have at most 2.3 times the median";
        /// Largest number of tokens of a prompt; longer prompts are cut.
        pub prompt_most: NonZero<u32> = NonZero::new(131_072).expect("above zero"), "prompt-most", "Llama 3.1 (arXiv 2407.21783) §1: 128K";
        /// File of prompt lengths, instead of a log-normal distribution; an empty text for none. Each line has a number of tokens and the
        /// percentage of prompts up to it, from 0 to 100 percent, as in the `sizes` file of the workload "poisson".
        pub prompts: String = String::new(), "prompts", "log-normal";
        /// Number of layers of the model.
        pub layers: NonZero<u16> = count(80), "layers", "Llama 3 70B (arXiv 2407.21783) table 3: 80";
        /// Number of key-value heads of a host; 1 for a model with 8 heads cut over 8 GPUs.
        pub kv_heads: NonZero<u16> = count(8), "kv-heads", "Llama 3 70B, table 3: 8";
        /// Dimensions of a head.
        pub head_dim: NonZero<u16> = count(128), "head-dim", "Llama 3 70B: 8192 dimensions in 64 heads";
        /// Bytes of an element.
        pub element_bytes: NonZero<u8> = NonZero::new(2).expect("above zero"), "element-bytes", "BF16";
        /// Number of parts of a cache, of whole layers, each sent as a flow as soon as its layers are computed; 1: all at the end.
        pub chunks: NonZero<u16> = count(1), "chunks",
            "DistServe (OSDI 2024) sends all at the end; Splitwise §4.3 and Mooncake layer by layer";
        /// Prefill time per token of a prompt, divided equally among the layers.
        pub prefill_per_token: Span = Span::ZERO, "prefill-per-token", "decision: requests come when their prefill is over";
    }
}

impl WorkloadDefinition for KvTransferSettings {
    const NAME: &'static str = "kv-transfer";
    const SUMMARY: &'static str =
        "disaggregated serving: key-value caches of prompts go from prefill to decode hosts";

    fn load(&self, context: &BuildContext<'_>) -> Result<LoadedWorkload, WorkloadError> {
        let (prefill, decode) = self.hosts(context)?;
        let prompts = self.prompts(context.base_dir)?;
        let per_token = self.bytes_per_token();
        self.check(&prompts)?;
        let gaps = self.gaps(prefill, prompts.mean() * per_token as f64, context)?;
        let duration = self.duration(&gaps);
        let end = self.start.saturating_add(duration);
        if end.is_never() {
            let message = format!("{duration} after {} is beyond the longest run", self.start);
            return Err(Self::fault(
                "duration",
                message,
                "choose a shorter duration",
            ));
        }
        let sources = self.sources(&gaps, duration, context)?;
        let mut requests = Vec::new();
        for (host, mut source) in sources {
            let mut time = self.start.saturating_add(source.gap());
            while time < end {
                let to = HostId(prefill + source.below(decode));
                let tokens = source.size(&prompts).as_u64();
                requests.push(Request {
                    time,
                    host,
                    to,
                    tokens,
                });
                time = time.saturating_add(source.gap());
            }
        }
        if requests.is_empty() {
            let message = format!("no request happens to come within {duration}");
            let fix = "choose a longer duration, a higher `load` or another seed";
            return Err(Self::fault("duration", message, fix));
        }
        let mut flows: Vec<FlowSpec> = requests
            .iter()
            .flat_map(|request| self.parts(request))
            .collect();
        let start = |flow: &FlowSpec| match flow.start {
            clearway_workload::Start::At(time) => time,
            _ => Time::ZERO,
        };
        flows.sort_by_key(|flow| (start(flow), flow.src));
        for (label, flow) in (1..).zip(&mut flows) {
            flow.label = label;
        }
        let workload = Workload {
            flows,
            triggers: Vec::new(),
        };
        Ok(LoadedWorkload {
            setting_warnings: self.warnings(),
            ..LoadedWorkload::from(workload)
        })
    }

    fn files(&self) -> Vec<&'static str> {
        let named = (!self.prompts.is_empty()).then_some("prompts");
        named.into_iter().collect()
    }
}

/// Request that arrives at a prefill host.
#[derive(Debug, Clone, Copy)]
struct Request {
    time: Time,
    host: HostId,
    to: HostId,
    tokens: u64,
}

impl KvTransferSettings {
    /// Numbers of prefill and decode hosts.
    fn hosts(&self, context: &BuildContext<'_>) -> Result<(u32, u32), WorkloadError> {
        let all = context.hosts;
        let prefill = self.prefill.unwrap_or(all / 2);
        let has = format!("the topology has {all} hosts");
        if prefill == 0 || prefill >= all {
            let message = format!("{prefill} prefill hosts, but {has}");
            let fix = "write 1 or more, and leave hosts that decode";
            return Err(Self::fault("prefill", message, fix));
        }
        let decode = self.decode.unwrap_or(all - prefill);
        if decode == 0 || decode > all - prefill {
            let message = format!("{decode} decode hosts after {prefill} prefill hosts, but {has}");
            let fix = format!("write a number from 1 to {}, or \"auto\"", all - prefill);
            return Err(Self::fault("decode", message, fix));
        }
        Ok((prefill, decode))
    }

    /// Distribution of the number of tokens of a prompt.
    fn prompts(&self, base_dir: Option<&Path>) -> Result<SizeDistribution, WorkloadError> {
        // `!(a >= 0.0)` also rejects NaN.
        if !(self.prompt_sigma >= 0.0 && self.prompt_sigma <= MOST_SIGMA) {
            let message = format!("a standard deviation of {}", self.prompt_sigma);
            let fix = format!("write a number from 0 to {MOST_SIGMA}");
            return Err(Self::fault("prompt-sigma", message, fix));
        }
        let most = Bytes::new(u64::from(self.prompt_most.get()));
        if self.prompts.is_empty() {
            let median = Bytes::new(u64::from(self.prompt_median.get()));
            return Ok(SizeDistribution::log_normal(
                median,
                self.prompt_sigma,
                most,
            ));
        }
        let path = located(Path::new(&self.prompts), base_dir);
        if !path.exists() {
            let message = format!("there is no file `{}`", shown(&self.prompts));
            return Err(Self::fault("prompts", message, "name a file that exists"));
        }
        let text = read_text(&path, InputKind::SIZES)?;
        let read = parse_sizes(&path.display().to_string(), &text)?;
        let mut points = read.points().to_vec();
        for point in &mut points {
            point.bytes = point.bytes.min(most);
        }
        Ok(SizeDistribution::new(points))
    }

    /// Size of the key-value cache of a token in one layer.
    fn bytes_per_layer(&self) -> u64 {
        KEY_AND_VALUE
            * u64::from(self.kv_heads.get())
            * u64::from(self.head_dim.get())
            * u64::from(self.element_bytes.get())
    }

    /// Size of the key-value cache of a token.
    fn bytes_per_token(&self) -> u64 {
        u64::from(self.layers.get()) * self.bytes_per_layer()
    }

    /// Checks the number of chunks, and the cache size and prefill time of the longest prompt.
    fn check(&self, prompts: &SizeDistribution) -> Result<(), WorkloadError> {
        if self.chunks > self.layers {
            let message = format!("{} chunks of {} layers", self.chunks, self.layers);
            let fix = "choose at most as many as there are `layers`";
            return Err(Self::fault("chunks", message, fix));
        }
        let longest = prompts.quantile(100.0).as_u64();
        let largest = longest.checked_mul(self.bytes_per_token());
        if largest.is_none_or(|bytes| bytes > LARGEST_SIZE.as_u64()) {
            let message = format!(
                "a prompt of {longest} tokens of {} B each makes more than {LARGEST_SIZE}",
                self.bytes_per_token()
            );
            let most = LARGEST_SIZE.as_u64() / self.bytes_per_token();
            let fix = match most {
                0 => "choose a smaller model".into(),
                most => format!("choose {most} at most, or a smaller model"),
            };
            return Err(Self::fault("prompt-most", message, fix));
        }
        let span = self.prefill_per_token.as_ps().checked_mul(longest);
        if span.is_none_or(|span| span > LONGEST.as_ps()) {
            let message = format!("{longest} tokens, each for {}", self.prefill_per_token);
            let fix = format!("let the longest prompt take at most {LONGEST} (30 days)");
            return Err(Self::fault("prefill-per-token", message, fix));
        }
        Ok(())
    }

    /// Length of the time in which requests arrive. `gaps` has the mean time between requests of each prefill host.
    fn duration(&self, gaps: &[f64]) -> Span {
        let rate: f64 = gaps.iter().map(|gap| 1.0 / gap).sum();
        let ten = Span::from_ps((10.0 / rate) as u64);
        self.duration.unwrap_or(ten.max(Span::from_ms(10)))
    }

    /// Mean time between requests of each prefill host in picoseconds, for requests of `mean_bytes` on average.
    fn gaps(
        &self,
        prefill: u32,
        mean_bytes: f64,
        context: &BuildContext<'_>,
    ) -> Result<Vec<f64>, WorkloadError> {
        if !(self.load > 0.0 && self.load <= 1.0) {
            let message = format!("a load of {}", self.load);
            let fix = "write a share of the rate of a NIC above 0 and at most 1, as in 0.1";
            return Err(Self::fault("load", message, fix));
        }
        if self.rate == Some(0.0) {
            let message = "no requests";
            let fix = "write a number above 0, or \"auto\"";
            return Err(Self::fault("rate", message, fix));
        }
        let by_load = |rate: Rate| 8.0 * mean_bytes / (self.load * rate.as_bps() as f64) * 1e12;
        let gap = |host: HostId| match self.rate {
            Some(rate) => f64::from(prefill) / rate * 1e12,
            None => by_load(context.nic_rates[host.index()]),
        };
        let gaps: Vec<f64> = (0..prefill).map(|host| gap(HostId(host))).collect();
        let shortest = gaps.iter().copied().fold(f64::INFINITY, f64::min);
        if shortest < SHORTEST_GAP.as_ps() as f64 {
            let (key, given) = match self.rate {
                Some(rate) => ("rate", format!("{rate:e} requests a second")),
                None => (
                    "load",
                    format!("a load of {} by such small caches", self.load),
                ),
            };
            let fix = "let requests come to each prefill host at least 1ns apart on average";
            return Err(Self::fault(key, given, fix));
        }
        Ok(gaps)
    }

    /// Poisson source of each prefill host. `gaps` has the mean time between its requests.
    fn sources(
        &self,
        gaps: &[f64],
        duration: Span,
        context: &BuildContext<'_>,
    ) -> Result<Vec<(HostId, PoissonSource)>, WorkloadError> {
        let expected: f64 = gaps.iter().map(|gap| duration.as_ps() as f64 / gap).sum();
        let flows = expected * f64::from(self.chunks.get());
        if flows > MOST_FLOWS {
            let message = format!(
                "about {expected:.1e} requests in {duration}, in {} parts each",
                self.chunks
            );
            let fix = format!(
                "choose a shorter duration, a lower `load` or `rate`, or fewer `chunks`: {MOST_FLOWS} flows are the most"
            );
            return Err(Self::fault("duration", message, fix));
        }
        let source = |(host, gap): (u32, &f64)| {
            let random = context.random_of(HostId(host));
            (HostId(host), PoissonSource::new(random, *gap))
        };
        Ok((0..).zip(gaps).map(source).collect())
    }

    /// Flows of a request.
    fn parts(&self, request: &Request) -> impl Iterator<Item = FlowSpec> + use<> {
        let (layers, chunks) = (u64::from(self.layers.get()), u64::from(self.chunks.get()));
        let of_layer = request.tokens * self.bytes_per_layer();
        let prefill = u128::from(self.prefill_per_token.as_ps()) * u128::from(request.tokens);
        let request = *request;
        let done = move |chunk: u64| layers * chunk / chunks;
        (0..chunks).map(move |chunk| {
            let bytes = Bytes::new((done(chunk + 1) - done(chunk)) * of_layer);
            // The cast is exact: `check` limits the prefill time to 30 days.
            let after = (prefill * u128::from(done(chunk + 1)) / u128::from(layers)) as u64;
            let start = request.time.saturating_add(Span::from_ps(after));
            FlowSpec::timed(0, request.host, request.to, bytes, start)
        })
    }

    /// Warnings about settings without effect.
    fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if self.chunks.get() > 1 && self.prefill_per_token.is_zero() {
            warnings.push(format!(
                "the {} `chunks` of a cache start together, because `prefill-per-token` is zero",
                self.chunks
            ));
        }
        let usual = Self::default();
        if self.rate.is_some() && self.load != usual.load {
            warnings.push("`rate` takes the place of `load`".to_owned());
        }
        let shaped =
            self.prompt_median != usual.prompt_median || self.prompt_sigma != usual.prompt_sigma;
        if !self.prompts.is_empty() && shaped {
            warnings
                .push("`prompts` takes the place of `prompt-median` and `prompt-sigma`".to_owned());
        }
        warnings
    }
}

#[cfg(test)]
mod tests;
