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
        dimensions: &[],
        host_numbers: None,
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
    let timers = scenario.variants_of(0);
    let timers: Vec<String> = timers.iter().map(|v| value(v, "rate-timer")).collect();
    assert_eq!(timers, ["\"100us\"", "\"125us\"", "\"30us\""]);
    assert_eq!(value(&scenario.variants_of(0)[1], "g"), "0.5");
    assert_eq!(value(&scenario.variants_of(0)[2], "g"), "0.00390625");
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
    assert_eq!(value(&other.variants_of(0)[2], "rate-timer"), "\"31us\"");
    assert_ne!(other.hash(), scenario.hash());
    let settings = scenario.settings().into_iter();
    let own = settings.filter(|setting| setting.section == "workload[1].transport");
    let own: Vec<_> = own.map(|setting| (setting.key, setting.given)).collect();
    assert_eq!(own, [("rate-timer", true)]);
}

#[test]
fn another_kind_of_workload_keeps_them_and_another_transport_does_not() {
    let kept = read_with(TEXT, &["workload.kind=halving-doubling"]).unwrap();
    assert_eq!(kept.variants_of(0), read(TEXT).variants_of(0));
    let dropped = read_with(TEXT, &["transport.kind=swift"]).unwrap();
    assert_eq!(dropped.variants_of(0), []);
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

/// Two tenants; the second has a separate transport.
const TENANTS: &str = "[transport]\nkind = \"rocev2\"\nqps = 2\npayload = \"1000B\"\n[[workload]]\nkind = \"incast\"\nsenders = 4\n\
    [[workload]]\nname = \"training\"\nkind = \"permutation\"\ntransport = { kind = \"strack\", spray = \"oblivious\", max-cwnd = \"2bdp\" }\n";

#[test]
fn a_section_has_a_transport_of_its_own() {
    let scenario = read(TENANTS);
    let transports = scenario.transports();
    assert!(transports.are_several());
    assert_eq!(transports.of_section, [0, 1]);
    assert_eq!(
        transports.names(&scenario.section_names()),
        ["rocev2", "strack"]
    );
    let own = scenario.workloads[1].transport().unwrap();
    assert_eq!((own.kind, own.selector.name()), ("strack", "oblivious"));
    // Nothing of `[transport]`.
    assert_eq!(own.packets.payload.as_u64(), 4096);
    assert_eq!(value(&own.controller, "max-cwnd"), "\"2bdp\"");
    assert_eq!(scenario.variants_of(0), []);
    assert_eq!(scenario.variants_of(1), []);
    let settings = scenario.settings().into_iter();
    let given = settings.filter(|s| s.section == "workload[1].transport" && s.given);
    let given: Vec<_> = given.map(|setting| setting.key).collect();
    assert_eq!(given, ["kind", "spray", "max-cwnd"]);
}

#[test]
fn a_transport_of_a_section_survives_being_written_and_read() {
    let scenario = read(TENANTS);
    let resolved = scenario.resolved();
    assert!(
        resolved.contains("transport.kind = \"strack\"\ntransport.reliability = "),
        "{resolved}"
    );
    assert_eq!(read(&resolved), scenario);
    assert_eq!(read(&resolved).hash(), scenario.hash());
}

#[test]
fn without_a_kind_it_is_the_usual_transport_with_changes() {
    let changed = read_with(TENANTS, &["workload.transport.ack-interval=7"]).unwrap();
    let own = changed.workloads[0].transport().unwrap();
    assert_eq!((own.kind, own.packets.payload.as_u64()), ("rocev2", 1000));
    let entries = own.entries();
    let value_of = |key: &str| entries.iter().find(|(known, _)| *known == key).unwrap();
    assert_eq!(value_of("qps").1, Value::Integer(2));
    assert_eq!(value_of("ack-interval").1, Value::Integer(7));
    // Selective repeat has no queue pairs.
    let selective = ["workload.transport.reliability=selective-repeat"];
    let changed = read_with(TENANTS, &selective).unwrap();
    let own = changed.workloads[0].transport().unwrap();
    assert_eq!(own.reliability.name(), "selective-repeat");
    // Equal settings share a transport.
    let same = read_with(
        TENANTS,
        &["workload[1].transport={kind=\"rocev2\",qps=2,payload=\"1000B\"}"],
    );
    let same = same.unwrap();
    assert_eq!(same.transports().of_section, [0, 0]);
    assert!(!same.transports().are_several());
}

#[test]
fn another_kind_of_own_transport_starts_anew() {
    let swift = read_with(TENANTS, &["workload[1].transport.kind=swift"]).unwrap();
    let own = swift.workloads[1].transport().unwrap();
    assert_eq!((own.kind, own.selector.name()), ("swift", "single"));
    let sized = [
        "workload[1].transport.payload=1KB",
        "workload[1].transport.kind=swift",
    ];
    let own = read_with(TENANTS, &sized).unwrap().workloads[1].clone();
    let own = own.transport().unwrap();
    assert_eq!((own.kind, own.packets.payload.as_u64()), ("swift", 1000));
    let other = read_with(TENANTS, &["transport.kind=dctcp"]).unwrap();
    assert_eq!(other.workloads[1], read(TENANTS).workloads[1]);
}

#[test]
fn jobs_have_settings_of_their_own_transport_in_lists() {
    let text = "[[workload]]\nkind = \"ring-all-reduce\"\njobs = 2\nranks = 2\ntransport = { kind = \"rocev2\", g = [0.5, 0.25] }\n\
        [[workload]]\nkind = \"one-to-one\"\ntransport = { kind = \"rocev2\" }\n[[workload]]\nkind = \"one-to-one\"\n";
    let scenario = read(text);
    assert_eq!(scenario.transports().of_section, [1, 1, 0]);
    let variants = scenario.variants_of(1);
    let values: Vec<_> = variants.iter().map(|own| value(own, "g")).collect();
    assert_eq!(values, ["0.5", "0.25"]);
    assert_eq!(read(&scenario.resolved()), scenario);
    // Two transports from one preset have the names of their sections.
    let two = read_with(
        text,
        &[
            "workload[2].transport.kind=strack",
            "workload[2].transport.payload=1KB",
        ],
    );
    let two = two.unwrap();
    assert_eq!(two.transports().of_section, [1, 1, 2]);
    let names = two.transports().names(&two.section_names());
    assert_eq!(names, ["strack", "rocev2", "strack (one-to-one [2])"]);
}

#[test]
fn transports_that_cannot_be_meant_are_refused() {
    let text = |own: &str| format!("[[workload]]\nkind = \"incast\"\nsenders = 4\n{own}\n");
    let of = |own: &str| error(&text(own), &[]);
    assert!(
        of("transport.kind = \"rocev3\"").starts_with(
            "s.toml:4: `workload.transport.kind`: there is no \"rocev3\"\n  fix: did you mean `rocev2`?"
        ),
        "{}",
        of("transport.kind = \"rocev3\"")
    );
    let unknown = of("transport = { kind = \"strack\", qps = 2 }");
    assert!(
        unknown.ends_with("fix: `qps` is a key of `transport.reliability = \"go-back-n\"`: choose that, or leave the key out"),
        "{unknown}"
    );
    assert_eq!(
        of("transport.kind = \"s-perc\""),
        "s.toml:4: `workload[0].transport`: `transport.controller` = \"s-perc\" goes with no other transport: links allocate all of their capacity to its flows\n  fix: give all sections of the workload this transport, by `[transport]`, or use another one here"
    );
    let usual = error(
        &text("transport.kind = \"strack\""),
        &["transport.kind=1rc"],
    );
    assert!(
        usual.contains("`transport.controller` = \"1rc\" goes with no other"),
        "{usual}"
    );
    let timer = of("transport = { kind = \"strack\", rto = \"3000000s\" }");
    assert!(
        timer.starts_with("s.toml:4: `workload[0].transport`: `transport.rto`"),
        "{timer}"
    );
    let trimming = error(
        &text("transport.kind = \"rocev2\""),
        &["transport.kind=uet"],
    );
    assert!(
        trimming.starts_with("s.toml:4: `workload[0].transport`: `switch.trimming` = true needs"),
        "{trimming}"
    );
    let many: String = (1..=16)
        .map(|n| text(&format!("transport.ack-size = \"{n}B\"")))
        .collect();
    assert_eq!(
        error(&many, &[]),
        "s.toml:62: 17 transports in one run\n  fix: use at most 16: each host has an endpoint of each"
    );
}
