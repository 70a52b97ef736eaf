use super::*;
use crate::graph::{Rank, Task};
use clearway_units::{Bytes, Purpose, RandomStream, Span};

fn group(ranks: u32, ranks_per_node: u32, experts: u32) -> ExpertGroup {
    ExpertGroup {
        ranks,
        ranks_per_node,
        experts,
    }
}

fn router(group: ExpertGroup, tokens: u32, top_k: u32, popularity: Popularity) -> Router {
    Router {
        group,
        tokens,
        top_k,
        node_limit: u32::MAX,
        popularity,
        capacity_factor: None,
    }
}

fn random(entity: u64) -> RandomStream {
    RandomStream::new(1, Purpose::Test, entity)
}

fn all(routing: &Routing, of: impl Fn(&Routing, u32, u32) -> u32) -> u64 {
    let ranks = routing.ranks();
    let pairs = (0..ranks).flat_map(|src| (0..ranks).map(move |dst| (src, dst)));
    pairs
        .map(|(src, dst)| u64::from(of(routing, src, dst)))
        .sum()
}

#[test]
fn experts_lie_on_ranks_in_order_and_as_evenly_as_possible() {
    for (ranks, per_node, experts) in [(64, 8, 256), (3, 2, 8), (8, 8, 5), (5, 4, 1), (1, 8, 7)] {
        let group = group(ranks, per_node, experts);
        let mut next = 0;
        for rank in 0..ranks {
            let own = group.experts_of(rank);
            assert_eq!(own.start, next);
            assert!(own.clone().all(|expert| group.rank_of(expert) == rank));
            let even = experts / ranks..=experts.div_ceil(ranks);
            assert!(even.contains(&(own.len() as u32)));
            next = own.end;
        }
        assert_eq!(next, experts);
        let by_node = (0..group.nodes()).flat_map(|node| group.experts_of_node(node));
        assert!(by_node.eq(0..experts));
    }
    assert_eq!(group(64, 8, 256).experts_of_node(1), 32..64);
}

/// Every token has its experts: assignments are tokens times k less drops, copies are assignments less duplicates on a rank.
#[test]
fn no_token_is_lost() {
    let popularities = [
        Popularity::Balanced,
        Popularity::Zipf(0.0),
        Popularity::Zipf(0.7),
        Popularity::Zipf(2.0),
        Popularity::Zipf(MOST_SKEW),
    ];
    for (number, popularity) in (0..).zip(popularities) {
        for (ranks, experts, top_k, limit) in [
            (8, 32, 4, 9),
            (8, 32, 4, 2),
            (6, 32, 8, 2),
            (5, 7, 7, 9),
            (10, 3, 2, 4),
            (10, 3, 2, 2),
        ] {
            for capacity_factor in [None, Some(1.0), Some(0.5)] {
                let router = Router {
                    node_limit: limit,
                    capacity_factor,
                    ..router(group(ranks, 2, experts), 50, top_k, popularity)
                };
                assert!(router.most_experts() >= top_k);
                let routing = router.route(random(number));
                let wanted = u64::from(ranks * 50 * top_k);
                let assigned = all(&routing, Routing::assignments);
                assert_eq!(assigned + routing.dropped(), wanted);
                assert_eq!(routing.loads().iter().sum::<u64>(), assigned);
                let work: u64 = (0..ranks).map(|rank| routing.work(rank)).sum();
                assert_eq!(work, assigned);
                for (src, dst) in (0..ranks).flat_map(|src| (0..ranks).map(move |dst| (src, dst))) {
                    let (tokens, assigned) =
                        (routing.tokens(src, dst), routing.assignments(src, dst));
                    let most = group(ranks, 2, experts).experts_of(dst).len() as u32;
                    assert!(tokens <= 50 && tokens <= assigned && assigned <= tokens * most);
                }
                let fair = wanted as f64 / f64::from(experts);
                match capacity_factor {
                    None => assert_eq!(routing.dropped(), 0),
                    Some(factor) => {
                        let most = (factor * fair).ceil() as u64;
                        assert!(routing.loads().iter().all(|&load| load <= most));
                        // Dropped tokens are those beyond the capacity, and no others.
                        let free = Router {
                            capacity_factor: None,
                            ..router
                        }
                        .route(random(number));
                        let beyond = free.loads().iter().map(|&load| load.saturating_sub(most));
                        assert_eq!(beyond.sum::<u64>(), routing.dropped());
                    }
                }
            }
        }
    }
}

/// With an expert on each rank no two experts of a token share one: copies are tokens times k. With all experts on one rank a token goes
/// there once.
#[test]
fn a_token_goes_to_a_rank_once() {
    let spread = router(group(16, 8, 16), 20, 4, Popularity::Zipf(1.0)).route(random(0));
    assert_eq!(all(&spread, Routing::tokens), 16 * 20 * 4);
    let together = router(group(4, 8, 4), 20, 4, Popularity::Zipf(1.0));
    let together = together.route(random(0));
    assert_eq!(all(&together, Routing::tokens), 4 * 20 * 4);
    let one = router(group(1, 8, 4), 20, 4, Popularity::Zipf(1.0)).route(random(0));
    assert_eq!((one.tokens(0, 0), one.assignments(0, 0)), (20, 80));
}

#[test]
fn balanced_experts_get_the_same() {
    for (ranks, tokens, experts, top_k) in [(64, 128, 256, 8), (5, 7, 12, 5), (3, 1, 16, 2)] {
        let routing = router(
            group(ranks, 8, experts),
            tokens,
            top_k,
            Popularity::Balanced,
        );
        let routing = routing.route(random(0));
        let fair = u64::from(ranks * tokens * top_k) / u64::from(experts);
        let loads = routing.loads();
        assert!(
            loads.iter().all(|load| (fair..=fair + 1).contains(load)),
            "{loads:?}"
        );
    }
    // The limit of DeepSeek-V3: four of eight nodes.
    let limited = Router {
        node_limit: 4,
        ..router(group(64, 8, 256), 128, 8, Popularity::Balanced)
    };
    assert!(
        limited
            .route(random(0))
            .loads()
            .iter()
            .all(|&load| load == 256)
    );
    let uneven = Router {
        top_k: 7,
        ..limited
    };
    let routing = uneven.route(random(0));
    let loads = routing.loads();
    let fair = 64 * 128 * 7 / 256;
    assert!(
        loads.iter().all(|&load| load.abs_diff(fair) <= 1),
        "{loads:?}"
    );
}

/// Shares of experts follow the Zipf distribution: with one expert for each token, the i-th gets i^-s of the sum.
#[test]
fn skewed_experts_get_what_the_distribution_says() {
    const TOKENS: u32 = 20_000;
    for skew in [0.0f64, 0.5, 1.0, 1.5, 2.0] {
        let routing = router(group(8, 8, 32), TOKENS, 1, Popularity::Zipf(skew)).route(random(3));
        let mut loads = routing.loads().to_vec();
        loads.sort_unstable_by_key(|&load| std::cmp::Reverse(load));
        let halves = (2.0 * skew) as u32;
        // i^-s for s a multiple of one half, computed in another way than in the router.
        let weight = |place: u32| {
            1.0 / (0..halves).fold(1.0, |product, _| product * f64::from(place).sqrt())
        };
        let sum: f64 = (1..=32).map(weight).sum();
        let all = f64::from(8 * TOKENS);
        for (place, load) in (1..).zip(loads).take(3) {
            let share = weight(place) / sum;
            let error = (all * share * (1.0 - share)).sqrt();
            // With skew 0 all experts are equal, and the largest load is the maximum of 32 draws.
            assert!(
                (load as f64 - share * all).abs() < 4.0 * error,
                "{skew} {place}: {load}"
            );
        }
    }
}

#[test]
fn a_token_uses_so_many_nodes_and_no_more() {
    for popularity in [
        Popularity::Balanced,
        Popularity::Zipf(0.0),
        Popularity::Zipf(1.2),
    ] {
        let router = Router {
            node_limit: 2,
            ..router(group(32, 4, 64), 1, 8, popularity)
        };
        for entity in 0..20 {
            let routing = router.route(random(entity));
            for src in 0..32 {
                let ranks = (0..32).filter(|&dst| routing.tokens(src, dst) > 0);
                let mut nodes: Vec<u32> = ranks.map(|dst| dst / 4).collect();
                nodes.dedup();
                assert!((1..=2).contains(&nodes.len()), "{nodes:?}");
            }
        }
    }
}

#[test]
fn layers_are_drawn_by_their_streams() {
    let router = router(group(8, 8, 32), 10, 2, Popularity::Zipf(1.0));
    assert_eq!(router.route(random(1)), router.route(random(1)));
    assert_ne!(router.route(random(1)), router.route(random(2)));
}

const LAYERS: ExpertLayers = ExpertLayers {
    dispatch: Bytes::new(7168),
    combine: Bytes::new(2 * 7168),
    copy_for_each_expert: false,
    compute: Span::from_us(5),
    per_token: Span::from_ns(88),
    backward: false,
};

/// Bytes between all pairs of ranks in a graph: of the dispatch, whose messages come first in each layer, and of the combine.
fn bytes_between(graph: &crate::Graph, ranks: usize, layer: usize) -> [Vec<Vec<u64>>; 2] {
    let empty = vec![vec![0; ranks]; ranks];
    let mut both = [empty.clone(), empty];
    let mut computations = 0;
    for (_, task) in graph.numbered() {
        match task {
            Task::Compute { .. } => computations += 1,
            Task::Message { src, dst, bytes } => {
                let phase = (computations - 1) / ranks;
                if phase / 2 == layer {
                    both[phase % 2][src.index()][dst.index()] += bytes.as_u64();
                }
            }
        }
    }
    both
}

#[test]
fn a_combine_is_the_transpose_of_its_dispatch() {
    let router = router(group(12, 4, 48), 30, 6, Popularity::Zipf(1.0));
    let routings = [router.route(random(0)), router.route(random(1))];
    for each in [false, true] {
        let layers = ExpertLayers {
            copy_for_each_expert: each,
            ..LAYERS
        };
        let graph = layers.graph(&routings);
        graph.check().unwrap();
        for (layer, routing) in routings.iter().enumerate() {
            let [dispatch, combine] = bytes_between(&graph, 12, layer);
            for (src, dst) in pairs_of(12) {
                let copies = match each {
                    true => routing.assignments(src, dst),
                    false => routing.tokens(src, dst),
                };
                let (src, dst) = (src as usize, dst as usize);
                assert_eq!(dispatch[src][dst], u64::from(copies) * 7168);
                assert_eq!(combine[dst][src], 2 * dispatch[src][dst]);
            }
        }
    }
}

fn pairs_of(ranks: u32) -> impl Iterator<Item = (u32, u32)> {
    let all = (0..ranks).flat_map(move |src| (0..ranks).map(move |dst| (src, dst)));
    all.filter(|(src, dst)| src != dst)
}

/// A rank's experts compute for each of their tokens, after all of them have arrived; the next layer begins after all have come back.
#[test]
fn computations_take_what_the_tokens_take_and_wait_for_them() {
    let router = router(group(4, 4, 8), 16, 2, Popularity::Balanced);
    let routings = [router.route(random(0)), router.route(random(1))];
    let graph = LAYERS.graph(&routings);
    assert!(graph.len() as u64 <= 2 * ExpertLayers::most_tasks(4));
    let mut spans = vec![Vec::new(); 4];
    let mut needs = vec![Vec::new(); 4];
    for (id, task) in graph.numbered() {
        if let Task::Compute { rank, span, .. } = task {
            spans[rank.index()].push(span);
            needs[rank.index()].push(graph.needs(id).len());
        }
    }
    for rank in 0..4 {
        let work = |layer: usize| LAYERS.per_token * routings[layer].work(rank);
        let expected = [LAYERS.compute, work(0), LAYERS.compute, work(1)];
        assert_eq!(spans[rank as usize], expected);
        let senders = |routing: &Routing| {
            1 + (0..4)
                .filter(|&src| src != rank && routing.tokens(src, rank) > 0)
                .count()
        };
        let served = |routing: &Routing| {
            1 + (0..4)
                .filter(|&dst| dst != rank && routing.tokens(rank, dst) > 0)
                .count()
        };
        let expected = [
            0,
            senders(&routings[0]),
            served(&routings[0]),
            senders(&routings[1]),
        ];
        assert_eq!(needs[rank as usize], expected);
    }
    let both = ExpertLayers {
        backward: true,
        ..LAYERS
    }
    .graph(&routings);
    both.check().unwrap();
    let sum = |graph: &crate::Graph| {
        graph
            .bytes_sent()
            .iter()
            .map(|sent| sent.as_u64())
            .collect::<Vec<_>>()
    };
    let doubled: Vec<u64> = sum(&graph).iter().map(|sent| 2 * sent).collect();
    assert_eq!(sum(&both), doubled);
    let last = both.numbered().filter_map(|(_, task)| match task {
        Task::Compute {
            rank: Rank(3),
            span,
            ..
        } => Some(span),
        _ => None,
    });
    // The first layer comes last.
    assert_eq!(
        last.last(),
        Some(LAYERS.per_token * (2 * routings[0].work(3)))
    );
}

#[test]
fn spans_end_with_the_longest_there_is() {
    let layers = ExpertLayers {
        per_token: Span::MAX,
        backward: true,
        ..LAYERS
    };
    let routing = router(group(2, 4, 2), 4, 2, Popularity::Balanced).route(random(0));
    let graph = layers.graph(&[routing]);
    let longest = graph.numbered().map(|(_, task)| match task {
        Task::Compute { span, .. } => span,
        Task::Message { .. } => Span::ZERO,
    });
    assert_eq!(longest.max(), Some(Span::MAX));
}
