//! Connections of pages, bounded in number and in time, so that no client can use up the descriptors of the run.
//!
//! A connection carries one request, and ends after [`PATIENCE`] in any state: while waiting for a header or a body, or for a client that
//! does not read. If all places are taken, a new connection replaces the oldest one. A page gets its answer within milliseconds, so an old
//! connection is idle.

use axum::serve::Listener;
use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::time::{Sleep, sleep};

/// Maximum number of connections; a browser opens up to six to one server.
const MOST: usize = 32;
/// Descriptors reserved for the run: its result files, and folders that it lists.
const SPARE: usize = 32;
/// Maximum duration of a connection.
const PATIENCE: Duration = Duration::from_secs(10);
/// Wait after a failed accept.
const RETRY: Duration = Duration::from_millis(100);

/// A listener with a bounded number of connections.
pub(super) struct Connections {
    listener: TcpListener,
    places: Arc<Semaphore>,
    /// Open connections, the oldest first. Dropping a sender ends its connection.
    open: VecDeque<oneshot::Sender<()>>,
}

impl Connections {
    /// Accepts connections from `listener`, which must be non-blocking.
    pub(super) fn new(listener: std::net::TcpListener) -> io::Result<Self> {
        let places = affordable(&listener);
        Ok(Self {
            listener: TcpListener::from_std(listener)?,
            places: Arc::new(Semaphore::new(places)),
            open: VecDeque::new(),
        })
    }
}

/// Number of connections for which the process has descriptors, found by trial.
fn affordable(listener: &std::net::TcpListener) -> usize {
    let copies: Vec<_> = (0..MOST + SPARE)
        .map_while(|_| listener.try_clone().ok())
        .collect();
    copies.len().saturating_sub(SPARE).clamp(1, MOST)
}

impl Listener for Connections {
    type Io = Connection;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Connection, SocketAddr) {
        loop {
            let Ok((stream, address)) = self.listener.accept().await else {
                sleep(RETRY).await;
                continue;
            };
            self.open.retain(|connection| !connection.is_closed());
            if self.places.available_permits() == 0 {
                // Dropping its sender ends the oldest connection, which frees a place.
                self.open.pop_front();
            }
            let Ok(place) = Arc::clone(&self.places).acquire_owned().await else {
                continue;
            };
            let (sender, displaced) = oneshot::channel();
            self.open.push_back(sender);
            let connection = Connection {
                stream,
                displaced,
                deadline: Box::pin(sleep(PATIENCE)),
                is_over: false,
                _place: place,
            };
            return (connection, address);
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// A connection that ends when its time is over, or when a new connection replaces it.
pub(super) struct Connection {
    stream: TcpStream,
    displaced: oneshot::Receiver<()>,
    deadline: Pin<Box<Sleep>>,
    is_over: bool,
    _place: OwnedSemaphorePermit,
}

impl Connection {
    /// The stream, while the connection may last.
    fn poll_stream(&mut self, context: &mut Context<'_>) -> Result<Pin<&mut TcpStream>, io::Error> {
        self.is_over = self.is_over
            || Pin::new(&mut self.displaced).poll(context).is_ready()
            || self.deadline.as_mut().poll(context).is_ready();
        match self.is_over {
            true => Err(io::ErrorKind::TimedOut.into()),
            false => Ok(Pin::new(&mut self.stream)),
        }
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.get_mut()
            .poll_stream(context)?
            .poll_read(context, buffer)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.get_mut()
            .poll_stream(context)?
            .poll_write(context, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().poll_stream(context)?.poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().poll_stream(context)?.poll_shutdown(context)
    }
}
