//! Congestion controllers written in Python.
//!
//! A scenario contains the name of a class: `transport.controller = "python"` with `transport.python-class`. Each flow has an object of
//! this class. Each call takes the interpreter's lock, so such a run is slow.

use crate::errors::wrong;
use crate::run_controllers::{PythonClass, RunControllers};
use clearway_lab::congestion::{
    AckSample, Allowance, CongestionControl, ControllerDefinition, LossSample, NetworkFacts,
};
use clearway_lab::units::{Bytes, Rate, Time, parameters};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use std::sync::Arc;

/// Maximum of `largest_window`, in bytes: the bitmaps of a flow are as long as the window.
const LARGEST_WINDOW: f64 = 1e11;

parameters! {
    /// A congestion controller written in Python.
    pub struct PythonParameters {
        /// Module and qualified name of the class.
        pub python_class: PythonClass = PythonClass::default(), "python-class", "none: it must be given";
    }
}

/// Properties of the network that a sender knows before the first packet.
#[pyclass(frozen, get_all, module = "clearway")]
pub(crate) struct Network {
    /// Rate of the NIC in bits per second.
    line_rate_bps: u64,
    /// Longest unloaded round trip in the fabric, including serialisation of a full packet and its acknowledgement.
    base_rtt_ps: u64,
    /// Unloaded round trip on the path of the flow.
    path_rtt_ps: u64,
    /// Switches on the path to the receiver.
    path_switches: u32,
    /// Bandwidth-delay product in bytes: rate of the NIC times `base_rtt_ps`.
    bdp: u64,
    /// Bytes of payload in a full packet.
    payload: u32,
    /// Bytes of headers on each packet.
    header: u32,
}

/// An acknowledgement.
#[pyclass(frozen, get_all, module = "clearway")]
pub(crate) struct Ack {
    /// The present.
    now_ps: u64,
    /// Round-trip time of the packet that the acknowledgement answers.
    rtt_ps: u64,
    /// True if the acknowledged packet has a congestion mark.
    ecn: bool,
    /// Payload bytes newly known to have arrived; zero for duplicates.
    acked: u64,
    /// Bytes in flight after this acknowledgement.
    in_flight: u64,
    /// Payload bytes of the flow that are known to have arrived since its beginning. Together with the bytes in flight they are the bytes
    /// sent. Once `delivered` exceeds the bytes sent at some instant, a round trip has passed since that instant.
    delivered: u64,
    /// True if the acknowledgement answers a probe, not data.
    probe: bool,
    /// For each hop: time in picoseconds, rate in bits per second, bytes sent modulo 2^32, bytes queued.
    hops: Vec<(u64, u64, u32, u32)>,
}

/// Packets declared lost.
#[pyclass(frozen, get_all, module = "clearway")]
pub(crate) struct Loss {
    /// The present.
    now_ps: u64,
    /// Signal by which the loss was detected: "out of order", "probe", "timeout" or "go back".
    cause: &'static str,
    /// Payload bytes declared lost now.
    lost: u64,
}

/// Controller of a flow: an object of the user's class.
pub(crate) struct PythonController {
    /// `None` after a failure of the object or of its constructor.
    object: Option<Py<PyAny>>,
    run: Arc<RunControllers>,
    allowance: Allowance,
    largest: f64,
    deadline: Time,
    telemetry: bool,
    /// Methods that the class has.
    has: Methods,
}

/// Methods that a class may leave out.
#[derive(Debug, Clone, Copy, Default)]
struct Methods {
    on_loss: bool,
    on_notification: bool,
    on_sent: bool,
    on_restart: bool,
    on_deadline: bool,
}

impl PythonController {
    fn make(parameters: &PythonParameters, network: &NetworkFacts) -> PyResult<Self> {
        Python::attach(|py| {
            let class = parameters.python_class.class(py)?;
            let facts = Network {
                line_rate_bps: network.line_rate.as_bps(),
                base_rtt_ps: network.base_rtt.as_ps(),
                path_rtt_ps: network.path.rtt.as_ps(),
                path_switches: network.path.switches,
                bdp: network.bdp.as_u64(),
                payload: network.payload,
                header: network.header,
            };
            let object = class.call1((facts,))?;
            let has = |method: &str| object.hasattr(method);
            let has = Methods {
                on_loss: has("on_loss")?,
                on_notification: has("on_notification")?,
                on_sent: has("on_sent")?,
                on_restart: has("on_restart")?,
                on_deadline: has("on_deadline")?,
            };
            let telemetry = match object.getattr_opt("uses_telemetry")? {
                Some(value) => value.extract()?,
                None => false,
            };
            let (allowance, deadline) = state(&object)?;
            check_window(allowance.window)?;
            let largest = match object.getattr_opt("largest_window")? {
                Some(value) => value.extract()?,
                None => allowance.window.max(4.0 * network.bdp.as_u64() as f64),
            };
            check_largest(largest, network.payload)?;
            let mut made = Self {
                object: None,
                run: Arc::clone(parameters.python_class.run()),
                allowance,
                largest,
                deadline,
                telemetry,
                has,
            };
            made.check()?;
            made.object = Some(object.unbind());
            Ok(made)
        })
    }

    /// Failed controller: its flow continues with a window of one packet until the run is stopped.
    fn failed(run: &Arc<RunControllers>, network: &NetworkFacts) -> Self {
        let window = f64::from(network.payload);
        Self {
            object: None,
            run: Arc::clone(run),
            allowance: Allowance { window, rate: None },
            largest: window,
            deadline: Time::NEVER,
            telemetry: false,
            has: Methods::default(),
        }
    }

    /// Calls a method, then reads the window, rate and deadline of the object.
    fn call(&mut self, call: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<()>) {
        let Some(object) = &self.object else { return };
        let called = Python::attach(|py| {
            let object = object.bind(py);
            call(object)?;
            state(object)
        });
        let taken = called.and_then(|(allowance, deadline)| {
            (self.allowance, self.deadline) = (allowance, deadline);
            self.check()
        });
        if let Err(error) = taken {
            self.object = None;
            self.deadline = Time::NEVER;
            self.allowance.window = self.allowance.window.clamp(1.0, self.largest);
            self.run.fail(error);
        }
    }

    fn check(&self) -> PyResult<()> {
        let window = self.allowance.window;
        check_window(window)?;
        if window > self.largest {
            let text = format!(
                "`window` has grown to {window} bytes, beyond `largest_window` ({}): set the latter as an attribute in `__init__`",
                self.largest
            );
            return Err(PyValueError::new_err(text));
        }
        Ok(())
    }
}

fn check_window(window: f64) -> PyResult<()> {
    if window.is_finite() && window > 0.0 {
        return Ok(());
    }
    let text = format!("`window` is {window}: it has to be a finite number of bytes above zero");
    Err(PyValueError::new_err(text))
}

fn check_largest(largest: f64, packet: u32) -> PyResult<()> {
    if (f64::from(packet)..=LARGEST_WINDOW).contains(&largest) {
        return Ok(());
    }
    Err(wrong(format!(
        "`largest_window` is {largest}: not from a packet ({packet} bytes) to {LARGEST_WINDOW:e} bytes\n  fix: set it in `__init__` to \
         the largest `window` that the controller will allow, such as `4.0 * network.bdp`"
    )))
}

/// Attributes `window`, `rate_bps` and `deadline_ps` of a controller.
fn state(object: &Bound<'_, PyAny>) -> PyResult<(Allowance, Time)> {
    let window = object.getattr_opt("window")?.ok_or_else(|| {
        PyTypeError::new_err(
            "a controller has an attribute `window`: the bytes that may be in flight",
        )
    })?;
    let rate: Option<f64> = match object.getattr_opt("rate_bps")? {
        Some(rate) => rate.extract()?,
        None => None,
    };
    let rate = match rate {
        None => None,
        Some(bps) if (1.0..=1e15).contains(&bps) => Some(Rate::from_bps(bps as u64)),
        Some(bps) => {
            let text = format!("`rate_bps` is {bps}: it has to be None, or 1 to 1e15");
            return Err(PyValueError::new_err(text));
        }
    };
    let deadline: Option<u64> = match object.getattr_opt("deadline_ps")? {
        Some(deadline) => deadline.extract()?,
        None => None,
    };
    let allowance = Allowance {
        window: window.extract()?,
        rate,
    };
    Ok((allowance, deadline.map_or(Time::NEVER, Time::from_ps)))
}

impl CongestionControl for PythonController {
    fn on_ack(&mut self, sample: &AckSample<'_>) {
        let hops = sample.hops.iter();
        let ack = Ack {
            now_ps: sample.now.as_ps(),
            rtt_ps: sample.rtt.as_ps(),
            ecn: sample.ecn,
            acked: sample.acked.as_u64(),
            in_flight: sample.in_flight.as_u64(),
            delivered: sample.delivered.as_u64(),
            probe: sample.probe,
            hops: hops
                .map(|hop| (hop.time.as_ps(), hop.rate.as_bps(), hop.sent, hop.queue))
                .collect(),
        };
        self.call(|object| object.call_method1("on_ack", (ack,)).map(drop));
    }

    fn on_loss(&mut self, loss: &LossSample) {
        if self.has.on_loss {
            let loss = Loss {
                now_ps: loss.now.as_ps(),
                cause: loss.cause.words(),
                lost: loss.lost.as_u64(),
            };
            self.call(|object| object.call_method1("on_loss", (loss,)).map(drop));
        }
    }

    fn on_notification(&mut self, now: Time) {
        if self.has.on_notification {
            self.call(|object| {
                object
                    .call_method1("on_notification", (now.as_ps(),))
                    .map(drop)
            });
        }
    }

    fn on_sent(&mut self, now: Time, wire: Bytes) {
        if self.has.on_sent {
            let arguments = (now.as_ps(), wire.as_u64());
            self.call(|object| object.call_method1("on_sent", arguments).map(drop));
        }
    }

    fn on_restart(&mut self, now: Time) {
        if self.has.on_restart {
            self.call(|object| object.call_method1("on_restart", (now.as_ps(),)).map(drop));
        }
    }

    fn allowance(&self) -> Allowance {
        self.allowance
    }

    fn largest_window(&self) -> f64 {
        self.largest
    }

    fn deadline(&self) -> Time {
        match self.has.on_deadline {
            true => self.deadline,
            false => Time::NEVER,
        }
    }

    fn on_deadline(&mut self, now: Time) {
        // The simulator may call this before the deadline.
        if self.has.on_deadline && now >= self.deadline {
            self.call(|object| object.call_method1("on_deadline", (now.as_ps(),)).map(drop));
            if self.deadline <= now {
                self.deadline = Time::NEVER;
                let text = "`deadline_ps` is not after the present when `on_deadline` returns";
                self.run.fail(PyValueError::new_err(text));
            }
        }
    }

    fn uses_telemetry(&self) -> bool {
        self.telemetry
    }
}

impl ControllerDefinition for PythonController {
    const NAME: &'static str = "python";
    const SUMMARY: &'static str = "a class written in Python (slow: for small studies)";
    type Parameters = PythonParameters;

    fn new(parameters: &PythonParameters, network: &NetworkFacts) -> Self {
        Self::make(parameters, network).unwrap_or_else(|error| {
            let run = parameters.python_class.run();
            run.fail(error);
            Self::failed(run, network)
        })
    }
}
