//! Groups for programs without an async runtime.

use crate::error::GroupError;
use crate::execution::Buffers;
use crate::join::{GroupSettings, Listening, Members};
use crate::plan::{Algorithm, BufferOperation, CollectivePlan};
use std::fmt;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::thread::{self, JoinHandle};
use std::time::Duration;
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

/// Interval at which the caller is asked whether to continue.
const PATIENCE: Duration = Duration::from_millis(100);

/// A runtime on a separate thread, which keeps connections alive while the program computes.
struct Runtime {
    handle: Handle,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
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
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel();
        let serve = move || {
            // An error means that the sender was dropped, which also stops the runtime.
            let _ = runtime.block_on(stopped);
        };
        let thread = thread::Builder::new().name(format!("rank {rank}"));
        let thread = thread.spawn(serve).map_err(failed)?;
        Ok(Self {
            handle,
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    /// Waits for a future. Calls `goes_on` now and then, and drops the future if the answer is no.
    fn wait<T>(
        &self,
        future: impl Future<Output = Result<T, GroupError>>,
        goes_on: &mut dyn FnMut() -> bool,
    ) -> Result<T, GroupError> {
        self.handle.block_on(async {
            let mut future = pin!(future);
            let mut patience = pin!(tokio::time::sleep(PATIENCE));
            std::future::poll_fn(|cx| {
                if let Poll::Ready(result) = future.as_mut().poll(cx) {
                    return Poll::Ready(result);
                }
                while patience.as_mut().poll(cx).is_ready() {
                    if !goes_on() {
                        return Poll::Ready(Err(GroupError::Interrupted));
                    }
                    let next = tokio::time::Instant::now() + PATIENCE;
                    patience.as_mut().reset(next);
                }
                Poll::Pending
            })
            .await
        })
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
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
