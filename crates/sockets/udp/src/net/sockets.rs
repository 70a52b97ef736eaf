//! UDP sockets with congestion marks and offload.

use crate::connection::Transmit;
use crate::settings::socket_memory;
use quinn_udp::{BATCH_SIZE, EcnCodepoint, RecvMeta, UdpSockRef, UdpSocketState};
use socket2::{Domain, Type};
use std::io::{self, IoSliceMut};
use std::net::{IpAddr, SocketAddr};
use std::task::{Context, Poll};
use tokio::io::Interest;
use tokio::net::UdpSocket;

/// Requested size of socket buffers: several windows at 10 Gb/s.
const SOCKET_BUFFER: usize = 4 << 20;
/// Longest content of a buffer that the kernel fills with one or several datagrams.
const LONGEST: usize = 1 << 16;

/// Addresses and congestion mark of a received datagram.
#[derive(Debug, Clone, Copy)]
pub(super) struct Arrival {
    pub(super) from: SocketAddr,
    /// Destination address on a wildcard socket: answers use it as their source.
    pub(super) to: Option<IpAddr>,
    pub(super) marked: bool,
}

/// A socket.
pub(super) struct Socket {
    io: UdpSocket,
    state: UdpSocketState,
    /// Bound to all addresses of this host.
    is_wildcard: bool,
    /// Writes fail as if the socket were full, which loopback never causes.
    #[cfg(test)]
    pub(super) stuck: std::sync::Arc<std::sync::atomic::AtomicBool>,
}

impl Socket {
    pub(super) fn bind(address: SocketAddr) -> io::Result<Self> {
        let socket = socket2::Socket::new(Domain::for_address(address), Type::DGRAM, None)?;
        let is_wildcard = address.ip().is_unspecified();
        if is_wildcard && address.is_ipv6() {
            // The wildcard address also covers IPv4, whatever the system's default is.
            socket.set_only_v6(false)?;
        }
        socket.bind(&address.into())?;
        socket.set_nonblocking(true)?;
        let socket = std::net::UdpSocket::from(socket);
        let state = UdpSocketState::new(UdpSockRef::from(&socket))?;
        // A smaller buffer is not a reason to fail.
        let _ = state.set_recv_buffer_size(UdpSockRef::from(&socket), SOCKET_BUFFER);
        let _ = state.set_send_buffer_size(UdpSockRef::from(&socket), SOCKET_BUFFER);
        let io = UdpSocket::from_std(socket)?;
        Ok(Self {
            io,
            state,
            is_wildcard,
            #[cfg(test)]
            stuck: std::sync::Arc::default(),
        })
    }

    pub(super) fn address(&self) -> io::Result<SocketAddr> {
        self.io.local_addr()
    }

    /// Datagrams of this length that the socket buffers.
    pub(super) fn held_datagrams(&self, length: u16) -> Option<u32> {
        let bytes = self.state.recv_buffer_size(UdpSockRef::from(&self.io));
        u32::try_from(bytes.ok()? as u64 / socket_memory(length)).ok()
    }

    /// Longest datagram, as UDP payload, that the interface from `any` address towards `peer` carries, if the operating system tells it.
    pub(super) fn longest_datagram(any: SocketAddr, peer: SocketAddr) -> Option<u16> {
        // `connect` of a UDP socket chooses a route and sends no packet.
        let socket = std::net::UdpSocket::bind(any).ok()?;
        socket.connect(peer).ok()?;
        // With IPv4 as well: 1452 bytes on Ethernet were faster than 1472 (docs/src/performance.md).
        const HEADERS_OF_IPV6: u32 = 48;
        let carried = mtu(&socket, peer.is_ipv6())?.saturating_sub(HEADERS_OF_IPV6);
        Some(u16::try_from(carried).unwrap_or(u16::MAX))
    }

    /// Most datagrams that the kernel sends with one call.
    pub(super) fn most_segments(&self) -> usize {
        self.state.max_gso_segments()
    }

    /// Waits until something can be read.
    pub(super) fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.io.poll_recv_ready(cx)
    }

    /// Waits until something can be written.
    pub(super) fn poll_writable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        #[cfg(test)]
        if self.stuck.load(std::sync::atomic::Ordering::Relaxed) {
            return Poll::Pending;
        }
        self.io.poll_send_ready(cx)
    }

    /// Reads datagrams, and calls `each` with addresses, mark and content of each; false if there are none.
    pub(super) fn receive(
        &self,
        buffers: &mut Buffers,
        mut each: impl FnMut(Arrival, &mut [u8]),
    ) -> bool {
        let mut meta = [RecvMeta::default(); BATCH_SIZE];
        let mut chunks = buffers.0.chunks_mut(LONGEST);
        let mut slices: [IoSliceMut<'_>; BATCH_SIZE] =
            std::array::from_fn(|_| IoSliceMut::new(chunks.next().unwrap_or_default()));
        let mut count = 0;
        // Errors report single undeliverable datagrams (ICMP); the transport retransmits them.
        let _ = self.io.try_io(Interest::READABLE, || {
            let socket = UdpSockRef::from(&self.io);
            count = self.state.recv(socket, &mut slices, &mut meta)?;
            match count {
                BATCH_SIZE => Ok(()),
                // The socket is empty; another read would only cost a system call.
                _ => Err(io::ErrorKind::WouldBlock.into()),
            }
        });
        for (meta, slice) in meta.iter().zip(&mut slices).take(count) {
            let arrival = Arrival {
                from: meta.addr,
                to: meta.dst_ip.filter(|_| self.is_wildcard),
                marked: meta.ecn == Some(EcnCodepoint::Ce),
            };
            for datagram in slice[..meta.len].chunks_mut(meta.stride.max(1)) {
                each(arrival, datagram);
            }
        }
        count > 0
    }

    /// Sends datagrams with the fields of `each`, the last of which may be shorter; false if they have to wait.
    pub(super) fn send(&self, each: &Transmit, contents: &[u8]) -> bool {
        #[cfg(test)]
        if self.stuck.load(std::sync::atomic::Ordering::Relaxed) {
            return false;
        }
        let transmit = quinn_udp::Transmit {
            destination: each.to,
            ecn: each.ecn_capable.then_some(EcnCodepoint::Ect0),
            contents,
            segment_size: (contents.len() > each.length).then_some(each.length),
            src_ip: each.from,
        };
        let sent = self.io.try_io(Interest::WRITABLE, || {
            self.state.try_send(UdpSockRef::from(&self.io), &transmit)
        });
        // After any other error the transport retransmits the lost datagrams.
        !sent.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
    }
}

/// Path MTU that the kernel knows for a connected socket: at first that of the interface.
#[cfg(target_os = "linux")]
fn mtu(socket: &std::net::UdpSocket, v6: bool) -> Option<u32> {
    use rustix::net::sockopt::{ip_mtu, ipv6_mtu};
    match v6 {
        true => ipv6_mtu(socket).ok(),
        false => ip_mtu(socket).ok(),
    }
}

#[cfg(not(target_os = "linux"))]
fn mtu(_socket: &std::net::UdpSocket, _v6: bool) -> Option<u32> {
    None
}

/// Buffers for received datagrams.
pub(super) struct Buffers(Vec<u8>);

impl Buffers {
    /// An empty placeholder for buffers that are in use elsewhere.
    pub(super) fn none() -> Self {
        Self(Vec::new())
    }
}

impl Default for Buffers {
    fn default() -> Self {
        Self(vec![0; BATCH_SIZE * LONGEST])
    }
}
