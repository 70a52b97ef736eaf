//! Networks between the ends: the loopback interface, or a pair of virtual Ethernet devices between two network namespaces.

use crate::failure::Failure;
use crate::process::output;
use std::net::{IpAddr, Ipv4Addr};

/// Addresses of the two namespaces.
const ADDRESSES: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 87, 0, 1), Ipv4Addr::new(10, 87, 0, 2)];

/// A network between a sender and a receiver.
#[derive(Debug)]
pub(crate) enum Network {
    Loopback,
    Namespaces(Namespaces),
}

impl Network {
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Loopback => "loopback",
            Self::Namespaces(_) => "namespaces",
        }
    }

    /// Address of the receiver.
    pub(crate) fn receiver(&self) -> IpAddr {
        match self {
            Self::Loopback => Ipv4Addr::LOCALHOST.into(),
            Self::Namespaces(_) => ADDRESSES[1].into(),
        }
    }

    /// Namespaces of sender and receiver.
    pub(crate) fn namespaces(&self) -> [Option<String>; 2] {
        match self {
            Self::Loopback => [None, None],
            Self::Namespaces(namespaces) => namespaces.names.clone().map(Some),
        }
    }
}

/// Two network namespaces with a pair of virtual Ethernet devices. They go when this is dropped.
#[derive(Debug)]
pub(crate) struct Namespaces {
    names: [String; 2],
}

impl Namespaces {
    /// Creates the namespaces; needs privileges.
    pub(crate) fn create() -> Result<Self, Failure> {
        let process = std::process::id();
        let names = ["a", "b"].map(|end| format!("transfer-{process}-{end}"));
        let made = Self { names };
        let [a, b] = &made.names;
        for name in &made.names {
            output("ip", &["netns", "add", name])?;
            output("ip", &["-n", name, "link", "set", "lo", "up"])?;
        }
        let pair = ["link", "add", "to-b", "netns", a, "type", "veth"];
        output(
            "ip",
            &[&pair[..], &["peer", "name", "to-a", "netns", b]].concat(),
        )?;
        for (name, device, address) in [(a, "to-b", ADDRESSES[0]), (b, "to-a", ADDRESSES[1])] {
            let address = format!("{address}/24");
            output(
                "ip",
                &["-n", name, "address", "add", &address, "dev", device],
            )?;
            output("ip", &["-n", name, "link", "set", device, "up"])?;
        }
        Ok(made)
    }
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        for name in &self.names {
            // One that was never made.
            let _ = output("ip", &["netns", "delete", name]);
        }
    }
}
