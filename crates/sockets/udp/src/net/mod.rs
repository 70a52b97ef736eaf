//! Connections over sockets, on tokio.
//!
//! A task, the *driver*, owns the sockets and their connections: all connections of a server, or one connection of a client. Applications
//! talk to the driver through queues that are locked once for each message, not for each packet. A packet needs no allocation: the driver
//! reads and writes datagrams in persistent buffers, many per system call where the kernel supports it (GSO and GRO, by `quinn-udp`).
//!
//! A runtime that polls its sockets on every tick (`event_interval(1)`) serves the driver best. Otherwise, under load, datagrams in a
//! socket wait for other tasks, and a path looks late.
//!
//! Time comes from the host's monotonic clock, random bytes from the operating system.

mod clock;
mod driver;
pub mod perf;
mod sender;
mod shared;
mod sockets;

use crate::connection::Connection;
use crate::error::ConnectionError;
use crate::incoming::{Acceptor, Allocate};
use crate::listener::{Limits, Listener};
use crate::settings::{LEAST_CARRIED, PreSharedKey, Settings};
use clock::{Clock, seed};
use driver::Driver;
use shared::{Accepting, Shared};
use sockets::Socket;
use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

pub use shared::{Acceptors, Channel, ConnectionSnapshot, Message};

/// A new key from the random bytes of the operating system.
///
/// # Errors
/// If the operating system has none.
pub fn new_key() -> io::Result<PreSharedKey> {
    seed().map(PreSharedKey)
}

/// A server: a socket on which connections begin.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    accepting: Arc<Accepting>,
}

impl Server {
    /// Listens at an address and accepts each message. The wildcard address of IPv6, `[::]`, also covers IPv4, and only IPv4 if the host
    /// has no IPv6.
    ///
    /// # Errors
    /// If the operating system does not give the socket.
    pub fn bind(address: SocketAddr, settings: Settings, limits: Limits) -> io::Result<Self> {
        Self::bind_with(address, settings, limits, Box::new(|| Box::new(Allocate)))
    }

    /// Listens at an address, with an acceptor for each connection.
    ///
    /// # Errors
    /// As [`bind`](Self::bind).
    pub fn bind_with(
        address: SocketAddr,
        settings: Settings,
        limits: Limits,
        acceptors: Acceptors,
    ) -> io::Result<Self> {
        Self::bind_at(Clock::start(), address, settings, limits, acceptors)
    }

    fn bind_at(
        clock: Clock,
        address: SocketAddr,
        settings: Settings,
        limits: Limits,
        acceptors: Acceptors,
    ) -> io::Result<Self> {
        let socket = Socket::bind(address).or_else(|error| {
            // A host without IPv6.
            match address.ip() == Ipv6Addr::UNSPECIFIED && error.kind() != ErrorKind::AddrInUse {
                true => Socket::bind((Ipv4Addr::UNSPECIFIED, address.port()).into()),
                false => Err(error),
            }
        })?;
        let address = socket.address()?;
        let settings = for_sockets(settings, std::slice::from_ref(&socket));
        let listener = Listener::new(settings, limits, &seed()?);
        let accepting = Arc::new(Accepting::default());
        let driver = Driver::server(socket, clock, listener, acceptors, Arc::clone(&accepting));
        tokio::spawn(driver.run());
        Ok(Self { address, accepting })
    }

    /// The address, with the actual port if the operating system chose it.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The next connection.
    pub async fn accept(&self) -> Channel {
        self.accepting.next().await
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.accepting.stop();
    }
}

/// Reason why a client could not connect.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The operating system does not give the sockets.
    #[error("failed to open {paths} UDP sockets, one for each path: {error}")]
    Socket {
        /// Number of requested sockets.
        paths: u8,
        /// Error of the operating system.
        error: io::Error,
    },
    /// The handshake failed.
    #[error(transparent)]
    Closed(#[from] ConnectionError),
}

/// Connects to a server and accepts each message.
///
/// # Errors
/// If sockets are unavailable, nobody answers, or the server refuses.
pub async fn connect(server: SocketAddr, settings: Settings) -> Result<Channel, ConnectError> {
    connect_with(server, settings, Box::new(Allocate)).await
}

/// Connects to a server, with an acceptor for its messages.
///
/// # Errors
/// As [`connect`].
pub async fn connect_with(
    server: SocketAddr,
    settings: Settings,
    acceptor: Box<dyn Acceptor>,
) -> Result<Channel, ConnectError> {
    let mut settings = settings.bounded();
    let paths = settings.paths;
    let failed = |error| ConnectError::Socket { paths, error };
    let any = SocketAddr::new(
        match server {
            SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        },
        0,
    );
    if let Some(carried) = Socket::longest_datagram(any, server) {
        settings.datagram = settings.datagram.min(carried.max(LEAST_CARRIED));
    }
    let sockets: io::Result<Vec<_>> = (0..paths).map(|_| Socket::bind(any)).collect();
    let sockets = sockets.map_err(failed)?;
    let settings = for_sockets(settings, &sockets);
    let seed = seed().map_err(failed)?;
    let clock = Clock::start();
    let connection = Connection::connect(settings, &seed, clock.now(), server, acceptor);
    let shared = Arc::new(Shared::new(server));
    let driver = Driver::client(sockets, clock, connection, Arc::clone(&shared));
    tokio::spawn(driver.run());
    // If this future is dropped, the channel ends the new connection.
    let channel = Channel::new(Arc::clone(&shared));
    shared.connected().await?;
    Ok(channel)
}

/// Settings with the capacity of the sockets, unless the settings give it.
fn for_sockets(settings: Settings, sockets: &[Socket]) -> Settings {
    let datagram = settings.datagram;
    let held = sockets.iter().map(|socket| socket.held_datagrams(datagram));
    let measured = || held.sum::<Option<u32>>();
    Settings {
        socket_datagrams: settings.socket_datagrams.or_else(measured),
        ..settings
    }
}

#[cfg(test)]
mod tests;
