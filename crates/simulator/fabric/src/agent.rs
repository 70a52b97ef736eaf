//! Agents of links: the part of s-PERC and 1RC at the egress port of a switch.
//!
//! An agent sees each packet when it arrives for its port, before it is queued, in the order of these arrivals. It rewrites the control
//! packets on their way to receivers, and drops speculative data that its link does not let through.
//! [`clearway_transport::congestion::perc`] has the algorithms.
//!
//! It has no timers: changes between two packets follow from their times. If no transport asks for agents, ports are compiled without them.

use clearway_transport::Header;
use clearway_transport::congestion::perc::{Attachment, LinkAgent};
use clearway_transport::congestion::telemetry::{IntPacket, Telemetry};
use clearway_units::{Rate, Time};

/// The agent of a link.
#[derive(Debug, Clone)]
pub struct Agent(LinkAgent);

impl Agent {
    /// An agent that runs the algorithms of `link`.
    pub fn new(link: LinkAgent) -> Self {
        Self(link)
    }

    /// Sets the rate that the link has now.
    #[inline]
    pub fn set_rate(&mut self, rate: Rate) {
        self.0.set_rate(rate);
    }

    /// Looks at a packet that arrives for the link; may rewrite it. False if it is to be dropped.
    pub fn on_arrival<T: Telemetry>(&mut self, now: Time, packet: &mut IntPacket<T>) -> bool {
        let header = &mut packet.packet.header;
        match (&*header, packet.telemetry.attachment_mut()) {
            (
                Header::RateControl {
                    reflected: false, ..
                },
                Some(Attachment::Control(record)),
            ) => {
                self.0.on_control(now, record);
                *header = record.header(false);
                true
            }
            // Acknowledgements echo the attachment of the data.
            (Header::Data { .. }, Some(Attachment::Speculative(speculative))) => {
                self.0.admits(speculative)
            }
            _ => true,
        }
    }

    /// Speculative packets, and flows, whose epoch had no window.
    pub fn late_epochs(&self) -> u64 {
        self.0.late_epochs()
    }
}
