//! Live progress on a terminal, and what ends a run early: Ctrl-C, or a batch system that asks it to terminate.

use crate::measure::Stopwatch;
use crate::messages::warn;
use clearway_lab::{Progress, Verdict};
use clearway_report::quantity;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag::{register, register_conditional_shutdown};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Set by the first Ctrl-C or SIGTERM; the second ends the process at once. SIGHUP stays what `nohup` has made of it.
#[derive(Clone)]
pub(crate) struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Catches both signals from now on.
    pub(crate) fn install() -> Self {
        let raised = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            // In this order: the first signal finds the flag down.
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

/// A line that is redrawn in place; silent if the output is not a terminal.
pub(crate) struct Display {
    bar: ProgressBar,
    /// Name of what the run's work is counted in.
    hops: &'static str,
    stopwatch: Stopwatch,
    /// Rounds until the clock is looked at again.
    countdown: u32,
    last_draw: f64,
}

impl Display {
    /// Of a run with `flows` flows.
    pub(crate) fn new(flows: usize, quiet: bool) -> Self {
        Self::of("flows", flows as u64, "packet-hops", quiet)
    }

    /// Of a run of a scale-up fabric.
    pub(crate) fn of_operations(operations: u64, quiet: bool) -> Self {
        Self::of("operations", operations, "flit-hops", quiet)
    }

    fn of(what: &str, count: u64, hops: &'static str, quiet: bool) -> Self {
        let target = if quiet {
            ProgressDrawTarget::hidden()
        } else {
            ProgressDrawTarget::stderr()
        };
        let style = ProgressStyle::with_template(&format!(
            "{{prefix}}{{bar:24}} {{pos}}/{{len}} {what}  {{msg}}"
        ));
        let bar = ProgressBar::with_draw_target(Some(count), target);
        if let Ok(style) = style {
            bar.set_style(style);
        }
        Self {
            bar,
            hops,
            stopwatch: Stopwatch::start(),
            countdown: 0,
            last_draw: 0.0,
        }
    }

    /// The same with `title` in front of it.
    pub(crate) fn titled(self, title: &str) -> Self {
        self.bar.set_prefix(title.to_owned());
        self
    }

    /// Called after each round.
    pub(crate) fn update(&mut self, progress: &Progress, interrupt: &Interrupt) -> Verdict {
        if interrupt.is_raised() {
            return Verdict::Stop;
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
        Verdict::Continue
    }

    fn draw(&self, progress: &Progress, elapsed: f64) {
        let speed = progress.hops as f64 / elapsed;
        let done = progress.flows_sent as f64 / progress.flows.max(1) as f64;
        let eta = if done > 0.02 {
            format!(
                "  {} to go",
                quantity::seconds(elapsed * (1.0 - done) / done)
            )
        } else {
            String::new()
        };
        self.bar.set_position(progress.flows_sent as u64);
        self.bar.set_message(format!(
            "at {}  {}{}/s{eta}",
            quantity::microseconds(progress.now.as_us()),
            quantity::prefixed(speed),
            self.hops,
        ));
    }

    pub(crate) fn finish(self) {
        self.bar.finish_and_clear();
    }
}
