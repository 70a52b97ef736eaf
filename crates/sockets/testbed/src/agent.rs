//! The process of a host: listens, connects to the receivers of its flows, and sends the flows.
//!
//! The process reads commands from standard input and writes replies to standard output, see [`crate::task`]. It exits when its input ends,
//! whatever its state, so no host outlives the command that started it.

use crate::content::{is_message, message};
use crate::fault::Fault;
use crate::shared::{bind, say};
use crate::soaking;
use crate::task::{
    FlowSample, FlowTask, HostCommand, HostReply, HostReport, HostTask, PathCount, ReceivedFlow,
    SentFlow,
};
use bytes::Bytes;
use clearway_runs::Stopwatch;
use clearway_udp::net::{Channel, ConnectionSnapshot, Server, connect};
use clearway_udp::{PreSharedKey, Security, SendError, Settings, Transport};
use clearway_units::{Rate, Span};
use std::future::{Future, poll_fn};
use std::io::{self, BufRead as _};
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::runtime::Builder;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::sync::oneshot;
use tokio::time::{sleep, sleep_until, timeout};

/// Samples of a flow at which every other sample is dropped.
const MOST_SAMPLES: usize = 1000;
/// Longest time of a handshake.
const CONNECT: Duration = Duration::from_secs(10);

/// Tag of messages that only wake a connection.
const WAKING: u64 = u64::MAX;
/// Wait for answers on all paths of a connection, and for its next snapshot.
const SETTLE: Duration = Duration::from_millis(50);

/// Runs a host until the input ends.
///
/// # Errors
/// If the host cannot start; later failures are reported on standard output.
pub fn agent() -> Result<(), Fault> {
    let runtime = Builder::new_current_thread()
        .event_interval(1)
        .enable_all()
        .build();
    let runtime = runtime.map_err(|error| {
        Fault::new(
            format!("a host of the test bed cannot begin: {error}"),
            "allow more open files and processes",
        )
    })?;
    let (tell, orders) = unbounded_channel();
    let (end, ended) = oneshot::channel::<()>();
    std::thread::spawn(move || {
        // Dropped with the thread.
        let _end = end;
        for line in io::stdin().lock().lines().map_while(Result::ok) {
            let Ok(order) = serde_json::from_str::<HostCommand>(&line) else {
                break;
            };
            if tell.send(order).is_err() {
                break;
            }
        }
    });
    if let Some(Err(what)) = runtime.block_on(until(ended, host(orders))) {
        say(&HostReply::Failed { what });
    }
    Ok(())
}

/// Result of `work`; `None` if `end` finishes first.
async fn until<T>(mut end: oneshot::Receiver<()>, work: impl Future<Output = T>) -> Option<T> {
    let mut work = pin!(work);
    poll_fn(|context| match work.as_mut().poll(context) {
        Poll::Ready(done) => Poll::Ready(Some(done)),
        Poll::Pending => Pin::new(&mut end).poll(context).map(|_| None),
    })
    .await
}

/// Received messages.
type Received = Arc<Mutex<Vec<(Instant, ReceivedFlow)>>>;

async fn host(mut orders: UnboundedReceiver<HostCommand>) -> Result<(), String> {
    let Some(HostCommand::Task(task)) = orders.recv().await else {
        return Ok(());
    };
    let settings = settings(&task)?;
    let received = Received::default();
    if let Some(soak) = task.soak.clone() {
        return soaking::host(&task, soak, settings, orders).await;
    }
    let server = bind(&task, &settings)?;
    tokio::spawn(serve(server, Arc::clone(&received)));
    say(&HostReply::Listening);
    let mut channels = Vec::new();
    let mut host = Host {
        task,
        stopwatch: Stopwatch::start(),
        zero: now(),
    };
    while let Some(order) = orders.recv().await {
        match order {
            HostCommand::Task(_) | HostCommand::Restart => {
                return Err("it was given an order that is not for it".into());
            }
            HostCommand::Connect => {
                channels = host.connect(&settings).await?;
                let trips = channels
                    .iter()
                    .map(|channel| round_trip_us(&channel.snapshot()));
                say(&HostReply::Connected {
                    round_trips_us: trips.collect(),
                });
            }
            HostCommand::Start { unix_ns } => {
                host.begin(unix_ns);
                let flows = host.send_all(std::mem::take(&mut channels)).await;
                say(&HostReply::Sent { flows });
            }
            HostCommand::Report => say(&HostReply::Report(host.report(&received))),
            HostCommand::End => break,
        }
    }
    Ok(())
}

fn settings(task: &HostTask) -> Result<Settings, String> {
    let key = PreSharedKey::from_hex(&task.key).ok_or("its key is none")?;
    Ok(Settings {
        transport: match task.go_back_n {
            true => Transport::GoBackN,
            false => Transport::Strack,
        },
        paths: task.paths,
        ecn: task.ecn,
        line_rate: Rate::from_bps(task.line_rate_bps),
        datagram: task.datagram_bytes,
        receive_memory: task.memory_bytes,
        send_memory: task.memory_bytes,
        ..Settings::new(Security::Key(key))
    })
}

fn round_trip_us(snapshot: &ConnectionSnapshot) -> f64 {
    snapshot.round_trip.map_or(0.0, Span::as_us)
}

#[expect(
    clippy::disallowed_methods,
    reason = "real time is what a test bed runs on"
)]
fn now() -> Instant {
    Instant::now()
}

/// Takes messages until the process ends.
async fn serve(server: Server, received: Received) {
    loop {
        let channel = server.accept().await;
        let received = Arc::clone(&received);
        tokio::spawn(async move {
            while let Ok(message) = channel.receive().await {
                if message.tag == WAKING {
                    continue;
                }
                let at = now();
                let flow = message.tag as u32;
                let row = ReceivedFlow {
                    flow,
                    at_us: 0.0,
                    bytes: message.data.len() as u64,
                    intact: is_message(flow, &message.data),
                };
                received
                    .lock()
                    .unwrap_or_else(|broken| broken.into_inner())
                    .push((at, row));
            }
        });
    }
}

/// Waits until the paths of a connection have answered and its snapshot shows this: two empty messages cause both.
async fn settle(channel: &Channel) -> Result<(), SendError> {
    for _ in 0..2 {
        sleep(SETTLE).await;
        channel.send(WAKING, Bytes::new()).await?;
        channel.flush().await?;
    }
    Ok(())
}

struct Host {
    task: Box<HostTask>,
    stopwatch: Stopwatch,
    zero: Instant,
}

impl Host {
    /// Opens a connection for each flow, one after the other: concurrent handshakes would distort each other's round trips.
    async fn connect(&self, settings: &Settings) -> Result<Vec<Channel>, String> {
        let mut channels = Vec::new();
        for flow in &self.task.flows {
            let channel = timeout(CONNECT, connect(flow.to, settings.clone())).await;
            let channel = channel.map_err(|_| format!("no answer from {}", flow.to))?;
            let channel =
                channel.map_err(|error| format!("no connection to {}: {error}", flow.to))?;
            settle(&channel)
                .await
                .map_err(|error| format!("no connection to {}: {error}", flow.to))?;
            channels.push(channel);
        }
        Ok(channels)
    }

    fn begin(&mut self, unix_ns: u64) {
        #[expect(
            clippy::disallowed_methods,
            reason = "the clock that all hosts of one machine share"
        )]
        let unix = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let ahead = Duration::from_nanos(unix_ns).saturating_sub(unix);
        self.zero = now() + ahead;
        self.stopwatch = Stopwatch::start();
    }

    fn deadline(&self) -> Instant {
        self.zero + Duration::from_micros(self.task.deadline_us)
    }

    async fn send_all(&self, channels: Vec<Channel>) -> Vec<SentFlow> {
        let deadline = self.deadline();
        let sample = Duration::from_micros(self.task.sample_us.max(500));
        let flows = self.task.flows.iter().zip(channels).map(|(flow, channel)| {
            let sending = Sending::new(flow, channel, self.zero, deadline, sample);
            tokio::spawn(sending.run())
        });
        let flows: Vec<_> = flows.collect();
        let mut sent = Vec::new();
        for flow in flows {
            sent.extend(flow.await.ok());
        }
        sent
    }

    fn report(&self, received: &Received) -> HostReport {
        let received = received.lock().unwrap_or_else(|broken| broken.into_inner());
        let row = |(at, row): &(Instant, ReceivedFlow)| ReceivedFlow {
            at_us: us_since(self.zero, *at),
            ..row.clone()
        };
        HostReport {
            received: received.iter().map(row).collect(),
            cpu_seconds: self.stopwatch.cpu_seconds(),
            wall_seconds: self.stopwatch.wall_seconds(),
        }
    }
}

fn us_since(zero: Instant, at: Instant) -> f64 {
    at.saturating_duration_since(zero).as_nanos() as f64 / 1000.0
}

/// A flow in transmission.
struct Sending {
    channel: Channel,
    flow: u32,
    data: Bytes,
    zero: Instant,
    start: Instant,
    deadline: Instant,
    sample: Duration,
    sent: SentFlow,
}

impl Sending {
    fn new(
        flow: &FlowTask,
        channel: Channel,
        zero: Instant,
        deadline: Instant,
        sample: Duration,
    ) -> Self {
        Self {
            channel,
            flow: flow.flow,
            // Created before the start, so that it does not take time from the flow.
            data: message(flow.flow, flow.bytes as usize).into(),
            zero,
            start: zero + Duration::from_nanos((flow.start_us * 1000.0) as u64),
            deadline,
            sample,
            sent: SentFlow {
                flow: flow.flow,
                ..SentFlow::default()
            },
        }
    }

    async fn run(mut self) -> SentFlow {
        sleep_until(self.start.into()).await;
        let began = now();
        self.sent.started_us = us_since(self.zero, began);
        match self.transfer().await {
            Ok(at) => self.sent.finished_us = Some(us_since(self.zero, at)),
            Err(error) => self.sent.error = Some(error),
        }
        self.take_statistics().await;
        self.sent
    }

    /// Sends the message, and takes samples until it has arrived.
    async fn transfer(&mut self) -> Result<Instant, String> {
        let data = std::mem::take(&mut self.data);
        let (channel, tag) = (&self.channel, u64::from(self.flow));
        let done = async {
            channel
                .send(tag, data)
                .await
                .map_err(|error| error.to_string())?;
            channel.flush().await.map_err(|error| error.to_string())?;
            Ok(now())
        };
        tokio::pin!(done);
        loop {
            if let Ok(done) = timeout(self.sample, done.as_mut()).await {
                return done;
            }
            let at = now();
            if at >= self.deadline {
                return Err("it was not done in time".into());
            }
            let sample = sample(us_since(self.zero, at), &channel.snapshot());
            self.sent.samples.push(sample);
            thin(&mut self.sent.samples, &mut self.sample);
        }
    }

    async fn take_statistics(&mut self) {
        if self.sent.error.is_none() {
            // Snapshots are some milliseconds old: the end of the connection makes a last one.
            let _ = timeout(Duration::from_millis(200), self.channel.shut_down(0)).await;
        }
        let snapshot = self.channel.snapshot();
        let statistics = snapshot.progress.map(|progress| progress.statistics);
        let counters = &snapshot.counters;
        let sent = &mut self.sent;
        sent.packets = counters.data_sent;
        sent.retransmitted = counters.retransmitted;
        sent.timeouts = statistics.map_or(0, |statistics| statistics.timeouts.into());
        sent.marked = statistics.map_or(0, |statistics| statistics.marked.into());
        sent.paths = snapshot
            .paths
            .iter()
            .map(|(_, path)| PathCount {
                sent: path.sent,
                marked: path.marked,
                downs: path.downs,
            })
            .collect();
    }
}

fn sample(at_us: f64, snapshot: &ConnectionSnapshot) -> FlowSample {
    let progress = snapshot.progress.as_ref();
    FlowSample {
        at_us,
        window_bytes: progress.map_or(0, |progress| progress.window.as_u64()),
        acknowledged_bytes: progress.map_or(0, |progress| progress.acknowledged.as_u64()),
        path_packets: snapshot.paths.iter().map(|(_, path)| path.sent).collect(),
    }
}

/// Drops every other sample and halves the sampling rate, once there are many samples.
fn thin(samples: &mut Vec<FlowSample>, every: &mut Duration) {
    if samples.len() >= MOST_SAMPLES {
        let mut index = 0;
        samples.retain(|_| {
            index += 1;
            index % 2 == 0
        });
        *every *= 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_orders_ends_what_takes_long() {
        let runtime = Builder::new_current_thread().build().unwrap();
        let (end, ended) = oneshot::channel();
        drop(end);
        let forever = std::future::pending::<()>();
        assert_eq!(runtime.block_on(until(ended, forever)), None);
        let (end, ended) = oneshot::channel();
        assert_eq!(runtime.block_on(until(ended, async { 7 })), Some(7));
        drop(end);
    }

    #[test]
    fn samples_are_bounded_and_reach_from_the_beginning_to_the_end() {
        let mut every = Duration::from_millis(1);
        let mut samples = Vec::new();
        for at in 0..10_000 {
            samples.push(FlowSample {
                at_us: f64::from(at),
                ..FlowSample::default()
            });
            thin(&mut samples, &mut every);
        }
        assert!(samples.len() < MOST_SAMPLES && samples.len() > 400);
        assert!(samples.last().is_some_and(|last| last.at_us > 9_990.0));
        assert!(every > Duration::from_millis(8));
    }
}
