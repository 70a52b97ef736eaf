//! Mixture of experts: tokens go to experts and come back, layer by layer.

use super::job_set::{JobSet, Work};
use super::{BuildContext, LoadedWorkload, WorkloadDefinition};
use clearway_units::{Bytes, Purpose, RandomStream, Span, choices, mix64, parameters};
use clearway_workload::experts::{ExpertGroup, ExpertLayers, MOST_SKEW, Popularity, Router};
use clearway_workload::graph::MOST_TASKS;
use clearway_workload::rank::PreparedGraph;
use clearway_workload::{Parallelism, Workload, WorkloadError, counted};
use std::num::NonZero;
use std::sync::Arc;

/// Maximum number of messages and computations of all jobs of a section: half of the maximum of one graph, because each task has one or two
/// edges more than a task of a ring.
const MOST_MESSAGES: u64 = MOST_TASKS / 2;

/// Maximum number of steps to draw the experts of all tokens of a section. 122 million experts, eight for each token, take 45 % of this
/// number, and took 9 s.
const MOST_STEPS: u64 = 1 << 32;

/// Steps for one expert of a token, in addition to the steps for earlier experts of the token.
const STEPS_OF_AN_EXPERT: u64 = 8;

choices! {
    /// Choice of the experts of a token.
    pub enum RouterKind {
        /// All experts get the same number of tokens, save for one: each token takes the next ones of a list in random order.
        Balanced = "balanced",
        /// Each token draws its experts, the i-th most popular one in proportion to i to the power of minus `skew`.
        Random = "random",
    }
}

choices! {
    /// Destinations of the copies of a token.
    pub enum TokenCopies {
        /// A token goes once to each rank that has some of its experts.
        PerRank = "rank",
        /// A token goes to each of its experts separately.
        PerExpert = "expert",
    }
}

/// Constant that is not zero.
const fn count(number: u32) -> NonZero<u32> {
    NonZero::new(number).expect("above zero")
}

parameters! {
    /// Jobs of mixture-of-experts layers with expert parallelism. In each layer every rank computes and sends its tokens to their experts
    /// (the dispatch, an all-to-all). It then computes for the tokens that it received and sends them back (the combine, with sender and
    /// receiver exchanged). The next layer of a rank begins when all of its tokens are back. All iterations use the routing of the first
    /// one.
    pub struct MoeSettings {
        /// Number of experts of a layer, placed on the ranks in order, as evenly as possible.
        pub experts: NonZero<u32> = count(256), "experts", "DeepSeek-V3 (arXiv 2412.19437) §4.2: 256 routed experts; Mixtral: 8";
        /// Number of different experts that each token is sent to.
        pub top_k: NonZero<u32> = count(8), "top-k", "DeepSeek-V3 §4.2: 8; Mixtral: 2";
        /// Number of tokens of each rank in an iteration.
        pub tokens: NonZero<u32> = count(128), "tokens", "DeepEP: 128 in decoding, 4096 in training and prefilling";
        /// Number of elements of a token: the hidden dimension.
        pub hidden: NonZero<u16> = NonZero::new(7168).expect("above zero"), "hidden", "DeepSeek-V3 §4.2: 7168; Mixtral 8x7B: 4096";
        /// Bytes of an element in the dispatch.
        pub dispatch_bytes: NonZero<u8> = NonZero::<u8>::MIN, "dispatch-bytes", "DeepSeek-V3 §3.3.2: FP8";
        /// Bytes of an element in the combine.
        pub combine_bytes: NonZero<u8> = NonZero::new(2).expect("above zero"), "combine-bytes", "DeepSeek-V3 §3.3.2: BF16";
        /// Number of such layers in an iteration, each with separate routing.
        pub layers: NonZero<u32> = count(2), "layers", "decision: short runs; DeepSeek-V3 has 58 (61, of which 3 are dense)";
        /// Choice of the experts: "random" or "balanced".
        pub router: RouterKind = RouterKind::Random, "router", "chance remains even if experts are alike";
        /// Exponent of the Zipf distribution by which a "random" router chooses experts, from 0 (all alike) to 8. The most popular expert
        /// is drawn for each layer.
        pub skew: f64 = 0.0, "skew", "DeepSeek-V3 §2.1.2: a bias of each expert evens out the loads";
        /// Maximum number of nodes with experts of one token.
        pub node_limit: NonZero<u32> = count(4), "node-limit", "DeepSeek-V3 §4.2: 4";
        /// Number of consecutive ranks of a job on each node. It matters to `node-limit`.
        pub gpus_per_node: NonZero<u32> = count(8), "gpus-per-node", "DeepSeek-V3 §3.1: nodes of 8 GPUs";
        /// Maximum number of tokens of an expert, as a multiple of the mean; further tokens are dropped and not sent. "auto": no limit.
        pub capacity_factor: Option<f64> = None, "capacity-factor", "DeepSeek-V3 §2.1.2: no token is dropped; Switch Transformers: 1.25";
        /// Destinations of the copies of a token: "rank", each rank that has some of its experts, or "expert", each of its experts.
        pub copies: TokenCopies = TokenCopies::PerRank, "copies", "DeepEP: its normal kernels; the low-latency ones send to each expert";
        /// Maximum number of messages in flight from a rank; "auto": no limit.
        pub parallelism: Option<NonZero<u32>> = None, "parallelism", "DeepEP: all at once";
        /// Computation time of each rank in a layer before the dispatch: attention, shared experts, routing.
        pub compute: Span = Span::ZERO, "compute", "experts alone";
        /// Computation time of an expert per token.
        pub expert_compute: Span = Span::from_ns(88), "expert-compute",
            "DeepSeek-V3: 6 x 7168 x 2048 operations at 1 PFLOP/s, half of the FP8 rate of an H800";
        /// Training: layers also run backwards, with the same messages and twice the computation. False: inference.
        pub backward: bool = false, "backward", "inference";
        with {
            /// Ranks, starts, iterations and pace of the jobs.
            pub set: JobSet,
        }
    }
}

impl WorkloadDefinition for MoeSettings {
    const NAME: &'static str = "moe";
    const SUMMARY: &'static str = "mixture-of-experts layers: tokens go to experts by a skewed or balanced router, and come back";

    fn load(&self, context: &BuildContext<'_>) -> Result<LoadedWorkload, WorkloadError> {
        self.set.check::<Self>()?;
        self.check()?;
        let ranks = self.set.ranks_of::<Self>(context)?;
        let hosts = self
            .set
            .placing
            .place::<Self>(self.set.jobs, ranks, context)?;
        let router = self.router(ranks)?;
        self.check_size(ranks)?;
        let layers = self.layers();
        let plan = |job| {
            let routings =
                (0..self.layers.get()).map(|layer| router.route(stream(context, job, layer)));
            let mut graph = layers.graph(&routings.collect::<Vec<_>>());
            if graph.bytes_sent().iter().all(|&bytes| bytes == Bytes::ZERO) {
                let message = "all tokens find their experts on their own ranks: nothing is sent";
                let fix = "choose more ranks, tokens or experts";
                return Err(Self::fault("ranks", message, fix));
            }
            graph.parallelism = self.parallelism.map(|limit| Parallelism {
                from_sender: limit.get(),
                to_receiver: None,
            });
            Ok((Arc::new(PreparedGraph::new(graph)), None))
        };
        let work = Work { ranks, hosts, plan };
        Ok(LoadedWorkload {
            jobs: self.set.specs::<Self>(work, context)?,
            setting_warnings: self.warnings(context).collect(),
            ..LoadedWorkload::from(Workload::default())
        })
    }
}

/// Random numbers of a layer of a job.
fn stream(context: &BuildContext<'_>, job: u32, layer: u32) -> RandomStream {
    let job = (u64::from(context.section) << 32) | u64::from(job);
    RandomStream::new(
        context.seed,
        Purpose::Routing,
        mix64(job).wrapping_add(layer.into()),
    )
}

impl MoeSettings {
    /// Checks the settings without their context.
    fn check(&self) -> Result<(), WorkloadError> {
        if self.top_k > self.experts {
            let message = format!("{} different experts of {}", self.top_k, self.experts);
            let fix = "choose at most as many as there are `experts`";
            return Err(Self::fault("top-k", message, fix));
        }
        // `!(a >= 0.0)` also rejects NaN.
        if !(self.skew >= 0.0 && self.skew <= MOST_SKEW) {
            let message = format!("an exponent of {}", self.skew);
            let fix = format!("write an exponent from 0 to {MOST_SKEW}");
            return Err(Self::fault("skew", message, fix));
        }
        if let Some(factor) = self.capacity_factor.filter(|&factor| factor <= 0.0) {
            let message = format!("experts that take {factor} times the mean");
            let fix = "write a factor above 0, such as 1.25, or \"auto\" for no limit";
            return Err(Self::fault("capacity-factor", message, fix));
        }
        Ok(())
    }

    /// Router of each layer.
    fn router(&self, ranks: u32) -> Result<Router, WorkloadError> {
        let router = Router {
            group: ExpertGroup {
                ranks,
                ranks_per_node: self.gpus_per_node.get(),
                experts: self.experts.get(),
            },
            tokens: self.tokens.get(),
            top_k: self.top_k.get(),
            node_limit: self.node_limit.get(),
            popularity: match self.router {
                RouterKind::Balanced => Popularity::Balanced,
                RouterKind::Random => Popularity::Zipf(self.skew),
            },
            capacity_factor: self.capacity_factor,
        };
        let most = router.most_experts();
        if most < self.top_k.get() {
            let message = format!(
                "{} nodes of {} ranks are sure to have {most} experts, fewer than the {} of a token",
                self.node_limit, self.gpus_per_node, self.top_k
            );
            let fix = "choose a larger `node-limit`, a smaller `top-k`, or more `experts`";
            return Err(Self::fault("node-limit", message, fix));
        }
        Ok(router)
    }

    /// Rejects settings that would fill the memory or take hours.
    fn check_size(&self, ranks: u32) -> Result<(), WorkloadError> {
        let (layers, jobs) = (u64::from(self.layers.get()), u64::from(self.set.jobs));
        let of_jobs = format!(
            "{} of {ranks} ranks in {}",
            counted(layers as usize, "layer"),
            counted(jobs as usize, "job")
        );
        let times = |number: u64| number.saturating_mul(layers).saturating_mul(jobs);
        let directions = 1 + u64::from(self.backward);
        let messages = times(ExpertLayers::most_tasks(ranks)).saturating_mul(directions);
        if messages > MOST_MESSAGES {
            let message = format!("{of_jobs} make up to {messages} messages and computations");
            let fix = format!("choose fewer layers, ranks or jobs: {MOST_MESSAGES} are the most");
            return Err(Self::fault("layers", message, fix));
        }
        if times(self.experts.get().into()) > MOST_MESSAGES {
            let message = format!("{} experts in each of {of_jobs}", self.experts);
            let fix = format!("choose fewer: {MOST_MESSAGES} in all layers are the most");
            return Err(Self::fault("experts", message, fix));
        }
        let top_k = u64::from(self.top_k.get());
        let of_tokens = times(u64::from(ranks) * top_k).saturating_mul(top_k + STEPS_OF_AN_EXPERT);
        let most = MOST_STEPS / of_tokens;
        if u64::from(self.tokens.get()) > most {
            let message = format!(
                "{top_k} experts for each of {} tokens of each rank, in {of_jobs}, take too long to draw",
                self.tokens
            );
            let fix = match most {
                0 => "choose a smaller `top-k`, or fewer layers, ranks or jobs".into(),
                most => format!("choose {most} tokens at most, or fewer layers, ranks or jobs"),
            };
            return Err(Self::fault("tokens", message, fix));
        }
        Ok(())
    }

    /// Computations and sizes of the layers.
    fn layers(&self) -> ExpertLayers {
        let token =
            |bytes: NonZero<u8>| Bytes::new(u64::from(self.hidden.get()) * u64::from(bytes.get()));
        ExpertLayers {
            dispatch: token(self.dispatch_bytes),
            combine: token(self.combine_bytes),
            copy_for_each_expert: self.copies == TokenCopies::PerExpert,
            compute: self.compute,
            per_token: self.expert_compute,
            backward: self.backward,
        }
    }

    /// Warnings about settings without effect.
    fn warnings(&self, context: &BuildContext<'_>) -> impl Iterator<Item = String> {
        let skew = self.router == RouterKind::Balanced && self.skew > 0.0;
        let skew = skew.then(|| {
            format!(
                "`skew` = {} applies only to the router \"random\"",
                self.skew
            )
        });
        let computes = !self.compute.is_zero() || !self.expert_compute.is_zero();
        let lengthened = [
            ("jitter", self.set.jitter > 0.0),
            ("stragglers", self.set.stragglers > 0),
        ];
        let lengthened = lengthened
            .into_iter()
            .filter(move |(_, given)| *given && !computes);
        let lengthened = lengthened.map(|(key, _)| {
            format!("`{key}` lengthens computations, and `compute` and `expert-compute` are zero")
        });
        let placed = self.set.placing.warnings(context);
        skew.into_iter().chain(lengthened).chain(placed)
    }
}

#[cfg(test)]
mod tests;
