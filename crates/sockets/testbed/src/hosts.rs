//! The processes of hosts, and the commands to them.

use crate::fault::Fault;
use crate::plan::BedPlan;
use crate::state;
use crate::task::{HostCommand, HostReply};
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

/// Interval of checks for an interruption by the user.
const LOOK: Duration = Duration::from_millis(5);

/// The processes of all hosts, which end on drop.
pub(crate) struct Hosts {
    children: Vec<(Child, ChildStdin)>,
    replies: Receiver<(usize, Option<HostReply>)>,
}

impl Hosts {
    /// Starts a process in the namespace of each host, and records it: `program` with `arguments`.
    pub(crate) fn start(program: &Path, arguments: &[&str], plan: &BedPlan) -> Result<Self, Fault> {
        let (tell, replies) = channel();
        let mut hosts = Self {
            children: Vec::new(),
            replies,
        };
        for (host, namespace) in plan.hosts.iter().enumerate() {
            let child = Command::new("ip")
                .args(["netns", "exec", namespace])
                .arg(program)
                .args(arguments)
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                // Ctrl-C is for the command alone, which ends the hosts in its own way.
                .process_group(0)
                .spawn();
            let mut child = child.map_err(|error| {
                Fault::new(
                    format!("cannot start the process of host {host}: {error}"),
                    "see to it that `ip netns exec` works",
                )
            })?;
            if let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) {
                listen(host, stdout, tell.clone());
                let pid = child.id();
                hosts.children.push((child, stdin));
                state::record_child(&plan.name, pid)?;
            }
        }
        Ok(hosts)
    }

    /// Sends a command to a host.
    pub(crate) fn tell(&mut self, host: usize, order: &HostCommand) -> Result<(), Fault> {
        let mut line = serde_json::to_string(order).unwrap_or_default();
        line.push('\n');
        let input = &mut self.children[host].1;
        let written = input
            .write_all(line.as_bytes())
            .and_then(|()| input.flush());
        written.map_err(|_| ended(host))
    }

    /// Sends a command to all hosts.
    pub(crate) fn tell_all(&mut self, order: &HostCommand) -> Result<(), Fault> {
        (0..self.children.len()).try_for_each(|host| self.tell(host, order))
    }

    /// The next reply of a host, if it arrives soon.
    pub(crate) fn next(&self) -> Result<Option<(usize, HostReply)>, Fault> {
        match self.replies.recv_timeout(LOOK) {
            Ok((host, None)) => Err(ended(host)),
            Ok((host, Some(HostReply::Failed { what }))) => Err(failed(host, &what)),
            Ok((host, Some(reply))) => Ok(Some((host, reply))),
            Err(_) => Ok(None),
        }
    }

    /// A reply of each host that `take` accepts, by host. Calls `meanwhile` often, which may end the wait.
    pub(crate) fn answers<T>(
        &self,
        longest: Duration,
        mut take: impl FnMut(HostReply) -> Option<T>,
        meanwhile: &mut dyn FnMut() -> Result<(), Fault>,
    ) -> Result<Vec<T>, Fault> {
        let began = now();
        let mut answers: Vec<Option<T>> = self.children.iter().map(|_| None).collect();
        while answers.iter().any(Option::is_none) {
            meanwhile()?;
            let (host, reply) = match self.replies.recv_timeout(LOOK) {
                Ok(reply) => reply,
                Err(RecvTimeoutError::Timeout) if began.elapsed() < longest => continue,
                Err(_) => {
                    let silent = answers.iter().position(Option::is_none).unwrap_or(0);
                    return Err(Fault::new(
                        format!("host {silent} of the test bed does not answer"),
                        "look whether this machine is overloaded; `clearway testbed down` cleans up",
                    ));
                }
            };
            match reply {
                None => return Err(ended(host)),
                Some(HostReply::Failed { what }) => return Err(failed(host, &what)),
                Some(reply) => answers[host] = take(reply),
            }
        }
        Ok(answers.into_iter().flatten().collect())
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "real time is what a test bed runs on"
)]
fn now() -> Instant {
    Instant::now()
}

fn failed(host: usize, what: &str) -> Fault {
    Fault::new(
        format!("host {host} of the test bed failed: {what}"),
        "look whether the bed is whole: `clearway testbed down`, then `run` again",
    )
}

fn ended(host: usize) -> Fault {
    Fault::new(
        format!("the process of host {host} of the test bed has ended"),
        "see its message above",
    )
}

/// Forwards the output of a process line by line, and `None` when the process ends.
fn listen(
    host: usize,
    stdout: std::process::ChildStdout,
    tell: Sender<(usize, Option<HostReply>)>,
) {
    thread::spawn(move || {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            let Ok(reply) = serde_json::from_str(&line) else {
                break;
            };
            if tell.send((host, Some(reply))).is_err() {
                return;
            }
        }
        let _ = tell.send((host, None));
    });
}

impl Drop for Hosts {
    fn drop(&mut self) {
        for (child, _) in &mut self.children {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
