use super::super::Scenario;
use super::*;
use clearway_transport::Registry;
use clearway_units::Rate;

const TEXT: &str = "[transport]\nkind = \"rocev2\"\n[[workload]]\nkind = \"ring-all-reduce\"\njobs = 2\nranks = 2\npriority = [3, 2]\n\
    transport = { rate-timer = [\"100us\", \"0.125ms\"], g = 0.5 }\n[[workload]]\nkind = \"one-to-one\"\ntransport.rate-timer = \"30us\"\n";

fn read_with(text: &str, overrides: &[&str]) -> Result<Scenario, ScenarioError> {
    let overrides: Vec<String> = overrides.iter().map(ToString::to_string).collect();
    Scenario::read(&Registry::builtin(), "s.toml", text, None, &overrides)
}

fn read(text: &str) -> Scenario {
    read_with(text, &[]).unwrap_or_else(|error| panic!("{error}"))
}

fn error(text: &str, overrides: &[&str]) -> String {
    read_with(text, overrides).unwrap_err().to_string()
}

/// Value of a key in a variant.
fn value(settings: &ControllerSettings, key: &str) -> String {
    let entries = settings.entries().into_iter();
    let mut own = entries.filter(|(known, _)| *known == key);
    own.next().unwrap().1.to_string()
}

fn load(section: &WorkloadSection, first: u16) -> Result<LoadedWorkload, ScenarioError> {
    let context = BuildContext {
        hosts: 8,
        nic_rates: &[Rate::from_gbps(400); 8],
        gpus_per_node: 1,
        seed: 1,
        section: 0,
        taken: BuildContext::ALL_FREE,
        base_dir: None,
    };
    section.load(&context, first)
}

#[test]
fn sections_have_settings_of_the_controller_to_themselves() {
    let scenario = read(TEXT);
    let timers = scenario.variants();
    let timers: Vec<String> = timers.iter().map(|v| value(v, "rate-timer")).collect();
    assert_eq!(timers, ["\"100us\"", "\"125us\"", "\"30us\""]);
    assert_eq!(value(&scenario.variants()[1], "g"), "0.5");
    assert_eq!(value(&scenario.variants()[2], "g"), "0.00390625");
    assert_eq!(
        value(&scenario.transport.controller, "rate-timer"),
        "\"55us\""
    );
    let loaded = load(&scenario.workloads[0], 1).unwrap();
    let jobs = loaded.jobs.iter().map(|job| (job.variant, job.priority));
    assert_eq!(jobs.collect::<Vec<_>>(), [(1, Some(3)), (2, Some(2))]);
    let flows = load(&scenario.workloads[1], 3).unwrap().workload.flows;
    assert!(
        flows
            .iter()
            .all(|flow| (flow.variant, flow.priority) == (3, None))
    );
}

#[test]
fn they_survive_being_written_and_read() {
    let scenario = read(TEXT);
    assert_eq!(read(&scenario.resolved()), scenario);
    assert!(scenario.resolved().contains(
        "priority = [3, 2]\ntransport.g = 0.5\ntransport.rate-timer = [\"100us\", \"125us\"]\n"
    ));
    let other = read_with(TEXT, &["workload[1].transport.rate-timer=31us"]).unwrap();
    assert_eq!(value(&other.variants()[2], "rate-timer"), "\"31us\"");
    assert_ne!(other.hash(), scenario.hash());
    let settings = scenario.settings().into_iter();
    let own = settings.filter(|setting| setting.section == "workload[1].transport");
    let own: Vec<_> = own.map(|setting| (setting.key, setting.given)).collect();
    assert_eq!(own, [("rate-timer", true)]);
}

#[test]
fn another_kind_of_workload_keeps_them_and_another_transport_does_not() {
    let kept = read_with(TEXT, &["workload.kind=halving-doubling"]).unwrap();
    assert_eq!(kept.variants(), read(TEXT).variants());
    let dropped = read_with(TEXT, &["transport.kind=swift"]).unwrap();
    assert_eq!(dropped.variants(), []);
    assert!(dropped.workloads[0].flows.priority.is_some());
}

#[test]
fn what_cannot_be_meant_is_refused() {
    let section = |rest: &str| {
        format!(
            "[transport]\nkind = \"rocev2\"\n[[workload]]\nkind = \"ring-all-reduce\"\njobs = 2\n{rest}\n"
        )
    };
    let unknown = error(&section("transport.rate-tmer = \"1us\""), &[]);
    let start = "s.toml:6: the controller \"dcqcn\" has no key `rate-tmer`\n  fix: did you mean `rate-timer`?";
    assert!(unknown.starts_with(start), "{unknown}");
    assert_eq!(
        error(&section("transport.rate-timer = 5"), &[]),
        "s.toml:6: `workload.transport.rate-timer` cannot be 5\n  fix: expected a duration such as \"1us\" or \"250ns\"; a duration has a unit, one of s, ms, us, µs, ns, ps: write \"5us\" if that is meant"
    );
    assert_eq!(
        error(
            &section("transport = { g = [0.1, 0.2], rate-timer = [\"1us\"] }"),
            &[]
        ),
        "s.toml:4: 2 values of `transport.g`, but 1 of `transport.rate-timer`\n  fix: write one value for each job"
    );
    assert_eq!(
        error(&section("priority = 8"), &[]),
        "s.toml:6: `workload.priority` cannot be 8\n  fix: expected a priority from 1 to 7, or a list of one for each job, or \"auto\""
    );
    let three = read(&section("transport.g = [0.1, 0.2, 0.3]"));
    let error = load(&three.workloads[0], 1).unwrap_err();
    assert_eq!(error.message, "3 values under `transport` for 2 jobs");
    let flows = read("[[workload]]\nkind = \"incast\"\nsenders = 4\npriority = [1, 2]\n");
    let error = load(&flows.workloads[0], 1).unwrap_err();
    assert_eq!(
        error.message,
        "a list under `priority`, but the section has no jobs"
    );
}
