//! The command line: arguments, progress, files, exit codes.
//!
//! A program with additional components is a crate of three lines, and has all commands of `clearway`:
//!
//! ```no_run
//! # use clearway::lab::paths::{PathFeedback, PathId, PathSelector, SelectorContext, SelectorDefinition, SendState};
//! # clearway::lab::units::parameters! { /// None.
//! # pub struct NoKeys {} }
//! # struct Mine;
//! # impl SelectorDefinition for Mine {
//! #     const NAME: &'static str = "mine";
//! #     const SUMMARY: &'static str = "always path 0";
//! #     type Parameters = NoKeys;
//! #     fn new(_: &NoKeys, _: SelectorContext<'_>) -> Self { Self }
//! # }
//! # impl PathSelector for Mine {
//! #     fn choose(&mut self, _: &SendState) -> PathId { 0 }
//! # }
//! use clearway::{Laboratory, main_with};
//!
//! fn main() -> std::process::ExitCode {
//!     main_with(Laboratory::new().with_selector::<Mine>())
//! }
//! ```
//!
//! Exit codes: 0 success; 1 a claim failed, flows or jobs did not finish, jobs are not compatible, or an attack gains; 2 the user's input
//! is wrong, or the output cannot be written; 3 an internal invariant is violated; 4 out of memory; 130 interrupted.

mod arguments;
mod atomic_file;
mod collective;
mod compare;
mod completions;
mod dry_run;
mod explain;
mod failure;
mod hosts;
mod import;
mod init;
mod isolate;
mod kinds;
mod live;
mod man;
mod messages;
mod output;
mod overwrite_check;
mod perf;
mod plan;
mod prepared_sweep;
mod print_arguments;
mod progress;
mod reproduce;
mod run;
mod scaleup;
mod scenario_arguments;
mod show;
mod softswitch;
mod sweep;
mod testbed;
mod text_file;
mod threads;
mod topology;
mod transfer;
mod tune;
mod unknown_option;
mod why;
mod worker;

use arguments::{Arguments, Command};
use clap::Parser;
pub use clearway_lab as lab;
use clearway_lab::Experiment;
pub use clearway_lab::Laboratory;
pub use explain::{catalogue, explained, group};
pub use failure::Failure;
pub use hosts::resolve;
pub use plan::{PlanRequest, planned};
pub use prepared_sweep::{PlanSource, PreparedSweep, SweepRequest, jobs_or_cores};
pub use show::shown;
use std::ffi::OsString;
use std::io::ErrorKind;
use std::panic::AssertUnwindSafe;
use std::process::ExitCode;

/// The whole program, with the components of `laboratory`.
///
/// Reads the arguments of the process. The returned exit code is for `main`.
pub fn main_with(laboratory: Laboratory) -> ExitCode {
    let arguments = std::env::args_os().skip(1).collect();
    carry_out(&laboratory, Arguments::try_parse(), arguments)
}

/// The whole program for a host in another language, whose process has other arguments. `arguments` do not include a program name.
/// `program` is the command that starts the program again, for the runs of a sweep: its path and first arguments.
pub fn main_from(
    laboratory: &Laboratory,
    program: Vec<OsString>,
    arguments: Vec<OsString>,
) -> ExitCode {
    prepared_sweep::set_program(program);
    let name = OsString::from("clearway");
    let all = [name].into_iter().chain(arguments.iter().cloned());
    let parsed = Arguments::try_parse_from(all);
    clearway_runs::set_arguments(arguments.clone());
    carry_out(laboratory, parsed, arguments)
}

fn carry_out(
    laboratory: &Laboratory,
    parsed: Result<Arguments, clap::Error>,
    given: Vec<OsString>,
) -> ExitCode {
    let arguments = match parsed {
        Ok(arguments) => arguments,
        Err(request) => {
            let text = |argument: OsString| argument.into_string().ok();
            let given: Vec<String> = given.into_iter().filter_map(text).collect();
            return answer(&unknown_option::with_advice(laboratory, request, &given));
        }
    };
    survive_limits();
    // Catch panics: a defect of `clearway` must not look like the user's mistake.
    let result =
        std::panic::catch_unwind(AssertUnwindSafe(|| dispatch(laboratory, arguments.command)));
    match result {
        Ok(Ok(code)) => code,
        Ok(Err(failure)) => failure.report(),
        Err(_) => {
            messages::say(
                "clearway: this is a defect of clearway; please report the message above with the scenario",
            );
            ExitCode::from(3)
        }
    }
}

/// Prints help, or the error in the arguments.
fn answer(request: &clap::Error) -> ExitCode {
    match request.print() {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => ExitCode::from(2),
        _ => ExitCode::from(request.exit_code() as u8),
    }
}

/// Turns a file beyond the process's size limit into a write error; otherwise the signal would end the process.
fn survive_limits() {
    #[cfg(unix)]
    {
        use signal_hook::{consts::SIGXFSZ, flag::register};
        // If registering fails, the signal ends such a run as before.
        let _ = register(SIGXFSZ, std::sync::Arc::default());
    }
}

fn dispatch(laboratory: &Laboratory, command: Command) -> Result<ExitCode, Failure> {
    match command {
        Command::Run(arguments) => match run::load_any(laboratory, &arguments.scenario())? {
            Experiment::Packets(scenario) if arguments.dry_run => {
                run::print_cost_estimate(&arguments, &scenario)
            }
            Experiment::Packets(scenario) => run::run(laboratory, &arguments, &scenario),
            Experiment::Scaleup(_) if arguments.dry_run => Err(dry_run::scale_up()),
            Experiment::Scaleup(scenario) => scaleup::run(&arguments, &scenario),
        },
        Command::List { group } => explain::list(laboratory, group.as_deref()),
        Command::Show(arguments) => show::show(laboratory, &arguments),
        Command::Init(arguments) => init::init(laboratory, &arguments),
        Command::Import(arguments) => import::import(&arguments),
        Command::Explain { name } => explain::explain(laboratory, &name),
        Command::Why(arguments) => why::why(laboratory, &arguments),
        Command::Topology(arguments) => topology::topology(laboratory, &arguments),
        Command::Compare(arguments) => compare::compare(laboratory, &arguments),
        Command::Plan(arguments) => plan::plan(laboratory, &arguments),
        Command::Sweep(arguments) => sweep::sweep(laboratory, &arguments),
        Command::Tune(arguments) => tune::run(laboratory, &arguments),
        Command::Isolate(arguments) => isolate::isolate(laboratory, &arguments),
        Command::Perf(arguments) => perf::perf(&arguments),
        Command::Softswitch(arguments) => softswitch::softswitch(laboratory, &arguments),
        Command::Testbed(arguments) => testbed::testbed(laboratory, &arguments),
        Command::Send(arguments) => transfer::send(&arguments),
        Command::Recv(arguments) => transfer::recv(&arguments),
        Command::Collective(arguments) => collective::collective(&arguments),
        Command::Reproduce(arguments) => reproduce::reproduce(laboratory, &arguments),
        Command::CarryOut { folder } => worker::work(laboratory, &folder, dispatch),
        Command::Completions { shell } => completions::completions(laboratory, shell),
        Command::Man { folder } => man::man(folder.as_deref()),
    }
}

/// The chapter whose programs must compile.
#[cfg(doctest)]
#[doc = include_str!("../../../../docs/src/your-own.md")]
struct YourOwn;
