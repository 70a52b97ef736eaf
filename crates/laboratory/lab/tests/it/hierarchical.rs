//! Collectives dimension by dimension on networks with dimensions.

use clearway_lab::units::Time;
use clearway_lab::{Assembly, Laboratory, Scenario};

fn scenario(topology: &str, workload: &str) -> Scenario {
    let text = format!(
        "topology = {topology}\n[transport]\nkind = \"rocev2\"\n[[workload]]\n{workload}\n"
    );
    Laboratory::new().read("test", &text, None, &[]).unwrap()
}

/// Coordinates in which the ends of a flow differ.
fn distance(src: u32, dst: u32, sizes: &[u32]) -> usize {
    let mut stride = 1;
    let differ = |size: &u32| {
        let own = [src, dst].map(|host| host / stride % size);
        stride *= size;
        own[0] != own[1]
    };
    sizes.iter().map(differ).filter(|differs| *differs).count()
}

#[test]
fn a_torus_gives_its_dimensions_to_hierarchical_collectives() {
    let torus = "{ kind = \"torus\", dimensions = [4, 2, 2] }";
    for operation in ["all-reduce", "reduce-scatter", "all-gather", "all-to-all"] {
        let workload = format!("kind = \"hierarchical-{operation}\"\nsize = \"64KB\"");
        let assembly = Assembly::new(&scenario(torus, &workload)).unwrap();
        assert!(assembly.flow_count() > 0);
        for (_, flow) in assembly.workload.numbered() {
            assert_eq!(
                distance(flow.src.0, flow.dst.0, &[4, 2, 2]),
                1,
                "{operation}"
            );
        }
    }
}

/// The first dimension carries 3/2 of the buffer, which takes 120 us, and the second a quarter of that, one after the other or, with
/// splits, at once. A ring over all hosts carries 30/16 over one link of each.
#[test]
fn splits_keep_both_dimensions_busy() {
    let torus = "{ kind = \"torus\", dimensions = [4, 4], routing = \"dimension-order\" }";
    let time = |workload: &str| {
        let workload = format!("{workload}\nsize = \"4MB\"");
        let finished = Laboratory::new().run(&scenario(torus, &workload)).unwrap();
        let flows = finished.flows.iter();
        flows.map(|flow| flow.finished.unwrap()).max().unwrap()
    };
    let whole = time("kind = \"hierarchical-all-reduce\"");
    let split = time("kind = \"hierarchical-all-reduce\"\nsplits = 8");
    let flat = time("kind = \"ring-all-reduce\"");
    let us = |us| Time::from_us(us);
    assert!(us(150) < whole && whole < us(170), "{whole}");
    assert!(us(120) < split && split < us(140), "{split}");
    assert!(split < flat, "{flat}");
}
