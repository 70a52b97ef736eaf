//! One run: from a scenario to its record and its result folder.
//!
//! ```text
//! Experiment ── assemble ──► simulate, watched ──► RunRecord ──► result folder
//! ```
//!
//! The command line, comparisons and programs in other languages run scenarios through this crate, so all of them produce the same result
//! folder. [`run`] performs all steps; [`watch`], [`scaleup`], [`Outputs`] and [`FlowRows`] are its parts, for programs that show a run
//! while it goes on.
//!
//! **Architecture invariant:** no terminal and no process exit: functions return their messages.

mod capture_file;
mod error_text;
mod event_log;
mod flow_rows;
mod outputs;
mod process_usage;
mod record;
mod report_page;
mod run;
mod save;
pub mod scaleup;
mod series_file;
mod stepped;
mod timeline_file;
pub mod watch;

pub use capture_file::warning as capture_warning;
pub use error_text::{defect_text, with_causes};
pub use flow_rows::{FlowRows, FlowsFile, row as flow_row};
pub use outputs::{Outputs, Results, TextFile};
pub use process_usage::{Stopwatch, forget_peak_rss, peak_rss_bytes};
pub use record::{REVISION, command_line, identity, record, set_arguments};
pub use report_page::html as report_html;
pub use run::{CompletedRun, RunRequest, RunWatcher, RunWork, check, run, work_of};
pub use save::{Unsaved, save};
pub use stepped::stepped_record;
