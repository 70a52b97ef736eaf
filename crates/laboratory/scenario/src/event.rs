//! The `[[event]]` sections: events of links during a run.

use crate::error::ScenarioError;
use crate::limits::{LONGEST, RATES, check_reroutes};
use crate::link_names::{LinkNames, link_advice};
use crate::locations::SourceLocations;
use crate::pause_storm::{PauseStorms, check_pauses};
use crate::section::Section;
use crate::switch::SwitchSettings;
use clearway_fabric::topology::Topology;
use clearway_fabric::{LinkChange, LinkEvent, LinkSchedule};
use clearway_units::{ParameterInfo, ParameterSet, Rate, SetError, Span, Time, Value};
use std::collections::BTreeMap;
use std::num::NonZero;

/// Maximum number of events in a run, including repetitions.
const MOST_EVENTS: u64 = 10_000;

clearway_units::choices! {
    /// State of a link.
    pub enum LinkState {
        /// Nothing crosses it.
        Down = "down",
        /// It works.
        Up = "up",
    }
}

clearway_units::parameters! {
    /// Event of a link.
    pub struct EventSettings {
        /// Time of the event, from the start of the simulation.
        pub at: Time = Time::ZERO, "at", "the user";
        /// Name of the link, such as "leaf0-spine3"; both of its directions change. Parallel links share a name, and the event.
        pub link: String = String::new(), "link", "the user";
        /// State of the link from then on; "auto" leaves it unchanged. While it is "down", packets on it and in front of it are lost, and
        /// switches avoid it after `topology.reroute-delay`.
        pub state: Option<LinkState> = None, "state", "the user";
        /// Rate of the link from then on; "auto" leaves it unchanged.
        pub rate: Option<Rate> = None, "rate", "the user";
        /// Probability from then on that the link loses a packet, unknown to routing (a gray failure); "auto" leaves it unchanged.
        pub packet_loss: Option<f64> = None, "packet-loss", "the user";
        /// Pause storm from then on: the host at the link repeats pause frames for all lossless classes, so that its switch sends it no
        /// packets of them. "auto" leaves it unchanged.
        pub pause_storm: Option<bool> = None, "pause-storm", "the user";
        /// Interval at which the event is repeated; "auto": never.
        pub every: Option<Span> = None, "every", "the user";
        /// Total number of times that the event happens.
        pub times: NonZero<u32> = NonZero::<u32>::MIN, "times", "the user";
    }
}

impl Section for EventSettings {
    fn set(&mut self, key: &str, value: &Value) -> Result<(), SetError> {
        ParameterSet::set(self, key, value)
    }
    fn keys(&self) -> Vec<ParameterInfo> {
        Self::describe()
    }
}

impl EventSettings {
    /// Keys with their values: time, link, and the keys of the event that are set.
    pub(crate) fn written(&self) -> Vec<(&'static str, Value)> {
        let silent = Self::default().entries();
        let is_said = |entry: &(&str, Value)| {
            ["at", "link"].contains(&entry.0) || silent.iter().all(|silent| silent != entry)
        };
        self.entries().into_iter().filter(is_said).collect()
    }

    /// Changes of the link.
    pub fn changes(&self) -> impl Iterator<Item = LinkChange> {
        let state = self.state.map(|state| match state {
            LinkState::Down => LinkChange::Down,
            LinkState::Up => LinkChange::Up,
        });
        let rate = self.rate.map(LinkChange::Rate);
        let loss = self.packet_loss.map(LinkChange::PacketLoss);
        let storm = self.pause_storm.map(LinkChange::PauseStorm);
        [state, rate, loss, storm].into_iter().flatten()
    }

    /// Times of the event.
    pub fn instants(&self) -> impl Iterator<Item = Time> {
        let every = self.every.unwrap_or(Span::ZERO);
        (0..u64::from(self.times.get())).map(move |number| self.at + every * number)
    }

    /// Checks the event as far as possible without the fabric. `is_given` tells which keys are set.
    pub(crate) fn check(&self, is_given: impl Fn(&str) -> bool) -> Result<(), ScenarioError> {
        if let Some(key) = ["at", "link"].into_iter().find(|key| !is_given(key)) {
            let fix = "give each event its time and its link, such as `at = \"100us\"` and `link = \"leaf0-spine3\"`";
            return fault(&[], format!("an `[[event]]` without `{key}`"), fix);
        }
        if self.changes().next().is_none() {
            return fault(
                &["link"],
                "an `[[event]]` that changes nothing".into(),
                "give it `state = \"down\"`, `state = \"up\"`, `rate = \"100Gbps\"`, `packet-loss = 0.01` or `pause-storm = true`",
            );
        }
        if let Some(rate) = self.rate.filter(|rate| *rate < RATES.0 || *rate > RATES.1) {
            let fix = format!("use {} to {}, or `state = \"down\"`", RATES.0, RATES.1);
            return fault(&["rate"], format!("`event.rate` cannot be {rate}"), &fix);
        }
        if let Some(loss) = self.packet_loss.filter(|loss| *loss > 1.0) {
            return fault(
                &["packet-loss"],
                format!("`event.packet-loss` cannot be {loss}"),
                "use a probability from 0 to 1",
            );
        }
        self.check_times()
    }

    /// Checks the number of repetitions, and the time of the last one.
    fn check_times(&self) -> Result<(), ScenarioError> {
        match (self.every, self.times.get()) {
            (Some(every), _) if every.is_zero() => {
                return fault(
                    &["every"],
                    "`event.every` of no time".into(),
                    "give it a time such as \"1ms\"",
                );
            }
            (Some(_), 1) => {
                let message = "`event.every` without `times`: the event would not happen again";
                return fault(
                    &["every"],
                    message.into(),
                    "say how often, as in `times = 5`",
                );
            }
            (None, 2..) => {
                let message = format!("`event.times` = {} without `every`", self.times);
                return fault(
                    &["times"],
                    message,
                    "say after what time, as in `every = \"1ms\"`",
                );
            }
            _ => {}
        }
        let every = self.every.unwrap_or(Span::ZERO).as_ps();
        let lasts = every.checked_mul(self.times.get().into());
        let end = lasts.and_then(|lasts| lasts.checked_add(self.at.as_ps()));
        if end.is_none_or(|end| end > LONGEST.as_ps()) {
            return fault(
                &["at", "every", "times"],
                "an `[[event]]` happens too late".into(),
                &format!("let all of it happen within {LONGEST} (30 days)"),
            );
        }
        Ok(())
    }
}

fn fault(keys: &[&'static str], message: String, fix: &str) -> Result<(), ScenarioError> {
    Err(ScenarioError::about(keys, message, fix))
}

/// The events of all sections on the links of a fabric, and the pause storms of attackers.
///
/// # Errors
/// If the link does not exist or is down for the whole run, or if two events contradict each other. Also if routes change too often, or if
/// switches do not support the pause frames of a pause storm.
pub(crate) fn schedule(
    (events, reroute_delay): (&[EventSettings], Span),
    (topology, switch): (&Topology, &SwitchSettings),
    storms: &PauseStorms,
    places: &SourceLocations,
) -> Result<LinkSchedule, ScenarioError> {
    let links = LinkNames::from_topology(topology, events.iter().map(|event| event.link.as_str()));
    let all: u64 = events
        .iter()
        .map(|event| u64::from(event.times.get()))
        .sum();
    if all > MOST_EVENTS {
        return Err(ScenarioError::about(
            &["times"],
            format!("{all} events of links"),
            format!("let at most {MOST_EVENTS} happen, each repetition counted"),
        )
        .or_in(places, "event", 0));
    }
    let mut said = BTreeMap::new();
    let mut scheduled = storms.events(topology);
    for (section, event) in events.iter().enumerate() {
        let placed = |error: ScenarioError| error.or_in(places, "event", section);
        if event.pause_storm.is_some() {
            check_pauses(switch, "pause-storm").map_err(placed)?;
        }
        for cable in cables(event, &links, topology).map_err(placed)? {
            for at in event.instants() {
                for change in event.changes() {
                    scheduled.push(LinkEvent { at, cable, change });
                    let other = said.insert(Aspect::new(at, cable, change), change);
                    if other.is_some_and(|other| other != change) {
                        return Err(placed(contradiction(event, at)));
                    }
                }
            }
        }
    }
    if scheduled.is_empty() {
        return Ok(LinkSchedule::default());
    }
    let schedule = LinkSchedule::new(scheduled, reroute_delay);
    check_reroutes(topology, &schedule).map_err(|error| error.or_in(places, "event", 0))?;
    Ok(schedule)
}

/// Part of a link's state at an instant, which only one event may set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Aspect(Time, usize, u8);

impl Aspect {
    fn new(at: Time, cable: usize, change: LinkChange) -> Self {
        Self(at, cable, change.kind())
    }
}

fn contradiction(event: &EventSettings, at: Time) -> ScenarioError {
    ScenarioError::about(
        &["at", "link"],
        format!(
            "another event says otherwise of `{}` at the same time, {at}",
            event.link
        ),
        "let one of them happen at another time, or remove it",
    )
}

/// The cables of an event.
fn cables(
    event: &EventSettings,
    links: &LinkNames<'_>,
    topology: &Topology,
) -> Result<Vec<usize>, ScenarioError> {
    let name = &event.link;
    let fault = |message: String, fix: &str| {
        Err(ScenarioError::about(
            &["link"],
            format!("`event.link`: {message}"),
            fix,
        ))
    };
    let cables = links.cables(name);
    if cables.is_empty() {
        return fault(format!("no link `{name}`"), &link_advice(topology, name));
    }
    if cables.iter().all(|&cable| !topology.cables[cable].up) {
        return fault(
            format!("`{name}` is down from the start"),
            "remove the setting that takes the link down, and add an event that takes it down at \"0s\"",
        );
    }
    let of_host = |cable: &usize| {
        let ends = &topology.cables[*cable].ends;
        ends.iter().any(|end| topology.is_host(*end))
    };
    if event.pause_storm.is_some() && !cables.iter().all(of_host) {
        return Err(ScenarioError::about(
            &["pause-storm", "link"],
            format!("a pause storm on `{name}`, which is not the link of a host"),
            "name the link of a host, such as `host3-leaf0`: a pause storm comes from a NIC",
        ));
    }
    let dead = |cable: &usize| topology.cables[*cable].dead_from != Time::NEVER;
    if event.state.is_some() && cables.iter().any(dead) {
        return fault(
            format!("`{name}` also has `dead-from`, and no event can end that"),
            "remove `dead-from` from `topology.links`, or give the event another link",
        );
    }
    Ok(cables
        .into_iter()
        .filter(|&cable| topology.cables[cable].up)
        .collect())
}
