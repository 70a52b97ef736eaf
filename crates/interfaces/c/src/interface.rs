//! Functions that C programs call; cbindgen writes `include/clearway.h` from this file.
//!
//! **Architecture invariant:** the only file of the crate with `unsafe` code: it reads and writes through pointers of the caller.
#![allow(unsafe_code)]
// The contract of all pointers is written once, at the top of the header (`cbindgen.toml`).
#![allow(clippy::missing_safety_doc)]

pub use crate::fault::CallStatus;
use crate::fault::{Fault, status_of, with_last};
use crate::registry;
pub use crate::simulation::{DeliveredEvent, EventKind};
use crate::simulation::{Goal, OnEvent, Options, Results, Simulation, Source, message};
use clearway_lab::units::{Span, Time};
use std::ffi::{CStr, c_char, c_void};
use std::path::PathBuf;
use std::sync::Arc;

/// Version of this interface. A program is compiled with the version of its header; `clearway_create` compares it with the library's.
pub const INTERFACE_VERSION: u32 = 1;

/// Time that never comes, in picoseconds.
pub const NEVER: u64 = u64::MAX;

/// A simulated network. The pointer is a handle: it points to nothing.
pub struct SimulationHandle;

/// Options of a simulation. Zero stands for the default in all fields but the first; give either `scenario` or `text`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct CreateOptions {
    /// `CLEARWAY_INTERFACE_VERSION`.
    pub interface_version: u32,
    /// Threads of the simulation; 0: more than one if the run is long and processors are free. Results do not depend on it.
    pub threads: u32,
    /// Built-in scenario, or path of a scenario file.
    pub scenario: *const c_char,
    /// Text of a scenario file.
    pub text: *const c_char,
    /// Assignments such as `transport.kind=rocev2`, which replace keys of the scenario.
    pub overrides: *const *const c_char,
    /// Number of `overrides`.
    pub override_count: usize,
    /// Limit, in picoseconds, of the time by which the simulation passes an event before its callback runs; 0: the shortest delay of a
    /// link. A message that a callback posts starts at most so much later than the event. A smaller limit costs more time.
    pub resolution_ps: u64,
    /// Priorities that messages may have, as bits 1 to 7; 0: only priority 1. Switches reserve buffers and queues for them.
    pub priorities: u8,
    /// Not 0: the workload of the scenario runs beside the posted messages.
    pub own_traffic: u8,
}

/// A message to post.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct MessageOptions {
    /// Sending host, from 0.
    pub src: u32,
    /// Receiving host, another one.
    pub dst: u32,
    /// Length in bytes, above 0.
    pub bytes: u64,
    /// Number for the events of the message and its row in `flows.parquet`. It need not be unique.
    pub tag: u64,
    /// Priority, 1 to 7, among those of the options; 0: priority 1.
    pub priority: u8,
}

/// Callback for the events of messages. `event` is valid during the call. A callback must return: it must neither throw nor jump.
pub type EventCallback =
    Option<unsafe extern "C" fn(user: *mut c_void, event: *const DeliveredEvent)>;

/// Callback for an instant. It must return: it must neither throw nor jump.
pub type TimeCallback = Option<unsafe extern "C" fn(user: *mut c_void)>;

/// Version of the interface of this library, to compare with `CLEARWAY_INTERFACE_VERSION`.
#[unsafe(no_mangle)]
pub extern "C" fn clearway_interface_version() -> u32 {
    INTERFACE_VERSION
}

/// Version of Clearway. The text is valid as long as the library is loaded.
#[unsafe(no_mangle)]
pub extern "C" fn clearway_version() -> *const c_char {
    const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");
    VERSION.as_ptr().cast()
}

/// Text of the last failure of a call of this thread: what is wrong, and how to fix it. Empty before the first one. The text is valid until
/// the next failure of the thread.
#[unsafe(no_mangle)]
pub extern "C" fn clearway_last_error() -> *const c_char {
    with_last(|text| text.as_ptr())
}

/// Creates a simulation that stands at time zero, and writes its handle to `simulation`. Every handle is destroyed by `clearway_destroy`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clearway_create(
    options: *const CreateOptions,
    simulation: *mut *mut SimulationHandle,
) -> CallStatus {
    status_of(|| {
        // The version is the first field in all versions.
        let version = unsafe { read(options.cast::<u32>(), "options") }?;
        if version != INTERFACE_VERSION {
            return Err(Fault::misuse(
                &format!(
                    "the program asks for version {version} of the interface, the library has version {INTERFACE_VERSION}"
                ),
                "set `interface_version` to CLEARWAY_INTERFACE_VERSION, and compile the program with the header of this library",
            ));
        }
        let given = unsafe { read(options, "options") }?;
        check(simulation, "simulation")?;
        let created = Simulation::new(unsafe { options_of(&given) }?)?;
        let handle = std::ptr::without_provenance_mut(registry::register(created)?);
        unsafe { write(simulation, handle, "simulation") }
    })
}

/// Ends a simulation, if it has not ended, and releases its memory and threads. Its texts become invalid. Refused in a callback.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clearway_destroy(simulation: *mut SimulationHandle) -> CallStatus {
    status_of(|| {
        registry::simulation(simulation.addr())?.close()?;
        registry::remove(simulation.addr());
        Ok(())
    })
}

/// Writes the simulated time to `ps`. All events before it have happened.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clearway_now(
    simulation: *mut SimulationHandle,
    ps: *mut u64,
) -> CallStatus {
    status_of(|| {
        let now = registry::simulation(simulation.addr())?.now()?;
        unsafe { write(ps, now.as_ps(), "ps") }
    })
}

/// Writes the number of hosts to `hosts`. Hosts are numbered from 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clearway_hosts(
    simulation: *mut SimulationHandle,
    hosts: *mut u32,
) -> CallStatus {
    status_of(|| {
        let count = registry::simulation(simulation.addr())?.hosts()?;
        unsafe { write(hosts, count, "hosts") }
    })
}

/// Writes warning number `index` about the scenario to `text`, or a null pointer if there are not so many. The text belongs to the
/// simulation.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clearway_warning(
    simulation: *mut SimulationHandle,
    index: usize,
    text: *mut *const c_char,
) -> CallStatus {
    status_of(|| {
        let found = registry::simulation(simulation.addr())?;
        let warning = found.warnings().get(index);
        let pointer = warning.map_or(std::ptr::null(), |warning| warning.as_ptr());
        unsafe { write(text, pointer, "text") }
    })
}

/// Posts a message that is ready at the present simulated time, and writes its number to `number`, which may be a null pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clearway_post(
    simulation: *mut SimulationHandle,
    posted: *const MessageOptions,
    number: *mut u32,
) -> CallStatus {
    status_of(|| {
        let simulation = registry::simulation(simulation.addr())?;
        let MessageOptions {
            src,
            dst,
            bytes,
            tag,
            priority,
        } = unsafe { read(posted, "posted") }?;
        if !number.is_null() {
            check(number, "number")?;
        }
        let flow = simulation.post(message((src, dst), bytes, tag, priority))?;
        match number.is_null() {
            true => Ok(()),
            false => unsafe { write(number, flow.0, "number") },
        }
    })
}

/// Sets the callback for the events of all messages, and of the scenario's own flows. Without one, events wait for `clearway_take_event`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clearway_on_event(
    simulation: *mut SimulationHandle,
    callback: EventCallback,
    user: *mut c_void,
) -> CallStatus {
    status_of(|| {
        let simulation = registry::simulation(simulation.addr())?;
        let user = user.expose_provenance();
        simulation.set_on_event(callback.map(|callback| -> OnEvent {
            Arc::new(move |event| unsafe {
                callback(std::ptr::with_exposed_provenance_mut(user), event);
            })
        }))
    })
}

/// Calls `callback` once, when all events before `at_ps` have happened and been delivered. Callbacks of one instant run in the order in
/// which they were scheduled.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clearway_schedule(
    simulation: *mut SimulationHandle,
    at_ps: u64,
    callback: TimeCallback,
    user: *mut c_void,
) -> CallStatus {
    status_of(|| {
        let simulation = registry::simulation(simulation.addr())?;
        let callback = callback.ok_or_else(|| null("callback"))?;
        let user = user.expose_provenance();
        let on_time = move || unsafe { callback(std::ptr::with_exposed_provenance_mut(user)) };
        simulation.schedule(Time::from_ps(at_ps), Box::new(on_time))
    })
}

/// Writes to `ps` the earliest time at which anything may happen, `CLEARWAY_NEVER` if nothing is left. Events of packets and timers of
/// transports count, so the next callback may be later.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clearway_next_event(
    simulation: *mut SimulationHandle,
    ps: *mut u64,
) -> CallStatus {
    status_of(|| {
        let next = registry::simulation(simulation.addr())?.next_event()?;
        unsafe { write(ps, next.map_or(NEVER, Time::as_ps), "ps") }
    })
}

/// Simulates all events before `ps`, and runs the callbacks until then, those scheduled for `ps` included.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clearway_run_until(
    simulation: *mut SimulationHandle,
    ps: u64,
) -> CallStatus {
    status_of(|| {
        if ps == NEVER {
            let text =
                "simulated time cannot become CLEARWAY_NEVER\n  fix: call clearway_run_to_end";
            return Err(Fault::new(CallStatus::Input, text));
        }
        registry::simulation(simulation.addr())?.run(Goal::Until(Time::from_ps(ps)))
    })
}

/// Simulates until callbacks have run, or events wait to be taken, but at most to `limit_ps`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clearway_run_until_event(
    simulation: *mut SimulationHandle,
    limit_ps: u64,
) -> CallStatus {
    status_of(|| registry::simulation(simulation.addr())?.run(Goal::Event(Time::from_ps(limit_ps))))
}

/// Simulates until nothing is left: no event of the network and no scheduled callback.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clearway_run_to_end(simulation: *mut SimulationHandle) -> CallStatus {
    status_of(|| registry::simulation(simulation.addr())?.run(Goal::End))
}

/// Takes the oldest event that no callback has received. Writes it to `event` and 1 to `taken`, or only 0 to `taken` if there is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clearway_take_event(
    simulation: *mut SimulationHandle,
    event: *mut DeliveredEvent,
    taken: *mut i32,
) -> CallStatus {
    status_of(|| {
        let simulation = registry::simulation(simulation.addr())?;
        check(event, "event")?;
        check(taken, "taken")?;
        let oldest = simulation.take_event()?;
        if let Some(oldest) = oldest {
            unsafe { write(event, oldest, "event") }?;
        }
        unsafe { write(taken, oldest.is_some().into(), "taken") }
    })
}

/// Interrupts the run of another thread, which returns `CLEARWAY_STATUS_INTERRUPTED` within a tenth of a second, and every later run. It
/// cannot be called from a signal handler.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clearway_interrupt(simulation: *mut SimulationHandle) -> CallStatus {
    status_of(|| {
        registry::simulation(simulation.addr())?.interrupt();
        Ok(())
    })
}

/// Ends the simulation at its present time, and writes a result folder as `clearway run --out` does, unless `folder` is a null pointer. If
/// the folder cannot be written, the simulation has ended all the same. Afterwards only `clearway_summary`, `clearway_scenario`,
/// `clearway_warning` and `clearway_destroy` are of use.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clearway_finish(
    simulation: *mut SimulationHandle,
    folder: *const c_char,
) -> CallStatus {
    status_of(|| {
        let simulation = registry::simulation(simulation.addr())?;
        let folder = match folder.is_null() {
            true => None,
            false => Some(PathBuf::from(unsafe { text(folder, "folder") }?)),
        };
        simulation.finish(folder.as_deref())
    })
}

/// Writes to `json` the contents of `summary.json` of a finished simulation. The text belongs to the simulation.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clearway_summary(
    simulation: *mut SimulationHandle,
    json: *mut *const c_char,
) -> CallStatus {
    status_of(|| {
        let simulation = registry::simulation(simulation.addr())?;
        let pointer = results(&simulation)?.summary.as_ptr();
        unsafe { write(json, pointer, "json") }
    })
}

/// Writes to `toml` the scenario that lists the posted messages of a finished simulation. `clearway run` of it has the same digest, if no
/// event was left at the end. The text belongs to the simulation.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clearway_scenario(
    simulation: *mut SimulationHandle,
    toml: *mut *const c_char,
) -> CallStatus {
    status_of(|| {
        let simulation = registry::simulation(simulation.addr())?;
        let pointer = results(&simulation)?.scenario.as_ptr();
        unsafe { write(toml, pointer, "toml") }
    })
}

fn results(simulation: &Simulation) -> Result<&Results, Fault> {
    simulation.results().ok_or_else(|| {
        Fault::misuse(
            "the simulation has not ended",
            "call clearway_finish before",
        )
    })
}

unsafe fn options_of(given: &CreateOptions) -> Result<Options, Fault> {
    let source = match (given.scenario.is_null(), given.text.is_null()) {
        (false, true) => Source::Name(unsafe { text(given.scenario, "scenario") }?),
        (true, false) => Source::Text(unsafe { text(given.text, "text") }?),
        (both, _) => {
            let what = match both {
                true => "the options have neither `scenario` nor `text`",
                false => "the options have both `scenario` and `text`",
            };
            return Err(Fault::misuse(what, "give one of them"));
        }
    };
    if given.override_count > 0 && given.overrides.is_null() {
        return Err(null("overrides"));
    }
    let overrides = (0..given.override_count).map(|index| {
        let entry = unsafe { read(given.overrides.wrapping_add(index), "overrides") }?;
        unsafe { text(entry, "overrides") }
    });
    if given.priorities & 1 != 0 {
        return Err(Fault::misuse(
            "`priorities` has bit 0, which is the priority of acknowledgements",
            "set bits 1 to 7, such as 1 << 3 for priority 3",
        ));
    }
    Ok(Options {
        source,
        overrides: overrides.collect::<Result<_, _>>()?,
        threads: (given.threads != 0).then_some(given.threads as usize),
        own_traffic: given.own_traffic != 0,
        priorities: (1..8)
            .filter(|bit| given.priorities & (1 << bit) != 0)
            .collect(),
        resolution: (given.resolution_ps != 0).then(|| Span::from_ps(given.resolution_ps)),
    })
}

fn null(name: &str) -> Fault {
    Fault::misuse(
        &format!("`{name}` is a null pointer"),
        "pass a valid pointer",
    )
}

/// Reads through a pointer of the caller, which is null, or valid and aligned.
unsafe fn read<T: Copy>(pointer: *const T, name: &str) -> Result<T, Fault> {
    check(pointer, name)?;
    Ok(unsafe { pointer.read() })
}

/// Writes through a pointer of the caller, which is null, or valid and aligned.
unsafe fn write<T>(pointer: *mut T, value: T, name: &str) -> Result<(), Fault> {
    check(pointer, name)?;
    unsafe { pointer.write(value) };
    Ok(())
}

/// Checks a pointer before a call changes anything.
fn check<T>(pointer: *const T, name: &str) -> Result<(), Fault> {
    match pointer.is_aligned() {
        _ if pointer.is_null() => Err(null(name)),
        true => Ok(()),
        false => Err(Fault::misuse(
            &format!("`{name}` is not aligned"),
            "pass the address of a variable of the type in the header",
        )),
    }
}

/// Reads a text of the caller, which is a null pointer, or ends with a zero byte.
unsafe fn text(pointer: *const c_char, name: &str) -> Result<String, Fault> {
    if pointer.is_null() {
        return Err(null(name));
    }
    let text = unsafe { CStr::from_ptr(pointer) }.to_str();
    text.map(str::to_owned).map_err(|_| {
        Fault::misuse(
            &format!("`{name}` is not valid UTF-8"),
            "pass a text in UTF-8",
        )
    })
}
