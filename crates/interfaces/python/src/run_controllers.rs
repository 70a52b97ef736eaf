//! The controllers of one run: their class, and the exceptions that they raise.

use clearway_lab::units::{Parameter, Value, ValueDomain};
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use std::cell::RefCell;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A class, and its name in the scenario.
pub(crate) type NamedClass = (String, Py<PyAny>);

/// The class given to a run, and the first exception of its controllers. Concurrent runs share neither.
#[derive(Default)]
pub(crate) struct RunControllers {
    class: Option<NamedClass>,
    has_failed: AtomicBool,
    /// Exception that has not been raised yet.
    failure: Mutex<Option<PyErr>>,
}

thread_local! {
    /// The run whose scenario this thread reads.
    static READING: RefCell<Option<Arc<RunControllers>>> = const { RefCell::new(None) };
}

impl RunControllers {
    pub(crate) fn new(class: Option<NamedClass>) -> Arc<Self> {
        Arc::new(Self {
            class,
            ..Self::default()
        })
    }

    /// Reads a scenario whose controllers belong to this run.
    pub(crate) fn reading<T>(self: &Arc<Self>, read: impl FnOnce() -> T) -> T {
        let outer = READING.replace(Some(Arc::clone(self)));
        let read = read();
        READING.set(outer);
        read
    }

    /// Records the exception of a controller. The rest of the run is meaningless.
    pub(crate) fn fail(&self, error: PyErr) {
        self.failure().get_or_insert(error);
        self.has_failed.store(true, Ordering::Relaxed);
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.has_failed.load(Ordering::Relaxed)
    }

    /// Raises the first exception of a controller.
    pub(crate) fn raise(&self) -> PyResult<()> {
        self.failure().take().map_or(Ok(()), Err)
    }

    fn failure(&self) -> MutexGuard<'_, Option<PyErr>> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// True if the exception is Ctrl-C, which may arrive while a controller runs.
pub(crate) fn is_interrupt(error: &PyErr) -> bool {
    Python::attach(|py| error.is_instance_of::<PyKeyboardInterrupt>(py))
}

/// The class of a controller by its name in a scenario.
#[derive(Clone, Default)]
pub(crate) struct PythonClass {
    name: String,
    run: Arc<RunControllers>,
}

impl PythonClass {
    /// The run for which the scenario was read.
    pub(crate) fn run(&self) -> &Arc<RunControllers> {
        &self.run
    }

    /// The class given to the run, or another class of this name that the package knows.
    pub(crate) fn class<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match &self.run.class {
            Some((name, class)) if *name == self.name => Ok(class.bind(py).clone()),
            _ => py
                .import("clearway._controller")?
                .call_method1("class_named", (&self.name,)),
        }
    }
}

impl fmt::Debug for PythonClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.name.fmt(f)
    }
}

impl PartialEq for PythonClass {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Parameter for PythonClass {
    fn expected() -> String {
        String::expected()
    }

    fn domain() -> ValueDomain {
        String::domain()
    }

    fn from_value(value: &Value) -> Option<Self> {
        let name = String::from_value(value)?;
        let run = READING.with_borrow(|run| run.clone().unwrap_or_default());
        Some(Self { name, run })
    }

    fn to_value(&self) -> Value {
        self.name.to_value()
    }
}
