//! Formation of a group: each rank listens, and connects to the ranks with lower numbers.

use crate::buffer_pool::BufferPool;
use crate::error::GroupError;
use crate::group::Group;
use crate::peers::{Event, Farewell, Guest, Tell};
use crate::plan::CollectivePlan;
use crate::wire::{Greeting, MOST_TEXT, Tag};
use clearway_udp::net::{Channel, ConnectError, Message, Server, connect_with};
use clearway_udp::settings::JUMBO_DATAGRAM;
use clearway_udp::{Acceptor, ConnectionError, Limits, Security, Settings};
use clearway_units::Span;
use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

/// Time before the next attempt to reach a rank that has not answered.
const PAUSE: Duration = Duration::from_millis(100);
/// Time limit for telling ranks that have not joined why they cannot join.
const FAREWELL: Duration = Duration::from_millis(120);
/// End of a connection whose other end goes down before it joins a group.
const GOING: ConnectionError = ConnectionError::There(0);
/// Memory of a connection in each direction.
const MEMORY: u64 = 16 << 20;
/// Most messages that can overtake a greeting: the messages of a connection at a time.
const MOST_EARLY: usize = 4096;

/// The ranks of a group, and the number of this one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Members {
    /// Address of each rank.
    pub addresses: Vec<SocketAddr>,
    /// Number of this rank.
    pub rank: u32,
}

impl Members {
    /// Address at which the rank listens, if the rank exists: the rank's own address. If this is a loopback address and other ranks are on
    /// other hosts, the rank listens on all addresses with this port: on Debian the name of a host resolves to `127.0.1.1` locally.
    pub fn listening_at(&self) -> Option<SocketAddr> {
        let own = *self.addresses.get(self.rank as usize)?;
        let is_local = |address: &SocketAddr| address.ip().is_loopback();
        if !is_local(&own) || self.addresses.iter().all(is_local) {
            return Some(own);
        }
        let all = match own {
            SocketAddr::V4(_) => IpAddr::from(Ipv4Addr::UNSPECIFIED),
            SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        Some(SocketAddr::new(all, own.port()))
    }
}

/// Pairs of ranks that have a connection.
#[derive(Debug, Clone)]
pub enum Pairs {
    /// All pairs.
    All,
    /// Pairs that exchange messages in these plans: the group can execute only these plans.
    Of(Vec<Arc<CollectivePlan>>),
}

/// Settings of a group.
#[derive(Debug, Clone)]
pub struct GroupSettings {
    /// Settings of connections, the same at all ranks. By default the memory is 16 MiB, datagrams are as long as jumbo frames carry, where
    /// the network does, and the idle time is 5 s: the time until the others notice a dead rank.
    pub settings: Settings,
    /// Time for which a rank waits until the others come up, 30 s by default.
    pub wait: Span,
    /// Pairs of ranks that have a connection, all by default.
    pub pairs: Pairs,
    /// Task of the group: a text of at most 1024 bytes that must be equal at all ranks. Empty by default.
    pub task: String,
}

impl GroupSettings {
    /// The defaults, with the given security.
    pub fn new(security: Security) -> Self {
        Self {
            settings: Settings {
                idle: Span::from_ms(5_000),
                receive_memory: MEMORY,
                send_memory: MEMORY,
                datagram: JUMBO_DATAGRAM,
                ..Settings::new(security)
            },
            wait: Span::from_ms(30_000),
            pairs: Pairs::All,
            task: String::new(),
        }
    }

    /// The ranks to which a rank is connected.
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

/// A listening rank that has not joined a group yet.
#[derive(Debug)]
pub struct Listening {
    server: Arc<Server>,
    pool: BufferPool,
    joining: GroupSettings,
    farewell: Farewell,
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
        joining: GroupSettings,
    ) -> Result<Self, GroupError> {
        let limits = Limits {
            connections: ranks as usize,
            per_address: ranks as usize,
            half_open: ranks as usize,
            memory: u64::from(ranks) * joining.settings.receive_memory,
            ..Limits::default()
        };
        let pool = BufferPool::default();
        let buffers = pool.clone();
        let acceptors = Box::new(move || -> Box<dyn Acceptor> { Box::new(buffers.clone()) });
        let bound = Server::bind_with(address, joining.settings.clone(), limits, acceptors);
        let server = bound.map_err(|error| GroupError::Socket {
            rank,
            address,
            error: error.to_string(),
        })?;
        Ok(Self {
            server: Arc::new(server),
            pool,
            joining,
            farewell: Farewell::default(),
        })
    }

    /// The address, with the actual port if the operating system chose it.
    pub fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// Joins the group: connects to the other ranks.
    ///
    /// # Errors
    /// If the members are invalid, or the other ranks cannot be reached in time.
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
        let mut group = Group::alone(*rank, addresses.clone(), self.pool.clone());
        // Dropping this set ends all tasks of the join.
        let mut meetings = JoinSet::new();
        let result = self.meet(&members, &mut group, &mut meetings).await;
        match result {
            Ok(()) => Ok(group),
            Err(error) => {
                let ending = error.ending();
                self.farewell.set(ending);
                meetings.shutdown().await;
                group.end(&error).await;
                let turn_away = async {
                    loop {
                        self.server.accept().await.close(ending.code());
                    }
                };
                // The future never completes.
                let _: Result<(), _> = timeout(FAREWELL, turn_away).await;
                Err(error)
            }
        }
    }

    async fn meet(
        &self,
        members: &Members,
        group: &mut Group,
        meetings: &mut JoinSet<()>,
    ) -> Result<(), GroupError> {
        let joining = &self.joining;
        let neighbours = joining.neighbours(members);
        let greeting = Arc::new(Greeting {
            rank: members.rank,
            ranks: members.addresses.len() as u32,
            task: joining.task.clone(),
        });
        for &rank in neighbours.range(..members.rank) {
            let reach = Reach {
                rank,
                address: members.addresses[rank as usize],
                greeting: Arc::clone(&greeting),
                settings: joining.settings.clone(),
                pool: self.pool.clone(),
                farewell: self.farewell.clone(),
            };
            let tell = group.teller();
            meetings.spawn(async move {
                let event = match reach.reach().await {
                    Ok((guest, early)) => Event::Met { rank, guest, early },
                    Err(error) => Event::Unmet(error),
                };
                let _ = tell.send(event).await;
            });
        }
        let expected: BTreeSet<u32> = neighbours.range(members.rank..).copied().collect();
        let hosts = Hosts {
            greeting,
            expected,
            addresses: members.addresses.clone(),
            farewell: self.farewell.clone(),
        };
        meetings.spawn(admit(
            Arc::clone(&self.server),
            Arc::new(hosts),
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
                Some(Event::Met { rank, guest, early }) => {
                    group.add(rank, guest.into_channel(), early)?;
                }
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
    /// Joins a group: listens at this rank's address, and connects to the other ranks.
    ///
    /// # Errors
    /// If the rank does not exist, a socket is unavailable, or the other ranks cannot be reached in time.
    pub async fn join(members: Members, joining: GroupSettings) -> Result<Self, GroupError> {
        let (rank, ranks) = (members.rank, members.addresses.len() as u32);
        let Some(address) = members.listening_at() else {
            return Err(GroupError::Members(format!(
                "there is no rank {rank} among {ranks}"
            )));
        };
        let listening = Listening::bind(address, rank, ranks, joining)?;
        listening.join(members).await
    }
}

/// A rank to connect to.
struct Reach {
    rank: u32,
    address: SocketAddr,
    greeting: Arc<Greeting>,
    settings: Settings,
    pool: BufferPool,
    farewell: Farewell,
}

impl Reach {
    async fn reach(self) -> Result<(Guest, Vec<Message>), GroupError> {
        let (rank, address) = (self.rank, self.address);
        loop {
            let pool = Box::new(self.pool.clone());
            let error = match connect_with(address, self.settings.clone(), pool).await {
                Ok(channel) => match self.greet(channel).await {
                    Err(GroupError::Lost { closed, .. }) if closed == GOING => closed,
                    result => return result,
                },
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
                // The rank is not up yet, or is going down; the caller limits the wait.
                GOING
                | ConnectionError::NoAnswer(_)
                | ConnectionError::Silent(_)
                | ConnectionError::Busy => {
                    sleep(PAUSE).await;
                }
                ConnectionError::There(_) => return Err(GroupError::of_end(rank, address, error)),
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

    async fn greet(&self, channel: Channel) -> Result<(Guest, Vec<Message>), GroupError> {
        let guest = Guest::new(channel, &self.farewell);
        match self.exchange_greetings(guest.channel()).await {
            Ok(early) => Ok((guest, early)),
            Err(error) => {
                guest.channel().close(error.ending().code());
                Err(error)
            }
        }
    }

    async fn exchange_greetings(&self, channel: &Channel) -> Result<Vec<Message>, GroupError> {
        let (rank, address) = (self.rank, self.address);
        // If sending fails, no answer arrives either.
        let _ = channel
            .send(Tag::Greeting.code(), self.greeting.write().into())
            .await;
        let (theirs, early) = hear(channel, rank, address).await?;
        agree(&self.greeting, &theirs, rank, address)?;
        if theirs.rank != rank {
            let found = theirs.rank;
            return Err(GroupError::Members(format!(
                "at {address} is rank {found}, where this list has rank {rank}"
            )));
        }
        Ok(early)
    }
}

/// The greeting of the other end, and messages that overtook it.
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
            .map_err(|closed| GroupError::of_end(rank, address, closed))?;
        if Tag::from_code(message.tag) != Some(Tag::Greeting) && early.len() < MOST_EARLY {
            early.push(message);
            continue;
        }
        let greeting = Greeting::read(&message.data);
        return match greeting.filter(|_| Tag::from_code(message.tag) == Some(Tag::Greeting)) {
            Some(greeting) => Ok((greeting, early)),
            None => Err(GroupError::Violation {
                rank,
                address,
                what: "it does not greet as this release does".to_owned(),
            }),
        };
    }
}

/// Checks that two ranks agree on the group.
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

/// The ranks that a rank expects to connect.
struct Hosts {
    greeting: Arc<Greeting>,
    expected: BTreeSet<u32>,
    addresses: Vec<SocketAddr>,
    farewell: Farewell,
}

/// Admits the ranks that connect.
async fn admit(server: Arc<Server>, hosts: Arc<Hosts>, tell: Tell) {
    let mut guests = JoinSet::new();
    loop {
        let guest = Guest::new(server.accept().await, &hosts.farewell);
        let (tell, hosts) = (tell.clone(), Arc::clone(&hosts));
        guests.spawn(async move {
            let event = match receive_guest(guest.channel(), &hosts).await {
                // The other end sends nothing more before it has the answer.
                Ok(rank) => Event::Met {
                    rank,
                    guest,
                    early: Vec::new(),
                },
                Err(Some(error)) => {
                    guest.channel().close(error.ending().code());
                    Event::Unmet(error)
                }
                Err(None) => return,
            };
            let _ = tell.send(event).await;
        });
    }
}

/// Reads the greeting of a new connection, and answers it. The error `None` is a stranger to ignore.
async fn receive_guest(channel: &Channel, hosts: &Hosts) -> Result<u32, Option<GroupError>> {
    let Hosts {
        greeting,
        expected,
        addresses,
        ..
    } = hosts;
    let stranger = channel.peer();
    let message = channel.receive().await.map_err(|_| None)?;
    let theirs = match Tag::from_code(message.tag) {
        Some(Tag::Greeting) => Greeting::read(&message.data).ok_or(None)?,
        _ => return Err(None),
    };
    // The other end must also see the mismatch.
    let _ = channel
        .send(Tag::Greeting.code(), greeting.write().into())
        .await;
    let rank = theirs.rank;
    let address = addresses.get(rank as usize).copied().unwrap_or(stranger);
    let agreed = agree(greeting, &theirs, rank, address);
    if let Err(error) = agreed {
        // The answer has to arrive before the connection closes.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_whose_own_name_is_a_loopback_address_listens_where_others_reach_it() {
        let listening = |addresses: [&str; 2], rank| {
            let addresses = addresses.map(|address| address.parse().unwrap()).to_vec();
            let at = Members { addresses, rank }.listening_at();
            at.map(|address| address.to_string())
        };
        let debian = ["127.0.1.1:5000", "192.0.2.2:4794"];
        assert_eq!(listening(debian, 0).as_deref(), Some("0.0.0.0:5000"));
        assert_eq!(listening(debian, 1).as_deref(), Some("192.0.2.2:4794"));
        assert_eq!(listening(debian, 2), None);
        let local = ["127.0.1.1:5000", "[::1]:5000"];
        assert_eq!(listening(local, 0).as_deref(), Some("127.0.1.1:5000"));
        let six = ["[::1]:5000", "[2001:db8::2]:5000"];
        assert_eq!(listening(six, 0).as_deref(), Some("[::]:5000"));
    }
}
