//! Measurements of a connection: throughput, message rate and round trips of messages.
//!
//! The other end counts and echoes messages by their tags; see [`serve`].

use super::clock::Clock;
use super::shared::{Channel, ConnectionSnapshot};
use crate::error::ConnectionError;
use crate::incoming::Acceptor;
use crate::outgoing::SendError;
use bytes::Bytes;
use clearway_units::{Span, Time};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Tag of messages that the other end counts and drops.
const BULK: u64 = 1;
/// Tag of messages that the other end sends back unchanged.
const ECHO: u64 = 2;
/// Tag of the request for the number of counted bytes, and of its answer.
const COUNT: u64 = 3;
/// Code with which a measurement ends a connection.
pub const DONE: u64 = 0;

/// Plan of a measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PerfPlan {
    /// Time for which the client sends messages as fast as possible.
    pub time: Span,
    /// Length of these messages.
    pub message: usize,
    /// Time for which the client sends messages of [`SMALL`] bytes as fast as possible.
    pub small_time: Span,
    /// Number of messages of [`SMALL`] bytes that the other end echoes, one after the other.
    pub echoes: usize,
    /// Length of the reported intervals.
    pub interval: Span,
}

/// Length of small messages.
pub const SMALL: usize = 64;

/// Throughput within a part of the measurement.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PerfInterval {
    /// Start of the interval, since the first message.
    pub from: Span,
    /// The end.
    pub to: Span,
    /// Bytes of messages that have arrived.
    pub bytes: u64,
    /// Retransmitted packets.
    pub retransmitted: u64,
}

/// Progress of a measurement.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum PerfProgress<'a> {
    /// An interval of sending as fast as possible is over.
    Interval(&'a PerfInterval),
    /// All these messages have arrived.
    Arrived,
}

/// Results of a measurement.
#[derive(Debug, Clone, Default)]
pub struct PerfMeasurement {
    /// Bytes of messages that have arrived, within `time`.
    pub bytes: u64,
    /// The time from the first message to the acknowledgement of the last.
    pub time: Span,
    /// Small messages that have arrived, within `small_time`.
    pub small: u64,
    /// Time of the small messages.
    pub small_time: Span,
    /// Round trips of echoed messages, in ascending order.
    pub round_trips: Vec<Span>,
    /// State of the connection after the throughput was measured.
    pub snapshot: ConnectionSnapshot,
}

/// Failure of a measurement.
#[derive(Debug, thiserror::Error)]
pub enum PerfError {
    /// The connection did not take a message.
    #[error(transparent)]
    Send(#[from] SendError),
    /// The connection ended.
    #[error(transparent)]
    Closed(#[from] ConnectionError),
    /// The other end counted a different number of bytes.
    #[error(
        "the other end has counted {counted} bytes of {sent}: use the same release at both ends"
    )]
    Miscounted {
        /// Sent bytes.
        sent: u64,
        /// Bytes that the other end counted.
        counted: u64,
    },
}

/// Answers the measurements of the other end until it closes the connection. Returns why it ended.
pub async fn serve(channel: &Channel, pool: &Pool) -> ConnectionError {
    let mut counted = 0u64;
    loop {
        let message = match channel.receive().await {
            Ok(message) => message,
            Err(closed) => return closed,
        };
        let answer = match message.tag {
            ECHO => Some(Bytes::from(message.data)),
            COUNT => Some(Bytes::copy_from_slice(&counted.to_be_bytes())),
            _ => {
                counted += message.data.len() as u64;
                pool.put(message.data);
                None
            }
        };
        if let Some(answer) = answer {
            // If sending fails, the next receive returns the reason.
            let _ = channel.send(message.tag, answer).await;
        }
    }
}

/// Measures a connection whose other end [serves](serve). Calls `on_progress` now and then.
///
/// # Errors
/// If the connection ends, or the other end answers wrongly.
pub async fn measure(
    channel: &Channel,
    plan: &PerfPlan,
    on_progress: impl FnMut(PerfProgress<'_>),
) -> Result<PerfMeasurement, PerfError> {
    match measure_all(channel, plan, on_progress).await {
        // The reason for the end says more than `Closed`.
        Err(PerfError::Send(SendError::Closed)) => Err(channel.ended().await.into()),
        measured => measured,
    }
}

async fn measure_all(
    channel: &Channel,
    plan: &PerfPlan,
    mut on_progress: impl FnMut(PerfProgress<'_>),
) -> Result<PerfMeasurement, PerfError> {
    let clock = Clock::start();
    let mut measured = PerfMeasurement::default();
    let content = Bytes::from(vec![0x5a; plan.message]);
    let messages = send_for(
        channel,
        clock,
        plan.time,
        &content,
        Some((plan.interval, &mut on_progress)),
    );
    let (sent, time) = messages.await?;
    on_progress(PerfProgress::Arrived);
    measured.bytes = sent * plan.message as u64;
    measured.time = time;
    measured.snapshot = channel.snapshot();
    measured.round_trips = echo(channel, clock, plan.echoes).await?;
    let content = Bytes::from(vec![0x5a; SMALL]);
    (measured.small, measured.small_time) =
        send_for(channel, clock, plan.small_time, &content, None).await?;
    let sent = measured.bytes + measured.small * SMALL as u64;
    channel.send(COUNT, Bytes::new()).await?;
    let answer = channel.receive().await?;
    let counted = answer
        .data
        .as_slice()
        .try_into()
        .map_or(0, u64::from_be_bytes);
    if answer.tag != COUNT || counted != sent {
        return Err(PerfError::Miscounted { sent, counted });
    }
    Ok(measured)
}

/// Callback for each interval, and the interval length.
type Intervals<'a> = Option<(Span, &'a mut dyn FnMut(PerfProgress<'_>))>;

/// Sends messages for a time, as fast as the connection takes them. Returns their number and the time until the last one has arrived.
async fn send_for<'a>(
    channel: &'a Channel,
    clock: Clock,
    time: Span,
    content: &Bytes,
    intervals: Intervals<'a>,
) -> Result<(u64, Span), SendError> {
    let began = clock.now();
    let mut sent = 0;
    let mut telling = Telling {
        channel,
        began,
        since: began,
        arrived: channel.arrived(),
        retransmitted: channel.snapshot().counters.retransmitted,
        length: content.len() as u64,
        intervals,
    };
    while clock.now().since(began) < time {
        telling.tell(clock.now());
        channel.send(BULK, content.clone()).await?;
        sent += 1;
    }
    // On slow links, messages in flight take a while.
    while let Err(_elapsed) = tokio::time::timeout(FLUSH_LOOK, channel.flush()).await {
        telling.tell(clock.now());
    }
    channel.flush().await?;
    Ok((sent, clock.now().since(began)))
}

/// Interval of progress checks after the last message is sent.
const FLUSH_LOOK: Duration = Duration::from_millis(50);

/// Reporter of progress.
struct Telling<'a> {
    channel: &'a Channel,
    began: Time,
    /// Start of the present interval, and the arrivals and retransmissions up to then.
    since: Time,
    arrived: u64,
    retransmitted: u64,
    /// Length of messages.
    length: u64,
    intervals: Intervals<'a>,
}

impl Telling<'_> {
    /// Reports the present interval, if it is over.
    fn tell(&mut self, now: Time) {
        let Some((length, on_progress)) = &mut self.intervals else {
            return;
        };
        if now.since(self.since) < *length {
            return;
        }
        let (arrived, snapshot) = (self.channel.arrived(), self.channel.snapshot());
        let retransmitted = snapshot.counters.retransmitted;
        on_progress(PerfProgress::Interval(&PerfInterval {
            from: self.since.since(self.began),
            to: now.since(self.began),
            bytes: (arrived - self.arrived) * self.length,
            retransmitted: retransmitted - self.retransmitted,
        }));
        (self.since, self.arrived, self.retransmitted) = (now, arrived, retransmitted);
    }
}

/// Sends messages one after the other and waits for each echo.
async fn echo(channel: &Channel, clock: Clock, count: usize) -> Result<Vec<Span>, PerfError> {
    let content = Bytes::from(vec![0x5a; SMALL]);
    let mut round_trips = Vec::with_capacity(count);
    for _ in 0..count {
        let began = clock.now();
        channel.send(ECHO, content.clone()).await?;
        channel.receive().await?;
        round_trips.push(clock.now().since(began));
    }
    round_trips.sort_unstable();
    Ok(round_trips)
}

/// Pool of reused buffers, which avoids clearing memory for each message.
#[derive(Debug, Clone, Default)]
pub struct Pool(Arc<Mutex<Vec<Vec<u8>>>>);

impl Pool {
    /// Most bytes of buffers in the pool.
    const MOST: usize = 64 << 20;

    /// Gives a buffer back.
    pub fn put(&self, buffer: Vec<u8>) {
        let mut buffers = self.0.lock().unwrap_or_else(|broken| broken.into_inner());
        let held: usize = buffers.iter().map(Vec::capacity).sum();
        if held + buffer.capacity() <= Self::MOST && buffers.len() < 256 {
            buffers.push(buffer);
        }
    }
}

impl Acceptor for Pool {
    fn accept(&mut self, _tag: u64, length: usize) -> Option<Vec<u8>> {
        let mut buffers = self.0.lock().unwrap_or_else(|broken| broken.into_inner());
        let fits = buffers.iter().rposition(|buffer| buffer.len() == length);
        let fits = fits.map(|index| buffers.swap_remove(index));
        Some(fits.unwrap_or_else(|| vec![0; length]))
    }
}
