//! Communications and computations of a profile by `torch.profiler`.

use super::call::{Call, CallFault, RECORD_AGAIN};
use super::profile::{Kernel, Profile, Record, Step, WaitKind};
use super::timeline::{Processor, Talk, Window, Work};
use crate::text::shown;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;

/// Windows of a rank, with the calls of each communication.
#[derive(Debug, Default)]
pub(super) struct Session {
    pub(super) windows: Vec<Window>,
    /// For each window the calls of each communication.
    pub(super) calls: Vec<Vec<Vec<Call>>>,
    pub(super) processor: Processor,
    /// Communications outside all profiler steps.
    pub(super) outside: usize,
    /// True if the trace has no times, and those of the windows are numbers.
    pub(super) is_untimed: bool,
}

/// Communication with its calls.
type FoundTalk = (Talk, Vec<Call>);

/// The chosen steps of a profile, all if `wanted` is empty.
///
/// # Errors
/// If a step is missing, or if a communication has no details.
pub(super) fn session(profile: Profile, wanted: &[u32]) -> Result<Session, CallFault> {
    if let Some(name) = &profile.untimed {
        return Err(CallFault {
            message: format!("has the kernel `{}` without a valid time", shown(name)),
            fix: "restore the file if it was changed; `ts` and `dur` are microseconds".into(),
        });
    }
    let spans = spans(&profile.steps, wanted)?;
    let Profile {
        kernels,
        records,
        launches,
        waits,
        ..
    } = profile;
    let started = |kernel: &Kernel| {
        let launch = launches.get(&kernel.correlation?)?;
        Some((launch.thread, launch.at))
    };
    let processor = processor(&waits, &records, !launches.is_empty());
    let talks = Talks::new(&kernels, &records, started)?;
    let mut sorted = Sorted::new(&spans);
    sorted.sort(&kernels, talks, &spans, started)?;
    let mut session = Session {
        processor,
        outside: if wanted.is_empty() { sorted.outside } else { 0 },
        ..Session::default()
    };
    let mut passed = i64::MIN;
    for ((span, (mut window, mut found)), before) in
        spans.iter().zip(sorted.windows).zip(sorted.before)
    {
        passed = passed.max(before);
        found.sort_by_key(|(talk, _)| (talk.start, talk.end));
        bound(&mut window, &found, span, passed);
        let (talks, calls): (Vec<Talk>, Vec<Vec<Call>>) = found.into_iter().unzip();
        window.talks = talks;
        session.windows.push(window);
        session.calls.push(calls);
    }
    Ok(session)
}

/// Kernels by the span in which the processor started them.
struct Sorted {
    /// The window of each span with its communications.
    windows: Vec<(Window, Vec<FoundTalk>)>,
    /// End of the work that was started between each span and the one before.
    before: Vec<i64>,
    /// Communications outside all spans.
    outside: usize,
}

impl Sorted {
    fn new(spans: &[Span]) -> Self {
        let windows = spans.iter().map(|_| (Window::default(), Vec::new()));
        Self {
            windows: windows.collect(),
            before: vec![i64::MIN; spans.len()],
            outside: 0,
        }
    }

    fn sort(
        &mut self,
        kernels: &[Kernel],
        mut talks: Talks,
        spans: &[Span],
        started: impl Fn(&Kernel) -> Option<Started>,
    ) -> Result<(), CallFault> {
        let mut streams: BTreeMap<(i64, i64), usize> = BTreeMap::new();
        for (kernel, talk) in kernels.iter().zip(&talks.of_kernel) {
            let launch = started(kernel).map(|(_, at)| at);
            let at = launch.unwrap_or(kernel.start);
            let next = spans.partition_point(|span| span.from <= at);
            if let Some(end) = self.before.get_mut(next) {
                *end = kernel.end.max(*end);
            }
            if *talk == Some(Part::Further) {
                continue;
            }
            let count = streams.len();
            let stream = *streams.entry(kernel.stream).or_insert(count);
            check_streams(streams.len())?;
            let span = next.checked_sub(1).filter(|&span| at < spans[span].to);
            let Some(span) = span else {
                self.outside += usize::from(talk.is_some());
                continue;
            };
            let (window, found) = &mut self.windows[span];
            let mut work = Work {
                start: kernel.start,
                end: kernel.end,
                stream,
                launch,
            };
            match *talk {
                Some(Part::First(number)) => {
                    work.end = talks.ends[number];
                    let calls = std::mem::take(&mut talks.calls[number]);
                    found.push((work.into_talk(), calls));
                }
                _ => window.works.push(work),
            }
        }
        Ok(())
    }
}

/// Checks the number of streams of a rank: the time to find dependencies grows with it.
pub(super) fn check_streams(count: usize) -> Result<(), CallFault> {
    const MOST: usize = 512;
    match count > MOST {
        true => Err(CallFault {
            message: format!("has kernels on more than {MOST} streams"),
            fix: "check that the file is the profile of one rank".into(),
        }),
        false => Ok(()),
    }
}

/// Time of the processor in which it starts the work of a window.
#[derive(Debug, Clone, Copy)]
struct Span {
    from: i64,
    to: i64,
    /// True if the span is one of steps, not the whole trace.
    is_steps: bool,
}

/// Spans of the wanted steps: neighbours are one span.
fn spans(steps: &[Step], wanted: &[u32]) -> Result<Vec<Span>, CallFault> {
    let mut by_number: BTreeMap<u32, (i64, i64)> = BTreeMap::new();
    for step in steps {
        let span = by_number
            .entry(step.number)
            .or_insert((step.start, step.end));
        *span = (span.0.min(step.start), span.1.max(step.end));
    }
    for number in wanted {
        if !by_number.contains_key(number) {
            let fix = match (by_number.first_key_value(), by_number.last_key_value()) {
                (Some((first, _)), Some((last, _))) => format!("choose steps from {first} to {last}, or leave `profiler-steps` out"),
                _ => "leave `profiler-steps` out, or call `step()` of the profiler after each iteration".into(),
            };
            let message = format!("has no `ProfilerStep#{number}`");
            return Err(CallFault { message, fix });
        }
    }
    if by_number.is_empty() {
        return Ok(vec![Span {
            from: i64::MIN,
            to: i64::MAX,
            is_steps: false,
        }]);
    }
    let wanted: FxHashSet<u32> = wanted.iter().copied().collect();
    let mut spans: Vec<Span> = Vec::new();
    let mut last = None;
    for (number, (from, to)) in by_number {
        if !wanted.is_empty() && !wanted.contains(&number) {
            continue;
        }
        match spans.last_mut() {
            Some(span) if last == number.checked_sub(1) && span.from <= from => {
                span.to = span.to.max(to);
            }
            _ => spans.push(Span {
                from,
                to,
                is_steps: true,
            }),
        }
        last = Some(number);
    }
    // Numbers may begin again in a trace; times decide.
    spans.sort_by_key(|span| (span.from, span.to));
    Ok(spans)
}

/// Sets begin and end of a window: of its work, and of its steps where the GPU does nothing. `passed` is the end of earlier work.
fn bound(window: &mut Window, found: &[FoundTalk], span: &Span, passed: i64) {
    let works = window.works.iter().map(|work| (work.start, work.end));
    let times = works.chain(found.iter().map(|(talk, _)| (talk.start, talk.end)));
    let first = times.clone().map(|(start, _)| start).min();
    let last = times.map(|(_, end)| end).max();
    (window.from, window.to) = match (first.zip(last), span.is_steps) {
        (None, false) => (0, 0),
        (None, true) => (span.from, span.to),
        (Some((first, last)), false) => (first, last),
        (Some((first, last)), true) => (first.min(span.from.max(passed)), last.max(span.to)),
    };
}

/// The processor's waits outside of communications, within which NCCL's stream waits for the computation.
fn processor(waits: &[super::profile::Wait], records: &[Record], is_known: bool) -> Processor {
    let mut within: FxHashMap<i64, Vec<(i64, i64)>> = FxHashMap::default();
    for record in records {
        within
            .entry(record.thread)
            .or_default()
            .push((record.start, record.end));
    }
    for spans in within.values_mut() {
        spans.sort_unstable();
        // The latest end so far, as records may be nested.
        let mut latest = i64::MIN;
        for span in spans {
            latest = latest.max(span.1);
            span.1 = latest;
        }
    }
    let is_of_call = |thread: i64, at: i64| {
        within.get(&thread).is_some_and(|spans| {
            let count = spans.partition_point(|&(start, _)| start <= at);
            count.checked_sub(1).is_some_and(|last| at <= spans[last].1)
        })
    };
    let mut processor = Processor {
        is_known,
        ..Processor::default()
    };
    for wait in waits {
        let is_own = wait.kind != WaitKind::Stream || !is_of_call(wait.thread, wait.start);
        if wait.kind != WaitKind::Processor && is_own {
            processor.waits.push(wait.start);
        }
        if wait.kind != WaitKind::Stream {
            processor.syncs.push((wait.start, wait.end));
        }
    }
    processor.waits.sort_unstable();
    processor.syncs.sort_unstable();
    processor
}

/// Thread and time at which the processor started a kernel.
type Started = (i64, i64);

/// Part of a kernel in a communication.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    /// First kernel of the communication with this number.
    First(usize),
    /// Another kernel of a communication.
    Further,
}

/// Communications of a trace.
struct Talks {
    /// The part of each kernel; nothing for kernels that compute.
    of_kernel: Vec<Option<Part>>,
    /// End of each communication.
    ends: Vec<i64>,
    /// Calls of each communication.
    calls: Vec<Vec<Call>>,
}

impl Talks {
    /// Finds the communications among the kernels. `launch` is the thread and time at which the processor started a kernel.
    fn new(
        kernels: &[Kernel],
        records: &[Record],
        launch: impl Fn(&Kernel) -> Option<Started>,
    ) -> Result<Self, CallFault> {
        // Kineto copies the details of a call to all kernels within it, also to those that copy tensors.
        let named = kernels.iter().filter(|kernel| kernel.name.is_some());
        let named: FxHashSet<i64> = named.filter_map(|kernel| kernel.external).collect();
        let is_talk = |kernel: &Kernel| {
            let is_alone = kernel
                .external
                .is_none_or(|external| !named.contains(&external));
            kernel.name.is_some() || (kernel.call.is_some() && is_alone)
        };
        let mut talks = Self {
            of_kernel: vec![None; kernels.len()],
            ends: Vec::new(),
            calls: Vec::new(),
        };
        let by_external: FxHashMap<i64, &Record> = records
            .iter()
            .filter_map(|record| Some((record.external?, record)))
            .collect();
        let mut order: Vec<usize> = (0..kernels.len())
            .filter(|&index| is_talk(&kernels[index]))
            .collect();
        order.sort_by_key(|&index| (kernels[index].start, kernels[index].end, index));
        let mut known: FxHashMap<i64, usize> = FxHashMap::default();
        let mut unnamed = Vec::new();
        for index in order {
            let kernel = &kernels[index];
            let record = kernel
                .external
                .and_then(|external| by_external.get(&external).copied());
            let of_record = record.and_then(|record| record.call.as_deref());
            let call = match (kernel.call.as_deref(), of_record) {
                // Only the record names the root.
                (Some(_), Some(call)) | (None, Some(call)) | (Some(call), None) => Some(call),
                (None, None) => None,
            };
            if let (Some(_), Some(external)) = (call, kernel.external)
                && let Some(&number) = known.get(&external)
            {
                talks.of_kernel[index] = Some(Part::Further);
                talks.ends[number] = talks.ends[number].max(kernel.end);
                continue;
            }
            let number = talks.calls.len();
            talks.of_kernel[index] = Some(Part::First(number));
            talks.ends.push(kernel.end);
            talks.calls.push(call.cloned().into_iter().collect());
            match (call, kernel.external) {
                (Some(_), Some(external)) => drop(known.insert(external, number)),
                (Some(_), None) => {}
                (None, _) => unnamed.push((index, number)),
            }
        }
        let claimed = |record: &Record| {
            record
                .external
                .is_some_and(|external| known.contains_key(&external))
        };
        let left: Vec<&Record> = records.iter().filter(|record| !claimed(record)).collect();
        talks.name(kernels, &unnamed, left, launch)?;
        Ok(talks)
    }

    /// Gives kernels without details the calls that no kernel has: calls within `batch_isend_irecv` and coalescing managers have one kernel
    /// together, which the same thread starts after them.
    fn name(
        &mut self,
        kernels: &[Kernel],
        unnamed: &[(usize, usize)],
        mut left: Vec<&Record>,
        launch: impl Fn(&Kernel) -> Option<Started>,
    ) -> Result<(), CallFault> {
        left.retain(|record| {
            let call = record.call.as_ref();
            call.is_some_and(|call| call.group_size != Some(1))
        });
        left.sort_by_key(|record| (record.thread, record.start));
        let mut started: Vec<(Option<Started>, usize, usize)> = unnamed
            .iter()
            .map(|&(index, number)| (launch(&kernels[index]), index, number))
            .collect();
        started.sort_unstable();
        let mut next = 0;
        for (launch, index, number) in started {
            let missing = || {
                let kernel = &kernels[index];
                let name = kernel.name.as_deref().unwrap_or_default();
                CallFault {
                    message: format!(
                        "has the kernel `{}` at {} us, but no `Collective name` for it",
                        shown(name),
                        micros(kernel.start)
                    ),
                    fix: RECORD_AGAIN.into(),
                }
            };
            let launch = launch.ok_or_else(missing)?;
            // Records of other threads, and of this thread before, remain without a kernel.
            while left
                .get(next)
                .is_some_and(|record| record.thread < launch.0)
            {
                next += 1;
            }
            let first = next;
            while left
                .get(next)
                .is_some_and(|record| (record.thread, record.start) <= launch)
            {
                next += 1;
            }
            let calls = left[first..next]
                .iter()
                .filter_map(|record| record.call.as_deref());
            self.calls[number] = calls.cloned().collect();
            if self.calls[number].is_empty() {
                return Err(missing());
            }
        }
        Ok(())
    }
}

/// A time in microseconds, as profiles write it.
pub(super) fn micros(nanoseconds: i64) -> String {
    let sign = if nanoseconds < 0 { "-" } else { "" };
    let whole = nanoseconds.unsigned_abs();
    format!("{sign}{}.{:03}", whole / 1000, whole % 1000)
}
