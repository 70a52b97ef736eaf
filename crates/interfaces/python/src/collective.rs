//! Collectives between processes.

use crate::errors::{ended, without_lock, wrong};
use clearway::resolve;
use clearway_collective::blocking::{Group, RankListener};
use clearway_collective::{
    Algorithm, BufferOperation, Buffers, GroupError, GroupSettings, Members, PreSharedKey, Security,
};
use clearway_units::Span;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};

/// A rank that is connected to the other ranks.
#[pyclass(frozen, module = "clearway._clearway")]
pub(crate) struct NativeGroup {
    rank: u32,
    ranks: u32,
    /// `None` after the rank has left.
    group: Mutex<Option<Group>>,
}

/// Exception for an error of a group: a `ValueError` for invalid input of the caller, otherwise the error of a group that has ended.
fn exception(error: &GroupError) -> PyErr {
    let text = format!("{error}\n  fix: {}", error.fix());
    match error {
        GroupError::Members(_) | GroupError::Plan { .. } | GroupError::Buffer(_) => wrong(text),
        _ => ended(text),
    }
}

/// A new key, as text.
#[pyfunction]
pub(crate) fn new_key() -> PyResult<String> {
    let key = clearway_collective::new_key();
    key.map(|key| key.to_hex()).map_err(ended)
}

fn span(seconds: f64) -> PyResult<Span> {
    match (0.05..=3600.0).contains(&seconds) {
        true => Ok(Span::from_ps((seconds * 1e12) as u64)),
        false => Err(wrong(format!(
            "a time of {seconds} s\n  fix: give 0.05 to 3600 seconds"
        ))),
    }
}

/// Check for signals of the interpreter: false after an exception, which is kept in `stopped`.
fn asking(stopped: &mut Option<PyErr>) -> impl FnMut() -> bool + '_ {
    || {
        *stopped = Python::attach(|py| py.check_signals()).err();
        stopped.is_none()
    }
}

#[pymethods]
impl NativeGroup {
    #[new]
    fn new(
        py: Python<'_>,
        rank: u32,
        hosts: Vec<String>,
        key: Option<&str>,
        idle_s: f64,
        wait_s: f64,
        paths: u8,
    ) -> PyResult<Self> {
        let security = match key {
            None => Security::Insecure,
            Some(key) => Security::Key(PreSharedKey::from_hex(key).ok_or_else(|| {
                wrong("this is not a key\n  fix: give 64 hexadecimal digits, as `clearway.collective.new_key()` makes them")
            })?),
        };
        if !(1..=64).contains(&paths) {
            return Err(wrong(format!("{paths} paths\n  fix: give 1 to 64")));
        }
        let mut joining = GroupSettings::new(security);
        (joining.settings.idle, joining.wait) = (span(idle_s)?, span(wait_s)?);
        joining.settings.paths = paths;
        let ranks = hosts.len() as u32;
        let addresses = without_lock(py, || {
            hosts
                .iter()
                .map(|host| resolve(host))
                .collect::<Result<Vec<SocketAddr>, _>>()
        })?;
        let addresses = addresses.map_err(wrong)?;
        let members = Members { addresses, rank };
        let Some(address) = members.listening_at() else {
            return Err(wrong(format!(
                "there is no rank {rank} among {ranks}\n  fix: give a rank below the number of hosts"
            )));
        };
        let mut stopped = None;
        let joined = without_lock(py, || {
            let listener = RankListener::bind(address, rank, ranks, joining)?;
            listener.join(members, &mut asking(&mut stopped))
        })?;
        stopped.map_or(Ok(()), Err)?;
        let group = joined.map_err(|error| exception(&error))?;
        Ok(Self {
            rank,
            ranks,
            group: Mutex::new(Some(group)),
        })
    }

    /// Block of a rank: its first element, and the element after its last.
    fn block(&self, rank: u32, count: usize) -> PyResult<(usize, usize)> {
        if rank >= self.ranks {
            return Err(wrong(format!(
                "there is no rank {rank}\n  fix: give a rank below {}",
                self.ranks
            )));
        }
        let block = clearway_collective::block(self.ranks, rank, count);
        Ok((block.start, block.end))
    }

    /// Runs a collective of `count` elements. Takes and returns the bytes of this rank's part.
    fn carry_out<'py>(
        &self,
        py: Python<'py>,
        operation: &str,
        algorithm: Option<&str>,
        count: usize,
        send: &[u8],
    ) -> PyResult<Bound<'py, PyBytes>> {
        let operation =
            BufferOperation::named(operation).ok_or_else(|| wrong("no such operation"))?;
        let algorithm = algorithm
            .map(|name| Algorithm::named(operation, name))
            .transpose();
        let algorithm =
            algorithm.map_err(|error| wrong(format!("{error}\n  fix: give one of these")))?;
        let (rank, ranks) = (self.rank, self.ranks);
        let own = clearway_collective::block(ranks, rank, count);
        let mut stopped = None;
        let result = without_lock(py, || {
            let mut group = self.group.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(group) = group.as_mut() else {
                return Err(GroupError::Members("the group has been left".into()));
            };
            let plan = group.plan(operation, algorithm, count, None)?;
            let given: Vec<f32> = send
                .as_chunks()
                .0
                .iter()
                .map(|e| f32::from_ne_bytes(*e))
                .collect();
            let mut goes_on = asking(&mut stopped);
            let result = match operation {
                BufferOperation::AllToAll => {
                    let mut receive = vec![0.0; own.len() * ranks as usize];
                    let mut buffers = Buffers::Apart {
                        send: &given,
                        receive: &mut receive,
                    };
                    group.run(&plan, &mut buffers, &mut goes_on)?;
                    receive
                }
                BufferOperation::AllGather => {
                    let mut buffer = vec![0.0; count];
                    buffer[own.clone()].copy_from_slice(&given);
                    group.run(&plan, &mut Buffers::InPlace(&mut buffer), &mut goes_on)?;
                    buffer
                }
                BufferOperation::AllReduce | BufferOperation::ReduceScatter => {
                    let mut buffer = given;
                    group.run(&plan, &mut Buffers::InPlace(&mut buffer), &mut goes_on)?;
                    match operation {
                        BufferOperation::ReduceScatter => buffer[own.clone()].to_vec(),
                        _ => buffer,
                    }
                }
            };
            Ok(result
                .iter()
                .flat_map(|e| e.to_ne_bytes())
                .collect::<Vec<u8>>())
        })?;
        stopped.map_or(Ok(()), Err)?;
        let bytes = result.map_err(|error| exception(&error))?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// Leaves the group after the other ranks have received all sent data.
    fn leave(&self, py: Python<'_>) -> PyResult<()> {
        let left = without_lock(py, || {
            let group = self
                .group
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .take();
            group.map_or(Ok(()), Group::leave)
        })?;
        left.map_err(|error| exception(&error))
    }

    /// Ends the group for all ranks.
    fn abandon(&self, py: Python<'_>) -> PyResult<()> {
        without_lock(py, || {
            drop(
                self.group
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .take(),
            );
        })
    }
}
