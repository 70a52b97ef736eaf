//! The notification point of DCQCN (DCQCN §3.1): a marked packet is answered with a CNP, at most one per flow and window of time.
//!
//! A marked packet outside a window is answered at once and opens a window. If a packet that comes within the window is marked, a CNP is
//! sent when it ends, which opens the next. Published simulators of DCQCN for htsim do the same.
//!
//! `cnp-schedule = "periodic"` is the notification point of the ns-3 simulator that DCQCN's authors published in 2016: windows follow each
//! other from the first packet of the flow on, marked or not, and a CNP is sent only where a window with a marked packet ends. A mark is
//! answered half a window later on average, and more marks share one CNP.
//!
//! # Decisions
//! * `cnp-window-end = false` forgets marks inside a window, as a NIC does that only keeps a minimum time between CNPs: then the next
//!   marked packet after the window is answered.
//! * A CNP at the end of a window is sent even if the message is complete by then: a notification point knows packets, not messages.

use super::{CongestionFeedback, DataArrival, FeedbackDefinition, Notify};
use crate::congestion::NetworkFacts;
use clearway_units::{Span, Time, choices};

choices! {
    /// Instants at which a notification point may send.
    pub enum CnpSchedule {
        /// A mark outside a window, and the end of a window with marks.
        OnMark = "on-mark",
        /// Ends of windows that follow each other from the flow's first packet on.
        Periodic = "periodic",
    }
}

clearway_units::parameters! {
    /// Settings of [`IntervalFeedback`].
    pub struct IntervalParameters {
        /// Minimum time between two notifications of a flow, or of a queue pair if the flow has several.
        pub interval: Span = Span::from_us(50), "cnp-interval", "DCQCN §3.1: N = 50 us";
        /// A mark within `cnp-interval` of a notification is answered at the end of that time; otherwise it is forgotten.
        pub window_end: bool = true, "cnp-window-end", "DCQCN §3.1";
        /// Times of notifications. "on-mark": at once for a mark outside a window. "periodic": only at the ends of consecutive windows that
        /// begin with the flow's first packet, regardless of `cnp-window-end`.
        pub schedule: CnpSchedule = CnpSchedule::OnMark, "cnp-schedule", "DCQCN §3.1; its authors' ns-3 simulator of 2016: periodic";
    }
}

/// Notifies of a marked packet: at once, or at the end of the window that the last notification has opened.
#[derive(Debug, Clone, Copy)]
pub struct IntervalFeedback {
    interval: Span,
    window_end: bool,
    is_periodic: bool,
    /// Instant of the last notification, which opened a window; with the periodic schedule, of the flow's first packet.
    last: Option<Time>,
    /// True if a marked packet has come since.
    marked: bool,
}

impl IntervalFeedback {
    fn notify(&mut self, now: Time) -> Notify {
        self.last = Some(now);
        self.marked = false;
        Notify::Now
    }

    /// A packet under the periodic schedule: a mark is answered at the end of the window that it falls into.
    #[cold]
    fn on_data_periodic(&mut self, arrival: &DataArrival) -> Notify {
        let first = *self.last.get_or_insert(arrival.now);
        if !arrival.marked || self.marked {
            return Notify::No;
        }
        self.marked = true;
        let window = self.interval.as_ps().max(1);
        let into = arrival.now.since(first).as_ps() % window;
        Notify::At(arrival.now.saturating_add(Span::from_ps(window - into)))
    }
}

impl FeedbackDefinition for IntervalFeedback {
    const NAME: &'static str = "interval";
    const SUMMARY: &'static str =
        "DCQCN: a notification for a marked packet, at most one per flow and interval";
    type Parameters = IntervalParameters;

    fn new(parameters: &IntervalParameters, _: &NetworkFacts) -> Self {
        Self {
            interval: parameters.interval,
            window_end: parameters.window_end,
            is_periodic: parameters.schedule == CnpSchedule::Periodic,
            last: None,
            marked: false,
        }
    }
}

impl CongestionFeedback for IntervalFeedback {
    type Shared = ();

    #[inline]
    fn on_data(&mut self, (): &mut (), arrival: &DataArrival) -> Notify {
        if self.is_periodic {
            return self.on_data_periodic(arrival);
        }
        if !arrival.marked {
            return Notify::No;
        }
        match self.last.map(|last| last.saturating_add(self.interval)) {
            Some(end) if arrival.now < end => {
                let first = self.window_end && !self.marked;
                self.marked = true;
                if first { Notify::At(end) } else { Notify::No }
            }
            _ => self.notify(arrival.now),
        }
    }

    fn on_deadline(&mut self, (): &mut (), now: Time) -> Notify {
        if self.marked && self.is_periodic {
            self.marked = false;
            Notify::Now
        } else if self.marked {
            self.notify(now)
        } else {
            Notify::No
        }
    }
}
