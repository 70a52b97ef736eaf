//! One host sends to another, one message after the other.

use super::{BuildContext, LoadedWorkload, WorkloadDefinition, chosen_host, some_bytes};
use clearway_units::{Bytes, HostId, Time, parameters};
use clearway_workload::{
    FlowSpec, Start, TriggerIndex, TriggerKind, TriggerSpec, Workload, WorkloadError,
};

/// Maximum number of messages. Each is a flow and takes memory.
const MOST_MESSAGES: u32 = 1_000_000;

parameters! {
    /// One host sends to another. Each message starts at the instant when the previous one is fully acknowledged.
    pub struct OneToOneSettings {
        /// Sending host.
        pub from: u32 = 0, "from", "the first host";
        /// Receiving host; "auto": the last one.
        pub to: Option<u32> = None, "to", "the longest way in a tree";
        /// Payload of each message.
        pub message: Bytes = Bytes::new(2_000_000), "message", "as in a permutation";
        /// Start of the first message.
        pub start: Time = Time::ZERO, "start", "the start of the run";
        /// Number of messages, from 1 to 1000000.
        pub count: u32 = 1, "count", "a single message shows the unloaded time";
    }
}

impl WorkloadDefinition for OneToOneSettings {
    const NAME: &'static str = "one-to-one";
    const SUMMARY: &'static str = "one host sends to another, one message after the other";

    fn load(&self, context: &BuildContext<'_>) -> Result<LoadedWorkload, WorkloadError> {
        let last = context.hosts.saturating_sub(1);
        let from = chosen_host::<Self>("from", Some(self.from), 0, context)?;
        let to = chosen_host::<Self>("to", self.to, last, context)?;
        if from == to {
            let message = format!("host {to} is the sender too");
            return Err(Self::fault("to", message, "choose another receiver"));
        }
        if !(1..=MOST_MESSAGES).contains(&self.count) {
            let message = format!("{} messages", self.count);
            let fix = format!("write a number from 1 to {MOST_MESSAGES}");
            return Err(Self::fault("count", message, fix));
        }
        let bytes = some_bytes::<Self>(self.message)?;
        let first = FlowSpec::timed(1, HostId(from), HostId(to), bytes, self.start);
        Ok(chain(&first, self.count).into())
    }
}

/// `count` flows like `first`, each started by a oneshot trigger of the previous flow.
fn chain(first: &FlowSpec, count: u32) -> Workload {
    let flow = |index: u32| FlowSpec {
        label: u64::from(index) + 1,
        start: match index {
            0 => first.start,
            _ => Start::On(TriggerIndex(index - 1)),
        },
        on_sent: (index + 1 < count).then_some(TriggerIndex(index)),
        ..first.clone()
    };
    let trigger = |index: u32| TriggerSpec {
        label: u64::from(index) + 1,
        kind: TriggerKind::Oneshot,
    };
    Workload {
        flows: (0..count).map(flow).collect(),
        triggers: (0..count - 1).map(trigger).collect(),
    }
}
