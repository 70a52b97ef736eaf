use super::*;
use clearway_units::Value;
use proptest::prelude::*;

pub(super) const GROUP: GroupId = GroupId(0);

/// The last of four GPUs that are one group, with packets of a header and so much payload.
pub(super) fn facts(payload: u32) -> InjectionFacts<'static> {
    const MEMBERSHIPS: &[Membership] = &[Membership {
        group: GROUP,
        members: 4,
        rank: 3,
    }];
    InjectionFacts {
        gpu: HostId(3),
        seed: 7,
        memberships: MEMBERSHIPS,
        sizes: FlitSizes { header: 1, payload },
    }
}

pub(super) fn sent(now: Cycle, number: u64, kind: OperationKind, group: Option<GroupId>) -> Sent {
    Sent {
        now,
        number,
        kind,
        group,
        waited: 0,
    }
}

pub(super) fn remote(now: Cycle, kind: OperationKind, initiator: u32) -> Remote {
    Remote {
        now,
        kind,
        group: GROUP,
        initiator,
    }
}

/// The completion of a sent operation.
pub(super) fn completed(sent: &Sent, latency: Cycle) -> Completed {
    Completed {
        now: sent.now + latency,
        number: sent.number,
        kind: sent.kind,
        group: sent.group,
        latency,
    }
}

#[derive(Debug, Clone)]
enum Step {
    Pass(Cycle),
    Arrive(OperationKind, u32),
    Send(OperationKind, bool),
    Complete(prop::sample::Index),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let kind = || prop_oneof![Just(OperationKind::Read), Just(OperationKind::Write)];
    prop::collection::vec(
        prop_oneof![
            2 => (1u64..40).prop_map(Step::Pass),
            1 => (1u64..4000).prop_map(Step::Pass),
            4 => (kind(), 0u32..3).prop_map(|(kind, rank)| Step::Arrive(kind, rank)),
            6 => (kind(), any::<bool>()).prop_map(|(kind, group)| Step::Send(kind, group)),
            3 => any::<prop::sample::Index>().prop_map(Step::Complete),
        ],
        0..200,
    )
}

/// A GPU with nothing but its control.
struct Gpu {
    control: Box<dyn InjectionControl>,
    now: Cycle,
    number: u64,
    under_way: Vec<Sent>,
}

impl Gpu {
    fn new(settings: &InjectionSettings) -> Self {
        Self {
            control: settings.build(&facts(8)),
            now: 0,
            number: 0,
            under_way: Vec::new(),
        }
    }

    fn ask(&mut self, kind: OperationKind, group: Option<GroupId>) -> InjectionDecision {
        let consent = self.control.consent(self.now, kind, group);
        if let InjectionDecision::NotBefore(cycle) = consent {
            assert!(cycle > self.now, "{cycle} is not after {}", self.now);
        }
        if consent == InjectionDecision::Wait {
            assert!(!self.under_way.is_empty(), "nothing to wait for");
        }
        consent
    }

    fn complete(&mut self, index: usize) {
        let sent = self.under_way.remove(index);
        let completed = completed(&sent, self.now - sent.now);
        self.control.on_completed(&completed);
    }

    fn step(&mut self, step: &Step) -> Option<InjectionDecision> {
        match step {
            Step::Pass(cycles) => self.now += cycles,
            Step::Arrive(kind, rank) => self.control.on_remote(&remote(self.now, *kind, *rank)),
            Step::Send(kind, group) => {
                let group = group.then_some(GROUP);
                let consent = self.ask(*kind, group);
                if consent == InjectionDecision::Now {
                    let sent = sent(self.now, self.number, *kind, group);
                    self.control.on_sent(&sent);
                    self.under_way.push(sent);
                    self.number += 1;
                }
                return Some(consent);
            }
            Step::Complete(index) => {
                if !self.under_way.is_empty() {
                    self.complete(index.index(self.under_way.len()));
                }
            }
        }
        None
    }

    /// Cycles until the control consents once more, with nothing under way and nothing arriving.
    fn recovery(&mut self) -> Cycle {
        while !self.under_way.is_empty() {
            self.now += 1;
            self.complete(0);
        }
        let start = self.now;
        for kind in [OperationKind::Read, OperationKind::Write] {
            while let InjectionDecision::NotBefore(cycle) = self.ask(kind, Some(GROUP)) {
                self.now = cycle;
            }
        }
        self.now - start
    }
}

/// Settings of every control, and variants of those that have any.
fn all_settings() -> Vec<InjectionSettings> {
    let registry = InjectionRegistry::builtin();
    let variants = [
        ("tokens", Value::Text("even".into())),
        ("token-cap", Value::Float(20.5)),
        ("wm-initial", Value::Float(100.0)),
        ("handover", Value::Boolean(false)),
        ("scale-sends", Value::Boolean(false)),
        ("carry-cap", Value::Float(0.0)),
    ];
    let mut all = Vec::new();
    for (name, _) in registry.controls() {
        let default = registry.control(name).expect("a listed control");
        for (key, value) in &variants {
            let mut settings = default.clone();
            if settings.set(key, value).is_ok() {
                all.push(settings);
            }
        }
        all.push(default);
    }
    all
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Questions and gauges change nothing, and every control consents again.
    #[test]
    fn controls_conform(steps in steps()) {
        for settings in all_settings() {
            let (mut quiet, mut asked) = (Gpu::new(&settings), Gpu::new(&settings));
            for step in &steps {
                for kind in [OperationKind::Read, OperationKind::Write] {
                    asked.ask(kind, Some(GROUP));
                    let _ = asked.control.gauges(asked.now);
                    asked.ask(kind, None);
                }
                prop_assert_eq!(quiet.step(step), asked.step(step), "{:?}", settings);
            }
            let now = quiet.now;
            prop_assert_eq!(quiet.control.gauges(now), asked.control.gauges(now));
            let outstanding = 10 * quiet.under_way.len() as u64;
            prop_assert_eq!(quiet.control.gauges(now).outstanding, outstanding);
            // A member's 200 operations of 9 flits and one's own, at the least watermark.
            let recovery = quiet.recovery();
            prop_assert_eq!(recovery, asked.recovery());
            prop_assert!(recovery < 200 * 4 * 9 * 50, "{:?}: {}", settings, recovery);
        }
    }
}

#[test]
fn settings_that_cannot_work_are_refused() {
    let number = Value::Float;
    let refused = [
        ("window", "window", Value::Integer(0)),
        ("aimd", "wm-min", number(0.0)),
        ("aimd", "wm-min", number(2469.0)),
        ("aimd", "wm-min", number(-1.0)),
        ("aimd", "wm-max", number(0.5)),
        ("aimd", "wm-max", number(1e10)),
        ("aimd", "wm-initial", number(99.0)),
        ("aimd", "wm-initial", number(2469.0)),
        ("aimd", "token-cap", number(0.5)),
        ("aimd", "base-md", number(1.5)),
        ("aimd", "latency-max", Value::Integer(2000)),
        ("3cpo", "wm-min", number(0.0)),
        ("3cpo", "base-md", number(1.5)),
        ("3cpo", "wm-increase", number(1e10)),
        ("3cpo", "remote-scaling", number(1.1)),
        ("3cpo", "remote-scaling-to", Value::Integer(1000)),
        ("3cpo", "carry-cap", number(f64::INFINITY)),
    ];
    for (name, key, value) in refused {
        let mut settings = InjectionRegistry::builtin().control(name).expect("known");
        assert_eq!(settings.check(), Ok(()));
        if settings.set(key, &value).is_ok() {
            let refusal = settings.check().expect_err("an invalid setting");
            let named = refusal.key == key || refusal.to_string().contains("wm-");
            assert!(named, "{name} {key} = {value}: {refusal}");
        }
    }
    let nan = ThreeCpoParameters {
        carry_cap: f64::NAN,
        ..Default::default()
    };
    let refusal = InjectionSettings::with::<ThreeCpo>(nan).check();
    assert_eq!(refusal.map_err(|refusal| refusal.key), Err("carry-cap"));
}

#[test]
#[should_panic(expected = "`wm-min` has to be at least a millionth")]
fn controls_are_not_built_with_settings_that_cannot_work() {
    let mut settings = InjectionSettings::defaults::<Aimd>();
    settings
        .set("wm-min", &Value::Integer(0))
        .expect("a number");
    settings.build(&facts(8));
}

/// A control of another crate: an operation each `interval` cycles.
#[derive(Debug)]
struct Metronome {
    interval: Cycle,
    next: Cycle,
}

clearway_units::parameters! {
    /// Settings of the control of the tests.
    pub struct MetronomeParameters {
        /// Cycles between two operations.
        pub interval: u64 = 10, "interval", "nowhere";
    }
}

impl InjectionDefinition for Metronome {
    const NAME: &'static str = "metronome";
    const SUMMARY: &'static str = "an operation at regular intervals";
    type Parameters = MetronomeParameters;

    fn new(parameters: &MetronomeParameters, _: &InjectionFacts<'_>) -> Self {
        Self {
            interval: parameters.interval,
            next: 0,
        }
    }
}

impl InjectionControl for Metronome {
    fn consent(&mut self, now: Cycle, _: OperationKind, _: Option<GroupId>) -> InjectionDecision {
        if now >= self.next {
            InjectionDecision::Now
        } else {
            InjectionDecision::NotBefore(self.next)
        }
    }
    fn on_sent(&mut self, sent: &Sent) {
        self.next = sent.now + self.interval;
    }
    fn on_remote(&mut self, _: &Remote) {}
    fn on_completed(&mut self, _: &Completed) {}
    fn gauges(&mut self, _: Cycle) -> InjectionGauges {
        InjectionGauges::default()
    }
}

#[test]
fn controls_of_other_crates_are_registered() {
    let registry = InjectionRegistry::builtin().with_control::<Metronome>();
    let names: Vec<_> = registry.controls().map(|(name, _)| name).collect();
    assert_eq!(names, ["none", "window", "aimd", "3cpo", "metronome"]);
    let mut settings = registry.control("metronome").expect("registered");
    settings.set("interval", &Value::Integer(3)).expect("a key");
    assert_eq!(settings.entries(), [("interval", Value::Integer(3))]);
    assert_eq!(settings.describe()[0].default, Value::Integer(10));
    assert_ne!(settings, registry.control("metronome").expect("registered"));
    let mut gpu = Gpu::new(&settings);
    let send = Step::Send(OperationKind::Read, false);
    assert_eq!(gpu.step(&send), Some(InjectionDecision::Now));
    assert_eq!(gpu.step(&send), Some(InjectionDecision::NotBefore(3)));
    assert_eq!(registry.control("nothing"), None);
}

#[test]
#[should_panic(expected = "two injection controls are called `none`")]
fn names_are_unique() {
    let _ = InjectionRegistry::builtin().with_control::<NoControl>();
}

#[test]
fn keys_of_a_control_are_unique() {
    for settings in all_settings() {
        let mut keys: Vec<_> = settings.entries().into_iter().map(|(key, _)| key).collect();
        let count = keys.len();
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), count, "{}", settings.name());
        assert_eq!(settings.describe().len(), count);
    }
}

#[test]
fn windows_count_reads_and_writes_apart_and_unicast_too() {
    let mut gpu = Gpu::new(&InjectionSettings::defaults::<Window>());
    let mut send = |kind, group| gpu.step(&Step::Send(kind, group));
    let (read, write) = (OperationKind::Read, OperationKind::Write);
    for group in [true, false, true] {
        assert_eq!(send(read, group), Some(InjectionDecision::Now));
    }
    assert_eq!(send(read, false), Some(InjectionDecision::Wait));
    assert_eq!(send(write, true), Some(InjectionDecision::Now));
    gpu.complete(1);
    assert_eq!(
        gpu.step(&Step::Send(read, true)),
        Some(InjectionDecision::Now)
    );
    assert_eq!(
        gpu.step(&Step::Send(read, true)),
        Some(InjectionDecision::Wait)
    );
    assert_eq!(gpu.control.gauges(0).outstanding, 40);
}
