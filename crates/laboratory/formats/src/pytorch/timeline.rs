//! The order in which a rank computes and communicates, from the times of its kernels.
//!
//! All computations of a rank form one *chain* in the order of time. Time counts as computation while the GPU computes, while it does
//! nothing at all, and while it only communicates but the processor has not yet started the next kernel and does not wait. Then the
//! processor works. The other time in which the GPU only communicates does not count: it is for the simulation to find out. The chain is
//! cut where a communication begins to depend on it, or it on a communication:
//!
//! * A communication waits for the kernels that the processor had started before it and that had ended when it began; after a gap in which
//!   the GPU did nothing, or computed nothing and the processor had yet to start the communication, it waits for the gap, too. It also
//!   waits for the one before it on its stream.
//! * A kernel waits for a communication that had ended when the kernel began and that the processor had started before it, if both are on
//!   the same stream, or if the processor let a stream wait in between (`cudaStreamWaitEvent`). Without such a call between the two, the
//!   kernel cannot depend on the communication. For communications on different streams the same rule holds.
//! * A gap in which the GPU does nothing waits for a communication at whose end it begins, if the processor was waiting at that time, or if
//!   the kernel after the gap waits for the communication and was started before its end.
//!
//! These rules keep every dependency that the times allow and the program has. Dependencies that the times merely allow are kept, too.

/// Work of the GPU other than communication.
#[derive(Debug, Clone, Copy)]
pub(super) struct Work {
    pub(super) start: i64,
    pub(super) end: i64,
    pub(super) stream: usize,
    /// Time at which the processor started it, where it is known.
    pub(super) launch: Option<i64>,
}

impl Work {
    /// A communication at the same time.
    pub(super) fn into_talk(self) -> Talk {
        let Self {
            start,
            end,
            stream,
            launch,
        } = self;
        Talk {
            start,
            end,
            stream,
            launch,
        }
    }
}

/// Communication of the GPU.
#[derive(Debug, Clone, Copy)]
pub(super) struct Talk {
    pub(super) start: i64,
    pub(super) end: i64,
    pub(super) stream: usize,
    pub(super) launch: Option<i64>,
}

/// Calls of the processor that show dependencies.
#[derive(Debug, Default)]
pub(super) struct Processor {
    /// True if the processor's calls are in the trace.
    pub(super) is_known: bool,
    /// Times of calls that let a stream, or everything, wait for something; in order.
    pub(super) waits: Vec<i64>,
    /// Begin and end of calls in which the processor waits.
    pub(super) syncs: Vec<(i64, i64)>,
}

/// Part of a trace that is replayed without interruption.
#[derive(Debug, Default)]
pub(super) struct Window {
    pub(super) from: i64,
    pub(super) to: i64,
    pub(super) works: Vec<Work>,
    /// Communications in the order of their begin.
    pub(super) talks: Vec<Talk>,
}

/// Item of a schedule.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Item {
    pub(super) kind: ItemKind,
    /// Items before it that are over when it begins.
    pub(super) after: Vec<usize>,
    /// Time in the trace.
    pub(super) at: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ItemKind {
    /// Computation of so many nanoseconds.
    Compute(u64),
    /// Communication, by its index in the window.
    Talk(usize),
}

/// The items of a window, in an order in which each comes after its dependencies. The last item is after all others.
pub(super) fn schedule(window: &Window, processor: &Processor) -> Vec<Item> {
    let links = Links::new(window, processor);
    let mut chain = Chain::new(window, processor, &links);
    for &(at, event) in &links.events {
        match event {
            Event::Cut => chain.cut(at),
            Event::Talk(talk) => chain.talk(talk),
        }
    }
    chain.finish()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// Cut of the chain.
    Cut,
    /// Begin of a communication.
    Talk(usize),
}

/// Dependencies between the chain and the communications of a window.
struct Links {
    /// Cuts and communications in the order of time; a cut comes before a communication of the same time.
    events: Vec<(i64, Event)>,
    /// For each communication the time up to which the chain comes before it.
    needs: Vec<i64>,
    /// For each communication the others that it waits for.
    others: Vec<Vec<usize>>,
    /// Communications for which the chain waits, by the time from which it does; in order.
    waited: Vec<(i64, usize)>,
    /// Communications for which the chain does not wait.
    unwaited: Vec<usize>,
}

impl Links {
    fn new(window: &Window, processor: &Processor) -> Self {
        let busy = union(window.works.iter().map(|work| (work.start, work.end)));
        let active = union(window.talks.iter().map(|talk| (talk.start, talk.end)));
        let streams = Streams::new(window);
        let evidence = Evidence(processor);
        let mut links = Self {
            events: Vec::new(),
            needs: Vec::new(),
            others: Vec::new(),
            waited: Vec::new(),
            unwaited: Vec::new(),
        };
        for (index, talk) in window.talks.iter().enumerate() {
            let is_gap = idle_since(&busy, talk.start, window.from).is_some_and(|since| {
                let is_late = talk.launch.is_some_and(|launch| launch > since);
                is_late || !is_within(&active, talk.start, Side::Before)
            });
            links.needs.push(match is_gap {
                true => talk.start,
                false => streams.computed_before(talk).max(window.from),
            });
            links
                .others
                .push(streams.talks_before(window, index, &evidence));
            let by_kernel = streams.first_after(talk, &evidence);
            let by_gap = gap_after(talk, window, [&busy, &active]).filter(|&next| {
                let is_latency = |work: &Work| {
                    work.start == next && work.launch.is_some_and(|launch| launch <= talk.end)
                };
                by_kernel.as_ref().is_some_and(is_latency) || evidence.is_waiting(talk)
            });
            let by_gap = by_gap.map(|_| talk.end);
            let by_kernel = by_kernel.map(|work| work.start);
            match by_gap.into_iter().chain(by_kernel).min() {
                Some(at) => links.waited.push((at, index)),
                None => links.unwaited.push(index),
            }
        }
        links.waited.sort_unstable();
        let cuts = links.needs.iter().copied();
        let cuts = cuts.chain(links.waited.iter().map(|(at, _)| *at));
        let mut events: Vec<(i64, Event)> = cuts.map(|at| (at, Event::Cut)).collect();
        let talks = window.talks.iter().enumerate();
        events.extend(talks.map(|(index, talk)| (talk.start, Event::Talk(index))));
        events.sort_unstable();
        events.dedup();
        links.events = events;
        links
    }
}

/// Whether the processor's calls allow a dependency.
struct Evidence<'a>(&'a Processor);

impl Evidence<'_> {
    /// True if something that the processor started at `later` may wait for something that it started at `earlier` on another stream.
    fn may_wait(&self, earlier: Option<i64>, later: Option<i64>) -> bool {
        let (Some(earlier), Some(later)) = (earlier, later) else {
            return true;
        };
        let waits = &self.0.waits;
        if earlier == later || waits.is_empty() {
            // Kernels of one graph start together.
            return earlier <= later;
        }
        let next = waits.partition_point(|&wait| wait <= earlier);
        earlier < later && waits.get(next).is_some_and(|&wait| wait < later)
    }

    /// True if the processor, having started `talk`, was waiting at its end; also if the processor's calls are not known.
    fn is_waiting(&self, talk: &Talk) -> bool {
        let Some(launch) = talk.launch.filter(|_| self.0.is_known) else {
            return true;
        };
        let during =
            |&(start, end): &(i64, i64)| launch <= start && start <= talk.end && talk.end <= end;
        let next = self
            .0
            .syncs
            .partition_point(|&(start, _)| start <= talk.end);
        // Calls of one thread do not overlap, and few threads wait.
        const NEAR: usize = 8;
        self.0.syncs[next.saturating_sub(NEAR)..next]
            .iter()
            .any(during)
    }
}

/// Work and communication by stream, each stream in the order of its begin.
struct Streams {
    works: Vec<Vec<Work>>,
    /// Indices of communications.
    talks: Vec<Vec<usize>>,
}

impl Streams {
    fn new(window: &Window) -> Self {
        let works = window.works.iter().map(|work| work.stream);
        let talks = window.talks.iter().map(|talk| talk.stream);
        let count = works.chain(talks).max().map_or(0, |last| last + 1);
        let mut streams = Self {
            works: vec![Vec::new(); count],
            talks: vec![Vec::new(); count],
        };
        for work in &window.works {
            streams.works[work.stream].push(*work);
        }
        for works in &mut streams.works {
            works.sort_by_key(|work| (work.start, work.end));
            // A stream works in the order in which the processor starts its work; ends may overlap by a little.
            let (mut launch, mut end) = (None, i64::MIN);
            for work in works {
                launch = launch.max(work.launch);
                end = end.max(work.end);
                (work.launch, work.end) = (launch, end);
            }
        }
        for (index, talk) in window.talks.iter().enumerate() {
            streams.talks[talk.stream].push(index);
        }
        streams
    }

    /// End of the last work that was started before `talk` and had ended when it began; the least time if there is none.
    fn computed_before(&self, talk: &Talk) -> i64 {
        let before = |work: &Work| {
            work.end <= talk.start && (talk.launch.is_none() || work.launch <= talk.launch)
        };
        let last = self.works.iter().filter_map(|works| {
            let count = works.partition_point(before);
            Some(works[count.checked_sub(1)?].end)
        });
        last.max().unwrap_or(i64::MIN)
    }

    /// The first work that may wait for `talk`.
    fn first_after(&self, talk: &Talk, evidence: &Evidence<'_>) -> Option<Work> {
        let streams = self.works.iter().enumerate();
        let first = streams.filter_map(|(stream, works)| {
            let after = |work: &Work| {
                work.start >= talk.end
                    && match stream == talk.stream {
                        true => true,
                        false => evidence.may_wait(talk.launch, work.launch),
                    }
            };
            let next = works.partition_point(|work| !after(work));
            works.get(next).copied()
        });
        first.min_by_key(|work| work.start)
    }

    /// Communications that the one with this index waits for: of each stream the last one.
    fn talks_before(&self, window: &Window, index: usize, evidence: &Evidence<'_>) -> Vec<usize> {
        let talk = &window.talks[index];
        let streams = self.talks.iter().enumerate();
        let before = streams.filter_map(|(stream, talks)| {
            let count = talks.partition_point(|&other| {
                let earlier = &window.talks[other];
                other < index
                    && match stream == talk.stream {
                        true => true,
                        false => {
                            earlier.end <= talk.start
                                && evidence.may_wait(earlier.launch, talk.launch)
                        }
                    }
            });
            Some(talks[count.checked_sub(1)?])
        });
        before.collect()
    }
}

/// Construction of a schedule.
struct Chain<'a> {
    window: &'a Window,
    links: &'a Links,
    dropped: Dropped,
    items: Vec<Item>,
    /// Item of each communication.
    talks: Vec<usize>,
    /// Last item of the chain, and the time up to which the chain is complete.
    last: Option<usize>,
    since: i64,
    /// Number of entries of `Links::waited` that the chain waits for or will wait for with its next item.
    waited: usize,
    /// Communications that the next item of the chain waits for.
    pending: Vec<usize>,
    /// Last item of the chain at each cut, by time.
    cuts: Vec<(i64, Option<usize>)>,
}

impl<'a> Chain<'a> {
    fn new(window: &'a Window, processor: &Processor, links: &'a Links) -> Self {
        Self {
            window,
            links,
            dropped: Dropped::new(window, processor),
            items: Vec::new(),
            talks: Vec::with_capacity(window.talks.len()),
            last: None,
            since: window.from,
            waited: 0,
            pending: Vec::new(),
            cuts: Vec::new(),
        }
    }

    fn cut(&mut self, at: i64) {
        self.extend(at);
        self.cuts.push((at, self.last));
        let waited = &self.links.waited[self.waited..];
        let now = waited.iter().take_while(|&&(time, _)| time <= at);
        // A communication that begins at this moment ends at this moment, too, and is not yet an item.
        self.pending.extend(now.map(|&(_, talk)| talk));
        self.waited += waited.partition_point(|&(time, _)| time <= at);
    }

    /// Adds the computation up to the time `at`.
    fn extend(&mut self, at: i64) {
        let at = at.max(self.since);
        let span = (at - self.since) as u64 - self.dropped.between(self.since, at);
        if span > 0 || !self.pending.is_empty() {
            let talks = &self.talks;
            let waits = self.pending.drain(..).map(|talk| talks[talk]);
            let after: Vec<usize> = self.last.into_iter().chain(waits).collect();
            self.last = Some(self.items.len());
            self.items.push(Item {
                kind: ItemKind::Compute(span),
                after,
                at: self.since,
            });
        }
        self.since = at;
    }

    fn talk(&mut self, talk: usize) {
        let need = self.links.needs[talk];
        let place = self.cuts.binary_search_by_key(&need, |(at, _)| *at);
        let before = place.ok().and_then(|place| self.cuts[place].1);
        let others = self.links.others[talk]
            .iter()
            .map(|&other| self.talks[other]);
        let item = Item {
            kind: ItemKind::Talk(talk),
            after: before.into_iter().chain(others).collect(),
            at: self.window.talks[talk].start,
        };
        self.talks.push(self.items.len());
        self.items.push(item);
    }

    fn finish(mut self) -> Vec<Item> {
        self.extend(self.window.to);
        let talks = self.links.unwaited.iter().chain(&self.pending);
        let talks = talks.map(|&talk| self.talks[talk]);
        let after: Vec<usize> = self.last.into_iter().chain(talks).collect();
        self.items.push(Item {
            kind: ItemKind::Compute(0),
            after,
            at: self.window.to,
        });
        self.items
    }
}

/// Time in which the GPU only communicates, and the processor does not work.
struct Dropped {
    /// Begin and end, and the time dropped before; in order.
    intervals: Vec<(i64, i64, u64)>,
}

impl Dropped {
    fn new(window: &Window, processor: &Processor) -> Self {
        let works = window.works.iter().map(|work| (work.start, work.end));
        let busy = union(works.chain(processor_works(window, processor)));
        let active = union(window.talks.iter().map(|talk| (talk.start, talk.end)));
        let mut intervals = Vec::new();
        let mut sum = 0;
        let mut add = |start: i64, end: i64| {
            if start < end {
                intervals.push((start, end, sum));
                sum += (end - start) as u64;
            }
        };
        let mut next = 0;
        for (start, end) in active {
            let mut from = start;
            while busy.get(next).is_some_and(|&(_, end)| end <= start) {
                next += 1;
            }
            for &(busy_start, busy_end) in busy[next..].iter().take_while(|(start, _)| *start < end)
            {
                add(from, busy_start);
                from = from.max(busy_end);
            }
            add(from, end);
        }
        Self { intervals }
    }

    fn before(&self, at: i64) -> u64 {
        let count = self.intervals.partition_point(|&(start, _, _)| start < at);
        match count.checked_sub(1) {
            None => 0,
            Some(last) => {
                let (start, end, before) = self.intervals[last];
                before + (at.min(end) - start) as u64
            }
        }
    }

    fn between(&self, from: i64, to: i64) -> u64 {
        self.before(to) - self.before(from)
    }
}

/// Times in which the GPU computes nothing and the processor works: until it starts the next kernel, without the calls in which it waits.
fn processor_works(window: &Window, processor: &Processor) -> Vec<(i64, i64)> {
    let mut works: Vec<&Work> = window.works.iter().collect();
    works.sort_unstable_by_key(|work| work.start);
    let syncs = union(processor.syncs.iter().copied());
    let mut times = Vec::new();
    let mut idle_from = window.from;
    for work in works {
        if idle_from < work.start
            && let Some(launch) = work.launch
        {
            let mut from = idle_from;
            let to = launch.min(work.start);
            let next = syncs.partition_point(|&(_, end)| end <= from);
            for &(start, end) in syncs[next..].iter().take_while(|(start, _)| *start < to) {
                times.push((from, start));
                from = from.max(end);
            }
            times.push((from, to));
        }
        idle_from = idle_from.max(work.end);
    }
    times.retain(|(from, to)| from < to);
    times
}

/// Time since which none of `intervals` covers the moment before `at`, at the earliest `from`; `None` if one covers it.
fn idle_since(intervals: &[(i64, i64)], at: i64, from: i64) -> Option<i64> {
    let count = intervals.partition_point(|&(start, _)| start < at);
    let since = count.checked_sub(1).map_or(from, |last| intervals[last].1);
    (since < at).then_some(since)
}

/// Union of intervals: disjoint ones that do not touch, in order.
fn union(intervals: impl Iterator<Item = (i64, i64)>) -> Vec<(i64, i64)> {
    let mut sorted: Vec<(i64, i64)> = intervals.filter(|(start, end)| start < end).collect();
    sorted.sort_unstable();
    let mut union: Vec<(i64, i64)> = Vec::new();
    for (start, end) in sorted {
        match union.last_mut() {
            Some(last) if start <= last.1 => last.1 = last.1.max(end),
            _ => union.push((start, end)),
        }
    }
    union
}

/// End of the gap that begins where `talk` ends, if the GPU does nothing after it; `busy` and `active` are [`union`]s.
fn gap_after(talk: &Talk, window: &Window, [busy, active]: [&[(i64, i64)]; 2]) -> Option<i64> {
    let is_gap =
        !is_within(busy, talk.end, Side::After) && !is_within(active, talk.end, Side::After);
    let next = |intervals: &[(i64, i64)]| {
        let next = intervals.partition_point(|&(start, _)| start <= talk.end);
        intervals.get(next).map_or(window.to, |&(start, _)| start)
    };
    let end = next(busy).min(next(active)).min(window.to);
    (is_gap && talk.end < end).then_some(end)
}

/// The moment just before or after a time.
#[derive(Clone, Copy)]
enum Side {
    Before,
    After,
}

/// True if the moment beside `at` is in one of `intervals`, which are a [`union`].
fn is_within(intervals: &[(i64, i64)], at: i64, side: Side) -> bool {
    let count = intervals.partition_point(|&(start, _)| match side {
        Side::Before => start < at,
        Side::After => start <= at,
    });
    count.checked_sub(1).is_some_and(|last| match side {
        Side::Before => at <= intervals[last].1,
        Side::After => at < intervals[last].1,
    })
}
