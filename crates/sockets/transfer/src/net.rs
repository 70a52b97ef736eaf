//! Transfers over connections: messages of a side go to the connection, and its jobs to threads that may block on a disk.

use crate::receiving::{ReceiveLimits, Receiving, Unfinished};
use crate::sources::Sources;
use crate::store::ReceiveStore;
use crate::transfer_side::{Disk, TransferEvent, TransferProgress, TransferSide, Violation};
use clearway_udp::net::{Channel, Message};
use clearway_udp::{ConnectionError, SendError};
use std::future::{Future, poll_fn};
use std::ops::ControlFlow;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{Interval, MissedTickBehavior, interval};

/// Close code of a transfer that has settled the fate of each file.
pub const DONE: u64 = 0;
/// Close code after an interruption by the user.
pub const INTERRUPTED: u64 = 1;
/// Close code after a protocol violation by the other side.
pub const VIOLATION: u64 = 2;
/// Time limit for the greeting of the other side.
const GREETING: Duration = Duration::from_secs(10);
/// Time between two calls of an observer.
const TICK: Duration = Duration::from_millis(100);

/// Reason why a transfer ended early.
#[derive(Debug, thiserror::Error)]
pub enum TransferError {
    /// The connection ended.
    #[error(transparent)]
    Closed(#[from] ConnectionError),
    /// The connection did not take a message.
    #[error(transparent)]
    Send(#[from] SendError),
    /// The other side violates the protocol.
    #[error("the other end broke the protocol of transfers: {0}")]
    Violation(#[from] Violation),
    /// The other side sends no greeting.
    #[error("the other end is connected, but transfers no files")]
    NoGreeting,
    /// The user of the other side interrupted it.
    #[error("the other end was interrupted")]
    InterruptedThere,
    /// The other side reports a protocol violation by this side.
    #[error("the other end says that this one broke the protocol of transfers")]
    ViolationHere,
    /// The user of this side interrupted it.
    #[error("interrupted")]
    Interrupted,
}

impl TransferError {
    /// True if a later attempt may succeed without a change at this end.
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Closed(closed) => closed.may_pass(),
            Self::InterruptedThere => true,
            _ => false,
        }
    }

    /// Advice to the user.
    pub fn fix(&self) -> &'static str {
        match self {
            Self::Closed(closed) => closed.fix(),
            Self::Send(_) => "see what the other end says",
            Self::Violation(_) | Self::ViolationHere => "use the same release at both ends",
            Self::NoGreeting => {
                "see that `clearway recv` runs at one end and `clearway send` at the other"
            }
            Self::InterruptedThere => "ask its user; the same command goes on",
            Self::Interrupted => "the same command goes on",
        }
    }
}

/// Observer of a transfer.
pub trait TransferObserver {
    /// Called with the fate of each file.
    fn on_event(&mut self, event: &TransferEvent);
    /// Called several times a second, and at the end; `Break` ends the transfer.
    fn on_tick(&mut self, progress: &TransferProgress) -> ControlFlow<()>;
}

/// Outcome of a [`send`].
#[derive(Debug)]
pub struct SendOutcome {
    /// Counters of the sent files and bytes.
    pub progress: TransferProgress,
    /// Reason why the transfer ended before it settled the fate of each file. The other end keeps the data that has arrived.
    pub error: Option<TransferError>,
}

/// Sends files over a connection whose other end calls [`receive`].
pub async fn send(
    channel: &Channel,
    sources: Arc<Sources>,
    watch: &mut (dyn TransferObserver + Send),
) -> SendOutcome {
    let mut sending = sources.sending();
    let ended = run(channel, &mut sending, &sources, watch).await;
    let progress = *sending.progress();
    // Reports the final counters.
    let _ = watch.on_tick(&progress);
    let error = match ended {
        Ok(()) => {
            channel.shut_down(DONE).await;
            None
        }
        Err(error) => Some(end(channel, error).await),
    };
    SendOutcome { progress, error }
}

/// Outcome of a [`receive`].
#[derive(Debug)]
pub struct ReceiveOutcome {
    /// Counters of the received files and bytes.
    pub progress: TransferProgress,
    /// Files of which only a part has arrived.
    pub unfinished: Vec<Unfinished>,
    /// Reason why the transfer ended early.
    pub error: Option<TransferError>,
}

/// Receives files over a connection, until the other end closes it.
pub async fn receive(
    channel: &Channel,
    store: ReceiveStore,
    bounds: ReceiveLimits,
    watch: &mut (dyn TransferObserver + Send),
) -> ReceiveOutcome {
    let mut receiving = Receiving::new(bounds);
    let store = Arc::new(store);
    let ended = run(channel, &mut receiving, &store, watch).await;
    let progress = *receiving.progress();
    let _ = watch.on_tick(&progress);
    let error = match ended {
        Err(TransferError::Closed(ConnectionError::There(DONE)))
            if receiving.is_greeted() && progress.is_complete() =>
        {
            None
        }
        Err(error) => Some(end(channel, error).await),
        Ok(()) => None,
    };
    store.tidy();
    ReceiveOutcome {
        progress,
        unfinished: receiving.unfinished().collect(),
        error,
    }
}

/// Closes the connection for a reason, and returns the reason for the user.
async fn end(channel: &Channel, error: TransferError) -> TransferError {
    match error {
        TransferError::Closed(ConnectionError::There(INTERRUPTED)) => {
            TransferError::InterruptedThere
        }
        TransferError::Closed(ConnectionError::There(VIOLATION)) => TransferError::ViolationHere,
        error => {
            channel.close(match error {
                TransferError::Violation(_) => VIOLATION,
                _ => INTERRUPTED,
            });
            // Wait until the close is sent.
            while channel.receive().await.is_ok() {}
            error
        }
    }
}

/// Event in the life of a transfer.
enum Step<O> {
    Sent(Result<(), SendError>),
    Message(Result<Message, ConnectionError>),
    Outcome(O),
    Tick,
}

/// A message in transmission.
type Sending<'a> = Option<Pin<Box<dyn Future<Output = Result<(), SendError>> + Send + 'a>>>;

/// Runs one side until it is over.
async fn run<P: TransferSide, D: Disk<P>>(
    channel: &Channel,
    party: &mut P,
    disk: &Arc<D>,
    watch: &mut (dyn TransferObserver + Send),
) -> Result<(), TransferError> {
    let mut jobs = JoinSet::new();
    let mut sending: Sending<'_> = None;
    let mut ticks = interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut patience = GREETING.as_millis() / TICK.as_millis();
    loop {
        while let Some(job) = party.poll_job() {
            let disk = Arc::clone(disk);
            jobs.spawn_blocking(move || disk.run(job));
        }
        while let Some(event) = party.poll_event() {
            watch.on_event(&event);
        }
        if sending.is_none()
            && let Some((tag, content)) = party.poll_send()
        {
            sending = Some(Box::pin(channel.send(tag, content)));
        }
        if party.is_over() && sending.is_none() && jobs.is_empty() {
            return Ok(());
        }
        match step(channel, party, &mut jobs, &mut sending, &mut ticks).await {
            Step::Sent(result) => {
                sending = None;
                // The reason for the end says more than `Closed`.
                if result == Err(SendError::Closed) {
                    return Err(channel.ended().await.into());
                }
                result?;
            }
            Step::Message(message) => {
                let Message { tag, data } = message?;
                party.on_message(tag, data)?;
            }
            Step::Outcome(outcome) => party.on_outcome(outcome),
            Step::Tick => {
                if watch.on_tick(party.progress()).is_break() {
                    return Err(TransferError::Interrupted);
                }
                party.on_tick();
                if !party.is_greeted() {
                    patience = patience.checked_sub(1).ok_or(TransferError::NoGreeting)?;
                }
            }
        }
    }
}

/// Waits for the next event.
async fn step<P: TransferSide>(
    channel: &Channel,
    party: &P,
    jobs: &mut JoinSet<P::Outcome>,
    sending: &mut Sending<'_>,
    ticks: &mut Interval,
) -> Step<P::Outcome> {
    let takes_messages = party.takes_messages();
    let mut receiving = pin!(channel.receive());
    poll_fn(|cx: &mut Context<'_>| {
        // Polled first, because ticks are rare: Ctrl-C must work under any load.
        if ticks.poll_tick(cx).is_ready() {
            return Poll::Ready(Step::Tick);
        }
        if let Poll::Ready(Some(outcome)) = jobs.poll_join_next(cx) {
            return Poll::Ready(match outcome {
                Ok(outcome) => Step::Outcome(outcome),
                // Nobody cancels jobs, so the job has panicked, which is a bug in this crate.
                Err(error) => std::panic::resume_unwind(error.into_panic()),
            });
        }
        if let Some(message) = sending
            && let Poll::Ready(result) = message.as_mut().poll(cx)
        {
            return Poll::Ready(Step::Sent(result));
        }
        if takes_messages && let Poll::Ready(message) = receiving.as_mut().poll(cx) {
            return Poll::Ready(Step::Message(message));
        }
        Poll::Pending
    })
    .await
}
