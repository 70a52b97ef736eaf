//! One run of the program in a separate process, under limits.

use crate::clock;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

/// Limits of a run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Address space in bytes.
    pub(crate) memory: u64,
    /// CPU time of all threads in seconds.
    pub(crate) cpu: u64,
    /// Wall time.
    pub(crate) wall: Duration,
}

/// End of a run: exit code, errors and results.
#[derive(Debug)]
pub(crate) struct Ended {
    /// Exit code; `None` if a signal ended the run.
    pub(crate) code: Option<i32>,
    /// Exit status in words.
    pub(crate) status: String,
    pub(crate) errors: String,
    /// True if the run was still in progress at the limit of wall time.
    pub(crate) hung: bool,
    /// Folder of the results.
    pub(crate) out: PathBuf,
}

/// Runs the program.
#[derive(Debug)]
pub(crate) struct Runner {
    program: PathBuf,
    /// Folder of this runner alone.
    scratch: PathBuf,
}

impl Runner {
    /// # Errors
    /// If the folder cannot be created.
    pub(crate) fn new(program: &Path, scratch: PathBuf) -> std::io::Result<Self> {
        fs::create_dir_all(&scratch)?;
        let program = program.to_path_buf();
        Ok(Self { program, scratch })
    }

    /// Runs the scenario in the file `scenario`; results go to the folder `name`.
    ///
    /// # Errors
    /// If the program cannot be started.
    pub(crate) fn run(
        &self,
        scenario: &Path,
        name: &str,
        threads: u32,
        limits: Limits,
    ) -> std::io::Result<Ended> {
        let out = self.scratch.join(name);
        let errors = self.scratch.join(format!("{name}.txt"));
        // Results of the previous run must not be mistaken for results of this run.
        match fs::remove_dir_all(&out) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let limit = format!(
            // The soft limit sends SIGXCPU, which distinguishes it from other causes that kill a process.
            "ulimit -v {}; ulimit -St {}; ulimit -Ht {}; ulimit -c 0; exec \"$@\"",
            limits.memory / 1024,
            limits.cpu,
            limits.cpu + 5
        );
        let mut child = Command::new("sh")
            .args(["-c", &limit, "sh"])
            .arg(&self.program)
            .args(["run", "--quiet", "--threads", &threads.to_string()])
            .arg("--out")
            .arg(&out)
            .arg(scenario)
            .env("RUST_BACKTRACE", "0")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(&errors)?)
            .spawn()?;
        let status = wait(&mut child, limits.wall)?;
        let hung = status.is_none();
        let status = match status {
            Some(status) => status,
            None => {
                child.kill()?;
                child.wait()?
            }
        };
        Ok(Ended {
            code: status.code(),
            status: status.to_string(),
            errors: String::from_utf8_lossy(&fs::read(&errors)?).into_owned(),
            hung,
            out,
        })
    }
}

/// Waits for the end of `child`; `None` if `limit` is exceeded.
fn wait(child: &mut Child, limit: Duration) -> std::io::Result<Option<ExitStatus>> {
    let start = clock::now();
    let mut pause = Duration::from_micros(500);
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if start.elapsed() > limit {
            return Ok(None);
        }
        std::thread::sleep(pause);
        pause = (pause * 5 / 4).min(Duration::from_millis(20));
    }
}
