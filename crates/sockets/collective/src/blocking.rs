//! Groups for programs without an async runtime.

use crate::error::GroupError;
use crate::execution::Buffers;
use crate::join::{GroupSettings, Listening, Members};
use crate::plan::{Algorithm, BufferOperation, CollectivePlan};
use std::fmt;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use tokio::runtime::Builder;
use tokio::sync::Notify;

/// Interval at which the caller is asked whether to continue.
const PATIENCE: Duration = Duration::from_millis(100);

/// The runtime of a rank's connections.
///
/// During a call the calling thread runs its tasks: a message wakes no other thread, and stays in the cache of one processor. Between calls
/// a background thread runs them, which keeps connections alive while the program computes.
struct Runtime {
    shared: Arc<Shared>,
    background: Option<JoinHandle<()>>,
}

struct Shared {
    runtime: tokio::runtime::Runtime,
    phase: Mutex<Phase>,
    /// Notified when a call ends, and at the end.
    call_ended: Condvar,
    /// Notified when the background thread has to stop running tasks.
    leave: Notify,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// No thread is in a call.
    Between,
    /// A thread is in a call.
    Call,
    /// The runtime ends.
    Over,
}

impl Shared {
    /// Runs tasks between calls, until the end.
    fn run_between_calls(&self) {
        loop {
            let phase = self.phase.lock().unwrap_or_else(PoisonError::into_inner);
            let is_call = |phase: &mut Phase| *phase == Phase::Call;
            let phase = self.call_ended.wait_while(phase, is_call);
            if *phase.unwrap_or_else(PoisonError::into_inner) == Phase::Over {
                return;
            }
            // Returns at once if a call has begun since.
            self.runtime.block_on(self.leave.notified());
        }
    }

    fn set_phase(&self, phase: Phase) {
        *self.phase.lock().unwrap_or_else(PoisonError::into_inner) = phase;
        if phase != Phase::Between {
            // If the background thread waits for the end of a call, the notification only makes it look once more.
            self.leave.notify_one();
        }
        if phase != Phase::Call {
            self.call_ended.notify_one();
        }
    }
}

/// A call, from its creation until it is dropped.
struct Call<'a>(&'a Shared);

impl<'a> Call<'a> {
    fn begin(shared: &'a Shared) -> Self {
        shared.set_phase(Phase::Call);
        Self(shared)
    }
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        self.0.set_phase(Phase::Between);
    }
}

impl Runtime {
    fn start(rank: u32, address: SocketAddr) -> Result<Self, GroupError> {
        let failed = |error: std::io::Error| GroupError::Socket {
            rank,
            address,
            error: error.to_string(),
        };
        // Poll sockets on every tick: datagrams that wait in a socket would make its path look late.
        let runtime = Builder::new_current_thread()
            .event_interval(1)
            .enable_all()
            .build()
            .map_err(failed)?;
        let shared = Arc::new(Shared {
            runtime,
            phase: Mutex::new(Phase::Between),
            call_ended: Condvar::new(),
            leave: Notify::new(),
        });
        let thread = thread::Builder::new().name(format!("rank {rank}"));
        let theirs = Arc::clone(&shared);
        let background = thread.spawn(move || theirs.run_between_calls());
        Ok(Self {
            shared,
            background: Some(background.map_err(failed)?),
        })
    }

    /// Runs a future, and all tasks meanwhile. Calls `goes_on` now and then, and drops the future if the answer is no.
    fn wait<T>(
        &self,
        future: impl Future<Output = Result<T, GroupError>>,
        goes_on: &mut dyn FnMut() -> bool,
    ) -> Result<T, GroupError> {
        let mut future = pin!(future);
        loop {
            let call = Call::begin(&self.shared);
            let in_time = async { tokio::time::timeout(PATIENCE, future.as_mut()).await };
            let result = self.shared.runtime.block_on(in_time);
            // The background thread runs tasks while the caller decides.
            drop(call);
            if let Ok(result) = result {
                return result;
            }
            if !goes_on() {
                return Err(GroupError::Interrupted);
            }
        }
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        self.shared.set_phase(Phase::Over);
        if let Some(background) = self.background.take() {
            let _ = background.join();
        }
    }
}

/// A listening rank that has not joined a group yet.
pub struct RankListener {
    listening: Listening,
    runtime: Runtime,
}

impl RankListener {
    /// As [`Listening::bind`].
    ///
    /// # Errors
    /// As [`Listening::bind`].
    pub fn bind(
        address: SocketAddr,
        rank: u32,
        ranks: u32,
        joining: GroupSettings,
    ) -> Result<Self, GroupError> {
        let runtime = Runtime::start(rank, address)?;
        let bind = async { Listening::bind(address, rank, ranks, joining) };
        let listening = runtime.wait(bind, &mut || true)?;
        Ok(Self { listening, runtime })
    }

    /// The address, with the actual port if the operating system chose it.
    pub fn address(&self) -> SocketAddr {
        self.listening.address()
    }

    /// As [`Listening::join`]. Calls `goes_on` now and then to learn whether to continue.
    ///
    /// # Errors
    /// As [`Listening::join`].
    pub fn join(
        self,
        members: Members,
        goes_on: &mut dyn FnMut() -> bool,
    ) -> Result<Group, GroupError> {
        let Self { listening, runtime } = self;
        let group = runtime.wait(listening.join(members), goes_on)?;
        Ok(Group {
            group: Some(group),
            runtime,
        })
    }
}

/// A [group](crate::Group) with blocking calls.
pub struct Group {
    /// None after the rank leaves the group.
    group: Option<crate::Group>,
    runtime: Runtime,
}

impl fmt::Debug for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Group(rank {} of {})", self.rank(), self.ranks())
    }
}

impl Group {
    /// As [`Group::join`](crate::Group::join).
    ///
    /// # Errors
    /// As [`Group::join`](crate::Group::join).
    pub fn join(members: Members, joining: GroupSettings) -> Result<Self, GroupError> {
        let (rank, ranks) = (members.rank, members.addresses.len() as u32);
        let Some(address) = members.listening_at() else {
            return Err(GroupError::Members(format!(
                "there is no rank {rank} among {ranks}"
            )));
        };
        let listener = RankListener::bind(address, rank, ranks, joining)?;
        listener.join(members, &mut || true)
    }

    fn inner(&self) -> &crate::Group {
        self.group
            .as_ref()
            .expect("it is taken only when it is left")
    }

    /// Number of this rank.
    pub fn rank(&self) -> u32 {
        self.inner().rank()
    }

    /// Number of all ranks.
    pub fn ranks(&self) -> u32 {
        self.inner().ranks()
    }

    /// As [`Group::plan`](crate::Group::plan).
    ///
    /// # Errors
    /// As [`Group::plan`](crate::Group::plan).
    pub fn plan(
        &mut self,
        operation: BufferOperation,
        algorithm: Option<Algorithm>,
        count: usize,
        chunk: Option<usize>,
    ) -> Result<Arc<CollectivePlan>, GroupError> {
        let group = self
            .group
            .as_mut()
            .expect("it is taken only when it is left");
        group.plan(operation, algorithm, count, chunk)
    }

    /// As [`Group::run`](crate::Group::run). Calls `goes_on` now and then to learn whether to continue; if not, the group is over.
    ///
    /// # Errors
    /// As [`Group::run`](crate::Group::run).
    pub fn run(
        &mut self,
        plan: &Arc<CollectivePlan>,
        buffers: &mut Buffers<'_>,
        goes_on: &mut dyn FnMut() -> bool,
    ) -> Result<(), GroupError> {
        let group = self
            .group
            .as_mut()
            .expect("it is taken only when it is left");
        self.runtime.wait(group.run(plan, buffers), goes_on)
    }

    /// As [`Group::leave`](crate::Group::leave).
    ///
    /// # Errors
    /// As [`Group::leave`](crate::Group::leave).
    pub fn leave(mut self) -> Result<(), GroupError> {
        let Some(group) = self.group.take() else {
            return Ok(());
        };
        self.runtime.wait(group.leave(), &mut || true)
    }
}

impl Drop for Group {
    /// Tells the other ranks, if this rank has not left the group.
    fn drop(&mut self) {
        if let Some(mut group) = self.group.take() {
            let end = async {
                group.end_unfinished().await;
                Ok(())
            };
            let _ = self.runtime.wait(end, &mut || true);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread::ThreadId;
    use tokio::sync::mpsc::unbounded_channel;

    #[test]
    fn tasks_run_on_the_calling_thread_in_calls_and_in_the_background_between_them() {
        let address = SocketAddr::from(([127, 0, 0, 1], 0));
        let runtime = Runtime::start(0, address).unwrap();
        let (ask, mut asked) = unbounded_channel::<()>();
        let (tell, mut told) = unbounded_channel::<ThreadId>();
        let begin = async {
            tokio::spawn(async move {
                while asked.recv().await.is_some() {
                    tell.send(thread::current().id()).unwrap();
                }
            });
            Ok(())
        };
        runtime.wait(begin, &mut || true).unwrap();
        let here = thread::current().id();
        for _ in 0..100 {
            ask.send(()).unwrap();
            assert_ne!(told.blocking_recv(), Some(here));
            let call = async {
                loop {
                    ask.send(()).unwrap();
                    // At first the background thread may still run tasks.
                    if told.recv().await == Some(here) {
                        return Ok(());
                    }
                }
            };
            runtime.wait(call, &mut || true).unwrap();
        }
    }
}
