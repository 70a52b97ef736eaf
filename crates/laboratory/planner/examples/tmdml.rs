//! The All-Reduce of TMDML's Tables IV and V as a fluid: what no rates can beat, what Algorithm 1 reaches and what the paper reports.
//!
//! `cargo run -p clearway-planner --example tmdml [SEEDS]`

#![allow(clippy::print_stdout, reason = "a program that prints")]

use clearway_planner::tmdml::{
    BottleneckRule, EqualPathChoice, Fabric, Problem, Solver, TmdmlParameters, completion,
    least_phi,
};
use clearway_units::{Bytes, Rate, Span};

const MODELS: [(&str, u64); 3] = [
    ("ResNet50", 97_700_000),
    ("AlexNet", 240_000_000),
    ("VGG-16", 527_800_000),
];
const VGG16: Bytes = Bytes::new(MODELS[2].1);

fn main() {
    let seeds: u64 = std::env::args()
        .nth(1)
        .map_or(100, |text| text.parse().expect("a number of seeds"));
    let rate = Rate::from_gbps(10);
    // The paper's times with TMDML in ms for the models (Tables IV and V).
    for (name, fabric, paper) in [
        (
            "8-Fat-Tree",
            Fabric::eight_servers(rate),
            [139.89, 349.69, 769.01],
        ),
        (
            "128-Fat-Tree",
            Fabric::fat_tree(8, rate),
            [160.32, 394.48, 907.92],
        ),
        ("9-BCube", Fabric::bcube(3, rate), [162.68, 353.82, 900.88]),
        (
            "121-BCube",
            Fabric::bcube(11, rate),
            [182.56, 460.4, 1060.4],
        ),
    ] {
        let balanced = fabric
            .all_reduce_stage(VGG16, EqualPathChoice::Balanced, 0)
            .expect("a stage");
        let ideal = bound(&balanced);
        println!("{name}, times by the ideal time");
        for ((model, bytes), paper) in MODELS.iter().zip(paper) {
            let own = 2e3 * ideal * *bytes as f64 / VGG16.as_f64();
            println!(
                "  {model}: ideal {own:.1} ms, paper {paper} ms = {:.3}",
                paper / own
            );
        }
        print_bounds(&fabric, ideal, seeds);
        print_fluid("balanced paths", &fabric, &balanced, ideal);
        let hashed = fabric
            .all_reduce_stage(VGG16, EqualPathChoice::Hashed, 0)
            .expect("a stage");
        println!(
            "  hashed paths of seed 0: least possible {:.3}",
            bound(&hashed) / ideal
        );
        print_fluid("hashed paths of seed 0", &fabric, &hashed, ideal);
    }
}

/// Prints the times that no rates can beat with the hashed paths of `seeds` seeds.
fn print_bounds(fabric: &Fabric, ideal: f64, seeds: u64) {
    let stage = |seed| {
        fabric
            .all_reduce_stage(VGG16, EqualPathChoice::Hashed, seed)
            .expect("a stage")
    };
    let mut bounds: Vec<f64> = (0..seeds).map(|seed| bound(&stage(seed)) / ideal).collect();
    bounds.sort_by(f64::total_cmp);
    if let [best, .., worst] = bounds[..] {
        let median = bounds[bounds.len() / 2];
        println!(
            "  hashed paths: least possible {best:.3} best, {median:.3} median, {worst:.3} worst of {seeds}"
        );
    }
}

/// Prints the times that the rates of the closed form and of Algorithm 1 reach.
fn print_fluid(paths: &str, fabric: &Fabric, stage: &Problem, ideal: f64) {
    for rule in BottleneckRule::ALL {
        let slot = Span::from_ms(if fabric.servers() > 20 { 5 } else { 1 });
        let parameters = TmdmlParameters {
            bottlenecks: *rule,
            slot,
            ..TmdmlParameters::default()
        };
        let times = [Solver::Least, Solver::Gradient].map(|solver| {
            let done = completion(stage, &parameters, solver).expect("settings fit");
            format!("{} {:.3}", solver.name(), done.finish().as_secs() / ideal)
        });
        println!(
            "  {paths}, bottlenecks {}: {}",
            rule.name(),
            times.join(", ")
        );
    }
}

/// The least time of a stage in seconds: what the busiest link has to carry.
fn bound(stage: &Problem) -> f64 {
    let bits: Vec<f64> = stage.bytes().iter().map(|bytes| bytes * 8.0).collect();
    least_phi(stage, &bits)
}
