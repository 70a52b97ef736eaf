//! Plan of a bed: namespaces, cables, addresses, routes and rates, as a pure function of a scenario's fabric.
//!
//! Hosts are namespaces with one device, `cw0`. With kernel switches, each switch is also a namespace, and each cable a pair of `veth`
//! devices; port `p` of a switch is its device `pN`. A port's rate and queue are a `tbf` queueing discipline. Routes come from the
//! simulator, with all equal next hops; the kernel chooses among them by a hash over addresses and ports.

use crate::fault::Fault;
use crate::name::{BedName, HOST_DEVICE, address_of, cable_addresses};
use clearway_fabric::topology::{LinkId, NextHops, NodeId, Routes, Topology};
use clearway_lab::Assembly;
use clearway_units::{Bytes, Rate, Span, Time};
use std::fmt::Write as _;

/// Most namespaces of a bed.
pub const MOST_NAMESPACES: usize = 64;
/// Bytes of Ethernet in front of an IP packet, which count for the rate of a port.
pub(crate) const ETHERNET: u32 = 14;
/// Rate above which one machine cannot carry a link.
const FASTEST: Rate = Rate::from_gbps(10);
/// Queue of a host's port, for bursts of its transport that a NIC would hold back.
const HOST_QUEUE: u64 = 1 << 20;

/// Program of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepProgram {
    /// `ip`, of iproute2.
    Ip,
    /// `tc`, of iproute2.
    Tc,
    /// `sh`, for settings of the kernel.
    Shell,
}

/// A batch of commands for one program in one namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandBatch {
    /// The program.
    pub program: StepProgram,
    /// Namespace; `None` for the namespace of the process.
    pub namespace: Option<String>,
    /// Commands, one per line.
    pub batch: String,
}

/// Kind of switches between hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Switches {
    /// Namespaces that route, with rates by `tbf`: no congestion marks.
    Kernel,
    /// `clearway softswitch`, which implements the whole scenario.
    Soft,
}

impl Switches {
    /// Name of the kind.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Kernel => "kernel",
            Self::Soft => "soft",
        }
    }
}

/// Plan of a bed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BedPlan {
    /// Name of the bed.
    pub name: BedName,
    /// Namespaces of hosts, by number.
    pub hosts: Vec<String>,
    /// Namespaces of switches; empty if the switches run in user space.
    pub switches: Vec<String>,
    /// The plan needs `netem`, for delays or losses of links.
    pub needs_netem: bool,
    /// Steps, in order.
    pub steps: Vec<CommandBatch>,
}

/// Delay and loss of a directed link that the kernel has to add.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LinkImpairment {
    /// Delay that the scenario gives to the link; the software's delay adds to it.
    pub delay: Span,
    /// Probability that a packet is lost.
    pub loss: f64,
}

/// Facts about packets that the fabric does not contain.
#[derive(Debug, Clone)]
pub struct PortFacts {
    /// Longest IP packet.
    pub mtu: u32,
    /// Bytes of a switch's queue.
    pub queue: Bytes,
    /// Impairments of links, by their numbers.
    pub impairments: Vec<LinkImpairment>,
}

impl BedPlan {
    /// Plans the bed.
    ///
    /// # Errors
    /// If one machine cannot emulate the fabric.
    pub fn new(
        name: &BedName,
        assembly: &Assembly,
        facts: &PortFacts,
        switches: Switches,
    ) -> Result<Self, Fault> {
        let topology = &assembly.topology;
        check(topology, switches)?;
        let own = |switch: usize| name.switch(&topology.switches[switch].name);
        let switch_count = match switches {
            Switches::Kernel => topology.switches.len(),
            Switches::Soft => 0,
        };
        let mut plan = Self {
            name: name.clone(),
            hosts: (0..topology.hosts).map(|host| name.host(host)).collect(),
            switches: (0..switch_count).map(own).collect(),
            needs_netem: false,
            steps: Vec::new(),
        };
        plan.add_namespaces();
        if switches == Switches::Kernel {
            let fabric = KernelFabric::new(assembly, facts);
            plan.needs_netem = fabric.needs_netem();
            fabric.plan(&mut plan);
        }
        Ok(plan)
    }

    /// All namespaces.
    pub fn namespaces(&self) -> impl Iterator<Item = &String> {
        self.hosts.iter().chain(&self.switches)
    }

    /// Steps that set the rates, queues, delays and losses of ports. A repetition is allowed and revives dead links.
    pub(crate) fn shapes(&self) -> impl Iterator<Item = &CommandBatch> {
        let steps = self.steps.iter();
        steps.filter(|step| step.program == StepProgram::Tc)
    }

    /// Steps after which kernel switches lose all packets over a cable, in both directions: the queues of its ports drop all packets, and
    /// routes do not change.
    pub(crate) fn death(
        &self,
        assembly: &Assembly,
        facts: &PortFacts,
        cable: usize,
    ) -> Vec<CommandBatch> {
        let fabric = KernelFabric::new(assembly, facts);
        let step = |link: LinkId| CommandBatch {
            program: StepProgram::Tc,
            namespace: Some(fabric.namespace(self, fabric.topology.link_ends(link).0)),
            batch: fabric.bucket(link, 8, 1, 1),
        };
        [0, 1].map(|end| step(LinkId::from_end(cable, end))).into()
    }

    fn push(&mut self, program: StepProgram, namespace: Option<&str>, batch: String) {
        self.steps.push(CommandBatch {
            program,
            namespace: namespace.map(String::from),
            batch,
        });
    }

    fn add_namespaces(&mut self) {
        let batch = self.namespaces().map(|name| format!("netns add {name}\n"));
        let batch = batch.collect();
        self.push(StepProgram::Ip, None, batch);
        let names: Vec<String> = self.namespaces().cloned().collect();
        for name in names {
            self.push(StepProgram::Ip, Some(&name), "link set lo up\n".into());
        }
    }

    /// The plan as text, for people and tests.
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        for step in &self.steps {
            let program = match step.program {
                StepProgram::Ip => "ip",
                StepProgram::Tc => "tc",
                StepProgram::Shell => "sh",
            };
            for line in step.batch.lines() {
                let _ = match &step.namespace {
                    None => writeln!(text, "{program}: {line}"),
                    Some(name) => writeln!(text, "{name} {program}: {line}"),
                };
            }
        }
        text
    }
}

/// Rejects fabrics that namespaces cannot emulate.
fn check(topology: &Topology, switches: Switches) -> Result<(), Fault> {
    if !topology.further_nics.is_empty() {
        return Err(Fault::new(
            "hosts of this fabric have several network cards, but hosts of a test bed have one",
            "choose another `topology.kind`, such as \"leaf-spine\"",
        ));
    }
    if topology.detours().is_some() {
        return Err(Fault::new(
            "packets of this fabric take detours, but packets of a test bed cannot",
            "set `topology.routing = \"minimal\"`",
        ));
    }
    let hosts = topology.hosts as usize;
    let (namespaces, made_of) = match switches {
        Switches::Kernel => (hosts + topology.switches.len(), "hosts and switches"),
        Switches::Soft => (hosts, "hosts"),
    };
    if namespaces > MOST_NAMESPACES {
        return Err(Fault::new(
            format!(
                "the fabric has {namespaces} {made_of}, and a test bed has at most {MOST_NAMESPACES} namespaces"
            ),
            "make it smaller, for instance with `--set topology.hosts=8`",
        ));
    }
    let links = topology.links_up();
    let fastest = links.max_by_key(|link| topology.cables[link.cable()].rate.as_bps());
    if let Some(link) = fastest
        && topology.cables[link.cable()].rate > FASTEST
    {
        return Err(Fault::new(
            format!(
                "link {} has {}, and one machine cannot carry more than {FASTEST} on a link, and all links together little more",
                topology.link_name(link),
                topology.cables[link.cable()].rate
            ),
            "scale the rates down: the scenario of a test bed says what it carries, for instance `--set topology.link-rate=100Mbps`",
        ));
    }
    Ok(())
}

/// A fabric of kernel switches.
struct KernelFabric<'a> {
    topology: &'a Topology,
    routes: &'a Routes,
    facts: &'a PortFacts,
    ports: Vec<Vec<LinkId>>,
}

impl<'a> KernelFabric<'a> {
    fn new(assembly: &'a Assembly, facts: &'a PortFacts) -> Self {
        Self {
            topology: &assembly.topology,
            routes: &assembly.routes,
            facts,
            ports: assembly.topology.ports(),
        }
    }

    fn needs_netem(&self) -> bool {
        let mut links = self.topology.links_up();
        links.any(|link| self.netem(link).is_some())
    }

    fn plan(&self, plan: &mut BedPlan) {
        let mut batch = String::new();
        for (index, cable) in self.topology.cables.iter().enumerate() {
            if cable.up {
                batch += &self.cable(plan, index);
            }
        }
        plan.push(StepProgram::Ip, None, batch);
        for node in 0..self.ports.len() {
            let node = NodeId(node as u32);
            let namespace = self.namespace(plan, node);
            plan.push(StepProgram::Shell, Some(&namespace), self.settings(node));
            plan.push(StepProgram::Ip, Some(&namespace), self.addresses(node));
            plan.push(StepProgram::Tc, Some(&namespace), self.shapes(node));
        }
        // After all devices are up, because the kernel rejects a route over a device that is down.
        for node in 0..self.ports.len() {
            let node = NodeId(node as u32);
            let namespace = self.namespace(plan, node);
            plan.push(StepProgram::Ip, Some(&namespace), self.node_routes(node));
        }
    }

    fn namespace(&self, plan: &BedPlan, node: NodeId) -> String {
        match self.topology.switch_index(node) {
            None => plan.hosts[node.0 as usize].clone(),
            Some(switch) => plan.switches[switch].clone(),
        }
    }

    /// The device at the beginning of a link.
    fn device(&self, link: LinkId) -> String {
        device(self.topology, &self.ports, link)
    }

    fn cable(&self, plan: &BedPlan, cable: usize) -> String {
        let [a, b] = [0, 1].map(|end| LinkId::from_end(cable, end));
        let [at_a, at_b] = [a, b].map(|link| self.namespace(plan, self.topology.link_ends(link).0));
        let mtu = self.facts.mtu;
        format!(
            "link add {} netns {at_a} mtu {mtu} type veth peer name {} netns {at_b} mtu {mtu}\n",
            self.device(a),
            self.device(b),
        )
    }

    /// Settings of the kernel: switches forward, and choose among next hops by addresses and ports.
    fn settings(&self, node: NodeId) -> String {
        let mut script = String::from("cd /proc/sys/net/ipv4\n");
        script += "echo 0 >conf/all/rp_filter\necho 0 >conf/default/rp_filter\n";
        if let Some(switch) = self.topology.switch_index(node) {
            script += "echo 1 >ip_forward\necho 1 >fib_multipath_hash_policy\n";
            // Otherwise switches of two tiers would make the same choices. Older kernels have one seed for all.
            let _ = writeln!(
                script,
                "if [ -e fib_multipath_hash_seed ]; then echo {} >fib_multipath_hash_seed; fi",
                switch + 1
            );
        }
        script
    }

    fn addresses(&self, node: NodeId) -> String {
        let mut batch = String::new();
        if self.topology.switch_index(node).is_none() {
            let _ = writeln!(batch, "addr add {}/32 dev lo", address_of(node.0));
        }
        for &link in &self.ports[node.0 as usize] {
            let (device, address) = (self.device(link), cable_addresses(link.cable())[link.end()]);
            let _ = writeln!(batch, "addr add {address}/31 dev {device}");
            let _ = writeln!(batch, "link set {device} up");
        }
        batch
    }

    /// Delay and loss that the kernel has to add to a link; `None` if neither is needed.
    fn netem(&self, link: LinkId) -> Option<LinkImpairment> {
        let impairment = self.facts.impairments[link.0 as usize];
        (!impairment.delay.is_zero() || impairment.loss > 0.0).then_some(impairment)
    }

    fn shapes(&self, node: NodeId) -> String {
        let mut batch = String::new();
        for &link in &self.ports[node.0 as usize] {
            let rate = self.topology.cables[link.cable()].rate;
            let frame = u64::from(self.facts.mtu + ETHERNET);
            // Short, because an idle port sends a burst without delay.
            let burst = frame.max(rate.bytes_in(Span::from_us(50)).as_u64());
            let queue = match self.topology.switch_index(node) {
                None => HOST_QUEUE,
                Some(_) => self.facts.queue.as_u64(),
            };
            if let Some(LinkImpairment { delay, loss }) = self.netem(link) {
                let (device, us, percent) = (self.device(link), delay.as_us(), loss * 100.0);
                let _ = writeln!(
                    batch,
                    "qdisc replace dev {device} root handle 1: netem limit 100000 delay {us}us loss {percent}%"
                );
            }
            batch += &self.bucket(link, rate.as_bps(), burst, queue.max(frame));
        }
        batch
    }

    /// The command that sets a port's rate in bit/s, its burst and its queue in bytes. It replaces earlier values.
    fn bucket(&self, link: LinkId, rate: u64, burst: u64, limit: u64) -> String {
        let device = self.device(link);
        let parent = match self.netem(link) {
            Some(_) => "parent 1: handle 2:",
            None => "root",
        };
        format!(
            "qdisc replace dev {device} {parent} tbf rate {rate}bit burst {burst} limit {limit}\n"
        )
    }

    fn node_routes(&self, node: NodeId) -> String {
        let peer = |link: LinkId| cable_addresses(link.cable())[1 - link.end()];
        let ports = &self.ports[node.0 as usize];
        let Some(switch) = self.topology.switch_index(node) else {
            let via = ports.first().map_or_else(String::new, |&link| {
                format!(
                    "route add default via {} dev {HOST_DEVICE} src {}\n",
                    peer(link),
                    address_of(node.0)
                )
            });
            return via;
        };
        let mut batch = String::new();
        for host in 0..self.topology.hosts {
            let attachment = self.routes.attachments[host as usize];
            let hops: Vec<LinkId> = match self.routes.switches[switch].next_hops(attachment) {
                NextHops::Host(port) => vec![ports[usize::from(port)]],
                NextHops::Ports(hops) => {
                    let hops = hops.iter().map(|&port| ports[usize::from(port)]);
                    hops.collect()
                }
            };
            let _ = write!(batch, "route add {}/32", address_of(host));
            match hops[..] {
                [only] => {
                    let _ = write!(batch, " via {} dev {}", peer(only), self.device(only));
                }
                _ => {
                    for hop in hops {
                        let (via, device) = (peer(hop), self.device(hop));
                        let _ = write!(batch, " nexthop via {via} dev {device}");
                    }
                }
            }
            batch.push('\n');
        }
        batch
    }
}

/// The device at the beginning of a link; `ports` lists the links of each node.
pub(crate) fn device(topology: &Topology, ports: &[Vec<LinkId>], link: LinkId) -> String {
    let from = topology.link_ends(link).0;
    if topology.switch_index(from).is_none() {
        return HOST_DEVICE.into();
    }
    let port = ports[from.0 as usize].iter().position(|&own| own == link);
    format!("p{}", port.unwrap_or(0))
}

/// Cables that die during a run, in both directions, and their times of death.
pub(crate) fn deaths(topology: &Topology) -> Vec<(Time, usize)> {
    let cables = topology.cables.iter().enumerate();
    let dying = cables.filter(|(_, cable)| cable.up && cable.dead_from != Time::NEVER);
    let mut deaths: Vec<_> = dying
        .map(|(index, cable)| (cable.dead_from, index))
        .collect();
    deaths.sort_unstable();
    deaths
}

#[cfg(test)]
mod tests;
