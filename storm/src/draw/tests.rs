use super::*;
use std::collections::BTreeSet;

fn drawer(name: &str) -> Drawer {
    let folder = std::env::temp_dir().join(format!("clearway-storm-{name}-{}", std::process::id()));
    files::write_all(&folder).unwrap();
    Drawer::new(folder)
}

/// A key that is added to the schema fails here if it cannot be drawn.
#[test]
fn every_key_and_every_kind_is_drawn() {
    let drawer = drawer("coverage");
    let mut missing = drawer.schema().universe();
    let mut drawn = 0;
    for number in 0..6000 {
        if let Some(scenario) = drawer.draw(1, number) {
            drawn += 1;
            for entry in scenario.draft.entries() {
                missing.remove(&entry.covers);
            }
        }
        if missing.is_empty() && number > 200 {
            break;
        }
    }
    assert!(missing.is_empty(), "after {drawn} scenarios: {missing:#?}");
}

#[test]
fn the_seed_alone_decides_what_is_drawn() {
    let drawer = drawer("seed");
    let draw = |seed| -> Vec<String> {
        let drawn = (0..20).filter_map(|number| drawer.draw(seed, number));
        drawn.map(|scenario| scenario.draft.text()).collect()
    };
    let first = draw(5);
    assert_eq!(first, draw(5));
    let all: BTreeSet<&String> = first.iter().collect();
    assert!(all.len() >= 19, "scenarios differ");
    assert_ne!(first, draw(6));
}

#[test]
fn what_is_drawn_is_accepted_by_the_reader() {
    let drawer = drawer("read");
    let drawn: Vec<Drawn> = (0..100).filter_map(|n| drawer.draw(2, n)).collect();
    assert!(drawn.len() >= 95, "{}", drawn.len());
    for scenario in drawn {
        let read = drawer.read(&scenario.draft);
        assert!(read.is_ok(), "{}\n{read:?}", scenario.draft.text());
    }
}
