use super::*;
use crate::{Experiment, ScenarioError};
use clearway_scaleup::injection::InjectionRegistry;
use clearway_transport::Registry;
use clearway_units::HostId;

fn read(text: &str, settings: &[&str]) -> Result<ScaleupScenario, ScenarioError> {
    let settings: Vec<String> = settings.iter().map(ToString::to_string).collect();
    let registries = (&Registry::builtin(), &InjectionRegistry::builtin());
    match Experiment::read(registries, "x.toml", text, None, &settings)? {
        Experiment::Scaleup(scenario) => Ok(*scenario),
        Experiment::Packets(_) => panic!("a scale-up fabric"),
    }
}

const TEXT: &str = "[topology]\nkind = \"nvlink\"\ngpus = 16\ngpus-per-leaf = 4\n";

#[test]
fn resolved_scenarios_read_back_as_they_are() {
    let sections = "[injection]\nkind = \"window\"\nwindow = 5\n[[workload]]\nkind = \"random-sets\"\nsets = 2\n\
                    [[workload]]\nmembers = \"0-7\"\noperation = \"reduce-scatter\"\n";
    let scenario = read(&format!("{TEXT}{sections}"), &["switch.reduction-table=64"]).unwrap();
    let again = read(&scenario.resolved(), &[]).unwrap();
    assert_eq!(again, scenario);
    assert_eq!(again.hash(), scenario.hash());
    let seed = read(&scenario.resolved(), &["seed=2"]).unwrap();
    assert_ne!(seed.hash(), scenario.hash());
    let given: Vec<String> = scenario
        .settings()
        .iter()
        .filter(|setting| setting.given)
        .map(|setting| setting.path())
        .collect();
    assert_eq!(
        given,
        [
            "topology.kind",
            "topology.gpus",
            "topology.gpus-per-leaf",
            "switch.reduction-table",
            "injection.kind",
            "injection.window",
            "workload[0].kind",
            "workload[0].sets",
            "workload[1].operation",
            "workload[1].members"
        ]
    );
}

#[test]
fn what_cannot_be_meant_is_refused_with_its_place() {
    let refusals: Vec<String> = [
        "topology.gpus=15",
        "topology.spines=0",
        "topology.gpus=0",
        "topology.hosts=4",
        "switch.input-buffer=8",
        "switch.queue=8",
        "switch.reduction-table=0",
        "injection.kind=swift",
        "injection.window=0",
        "injection.wm-min=0",
        "injection.response-queue=3",
        "workload.members=9-20",
        "workload.random-members=17",
        "workload.initiators=17",
        "workload.transactions=4000000000",
        "workload.kind=permutation",
        "transport.kind=strack",
        "observe.series.flows=top:3",
    ]
    .into_iter()
    .map(|setting| {
        let control = if setting.contains("window") {
            "injection.kind=window"
        } else {
            "injection.kind=3cpo"
        };
        let refusal =
            read(TEXT, &[control, setting]).and_then(|scenario| scenario.traffic().map(|_| ()));
        let Err(error) = refusal else {
            panic!("{setting} is not refused");
        };
        assert!(error.place.is_some() && !error.fix.is_empty(), "{error}");
        error.to_string()
    })
    .collect();
    insta::assert_snapshot!(refusals.join("\n"));
}

#[test]
fn groups_that_are_drawn_are_disjoint() {
    let text =
        format!("{TEXT}[[workload]]\nrandom-members = 8\n[[workload]]\nrandom-members = 8\n");
    let groups = |seed: &str| read(&text, &[seed]).unwrap().traffic().unwrap().groups;
    let first = groups("seed=1");
    let mut all: Vec<HostId> = first.concat();
    all.sort_unstable();
    assert_eq!(all, (0..16).map(HostId).collect::<Vec<_>>());
    assert_ne!(first, groups("seed=2"));
    assert!(first.iter().all(|group| group.is_sorted()));
}

#[test]
fn initiators_are_spread_evenly() {
    let counts = |initiators: u32| {
        let setting = format!("workload.initiators={initiators}");
        let traffic = read(TEXT, &[&setting, "workload.transactions=3"])
            .unwrap()
            .traffic()
            .unwrap();
        assert_eq!(traffic.operations, u64::from(initiators) * 6);
        traffic
            .programs
            .iter()
            .map(|program| u8::from(!program.is_over()))
            .collect::<Vec<_>>()
    };
    assert_eq!(counts(4), [1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0]);
    assert_eq!(counts(16), [1; 16]);
    assert_eq!(counts(3).iter().sum::<u8>(), 3);
}

#[test]
fn packet_fabrics_have_no_injection_control() {
    let registries = (&Registry::builtin(), &InjectionRegistry::builtin());
    let read = |setting: &str| Experiment::read(registries, "x", "", None, &[setting.to_string()]);
    let error = read("injection.kind=3cpo").unwrap_err();
    assert!(error.to_string().contains("scale-up"), "{error}");
    assert!(matches!(read("seed=2"), Ok(Experiment::Packets(_))));
}
