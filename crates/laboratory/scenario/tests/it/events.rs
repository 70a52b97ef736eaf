//! Sections `[[event]]`: reading, writing, and what is refused.

use clearway_fabric::{LinkChange, LinkSchedule};
use clearway_scenario::{Scenario, ScenarioError};
use clearway_transport::Registry;
use clearway_units::{Rate, Span, Time};
use std::fmt::Write as _;

const FABRIC: &str = "[topology]\nhosts = 8\nhosts-per-leaf = 4\n";

fn schedule(text: &str) -> Result<(Scenario, LinkSchedule), ScenarioError> {
    let text = format!("{FABRIC}{text}");
    let scenario = Scenario::read(&Registry::builtin(), "s.toml", &text, None, &[])?;
    let topology = scenario.fabric()?.topology;
    let schedule = scenario.link_schedule(&topology, &scenario.pause_storms(&[])?)?;
    Ok((scenario, schedule))
}

fn refused(texts: &[&str]) -> String {
    let mut all = String::new();
    for text in texts {
        let error = schedule(text).err();
        let error = error.unwrap_or_else(|| panic!("{text}"));
        let _ = writeln!(all, "{error}");
    }
    all
}

#[test]
fn events_repeat_and_stand_in_any_order() {
    let (scenario, schedule) = schedule(
        "reroute-delay = \"7us\"\n\
         [[event]]\nat = \"20us\"\nlink = \"leaf0-spine1\"\nstate = \"up\"\nevery = \"10us\"\ntimes = 2\n\
         [[event]]\nat = \"15us\"\nlink = \"spine1-leaf0\"\nstate = \"down\"\nrate = \"50Gbps\"\npacket-loss = 1\n",
    )
    .unwrap();
    let told: Vec<(Time, LinkChange)> =
        schedule.events().iter().map(|e| (e.at, e.change)).collect();
    let us = Time::from_us;
    assert_eq!(
        told,
        [
            (us(15), LinkChange::Down),
            (us(15), LinkChange::Rate(Rate::from_gbps(50))),
            (us(15), LinkChange::PacketLoss(1.0)),
            (us(20), LinkChange::Up),
            (us(30), LinkChange::Up),
        ]
    );
    assert_eq!(schedule.reroute_delay(), Span::from_us(7));
    let cables: Vec<usize> = schedule.events().iter().map(|event| event.cable).collect();
    assert!(
        cables.iter().all(|cable| *cable == cables[0]),
        "one cable by both names"
    );
    let again = Scenario::read(
        &Registry::builtin(),
        "s.toml",
        &scenario.resolved(),
        None,
        &[],
    );
    assert_eq!(again.unwrap(), scenario);
}

#[test]
fn scenarios_without_events_are_as_before() {
    let (scenario, schedule) = schedule("").unwrap();
    assert!(schedule.is_empty());
    let resolved = scenario.resolved();
    assert!(
        !resolved.contains("event") && !resolved.contains("reroute"),
        "{resolved}"
    );
}

#[test]
fn events_that_cannot_be_meant_are_refused() {
    let one = |rest: &str| format!("[[event]]\nat = \"1us\"\nlink = \"leaf0-spine1\"\n{rest}\n");
    let texts = [
        "[[event]]\nlink = \"leaf0-spine1\"\nstate = \"down\"\n".into(),
        "[[event]]\nat = \"1us\"\nstate = \"down\"\n".into(),
        "[[event]]\nat = \"1us\"\nlink = \"leaf0-spnie1\"\nstate = \"down\"\n".into(),
        one(""),
        one("state = \"off\""),
        one("rate = \"1bps\""),
        one("packet-loss = 1.5"),
        one("state = \"down\"\nevery = \"1ms\""),
        one("state = \"down\"\ntimes = 3"),
        one("state = \"down\"\nevery = \"0s\"\ntimes = 3"),
        one("state = \"down\"\nevery = \"1000000s\"\ntimes = 3"),
        one("state = \"down\"\nevery = \"1us\"\ntimes = 20000"),
        one("pause-storm = true"),
        format!(
            "{}[switch]\nkind = \"shared-buffer\"\n",
            one("pause-storm = true")
        ),
        format!(
            "{}[switch]\nkind = \"shared-buffer\"\npfc.classes = []\n",
            one("pause-storm = true")
        ),
        one("stat = \"down\""),
        format!("{}{}", one("state = \"down\""), one("state = \"up\"")),
        format!("{}{}", one("rate = \"1Gbps\""), one("rate = \"2Gbps\"")),
        format!("links = [\"leaf0-spine1 down\"]\n{}", one("state = \"up\"")),
        format!(
            "links = [\"leaf0-spine1 dead-from=1us\"]\n{}",
            one("state = \"up\"")
        ),
    ];
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    insta::assert_snapshot!(refused(&texts));
}
