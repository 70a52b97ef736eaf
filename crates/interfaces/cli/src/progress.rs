//! Progress of runs, and interruptions: Ctrl-C, or SIGTERM from a batch system.
//!
//! A terminal shows one line that is redrawn in place. A log of a batch system or of CI gets a new line [from time to time](Schedule).

use crate::messages::{say, warn};
use clearway_lab::{RunDecision, RunProgress};
use clearway_report::quantity;
use clearway_runs::{RunWork, Stopwatch};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag::{register, register_conditional_shutdown};
use std::io::{self, IsTerminal as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

/// Flag that the first Ctrl-C or SIGTERM sets; the second signal ends the process immediately. SIGHUP keeps the setting of `nohup`.
#[derive(Clone)]
pub(crate) struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Catches both signals from now on. All calls share one flag.
    pub(crate) fn install() -> Self {
        static INSTALLED: LazyLock<Interrupt> = LazyLock::new(Interrupt::new);
        INSTALLED.clone()
    }

    fn new() -> Self {
        let raised = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            // The order matters: the first signal must find the flag cleared.
            let installed =
                register_conditional_shutdown(signal, 128 + signal, Arc::clone(&raised))
                    .and_then(|_| register(signal, Arc::clone(&raised)));
            if let Err(error) = installed {
                warn(&format!(
                    "signal {signal} will not keep partial results: {error}"
                ));
            }
        }
        Self(raised)
    }

    pub(crate) fn is_raised(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Times of progress lines in a log, in wall seconds since the command began.
///
/// The first line comes after 5 s, and the next lines follow every 5 s. After half a minute, a line comes each time the elapsed time has
/// grown by a sixth: 36 lines in an hour, 57 in a day, 95 in a year.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Schedule {
    next: f64,
}

impl Schedule {
    /// Shortest time between two lines, and before the first.
    const INTERVAL: f64 = 5.0;
    /// Share of the elapsed time between two lines.
    const SHARE: f64 = 1.0 / 6.0;

    pub(crate) fn new() -> Self {
        Self {
            next: Self::INTERVAL,
        }
    }

    /// True if a line is due at `now`; then the next line becomes due later.
    pub(crate) fn is_due(&mut self, now: f64) -> bool {
        let due = now >= self.next;
        if due {
            self.next = now + Self::INTERVAL.max(now * Self::SHARE);
        }
        due
    }
}

/// Standard error as the output for progress, during one command.
pub(crate) struct Console {
    output: Output,
    stopwatch: Stopwatch,
    schedule: Mutex<Schedule>,
}

/// Kind of a console.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Output {
    /// No progress, for a quiet command.
    Silent,
    /// Single line, redrawn in place.
    Terminal,
    /// Separate lines, such as in a log.
    Log,
}

impl Console {
    pub(crate) fn new(quiet: bool) -> Self {
        let output = match (quiet, io::stderr().is_terminal()) {
            (true, _) => Output::Silent,
            (false, true) => Output::Terminal,
            (false, false) => Output::Log,
        };
        Self {
            output,
            stopwatch: Stopwatch::start(),
            schedule: Mutex::new(Schedule::new()),
        }
    }

    /// True if the command is quiet.
    pub(crate) fn is_silent(&self) -> bool {
        self.output == Output::Silent
    }

    /// Target of the progress bar; hidden if the output cannot be redrawn.
    pub(crate) fn draw_target(&self) -> ProgressDrawTarget {
        match self.output {
            Output::Terminal => ProgressDrawTarget::stderr(),
            Output::Silent | Output::Log => ProgressDrawTarget::hidden(),
        }
    }

    /// Adds the line from `line` to a log, if a line is due.
    pub(crate) fn log(&self, line: impl FnOnce() -> String) {
        self.log_since(self.stopwatch.wall_seconds(), line);
    }

    /// Like [`log`](Self::log), for an activity that began `seconds` ago: a receiver waits before it receives.
    pub(crate) fn log_since(&self, seconds: f64, line: impl FnOnce() -> String) {
        if self.output != Output::Log {
            return;
        }
        let now = self.stopwatch.wall_seconds();
        let mut schedule = self.schedule.lock().unwrap_or_else(PoisonError::into_inner);
        if schedule.is_due(now) {
            say(&format!("after {}: {}", wall_time(seconds), line()));
        }
    }
}

/// Wall seconds in the form of a log: `35 s`, `12 min`, `3 h 05 min`.
pub(crate) fn wall_time(seconds: f64) -> String {
    let minutes = (seconds / 60.0) as u64;
    match minutes {
        0..2 => format!("{seconds:.0} s"),
        2..60 => format!("{minutes} min"),
        _ => format!("{} h {:02} min", minutes / 60, minutes % 60),
    }
}

/// Progress of one run.
pub(crate) struct Display<'a> {
    console: &'a Console,
    bar: ProgressBar,
    /// Unit of the count: flows or operations.
    what: &'static str,
    /// Unit of the run's work.
    hops: &'static str,
    /// Hops of the whole run without retransmissions; zero if unknown.
    all_hops: u64,
    stopwatch: Stopwatch,
    /// Rounds until the next reading of the clock.
    countdown: u32,
    last_draw: f64,
}

impl<'a> Display<'a> {
    /// Display of a run with `flows` flows.
    pub(crate) fn new(flows: usize, console: &'a Console) -> Self {
        let (flows, packet_hops) = (flows as u64, 0);
        Self::of_work(RunWork::Flows { flows, packet_hops }, console)
    }

    /// Display of a run with this amount of work.
    pub(crate) fn of_work(work: RunWork, console: &'a Console) -> Self {
        match work {
            RunWork::Flows { flows, packet_hops } => Self {
                all_hops: packet_hops,
                ..Self::new_counter("flows", flows, "packet-hops", console)
            },
            RunWork::Operations(operations) => {
                Self::new_counter("operations", operations, "flit-hops", console)
            }
        }
    }

    fn new_counter(
        what: &'static str,
        count: u64,
        hops: &'static str,
        console: &'a Console,
    ) -> Self {
        let style = ProgressStyle::with_template(&format!(
            "{{prefix}}{{bar:24}} {{pos}}/{{len}} {what}  {{msg}}"
        ));
        let bar = ProgressBar::with_draw_target(Some(count), console.draw_target());
        if let Ok(style) = style {
            bar.set_style(style);
        }
        Self {
            console,
            bar,
            what,
            hops,
            all_hops: 0,
            stopwatch: Stopwatch::start(),
            countdown: 0,
            last_draw: 0.0,
        }
    }

    /// The same display with `title` in front of the bar.
    pub(crate) fn titled(self, title: &str) -> Self {
        self.bar.set_prefix(format!("{title}  "));
        self
    }

    /// Updates the display after a round, and stops the run after an interrupt.
    pub(crate) fn update(&mut self, progress: &RunProgress, interrupt: &Interrupt) -> RunDecision {
        if interrupt.is_raised() {
            return RunDecision::Stop;
        }
        if self.countdown == 0 {
            self.countdown = 16;
            let elapsed = self.stopwatch.wall_seconds();
            if elapsed - self.last_draw > 0.1 {
                self.last_draw = elapsed;
                self.draw(progress, elapsed);
            }
        }
        self.countdown -= 1;
        RunDecision::Continue
    }

    fn draw(&self, progress: &RunProgress, elapsed: f64) {
        let (done, all) = (progress.flows_sent, progress.flows);
        match self.console.output {
            Output::Silent => {}
            Output::Terminal => {
                self.bar.set_position(done as u64);
                self.bar
                    .set_message(self.speed(progress, elapsed).join("  "));
            }
            Output::Log => self.console.log(|| {
                let prefix = self.bar.prefix();
                let title = match prefix.trim_end() {
                    "" => String::new(),
                    title => format!("{title}: "),
                };
                let speed = self.speed(progress, elapsed).join(", ");
                format!("{title}{done} of {all} {} done, {speed}", self.what)
            }),
        }
    }

    /// Simulated time, speed, and the remaining time if it is known.
    fn speed(&self, progress: &RunProgress, elapsed: f64) -> Vec<String> {
        let speed = quantity::prefixed(progress.hops as f64 / elapsed);
        let mut parts = vec![
            format!("at {}", quantity::microseconds(progress.now.as_us())),
            format!("{speed} {}/s", self.hops),
        ];
        // Counted by hops if possible: connections of jobs finish at the end, and flows may finish all together.
        let done = match self.all_hops {
            0 => progress.flows_sent as f64 / progress.flows.max(1) as f64,
            all => (progress.hops as f64 / all as f64).min(0.99),
        };
        if self.all_hops > 0 {
            parts.push(format!("{:.0} %", 100.0 * done));
        }
        if done > 0.02 {
            let left = elapsed * (1.0 - done) / done;
            parts.push(format!("{} to go", wall_time(left)));
        }
        parts
    }

    pub(crate) fn finish(self) {
        self.bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Log lines of a run of `seconds` whose rounds take `round` each.
    fn lines(round: f64, seconds: f64) -> Vec<f64> {
        let mut schedule = Schedule::new();
        let rounds = (seconds / round) as u64;
        let times = (1..=rounds).map(|number| number as f64 * round);
        times.filter(|now| schedule.is_due(*now)).collect()
    }

    #[test]
    fn lines_of_a_log_come_every_five_seconds_and_then_more_rarely() {
        assert_eq!(lines(0.25, 4.75), [0.0; 0]);
        assert_eq!(lines(0.25, 31.0), [5.0, 10.0, 15.0, 20.0, 25.0, 30.0]);
        let hour = lines(0.25, 3600.0);
        assert_eq!(hour.len(), 36);
        let gaps = hour.windows(2).map(|pair| (pair[0], pair[1] - pair[0]));
        for (at, gap) in gaps {
            assert!(
                gap >= 5.0 && gap <= 5.25_f64.max(at / 6.0 + 0.25),
                "{at}: {gap}"
            );
        }
    }

    #[test]
    fn a_log_of_any_run_is_short() {
        const DAY: f64 = 86_400.0;
        assert_eq!(lines(1.0, DAY).len(), 57);
        assert_eq!(lines(60.0, 365.0 * DAY).len(), 77);
        // Even with rare readings of the clock, missed lines are not made up for.
        assert_eq!(
            lines(40.0, 400.0),
            [40.0, 80.0, 120.0, 160.0, 200.0, 240.0, 280.0, 360.0]
        );
    }

    #[test]
    fn wall_time_is_short() {
        let shown = [4.6, 119.4, 120.0, 3599.0, 3600.0, 11_100.0].map(wall_time);
        assert_eq!(
            shown,
            [
                "5 s",
                "119 s",
                "2 min",
                "59 min",
                "1 h 00 min",
                "3 h 05 min"
            ]
        );
    }
}
