//! Transfers over connections: messages of one side go to the connection, its jobs to threads that may wait for a disk.

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

/// Code with which a transfer ends its connection when everything has its fate.
pub const DONE: u64 = 0;
/// Code of an end that was interrupted by the user.
pub const INTERRUPTED: u64 = 1;
/// Code of an end because the other side broke the protocol.
pub const VIOLATION: u64 = 2;
/// Time in which the other side has to say what it is.
const GREETING: Duration = Duration::from_secs(10);
/// Time between two calls of a watcher.
const TICK: Duration = Duration::from_millis(100);

/// Reason why a transfer ended before its end.
#[derive(Debug, thiserror::Error)]
pub enum TransferError {
    /// The connection ended.
    #[error(transparent)]
    Closed(#[from] ConnectionError),
    /// A message was not taken.
    #[error(transparent)]
    Send(#[from] SendError),
    /// The other side does what it must not.
    #[error("the other end broke the protocol of transfers: {0}")]
    Violation(#[from] Violation),
    /// The other side does not greet.
    #[error("the other end is connected, but transfers no files")]
    NoGreeting,
    /// The other side was interrupted by its user.
    #[error("the other end was interrupted")]
    InterruptedThere,
    /// The other side says that this one broke the protocol.
    #[error("the other end says that this one broke the protocol of transfers")]
    ViolationHere,
    /// The user of this side has interrupted it.
    #[error("interrupted")]
    Interrupted,
}

impl TransferError {
    /// True if the same may go well later, with nothing changed at this end.
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
    /// Called several times a second, and at the end; the transfer ends if it says so.
    fn on_tick(&mut self, progress: &TransferProgress) -> ControlFlow<()>;
}

/// Outcome of a [`send`].
#[derive(Debug)]
pub struct SendOutcome {
    /// Count of what has been sent.
    pub progress: TransferProgress,
    /// Reason why the transfer ended before each file had its fate. What has arrived is kept at the other end.
    pub error: Option<TransferError>,
}

/// Sends files over a connection that [`receive`]s at its other end.
pub async fn send(
    channel: &Channel,
    sources: Arc<Sources>,
    watch: &mut (dyn TransferObserver + Send),
) -> SendOutcome {
    let mut sending = sources.sending();
    let ended = run(channel, &mut sending, &sources, watch).await;
    let progress = *sending.progress();
    // The numbers of the end.
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
    /// Count of what has come.
    pub progress: TransferProgress,
    /// Files of which a part has come.
    pub unfinished: Vec<Unfinished>,
    /// Reason why the transfer ended before its end.
    pub error: Option<TransferError>,
}

/// Receives files over a connection, until the other end ends it.
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

/// Ends the connection for a reason, and returns the reason as its user understands it.
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
            // Until that is sent.
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

/// A message that is being sent.
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
                // That the connection has ended says less than why.
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

/// Waits for the next thing that happens.
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
        // First, as it comes rarely: Ctrl-C counts however much happens.
        if ticks.poll_tick(cx).is_ready() {
            return Poll::Ready(Step::Tick);
        }
        if let Poll::Ready(Some(outcome)) = jobs.poll_join_next(cx) {
            return Poll::Ready(match outcome {
                Ok(outcome) => Step::Outcome(outcome),
                // Nobody cancels jobs: one has panicked, and that is a defect of ours.
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
