//! Network namespaces of hosts.

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;

/// Folder in which `ip netns` keeps namespaces by their names.
const FOLDER: &str = "/var/run/netns";

/// Calls `act` in the named network namespace, on a separate thread, because a thread can be in only one namespace. Sockets and devices
/// that `act` opens stay in the namespace.
///
/// # Errors
/// If the namespace cannot be entered: "not found" if it does not exist.
pub fn within<T: Send>(name: &str, act: impl FnOnce() -> T + Send) -> io::Result<T> {
    let namespace = File::open(Path::new(FOLDER).join(name))?;
    thread::scope(|scope| {
        let entered = scope.spawn(|| {
            move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))?;
            Ok(act())
        });
        let broken = |_| Err(io::Error::other("the thread in the namespace has panicked"));
        entered.join().unwrap_or_else(broken)
    })
}

/// Failure of `ip netns`.
#[derive(Debug, thiserror::Error)]
#[error("cannot create the network namespace `{name}`: {why}")]
pub struct NamespaceError {
    /// The namespace.
    pub name: String,
    why: String,
    fix: &'static str,
}

impl NamespaceError {
    /// Suggested fix.
    pub fn fix(&self) -> &'static str {
        self.fix
    }
}

/// Namespaces created here, which are deleted on drop.
#[derive(Debug, Default)]
pub struct CreatedNamespaces(Vec<String>);

impl CreatedNamespaces {
    /// Creates a namespace, and brings up its loopback device.
    ///
    /// # Errors
    /// If the namespace exists already, or `ip` is missing or not permitted.
    pub fn create(&mut self, name: &str) -> Result<(), NamespaceError> {
        ip(name, &["netns", "add", name])?;
        self.0.push(name.to_owned());
        ip(name, &["-n", name, "link", "set", "lo", "up"])
    }
}

impl Drop for CreatedNamespaces {
    fn drop(&mut self) {
        for name in &self.0 {
            // A destructor cannot report the error.
            let _ = ip(name, &["netns", "delete", name]);
        }
    }
}

fn ip(name: &str, arguments: &[&str]) -> Result<(), NamespaceError> {
    let mut command = Command::new("ip");
    let output = command.args(arguments).stdin(Stdio::null()).output();
    let (why, fix) = match output {
        Ok(output) if output.status.success() => return Ok(()),
        Ok(output) => {
            let text = String::from_utf8_lossy(&output.stderr);
            let why = text.lines().next().unwrap_or_default();
            let fix = match why.contains("File exists") {
                true => "delete it with `ip netns delete`, or leave `--create` out to use it",
                false => "run as root",
            };
            (why.to_owned(), fix)
        }
        Err(error) if error.kind() == ErrorKind::NotFound => (
            "there is no program `ip`".to_owned(),
            "install iproute2, or create the namespaces yourself",
        ),
        Err(error) => (error.to_string(), "run as root"),
    };
    let name = name.to_owned();
    Err(NamespaceError { name, why, fix })
}
