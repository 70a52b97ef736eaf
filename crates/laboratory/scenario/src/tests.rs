use super::*;
use crate::section::Section;
use crate::topology::TopologySettings;
use crate::{Experiment, builtin_scenarios};
use clearway_scaleup::injection::InjectionRegistry;
use clearway_transport::Registry;
use clearway_transport::Reliability;
use clearway_transport::congestion::ControllerSettings;
use clearway_units::{Bytes, ParameterInfo, ParameterSet, Rate, SetError, Span, Value};
use insta::assert_snapshot;
use std::fmt::Write as _;

fn read_with(text: &str, overrides: &[&str]) -> Result<Scenario, ScenarioError> {
    let overrides: Vec<String> = overrides.iter().map(ToString::to_string).collect();
    Scenario::read(&Registry::builtin(), "s.toml", text, None, &overrides)
}

fn read(text: &str) -> Scenario {
    read_with(text, &[]).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn usual_switches_beside_any_transport_survive_being_written_and_read() {
    let mut read_back = 0;
    for (transport, _) in TransportSettings::presets() {
        for (switch, _) in SwitchKind::KINDS {
            let kind = SwitchKind::named(switch).unwrap();
            for parameter in SwitchSettings::of_kind(kind).describe() {
                let (key, value) = (parameter.key, parameter.default);
                let text = format!(
                    "[transport]\nkind = \"{transport}\"\n[switch]\nkind = \"{switch}\"\n{key} = {value}\n"
                );
                // Some transports need lossless switches, or switches that trim.
                let Ok(scenario) = read_with(&text, &[]) else {
                    continue;
                };
                assert_eq!(read(&scenario.resolved()).switch, scenario.switch, "{text}");
                read_back += 1;
            }
        }
    }
    assert!(read_back > 200, "{read_back}");
}

/// The ns-3 simulator of 2016 pauses with an alpha of 16, which lossy switches do not have; the user's settings override the preset.
#[test]
fn dcqcn_2016_brings_its_switches() {
    let value = |switch: &str, key: &str| {
        let scenario = read(&format!(
            "[transport]\nkind = \"dcqcn-2016\"\n[switch]\n{switch}\n"
        ));
        let entries = scenario.switch.entries();
        let own = entries.iter().find(|(known, _)| *known == key);
        own.map(|(_, value)| value.to_string())
    };
    let shared = "kind = \"shared-buffer\"";
    assert_eq!(value(shared, "alpha").as_deref(), Some("16.0"));
    assert_eq!(value(shared, "ecn.kmin").as_deref(), Some("\"41.2KB\""));
    let own = format!("{shared}\nalpha = 0.125");
    assert_eq!(value(&own, "alpha").as_deref(), Some("0.125"));
    assert_eq!(value("kind = \"lossy\"", "alpha"), None);
}

#[test]
fn switches_are_by_default_those_of_the_transport() {
    let switch = |text: &str| {
        let switch = read(text).switch;
        let ports = &switch.ports;
        (
            switch.kind().name(),
            [ports.kmin, ports.kmax].map(|size| size.to_string()),
            ports.pmax,
        )
    };
    let of = |kind: &str, switch_keys: &str| {
        switch(&format!("[transport]\nkind = \"{kind}\"\n{switch_keys}"))
    };
    let sizes = |kmin: &str, kmax: &str| [kmin, kmax].map(String::from);
    let dcqcn = sizes("1us", "40us");
    assert_eq!(of("rocev2", ""), ("shared-buffer", dcqcn.clone(), 0.01));
    assert_eq!(of("strack", ""), ("lossy", sizes("25%bdp", "75%bdp"), 1.0));
    assert_eq!(of("dctcp", "").1, sizes("24us", "24us"));
    // Each key of the user overrides the preset separately.
    let own = "[switch]\nkind = \"lossy\"\necn.pmax = 0.2\n";
    assert_eq!(of("rocev2", own), ("lossy", dcqcn, 0.2));
    // 5 KB and 200 KB at 40 Gb/s, and ten times as much at 400 Gb/s.
    let ports = read("[transport]\nkind = \"rocev2\"\n").switch.ports;
    let at = |gbps| {
        let rate = Rate::from_gbps(gbps);
        [ports.kmin, ports.kmax].map(|size| size.resolve(rate, Bytes::ZERO).as_u64())
    };
    assert_eq!([at(40), at(400)], [[5000, 200_000], [50_000, 2_000_000]]);
}

#[test]
fn sources_of_switch_keys_are_those_of_the_preset() {
    let described = read("[transport]\nkind = \"rocev2\"\n").switch.describe();
    let kmin = described
        .iter()
        .find(|known| known.key == "ecn.kmin")
        .unwrap();
    assert_eq!(kmin.default.to_string(), "\"1us\"");
    assert!(kmin.source.starts_with("DCQCN"), "{}", kmin.source);
}

/// A preset may have other scopes and credits than the default. The default is then a choice that must be kept.
#[test]
fn usual_scopes_and_credits_beside_any_transport_survive_being_written_and_read() {
    let mut read_back = 0;
    for (transport, _) in TransportSettings::presets() {
        for key in ["credit.kind = \"none\"", "scope = \"queue-pair\""] {
            let text = format!("[transport]\nkind = \"{transport}\"\n{key}\n");
            let Ok(scenario) = read_with(&text, &[]) else {
                continue;
            };
            let again = read(&scenario.resolved());
            assert_eq!(again.transport, scenario.transport, "{text}");
            assert_eq!(again.hash(), scenario.hash(), "{text}");
            read_back += 1;
        }
    }
    assert!(read_back > 20, "{read_back}");
}

#[test]
fn every_builtin_scenario_survives_being_written_and_read() {
    let registries = (&Registry::builtin(), &InjectionRegistry::builtin());
    let read = |text: &str| {
        let scenario = Experiment::read(registries, "s.toml", text, None, &[]);
        scenario.unwrap_or_else(|error| panic!("{error}"))
    };
    for (name, text) in builtin_scenarios() {
        let scenario = read(text);
        assert_eq!(scenario.general().name, *name);
        let again = read(&scenario.resolved());
        assert_eq!(again, scenario, "{name}");
        assert_eq!(again.resolved(), scenario.resolved());
        assert_eq!(again.hash(), scenario.hash());
    }
}

#[test]
fn every_kind_survives_being_written_and_read() {
    for (topology, _) in topology::TopologyKind::KINDS {
        for (workload, _) in WorkloadSettings::KINDS {
            let text = format!(
                "[topology]\nkind = \"{topology}\"\nbit-error-rate = 1e-9\n[[workload]]\nkind = \"{workload}\"\n[[workload]]\nkind = \"incast\"\n"
            );
            let scenario = read(&text);
            assert_eq!(scenario.workloads.len(), 2);
            let again = read(&scenario.resolved());
            if *topology != "file" && *workload != "file" {
                assert_eq!(again, scenario, "{text}");
            }
        }
    }
}

#[test]
fn names_that_need_escapes_survive() {
    for name in ["a \"b\" \\ c", "tab\tand\nbreak", "\u{7f}", "ü 漢"] {
        let mut scenario = read("");
        scenario.general.name = name.into();
        assert_eq!(read(&scenario.resolved()).general.name, name);
    }
}

#[test]
fn hashes_tell_scenarios_apart() {
    let base = read("").hash();
    assert_eq!(read("seed = 1\n").hash(), base, "a default written out");
    for overrides in [
        "seed=2",
        "topology.hosts=64",
        "switch.ecn.pmax=0.5",
        "transport.alpha=4.5",
        "workload.message=1MB",
    ] {
        let other = read_with("", &[overrides]).unwrap();
        assert_ne!(other.hash(), base, "{overrides}");
    }
}

#[test]
fn a_changed_kind_drops_keys_that_it_does_not_know() {
    let text = "[topology]\nkind = \"leaf-spine\"\nhosts = 64\nhosts-per-leaf = 8\nbit-error-rate = 1e-9\n[[workload]]\nkind = \"permutation\"\nmessage = \"7MB\"\n";
    let scenario = read_with(text, &["topology.kind=fat-tree", "workload.kind=incast"]).unwrap();
    assert_eq!(scenario.topology.kind.name(), "fat-tree");
    // Keys of all kinds of topology stay.
    assert_eq!(scenario.topology.links.bit_error_rate, 1e-9);
    assert_eq!(scenario.workloads[0].kind(), "incast");
    assert_ne!(
        scenario.workloads[0],
        read(text).workloads[0],
        "another kind has its own defaults"
    );
    // The order of overrides does not matter.
    for overrides in [
        ["topology.kind=fat-tree", "topology.radix=4"],
        ["topology.radix=4", "topology.kind=fat-tree"],
    ] {
        let scenario = read_with(text, &overrides).unwrap();
        let radix = scenario.topology.entries().into_iter();
        let radix = radix.filter(|(key, _)| *key == "radix").map(|(_, v)| v);
        assert_eq!(radix.collect::<Vec<_>>(), [Value::Integer(4)]);
    }
    // A key of the old kind that an override gives is a mistake.
    assert!(read_with(text, &["topology.kind=fat-tree", "topology.spines=4"]).is_err());
}

#[test]
fn a_file_implies_its_kind() {
    assert_eq!(
        read("topology.file = \"x.topo\"\n").topology.kind.name(),
        "file"
    );
    let text = "[topology]\nkind = \"fat-tree\"\nradix = 4\n[[workload]]\nkind = \"permutation\"\nmessage = \"1MB\"\n";
    let overrides = ["topology.file=x.topo", "workload.file=x.cm"];
    let scenario = read_with(text, &overrides).unwrap();
    assert_eq!(scenario.topology.kind.name(), "file");
    assert_eq!(scenario.workloads[0].kind(), "file");
    // But it does not replace the kind that another override chooses, in any order.
    let mut overrides = ["workload.kind=gobble", "workload.file=x.cm"];
    for _ in 0..2 {
        let error = read_with(text, &overrides).unwrap_err();
        assert!(
            error.to_string().contains("there is no \"gobble\""),
            "{error}"
        );
        overrides.reverse();
    }
}

#[test]
fn the_last_override_of_a_key_counts() {
    let scenario = read_with("seed = 3\n", &["seed=4", "seed=5"]).unwrap();
    assert_eq!(scenario.general.seed, 5);
}

#[test]
fn overrides_reach_and_add_workload_sections() {
    let text = "[[workload]]\nkind = \"incast\"\n[[workload]]\nkind = \"permutation\"\n";
    let scenario = read_with(
        text,
        &["workload[1].message=3MB", "workload[2].kind=one-to-one"],
    )
    .unwrap();
    let kinds: Vec<_> = scenario.workloads.iter().map(|w| w.kind()).collect();
    assert_eq!(kinds, ["incast", "permutation", "one-to-one"]);
    let message = Value::Text("3MB".into());
    assert!(
        scenario.workloads[1]
            .entries()
            .contains(&("message", message))
    );
}

/// Sets every described parameter to its own default: descriptions, setters and values must agree.
fn set_to_defaults(
    name: &str,
    parameters: Vec<ParameterInfo>,
    set: &mut dyn FnMut(&str, &Value) -> Result<(), SetError>,
) {
    let mut keys = std::collections::BTreeSet::new();
    for parameter in parameters {
        let key = parameter.key;
        assert!(keys.insert(key), "{name} has two keys `{key}`");
        assert!(!parameter.meaning.is_empty(), "{name}.{key} has no meaning");
        assert!(!parameter.source.is_empty(), "{name}.{key} has no source");
        let is_choice = matches!(
            key,
            "kind" | "reliability" | "controller" | "spray" | "feedback"
        );
        if !is_choice {
            assert_eq!(
                set(key, &parameter.default),
                Ok(()),
                "{name}.{key} = {}",
                parameter.default
            );
        }
        let nonsense = Value::List(vec![Value::Boolean(true)]);
        if !is_choice {
            let refused = set(key, &nonsense);
            assert!(
                matches!(refused, Err(SetError::BadValue { .. })),
                "{name}.{key} takes {nonsense}"
            );
        }
    }
    assert_eq!(
        set("no-such-key", &Value::Integer(1)),
        Err(SetError::UnknownKey)
    );
}

#[test]
fn every_parameter_can_be_set_to_its_own_default() {
    let mut scenario = read("");
    set_to_defaults("scenario", General::describe(), &mut |key, value| {
        ParameterSet::set(&mut scenario.general, key, value)
    });
    for (kind, _) in SwitchKind::KINDS {
        let mut settings = SwitchKind::named(kind)
            .map(SwitchSettings::of_kind)
            .expect("listed");
        let before = settings.clone();
        set_to_defaults(kind, settings.describe(), &mut |key, value| {
            settings.set(key, value)
        });
        assert_eq!(settings, before);
        let text = format!("[switch]\nkind = \"{kind}\"\n");
        let again = read(&read(&text).resolved()).switch;
        assert_eq!((again.ports, again.buffer), (before.ports, before.buffer));
    }
    for (kind, _) in topology::TopologyKind::KINDS {
        let mut settings = TopologySettings {
            kind: topology::TopologyKind::named(kind).expect("it is listed"),
            ..TopologySettings::default()
        };
        let before = settings.clone();
        set_to_defaults(kind, settings.describe(), &mut |key, value| {
            settings.set(key, value)
        });
        assert_eq!(settings, before);
    }
    for (kind, _) in WorkloadSettings::KINDS {
        let text = format!("[[workload]]\nkind = \"{kind}\"\n");
        let mut settings = read(&text).workloads.remove(0);
        let before = settings.clone();
        set_to_defaults(kind, settings.describe(), &mut |key, value| {
            Section::set(&mut settings, key, value)
        });
        assert_eq!(settings, before);
    }
}

/// Every combination of parts: reliability, controller, path selector, feedback.
fn every_transport() -> Vec<String> {
    let registry = Registry::builtin();
    let mut all = Vec::new();
    for (reliability, _) in Reliability::ALL {
        for (controller, _) in registry.controllers() {
            for (spray, _) in registry.selectors() {
                for (feedback, _) in registry.feedback_rules() {
                    all.push(format!(
                        "[transport]\nreliability = \"{reliability}\"\ncontroller = \"{controller}\"\nspray = \"{spray}\"\nfeedback = \"{feedback}\"\n"
                    ));
                }
            }
        }
    }
    all
}

#[test]
fn every_part_of_a_transport_goes_with_every_other() {
    for text in every_transport() {
        let allocates = text.contains("s-perc") || text.contains("1rc");
        let mut transport = match read_with(&text, &[]) {
            Ok(scenario) => scenario.transport,
            // Control packets take the path of the data, and links drop the tail.
            Err(_) if allocates => continue,
            Err(error) => panic!("{text}: {error}"),
        };
        let before = transport.clone();
        set_to_defaults(&text, transport.describe(), &mut |key, value| {
            transport.set(key, value)
        });
        assert_eq!(transport, before);
        assert_eq!(read(&read(&text).resolved()).transport, before);
    }
}

#[test]
fn presets_choose_parts_that_keys_override() {
    let parts = |text: &str| {
        let transport = read(text).transport;
        [
            transport.kind,
            transport.reliability.name(),
            transport.controller.name(),
            transport.selector.name(),
            transport.feedback.name(),
        ]
        .join(" ")
    };
    assert_eq!(parts(""), "strack selective-repeat strack adaptive none");
    for (kind, rest) in [
        ("strack", "selective-repeat strack adaptive none"),
        ("rocev2", "go-back-n dcqcn single interval"),
        ("tmdml", "go-back-n dcqcn single progress"),
        ("dctcp", "go-back-n dctcp single none"),
        ("tcp", "go-back-n reno single none"),
        ("mltcp", "go-back-n reno single none"),
        ("hpcc", "go-back-n hpcc single none"),
        ("s-perc", "go-back-n s-perc single none"),
        ("1rc", "go-back-n 1rc single none"),
        ("swift", "go-back-n swift single none"),
        ("timely", "go-back-n timely single none"),
        ("irn", "selective-repeat constant single none"),
    ] {
        let text = format!("transport.kind = \"{kind}\"\n");
        assert_eq!(parts(&text), format!("{kind} {rest}"));
        let preset = TransportSettings::preset(&Registry::builtin(), kind);
        assert_eq!(preset, Some(read(&text).transport));
        assert_eq!(read(&read(&text).resolved()), read(&text));
    }
    let text = "[transport]\nkind = \"rocev2\"\ncontroller = \"dcqcn-timer\"\nfeedback = \"none\"\nqps = 4\nrto = \"2ms\"\n";
    assert_eq!(parts(text), "rocev2 go-back-n dcqcn-timer single none");
    let Reliability::GoBackN(own) = read(text).transport.reliability else {
        panic!("it is go-back-N");
    };
    assert_eq!((own.queue_pairs.get(), own.timeout), (4, Span::from_ms(2)));
}

/// Growth and base of the factor by phases, with defaults and sources as in `explain`.
#[test]
fn a_preset_may_have_settings_for_parts_and_yields_to_the_key() {
    let described = |text: &str| {
        let transport = read(text).transport;
        let parameters = transport.describe();
        let infos = ["phase-increase", "phase-base"].map(|key| {
            let mut parameters = parameters.iter();
            parameters.find(|info| info.key == key).expect("it has it")
        });
        let entries = transport.controller.entries();
        infos.map(|info| {
            let (_, value) = entries.iter().find(|(key, _)| *key == info.key).unwrap();
            [
                value.to_string(),
                info.default.to_string(),
                info.source.into(),
            ]
        })
    };
    let of = |value: &str, default: &str, source: &str| [value, default, source].map(String::from);
    let [increase, base] =
        ["the slope", "the intercept"].map(|of| format!("MLTCP (HotNets 2024): {of}"));
    for more in ["", "controller = \"dcqcn\"\n"] {
        let text = format!("[transport]\nkind = \"mltcp\"\n{more}");
        let expected = [of("1.75", "1.75", &increase), of("0.25", "0.25", &base)];
        assert_eq!(described(&text), expected);
    }
    let text = "[transport]\nkind = \"mltcp\"\nphase-base = 0.5\n";
    let expected = [of("1.75", "1.75", &increase), of("0.5", "0.25", &base)];
    assert_eq!(described(text), expected);
    let plain = described("[transport]\nkind = \"tcp\"\n");
    assert_eq!((&plain[0][0][..], &plain[1][0][..]), ("0.0", "1.0"));
    let irn = read("transport.kind = \"irn\"\n").transport.entries();
    let given = |key: &str, value: &str| {
        let mut entries = irn.iter();
        entries.any(|entry| entry.0 == key && entry.1.to_string() == value)
    };
    assert!(
        given("recovery", "\"irn\"") && given("rto-low", "\"100us\"") && given("rto", "\"320us\"")
    );
    // A controller without phases does not have these keys.
    let text = "[transport]\nkind = \"mltcp\"\ncontroller = \"dctcp\"\n";
    assert_eq!(read(&read(text).resolved()), read(text));
}

#[test]
fn a_short_timeout_is_that_of_a_flow() {
    let text = "[transport]\nkind = \"irn\"\nrto-per-packet = true\n";
    let error = read_with(text, &[]).unwrap_err().to_string();
    assert!(
        error.contains("with `rto-per-packet` each packet has its own"),
        "{error}"
    );
    assert!(error.contains("s.toml:3"), "{error}");
}

#[test]
fn a_preset_may_have_packets_of_its_own_and_yields_to_the_key() {
    let described = |text: &str| {
        let transport = read(text).transport;
        let parameters = transport.describe();
        let payload = parameters.into_iter().find(|info| info.key == "payload");
        let payload = payload.expect("every transport has it");
        let bytes = transport.packets.payload.as_u64();
        (bytes, payload.default.to_string(), payload.source)
    };
    let paper = "STrack §4.2: MTU of 4 KB";
    let rocev2 = described("transport.kind = \"rocev2\"\n");
    assert_eq!(rocev2, (4096, "\"4096B\"".into(), paper));
    let tmdml = described("transport.kind = \"tmdml\"\n");
    assert_eq!(tmdml, (1000, "\"1KB\"".into(), "the preset"));
    let text = "[transport]\nkind = \"tmdml\"\npayload = \"2000B\"\nbatch = 10\n";
    let transport = read(text).transport;
    assert_eq!(transport.packets.payload.as_u64(), 2000);
    let entries = transport.feedback.entries();
    assert!(entries.contains(&("batch", Value::Integer(10))));
    assert!(entries.iter().any(|(key, _)| *key == "cnp-interval"));
}

#[test]
fn another_kind_of_transport_starts_anew_but_for_packet_sizes() {
    let text = "[transport]\nspray = \"oblivious\"\nmax-cwnd = \"1bdp\"\npayload = \"1000B\"\n";
    let transport = read_with(text, &["transport.kind=rocev2"])
        .unwrap()
        .transport;
    assert_eq!(transport.selector.name(), "single");
    assert_eq!(transport.packets.payload.as_u64(), 1000);
    let overrides = ["transport.kind=rocev2", "transport.spray=adaptive"];
    let transport = read_with(text, &overrides).unwrap().transport;
    assert_eq!(transport.selector.name(), "adaptive");
}

#[test]
fn the_defaults_of_strack() {
    let strack = ControllerSettings::named("strack").expect("it is built in");
    let mut table = String::new();
    let described = [
        strack.describe(),
        clearway_transport::reliability::selective_repeat::SelectiveRepeatParameters::describe(),
        clearway_transport::paths::SelectorSettings::named("adaptive")
            .expect("it is built in")
            .describe(),
        clearway_fabric::SwitchParameters::describe(),
    ];
    for parameter in described.into_iter().flatten() {
        let _ = writeln!(
            table,
            "{} = {} ({})",
            parameter.key, parameter.default, parameter.source
        );
    }
    assert_snapshot!(table, @r#"
    target-qdelay = "auto" (STrack Table 1 and §4.2 (Q1))
    target-qhigh-factor = 3.0 (STrack Table 1 (Q5))
    ewma = 0.125 (STrack Table 1 (Q22))
    beta = 5.0 (STrack Table 1, Algorithm 4 line 7)
    eta = 0.15 (STrack Table 1, Algorithm 4 line 20)
    alpha = 4.0 (STrack Table 1, Algorithm 4 line 9)
    gamma = 0.8 (STrack Table 1, Algorithm 4 line 15)
    max-decrease = 0.5 (STrack Algorithm 4 line 15)
    md-requires-ecn = true (STrack §3, scenarios 3 and 4 (Q4))
    max-cwnd = "1.25bdp" (STrack §3: roughly the BDP (Q8))
    init-cwnd = "auto" (implied by the drops of the first round trip in STrack §4.2 (Q9))
    min-cwnd = "auto" (implied by one or two packets in flight in STrack §4.2 (Q10))
    quick-adapt-fraction = 8.0 (STrack Algorithm 4 line 11 (Q18))
    reference-rate = "100Gbps" (STrack Table 1, bdp_sf)
    reference-rtt = "12us" (STrack Table 1, bdp_sf and delay_sf (Q1))
    phase-increase = 0.0 (off; HotNets '22 §4 has R_AI x (1 + sent / communication phase), MLTCP 1.75)
    phase-base = 1.0 (HotNets '22 §4; MLTCP has 0.25)
    ack-bytes = "auto" (STrack §3.3.1, condition 1 (Q14))
    ack-in-order = true (STrack §3.3.1; UEC reference simulator: false (U14))
    ack-on-ecn = false (not in STrack; the UEC reference simulator does it (Q14))
    bitmap = "auto" (STrack §3.3.1: 256 bits in four segments)
    recovery = "strack" (STrack §3.3.2; UEC reference simulator: sleek without trimming, none with it)
    ooo-min = 5 (STrack §3.3.2: say 5)
    ooo-factor = 1.0 (STrack §3.3.2: the window's worth of packets (Q20))
    probe-after = 3.0 (STrack §3.3.2 and Algorithm 1 line 9)
    probe-rtt-limit = 2.0 (STrack Algorithm 1 line 10 (Q6))
    probe-class = "data" (decision: not in STrack, measured with its Figure 20)
    rto = "250us" (STrack §3.3.2: hundreds of microseconds)
    rto-low = "auto" (STrack has one timeout; IRN §3.1: RTO_low 100 us)
    rto-low-packets = 3 (IRN §3.1: N = 3)
    rto-rtts = 0.0 (UEC reference simulator: six times a full queue, which is one with trimming (U27))
    rto-per-packet = false (UEC reference simulator: true (U27))
    strict-window = false (STrack §3.3.2 and §4.2 (Q11))
    control-first = true (not in STrack; the UEC reference simulator does it)
    linger = "auto" (several lost acknowledgements in a row)
    max-paths = 256 (STrack §4.1 and Algorithm 3 line 1)
    min-paths = 8 (STrack Algorithm 3 line 18)
    dead-path = "off" (not in STrack, which marks paths alone; over UDP paths are avoided so)
    queue = "5bdp" (STrack §4.1: drops if queuing exceeds 5 BDP)
    ecn.enabled = true (STrack §4.1)
    ecn.kmin = "25%bdp" (STrack §4.1: 25% BDP)
    ecn.kmax = "75%bdp" (STrack §4.1: 75% BDP)
    ecn.pmax = 1.0 (decision Q12: STrack does not say; the UEC reference simulator marks linearly up to 1)
    ecn.classes = [] (decision: the same for all)
    ecn.mark = "dequeue" (STrack §2.2.2: marking at egress, when a packet exits a queue)
    ecn.last-hop = true (STrack §4.1; UEC with receiver credits: false (U9))
    routing = "ecmp" (STrack §2.1: ECMP)
    control-priority = true (decision: acknowledgements and probes in a strict-priority queue)
    strict-priority = false (decision: one priority, as in all papers but HotNets '22 §4)
    trimming = false (decision: off, as in STrack; UEC reference simulator: on)
    trim-size = "64B" (UEC reference simulator: 64 B)
    trim-victim = "random" (UEC reference simulator: either, with a chance of a half (U15))
    telemetry = "exact" (decision: what HPCC would do with exact figures)
    adaptive.levels = [] (decision (U21); UEC reference simulator: 0.05, 0.1, 0.2)
    adaptive.refresh = "0s" (decision (U21); UEC reference simulator: 100 ns)
    adaptive.hash-below = "100B" (UEC reference simulator: 100 B)
    adaptive.flowlet-gap = "10us" (UEC reference simulator: 10 us)
    "#);
}

/// A linear search for each key over lines, keys or sections would take minutes.
#[test]
fn twenty_thousand_sections_are_read() {
    const COUNT: usize = 20_000;
    let section = |number: usize| {
        let from = number % 15 + 1;
        format!("[[workload]]\nkind = \"one-to-one\"\nfrom = {from}\n")
    };
    let text: String = (0..COUNT).map(section).collect();
    let scenario = read(&text);
    assert_eq!(scenario.workloads.len(), COUNT);
    let place = |index, key| scenario.places().of_keys("workload", index, &[key]);
    assert_eq!(place(0, "from").to_string(), "s.toml:3");
    assert_eq!(place(COUNT - 1, "kind").to_string(), "s.toml:59999");
    assert_eq!(place(COUNT - 1, "to").to_string(), "s.toml:59999");
    assert_eq!(place(COUNT, "from").to_string(), "s.toml");
    let settings = scenario.settings();
    let given = settings.iter().filter(|setting| setting.given);
    assert_eq!(given.count(), 2 * COUNT);
    let error = read_with(&format!("{text}[[workload]]\nkidn = \"incast\"\n"), &[]);
    assert_eq!(
        error.unwrap_err().place.unwrap().to_string(),
        "s.toml:60002"
    );
    let error = read_with(&text, &["workload[20001].from=1"]).unwrap_err();
    assert!(
        error.to_string().contains("the scenario has 20000"),
        "{error}"
    );
}

#[test]
fn windows_have_bytes() {
    for (kind, key) in [
        ("strack", "init-cwnd"),
        ("irn", "window"),
        ("tcp", "max-window"),
    ] {
        for zero in ["0B", "0%bdp", "0us"] {
            let text = format!("[transport]\nkind = \"{kind}\"\n{key} = \"{zero}\"\n");
            let error = read_with(&text, &[]).unwrap_err().to_string();
            assert!(error.contains("sends nothing"), "{key} {zero}: {error}");
        }
        let text = format!("[transport]\nkind = \"{kind}\"\n{key} = \"1B\"\n");
        assert!(read_with(&text, &[]).is_ok(), "{key}");
    }
    // Values that are not sizes are not checked.
    assert!(read_with("[transport]\nkind = \"rocev2\"\nwindow = \"fixed\"\n", &[]).is_ok());
}
