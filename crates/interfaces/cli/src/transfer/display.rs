//! Display of the progress of transfers.

use crate::failure::Failure;
use crate::hosts::paths_up;
use crate::messages::say;
use crate::progress::{Console, Interrupt, wall_time};
use clearway_report::quantity;
use clearway_runs::Stopwatch;
use clearway_transfer::{FileOutcome, Reason, TransferEvent, TransferObserver, TransferProgress};
use clearway_udp::net::Channel;
use indicatif::{ProgressBar, ProgressStyle};
use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::sync::Arc;

/// Maximum number of remarks about single files, and of failures in the list.
const MOST_LINES: usize = 20;
/// Averaging time of the rate, in seconds.
const RATE_OVER: f64 = 3.0;

/// Display of one transfer, and its failures for the report at the end.
pub(super) struct Display<'a> {
    console: Arc<Console>,
    bar: ProgressBar,
    channel: &'a Channel,
    interrupt: Interrupt,
    /// Beginning of the lines in a log.
    title: String,
    /// Time since the first byte.
    pub(super) stopwatch: Stopwatch,
    /// Times and byte counts of the last seconds.
    recent: VecDeque<(f64, u64)>,
    remarks: usize,
    /// Files that failed, up to the maximum; `failed` counts all.
    pub(super) failures: Vec<(String, Reason)>,
    failed: usize,
}

impl<'a> Display<'a> {
    pub(super) fn new(
        channel: &'a Channel,
        console: Arc<Console>,
        interrupt: Interrupt,
        title: String,
    ) -> Self {
        let bar = ProgressBar::with_draw_target(Some(0), console.draw_target());
        if let Ok(style) = ProgressStyle::with_template("{prefix}{bar:24}  {msg}") {
            bar.set_style(style);
        }
        bar.set_prefix(title.clone());
        Self {
            console,
            bar,
            channel,
            interrupt,
            title,
            stopwatch: Stopwatch::start(),
            recent: VecDeque::from([(0.0, 0)]),
            remarks: 0,
            failures: Vec::new(),
            failed: 0,
        }
    }

    /// Prints a line about a file, up to the maximum number of lines.
    fn remark(&mut self, text: &str) {
        self.remarks += 1;
        if self.console.is_silent() || self.remarks > MOST_LINES {
            return;
        }
        let title = &self.title;
        self.bar.suspend(|| say(&format!("{title}{text}")));
        if self.remarks == MOST_LINES {
            self.bar
                .suspend(|| say(&format!("{title}no more remarks about single files")));
        }
    }

    /// Mean rate of the last seconds in bit/s.
    fn rate(&mut self, now: f64, bytes: u64) -> f64 {
        self.recent.push_back((now, bytes));
        while self.recent.len() > 2 && self.recent[0].0 < now - RATE_OVER {
            self.recent.pop_front();
        }
        let (from, before) = self.recent[0];
        match now > from {
            true => (bytes - before) as f64 * 8.0 / (now - from),
            false => 0.0,
        }
    }

    /// Bytes, share, rate, remaining time and paths.
    fn line(&mut self, progress: &TransferProgress, now: f64) -> String {
        let there = progress.written + progress.kept;
        let bits = self.rate(now, progress.written);
        let mut parts = vec![
            format!(
                "{} of {}",
                quantity::bytes(there),
                quantity::bytes(progress.bytes)
            ),
            format!(
                "{:.0} %",
                there as f64 / progress.bytes.max(1) as f64 * 100.0
            ),
            format!("{:.2} Gb/s", bits / 1e9),
        ];
        let left = progress
            .bytes
            .saturating_sub(there.saturating_add(progress.failed_bytes));
        if bits > 0.0 && left > 0 {
            parts.push(format!("{} to go", wall_time(left as f64 * 8.0 / bits)));
        }
        if progress.files > 1 {
            parts.push(format!("{} of {} files", progress.done, progress.files));
        }
        parts.push(paths_up(&self.channel.snapshot()));
        parts.join("  ")
    }

    pub(super) fn finish(&mut self) {
        self.bar.finish_and_clear();
        // Failures arrive in any order.
        self.failures.sort_by(|a, b| a.0.cmp(&b.0));
    }

    /// The files that failed, each with its fix.
    pub(super) fn failure(&self) -> Result<(), Failure> {
        let listed = self.failures.iter();
        let listed = listed.map(|(name, reason)| {
            format!("{}{name}: {reason}\n  fix: {}", self.title, reason.fix())
        });
        let more = (self.failed > MOST_LINES).then(|| {
            let more = self.failed - MOST_LINES;
            format!(
                "{}{more} more files failed\n  fix: as those above",
                self.title
            )
        });
        Failure::all(listed.chain(more).map(|message| Err(Failure::new(message))))
    }
}

impl TransferObserver for Display<'_> {
    fn on_event(&mut self, event: &TransferEvent) {
        match &event.what {
            FileOutcome::Kept {
                bytes,
                changed: false,
            } => {
                let there = quantity::bytes(*bytes);
                self.remark(&format!(
                    "{}: {there} are there from before and will be compared",
                    event.name
                ));
            }
            FileOutcome::Kept {
                bytes,
                changed: true,
            } => {
                let there = quantity::bytes(*bytes);
                let name = &event.name;
                self.remark(&format!(
                    "{name}: it has changed since the interruption; blocks of the {there} already received are kept where they are still the same"
                ));
            }
            FileOutcome::Done { .. } => {}
            FileOutcome::Failed(reason) => {
                self.failed += 1;
                if self.failures.len() < MOST_LINES {
                    self.failures.push((event.name.clone(), reason.clone()));
                }
            }
        }
    }

    fn on_tick(&mut self, progress: &TransferProgress) -> ControlFlow<()> {
        // Before the first byte, this end waits for the other end and for disks.
        if progress.moved + progress.kept == 0 {
            self.stopwatch = Stopwatch::start();
        }
        let now = self.stopwatch.wall_seconds();
        let line = self.line(progress, now);
        self.bar.set_length(progress.bytes.max(1));
        self.bar.set_position(progress.written + progress.kept);
        self.bar.set_message(line.clone());
        self.console.log_since(now, || {
            format!("{}{}", self.title, line.replace("  ", ", "))
        });
        match self.interrupt.is_raised() {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }
}
