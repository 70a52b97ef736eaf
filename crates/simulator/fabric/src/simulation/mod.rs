//! Set-up of a fabric, its run, and the accounts of the run.
//!
//! The packet loop is compiled here and nowhere else: for three kinds of telemetry that packets carry, watched and unwatched.

mod accounting;
mod build;
mod control;
mod in_threads;
mod setup;
mod snapshot;
mod traced_routes;
mod traffic;

use crate::command::Command;
use crate::domain::FabricDomain;
use crate::flow::{Flow, Reactions};
use crate::host::Host;
use crate::link::LinkCounters;
use crate::observer::{Observation, Unwatched, Watch, Watched};
use crate::program::Program;
use crate::switch::Reroutes;
use accounting::Accounting;
pub use accounting::Outcome;
use clearway_engine::{Domain, Engine, ReadyInlets, Threads};
use clearway_transport::congestion::perc::Attachment;
use clearway_transport::congestion::telemetry::{HopRecords, Telemetry};
use clearway_units::{HostId, Span, Time};
pub use control::{RunControl, RunProgress, Stopped};
pub use setup::{FurtherTransports, Setup};
pub use snapshot::{Sampler, Snapshot};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
pub use traced_routes::TracedRoutes;
pub use traffic::{Advance, Driver, FlowSource, Traffic};

/// A fabric ready to run. Packets carry telemetry if the transport's controller asks for it.
pub struct Simulation<'a>(Box<dyn Runnable + 'a>);

/// A fabric of any kind. Each kind is compiled in this crate, once.
trait Runnable {
    fn add_programs(&mut self, programs: &mut dyn FnMut(HostId) -> Option<Box<dyn Program>>);
    fn share_all_rounds(&mut self);
    fn run(self: Box<Self>, control: RunControl<'_>, sampler: Option<&mut dyn Sampler>) -> Outcome;
}

/// Makes the reactions that start further flows at a host.
type MakeReactions<'a> = dyn FnMut(HostId) -> Option<Box<dyn Reactions>> + 'a;

impl<'a> Simulation<'a> {
    /// Builds a fabric. `reactions` may give each host reactions that start further flows.
    ///
    /// # Panics
    /// If a buffer is too small for its reserves and headrooms; see [`Setup::check_buffers`]. If there are several transports, and links
    /// allocate rates for one of them. If there is not one observer for each domain. If a flow has a class above 3, and these classes are
    /// [virtual channels](crate::topology::Topology::has_virtual_channels).
    pub fn new(
        setup: &Setup<'_>,
        reactions: impl FnMut(HostId) -> Option<Box<dyn Reactions>>,
        watch: Watch<'a>,
    ) -> Self {
        Self::by_threads(1.into(), setup, reactions, watch)
    }

    /// As [`new`](Self::new), by several threads if the fabric is large. It is the same fabric.
    ///
    /// # Panics
    /// As `new`.
    pub fn by_threads(
        threads: Threads,
        setup: &Setup<'_>,
        mut reactions: impl FnMut(HostId) -> Option<Box<dyn Reactions>>,
        watch: Watch<'a>,
    ) -> Self {
        Self::assemble(threads, setup, &mut reactions, watch)
    }

    fn assemble(
        threads: Threads,
        setup: &Setup<'_>,
        reactions: &mut MakeReactions<'_>,
        watch: Watch<'a>,
    ) -> Self {
        let hosts = setup.topology.hosts as usize;
        let worth = 1 + hosts / HOSTS_WORTH_A_THREAD;
        let threads = if worth > 1 {
            threads.count_now().min(worth)
        } else {
            1
        };
        assert!(
            !setup.uses_agents() || setup.further_transports.profiles.is_empty(),
            "links that allocate rates know one transport"
        );
        let domains = setup.topology.switches.len();
        let nobody = || std::iter::repeat_with(|| Watched::new(None));
        match watch {
            Watch::Off => {
                let nobody = std::iter::repeat_with(|| Unwatched);
                Self::with_telemetry(threads, setup, reactions, &mut nobody.take(domains))
            }
            Watch::Links => {
                Self::with_telemetry(threads, setup, reactions, &mut nobody().take(domains))
            }
            Watch::Observers(observers) => {
                assert_eq!(observers.len(), domains, "one observer for each domain");
                let mut watched = observers.into_iter().map(Some).map(Watched::new);
                Self::with_telemetry(threads, setup, reactions, &mut watched)
            }
        }
    }

    /// Chooses the kind of telemetry that packets carry; packets without it are smaller.
    fn with_telemetry<O: Observation + 'a>(
        threads: usize,
        setup: &Setup<'_>,
        reactions: &mut MakeReactions<'_>,
        observers: &mut dyn Iterator<Item = O>,
    ) -> Self {
        Self(if setup.uses_telemetry() {
            Box::new(Fabric::<O, HopRecords>::new(
                threads, setup, reactions, observers,
            ))
        } else if setup.uses_agents() {
            Box::new(Fabric::<O, Attachment>::new(
                threads, setup, reactions, observers,
            ))
        } else {
            Box::new(Fabric::<O, ()>::new(threads, setup, reactions, observers))
        })
    }

    /// Gives hosts programs.
    #[must_use]
    pub fn with_programs(
        mut self,
        mut programs: impl FnMut(HostId) -> Option<Box<dyn Program>>,
    ) -> Self {
        self.0.add_programs(&mut programs);
        self
    }

    /// Shares every round among the threads, even one that carries too little to be worth it. For tests: results are the same.
    #[must_use]
    pub fn sharing_all_rounds(mut self) -> Self {
        self.0.share_all_rounds();
        self
    }

    /// Runs until nothing is left to happen, or until `control` stops it.
    pub fn run(self, control: RunControl<'_>) -> Outcome {
        self.run_sampled(control, None)
    }

    /// As [`run`](Self::run), with a sampler that looks at the fabric between rounds.
    pub fn run_sampled(
        self,
        control: RunControl<'_>,
        sampler: Option<&mut dyn Sampler>,
    ) -> Outcome {
        self.0.run(control, sampler)
    }
}

/// A host of a domain, with the reactions that start further flows there.
type Member = (HostId, Option<Box<dyn Reactions>>);

/// Hosts, with their switches, that a further thread sets up in about 10 ms.
const HOSTS_WORTH_A_THREAD: usize = 2048;

/// A fabric whose packets carry telemetry `T`.
struct Fabric<O, T> {
    domains: Vec<(FabricDomain<O, T>, Time)>,
    mailrooms: Vec<Arc<ReadyInlets>>,
    lookahead: Span,
    /// Every round is shared among the threads.
    shares_all: bool,
    /// The shortest delay of a link; rounds may be shorter still.
    shortest_delay: Span,
    flows: Arc<[Flow]>,
    /// The domain of each host.
    domain_of_host: Vec<u32>,
    hops: Arc<AtomicU64>,
}

impl<O: Observation, T: Telemetry> Fabric<O, T> {
    fn new(
        threads: usize,
        setup: &Setup<'_>,
        reactions: &mut MakeReactions<'_>,
        observers: &mut dyn Iterator<Item = O>,
    ) -> Self {
        let topology = setup.topology;
        let node_ports = topology.ports();
        let (domain_of_host, hosts_of_switch) = build::partition(topology, &node_ports);
        let (ends, mailrooms) = build::connect::<T>(topology, &node_ports, &hosts_of_switch);
        let hops = Arc::new(AtomicU64::new(0));
        let classes = build::DataClasses::new(setup);
        let transports = setup.transports();
        let path_table = Arc::new(setup.path_table());
        let events = &setup.link_events;
        let reroutes = (!events.is_empty()).then(|| Reroutes::new(topology, events));
        let mut with_reactions = |members: Vec<HostId>| {
            let members = members.into_iter();
            members.map(|host| (host, reactions(host))).collect()
        };
        let parts = hosts_of_switch.into_iter().zip(ends).zip(observers);
        let parts = parts.map(|((members, ends), own)| (with_reactions(members), ends, own));
        let parts: Vec<(Vec<Member>, build::Ends<T>, O)> = parts.collect();
        let domain_count = parts.len();
        let mut domains =
            in_threads::map(parts, threads, |index, (members, mut ends, observer)| {
                let traces = observer.interests().transport;
                let host = |(host, reactions): Member| {
                    let up = node_ports[host.index()][0];
                    build::build_host(setup, &mut ends, host, up, reactions, traces)
                };
                let hosts: Vec<Host<T>> = members.into_iter().map(host).collect();
                let links = &node_ports[topology.switch_node(index).0 as usize];
                let switch = build::build_switch(
                    setup,
                    &mut ends,
                    index,
                    links,
                    &classes,
                    Arc::clone(&setup.routes.attachments),
                    reroutes.clone(),
                );
                FabricDomain {
                    flows: Arc::clone(&setup.flows),
                    transports: Arc::clone(&transports),
                    path_table: Arc::clone(&path_table),
                    host_next: vec![Time::NEVER; hosts.len()],
                    hosts,
                    switch,
                    counters: LinkCounters::default(),
                    observer,
                    domains: domain_count,
                    hops: Arc::clone(&hops),
                }
            });
        build::schedule_starts(&mut domains, setup, &domain_of_host);
        Self {
            domains: domains
                .into_iter()
                .map(FabricDomain::with_first_event)
                .collect(),
            mailrooms,
            lookahead: build::lookahead(setup),
            shares_all: false,
            shortest_delay: topology.shortest_delay(),
            flows: Arc::clone(&setup.flows),
            domain_of_host,
            hops,
        }
    }
}

impl<O: Observation, T: Telemetry> Runnable for Fabric<O, T> {
    fn add_programs(&mut self, programs: &mut dyn FnMut(HostId) -> Option<Box<dyn Program>>) {
        for (domain, first) in &mut self.domains {
            for (host, next) in domain.hosts.iter_mut().zip(&mut domain.host_next) {
                if let Some(program) = programs(host.id()) {
                    *next = host.run_program(program).min(*next);
                    *first = (*first).min(*next);
                }
            }
        }
    }

    fn share_all_rounds(&mut self) {
        self.shares_all = true;
    }

    fn run(self: Box<Self>, control: RunControl<'_>, sampler: Option<&mut dyn Sampler>) -> Outcome {
        let threads = control.threads;
        let delay = control
            .coordination_delay
            .unwrap_or(Span::ZERO)
            .max(self.shortest_delay);
        let mut accounting = Accounting::new(
            self.flows,
            self.domain_of_host,
            self.hops,
            delay,
            control,
            self.lookahead,
            sampler,
        );
        let mut domains = self.domains;
        accounting.order_stream(Time::ZERO, |domain, order| {
            let (domain, first) = &mut domains[domain];
            *first = domain.accept(Command::Start(order)).min(*first);
        });
        let mut engine = Engine::new(self.lookahead, threads, domains, self.mailrooms);
        if self.shares_all {
            engine = engine.sharing_all_rounds();
        }
        let concluded = engine.run(&mut accounting);
        accounting.close(concluded)
    }
}
