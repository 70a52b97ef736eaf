use super::*;
use clearway_units::Purpose;

const ATTACK: Attack = Attack {
    kind: AttackKind::Staggered,
    hosts: Vec::new(),
    share: 1.0,
    above: Bytes::new(1000),
    bytes: Bytes::new(1000),
    queue_pairs: None,
    gap: Span::from_us(10),
    target: HostId(8),
    variant: 3,
};

/// Hosts 0 to 3 attack.
fn attack(kind: AttackKind) -> Attack {
    Attack {
        kind,
        hosts: (0..4).map(HostId).collect(),
        ..ATTACK
    }
}

fn flow(label: u64, src: u32, bytes: u64) -> FlowSpec {
    let start = Time::ZERO + Span::from_us(label);
    FlowSpec::timed(label, HostId(src), HostId(9), Bytes::new(bytes), start)
}

fn run(attack: &Attack, flows: Vec<FlowSpec>) -> Result<Vec<FlowSpec>, AttackFault> {
    let workload = Workload {
        flows,
        triggers: Vec::new(),
    };
    let mut random = RandomStream::new(1, Purpose::Workload, 0);
    attack
        .apply(workload, &mut random)
        .map(|workload| workload.flows)
}

/// Label, receiver, bytes and start in microseconds of the pieces.
fn pieces(flows: &[FlowSpec]) -> Vec<(u64, u32, u64, u64)> {
    let piece = |flow: &FlowSpec| match flow.start {
        Start::At(time) => (
            flow.label,
            flow.dst.0,
            flow.bytes.as_u64(),
            time.as_ps() / 1_000_000,
        ),
        _ => unreachable!("timed"),
    };
    flows.iter().map(piece).collect()
}

#[test]
fn parallel_pieces_start_at_once() {
    let flows = run(&attack(AttackKind::Parallel), vec![flow(5, 1, 2500)]).unwrap();
    let expected = [(5, 9, 1000, 5), (6, 9, 1000, 5), (7, 9, 500, 5)];
    assert_eq!(pieces(&flows), expected);
    assert!(flows.iter().all(|flow| flow.attack == Some(5)));
    let equal = Attack {
        queue_pairs: Some(2),
        ..attack(AttackKind::Parallel)
    };
    let flows = run(&equal, vec![flow(5, 1, 2500)]).unwrap();
    assert_eq!(pieces(&flows), [(5, 9, 1250, 5), (6, 9, 1250, 5)]);
}

#[test]
fn staggered_pieces_follow_each_other_among_the_flows_of_others() {
    let flows = vec![flow(1, 0, 2001), flow(8, 7, 5000), flow(12, 2, 1000)];
    let flows = run(&attack(AttackKind::Staggered), flows).unwrap();
    let expected = [
        (1, 9, 1000, 1),
        (8, 9, 5000, 8),
        (13, 9, 1000, 11),
        (12, 9, 1000, 12),
        (14, 9, 1, 21),
    ];
    assert_eq!(pieces(&flows), expected);
    let attackers: Vec<bool> = flows.iter().map(|flow| flow.attack.is_some()).collect();
    assert_eq!(attackers, [true, false, true, false, true]);
}

#[test]
fn overlays_lead_to_the_other_attackers_and_never_back() {
    let mut inner = flow(1, 3, 4000);
    inner.dst = HostId(1);
    let flows = run(&attack(AttackKind::Overlay), vec![inner]).unwrap();
    let receivers: Vec<u32> = flows.iter().map(|flow| flow.dst.0).collect();
    assert_eq!(receivers, [0, 2, 0, 2], "one step forwards, one back");
    for hosts in 3..40 {
        let many = Attack {
            hosts: (0..hosts).map(HostId).collect(),
            ..attack(AttackKind::Overlay)
        };
        let steps = many.steps().unwrap();
        assert!(steps.iter().all(|step| (1..hosts as usize).contains(step)));
        // Each step alone visits all hosts.
        for step in steps {
            let ring = (0..hosts as usize).map(|turn| turn * step % hosts as usize);
            let visited: std::collections::BTreeSet<usize> = ring.collect();
            assert_eq!(visited.len(), hosts as usize);
        }
    }
    let outer = run(&attack(AttackKind::Overlay), vec![flow(1, 3, 4000)]);
    assert_eq!(outer, Err(AttackFault::Nothing));
    let two = Attack {
        hosts: vec![HostId(0), HostId(1)],
        ..attack(AttackKind::Overlay)
    };
    let fault = run(&two, vec![flow(1, 0, 4000)]).unwrap_err();
    assert_eq!(fault, AttackFault::TooFewHosts { hosts: 2 });
}

#[test]
fn parallel_overlays_start_at_once() {
    let mut inner = flow(1, 3, 4000);
    inner.dst = HostId(1);
    let flows = run(&attack(AttackKind::ParallelOverlay), vec![inner.clone()]).unwrap();
    let expected = [
        (1, 0, 1000, 1),
        (2, 2, 1000, 1),
        (3, 0, 1000, 1),
        (4, 2, 1000, 1),
    ];
    assert_eq!(pieces(&flows), expected);
    let equal = Attack {
        queue_pairs: Some(2),
        ..attack(AttackKind::ParallelOverlay)
    };
    let flows = run(&equal, vec![inner]).unwrap();
    assert_eq!(pieces(&flows), [(1, 0, 2000, 1), (2, 2, 2000, 1)]);
    let outer = run(&attack(AttackKind::ParallelOverlay), vec![flow(1, 3, 4000)]);
    assert_eq!(outer, Err(AttackFault::Nothing));
}

#[test]
fn fan_outs_divide_evenly_among_the_other_attackers() {
    let mut inner = flow(1, 2, 3001);
    inner.dst = HostId(1);
    let flows = run(&attack(AttackKind::FanOut), vec![inner.clone()]).unwrap();
    let expected = [(1, 3, 1001, 1), (2, 0, 1001, 1), (3, 1, 999, 1)];
    assert_eq!(pieces(&flows), expected);
    let two = Attack {
        queue_pairs: Some(2),
        ..attack(AttackKind::FanOut)
    };
    let flows = run(&two, vec![inner]).unwrap();
    assert_eq!(pieces(&flows), [(1, 3, 1501, 1), (2, 0, 1500, 1)]);
    let outer = run(&two, vec![flow(1, 2, 4000)]);
    assert_eq!(outer, Err(AttackFault::Nothing));
    let pair = Attack {
        hosts: vec![HostId(0), HostId(1)],
        ..two
    };
    let fault = run(&pair, vec![flow(1, 0, 4000)]).unwrap_err();
    assert_eq!(fault, AttackFault::TooFewHosts { hosts: 2 });
}

#[test]
fn short_flows_follow_each_other_to_the_same_receiver() {
    let short = Attack {
        bytes: Bytes::new(800),
        gap: Span::from_us(2),
        ..attack(AttackKind::ShortFlows)
    };
    let flows = run(&short, vec![flow(1, 0, 2000)]).unwrap();
    let expected = [(1, 9, 800, 1), (2, 9, 800, 3), (3, 9, 400, 5)];
    assert_eq!(pieces(&flows), expected);
}

#[test]
fn incasts_send_whole_messages_to_one_receiver_together() {
    let mut to_target = flow(9, 8, 5000);
    to_target.src = HostId(3);
    let flows = vec![
        flow(1, 0, 2000),
        flow(2, 1, 3000),
        flow(3, 7, 4000),
        flow(6, 0, 2500),
        flow(7, 2, 1500),
        to_target,
    ];
    let flows = run(&attack(AttackKind::Incast), flows).unwrap();
    // The first message of hosts 0, 1, 2 and 3 at 9 us, the second of host 0 at its own time, which is before.
    let expected = [
        (3, 9, 4000, 3),
        (6, 8, 2500, 6),
        (1, 8, 2000, 9),
        (2, 8, 3000, 9),
        (7, 8, 1500, 9),
        (9, 8, 5000, 9),
    ];
    assert_eq!(pieces(&flows), expected);
    let own = Attack {
        target: HostId(0),
        ..attack(AttackKind::Incast)
    };
    let flows = run(&own, vec![flow(1, 0, 2000), flow(2, 1, 2000)]).unwrap();
    assert_eq!(
        pieces(&flows),
        [(1, 9, 2000, 1), (2, 0, 2000, 2)],
        "nobody sends to himself"
    );
}

#[test]
fn nics_that_disobey_send_the_message_as_it_is() {
    let flows = run(
        &attack(AttackKind::Disobey),
        vec![flow(1, 0, 9000), flow(2, 7, 9000)],
    )
    .unwrap();
    assert_eq!(pieces(&flows), [(1, 9, 9000, 1), (2, 9, 9000, 2)]);
    assert_eq!([flows[0].variant, flows[1].variant], [3, 0]);
    assert_eq!([flows[0].attack, flows[1].attack], [Some(1), None]);
}

#[test]
fn bytes_and_flows_of_others_stay() {
    let mut flows: Vec<FlowSpec> = (0..200)
        .map(|i| flow(i, i as u32 % 8, 1 + i * 97))
        .collect();
    for flow in flows.iter_mut().filter(|flow| flow.src.0 == 2) {
        flow.dst = HostId(3);
    }
    let total = |flows: &[FlowSpec]| flows.iter().map(|flow| flow.bytes.as_u64()).sum::<u64>();
    for kind in AttackKind::ALL.iter().copied() {
        let attacked = run(&attack(kind), flows.clone()).unwrap();
        assert_eq!(total(&attacked), total(&flows));
        let others = |flows: &[FlowSpec]| -> Vec<FlowSpec> {
            let others = flows.iter().filter(|flow| flow.src.0 >= 4);
            others.cloned().collect()
        };
        assert_eq!(others(&attacked), others(&flows));
        let labels: std::collections::BTreeSet<u64> =
            attacked.iter().map(|flow| flow.label).collect();
        assert_eq!(labels.len(), attacked.len());
    }
}

#[test]
fn a_share_of_the_flows_is_drawn() {
    let half = Attack {
        share: 0.5,
        ..attack(AttackKind::Parallel)
    };
    let flows: Vec<FlowSpec> = (0..1000).map(|i| flow(i, 1, 1500)).collect();
    let attacked = run(&half, flows).unwrap();
    let count = attacked.iter().filter(|flow| flow.attack.is_some()).count();
    assert!((900..1100).contains(&count), "{count} pieces of 1000 flows");
}

#[test]
fn flows_that_depend_on_others_are_refused() {
    let mut waiting = flow(3, 1, 5000);
    waiting.on_sent = Some(crate::TriggerIndex(0));
    let fault = run(&attack(AttackKind::Parallel), vec![waiting.clone()]).unwrap_err();
    assert_eq!(fault, AttackFault::Dependent { label: 3 });
    waiting.src = HostId(7);
    let plain = FlowSpec { ..flow(4, 2, 5000) };
    assert!(run(&attack(AttackKind::Parallel), vec![waiting, plain]).is_ok());
}
