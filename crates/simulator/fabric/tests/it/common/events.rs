//! Random events of links.

use super::Scenario;
use super::draw::Draw;
use clearway_fabric::{LinkChange, LinkEvent, LinkSchedule};
use clearway_units::{Rate, Span, Time};
use std::sync::Arc;

/// Events of some links, in some scenarios.
pub(super) fn random_events(draw: &mut Draw, scenario: &Scenario) -> Arc<LinkSchedule> {
    if !draw.chance(30) {
        return Arc::default();
    }
    let cables = scenario.topology.cables.iter().enumerate();
    let up: Vec<usize> = cables
        .filter(|(_, cable)| cable.up)
        .map(|(index, _)| index)
        .collect();
    let mut events = Vec::new();
    for _ in 0..draw.between(1, 4) {
        let cable = draw.pick(&up);
        // Some at round instants, at which other events also happen.
        let at = match draw.chance(30) {
            true => Time::from_us(draw.between(0, 60)),
            false => Time::from_ps(draw.between(0, 60_000_000)),
        };
        let mut add = |after: Span, change| {
            let at = at + after;
            events.push(LinkEvent { at, cable, change });
        };
        match draw.below(6) {
            5 => {
                add(Span::ZERO, LinkChange::PauseStorm(true));
                // Some have no end, and some begin once more within themselves.
                if draw.chance(80) {
                    let lasts = Span::from_ps(draw.between(0, 50_000_000));
                    add(lasts, LinkChange::PauseStorm(false));
                }
            }
            0 => {
                let rate = scenario.topology.cables[cable].rate;
                add(
                    Span::ZERO,
                    LinkChange::Rate(Rate::from_bps(rate.as_bps() / draw.between(2, 9))),
                );
                add(
                    Span::from_ps(draw.between(0, 50_000_000)),
                    LinkChange::Rate(rate),
                );
            }
            1 => {
                add(
                    Span::ZERO,
                    LinkChange::PacketLoss(draw.pick(&[0.01, 0.3, 1.0])),
                );
                add(
                    Span::from_us(draw.between(1, 40)),
                    LinkChange::PacketLoss(0.0),
                );
            }
            _ => {
                let mut after = Span::ZERO;
                for _ in 0..draw.between(1, 3) {
                    add(after, LinkChange::Down);
                    after += Span::from_ps(draw.between(0, 20_000_000));
                    add(after, LinkChange::Up);
                    after += Span::from_ps(draw.between(1, 20_000_000));
                }
                if draw.chance(20) {
                    add(after, LinkChange::Down);
                }
            }
        }
    }
    draw.shuffle(&mut events);
    let delay = draw.pick(&[
        Span::ZERO,
        Span::from_ns(1_234),
        Span::from_us(10),
        Span::from_us(200),
    ]);
    Arc::new(LinkSchedule::new(events, delay))
}
