use super::*;
use clearway_testing::cases;
use std::collections::BTreeSet;

/// A folder of files that scenarios name; it is removed at the end.
struct Folder(clearway_testing::Folder);

impl Folder {
    fn new(name: &str) -> Self {
        let folder = Self(clearway_testing::Folder::new(&format!("storm-{name}")));
        files::write_all(&folder.0).unwrap();
        folder
    }

    fn drawer(&self) -> ScenarioGenerator {
        ScenarioGenerator::new(self.0.to_path_buf())
    }
}

/// The first packet scenarios of a storm.
fn packets(
    drawer: &ScenarioGenerator,
    seed: u64,
    count: u64,
) -> impl Iterator<Item = GeneratedScenario> {
    let all = (0..count).filter_map(move |number| drawer.draw(seed, number));
    all.filter(|generated| !is_scaleup(generated))
}

fn is_scaleup(generated: &GeneratedScenario) -> bool {
    let mut entries = generated.draft.entries().iter();
    entries.any(|entry| entry.section == Section::Injection)
}

/// A new key of the schema fails here if it cannot be drawn.
#[test]
fn every_key_and_every_kind_is_drawn() {
    let folder = Folder::new("coverage");
    let drawer = folder.drawer();
    let mut missing = drawer.schema().universe();
    let mut generated = 0;
    for number in 0..12_000 {
        if let Some(scenario) = drawer.draw(1, number) {
            generated += 1;
            for entry in scenario.draft.entries() {
                missing.remove(&entry.covers);
            }
        }
        if missing.is_empty() && number > 200 {
            break;
        }
    }
    assert!(
        missing.is_empty(),
        "after {generated} scenarios: {missing:#?}"
    );
}

/// In TOML `credit = "rccc"` and `credit.rate = 0.5` cannot be in one section.
#[test]
fn no_key_is_the_beginning_of_another() {
    let folder = Folder::new("beginnings");
    let universe = folder.drawer().schema().universe();
    let names = universe.iter().filter_map(|name| name.split_once(" ("));
    let keys: BTreeSet<&str> = names.map(|(key, _)| key).collect();
    assert!(keys.contains("transport.credit.kind"), "{keys:#?}");
    for key in &keys {
        let dots = key.match_indices('.').map(|(dot, _)| &key[..dot]);
        let shorter: Vec<&str> = dots.filter(|shorter| keys.contains(shorter)).collect();
        assert!(shorter.is_empty(), "{key} and {shorter:?}");
    }
}

#[test]
fn the_seed_alone_decides_what_is_drawn() {
    let folder = Folder::new("seed");
    let drawer = folder.drawer();
    let draw = |seed| -> Vec<String> {
        let generated = (0..20).filter_map(|number| drawer.draw(seed, number));
        generated.map(|scenario| scenario.draft.text()).collect()
    };
    let first = draw(5);
    assert_eq!(first, draw(5));
    let all: BTreeSet<&String> = first.iter().collect();
    assert!(all.len() >= 19, "scenarios differ");
    assert_ne!(first, draw(6));
}

#[test]
fn what_is_drawn_is_accepted_by_the_reader() {
    let folder = Folder::new("read");
    let drawer = folder.drawer();
    let generated: Vec<GeneratedScenario> = (0..100).filter_map(|n| drawer.draw(2, n)).collect();
    assert!(generated.len() >= 95, "{}", generated.len());
    for scenario in generated {
        let read = drawer.read_any(&scenario.draft);
        assert!(read.is_ok(), "{}\n{read:?}", scenario.draft.text());
    }
}

#[test]
fn a_fifth_of_all_scenarios_are_of_scale_up_fabrics_and_small() {
    let folder = Folder::new("scale-up");
    let drawer = folder.drawer();
    let generated: Vec<GeneratedScenario> = (0..400).filter_map(|n| drawer.draw(8, n)).collect();
    let (mut count, mut most) = (0, 0);
    for scenario in generated.iter().filter(|generated| is_scaleup(generated)) {
        count += 1;
        let text = scenario.draft.text();
        let read = drawer.read_scaleup(&scenario.draft).unwrap();
        assert!(read.fabric.nvlink.gpus <= 64, "{text}");
        let traffic = read.traffic().unwrap();
        let sections = traffic.groups.len() as u64;
        assert!(traffic.operations <= sections * 220_000, "{text}");
        most = most.max(traffic.operations);
    }
    let share = f64::from(count) / generated.len() as f64;
    assert!((0.15..0.25).contains(&share), "{share}");
    assert!(most > 5_000, "{most}");
}

#[test]
fn streams_end_soon_after_their_runs() {
    let folder = Folder::new("streams");
    let drawer = folder.drawer();
    let mut streams = 0;
    for scenario in packets(&drawer, 3, 400) {
        let read = drawer.read(&scenario.draft).unwrap();
        let most = STREAM_BEYOND_RUN * read.general.at_most.as_ps();
        for entry in scenario.draft.entries() {
            if entry.section.name() == "workload" && entry.key == "duration" {
                let span = Span::from_value(&entry.value).unwrap();
                assert!(span.as_ps() <= most, "{}", scenario.draft.text());
                streams += 1;
            }
        }
    }
    assert!(streams > 20, "{streams}");
}

#[test]
fn few_hosts_of_a_large_fabric_take_part() {
    let folder = Folder::new("large");
    let drawer = folder.drawer();
    let is_large = |entry: &&Entry| {
        let name = entry.section.name();
        name == "topology"
            && matches!(entry.value, Value::Integer(number) if number > MOST_IN_FABRIC)
    };
    let mut large = 0;
    let scenarios = u64::from(cases(600, 3000));
    for generated in packets(&drawer, 4, scenarios) {
        if !generated
            .draft
            .entries()
            .iter()
            .any(|entry| is_large(&entry))
        {
            continue;
        }
        large += 1;
        let read = drawer.read(&generated.draft).unwrap();
        for setting in read.settings() {
            let is_crowd = setting.section == "workload" && setting.key == "ranks";
            let few = matches!(setting.value, Value::Integer(..=32));
            assert!(!is_crowd || few, "{}", generated.draft.text());
        }
    }
    assert!(large > scenarios / 150, "{large}");
}

/// Hosts that send chunks of one byte at their full rate send more packets than any other.
#[test]
fn runs_with_small_messages_are_short() {
    let folder = Folder::new("small");
    let drawer = folder.drawer();
    let mut small = 0;
    let scenarios = u64::from(cases(500, 1500));
    for generated in packets(&drawer, 6, scenarios) {
        let chunk = smallest_message(&generated.draft);
        if chunk > 64 {
            continue;
        }
        let read = drawer.read(&generated.draft).unwrap();
        let Ok(assembly) = Assembly::new(&read) else {
            continue;
        };
        small += 1;
        let header = read.transport.packets.header.as_u64();
        let bits = 8 * u128::from(chunk + header).max(64);
        let seconds = read.general.at_most.as_ps() as f64 * 1e-12;
        let packets =
            Facts::from_assembly(&assembly).bits_per_second as f64 * seconds / bits as f64;
        assert!(
            packets <= 1.001 * MOST_PACKETS as f64,
            "{}",
            generated.draft.text()
        );
    }
    assert!(small > scenarios / 75, "{small}");
}

#[test]
fn collectives_have_messages_that_fit_into_memory() {
    let folder = Folder::new("messages");
    let drawer = folder.drawer();
    let mut small = 0;
    let scenarios = u64::from(cases(1000, 2000));
    for generated in packets(&drawer, 7, scenarios) {
        let read = drawer.read(&generated.draft).unwrap();
        let Ok(assembly) = Assembly::new(&read) else {
            continue;
        };
        let hosts = u64::from(assembly.topology_report().hosts);
        for number in 0..3 {
            let size = |key| size_in(&generated.draft, Section::Workload(number), key);
            if let Some((_, chunk)) = size("chunk") {
                let whole = size("size").map_or(USUAL_SIZE, |(_, size)| size);
                let messages = whole.as_u64() / chunk.as_u64() * hosts;
                assert!(messages <= 2 * MOST_MESSAGES, "{}", generated.draft.text());
                small += u64::from(chunk.as_u64() <= 1000);
            }
        }
    }
    assert!(small > scenarios / 400, "{small}");
}
