//! A soak: many messages through a fabric that loses, duplicates, reorders and marks packets. A spine dies and comes back, and the receiver
//! loses all state in the middle.

use crate::bed::{find, up};
use crate::fault::Fault;
use crate::hosts::Hosts;
use crate::name::BedName;
use crate::plan::{BedPlan, Switches};
use crate::run::{Guard, LEAD, SHORT, interrupted, tasks, unix};
use crate::setup::BedSetup;
use crate::softswitch::{SoftSwitch, scenario_text};
use crate::task::{HostCommand, HostReply, HostTask, Soak, SoakReport};
use clearway_lab::Laboratory;
use serde::Serialize;
use std::path::Path;
use std::thread;
use std::time::Duration;

/// The fabric, and its changes.
const SCENARIO: &str = "testbed-permutation";
const KEYS: [&str; 3] = [
    "topology.link-rate=500Mbps",
    "switch.queue=500KB",
    "switch.ecn={kmin=\"75KB\",kmax=\"225KB\"}",
];
/// Impairments of links from the start. A path crosses two links between switches.
const IMPAIRMENTS: [&str; 2] = [
    "link leaf*-spine* loss 0.5% duplicate 0.5% reorder 2% 2ms",
    "link leaf*-spine2 mark 100%",
];
/// Hosts that send and receive, under different leaves.
const SENDER: usize = 0;
const RECEIVER: usize = 2;
/// Time in which some messages of a batch arrive.
const MIDDLE: Duration = Duration::from_millis(50);
/// Time without progress after which a soak fails.
const STALLED: Duration = Duration::from_secs(60);

/// Request for a soak.
pub struct SoakRequest<'a> {
    /// Components that scenarios may name.
    pub laboratory: &'a Laboratory,
    /// Name of the bed.
    pub name: &'a BedName,
    /// Number of messages.
    pub messages: u64,
    /// Seed of sizes and contents.
    pub seed: u64,
    /// The program to start.
    pub program: &'a Path,
    /// Arguments of the program for a host.
    pub agent: &'a [&'a str],
    /// True once the user interrupts.
    pub interrupted: &'a dyn Fn() -> bool,
    /// Receiver of progress messages.
    pub tell: &'a dyn Fn(&str),
}

/// Record of a soak.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SoakRecord {
    /// Sent messages.
    pub messages: u64,
    /// Duration of the soak.
    pub seconds: f64,
    /// Received messages.
    #[serde(flatten)]
    pub received: SoakReport,
    /// Reconnections of the sender.
    pub reconnected: u32,
    /// Packets that links lost.
    pub packets_lost: u64,
    /// Packets that links marked.
    pub packets_marked: u64,
}

impl SoakRecord {
    /// True if nothing was lost, nothing corrupted and nothing delivered twice.
    pub fn is_sound(&self) -> bool {
        let received = &self.received;
        received.received == self.messages && received.twice == 0 && received.corrupt == 0
    }
}

/// Runs a soak.
///
/// # Errors
/// If the system refuses a step, or nothing arrives for a minute.
pub fn soak(request: &SoakRequest<'_>) -> Result<SoakRecord, Fault> {
    let keys = KEYS.map(String::from);
    let setup = BedSetup::new(request.laboratory, SCENARIO, &keys, Switches::Soft)?;
    let plan = BedPlan::new(
        request.name,
        &setup.assembly,
        &setup.ports(),
        Switches::Soft,
    )?;
    if find(&plan, Switches::Soft)?.is_some() {
        return Err(Fault::new(
            format!("a test bed `{}` is up already", request.name),
            format!(
                "take it away with `clearway testbed down --name {}`",
                request.name
            ),
        ));
    }
    up(&plan, SCENARIO, Switches::Soft, request.interrupted)?;
    let guard = Guard {
        name: request.name,
        keep: false,
    };
    let mut switch = SoftSwitch::start(request.program, &plan.name, &scenario_text(&setup))?;
    IMPAIRMENTS.iter().try_for_each(|line| switch.tell(line))?;
    let mut record = soak_on(request, &setup, &plan, &mut switch)?;
    for link in switch.end().values() {
        record.packets_lost += link.drops;
        record.packets_marked += link.marks;
    }
    drop(guard);
    Ok(record)
}

fn soak_tasks(request: &SoakRequest<'_>, setup: &BedSetup) -> Result<Vec<HostTask>, Fault> {
    let (mut tasks, _) = tasks(setup)?;
    let to = tasks[RECEIVER].listen;
    for (host, task) in tasks.iter_mut().enumerate() {
        task.flows.clear();
        task.soak = Some(Soak {
            messages: request.messages,
            seed: request.seed,
            to: (host == SENDER).then_some(to),
        });
    }
    Ok(tasks)
}

fn soak_on(
    request: &SoakRequest<'_>,
    setup: &BedSetup,
    plan: &BedPlan,
    switch: &mut SoftSwitch,
) -> Result<SoakRecord, Fault> {
    let mut stop = || match (request.interrupted)() {
        true => Err(interrupted()),
        false => Ok(()),
    };
    let mut hosts = Hosts::start(request.program, request.agent, plan)?;
    for (host, task) in soak_tasks(request, setup)?.into_iter().enumerate() {
        hosts.tell(host, &HostCommand::Task(Box::new(task)))?;
    }
    let listening = |reply| matches!(reply, HostReply::Listening).then_some(());
    hosts.answers(SHORT, listening, &mut stop)?;
    let began = unix();
    let unix_ns = (began + LEAD).as_nanos() as u64;
    hosts.tell(SENDER, &HostCommand::Start { unix_ns })?;
    let mut course = Course::new(request.messages);
    let mut last = began;
    while course.arrived < request.messages {
        stop()?;
        match hosts.next()? {
            Some((
                SENDER,
                HostReply::Arrived {
                    messages,
                    reconnected,
                },
            )) => {
                (course.arrived, course.reconnected) = (messages, reconnected);
                last = unix();
                course.act(request, switch, &mut hosts)?;
            }
            _ if unix().saturating_sub(last) > STALLED => {
                return Err(Fault::new(
                    format!(
                        "nothing has arrived for a minute, after {} messages",
                        course.arrived
                    ),
                    "please report this with the command",
                ));
            }
            _ => {}
        }
    }
    let seconds = unix().saturating_sub(began).as_secs_f64();
    hosts.tell(RECEIVER, &HostCommand::Report)?;
    let received = loop {
        stop()?;
        if let Some((RECEIVER, HostReply::Soaked(report))) = hosts.next()? {
            break report;
        }
        if unix().saturating_sub(last) > STALLED {
            return Err(Fault::new("the receiver does not answer", "run it again"));
        }
    };
    Ok(SoakRecord {
        messages: request.messages,
        seconds,
        received,
        reconnected: course.reconnected,
        packets_lost: 0,
        packets_marked: 0,
    })
}

/// Course of a soak, and its events.
struct Course {
    messages: u64,
    arrived: u64,
    reconnected: u32,
    /// Finished quarters.
    quarters: u64,
}

impl Course {
    fn new(messages: u64) -> Self {
        Self {
            messages,
            arrived: 0,
            reconnected: 0,
            quarters: 0,
        }
    }

    /// Executes the events at the end of a quarter.
    fn act(
        &mut self,
        request: &SoakRequest<'_>,
        switch: &mut SoftSwitch,
        hosts: &mut Hosts,
    ) -> Result<(), Fault> {
        while self.quarters < 3 && self.arrived * 4 >= self.messages * (self.quarters + 1) {
            self.quarters += 1;
            let event = match self.quarters {
                1 => {
                    switch.tell("link leaf*-spine1 down")?;
                    "spine1 is dead"
                }
                2 => {
                    // In the middle of a batch, so that some messages have arrived without the sender knowing.
                    thread::sleep(MIDDLE);
                    hosts.tell(RECEIVER, &HostCommand::Restart)?;
                    "the receiver forgets everything"
                }
                _ => {
                    switch.tell("link leaf*-spine1 up")?;
                    "spine1 is back"
                }
            };
            (request.tell)(&format!("{} messages have arrived: {event}", self.arrived));
        }
        Ok(())
    }
}
