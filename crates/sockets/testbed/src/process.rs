//! Processes of a bed, which another command can end.

use rustix::process::{Pid, Signal, kill_process};
use serde::{Deserialize, Serialize};
use std::fs;
use std::thread;
use std::time::Duration;

/// Time that processes have to exit after a request.
const PATIENCE: Duration = Duration::from_secs(1);
/// Interval of checks for the end of processes.
const LOOK: Duration = Duration::from_millis(5);

/// Process of a host or of the switches in user space.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// Number of the process.
    pub pid: u32,
    /// Start of the process, in clock ticks since the machine began: process numbers are reused, pairs of both are not.
    pub started: u64,
}

impl Process {
    /// The process that has a number at present; `None` if there is none.
    pub(crate) fn from_pid(pid: u32) -> Option<Self> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let started = start_of_running(&stat)?;
        Some(Self { pid, started })
    }

    /// True until the process has ended, whether or not another process has waited for it.
    pub(crate) fn is_running(self) -> bool {
        Self::from_pid(self.pid) == Some(self)
    }

    fn signal(self, signal: Signal) {
        let pid = i32::try_from(self.pid).ok().and_then(Pid::from_raw);
        if let (Some(pid), true) = (pid, self.is_running()) {
            // A process that has ended in the meantime needs no signal.
            let _ = kill_process(pid, signal);
        }
    }
}

/// Start of a process by its `/proc/PID/stat`; `None` if it is a zombie. The name of the program may contain anything.
fn start_of_running(stat: &str) -> Option<u64> {
    let (_, after_name) = stat.rsplit_once(')')?;
    let mut fields = after_name.split_whitespace();
    let state = fields.next()?;
    // Field 22 of proc_pid_stat(5); the state is field 3.
    let started = fields.nth(18)?.parse().ok()?;
    (!matches!(state, "Z" | "X")).then_some(started)
}

/// Waits until all processes have ended; false if some still run after `longest`.
pub(crate) fn have_ended(processes: &[Process], longest: Duration) -> bool {
    let mut waited = Duration::ZERO;
    while processes.iter().any(|process| process.is_running()) {
        if waited >= longest {
            return false;
        }
        thread::sleep(LOOK);
        waited += LOOK;
    }
    true
}

/// Ends processes: asks all of them to exit, then kills the rest.
pub(crate) fn end(processes: &[Process]) {
    for signal in [Signal::TERM, Signal::KILL] {
        processes.iter().for_each(|process| process.signal(signal));
        if have_ended(processes, PATIENCE) {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn those_that_do_not_listen_are_killed() {
        let deaf = "trap '' TERM; echo ready; while :; do sleep 0.01; done";
        let mut children = [
            Command::new("sleep").arg("60").spawn().unwrap(),
            Command::new("sh").args(["-c", deaf]).spawn().unwrap(),
        ];
        let processes: Vec<Process> = children
            .iter()
            .map(|child| Process::from_pid(child.id()).unwrap())
            .collect();
        assert!(!have_ended(&processes, Duration::ZERO));
        end(&processes);
        for child in &mut children {
            assert!(!child.wait().unwrap().success());
        }
        assert_eq!(Process::from_pid(processes[0].pid), None);
    }

    #[test]
    fn another_process_of_the_same_number_is_left_alone() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let other = Process {
            started: 1,
            ..Process::from_pid(child.id()).unwrap()
        };
        end(&[other]);
        assert_eq!(child.try_wait().unwrap(), None);
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn names_of_programs_may_look_like_fields() {
        let rest = "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4711 20";
        let stat = |state: &str| format!("12 (a) Z (b) {state} {rest}");
        assert_eq!(start_of_running(&stat("S")), Some(4711));
        assert_eq!(start_of_running(&stat("Z")), None);
        assert_eq!(start_of_running(""), None);
    }
}
