//! Attackers and victims: results of each side of a run with an attack.
//!
//! A message of an attacker consists of several flows. The message lasts from the start of the first flow to the end of the last flow.
//! A user is a host that sends, or, where sections of the workload name tenants, a host of a tenant. Shares are compared between users,
//! because an attack multiplies flows.

use crate::quantity::{count, factor, microseconds, prefixed};
use crate::record::FlowRow;
use crate::statistics::Distribution;
use clearway_units::statistics::jain_index;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// User of the network: a host that sends, for a tenant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct User {
    /// Number of the tenant; 0 for sections without a tenant.
    pub tenant: u32,
    /// Number of the host.
    pub host: u32,
}

impl User {
    /// The user of a flow, if sections of the workload have these tenants.
    fn from_flow(flow: &FlowRow, tenants: &[u32]) -> Self {
        let tenant = tenants.get(flow.section as usize);
        Self {
            tenant: tenant.copied().unwrap_or(0),
            host: flow.src,
        }
    }
}

/// Results of one side.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AttackSide {
    /// Number of users.
    pub users: u64,
    /// Number of messages.
    pub messages: u64,
    /// Messages that arrived completely.
    pub completed: u64,
    /// Flows that carried the messages.
    pub flows: u64,
    /// Goodput of the users in bit/s: bytes of a user's completed messages over the sum of their completion times, zero if no message
    /// completed; `None` without users.
    pub goodput_bps: Option<Distribution>,
    /// Completion times of messages in microseconds; `None` if no message completed.
    pub fct_us: Option<Distribution>,
    /// Completion times as multiples of the times alone on an idle network, for messages of one flow; `None` without such messages.
    pub slowdown: Option<Distribution>,
}

/// Message with the flows that carried it.
#[derive(Debug, Clone, Copy)]
struct Message {
    flows: u64,
    bytes: u64,
    /// First start and last finish, in picoseconds; `None` if a flow of the message did not complete.
    times: Option<(u64, u64)>,
    slowdown: Option<f64>,
}

impl Message {
    fn from_flow(flow: &FlowRow) -> Self {
        let times = flow.start.zip(flow.finish);
        Self {
            flows: 1,
            bytes: flow.bytes,
            times: times.map(|(start, finish)| (start.as_ps(), finish.as_ps())),
            slowdown: flow.slowdown(),
        }
    }

    fn add(&mut self, other: Self) {
        self.flows += other.flows;
        self.bytes = self.bytes.saturating_add(other.bytes);
        let times = self.times.zip(other.times);
        self.times = times.map(|(own, other)| (own.0.min(other.0), own.1.max(other.1)));
        self.slowdown = None;
    }

    fn picoseconds(&self) -> Option<u64> {
        self.times.map(|(start, finish)| finish - start)
    }
}

/// Messages of one side, by sender, section, label and flow.
type Messages = BTreeMap<(User, u32, u64, u32), Message>;

/// Results of both sides.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AttackSides {
    /// Users that attack.
    pub attackers: AttackSide,
    /// All other users.
    pub victims: AttackSide,
    /// Jain's index over the goodputs of all users; `None` with fewer than two.
    pub user_fairness: Option<f64>,
}

impl AttackSides {
    /// Results of the users that take part in an attack, and of all others; `tenants` are the sections' tenants. `None` without an attack.
    pub fn from_flows(flows: &[FlowRow], tenants: &[u32]) -> Option<Self> {
        let pieces = flows.iter().filter(|flow| flow.attack.is_some());
        let attackers: BTreeSet<User> = pieces.map(|flow| User::from_flow(flow, tenants)).collect();
        let attacks = |user| attackers.contains(&user);
        (!attackers.is_empty()).then(|| Self::among(flows, tenants, attacks))
    }

    /// Results of the users for which `attacks` is true, and of all others; `tenants` are the tenants of the sections.
    pub fn among(flows: &[FlowRow], tenants: &[u32], attacks: impl Fn(User) -> bool) -> Self {
        let [attackers, victims] = [true, false].map(|side| {
            let mut messages = Messages::new();
            for flow in flows {
                let user = User::from_flow(flow, tenants);
                if attacks(user) != side {
                    continue;
                }
                // Labels of several sections may be equal. A flow that is not a piece of a message is a whole message.
                let key = match flow.attack {
                    Some(label) => (user, flow.section, label, u32::MAX),
                    None => (user, flow.section, flow.label, flow.flow),
                };
                let message = Message::from_flow(flow);
                let whole = messages.entry(key);
                whole
                    .and_modify(|whole| whole.add(message))
                    .or_insert(message);
            }
            messages
        });
        let goodputs = goodputs(&attackers).into_iter().chain(goodputs(&victims));
        Self {
            user_fairness: jain_index(goodputs),
            attackers: AttackSide::from_messages(&attackers),
            victims: AttackSide::from_messages(&victims),
        }
    }
}

/// Runs of one seed, without and with an attack.
#[derive(Debug, Clone, PartialEq)]
pub struct AttackPair {
    /// Without the attack.
    pub before: AttackSides,
    /// With the attack.
    pub after: AttackSides,
}

/// Headings of the columns of [`AttackSides::rows`] after the first.
pub const HEADINGS: [&str; 7] = [
    "users",
    "messages",
    "completed",
    "flows",
    "goodput of a user",
    "p99 FCT",
    "p99 slowdown",
];

/// Unit of the table of both sides.
pub const NOTE: &str =
    "A message of an attacker may be made of several flows; slowdown is of messages in one flow.";

impl AttackSides {
    /// Both sides as rows of texts: name, then the columns of [`HEADINGS`].
    pub fn rows(&self) -> [[String; 8]; 2] {
        [("attackers", &self.attackers), ("victims", &self.victims)].map(|(name, party)| {
            let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".into());
            [
                name.into(),
                count(party.users),
                count(party.messages),
                count(party.completed),
                count(party.flows),
                or_dash(party.goodput_bps.map(|all| prefixed(all.mean) + "bit/s")),
                or_dash(party.fct_us.map(|all| microseconds(all.p99))),
                or_dash(party.slowdown.map(|all| factor(all.p99))),
            ]
        })
    }

    /// Fairness among users, in a sentence.
    pub fn fairness_sentence(&self) -> Option<String> {
        let index = self.user_fairness?;
        Some(format!(
            "Jain's index over the goodputs of users: {index:.3}."
        ))
    }
}

/// Goodput of each user in bit/s; zero for a user that completed no message.
fn goodputs(messages: &Messages) -> Vec<f64> {
    let mut users: BTreeMap<User, (u64, u64)> = BTreeMap::new();
    for (&(user, ..), message) in messages {
        let (bytes, ps) = users.entry(user).or_default();
        if let Some(lasted) = message.picoseconds() {
            *bytes = bytes.saturating_add(message.bytes);
            *ps = ps.saturating_add(lasted);
        }
    }
    let goodput = |(bytes, ps): (u64, u64)| match ps {
        0 => 0.0,
        ps => bytes as f64 * 8.0 / (ps as f64 * 1e-12),
    };
    users.into_values().map(goodput).collect()
}

impl AttackSide {
    fn from_messages(messages: &Messages) -> Self {
        let done = || messages.values().filter(|message| message.times.is_some());
        let users: BTreeSet<User> = messages.keys().map(|&(user, ..)| user).collect();
        Self {
            users: users.len() as u64,
            messages: messages.len() as u64,
            completed: done().count() as u64,
            flows: messages.values().map(|message| message.flows).sum(),
            goodput_bps: Distribution::of_ratios(goodputs(messages)),
            fct_us: Distribution::of_picoseconds(done().filter_map(Message::picoseconds).collect()),
            slowdown: Distribution::of_ratios(
                done().filter_map(|message| message.slowdown).collect(),
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::flow;
    use clearway_units::{Span, Time};

    /// A flow of 1 MB from 0 to `us` microseconds.
    fn row(number: u32, src: u32, us: u64) -> FlowRow {
        FlowRow {
            src,
            bytes: 1_000_000,
            start: Some(Time::ZERO),
            finish: Some(Time::ZERO + Span::from_us(us)),
            ..flow(number, None)
        }
    }

    #[test]
    fn pieces_are_one_message_of_one_user() {
        let piece = |number, us| FlowRow {
            attack: Some(7),
            ..row(number, 3, us)
        };
        let flows = [piece(0, 100), row(1, 4, 400), piece(2, 200), row(3, 5, 400)];
        assert_eq!(AttackSides::from_flows(&flows[1..2], &[]), None);
        let parties = AttackSides::from_flows(&flows, &[]).unwrap();
        let (attackers, victims) = (&parties.attackers, &parties.victims);
        assert_eq!(
            (attackers.users, attackers.messages, attackers.flows),
            (1, 1, 2)
        );
        assert_eq!((victims.users, victims.messages, victims.flows), (2, 2, 2));
        // 2 MB in 200 us, 1 MB in 400 us.
        assert_eq!(attackers.goodput_bps.unwrap().mean, 80e9);
        assert_eq!(victims.goodput_bps.unwrap().mean, 20e9);
        assert_eq!(attackers.fct_us.unwrap().max, 200.0);
        assert_eq!(
            (attackers.slowdown, victims.slowdown.is_some()),
            (None, true)
        );
        // (80 + 20 + 20)^2 / (3 * (6400 + 400 + 400))
        assert!((parties.user_fairness.unwrap() - 14400.0 / 21600.0).abs() < 1e-12);
    }

    #[test]
    fn a_host_of_two_tenants_is_two_users() {
        // Sections 0 and 2 are of tenant 1, section 1 is of tenant 2. Host 3 sends for both.
        let section = |section, row| FlowRow { section, ..row };
        let attack = |row| FlowRow {
            attack: Some(0),
            ..row
        };
        let flows = [
            section(0, attack(row(0, 3, 100))),
            section(1, row(1, 3, 400)),
            section(1, row(2, 4, 400)),
            // A message of equal label in another section is another message.
            section(2, attack(row(3, 3, 100))),
        ];
        let sides = |tenants: &[u32]| {
            let parties = AttackSides::from_flows(&flows, tenants).unwrap();
            [parties.attackers, parties.victims].map(|party| {
                let goodput = party.goodput_bps.unwrap().mean;
                (party.users, party.messages, goodput)
            })
        };
        assert_eq!(sides(&[1, 2, 1]), [(1, 2, 80e9), (2, 2, 20e9)]);
        // Without tenants host 3 is one user, and its slow message dilutes its gain from the attack: 3 MB in 600 us.
        assert_eq!(sides(&[]), [(1, 3, 40e9), (1, 1, 20e9)]);
    }

    #[test]
    fn a_message_without_one_of_its_pieces_is_not_complete() {
        let mut flows = [row(0, 3, 100), row(1, 3, 100), row(2, 4, 100)];
        flows[0].attack = Some(1);
        flows[1].attack = Some(1);
        flows[1].finish = None;
        let parties = AttackSides::from_flows(&flows, &[]).unwrap();
        assert_eq!(
            (parties.attackers.messages, parties.attackers.completed),
            (1, 0)
        );
        assert_eq!(parties.attackers.goodput_bps.unwrap().max, 0.0);
        assert_eq!(parties.user_fairness, Some(0.5));
    }
}
