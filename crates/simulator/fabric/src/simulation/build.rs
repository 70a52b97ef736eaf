//! From a topology to domains: hosts, switches and a mailbox for every link.

use super::setup::{BufferTooSmall, Setup};
use crate::agent::Agent;
use crate::command::StartFlow;
use crate::domain::FabricDomain;
use crate::endpoints::Endpoints;
use crate::events::LinkTimeline;
use crate::flow::Reactions;
use crate::host::Host;
use crate::link::{Arrival, Link, LinkErrors, LinkFaults};
use crate::order::ArrivalKey;
use crate::switch::{
    AdaptiveRouting, BufferRules, Detours, Ingress, LossyPort, LossySwitch, NextHopSelector,
    PortFacts, QueueRules, Reroutes, SharedBufferParameters, SharedPort, SharedSwitch, Switch,
    TelemetryFormat,
};
use crate::topology::{
    AttachmentPoint, ChannelPort, LinkId, PortChoice, SwitchRole, Topology, both_channels,
};
use clearway_engine::{Inlet, MailboxBuilder, Outlet, ReadyInlets};
use clearway_transport::congestion::telemetry::Telemetry;
use clearway_transport::{Class, ClassSet, Endpoint, Profile};
use clearway_units::{Bytes, FlowId, HostId, Purpose, RandomStream, Rate, Span, WireClock, mix64};
use std::sync::Arc;
use std::vec;

/// The ends of the links of a domain during set-up: first of its hosts, then of its switch by port.
pub(super) struct Ends<T> {
    /// With the links that lead away.
    outlets: vec::IntoIter<(LinkId, Outlet<Arrival<T>>)>,
    /// With the links that lead here.
    inlets: vec::IntoIter<(LinkId, Inlet<Arrival<T>>)>,
}

/// The highest rate that a link has during the run.
fn fastest_rate(setup: &Setup<'_>, link: LinkId) -> Rate {
    let rate = setup.topology.cables[link.cable()].rate;
    setup.link_events.fastest(link.cable(), rate)
}

/// The length of a round: the shortest delay, but no longer than an inlet can count the packets of.
pub(super) fn lookahead(setup: &Setup<'_>) -> Span {
    let topology = setup.topology;
    let headers = setup.profiles().map(|profile| profile.network.header);
    let smallest = Bytes::new(headers.min().unwrap_or_default().into());
    let fastest = topology
        .links_up()
        .map(|link| fastest_rate(setup, link))
        .max();
    let countable = fastest.map_or(Span::MAX, |rate| {
        rate.span_of(smallest).max(Span::from_ps(1)) * (ArrivalKey::MOST_MESSAGES / 2)
    });
    topology
        .shortest_delay()
        .min(countable)
        .min(Span::from_ps(ArrivalKey::LONGEST_ROUND_PS - 1))
}

/// The domain of each host, and the hosts of each switch: a domain is a switch with its hosts.
pub(super) fn partition(
    topology: &Topology,
    node_ports: &[Vec<LinkId>],
) -> (Vec<u32>, Vec<Vec<HostId>>) {
    let mut hosts_of_switch = vec![Vec::new(); topology.switches.len()];
    let domain_of_host = (0..topology.hosts).map(|host| {
        let (_, to) = topology.link_ends(node_ports[host as usize][0]);
        let switch = topology
            .switch_index(to)
            .expect("routing has checked that hosts hang on switches");
        hosts_of_switch[switch].push(HostId(host));
        switch as u32
    });
    (domain_of_host.collect(), hosts_of_switch)
}

/// A mailbox for every link: its ends, by domain, and the rooms of the domains. The inlets of a domain are first the inlets of its hosts,
/// then of its switch by port.
pub(super) fn connect<T>(
    topology: &Topology,
    node_ports: &[Vec<LinkId>],
    hosts_of_switch: &[Vec<HostId>],
) -> (Vec<Ends<T>>, Vec<Arc<ReadyInlets>>) {
    // The links out of a domain; each has a link back.
    let links_of = |index: usize| {
        let hosts = hosts_of_switch[index].iter();
        let of_hosts = hosts.map(|host| node_ports[host.index()][0]);
        let of_switch = &node_ports[topology.switch_node(index).0 as usize];
        of_hosts.chain(of_switch.iter().copied())
    };
    let domains = 0..hosts_of_switch.len();
    let counts: Vec<usize> = domains
        .clone()
        .map(|index| links_of(index).count())
        .collect();
    let mut post = MailboxBuilder::new(&counts);
    let mut outlets: Vec<Option<Outlet<Arrival<T>>>> = Vec::new();
    outlets.resize_with(topology.cables.len() * 2, || None);
    let mut receive = |index| {
        let back = links_of(index).map(|link| LinkId(link.0 ^ 1));
        let inlets = back.map(|link| {
            let (outlet, inlet) = post.mailbox(index);
            outlets[link.0 as usize] = Some(outlet);
            (link, inlet)
        });
        inlets.collect::<Vec<_>>()
    };
    let inlets: Vec<_> = domains.map(&mut receive).collect();
    let mut send = |link: LinkId| {
        let outlet = outlets[link.0 as usize].take();
        (link, outlet.expect("each link has one sender"))
    };
    let ends = inlets.into_iter().enumerate().map(|(index, inlets)| Ends {
        outlets: links_of(index)
            .map(&mut send)
            .collect::<Vec<_>>()
            .into_iter(),
        inlets: inlets.into_iter(),
    });
    (ends.collect(), post.into_mailrooms())
}

impl<T: Telemetry> Ends<T> {
    /// The next link out of the domain, which is this one.
    fn link(&mut self, setup: &Setup<'_>, id: LinkId) -> Link<T> {
        let cable = &setup.topology.cables[id.cable()];
        let delay = setup.topology.link_delay(id);
        let (link, outlet) = self.outlets.next().expect("each link has one sender");
        assert_eq!(link, id, "links are taken in their order");
        let timeline = setup.link_events.timeline(id.cable());
        let losses = timeline.map_or(&[][..], LinkTimeline::losses);
        let errors = LinkErrors::with_changes(cable, losses, setup.seed, id);
        Link::new(
            id,
            WireClock::new(cable.rate),
            delay,
            LinkFaults::new(errors, timeline.cloned()),
            outlet,
            setup.switch.telemetry == TelemetryFormat::Hpcc,
        )
    }

    /// The next link into the domain.
    fn inlet(&mut self) -> (LinkId, Inlet<Arrival<T>>) {
        self.inlets.next().expect("each link has one receiver")
    }
}

pub(super) fn build_host<T: Telemetry>(
    setup: &Setup<'_>,
    ends: &mut Ends<T>,
    host: HostId,
    up: LinkId,
    reactions: Option<Box<dyn Reactions>>,
    tracing: bool,
) -> Host<T> {
    let link = ends.link(setup, up);
    let (_, inlet) = ends.inlet();
    let rate = setup.topology.cables[up.cable()].rate;
    let endpoints = setup.profiles().map(|profile| {
        let mut endpoint = Endpoint::with_telemetry(host, at_rate(profile, rate), setup.seed);
        endpoint.set_tracing(tracing);
        (endpoint, profile.uses_telemetry())
    });
    let reaction = setup.buffer.as_ref().map_or(Span::ZERO, |b| b.reaction);
    let control_among_data = !setup.switch.control_priority;
    Host::new(
        Endpoints::new(endpoints.collect()),
        link,
        inlet,
        reactions,
        (reaction, control_among_data),
    )
}

/// The transport of a host, which knows the rate of its own NIC.
fn at_rate(profile: &Arc<Profile>, rate: Rate) -> Arc<Profile> {
    if rate == profile.network.line_rate {
        return Arc::clone(profile);
    }
    let mut own = Profile::clone(profile);
    own.network = own.network.at_rate(rate);
    Arc::new(own)
}

pub(super) fn build_switch<T: Telemetry>(
    setup: &Setup<'_>,
    ends: &mut Ends<T>,
    index: usize,
    links: &[LinkId],
    classes: &DataClasses,
    attachments: Arc<[AttachmentPoint]>,
    reroutes: Option<Arc<Reroutes>>,
) -> Switch<T> {
    let inlets = links.iter().map(|_| ends.inlet()).collect();
    let routes = setup.routes.switches[index].clone();
    let pick = pick(setup, index);
    let ingress = Ingress::new(
        setup.topology.switch_node(index),
        (pick, tie_seed(setup.seed)),
        routes,
        attachments,
        inlets,
    )
    .with_reroutes(reroutes)
    .with_detours(detours(setup, index, links));
    let network = &setup.profile.network;
    let mut egress = |&id: &LinkId| {
        let rate = setup.topology.cables[id.cable()].rate;
        let last_hop = leads_to_host(setup, id);
        let rules = QueueRules::new(&setup.switch, rate, network.port_bdp(rate))
            .with_limit(setup.topology.queue_of(id))
            .with_channels(classes.has_channels());
        let rules = match setup.topology.switches[index].role {
            SwitchRole::ScaleUp => rules.unlimited(),
            // A NIC that knows its queues does not tell itself of them.
            SwitchRole::Nic(PortChoice::LeastQueue) => rules.unmarked(),
            SwitchRole::Network | SwitchRole::Nic(PortChoice::Hash) => {
                rules.at(&setup.switch, last_hop)
            }
        };
        let agent = setup.profile.link_agent(id.0, rate).map(Agent::new);
        (rules, ends.link(setup, id).with_agent(agent))
    };
    let role = setup.topology.switches[index].role;
    let local = AdaptiveRouting::new(&setup.switch, role, setup.seed, index);
    let Some(parameters) = setup.buffer_of(index) else {
        let ports = links.iter().map(&mut egress);
        return match setup.switch.strict_priority {
            false => Switch::Lossy(lossy(ingress, ports, setup, local)),
            true => Switch::Strict(Box::new(lossy(ingress, ports, setup, local))),
        };
    };
    let port = |(rules, link)| SharedPort::new(rules, setup.seed, link);
    let ports = links.iter().map(&mut egress).map(port).collect();
    let rules = buffer_rules(setup, parameters, classes, links)
        .expect("the set-up has been checked with `Setup::check_buffers`");
    let frame = parameters.frame.as_u64().min(u32::MAX.into()) as u32;
    let channel_port = |&link: &LinkId| ChannelPort::of_link(setup.topology, link);
    let channels = classes.has_channels();
    let channels = channels.then(|| links.iter().map(channel_port).collect());
    Switch::Shared(Box::new(SharedSwitch::new(
        ingress,
        ports,
        (&rules, channels),
        (parameters.reaction, frame, setup.largest_packet()),
        local,
    )))
}

/// Decisions about detours of the switch `index`, which has these links; `None` where routes are minimal.
fn detours(setup: &Setup<'_>, index: usize, links: &[LinkId]) -> Option<Detours> {
    let topology = setup.topology;
    let groups = topology.detours()?;
    let source = |link: &LinkId| {
        let from_host = topology.is_host(topology.link_ends(*link).1);
        let entity = u64::from(link.0 ^ 1);
        from_host.then(|| RandomStream::new(setup.seed, Purpose::Detours, entity))
    };
    let sources = links.iter().map(source).collect();
    let hosts = topology.groups_of_hosts(groups);
    Some(Detours::new(
        groups,
        groups.of_switch[index],
        hosts,
        sources,
        setup.routes.detour_hops.clone(),
    ))
}

/// Next-hop selection of the switch `index`.
pub(super) fn pick(setup: &Setup<'_>, index: usize) -> NextHopSelector {
    let role = setup.topology.switches[index].role;
    NextHopSelector::new(setup.switch.path_choice(role), setup.seed, index)
}

fn leads_to_host(setup: &Setup<'_>, link: LinkId) -> bool {
    setup.topology.is_host(setup.topology.link_ends(link).1)
}

fn lossy<T: Telemetry, const QUEUES: usize>(
    ingress: Ingress<T>,
    ports: impl Iterator<Item = (QueueRules, Link<T>)>,
    setup: &Setup<'_>,
    local: Option<Box<AdaptiveRouting>>,
) -> LossySwitch<T, QUEUES> {
    let port = |(rules, link): (QueueRules, Link<T>)| {
        let last_hop = leads_to_host(setup, link.id);
        LossyPort::new(rules, setup.seed, link, last_hop)
    };
    LossySwitch::new(ingress, ports.map(port).collect(), local)
}

/// The data classes of a run.
pub(super) struct DataClasses {
    /// Those in use: the classes of flows, and the class in which control waits where it has no priority.
    used: ClassSet,
    lossless: ClassSet,
    /// Both virtual channels of the lossless ones in use; none without virtual channels.
    channels: ClassSet,
}

impl DataClasses {
    /// # Panics
    /// If a flow has a class that is the second virtual channel of another one.
    pub(super) fn new(setup: &Setup<'_>) -> Self {
        let mut used = setup.further_classes;
        setup.flows.iter().for_each(|flow| used.insert(flow.class));
        if !setup.switch.control_priority {
            used.insert(Class::DATA);
        }
        let lossless = setup.buffer.as_ref();
        let lossless = lossless.map_or(ClassSet::EMPTY, |buffer| buffer.lossless.classes());
        let channels = both_channels(used.without(used.without(lossless)));
        if channels.is_empty() || !setup.topology.has_virtual_channels() {
            return Self {
                used,
                lossless,
                channels: ClassSet::EMPTY,
            };
        }
        assert!(
            used.without(both_channels(used)).is_empty(),
            "classes above 3 are virtual channels"
        );
        Self {
            used,
            lossless: both_channels(lossless),
            channels,
        }
    }

    fn has_channels(&self) -> bool {
        !self.channels.is_empty()
    }

    /// Classes that come in over the cable of a link.
    fn towards(&self, setup: &Setup<'_>, link: LinkId) -> ClassSet {
        match leads_to_host(setup, link) {
            true => self.used,
            false => self.used.union(self.channels),
        }
    }
}

/// The buffer of the switch with these links, for the classes that are in use.
///
/// # Errors
/// Its size and the size that it would need, if that is more.
pub(super) fn buffer_rules(
    setup: &Setup<'_>,
    parameters: &SharedBufferParameters,
    classes: &DataClasses,
    links: &[LinkId],
) -> Result<BufferRules, (Bytes, Bytes)> {
    let topology = setup.topology;
    let port = |&link: &LinkId| PortFacts {
        rate: fastest_rate(setup, link),
        delay: topology
            .link_delay(link)
            .max(topology.link_delay(LinkId(link.0 ^ 1))),
        classes: classes.towards(setup, link),
    };
    let ports: Vec<PortFacts> = links.iter().map(port).collect();
    let slowest = topology.slowest_host_rate();
    let slowest = slowest.unwrap_or(setup.profile.network.line_rate);
    let packet = setup.largest_packet().into();
    BufferRules::new(parameters, &ports, slowest, classes.lossless, packet)
}

/// The seed of the order of simultaneous arrivals.
fn tie_seed(seed: u64) -> u64 {
    mix64(seed ^ Purpose::Ties as u64)
}

pub(super) fn schedule_starts<O, T: Telemetry>(
    domains: &mut [FabricDomain<O, T>],
    setup: &Setup<'_>,
    domain_of_host: &[u32],
) {
    let mut position = vec![0; domain_of_host.len()];
    for domain in domains.iter() {
        for (index, host) in domain.hosts.iter().enumerate() {
            position[host.id().index()] = index;
        }
    }
    for (index, flow) in setup.flows.iter().enumerate() {
        let Some(start) = flow.start else { continue };
        let domain = &mut domains[domain_of_host[flow.src.index()] as usize];
        let host = position[flow.src.index()];
        domain.hosts[host].schedule(StartFlow {
            at: start,
            id: FlowId(index as u32),
            flow: *flow,
        });
        domain.host_next[host] = domain.host_next[host].min(start);
    }
}

impl Setup<'_> {
    /// The shared buffer of the switch `index`; none of a scale-up fabric's, which pauses nobody and drops nothing.
    fn buffer_of(&self, index: usize) -> Option<&SharedBufferParameters> {
        let role = self.topology.switches[index].role;
        let buffer = self.buffer.as_ref();
        buffer.filter(|_| role != SwitchRole::ScaleUp)
    }

    /// Checks that reserves and headrooms leave room for a packet in the buffer of every switch.
    ///
    /// # Errors
    /// The first switch for which they do not.
    pub fn check_buffers(&self) -> Result<(), BufferTooSmall> {
        let node_ports = self.topology.ports();
        let classes = DataClasses::new(self);
        for index in 0..self.topology.switches.len() {
            let Some(parameters) = self.buffer_of(index) else {
                continue;
            };
            let links = &node_ports[self.topology.switch_node(index).0 as usize];
            buffer_rules(self, parameters, &classes, links).map_err(|(buffer, needed)| {
                let switch = self.topology.switches[index].name.clone();
                BufferTooSmall {
                    switch,
                    buffer,
                    needed,
                }
            })?;
        }
        Ok(())
    }
}
