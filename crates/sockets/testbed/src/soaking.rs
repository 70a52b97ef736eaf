//! Hosts of a soak: one sends many messages of mixed sizes, the other counts and checks them.

use crate::content::{is_message, message};
use crate::shared::{bind, say};
use crate::task::{HostCommand, HostReply, HostTask, Soak, SoakReport};
use clearway_runs::peak_rss_bytes;
use clearway_udp::net::{Channel, Server, connect};
use clearway_udp::{SendError, Settings};
use clearway_units::mix64;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

/// Messages in a batch, after which the sender waits until all have arrived. It sends up to this many again if the receiver loses them.
const TOGETHER: u64 = 512;
/// Connection attempts before the sender gives up.
const TRIES: u32 = 50;
/// Longest time of a handshake.
const CONNECT: Duration = Duration::from_secs(5);

/// Length of a message: most are short.
pub(crate) fn length(seed: u64, number: u64) -> usize {
    let drawn = mix64(seed ^ mix64(number));
    let most = match drawn % 1000 {
        0..500 => 256,
        500..900 => 4_096,
        900..999 => 16_384,
        _ => 200_000,
    };
    ((drawn >> 32) % most) as usize
}

/// Runs one of the two hosts, or an idle host, until the input ends.
pub(crate) async fn host(
    task: &HostTask,
    soak: Soak,
    settings: Settings,
    mut orders: UnboundedReceiver<HostCommand>,
) -> Result<(), String> {
    let counts = Arc::new(Mutex::new(Counts::new(&soak)));
    let mut server = Some(listen(task, &settings, &counts)?);
    say(&HostReply::Listening);
    while let Some(order) = orders.recv().await {
        match order {
            HostCommand::Connect => say(&HostReply::Connected {
                round_trips_us: Vec::new(),
            }),
            HostCommand::Start { .. } => {
                if let Some(to) = soak.to {
                    let sender = Sender {
                        to,
                        soak: soak.clone(),
                        settings: settings.clone(),
                        reconnected: 0,
                    };
                    sender.run().await?;
                }
            }
            HostCommand::Restart => {
                // This drops all connections and the socket.
                drop(server.take());
                lock(&counts).begin_life();
                server = Some(listen_again(task, &settings, &counts).await?);
            }
            HostCommand::Report => say(&HostReply::Soaked(lock(&counts).report())),
            HostCommand::Task(_) | HostCommand::End => break,
        }
    }
    Ok(())
}

/// The receiving task; it ends on drop, together with its connections.
struct Receiving(JoinSet<()>);

fn listen(
    task: &HostTask,
    settings: &Settings,
    counts: &Arc<Mutex<Counts>>,
) -> Result<Receiving, String> {
    let server = bind(task, settings)?;
    let mut tasks = JoinSet::new();
    let life = lock(counts).life;
    tasks.spawn(receive_all(life, server, Arc::clone(counts)));
    Ok(Receiving(tasks))
}

/// Listens again at the address of a socket that is about to close.
async fn listen_again(
    task: &HostTask,
    settings: &Settings,
    counts: &Arc<Mutex<Counts>>,
) -> Result<Receiving, String> {
    for _ in 0..200 {
        if let Ok(server) = listen(task, settings, counts) {
            debug_assert!(!server.0.is_empty());
            return Ok(server);
        }
        sleep(Duration::from_millis(10)).await;
    }
    listen(task, settings, counts)
}

async fn receive_all(life: u32, server: Server, counts: Arc<Mutex<Counts>>) {
    let mut connections = JoinSet::new();
    loop {
        let channel = server.accept().await;
        let counts = Arc::clone(&counts);
        connections.spawn(async move {
            while let Ok(message) = channel.receive().await {
                lock(&counts).add(life, message.tag, &message.data);
            }
        });
    }
}

fn lock(counts: &Mutex<Counts>) -> MutexGuard<'_, Counts> {
    counts.lock().unwrap_or_else(|broken| broken.into_inner())
}

/// Messages received in the present life of the receiver and in earlier ones.
struct Counts {
    seed: u64,
    life: u32,
    now: Vec<bool>,
    before: Vec<bool>,
    report: SoakReport,
}

impl Counts {
    fn new(soak: &Soak) -> Self {
        Self {
            seed: soak.seed,
            life: 0,
            now: vec![false; soak.messages as usize],
            before: vec![false; soak.messages as usize],
            report: SoakReport::default(),
        }
    }

    /// Counts a message of a connection that began in `life`: late messages of an old connection belong to the earlier life.
    fn add(&mut self, life: u32, tag: u64, data: &[u8]) {
        self.report.received_bytes += data.len() as u64;
        let known = usize::try_from(tag)
            .ok()
            .filter(|&tag| tag < self.now.len());
        let Some(index) = known else {
            self.report.corrupt += 1;
            return;
        };
        let whole = data.len() == length(self.seed, tag) && is_message(tag as u32, data);
        self.report.corrupt += u64::from(!whole);
        let (own, other) = match life == self.life {
            true => (&mut self.now, &self.before),
            false => (&mut self.before, &self.now),
        };
        if own[index] {
            self.report.twice += 1;
        } else if other[index] {
            self.report.in_both_lives += 1;
        } else {
            self.report.received += 1;
        }
        own[index] = true;
    }

    fn begin_life(&mut self) {
        self.life += 1;
        for (before, now) in self.before.iter_mut().zip(&mut self.now) {
            *before |= std::mem::take(now);
        }
    }

    fn report(&self) -> SoakReport {
        SoakReport {
            peak_memory_bytes: peak_rss_bytes(),
            ..self.report.clone()
        }
    }
}

struct Sender {
    to: SocketAddr,
    soak: Soak,
    settings: Settings,
    reconnected: u32,
}

impl Sender {
    /// Sends all messages. After a reconnection, it resends messages that the old connection may have lost.
    async fn run(mut self) -> Result<(), String> {
        let mut channel = self.connect().await?;
        let mut arrived = 0;
        while arrived < self.soak.messages {
            let end = (arrived + TOGETHER).min(self.soak.messages);
            match self.send(&channel, arrived..end).await {
                Ok(()) => arrived = end,
                Err(SendError::Closed) if self.reconnected < TRIES => {
                    self.reconnected += 1;
                    channel = self.connect().await?;
                }
                Err(error) => return Err(error.to_string()),
            }
            say(&HostReply::Arrived {
                messages: arrived,
                reconnected: self.reconnected,
            });
        }
        channel.shut_down(0).await;
        Ok(())
    }

    async fn connect(&self) -> Result<Channel, String> {
        let mut last = String::new();
        for _ in 0..TRIES {
            match timeout(CONNECT, connect(self.to, self.settings.clone())).await {
                Ok(Ok(channel)) => return Ok(channel),
                Ok(Err(error)) => last = error.to_string(),
                Err(_) => last = "no answer".into(),
            }
            sleep(Duration::from_millis(100)).await;
        }
        Err(format!("no connection to {}: {last}", self.to))
    }

    async fn send(
        &self,
        channel: &Channel,
        numbers: std::ops::Range<u64>,
    ) -> Result<(), SendError> {
        for number in numbers {
            let data = message(number as u32, length(self.soak.seed, number));
            channel.send(number, data.into()).await?;
        }
        channel.flush().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_twice_or_wrong_is_counted() {
        let soak = Soak {
            messages: 10,
            seed: 3,
            to: None,
        };
        let mut counts = Counts::new(&soak);
        let data = |number: u64| message(number as u32, length(3, number));
        (0..7).for_each(|number| counts.add(0, number, &data(number)));
        counts.begin_life();
        // A late message of the old connection.
        counts.add(0, 7, &data(7));
        (6..10).for_each(|number| counts.add(1, number, &data(number)));
        let report = &counts.report;
        let numbers = [
            report.received,
            report.twice,
            report.in_both_lives,
            report.corrupt,
        ];
        assert_eq!(numbers, [10, 0, 2, 0]);
        counts.add(1, 9, &data(9));
        let mut wrong = data(5);
        wrong.push(0);
        counts.add(1, 5, &wrong);
        counts.add(1, 99, &[]);
        let report = &counts.report;
        let numbers = [
            report.received,
            report.twice,
            report.in_both_lives,
            report.corrupt,
        ];
        assert_eq!(numbers, [10, 1, 3, 2]);
    }
}
