//! Memory for another run.

use super::control_groups;
use std::fs;

/// Share of the available memory that runs may use.
const SHARE: f64 = 0.8;

/// The memory of this machine that this process may use.
#[derive(Debug)]
pub(super) struct Memory {
    /// Reads the available memory in bytes; `None` if the system does not report it.
    available: fn() -> Option<u64>,
}

impl Memory {
    pub(super) fn new() -> Self {
        Self { available }
    }

    #[cfg(test)]
    fn with_source(available: fn() -> Option<u64>) -> Self {
        Self { available }
    }

    /// True if a run of `expected` bytes fits beside the `children` (process and expected bytes), which may still grow to their expected
    /// memory.
    pub(super) fn has_room(
        &self,
        expected: u64,
        children: impl Iterator<Item = (u32, u64)>,
    ) -> bool {
        let Some(available) = (self.available)() else {
            return true;
        };
        let to_come =
            children.map(|(process, expected)| expected.saturating_sub(resident(process)));
        let to_come = to_come.fold(0, u64::saturating_add);
        let room = (available as f64 * SHARE) as u64;
        expected.saturating_add(to_come) <= room
    }
}

/// Available memory of the system, or the memory left below a limit of this process's control groups.
fn available() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let free = kilobytes(line)?;
    Some(control_groups::memory_left().map_or(free, |left| left.min(free)))
}

/// Memory that a process holds.
fn resident(process: u32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(kilobytes).unwrap_or(0)
}

fn kilobytes(line: &str) -> Option<u64> {
    let number = line.trim().strip_suffix("kB")?;
    number.trim().parse::<u64>().ok().map(|kb| kb * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GB: u64 = 1_000_000_000;

    #[test]
    fn runs_fit_while_they_leave_a_share_of_the_memory() {
        let memory = Memory::with_source(|| Some(10 * GB));
        // No process has the number 0, so these children hold no memory yet.
        let children = |count: usize| std::iter::repeat_n((0, 3 * GB), count);
        assert!(memory.has_room(8 * GB, children(0)));
        assert!(!memory.has_room(9 * GB, children(0)));
        assert!(memory.has_room(2 * GB, children(2)));
        assert!(!memory.has_room(3 * GB, children(2)));
        assert!(Memory::with_source(|| None).has_room(u64::MAX, children(9)));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn the_system_tells_the_memory() {
        assert!(available().unwrap() > 0);
        assert!(resident(std::process::id()) > 1 << 20);
    }
}
