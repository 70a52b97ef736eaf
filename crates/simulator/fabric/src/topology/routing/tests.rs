use super::super::{CoreWiring, FatTree, Tier, fat_tree};
use super::*;
use clearway_units::{Purpose, RandomStream, Rate, Span};

#[test]
fn destinations_change_ways_faster_the_lower_a_switch_is() {
    let tier = |down_ports, up_ports| Tier {
        down_ports,
        up_ports,
        link_rate: Rate::from_gbps(10),
        link_delay: Span::from_us(1),
        switch_latency: Span::ZERO,
        bundle: 1,
    };
    // 4 leaves of 2 hosts with 2 uplinks, 4 aggregation switches with 3 uplinks, 3 cores.
    let spec = FatTree {
        hosts: 8,
        hosts_per_pod: 4,
        tiers: vec![tier(2, 2), tier(2, 3), tier(4, 0)],
        cores: CoreWiring::All,
    };
    let routes = Routes::compute(&fat_tree(&spec).unwrap()).unwrap();
    let strides = |switch: usize| routes.switches[switch].strides.to_vec();
    assert_eq!(strides(0), [1; 4], "to hosts and aggregation switches");
    assert_eq!(strides(4), [1, 1, 2, 2, 2], "to leaves and cores");
    assert_eq!(strides(8), [1; 4], "to aggregation switches");
}

fn tier(down_ports: u32, up_ports: u32, bundle: u32) -> Tier {
    Tier {
        down_ports,
        up_ports,
        link_rate: Rate::from_gbps(100),
        link_delay: Span::from_us(1),
        switch_latency: Span::from_ns(300),
        bundle,
    }
}

/// One search for all twins finds the same routes as a search for each of them, down to the layout of the tables.
#[test]
fn twins_have_the_routes_that_a_search_of_their_own_would_find() {
    let two = FatTree {
        hosts: 24,
        hosts_per_pod: 24,
        tiers: vec![tier(4, 3, 1), tier(6, 0, 1)],
        cores: CoreWiring::All,
    };
    let three = |cores, bundle, core_ports| FatTree {
        hosts: 48,
        hosts_per_pod: 12,
        tiers: vec![
            tier(3, 2 * bundle, 1),
            tier(4 * bundle, 2, bundle),
            tier(core_ports, 0, 1),
        ],
        cores,
    };
    let specs = [
        two,
        three(CoreWiring::All, 1, 8),
        three(CoreWiring::All, 2, 8),
        three(CoreWiring::Planes, 1, 4),
    ];
    let (mut shared, mut compared) = (0, 0);
    for seed in 0..200 {
        let spec = &specs[seed as usize % specs.len()];
        let mut topology = fat_tree(spec).unwrap();
        let mut random = RandomStream::new(seed, Purpose::Test, 0);
        // Some links are down, slower or longer: fewer twins, and other ones.
        for _ in 0..random.below(4) {
            let cable = random.below(topology.cables.len() as u32) as usize;
            if cable < spec.hosts as usize {
                continue;
            }
            let cable = &mut topology.cables[cable];
            match random.below(3) {
                0 => cable.up = false,
                1 => cable.rate = Rate::from_gbps(40),
                _ => cable.delay = Span::from_us(2),
            }
        }
        let by_twins = Routes::compute(&topology);
        let one_by_one = Routes::with_search(&topology, |mut search| {
            shared += u32::from(search.has_twins);
            search.has_twins = false;
            search
        });
        match (by_twins, one_by_one) {
            (Ok(by_twins), Ok(one_by_one)) => {
                compared += 1;
                assert_eq!(by_twins.switches, one_by_one.switches, "seed {seed}");
                let (a, b) = (by_twins.paths, one_by_one.paths);
                assert_eq!(format!("{a:?}"), format!("{b:?}"), "seed {seed}");
            }
            (by_twins, one_by_one) => {
                assert!(by_twins.is_err() && one_by_one.is_err(), "seed {seed}");
            }
        }
    }
    assert!(compared > 150 && shared >= compared, "{compared} {shared}");
}

#[test]
fn leaves_of_a_pod_are_twins() {
    let spec = FatTree {
        hosts: 48,
        hosts_per_pod: 12,
        tiers: vec![tier(3, 2, 1), tier(4, 2, 1), tier(8, 0, 1)],
        cores: CoreWiring::All,
    };
    let mut topology = fat_tree(&spec).unwrap();
    let twins = |topology: &Topology| {
        let ports = topology.ports();
        let attached = attach(topology, &ports).unwrap();
        let search = Search::new(topology, &ports, |_| true);
        equivalent_switches::of_each(&search.hops, &attached.groups)
    };
    let first = |leaf: usize| (!leaf.is_multiple_of(4)).then_some(leaf / 4 * 4);
    let of_pods: Vec<_> = (0..16).map(first).collect();
    assert_eq!(twins(&topology), of_pods);
    // A slower link makes its leaf another one.
    let cables = topology.cables.len();
    let up = (0..cables).find(|&cable| {
        let [a, b] = topology.cables[cable].ends;
        let leaf = topology.switch_node(5);
        [a, b].contains(&leaf) && ![a, b].iter().any(|end| end.0 < topology.hosts)
    });
    topology.cables[up.unwrap()].rate = Rate::from_gbps(40);
    let changed = twins(&topology);
    assert_eq!(changed[5], None);
    assert_eq!(changed[6], Some(4), "{changed:?}");
}

#[test]
fn more_switches_with_hosts_than_there_are_numbers_are_refused() {
    // Pods of two leaves with two hosts each.
    let refusal = |pods: u32| {
        let spec = FatTree {
            hosts: 4 * pods,
            hosts_per_pod: 4,
            tiers: vec![tier(2, 1, 1), tier(2, 1, 1), tier(pods, 0, 1)],
            cores: CoreWiring::All,
        };
        let topology = fat_tree(&spec).unwrap();
        let attached = attach(&topology, &topology.ports());
        attached.err().map(|error| error.to_string())
    };
    assert_eq!(refusal(32_768), None);
    assert_eq!(
        refusal(32_769).unwrap(),
        "65538 switches have hosts; connect the hosts to at most 65536 switches"
    );
}
