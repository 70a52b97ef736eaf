//! Requests to a forwarder from other threads.

use crate::Command;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};

/// Request to a forwarder.
#[derive(Debug)]
pub enum ForwarderRequest {
    /// Change links now.
    Change(Command),
    /// Report the counters.
    Counters,
}

/// Receiving end of requests, at the forwarder.
#[derive(Debug)]
pub struct Inbox {
    requests: mpsc::Receiver<ForwarderRequest>,
    woken: UnixStream,
    stopped: Arc<AtomicBool>,
}

/// Sending end of requests; clones share one inbox.
#[derive(Debug, Clone)]
pub struct Outbox {
    requests: mpsc::Sender<ForwarderRequest>,
    wake: Arc<UnixStream>,
    stopped: Arc<AtomicBool>,
}

/// An inbox and its sending end.
///
/// # Errors
/// If file descriptors are unavailable.
pub fn inbox() -> io::Result<(Inbox, Outbox)> {
    let (woken, wake) = UnixStream::pair()?;
    woken.set_nonblocking(true)?;
    wake.set_nonblocking(true)?;
    let (sender, requests) = mpsc::channel();
    let stopped = Arc::new(AtomicBool::new(false));
    let inbox = Inbox {
        requests,
        woken,
        stopped: Arc::clone(&stopped),
    };
    let outbox = Outbox {
        requests: sender,
        wake: Arc::new(wake),
        stopped,
    };
    Ok((inbox, outbox))
}

impl Outbox {
    /// Sends a request. The request is lost if the forwarder has ended.
    pub fn put(&self, request: ForwarderRequest) {
        if self.requests.send(request).is_ok() {
            self.wake();
        }
    }

    /// Asks the forwarder to end.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::SeqCst);
        self.wake();
    }

    fn wake(&self) {
        // If the buffer is full, the other end wakes up anyway.
        let _ = (&*self.wake).write(&[1]);
    }

    /// Flag and descriptor with which a signal handler stops the forwarder: the handler sets the flag and then writes a byte to the
    /// descriptor.
    ///
    /// # Errors
    /// If file descriptors are unavailable.
    pub fn for_signals(&self) -> io::Result<(Arc<AtomicBool>, UnixStream)> {
        Ok((Arc::clone(&self.stopped), self.wake.try_clone()?))
    }
}

impl Inbox {
    /// The next request.
    pub(super) fn take(&self) -> Option<ForwarderRequest> {
        self.requests.try_recv().ok()
    }

    /// True after a stop request.
    pub(super) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::SeqCst)
    }

    /// Clears the wake-up.
    pub(super) fn drain(&mut self) {
        let mut bytes = [0; 64];
        loop {
            match self.woken.read(&mut bytes) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Ok(length) if length == bytes.len() => {}
                _ => return,
            }
        }
    }
}

impl AsFd for Inbox {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.woken.as_fd()
    }
}
