//! Devices of hosts.

use super::namespace::within;
use crate::address::{PREFIX_LENGTH, PREFIX_LENGTH_V6, address_of, address_v6_of};
use clearway_units::HostId;
use rustix::io::Errno;
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, BorrowedFd};
use tun_rs::{DeviceBuilder, SyncDevice};

/// Name of the device in each namespace.
pub const DEVICE: &str = "cw0";
/// Unread packets that the kernel keeps: 10 ms at 1 Gb/s with packets of 300 bytes.
const KERNEL_QUEUE: u32 = 4096;

/// Failure of a device.
#[derive(Debug, thiserror::Error)]
pub enum PortError {
    /// The namespace does not exist.
    #[error("there is no network namespace `{0}`")]
    NoNamespace(String),
    /// The process may not enter the namespace, or may not create devices.
    #[error("no permission for the network namespace `{0}` and its TUN device")]
    NotPermitted(String),
    /// Another process has the device.
    #[error("the device {DEVICE} of `{0}` belongs to another process")]
    Busy(String),
    /// Another failure.
    #[error("cannot make the device {DEVICE} in `{namespace}`: {error}")]
    Device {
        /// The namespace.
        namespace: String,
        /// Error of the operating system.
        error: io::Error,
    },
}

impl PortError {
    fn new(namespace: &str, error: io::Error) -> Self {
        let name = namespace.to_owned();
        let busy = [ErrorKind::ResourceBusy, ErrorKind::AddrInUse];
        match error.kind() {
            ErrorKind::PermissionDenied => Self::NotPermitted(name),
            kind if busy.contains(&kind) => Self::Busy(name),
            _ => Self::Device {
                namespace: name,
                error,
            },
        }
    }

    /// Suggested fix.
    pub fn fix(&self) -> String {
        match self {
            Self::NoNamespace(name) => {
                format!("make it with `ip netns add {name}`, or give `--create`")
            }
            Self::NotPermitted(_) => "run as root, or within `unshare --map-root-user --net --mount` with namespaces of its own".into(),
            Self::Busy(_) => "end the other `clearway softswitch`, or use another prefix".into(),
            Self::Device { .. } => "see that the kernel has TUN devices (`modprobe tun`, /dev/net/tun)".into(),
        }
    }
}

/// The device of a host in its namespace; it disappears with the last process that holds it.
pub struct Port {
    pub(super) host: HostId,
    device: SyncDevice,
}

impl Port {
    /// Creates the device of a host in the namespace, with the address of the host, or opens an existing device.
    ///
    /// # Errors
    /// If the namespace cannot be entered, or the device cannot be created.
    pub fn open(namespace: &str, host: HostId, mtu: u16) -> Result<Self, PortError> {
        let made = within(namespace, || make(host, mtu));
        let made = made.map_err(|error| match error.kind() {
            ErrorKind::NotFound => PortError::NoNamespace(namespace.to_owned()),
            _ => PortError::new(namespace, error),
        })?;
        let device = made.map_err(|error| PortError::new(namespace, error))?;
        Ok(Self { host, device })
    }

    /// Reads a packet; `None` if there is none now.
    pub(super) fn read(&self, buffer: &mut [u8]) -> Result<Option<usize>, Errno> {
        match rustix::io::read(&self.device, buffer) {
            Ok(length) => Ok(Some(length)),
            Err(Errno::AGAIN | Errno::INTR) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Writes a packet.
    pub(super) fn write(&self, packet: &[u8]) -> Result<(), Errno> {
        rustix::io::write(&self.device, packet).map(|_| ())
    }
}

/// Creates the device in the namespace of this thread.
fn make(host: HostId, mtu: u16) -> io::Result<SyncDevice> {
    let device = DeviceBuilder::new()
        .name(DEVICE)
        .mtu(mtu)
        .tx_queue_len(KERNEL_QUEUE)
        .ipv4(address_of(host), PREFIX_LENGTH, None)
        .enable(true)
        .build_sync()?;
    // A kernel without IPv6 cannot add IPv6 addresses, and needs none.
    let _ = device.add_address_v6(address_v6_of(host), PREFIX_LENGTH_V6);
    device.set_nonblocking(true)?;
    Ok(device)
}

impl AsFd for Port {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.device.as_fd()
    }
}

impl std::fmt::Debug for Port {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Port")
            .field("host", &self.host)
            .finish_non_exhaustive()
    }
}
