use super::*;
use crate::generate::sample::{NIC_RATES, context};
use clearway_units::{Bytes, Rate};
use clearway_workload::{FlowSpec, MergedArrivals, PublishedSizes, Start};
use insta::assert_snapshot;
use std::collections::BTreeMap;

fn settings(sizes: &str, load: f64, duration: Span) -> PoissonSettings {
    PoissonSettings {
        sizes: SizeSource::Published(PublishedSizes::named(sizes).unwrap()),
        load,
        duration,
        ..PoissonSettings::default()
    }
}

fn flows(settings: &PoissonSettings, context: &BuildContext<'_>) -> Vec<FlowSpec> {
    settings.load(context).unwrap().workload.flows
}

fn start(flow: &FlowSpec) -> Time {
    match flow.start {
        Start::At(time) => time,
        Start::On(_) | Start::Posted(_) => unreachable!("an arrival waits for nothing"),
    }
}

/// Starts and sizes of the flows of each host.
fn of_hosts(flows: &[FlowSpec]) -> BTreeMap<HostId, Vec<(Time, Bytes)>> {
    let mut of_hosts: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for flow in flows {
        of_hosts
            .entry(flow.src)
            .or_default()
            .push((start(flow), flow.bytes));
    }
    of_hosts
}

/// 320 hosts x 100 Gb/s x 50 % / 8 x 2 ms / 120420.75 B are 33217 flows; the standard deviation is the root of this number.
#[test]
fn hosts_offer_their_load() {
    let flows = flows(&settings("hadoop", 0.5, Span::from_ms(2)), &context(320));
    assert!(flows.len().abs_diff(33_217) < 4 * 182, "{}", flows.len());
    for (sizes, load) in [("websearch", 0.25), ("ali-storage", 1.0)] {
        let settings = settings(sizes, load, Span::from_ms(5));
        let offered: f64 = self::flows(&settings, &context(320))
            .iter()
            .map(|flow| flow.bytes.as_f64())
            .sum();
        let expected = 320.0 * 12.5e9 * load * 5e-3;
        // Standard errors are 3.1 % and 0.8 %.
        assert!(
            (offered / expected - 1.0).abs() < 0.09,
            "{sizes}: {offered}"
        );
    }
}

#[test]
fn starts_rise_and_ends_differ() {
    let settings = PoissonSettings {
        start: Time::from_us(7),
        ..settings("hadoop", 0.3, Span::from_ms(1))
    };
    let flows = flows(&settings, &context(100));
    assert!(flows.len() > 2500);
    assert!(flows.is_sorted_by_key(start));
    let window = Time::from_us(7)..Time::from_us(1007);
    let mut received = [0u32; 100];
    for (label, flow) in (1..).zip(&flows) {
        assert!(window.contains(&start(flow)) && flow.src != flow.dst);
        assert_eq!(flow.label, label);
        received[flow.dst.index()] += 1;
    }
    let expected = flows.len() as f64 / 100.0;
    let chi_square: f64 = received
        .iter()
        .map(|&count| (f64::from(count) - expected) * (f64::from(count) - expected) / expected)
        .sum();
    // 99 degrees of freedom: 148.2 is exceeded once in a thousand.
    assert!(chi_square < 148.2, "{chi_square} {received:?}");
}

#[test]
fn every_pair_of_hosts_occurs() {
    let flows = flows(&settings("hadoop", 1.0, Span::from_ms(5)), &context(3));
    let mut pairs: Vec<_> = flows.iter().map(|flow| (flow.src.0, flow.dst.0)).collect();
    pairs.sort_unstable();
    pairs.dedup();
    assert_eq!(pairs, [(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1)]);
}

/// The gaps of one host are exponential: 39.3 % are below half the mean, 63.2 % below the mean, 86.5 % below twice the mean.
#[test]
fn gaps_are_exponential() {
    let flows = flows(&settings("hadoop", 1.0, Span::from_ms(300)), &context(2));
    let mean = 120_420.75 * 80.0;
    for starts in of_hosts(&flows).values() {
        let gaps: Vec<f64> = starts
            .windows(2)
            .map(|pair| (pair[1].0 - pair[0].0).as_ps() as f64)
            .collect();
        assert!(gaps.len() > 30_000);
        for (times, probability) in [(0.5, 0.3935), (1.0, 0.6321), (2.0, 0.8647)] {
            let below = gaps.iter().filter(|&&gap| gap <= times * mean).count();
            let share = below as f64 / gaps.len() as f64;
            assert!((share - probability).abs() < 0.011, "{times}: {share}");
        }
    }
}

#[test]
fn more_time_and_more_hosts_change_nothing_before() {
    let short = settings("websearch", 0.5, Span::from_ms(1));
    let long = settings("websearch", 0.5, Span::from_ms(3));
    let before = flows(&short, &context(50));
    let after = flows(&long, &context(50));
    assert_eq!(before[..], after[..before.len()]);
    assert!(start(&after[before.len()]) >= Time::from_us(1000));
    let more = of_hosts(&flows(&short, &context(80)));
    for (host, own) in of_hosts(&before) {
        assert_eq!(more[&host], own);
    }
    let some = PoissonSettings {
        hosts: Some(50),
        ..short.clone()
    };
    assert_eq!(flows(&some, &context(80)), before);
    let elsewhere = BuildContext {
        section: 1,
        taken: BuildContext::ALL_FREE,
        ..context(50)
    };
    assert_ne!(flows(&short, &elsewhere), before);
}

#[test]
fn each_host_offers_what_its_own_nic_carries() {
    let mut rates = NIC_RATES;
    rates[3] = Rate::from_gbps(400);
    let context = BuildContext {
        nic_rates: &rates,
        gpus_per_node: 1,
        dimensions: &[],
        host_numbers: None,
        ..context(8)
    };
    let flows = flows(&settings("hadoop", 0.5, Span::from_ms(20)), &context);
    // 1038 flows are expected of 100 Gb/s, 4152 of 400 Gb/s.
    for (host, own) in of_hosts(&flows) {
        let expected = if host.0 == 3 { 4152 } else { 1038 };
        let deviation = 4 * (expected as f64).sqrt() as usize;
        assert!(
            own.len().abs_diff(expected) < deviation,
            "{host}: {}",
            own.len()
        );
    }
}

#[test]
fn flows_come_one_by_one() {
    // 49 million flows in all; the iterator makes only the flows that are taken.
    let settings = PoissonSettings {
        hosts: Some(4),
        ..settings("ali-storage", 1.0, Span::from_ms(40_000))
    };
    let arrivals = settings.arrivals(&context(4)).unwrap().unwrap();
    let shorter = PoissonSettings {
        duration: Span::from_ms(1),
        ..settings
    };
    let collected = flows(&shorter, &context(4));
    assert!(arrivals.take(collected.len()).eq(collected));
}

#[test]
fn merged_arrivals_are_a_merged_workload() {
    let section = |section, sizes, load| {
        let context = BuildContext {
            section,
            taken: BuildContext::ALL_FREE,
            ..context(6)
        };
        let settings = settings(sizes, load, Span::from_ms(3));
        let arrivals = settings.arrivals(&context).unwrap().unwrap();
        (arrivals, settings.load(&context).unwrap().workload)
    };
    // The first two sections are equal, so all of their starts are equal.
    let sections = [
        section(0, "hadoop", 0.3),
        section(0, "hadoop", 0.3),
        section(1, "websearch", 0.5),
    ];
    let (arrivals, mut workloads): (Vec<_>, Vec<Workload>) = sections.into_iter().unzip();
    for (number, workload) in (0..).zip(&mut workloads) {
        let flows = workload.flows.iter_mut();
        flows.for_each(|flow| flow.section = number);
    }
    let merged = Workload::merge(workloads).unwrap();
    assert!(merged.flows.len() > 300);
    assert!(MergedArrivals::new(arrivals).eq(merged.flows));
    assert_eq!(MergedArrivals::new([]).next(), None);
}

#[test]
fn faults_of_settings() {
    let error =
        |settings: PoissonSettings, hosts| settings.load(&context(hosts)).unwrap_err().to_string();
    let standard = || settings("hadoop", 0.5, Span::from_ms(1));
    let with_load = |load| error(PoissonSettings { load, ..standard() }, 8);
    assert_snapshot!(with_load(0.0), @"
    `load` of the poisson workload: a load of 0
      fix: write a share of the rate of a NIC above 0 and at most 1, as in 0.5
    ");
    assert_snapshot!(with_load(1.01), @"
    `load` of the poisson workload: a load of 1.01
      fix: write a share of the rate of a NIC above 0 and at most 1, as in 0.5
    ");
    assert_snapshot!(with_load(f64::NAN), @"
    `load` of the poisson workload: a load of NaN
      fix: write a share of the rate of a NIC above 0 and at most 1, as in 0.5
    ");
    assert_snapshot!(error(standard(), 1), @"
    `hosts` of the poisson workload: a single host has nobody to send to
      fix: take 2 hosts or more
    ");
    assert_snapshot!(error(PoissonSettings { hosts: Some(9), ..standard() }, 8), @r#"
    `hosts` of the poisson workload: 9 hosts, but the topology has 8
      fix: write a number up to 8, or "auto"
    "#);
    assert_snapshot!(error(settings("hadoop", 1e-9, Span::from_ms(1)), 8), @"
    `duration` of the poisson workload: no flow happens to start within 1ms
      fix: choose a longer duration, a higher `load` or another seed
    ");
    assert_snapshot!(error(settings("hadoop", 0.5, Span::ZERO), 8), @"
    `duration` of the poisson workload: no flow happens to start within 0s
      fix: choose a longer duration, a higher `load` or another seed
    ");
    assert_snapshot!(error(settings("hadoop", 0.5, Span::from_ms(200_000)), 8), @"
    `duration` of the poisson workload: 8 hosts at a load of 0.5 make about 83 million flows in 200s
      fix: choose a duration of at most 120s, or a lower load: 50 million flows are the most
    ");
    let late = PoissonSettings {
        start: Time::from_ps(1 << 63),
        duration: Span::from_ps(1 << 63),
        ..standard()
    };
    assert_snapshot!(error(late, 8), @"
    `duration` of the poisson workload: 9223372.036854775808s after 9223372.036854775808s is beyond the longest run
      fix: choose a shorter duration
    ");
    let with_sizes = |name: &str| {
        let sizes = SizeSource::File(name.into());
        error(
            PoissonSettings {
                sizes,
                ..standard()
            },
            8,
        )
    };
    assert_snapshot!(with_sizes("hadop"), @"
    `sizes` of the poisson workload: `hadop` is neither a published distribution nor a file
      fix: did you mean `hadoop`? Name a file that exists, or use `hadoop`, `websearch` or `ali-storage`
    ");
    assert_snapshot!(with_sizes(""), @"
    `sizes` of the poisson workload: `` is neither a published distribution nor a file
      fix: name a file that exists, or use `hadoop`, `websearch` or `ali-storage`
    ");
    assert_snapshot!(with_sizes("no/such/sizes.txt"), @"
    `sizes` of the poisson workload: `no/such/sizes.txt` is neither a published distribution nor a file
      fix: name a file that exists, or use `hadoop`, `websearch` or `ali-storage`
    ");
}
