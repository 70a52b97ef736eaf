//! Faults of calls: a code that the function returns, and a text that the thread keeps.

use clearway_lab::scenario::ScenarioError;
use clearway_runs::{defect_text, with_causes};
use std::cell::RefCell;
use std::error::Error;
use std::ffi::CString;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Outcome of a call. A call that returns `MISUSE` or `INPUT` has changed nothing, except that a run may have advanced.
#[repr(i32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallStatus {
    /// Success.
    Ok = 0,
    /// Wrong use of the interface: a null pointer, an unknown or destroyed handle, a call in the wrong order or from the wrong thread.
    Misuse = 1,
    /// Invalid input: the scenario, a message or a time.
    Input = 2,
    /// Defect of Clearway. The simulation cannot be used any more.
    Defect = 3,
    /// Results cannot be written.
    Output = 4,
    /// The simulation has reached `stop.at-most` of its scenario. Events until then have been delivered.
    Over = 5,
    /// The simulation was interrupted by `clearway_interrupt`. Events until then have been delivered.
    Interrupted = 130,
}

/// Code and text of a failed call.
#[derive(Debug)]
pub(crate) struct Fault {
    pub(crate) status: CallStatus,
    text: String,
}

impl Fault {
    pub(crate) fn new(status: CallStatus, text: impl Into<String>) -> Self {
        let text = text.into();
        Self { status, text }
    }

    /// Wrong use of the interface.
    pub(crate) fn misuse(what: &str, fix: &str) -> Self {
        Self::new(CallStatus::Misuse, format!("{what}\n  fix: {fix}"))
    }

    /// Results that cannot be written, with the causes on one line.
    pub(crate) fn unwritten(error: &dyn Error) -> Self {
        Self::new(CallStatus::Output, with_causes(error))
    }
}

impl From<ScenarioError> for Fault {
    fn from(error: ScenarioError) -> Self {
        Self::new(CallStatus::Input, error.to_string())
    }
}

thread_local! {
    static LAST: RefCell<CString> = RefCell::default();
}

/// Runs `call`, and keeps the text of its fault for [`with_last`]. A panic becomes [`CallStatus::Defect`].
pub(crate) fn status_of(call: impl FnOnce() -> Result<(), Fault>) -> CallStatus {
    let fault = match catch_unwind(AssertUnwindSafe(call)) {
        Ok(Ok(())) => return CallStatus::Ok,
        Ok(Err(fault)) => fault,
        Err(panic) => Fault::new(CallStatus::Defect, defect_text(&*panic)),
    };
    let text = c_text(&fault.text);
    // The thread may be ending; then nobody can ask for the text.
    let _ = LAST.try_with(|last| *last.borrow_mut() = text);
    fault.status
}

/// Passes the text of the last fault of this thread to `read`.
pub(crate) fn with_last<T>(read: impl FnOnce(&CString) -> T) -> T {
    LAST.with(|last| read(&last.borrow()))
}

/// A text as C expects it; it ends at its first zero byte.
pub(crate) fn c_text(text: &str) -> CString {
    let end = text.find('\0').unwrap_or(text.len());
    CString::new(&text[..end]).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_a_status() {
        let status = status_of(|| panic!("no {}", "way"));
        assert_eq!(status, CallStatus::Defect);
        let text = with_last(|text| text.to_string_lossy().into_owned());
        assert!(text.starts_with("no way\n  fix: this is a defect"));
        assert_eq!(status_of(|| Ok(())), CallStatus::Ok);
    }

    #[test]
    fn a_text_ends_at_its_first_zero() {
        assert_eq!(c_text("a\0b").to_bytes(), b"a");
    }
}
