//! Hosts on one switch, each in a network namespace `PREFIX0`, `PREFIX1`, … that is made for it: for measurements of the forwarder alone.
//!
//! ```sh
//! cargo run --release -p clearway-softswitch --example star -- try- 2 1Gbps 20us
//! ```
//!
//! Lines on standard input change links; its end, an empty line or Ctrl-D, ends the program and prints the counters.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    #[cfg(target_os = "linux")]
    linux::run()?;
    Ok(())
}

#[cfg(target_os = "linux")]
mod linux {
    use clearway_fabric::SwitchParameters;
    use clearway_fabric::topology::{Routes, single_switch};
    use clearway_softswitch::tun::{CreatedNamespaces, Forwarder, ForwarderRequest, Port, inbox};
    use clearway_softswitch::{ActiveLinks, FabricPlan, SoftSwitch};
    use clearway_units::{Bytes, HostId, ParameterSet, Rate, Span, Value};
    use std::error::Error;
    use std::thread;

    pub(super) fn run() -> Result<(), Box<dyn Error>> {
        let arguments: Vec<String> = std::env::args().skip(1).collect();
        let [prefix, hosts, rate, delay] = arguments.as_slice() else {
            return Err("arguments: PREFIX HOSTS RATE DELAY".into());
        };
        let (hosts, rate): (u32, Rate) = (hosts.parse()?, rate.parse()?);
        let delay: Span = delay.parse()?;
        let topology = single_switch(hosts, rate, delay)?;
        let mut parameters = SwitchParameters::default();
        let queue = Value::Text("250KB".into());
        parameters
            .set("queue", &queue)
            .map_err(|_| "no such setting")?;
        let plan = FabricPlan {
            topology: &topology,
            routes: Routes::compute(&topology)?,
            switch: &parameters,
            propagation_rtt: delay * 4,
            host_queue: Bytes::new(4_000_000),
            longest_packet: 9000,
            seed: 1,
        };
        let mut namespaces = CreatedNamespaces::default();
        let mut ports = Vec::new();
        for host in 0..hosts {
            let name = format!("{prefix}{host}");
            namespaces.create(&name)?;
            ports.push(Port::open(&name, HostId(host), 1500)?);
        }
        let (inbox, outbox) = inbox()?;
        let mut forwarder = Forwarder::new(SoftSwitch::new(&plan)?, ports, inbox)?;
        let names = ActiveLinks::from_topology(&topology);
        thread::spawn(move || {
            let lines = std::io::stdin().lines().map_while(Result::ok);
            for line in lines.take_while(|line| !line.is_empty()) {
                match names.read(&line) {
                    Ok(Some(command)) => outbox.put(ForwarderRequest::Change(command)),
                    Ok(None) => {}
                    Err(error) => eprintln!("{error}"),
                }
            }
            outbox.stop();
        });
        eprintln!("ready");
        let time = forwarder.run(&mut |_, _| {})?;
        for (link, counters) in forwarder.switch().links() {
            eprintln!("{} {counters:?}", topology.link_name(link));
        }
        let statistics = forwarder.statistics();
        let late = &statistics.lateness;
        eprintln!(
            "{:.1} s, {:?}, late p50 {} p99 {} max {}, refused {}, sleeps {}",
            time.as_us() / 1e6,
            forwarder.switch().totals(),
            late.at(500),
            late.at(990),
            late.longest(),
            statistics.refused,
            statistics.sleeps
        );
        Ok(())
    }
}
