//! The summary of a run for the terminal.

mod fast_forward;
mod jobs;
mod labels;
mod operations;
mod sections;
mod transports;

use crate::table::{Align, Table};
use clearway_report::Distribution;
use clearway_report::attack_sides::{HEADINGS, NOTE};
use clearway_report::by_size::Tail;
use clearway_report::quantity::{bytes, count, factor, microseconds, percent, prefixed, seconds};
use clearway_report::summary::{StatusName, Summary};
use clearway_results::{PacketCounts, ShowCondition, TotalUnit};
use fast_forward::fast_forward;
use jobs::jobs;
use labels::{label, labelled};
use sections::sections;
use transports::transports;

/// A plain-text table of `summary`, at most 80 characters wide unless a name, or the numbers of a job, need more.
///
/// It shows the scenario, the number of completed flows, the times of jobs and flows compared with an idle network, the packet counts, and
/// the cost of the simulation. For a scale-up run, which has no flows, it shows the times of operations.
pub fn summary_table(summary: &Summary) -> String {
    let if_flows = |part: fn(&Summary) -> String| match summary.is_of_flows() {
        true => part(summary),
        false => String::new(),
    };
    let parts = [
        outcome(summary),
        operations::latency(summary),
        operations::fabric(summary),
        jobs(summary),
        fast_forward(summary),
        if_flows(completion_times),
        slowdown_by_class(summary),
        sections(summary),
        transports(summary),
        parties(summary),
        if_flows(packets),
        cost(summary),
    ];
    let parts = parts.iter().map(|part| part.trim_end());
    let parts: Vec<String> = parts
        .filter(|part| !part.is_empty())
        .map(|part| format!("{part}\n"))
        .collect();
    parts.join("\n")
}

fn outcome(summary: &Summary) -> String {
    let mut table = labelled();
    let scenario = &summary.scenario;
    let name = format!(
        "{} (seed {}, hash {})",
        scenario.name, scenario.seed, scenario.hash
    );
    table.row([label("Scenario"), name]);
    let reason = summary.status_reason.as_deref();
    match summary.status {
        StatusName::Complete => {}
        StatusName::Incomplete => {
            let text = format!("INCOMPLETE: {}", reason.unwrap_or("a limit was reached"));
            table.row([label("Status"), text]);
        }
        StatusName::Interrupted => {
            let text = "INTERRUPTED: the figures cover what was simulated until then";
            table.row([label("Status"), text.to_owned()]);
        }
    }
    if let Some(operations) = &summary.operations {
        let text = operations::completed(operations, summary.simulated_us);
        table.row([label("Completed"), text]);
    }
    if summary.is_of_flows() {
        table.row([label("Flows"), flows_completed(summary)]);
    }
    table.to_string()
}

fn flows_completed(summary: &Summary) -> String {
    let flows = summary.flows;
    let mut text = format!(
        "{} of {} completed in {} of simulated time",
        count(flows.completed),
        count(flows.total),
        microseconds(summary.simulated_us)
    );
    if flows.started < flows.total {
        text += &format!("; {} never started", count(flows.total - flows.started));
    }
    text
}

fn completion_times(summary: &Summary) -> String {
    let Some(fct) = summary.fct_us else {
        return match summary.flows.completed {
            0 => format!("{}  no flow completed\n", label("FCT")),
            // All flows are connections of jobs.
            _ => String::new(),
        };
    };
    let mut table = Table::new().column("", Align::Left);
    for header in ["min", "mean", "p50", "p99", "p99.9", "max"] {
        table = table.column(header, Align::Right);
    }
    let mut row = |name, distribution: Option<Distribution>, print: fn(f64) -> String| {
        let Some(Distribution {
            min,
            mean,
            p50,
            p99,
            p999,
            max,
        }) = distribution
        else {
            return;
        };
        let cells = [min, mean, p50, p99, p999, max].map(print);
        table.row([label(name)].into_iter().chain(cells));
    };
    row("FCT", Some(fct), microseconds);
    row("Ideal FCT", summary.ideal_fct_us, microseconds);
    row("Slowdown", summary.slowdown, factor);
    format!(
        "{table}\nFCT: flow completion time, from ready to send to last byte acknowledged.\n\
         Ideal: the same flow alone on an idle network. Slowdown: FCT / ideal FCT.\n"
    )
}

/// Slowdown by size, if the flows belong to several classes.
fn slowdown_by_class(summary: &Summary) -> String {
    let classes = &summary.slowdown_by_class;
    if classes.len() < 2 {
        return String::new();
    }
    let mut table = Table::new()
        .column("Slowdown by size", Align::Left)
        .column("flows", Align::Right);
    for header in ["p50", "p95", "p99", "p99.9", "max"] {
        table = table.column(header, Align::Right);
    }
    for class in classes {
        let Tail {
            p50,
            p95,
            p99,
            p999,
            max,
            ..
        } = class.slowdown;
        let cells = [p50, p95, p99, p999, max].map(factor);
        let first = [class.name(), count(class.flows)];
        table.row(first.into_iter().chain(cells));
    }
    table.to_string()
}

/// Both sides of an attack.
fn parties(summary: &Summary) -> String {
    let Some(parties) = &summary.parties else {
        return String::new();
    };
    let mut table = Table::new().column("Side", Align::Left);
    for heading in HEADINGS {
        table = table.column(heading, Align::Right);
    }
    parties.rows().into_iter().for_each(|row| table.row(row));
    let fairness = parties.fairness_sentence();
    let fairness = fairness.map_or(String::new(), |sentence| sentence + "\n");
    format!("{table}\n{NOTE}\n{fairness}")
}

fn packets(summary: &Summary) -> String {
    let packets = &summary.packets;
    let mut lines = Vec::new();
    for total in PacketCounts::TOTALS {
        let number = (total.of)(packets);
        let mut text = total.phrase.to_owned();
        match total.shown {
            ShowCondition::Never => continue,
            ShowCondition::IfAny if number == 0 => continue,
            ShowCondition::IfAny | ShowCondition::Always => {}
        }
        if total.part_of_sent {
            text += &format!(" ({} of sent)", percent(number, packets.data_sent));
        }
        if total.unit == TotalUnit::Frames {
            text += &format!(", of {} links", summary.paused_links);
        }
        lines.push((number, text));
    }

    let mut table = Table::new()
        .column("", Align::Left)
        .column("", Align::Right)
        .column("", Align::Left);
    for (place, (number, text)) in lines.into_iter().enumerate() {
        let name = if place == 0 { "Packets" } else { "" };
        table.row([label(name), count(number), text]);
    }
    table.to_string()
}

fn cost(summary: &Summary) -> String {
    let mut table = labelled();
    let (hops, unit) = match &summary.operations {
        Some(operations) => (operations.figures.fabric.flit_hops, "flit-hops"),
        None => (summary.packet_hops, "packet-hops"),
    };
    let speed = match summary.cpu_seconds {
        cpu if cpu > 0.0 => format!("{} {unit} per CPU second", prefixed(hops as f64 / cpu)),
        _ if summary.is_cpu_unknown() => {
            let speed = prefixed(hops as f64 / summary.wall_seconds);
            format!("{speed} {unit} per second of wall time")
        }
        _ => "too short a run to measure".to_owned(),
    };
    table.row([label("Speed"), speed]);
    let threads = match summary.threads {
        1 => "1 thread".to_owned(),
        threads => format!("{} threads", count(threads.into())),
    };
    let wall = seconds(summary.wall_seconds);
    let time = match summary.is_cpu_unknown() {
        true => format!("{wall} wall on {threads}"),
        false => format!(
            "{wall} wall, {} CPU on {threads}",
            seconds(summary.cpu_seconds)
        ),
    };
    table.row([label("Time"), time]);
    if summary.peak_rss_bytes > 0 {
        let peak = bytes(summary.peak_rss_bytes) + " at the peak";
        table.row([label("Memory"), peak]);
    }
    table.row([label("Digest"), summary.digest.clone()]);
    let version = format!("{} (revision {})", summary.version, summary.revision);
    table.row([label("Version"), version]);
    table.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{incomplete_run, run, scale_up_run};
    use clearway_report::RunRecord;
    use clearway_report::Status;
    use clearway_units::Span;

    fn print(record: &RunRecord) -> String {
        summary_table(&Summary::from_record(record))
    }

    #[test]
    fn sides_of_an_attack() {
        let mut record = run();
        for piece in 0..2 {
            record.flows[piece].src = 7;
            record.flows[piece].attack = Some(1000);
        }
        let text = print(&record);
        let from = text.find("Side ").unwrap();
        let to = text.find("Packets ").unwrap();
        insta::assert_snapshot!(&text[from..to], @"
        Side       users  messages  completed  flows  goodput of a user   p99 FCT  p99 slowdown
        ---------  -----  --------  ---------  -----  -----------------  --------  ------------
        attackers      1         1          1      2         627 Gbit/s  51.00 us             -
        victims        2         2          2      2         212 Gbit/s  97.76 us        2.000x

        A message of an attacker may be made of several flows; slowdown is of messages in one flow.
        Jain's index over the goodputs of users: 0.755.
        ");
    }

    #[test]
    fn sections_of_a_mix() {
        let mut record = incomplete_run();
        for flow in &mut record.flows[2..5] {
            flow.section = 1;
        }
        record.flows[0].bytes = 800;
        let text = print(&record);
        let from = text.find("FCT by section").unwrap();
        let to = text.find("Packets ").unwrap();
        insta::assert_snapshot!(&text[from..to], @"
        FCT by section  flows  completed       p50       p99     p99.9     goodput
        --------------  -----  ---------  --------  --------  --------  ----------
        permutation         3          2  48.88 us  50.00 us  50.00 us  314 Gbit/s
        burst               3          2  61.23 us  97.76 us  97.76 us  327 Gbit/s

        Slowdown by section  flows     p50     p99   p99.9
        -------------------  -----  ------  ------  ------
        permutation              3  1.000x  1.023x  1.023x
          up to 1 KB             1  1.000x  1.000x  1.000x
          up to 10 MB            2  1.023x  1.023x  1.023x
        burst                    3  1.253x  2.000x  2.000x
        ");
        assert!(
            text.lines().all(|line| line.chars().count() <= 80),
            "{text}"
        );
        assert!(!print(&incomplete_run()).contains("by section"));
    }

    #[test]
    fn a_complete_run() {
        insta::assert_snapshot!(print(&run()), @"
        Scenario   permutation-4 (seed 1, hash 89abcdef01234567)
        Flows      4 of 4 completed in 100.8 us of simulated time

                        min      mean       p50       p99     p99.9       max
        ---------  --------  --------  --------  --------  --------  --------
        FCT        48.88 us  64.47 us  50.00 us  97.76 us  97.76 us  97.76 us
        Ideal FCT  48.88 us  48.88 us  48.88 us  48.88 us  48.88 us  48.88 us
        Slowdown     1.000x    1.319x    1.023x    2.000x    2.000x    2.000x

        FCT: flow completion time, from ready to send to last byte acknowledged.
        Ideal: the same flow alone on an idle network. Slowdown: FCT / ideal FCT.

        Packets    1,961  data packets sent
                       1  retransmitted (0.05 % of sent)
                       1  dropped in the network
                      28  marked for congestion (1.43 % of sent)
                       8  probes sent

        Speed      9.42 M packet-hops per CPU second
        Time       1.500 ms wall, 1.250 ms CPU on 1 thread
        Memory     95 MB at the peak
        Digest     fedcba9876543210
        Version    0.1.0 (revision 0123abc)
        ");
    }

    #[test]
    fn a_scale_up_run() {
        insta::assert_snapshot!(print(&scale_up_run()), @"
        Scenario   reduce-16 (seed 1, hash 89abcdef01234567)
        Completed  512 of 512 operations in 1.101 us of simulated time

        Latency         min      mean       p50       p99     p99.9       max
        ---------  --------  --------  --------  --------  --------  --------
        cycles          609     864.1       859     1,124     1,148     1,148
        time       389.8 ns  553.0 ns  549.8 ns  719.4 ns  734.7 ns  734.7 ns

        section         kind             count   mean  p50    p99    max  mean of GPUs
        --------------  ---------------  -----  -----  ---  -----  -----  ------------
        all-reduce      multicast write    128  795.1  796    995    996         795.1
        all-reduce      reduction          128  836.3  835  1,029  1,039         836.3
        point to point  write              128  890.5  865  1,096  1,099         890.5
        point to point  read               128  934.5  922  1,142  1,148         934.5

        Latency: from the departure of the head flit to the arrival of the response.
        A cycle is 640 ps; mean of GPUs: over GPUs, of the mean of each.

        Fabric      0.812  effective flits per GPU and cycle
                       96  entries of a reduction table in use at once, at most
                    40.20  entries of a reduction table in use, mean over time
                        7  requests that waited for an entry
                      288  flits in the longest output queue
                       12  responses that waited at a GPU, at most
                   40,960  flits over links
                    4,096  packets over links

        Speed      32.8 M flit-hops per CPU second
        Time       1.500 ms wall, 1.250 ms CPU on 1 thread
        Memory     95 MB at the peak
        Digest     fedcba9876543210
        Version    0.1.0 (revision 0123abc)
        ");
    }

    #[test]
    fn a_scale_up_run_without_a_completed_operation() {
        let mut record = scale_up_run();
        record.status = Status::Interrupted;
        let operations = record.operations.as_mut().unwrap();
        operations.rows.clear();
        operations.totals.completed = 0;
        insta::assert_snapshot!(print(&record), @"
        Scenario   reduce-16 (seed 1, hash 89abcdef01234567)
        Status     INTERRUPTED: the figures cover what was simulated until then
        Completed  0 of 512 operations in 1.101 us of simulated time

        Latency    no operation completed

        Fabric      0.812  effective flits per GPU and cycle
                       96  entries of a reduction table in use at once, at most
                    40.20  entries of a reduction table in use, mean over time
                        7  requests that waited for an entry
                      288  flits in the longest output queue
                       12  responses that waited at a GPU, at most
                   40,960  flits over links
                    4,096  packets over links

        Speed      32.8 M flit-hops per CPU second
        Time       1.500 ms wall, 1.250 ms CPU on 1 thread
        Memory     95 MB at the peak
        Digest     fedcba9876543210
        Version    0.1.0 (revision 0123abc)
        ");
    }

    #[test]
    fn an_incomplete_run_says_why_and_shows_what_is_not_zero() {
        insta::assert_snapshot!(print(&incomplete_run()), @"
        Scenario   permutation-4 (seed 1, hash 89abcdef01234567)
        Status     INCOMPLETE: stopped at stop.at-most = 50ms
        Flows      4 of 6 completed in 100.8 us of simulated time; 1 never started

                        min      mean       p50       p99     p99.9       max
        ---------  --------  --------  --------  --------  --------  --------
        FCT        48.88 us  64.47 us  50.00 us  97.76 us  97.76 us  97.76 us
        Ideal FCT  48.88 us  48.88 us  48.88 us  48.88 us  48.88 us  48.88 us
        Slowdown     1.000x    1.319x    1.023x    2.000x    2.000x    2.000x

        FCT: flow completion time, from ready to send to last byte acknowledged.
        Ideal: the same flow alone on an idle network. Slowdown: FCT / ideal FCT.

        Packets    1,961  data packets sent
                       1  retransmitted (0.05 % of sent)
                       1  dropped in the network
                       3  dropped in lossless classes: the headroom is too small
                      28  marked for congestion (1.43 % of sent)
                       8  probes sent
                      34  congestion notifications sent
                   5,678  pauses by flow control, of 2 links
                      12  lost to bit errors
                       9  received twice

        Speed      9.42 M packet-hops per CPU second
        Time       1.500 ms wall, 1.250 ms CPU on 1 thread
        Memory     95 MB at the peak
        Digest     fedcba9876543210
        Version    0.1.0 (revision 0123abc)
        ");
    }

    #[test]
    fn flows_of_several_sizes_are_told_apart() {
        let mut record = run();
        record.flows[2].bytes = 800;
        record.flows[3].bytes = 9_000_000;
        let text = print(&record);
        let from = text.find("Slowdown by size").unwrap();
        let to = text.find("Packets").unwrap();
        insta::assert_snapshot!(&text[from..to], @"
        Slowdown by size  flows     p50     p95     p99   p99.9     max
        ----------------  -----  ------  ------  ------  ------  ------
        up to 1 KB            1  2.000x  2.000x  2.000x  2.000x  2.000x
        up to 10 MB           3  1.023x  1.253x  1.253x  1.253x  1.253x
        ");
    }

    #[test]
    fn what_the_system_does_not_tell_is_left_out() {
        let mut record = run();
        (
            record.cpu_seconds,
            record.wall_seconds,
            record.peak_rss_bytes,
        ) = (0.0, 2.0, 0);
        record.packet_hops = 5_000_000;
        let text = print(&record);
        let cost: Vec<&str> = text
            .lines()
            .skip_while(|line| !line.starts_with("Speed"))
            .collect();
        assert_eq!(
            cost[0],
            "Speed      2.5 M packet-hops per second of wall time"
        );
        assert_eq!(cost[1], "Time       2.000 s wall on 1 thread");
        assert!(cost[2].starts_with("Digest"), "{cost:?}");
    }

    #[test]
    fn an_interrupted_run_without_a_completed_flow() {
        let mut record = run();
        record.status = Status::Interrupted;
        record.flows.truncate(1);
        record.flows[0].finish = None;
        record.cpu_seconds = 0.0;
        record.threads = 2;
        insta::assert_snapshot!(print(&record), @"
        Scenario   permutation-4 (seed 1, hash 89abcdef01234567)
        Status     INTERRUPTED: the figures cover what was simulated until then
        Flows      0 of 1 completed in 100.8 us of simulated time

        FCT        no flow completed

        Packets    1,961  data packets sent
                       1  retransmitted (0.05 % of sent)
                       1  dropped in the network
                      28  marked for congestion (1.43 % of sent)
                       8  probes sent

        Speed      too short a run to measure
        Time       1.500 ms wall, 0 s CPU on 2 threads
        Memory     95 MB at the peak
        Digest     fedcba9876543210
        Version    0.1.0 (revision 0123abc)
        ");
    }

    #[test]
    fn the_widest_figures_fit_into_80_columns() {
        let mut record = incomplete_run();
        record.scenario.name = "a scenario with a long name of many words ".repeat(3);
        record.packets.data_sent = u64::MAX;
        record.flows[0].bytes = 0;
        for flow in &mut record.flows {
            flow.ideal_fct = Span::from_ps(1_000_000);
            flow.finish = flow.start.map(|start| start + Span::from_ms(999_900));
        }
        let text = print(&record);
        assert!(text.contains("999.9 Mx"));
        let widest = text.lines().map(|line| line.chars().count()).max();
        assert!(widest <= Some(80), "{text}");
    }
}
