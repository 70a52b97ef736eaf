//! `clearway run --live`: a page on this machine that shows the run while it goes on, and can make it wait or end.
//!
//! ```text
//! simulation ── after each round ──► state (one lock) ◄── state, orders ── server ◄── page
//!     └── samples ──► history (bounded)
//! ```
//! Pages ask; nothing is sent to them unasked. So one that is closed, or was never opened, costs nothing and is not noticed. The
//! simulation depends on none of this: a paused or watched run has the digest that it would have had alone.

mod connections;
mod history;
mod server;
mod state;

use crate::arguments::RunArguments;
use crate::failure::Failure;
use crate::messages::say;
use crate::progress::Interrupt;
use crate::record::identity;
use clearway_lab::scenario::Sampling;
use clearway_lab::{Assembly, LinkId, NodeId, Progress, Scenario, Verdict};
use clearway_report::{RunRecord, SeriesRow, Status, Subject, page};
use history::History;
use server::Server;
use state::{Ending, Shared};
use std::cell::RefCell;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// Time for which the server stays after the end, for pages that want to know how the run ended: they ask every 0.3 s, in the background
/// every second.
const FAREWELL: Duration = Duration::from_millis(1500);

/// A run that can be watched.
pub(crate) struct Live<'a> {
    assembly: &'a Assembly,
    shared: Arc<Shared>,
    server: Server,
    /// Rows of samples taken since the last round.
    rows: RefCell<Vec<SeriesRow>>,
}

impl<'a> Live<'a> {
    /// Serves a page if the arguments ask for one.
    pub(crate) fn start(
        arguments: &RunArguments,
        scenario: &Scenario,
        assembly: &'a Assembly,
    ) -> Result<Option<Self>, Failure> {
        if !arguments.live {
            return Ok(None);
        }
        let sampled = scenario.observe.every != Sampling::Off;
        let page = page::live(&identity(scenario), sampled);
        let flows = assembly.flow_count();
        let shared = Arc::new(Shared::new(flows, arguments.live_paused));
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
        }))
    }

    /// Says where the page is. Even a quiet run does: nobody could find it otherwise.
    pub(crate) fn announce(&self) {
        say(&format!("live: http://127.0.0.1:{}/", self.server.port()));
    }

    /// Called with the rows of each sample.
    pub(crate) fn on_rows(&self, rows: &[SeriesRow]) {
        self.rows.borrow_mut().extend_from_slice(rows);
    }

    /// Called after each round; waits while the run is paused.
    pub(crate) fn on_round(&self, progress: Progress, interrupt: &Interrupt) -> Verdict {
        self.shared.on_round(
            progress,
            |history| self.add_samples(history),
            || interrupt.is_raised(),
        )
    }

    /// Called when the simulation is over and its results are to be written.
    pub(crate) fn on_simulated(&self) {
        self.shared
            .on_simulated(|history| self.add_samples(history));
    }

    /// Tells how the run ended, and stays a moment if somebody wants to know.
    pub(crate) fn conclude(self, record: &RunRecord, folder: &Path) {
        let (status, reason) = match &record.status {
            Status::Complete => ("complete", None),
            Status::Incomplete { reason } => ("incomplete", Some(reason.clone())),
            Status::Interrupted => ("interrupted", None),
        };
        let ending = Ending {
            status,
            reason,
            figures: page::tiles(record),
            folder: folder.display().to_string(),
        };
        if self.shared.on_end(ending) {
            thread::sleep(FAREWELL);
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
