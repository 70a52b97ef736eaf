//! `clearway run --live`: a page on this machine that shows the run in progress, and can pause or stop it.
//!
//! ```text
//! simulation ── after each round ──► state (one lock) ◄── state, orders ── server ◄── page
//!     └── samples ──► history (bounded)
//! ```
//! Pages poll; the server does not push. So a page that is closed, or was never opened, costs nothing. The simulation does not depend on
//! the pages: a paused or watched run has the same digest as an unwatched run.

mod connections;
mod history;
mod server;
mod state;

use crate::arguments::{PageLifetime, RunArguments};
use crate::failure::Failure;
use crate::messages::say;
use crate::progress::Interrupt;
use clearway_lab::scenario::Sampling;
use clearway_lab::{Assembly, LinkId, NodeId, RunDecision, RunProgress, Scenario};
use clearway_report::{LinkFrames, RunRecord, SeriesRow, Status, Subject};
use clearway_report_html::{self as page, LiveMap};
use clearway_runs::{identity, watch};
use history::History;
use server::Server;
use state::{Ending, LiveFrame, Shared};
use std::cell::RefCell;
use std::env;
use std::ffi::OsStr;
use std::io::{self, IsTerminal as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// Least time for which the server stays, so that pages can show the end of the run: pages ask every 0.3 s, in the background every second.
const FAREWELL: Duration = Duration::from_millis(1500);

/// Interval between checks for Ctrl-C while the server shows a finished run.
const GLANCE: Duration = Duration::from_millis(50);

/// A run that can be watched.
pub(crate) struct Live<'a> {
    assembly: &'a Assembly,
    shared: Arc<Shared>,
    server: Server,
    /// Rows of samples taken since the last round.
    rows: RefCell<Vec<SeriesRow>>,
    /// The last interval of the map since the last round.
    frame: RefCell<Option<LiveFrame>>,
}

impl<'a> Live<'a> {
    /// Serves a page if the arguments request one.
    pub(crate) fn start(
        arguments: &RunArguments,
        scenario: &Scenario,
        assembly: &'a Assembly,
    ) -> Result<Option<Self>, Failure> {
        if !arguments.live {
            return Ok(None);
        }
        let sampled = scenario.observe.every != Sampling::Off;
        let map = sampled.then(|| LiveMap::new(&watch::fabric(assembly)));
        let page = page::live(&identity(scenario), map.as_ref());
        let flows = assembly.flow_count();
        let hops = assembly.expected_work().packet_hops;
        let shared = Arc::new(Shared::new((flows, hops), map, arguments.live_paused));
        let port = arguments.live_port.unwrap_or(0);
        let server = Server::start(port, Arc::clone(&shared), page).map_err(|error| {
            Failure::new(format!(
                "--live: cannot listen on port {port} of 127.0.0.1: {error}\n  fix: name another port with `--live-port`, or none"
            ))
        })?;
        Ok(Some(Self {
            assembly,
            shared,
            server,
            rows: RefCell::default(),
            frame: RefCell::default(),
        }))
    }

    /// Prints the address of the page, even in a quiet run: the user needs it.
    pub(crate) fn announce(&self) {
        say(&format!("live: {}", self.address()));
    }

    fn address(&self) -> String {
        format!("http://127.0.0.1:{}/", self.server.port())
    }

    /// Keeps the rows of a sample until the end of the round.
    pub(crate) fn on_rows(&self, rows: &[SeriesRow]) {
        self.rows.borrow_mut().extend_from_slice(rows);
    }

    /// Keeps the last interval of the map until the end of the round.
    pub(crate) fn on_frames(&self, frames: &LinkFrames) {
        let frame = frames.last().map(|(from, to, counts)| LiveFrame {
            from,
            to,
            counts: counts.into(),
        });
        *self.frame.borrow_mut() = frame;
    }

    /// Updates the pages after a round; waits while the run is paused.
    pub(crate) fn on_round(&self, progress: RunProgress, interrupt: &Interrupt) -> RunDecision {
        if let Some(frame) = self.frame.take() {
            self.shared.on_frame(frame);
        }
        self.shared.on_round(
            progress,
            |history| self.add_samples(history),
            || interrupt.is_raised(),
        )
    }

    /// Updates the pages after the simulation, before its results are written.
    pub(crate) fn on_simulated(&self) {
        self.shared
            .on_simulated(|history| self.add_samples(history));
    }

    /// Shows the end of the run on the pages; `folder` is the result folder, if results are kept.
    pub(crate) fn conclude(&self, record: &RunRecord, folder: Option<&Path>) {
        let (status, reason) = match &record.status {
            Status::Complete => ("complete", None),
            Status::Incomplete { reason } => ("incomplete", Some(reason.clone())),
            Status::Interrupted => ("interrupted", None),
        };
        let report_file = folder.map_or(PathBuf::new(), |folder| folder.join(page::FILE_NAME));
        let ending = Ending {
            status,
            reason,
            figures: page::tiles(record),
            folder: folder.map_or("nothing is kept".into(), |folder| {
                folder.display().to_string()
            }),
            report: report_file.exists().then_some(page::FILE_NAME),
            report_file,
        };
        self.shared.on_end(ending);
    }

    /// Serves the page of the finished run for a time, or until an interrupt.
    pub(crate) fn stay(self, stay: PageLifetime, interrupt: &Interrupt) {
        if !interrupt.is_raised() {
            let address = self.address();
            match stay {
                PageLifetime::For(Duration::ZERO) => {}
                PageLifetime::For(time) => say(&format!(
                    "live: the run is over; {address} stays for {} s, or until Ctrl-C",
                    time.as_secs_f64()
                )),
                PageLifetime::Forever => say(&format!(
                    "live: the run is over; {address} stays until Ctrl-C"
                )),
            }
        }
        if self.shared.is_watched() {
            thread::sleep(FAREWELL);
        }
        let mut passed = Duration::ZERO;
        while !interrupt.is_raised() && stay.lasts(passed) {
            thread::sleep(GLANCE);
            passed += GLANCE;
        }
    }

    fn add_samples(&self, history: &mut History) {
        let mut rows = self.rows.borrow_mut();
        let topology = &self.assembly.topology;
        let name = |subject: Subject| {
            let link = |link| topology.link_name(LinkId(link));
            subject.name(link, |node| topology.node_name(NodeId(node)))
        };
        for instant in rows.chunk_by(|a, b| a.time == b.time) {
            history.add(instant, &name);
        }
        rows.clear();
    }
}

/// Time for which the page is served after the end: the requested time; otherwise without limit if a user can press Ctrl-C. After a failed
/// run the page is not served, so that the errors are not held back.
pub(crate) fn stay(asked: Option<PageLifetime>, succeeded: bool) -> PageLifetime {
    let ci = env::var_os("CI");
    let attended = is_attended(io::stderr().is_terminal(), ci.as_deref());
    match asked {
        _ if !succeeded => PageLifetime::For(Duration::ZERO),
        Some(asked) => asked,
        None if attended => PageLifetime::Forever,
        None => PageLifetime::For(Duration::ZERO),
    }
}

/// True if a user reads standard error; `ci` is the environment variable CI, which continuous integration sets, even on a terminal.
fn is_attended(terminal: bool, ci: Option<&OsStr>) -> bool {
    let in_ci = ci.is_some_and(|value| !value.is_empty() && value != "0" && value != "false");
    terminal && !in_ci
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_somebody_at_a_terminal_is_waited_for() {
        for (terminal, ci, attended) in [
            (true, None, true),
            (true, Some("false"), true),
            (true, Some(""), true),
            (true, Some("true"), false),
            (true, Some("1"), false),
            (false, None, false),
            (false, Some("false"), false),
        ] {
            let ci = ci.map(OsStr::new);
            assert_eq!(is_attended(terminal, ci), attended, "{terminal} {ci:?}");
        }
    }
}
