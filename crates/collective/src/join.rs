//! Beginning of a group: each rank listens, and connects to those with lower numbers.

use crate::error::GroupError;
use crate::group::Group;
use crate::peers::{Event, Memory, Tell};
use crate::plan::Plan;
use crate::wire::{Ending, Greeting, MOST_TEXT, Tag};
use clearway_udp::net::{Channel, ConnectError, Message, Server, connect_with};
use clearway_udp::{Acceptor, Closed, Limits, Security, Settings};
use clearway_units::Span;
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

/// Time after which a rank that has not answered is asked again.
const PAUSE: Duration = Duration::from_millis(100);
/// Time in which connections that are dropped tell the other end.
const FAREWELL: Duration = Duration::from_millis(120);
/// Memory of a connection in each direction.
const MEMORY: u64 = 16 << 20;
/// Messages that can overtake a greeting: those that a connection has at a time.
const MOST_EARLY: usize = 4096;

/// The ranks of a group, and the number of this one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Members {
    /// Address of each rank.
    pub addresses: Vec<SocketAddr>,
    /// Number of this rank.
    pub rank: u32,
}

/// Pairs of ranks that have a connection.
#[derive(Debug, Clone)]
pub enum Pairs {
    /// All.
    All,
    /// Pairs that speak with each other in these plans: the group can carry out no others.
    Of(Vec<Arc<Plan>>),
}

/// Settings of a group.
#[derive(Debug, Clone)]
pub struct Joining {
    /// Settings of connections, the same at all ranks. Their memory is 16 MiB, their idle time 5 s by default: the time after which a rank
    /// that has died is noticed.
    pub settings: Settings,
    /// Time for which a rank waits for the others to come up, 30 s by default.
    pub wait: Span,
    /// Pairs of ranks that have a connection, all by default.
    pub pairs: Pairs,
    /// A text that all ranks must have in common, at most 1024 bytes: their task. Empty by default.
    pub task: String,
}

impl Joining {
    /// The defaults, with a security.
    pub fn new(security: Security) -> Self {
        Self {
            settings: Settings {
                idle: Span::from_ms(5_000),
                receive_memory: MEMORY,
                send_memory: MEMORY,
                ..Settings::new(security)
            },
            wait: Span::from_ms(30_000),
            pairs: Pairs::All,
            task: String::new(),
        }
    }

    /// The ranks with which a rank has a connection.
    fn neighbours(&self, members: &Members) -> BTreeSet<u32> {
        let own = members.rank;
        match &self.pairs {
            Pairs::All => (0..members.addresses.len() as u32)
                .filter(|&rank| rank != own)
                .collect(),
            Pairs::Of(plans) => {
                let all = plans.iter().flat_map(|plan| plan.neighbours(own));
                all.collect()
            }
        }
    }
}

/// A rank that listens, and has not joined a group yet.
#[derive(Debug)]
pub struct Listening {
    server: Server,
    memory: Memory,
    joining: Joining,
}

impl Listening {
    /// Listens at an address, as rank `rank` of a group of `ranks`.
    ///
    /// # Errors
    /// If the operating system does not give the socket.
    pub fn bind(
        address: SocketAddr,
        rank: u32,
        ranks: u32,
        joining: Joining,
    ) -> Result<Self, GroupError> {
        let limits = Limits {
            connections: ranks as usize,
            per_address: ranks as usize,
            half_open: ranks as usize,
            memory: u64::from(ranks) * joining.settings.receive_memory,
        };
        let memory = Memory::default();
        let buffers = memory.clone();
        let acceptors = Box::new(move || -> Box<dyn Acceptor> { Box::new(buffers.clone()) });
        let bound = Server::bind_with(address, joining.settings.clone(), limits, acceptors);
        let server = bound.map_err(|error| GroupError::Socket {
            rank,
            address,
            error: error.to_string(),
        })?;
        Ok(Self {
            server,
            memory,
            joining,
        })
    }

    /// The address, with the port that the operating system has chosen where it was to.
    pub fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// Meets the other ranks.
    ///
    /// # Errors
    /// If the members are none, or the others cannot be met in time.
    pub async fn join(self, members: Members) -> Result<Group, GroupError> {
        let Members { addresses, rank } = &members;
        let ranks = addresses.len();
        if *rank as usize >= ranks {
            return Err(GroupError::Members(format!(
                "there is no rank {rank} among {ranks}"
            )));
        }
        if self.joining.task.len() > MOST_TEXT {
            let fault = format!("the task of a group has more than {MOST_TEXT} bytes");
            return Err(GroupError::Members(fault));
        }
        let mut group = Group::alone(*rank, addresses.clone(), self.memory.clone());
        let result = self.meet(&members, &mut group).await;
        match result {
            Ok(()) => Ok(group),
            Err(error) => {
                group.end(&error).await;
                // Connections that have not greeted yet were dropped, and have to say so.
                sleep(FAREWELL).await;
                Err(error)
            }
        }
    }

    async fn meet(self, members: &Members, group: &mut Group) -> Result<(), GroupError> {
        let Self {
            server,
            memory,
            joining,
        } = self;
        let neighbours = joining.neighbours(members);
        let greeting = Arc::new(Greeting {
            rank: members.rank,
            ranks: members.addresses.len() as u32,
            task: joining.task.clone(),
        });
        // All that goes on here ends with this set.
        let mut meetings = JoinSet::new();
        for &rank in neighbours.range(..members.rank) {
            let reach = Reach {
                rank,
                address: members.addresses[rank as usize],
                greeting: Arc::clone(&greeting),
                settings: joining.settings.clone(),
                memory: memory.clone(),
            };
            let tell = group.teller();
            meetings.spawn(async move {
                let event = match reach.reach().await {
                    Ok((channel, early)) => Event::Met {
                        rank,
                        channel,
                        early,
                    },
                    Err(error) => Event::Unmet(error),
                };
                let _ = tell.send(event).await;
            });
        }
        let expected: BTreeSet<u32> = neighbours.range(members.rank..).copied().collect();
        meetings.spawn(admit(
            server,
            greeting,
            expected,
            members.addresses.clone(),
            group.teller(),
        ));
        let wait = joining.wait.as_ps() / 1000;
        let deadline = Instant::now() + Duration::from_nanos(wait);
        loop {
            let mut missing = neighbours.iter().filter(|&&rank| !group.has(rank));
            let Some(&rank) = missing.next() else {
                return Ok(());
            };
            let more = missing.count();
            match group.event_until(deadline).await {
                Some(Event::Met {
                    rank,
                    channel,
                    early,
                }) => group.add(rank, channel, early)?,
                Some(Event::Unmet(error)) => return Err(error),
                Some(event) => group.on_early(event)?,
                None => {
                    return Err(GroupError::Absent {
                        rank,
                        address: group.address(rank),
                        wait: joining.wait,
                        more,
                    });
                }
            }
        }
    }
}

impl Group {
    /// Joins a group: listens at the own address, and meets the other ranks.
    ///
    /// # Errors
    /// If there is no such rank or no socket, or the others cannot be met in time.
    pub async fn join(members: Members, joining: Joining) -> Result<Self, GroupError> {
        let (rank, ranks) = (members.rank, members.addresses.len() as u32);
        let Some(&address) = members.addresses.get(rank as usize) else {
            return Err(GroupError::Members(format!(
                "there is no rank {rank} among {ranks}"
            )));
        };
        let listening = Listening::bind(address, rank, ranks, joining)?;
        listening.join(members).await
    }
}

/// A rank that is to be reached.
struct Reach {
    rank: u32,
    address: SocketAddr,
    greeting: Arc<Greeting>,
    settings: Settings,
    memory: Memory,
}

impl Reach {
    async fn reach(self) -> Result<(Channel, Vec<Message>), GroupError> {
        let (rank, address) = (self.rank, self.address);
        loop {
            let memory = Box::new(self.memory.clone());
            let error = match connect_with(address, self.settings.clone(), memory).await {
                Ok(channel) => return self.greet(channel).await,
                Err(ConnectError::Closed(closed)) => closed,
                Err(ConnectError::Socket { error, .. }) => {
                    return Err(GroupError::Sockets {
                        rank: self.greeting.rank,
                        to: rank,
                        error: error.to_string(),
                    });
                }
            };
            match error {
                // It is not up yet; who waits has a limit.
                Closed::NoAnswer(_) | Closed::Silent(_) | Closed::Busy => sleep(PAUSE).await,
                closed => {
                    return Err(GroupError::Refused {
                        rank,
                        address,
                        closed,
                    });
                }
            }
        }
    }

    async fn greet(&self, channel: Channel) -> Result<(Channel, Vec<Message>), GroupError> {
        let (rank, address) = (self.rank, self.address);
        // If that fails, there is no answer either.
        let _ = channel
            .send(Tag::Greeting.code(), self.greeting.write().into())
            .await;
        let (theirs, early) = hear(&channel, rank, address).await?;
        agree(&self.greeting, &theirs, rank, address)?;
        if theirs.rank != rank {
            let found = theirs.rank;
            return Err(GroupError::Members(format!(
                "at {address} is rank {found}, where this list has rank {rank}"
            )));
        }
        Ok((channel, early))
    }
}

/// The greeting of the other end, and messages that have overtaken it.
async fn hear(
    channel: &Channel,
    rank: u32,
    address: SocketAddr,
) -> Result<(Greeting, Vec<Message>), GroupError> {
    let mut early = Vec::new();
    loop {
        let message = channel
            .receive()
            .await
            .map_err(|closed| ended(rank, address, closed))?;
        if Tag::of(message.tag) != Some(Tag::Greeting) && early.len() < MOST_EARLY {
            early.push(message);
            continue;
        }
        let greeting = Greeting::read(&message.data);
        return match greeting.filter(|_| Tag::of(message.tag) == Some(Tag::Greeting)) {
            Some(greeting) => Ok((greeting, early)),
            None => Err(GroupError::Violation {
                rank,
                address,
                what: "it does not greet as this release does".to_owned(),
            }),
        };
    }
}

/// Error for a connection that has ended before both ends have greeted.
fn ended(rank: u32, address: SocketAddr, closed: Closed) -> GroupError {
    let ending = match closed {
        Closed::There(code) => Ending::of(code),
        _ => None,
    };
    match ending {
        Some(ending) => GroupError::Ended { by: rank, ending },
        None => GroupError::Lost {
            rank,
            address,
            closed,
        },
    }
}

/// Checks that two ranks have the same in mind.
fn agree(
    ours: &Greeting,
    theirs: &Greeting,
    rank: u32,
    address: SocketAddr,
) -> Result<(), GroupError> {
    let disagreement = |theirs: String, own: String| GroupError::Disagreement {
        rank,
        theirs,
        own: ours.rank,
        ours: own,
    };
    if theirs.ranks != ours.ranks {
        let list = |ranks: u32| format!("a list of {ranks} ranks");
        return Err(disagreement(list(theirs.ranks), list(ours.ranks)));
    }
    if theirs.task != ours.task {
        let named = |task: &str| format!("`{task}`");
        return Err(disagreement(named(&theirs.task), named(&ours.task)));
    }
    if theirs.rank == ours.rank {
        return Err(GroupError::Members(format!(
            "rank {rank} at {address} says that it is rank {rank}, as this one is"
        )));
    }
    Ok(())
}

/// Admits the ranks that connect.
async fn admit(
    server: Server,
    greeting: Arc<Greeting>,
    expected: BTreeSet<u32>,
    addresses: Vec<SocketAddr>,
    tell: Tell,
) {
    let expected = Arc::new(expected);
    let mut guests = JoinSet::new();
    loop {
        let channel = server.accept().await;
        let (tell, greeting) = (tell.clone(), Arc::clone(&greeting));
        let (expected, addresses) = (Arc::clone(&expected), addresses.clone());
        guests.spawn(async move {
            let event = match receive_guest(&channel, &greeting, &expected, &addresses).await {
                // The other end says nothing more before it has heard the answer.
                Ok(rank) => Event::Met {
                    rank,
                    channel,
                    early: Vec::new(),
                },
                Err(Some(error)) => {
                    channel.close(error.ending().code());
                    Event::Unmet(error)
                }
                Err(None) => return,
            };
            let _ = tell.send(event).await;
        });
    }
}

/// Hears who has connected, and answers. An error of `None` is somebody of no concern.
async fn receive_guest(
    channel: &Channel,
    greeting: &Greeting,
    expected: &BTreeSet<u32>,
    addresses: &[SocketAddr],
) -> Result<u32, Option<GroupError>> {
    let stranger = channel.peer();
    let message = channel.receive().await.map_err(|_| None)?;
    let theirs = match Tag::of(message.tag) {
        Some(Tag::Greeting) => Greeting::read(&message.data).ok_or(None)?,
        _ => return Err(None),
    };
    // The other end is to see what does not agree, too.
    let _ = channel
        .send(Tag::Greeting.code(), greeting.write().into())
        .await;
    let rank = theirs.rank;
    let address = addresses.get(rank as usize).copied().unwrap_or(stranger);
    let agreed = agree(greeting, &theirs, rank, address);
    if let Err(error) = agreed {
        // The answer has to arrive before the end.
        let _ = channel.flush().await;
        return Err(Some(error));
    }
    match expected.contains(&rank) {
        true => Ok(rank),
        false => Err(Some(GroupError::Violation {
            rank,
            address: stranger,
            what: "it connects although it does not have to".to_owned(),
        })),
    }
}
