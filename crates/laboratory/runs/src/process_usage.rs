//! Wall clock, processor time and memory of this process.

use std::time::Instant;

/// Stopwatch that is started before a run and read after it.
pub struct Stopwatch {
    /// `None` on systems without a clock, such as a module of WebAssembly.
    wall: Option<Instant>,
    cpu: f64,
}

impl Stopwatch {
    /// Starts a stopwatch.
    #[expect(
        clippy::disallowed_methods,
        reason = "what a run costs is told with its results; simulations do not look at the clock"
    )]
    pub fn start() -> Self {
        Self {
            wall: (!cfg!(target_family = "wasm")).then(Instant::now),
            cpu: cpu_seconds(),
        }
    }

    /// Seconds since the start; zero on systems without a clock.
    pub fn wall_seconds(&self) -> f64 {
        self.wall.map_or(0.0, |wall| wall.elapsed().as_secs_f64())
    }

    /// User and system time of this process since the start, in seconds; zero if the system does not report it.
    pub fn cpu_seconds(&self) -> f64 {
        cpu_seconds() - self.cpu
    }
}

/// User and system time of this process; zero if the system does not report it.
fn cpu_seconds() -> f64 {
    // Fields 14 and 15 of /proc/self/stat, in ticks of 1/100 s; the name in field 2 may contain blanks.
    let ticks = || {
        let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        let field = |index: usize| fields.get(index)?.parse::<f64>().ok();
        Some(field(11)? + field(12)?)
    };
    ticks().unwrap_or(0.0) / 100.0
}

/// Resets the peak memory of this process to its present memory, if the system allows it.
pub fn forget_peak_rss() {
    // The manual page proc(5) describes `clear_refs`.
    let _ = std::fs::write("/proc/self/clear_refs", "5");
}

/// Peak memory of this process so far, in bytes; zero if the system does not report it.
pub fn peak_rss_bytes() -> u64 {
    let peak = || {
        let status = std::fs::read_to_string("/proc/self/status").ok()?;
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("VmHWM:"))?;
        line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()
    };
    peak().unwrap_or(0) * 1024
}
