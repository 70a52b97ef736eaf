//! Execution of the steps of a plan by `ip` and `tc`.

use crate::fault::Fault;
use crate::plan::{CommandBatch, StepProgram};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::Duration;

/// Time after which a batch is aborted.
const LONGEST: Duration = Duration::from_secs(30);
/// Interval of checks on a running process.
const LOOK: Duration = Duration::from_millis(1);

/// Executes a step.
///
/// # Errors
/// If the program is missing, not permitted, or fails.
pub(crate) fn carry_out(step: &CommandBatch) -> Result<(), Fault> {
    if step.batch.is_empty() {
        return Ok(());
    }
    let output = run(command(step), &step.batch);
    let program = name(step.program);
    let output = output.map_err(|error| not_started(program, &error))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(refused(step, &String::from_utf8_lossy(&output.stderr))),
    }
}

/// Output of a read-only program.
///
/// # Errors
/// If the program is missing, or fails: its output up to then is incomplete.
pub(crate) fn look(program: &'static str, arguments: &[&str]) -> Result<String, Fault> {
    let mut command = Command::new(program);
    command.args(arguments);
    let output = run(command, "").map_err(|error| not_started(program, &error))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let (said, status) = (first_line(&said), output.status);
        return Err(Fault::new(
            format!(
                "`{program} {}` failed ({status}): {said}",
                arguments.join(" ")
            ),
            fix(said, "run it yourself and see what it says"),
        ));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The first line with content.
fn first_line(said: &str) -> &str {
    let mut lines = said.lines().map(str::trim);
    lines.find(|line| !line.is_empty()).unwrap_or_default()
}

const fn name(program: StepProgram) -> &'static str {
    match program {
        StepProgram::Ip | StepProgram::Shell => "ip",
        StepProgram::Tc => "tc",
    }
}

fn command(step: &CommandBatch) -> Command {
    let mut command = Command::new(name(step.program));
    match (step.program, &step.namespace) {
        (StepProgram::Shell, namespace) => {
            let namespace = namespace.as_deref().unwrap_or_default();
            command.args(["netns", "exec", namespace, "sh", "-e"]);
        }
        (_, Some(namespace)) => {
            command.args(["-n", namespace, "-batch", "-"]);
        }
        (_, None) => {
            command.args(["-batch", "-"]);
        }
    }
    command
}

/// Runs a program with a text as its input, for as long as [`LONGEST`].
fn run(mut command: Command, input: &str) -> io::Result<Output> {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        // A program that does not read all its input reports the reason itself.
        let _ = stdin.write_all(input.as_bytes());
    }
    let outputs = (child.stdout.take(), child.stderr.take());
    let reader = thread::spawn(move || {
        let (mut out, mut err) = (Vec::new(), Vec::new());
        if let Some(mut stdout) = outputs.0 {
            let _ = stdout.read_to_end(&mut out);
        }
        if let Some(mut stderr) = outputs.1 {
            let _ = stderr.read_to_end(&mut err);
        }
        (out, err)
    });
    let status = wait(&mut child, LONGEST)?;
    let (stdout, stderr) = reader.join().unwrap_or_default();
    Ok(Output {
        status,
        stdout,
        stderr,
    })
}

/// Waits until a process has ended; ends it after `longest`.
pub(crate) fn wait(child: &mut Child, longest: Duration) -> io::Result<std::process::ExitStatus> {
    let mut waited = Duration::ZERO;
    while waited < longest {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        thread::sleep(LOOK);
        waited += LOOK;
    }
    let _ = child.kill();
    child.wait()
}

fn not_started(program: &str, error: &io::Error) -> Fault {
    match error.kind() {
        ErrorKind::NotFound => Fault::new(
            format!("there is no program `{program}`"),
            "install iproute2, which has `ip` and `tc`",
        ),
        _ => Fault::new(
            format!("cannot start `{program}`: {error}"),
            "see to it that this user may run it",
        ),
    }
}

fn refused(step: &CommandBatch, said: &str) -> Fault {
    let place = match &step.namespace {
        Some(namespace) => format!("namespace {namespace}"),
        None => "the namespace of this process".into(),
    };
    let line = failed_line(said).and_then(|line| step.batch.lines().nth(line.checked_sub(1)?));
    let said = first_line(said);
    let program = name(step.program);
    let line = line.map_or(String::new(), |line| format!(" at `{line}`"));
    let what = format!("`{program}` failed in {place}{line}: {said}");
    let unknown = match step.batch.contains("netem") {
        true => {
            "this kernel has no netem, which delays and losses of links need: use `--switches soft`"
        }
        false => {
            "this kernel has no tbf (CONFIG_NET_SCH_TBF), which makes the rates of links: use `--switches soft`"
        }
    };
    let other = match said.to_lowercase().contains("qdisc kind is unknown") {
        true => unknown,
        false => "see its output; `clearway testbed up --dry-run` prints all its commands",
    };
    Fault::new(what, fix(said, other))
}

/// Fix for an error message of `ip` or `tc`, or `other` if there is no better one.
fn fix(said: &str, other: &'static str) -> &'static str {
    let lower = said.to_lowercase();
    if lower.contains("not permitted") || lower.contains("permission denied") {
        "a test bed makes network namespaces: run as root, or within `unshare --map-root-user --net --mount sh -c 'mount -t tmpfs none \
         /run && …'`"
    } else if lower.contains("file exists") {
        "something of that name is there: `clearway testbed down --name NAME` takes a bed away, `--name` names another"
    } else if lower.contains("unknown device type") {
        "this kernel has no veth (CONFIG_VETH): use a kernel that has"
    } else {
        other
    }
}

/// Number of the failed line of a batch, as `ip` and `tc` report it.
fn failed_line(said: &str) -> Option<usize> {
    let line = said
        .lines()
        .find_map(|line| line.trim().strip_prefix("Command failed -:"))?;
    line.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_name_the_line_and_the_fix() {
        let step = |batch: &str| CommandBatch {
            program: StepProgram::Tc,
            namespace: Some("cw-x-h0".into()),
            batch: batch.into(),
        };
        let said = "Error: Specified qdisc kind is unknown.\nCommand failed -:2\n";
        let fault = refused(&step("one\nqdisc add dev p0 netem\n"), said);
        assert_eq!(
            fault.what,
            "`tc` failed in namespace cw-x-h0 at `qdisc add dev p0 netem`: Error: Specified qdisc kind is unknown."
        );
        assert!(fault.fix.contains("--switches soft"), "{fault}");
        let fault = refused(&step("one\n"), "RTNETLINK answers: Operation not permitted");
        assert!(fault.fix.contains("root"), "{fault}");
    }

    #[test]
    fn half_an_answer_is_none() {
        let script = "echo one; echo; echo 'Cannot open: Permission denied' >&2; exit 3";
        let fault = look("sh", &["-c", script]).unwrap_err();
        assert!(
            fault
                .what
                .ends_with("failed (exit status: 3): Cannot open: Permission denied"),
            "{fault}"
        );
        assert!(fault.fix.contains("run as root"), "{fault}");
        assert_eq!(look("sh", &["-c", "echo one"]).unwrap(), "one\n");
    }

    #[test]
    fn a_process_that_does_not_end_is_ended() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let status = wait(&mut child, Duration::from_millis(20)).unwrap();
        assert!(!status.success());
    }
}
