//! Random scenarios: small fabrics, tiny buffers, programs and injection controls that react to all that they are told.

use clearway_scaleup::injection::{
    Aimd, AimdParameters, Completed, InjectionControl, InjectionDecision, InjectionFacts,
    InjectionGauges, InjectionSettings, LatencyParameters, NoControl, Remote, Sent, ThreeCpo,
    ThreeCpoParameters, TokenArrival, TokenNeed, TokenParameters, Window, WindowParameters,
};
use clearway_scaleup::{
    Configuration, Cycle, GroupId, InjectionArbiter, InjectionChannels, Operation, OperationKind,
    OperationSet, Posts, Program, Replication, Script, Step, Target, Tree,
};
use clearway_units::{HostId, Purpose, RandomStream, mix64};
use std::num::NonZero;

/// Injection control of all GPUs of a scenario.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Control {
    Named(InjectionSettings),
    Moody,
}

/// Work of a GPU.
#[derive(Debug, Clone)]
pub(crate) enum Work {
    Script(Vec<OperationSet>),
    Reactive(Reactive),
}

/// A scenario, of which runs can be set up again and again.
#[derive(Debug, Clone)]
pub(crate) struct Scenario {
    pub(crate) seed: u64,
    pub(crate) configuration: Configuration,
    pub(crate) tree: Tree,
    pub(crate) groups: Vec<Vec<HostId>>,
    pub(crate) control: Control,
    pub(crate) work: Vec<Work>,
}

impl Scenario {
    pub(crate) fn new(seed: u64) -> Self {
        let random = &mut RandomStream::new(seed, Purpose::Test, 0);
        let tree = tree(random);
        let groups = groups(random, &tree);
        let configuration = configuration(random);
        let control = control(random);
        let most = match random.chance(0.2) {
            _ if tree.gpus > 48 => 4,
            true => 60,
            false => 16,
        };
        let operations = 1 + random.below(most);
        let reads = [0.0, 0.3, 0.5, 0.7, 1.0][random.below(5) as usize];
        let multicasts = [0.0, 0.4, 0.8, 1.0][random.below(4) as usize];
        let mut work = Vec::new();
        for gpu in 0..tree.gpus {
            let choice = Choice {
                gpu: HostId(gpu),
                gpus: tree.gpus,
                groups: groups_of(&groups, HostId(gpu)),
                reads,
                multicasts,
            };
            work.push(match random.below(3) {
                0 => Work::Reactive(Reactive {
                    state: random.next_u64(),
                    left: operations,
                    choice,
                }),
                _ => Work::Script(script(random, &choice, operations)),
            });
        }
        Self {
            seed,
            configuration,
            tree,
            groups,
            control,
            work,
        }
    }

    pub(crate) fn programs(&self) -> Vec<Box<dyn Program>> {
        let program = |work: &Work| -> Box<dyn Program> {
            match work {
                Work::Script(sets) => Box::new(Script::new(sets.clone())),
                Work::Reactive(reactive) => Box::new(reactive.clone()),
            }
        };
        self.work.iter().map(program).collect()
    }

    pub(crate) fn control(&self, facts: &InjectionFacts<'_>) -> Box<dyn InjectionControl> {
        match &self.control {
            Control::Named(settings) => settings.build(facts),
            Control::Moody => Box::new(Moody {
                events: mix64(facts.seed ^ u64::from(facts.gpu.0)),
                sends: 0,
                outstanding: 0,
                last: 0,
                sent: 0,
            }),
        }
    }
}

fn tree(random: &mut RandomStream) -> Tree {
    let leaves = 1 + random.below(4);
    // More than 64 ports, more than 20 events of a cycle, or few of either.
    let gpus_per_leaf = match random.below(100) {
        0 => 70,
        1..5 => 12,
        _ => 1 + random.below(4),
    };
    let least = u32::from(leaves > 1);
    Tree {
        gpus: leaves * gpus_per_leaf,
        gpus_per_leaf,
        spines: least + random.below(4 - least),
        links_per_spine: 1 + random.below(2),
    }
}

/// Groups of any GPUs, of one GPU, of GPUs below one leaf, and of all.
fn groups(random: &mut RandomStream, tree: &Tree) -> Vec<Vec<HostId>> {
    let mut groups = Vec::new();
    for _ in 0..random.below(6) {
        let mut gpus: Vec<u32> = (0..tree.gpus).collect();
        random.shuffle(&mut gpus);
        let below = tree.gpus_per_leaf;
        match random.below(5) {
            0 => gpus.truncate(1),
            1 => {
                let leaf = gpus[0] / below;
                gpus.retain(|gpu| gpu / below == leaf);
                gpus.truncate(1 + random.below(below) as usize);
            }
            2 => {}
            _ => gpus.truncate(1 + random.below(tree.gpus) as usize),
        }
        gpus.sort_unstable();
        groups.push(gpus.into_iter().map(HostId).collect());
    }
    groups
}

fn groups_of(groups: &[Vec<HostId>], gpu: HostId) -> Vec<GroupId> {
    let numbered = groups.iter().enumerate();
    let own = numbered.filter(|(_, members)| members.contains(&gpu));
    own.map(|(i, _)| GroupId(i as u32)).collect()
}

fn configuration(random: &mut RandomStream) -> Configuration {
    let header_flits = 1 + random.below(2);
    let payload_flits = random.below(9);
    let packet = header_flits + payload_flits;
    let mut room = || match random.below(5) {
        0 => packet,
        1 => packet + random.below(2),
        2 => packet + random.below(packet + 1),
        3 => packet * 4,
        _ => 200,
    };
    let (input_buffer, output_queue, response_queue) = (room(), room(), room());
    let (replication, least) = match random.chance(0.5) {
        true => (Replication::Nearest, 2),
        false => (Replication::Root, 1),
    };
    Configuration {
        latency: 1 + random.below(30),
        header_flits,
        payload_flits,
        input_buffer,
        output_queue,
        response_queue: Some(response_queue),
        read_latency: match random.chance(0.2) {
            true => 0,
            false => random.below(41),
        },
        write_latency: match random.chance(0.5) {
            true => 0,
            false => random.below(41),
        },
        replication,
        reduction_table: random.chance(0.6).then(|| least + random.below(3)),
        channels: match random.chance(0.5) {
            true => InjectionChannels::PerKind,
            false => InjectionChannels::Shared,
        },
        arbiter: match random.chance(0.5) {
            true => InjectionArbiter::LeastRecentlyUsed,
            false => InjectionArbiter::RoundRobin,
        },
        ..Configuration::default()
    }
}

/// A control of the crate, or one whose answers reveal its inputs.
fn control(random: &mut RandomStream) -> Control {
    let settings = match random.below(8) {
        0 => InjectionSettings::defaults::<NoControl>(),
        1 => InjectionSettings::with::<Window>(WindowParameters {
            window: NonZero::new(1 + random.below(6)).expect("above zero"),
        }),
        2 => InjectionSettings::with::<Aimd>(AimdParameters {
            tokens: tokens(random),
            latency: latencies(random),
        }),
        3 | 4 => InjectionSettings::with::<ThreeCpo>(three_cpo(random)),
        _ => return Control::Moody,
    };
    Control::Named(settings)
}

fn tokens(random: &mut RandomStream) -> TokenParameters {
    let least = 2468.0 / f64::from(2 + random.below(20));
    TokenParameters {
        watermark_min: least,
        initial: random.chance(0.3).then_some(least),
        cap: f64::from(1 + random.below(20)),
        need: match random.chance(0.5) {
            true => TokenNeed::Both,
            false => TokenNeed::Data,
        },
        arrival: match random.chance(0.5) {
            true => TokenArrival::Random,
            false => TokenArrival::Even,
        },
        ..TokenParameters::default()
    }
}

/// Thresholds that latencies of small fabrics reach.
fn latencies(random: &mut RandomStream) -> LatencyParameters {
    let threshold = u64::from(20 + random.below(200));
    LatencyParameters {
        threshold,
        greatest: threshold + 1 + u64::from(random.below(300)),
        ..LatencyParameters::default()
    }
}

fn three_cpo(random: &mut RandomStream) -> ThreeCpoParameters {
    let from = u64::from(random.below(200));
    ThreeCpoParameters {
        remote_scaling: f64::from(random.below(11)) / 10.0,
        remote_scaling_from: from,
        remote_scaling_to: from + 1 + u64::from(random.below(300)),
        scale_sends: random.chance(0.5),
        equivalent_of_sends: random.chance(0.5),
        handover: random.chance(0.5),
        skew_correction: random.chance(0.5),
        initial_rtt: u64::from(1 + random.below(200)),
        tokens: tokens(random),
        latency: latencies(random),
        ..ThreeCpoParameters::default()
    }
}

fn script(random: &mut RandomStream, choice: &Choice, operations: u32) -> Vec<OperationSet> {
    let mut sets = Vec::new();
    for _ in 0..random.below(4) {
        let mut steps = Vec::new();
        for _ in 0..random.below(operations + 1) {
            let first = choice.operation(random.next_u64());
            let follows = random.chance(0.4);
            let then = follows.then(|| match random.chance(0.5) {
                true => choice.operation(random.next_u64()),
                false => Operation {
                    kind: OperationKind::Write,
                    ..first
                },
            });
            steps.push(Step { first, then });
        }
        let pause = match random.chance(0.5) {
            true => 0,
            false => u64::from(random.below(300)),
        };
        sets.push(OperationSet { pause, steps });
    }
    sets
}

/// Choice of operations of one GPU.
#[derive(Debug, Clone)]
pub(crate) struct Choice {
    gpu: HostId,
    gpus: u32,
    groups: Vec<GroupId>,
    reads: f64,
    multicasts: f64,
}

impl Choice {
    /// The operation that a hash names.
    fn operation(&self, hash: u64) -> Operation {
        let random = &mut RandomStream::new(hash, Purpose::Test, 1 + u64::from(self.gpu.0));
        let target = match self.groups.is_empty() || !random.chance(self.multicasts) {
            true => Target::Gpu(HostId(random.below(self.gpus))),
            false => Target::Group(self.groups[random.below(self.groups.len() as u32) as usize]),
        };
        Operation {
            kind: match random.chance(self.reads) {
                true => OperationKind::Read,
                false => OperationKind::Write,
            },
            target,
            address: u64::from(random.below(16)),
            tag: u64::from(random.below(100)),
        }
    }
}

/// A program that answers events with operations and requests to wake, as a hash over all events decides.
#[derive(Debug, Clone)]
pub(crate) struct Reactive {
    state: u64,
    /// Operations that it may still post.
    left: u32,
    choice: Choice,
}

impl Reactive {
    fn react(&mut self, now: Cycle, what: u64, posts: &mut Posts) {
        self.state = mix64(self.state ^ mix64(what) ^ now);
        let operations = (self.state >> 8) % 3;
        for i in 0..operations.min(u64::from(self.left)) {
            posts.operation(self.choice.operation(mix64(self.state ^ i)));
            self.left -= 1;
        }
        if self.left > 0 && (self.state >> 16).is_multiple_of(3) {
            posts.wake_at(now + 1 + (self.state >> 24) % 30);
        }
    }
}

impl Program for Reactive {
    fn start(&mut self, posts: &mut Posts) {
        posts.wake_at(1 + self.state % 20);
        self.react(0, 1, posts);
    }

    fn on_completion(&mut self, now: Cycle, operation: &Operation, posts: &mut Posts) {
        self.react(now, mix64(operation.tag), posts);
    }

    fn on_write(&mut self, now: Cycle, initiator: HostId, tag: u64, posts: &mut Posts) {
        self.react(now, mix64(tag) ^ u64::from(initiator.0), posts);
    }

    fn on_wake(&mut self, now: Cycle, posts: &mut Posts) {
        self.react(now, u64::MAX, posts);
    }

    fn is_over(&self) -> bool {
        self.left == 0
    }
}

/// A control whose answers are hashes over all that it has been told, down to the last cycle.
///
/// Its answers do not depend on how often it is asked. A send only makes it wait longer until the next event.
#[derive(Debug)]
struct Moody {
    /// Hash over completions and arrivals, and the sends before them.
    events: u64,
    /// Hash over sends.
    sends: u64,
    outstanding: u32,
    /// Cycle of the last event.
    last: Cycle,
    /// Cycle before which a send allows no other.
    sent: Cycle,
}

impl Moody {
    fn on_event(&mut self, now: Cycle, parts: [u64; 4]) {
        for part in parts {
            self.events = mix64(self.events ^ part);
        }
        self.events = mix64(self.events ^ self.sends ^ now);
        self.last = now;
    }
}

/// A group as a number.
fn code(group: Option<GroupId>) -> u64 {
    group.map_or(0, |group| 1 + u64::from(group.0))
}

impl InjectionControl for Moody {
    fn consent(
        &mut self,
        now: Cycle,
        kind: OperationKind,
        group: Option<GroupId>,
    ) -> InjectionDecision {
        let mood = mix64(self.events ^ (code(group) * 2 + kind as u64));
        let from = match mood % 4 {
            0 | 1 => self.sent,
            2 if self.outstanding > 0 => return InjectionDecision::Wait,
            _ => self.sent.max(self.last + (mood >> 8) % 40),
        };
        if now >= from {
            return InjectionDecision::Now;
        }
        // A part of the delay only, after which it is asked again.
        let step = 1 + (mood >> 16) % 40;
        InjectionDecision::NotBefore(from.min(now + step))
    }

    fn on_sent(&mut self, sent: &Sent) {
        assert_eq!(
            self.consent(sent.now, sent.kind, sent.group),
            InjectionDecision::Now
        );
        self.outstanding += 1;
        let facts = sent.number << 32 ^ sent.waited << 8 ^ code(sent.group) << 1;
        self.sends = mix64(self.sends ^ sent.now) ^ mix64(facts ^ sent.kind as u64);
        let pause = if self.sends.is_multiple_of(3) { 30 } else { 4 };
        self.sent = sent.now + (self.sends >> 8) % pause;
    }

    fn on_remote(&mut self, remote: &Remote) {
        let initiator = u64::from(remote.initiator);
        let group = code(Some(remote.group));
        self.on_event(remote.now, [1, remote.kind as u64, group, initiator]);
    }

    fn on_completed(&mut self, completed: &Completed) {
        self.outstanding -= 1;
        let facts = completed.number << 32 ^ completed.latency;
        let kind = completed.kind as u64;
        self.on_event(completed.now, [2, kind, code(completed.group), facts]);
    }

    fn gauges(&mut self, _: Cycle) -> InjectionGauges {
        InjectionGauges::default()
    }
}
