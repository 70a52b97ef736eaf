//! Router: which experts get which tokens, counted for each pair of ranks.

use super::popularity::{Draw, line, zipf};
use super::{ExpertGroup, Popularity};
use clearway_units::RandomStream;

/// Router of a layer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Router {
    /// Ranks and experts.
    pub group: ExpertGroup,
    /// Number of tokens of each rank.
    pub tokens: u32,
    /// Number of experts of each token, all different (K).
    pub top_k: u32,
    /// Maximum number of nodes with experts of one token (M of DeepSeek-V3 §2.1.2), above zero.
    pub node_limit: u32,
    /// Popularity of the experts.
    pub popularity: Popularity,
    /// Most tokens that an expert takes, as a multiple of an equal share (Switch Transformers, Fedus et al. 2022, equation 3). Further
    /// tokens are dropped. Without a factor no token is dropped.
    pub capacity_factor: Option<f64>,
}

/// Tokens of a layer, counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Routing {
    ranks: u32,
    /// Tokens of each rank that have experts on each other, source by source.
    tokens: Vec<u32>,
    /// The same, each token as often as it has experts there.
    assignments: Vec<u32>,
    /// Tokens that each expert takes.
    loads: Vec<u64>,
    /// Assignments that were dropped, because an expert was full.
    dropped: u64,
}

impl Routing {
    /// Number of tokens of rank `src` that have at least one expert on rank `dst`, which may be the same: they go there once each.
    pub fn tokens(&self, src: u32, dst: u32) -> u32 {
        self.tokens[self.place(src, dst)]
    }

    /// The same, each token as often as it has experts there.
    pub fn assignments(&self, src: u32, dst: u32) -> u32 {
        self.assignments[self.place(src, dst)]
    }

    /// Number of tokens that the experts of a rank work on, once for each expert.
    pub fn work(&self, rank: u32) -> u64 {
        let sources = 0..self.ranks;
        sources
            .map(|src| u64::from(self.assignments(src, rank)))
            .sum()
    }

    /// Number of tokens that each expert takes.
    pub fn loads(&self) -> &[u64] {
        &self.loads
    }

    /// Number of assignments that were dropped, because an expert was full.
    pub const fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Number of ranks.
    pub const fn ranks(&self) -> u32 {
        self.ranks
    }

    const fn place(&self, src: u32, dst: u32) -> usize {
        src as usize * self.ranks as usize + dst as usize
    }
}

impl Router {
    /// Nodes that have experts; there are others where experts are fewer than ranks.
    fn nodes(&self) -> impl Iterator<Item = u32> {
        let nodes = 0..self.group.nodes();
        nodes.filter(|&node| !self.group.experts_of_node(node).is_empty())
    }

    /// Number of nodes that the experts of a token may be on.
    fn nodes_of_a_token(&self) -> u32 {
        self.node_limit.min(self.nodes().count() as u32)
    }

    /// True if there are more nodes with experts than a token may use.
    fn is_limited(&self) -> bool {
        self.node_limit < self.nodes().count() as u32
    }

    /// The most experts that a token can be sure to find on so many nodes as it may use.
    pub fn most_experts(&self) -> u32 {
        let experts = |node: u32| self.group.experts_of_node(node).len() as u32;
        let mut all: Vec<u32> = self.nodes().map(experts).collect();
        all.sort_unstable();
        let nodes = self.nodes_of_a_token() as usize;
        match (self.is_limited(), self.popularity) {
            // Each of the nodes gives its share, with one to round up.
            (true, Popularity::Balanced) => all[0] * nodes as u32,
            _ => all[..nodes].iter().sum(),
        }
    }

    /// Draws the experts of all tokens. There are at least `top_k` of them on as many nodes as a token may use:
    /// [`most_experts`](Self::most_experts).
    ///
    /// With a limit, nodes are drawn first, each in proportion to the popularity of all of its experts, and experts among theirs.
    /// (DeepSeek-V3 takes the nodes with the highest sum of the scores of their best experts; here tokens have no scores.)
    pub fn route(&self, mut random: RandomStream) -> Routing {
        let mut counter = Counter::new(self);
        match self.popularity {
            Popularity::Balanced if self.is_limited() => {
                self.in_turn_by_node(&mut random, &mut counter);
            }
            Popularity::Balanced => self.in_turn(&mut random, &mut counter),
            Popularity::Zipf(exponent) => self.by_weight(exponent, &mut random, &mut counter),
        }
        counter.routing
    }

    /// Each token takes the next experts of a shuffled list.
    fn in_turn(&self, random: &mut RandomStream, counter: &mut Counter) {
        let mut order: Vec<u32> = (0..self.group.experts).collect();
        random.shuffle(&mut order);
        let mut experts = order.iter().copied().cycle();
        let mut chosen = Vec::with_capacity(self.top_k as usize);
        for src in 0..self.group.ranks {
            for _ in 0..self.tokens {
                chosen.clear();
                chosen.extend(experts.by_ref().take(self.top_k as usize));
                counter.count(src, &mut chosen);
            }
        }
    }

    /// Draws experts by node in turn: each token takes the next nodes of a shuffled list, and from each node the next experts of a shuffled
    /// list.
    fn in_turn_by_node(&self, random: &mut RandomStream, counter: &mut Counter) {
        let mut lists: Vec<Vec<u32>> = Vec::new();
        let nodes = self.nodes().count() as u32;
        let mut order: Vec<u32> = (0..nodes).collect();
        random.shuffle(&mut order);
        for node in self.nodes() {
            let mut experts: Vec<u32> = self.group.experts_of_node(node).collect();
            random.shuffle(&mut experts);
            lists.push(experts);
        }
        let mut next = vec![0usize; lists.len()];
        let used = self.nodes_of_a_token();
        let mut turn = 0u64;
        let mut chosen = Vec::with_capacity(self.top_k as usize);
        for src in 0..self.group.ranks {
            for _ in 0..self.tokens {
                chosen.clear();
                let round = turn * u64::from(used) / u64::from(nodes);
                for place in 0..used {
                    let index = (turn * u64::from(used) + u64::from(place)) % u64::from(nodes);
                    let node = order[index as usize] as usize;
                    // The remainder of the division goes to another place in each round of the nodes.
                    let extra =
                        (u64::from(place) + round) % u64::from(used) < u64::from(self.top_k % used);
                    for _ in 0..self.top_k / used + u32::from(extra) {
                        let list = &lists[node];
                        chosen.push(list[next[node]]);
                        next[node] = (next[node] + 1) % list.len();
                    }
                }
                counter.count(src, &mut chosen);
                turn += 1;
            }
        }
    }

    /// Each token draws its experts by their weights.
    fn by_weight(&self, exponent: f64, random: &mut RandomStream, counter: &mut Counter) {
        let mut weights = zipf(self.group.experts, exponent);
        random.shuffle(&mut weights);
        let all = line(weights);
        let nodes = 0..self.group.nodes();
        let ends = nodes.map(|node| all[self.group.experts_of_node(node).end as usize]);
        let by_node: Vec<u64> = std::iter::once(0).chain(ends).collect();
        let (mut experts, mut nodes) = (Draw::new(&all), Draw::new(&by_node));
        let (used, is_limited) = (self.nodes_of_a_token(), self.is_limited());
        let mut drawn = Vec::with_capacity(used as usize);
        let mut chosen = Vec::with_capacity(self.top_k as usize);
        // Token by token, so that a full expert drops tokens of all ranks alike.
        for _ in 0..self.tokens {
            for src in 0..self.group.ranks {
                experts.reset();
                if is_limited {
                    nodes.reset();
                    drawn.clear();
                    drawn.extend((0..used).map(|_| nodes.pick(random)));
                    drawn.sort_unstable();
                    let mut end = 0;
                    for &node in &drawn {
                        experts.exclude(end, by_node[node]);
                        end = by_node[node + 1];
                    }
                    experts.exclude(end, by_node[by_node.len() - 1]);
                }
                chosen.clear();
                chosen.extend((0..self.top_k).map(|_| experts.pick(random) as u32));
                counter.count(src, &mut chosen);
            }
        }
    }
}

/// Counter of the tokens that experts take.
struct Counter {
    group: ExpertGroup,
    /// Tokens that an expert takes at most.
    capacity: u64,
    routing: Routing,
}

impl Counter {
    fn new(router: &Router) -> Self {
        let group = router.group;
        let pairs = group.ranks as usize * group.ranks as usize;
        let all = u64::from(group.ranks) * u64::from(router.tokens) * u64::from(router.top_k);
        let fair = all as f64 / f64::from(group.experts);
        // Too large a float becomes the largest integer.
        let capacity = router
            .capacity_factor
            .map(|factor| (factor * fair).ceil() as u64);
        Self {
            group,
            capacity: capacity.unwrap_or(u64::MAX),
            routing: Routing {
                ranks: group.ranks,
                tokens: vec![0; pairs],
                assignments: vec![0; pairs],
                loads: vec![0; group.experts as usize],
                dropped: 0,
            },
        }
    }

    /// Counts a token of `src` with these experts.
    fn count(&mut self, src: u32, experts: &mut [u32]) {
        // Sorted, experts of one rank follow each other, so that the token counts once for the rank.
        experts.sort_unstable();
        let mut last = None;
        for &expert in experts.iter() {
            let load = &mut self.routing.loads[expert as usize];
            if *load >= self.capacity {
                self.routing.dropped += 1;
                continue;
            }
            *load += 1;
            let rank = self.group.rank_of(expert);
            let place = self.routing.place(src, rank);
            self.routing.assignments[place] += 1;
            if last != Some(rank) {
                self.routing.tokens[place] += 1;
                last = Some(rank);
            }
        }
    }
}
