//! Flows written out one by one.

use super::{BuildContext, LoadedWorkload, WorkloadDefinition};
use clearway_formats::{shown, whole_number};
use clearway_units::{Bytes, HostId, Time, parameters};
use clearway_workload::{FlowSpec, Start, Workload, WorkloadError};

const FORM: &str = "write it as `0->13 2MB at 5us`, where `at 5us` may be left out";

parameters! {
    /// Flows written out one by one, each as a text: source, arrow, destination, size, and optionally `at` and the start.
    ///
    /// ```text
    /// flow = SRC "->" DST SIZE [ "at" TIME ]
    /// ```
    /// `SRC` and `DST` are host numbers, `SIZE` is a size such as `2MB`, `TIME` an instant such as `5us` (0s if left out). Blanks
    /// may stand round the arrow and within sizes and times. The flows are numbered from 1.
    pub struct ListSettings {
        /// The flows, such as `["0->13 2MB at 5us", "1->12 64KiB"]`.
        pub flows: Vec<String> = Vec::new(), "flows", "none: the list must be given";
    }
}

impl WorkloadDefinition for ListSettings {
    const NAME: &'static str = "flows";
    const SUMMARY: &'static str = "flows written out one by one";

    fn load(&self, _: &BuildContext<'_>) -> Result<LoadedWorkload, WorkloadError> {
        if self.flows.is_empty() {
            let fix = "write them as in `flows = [\"0->13 2MB at 5us\"]`";
            return Err(Self::fault("flows", "the list is empty", fix));
        }
        let flow = |(label, text): (u64, &String)| {
            flow(label, text).map_err(|(what, fix)| {
                let message = format!("item {label}, \"{}\": {what}", shown(text));
                Self::fault("flows", message, fix)
            })
        };
        let workload = Workload {
            flows: (1..).zip(&self.flows).map(flow).collect::<Result<_, _>>()?,
            triggers: Vec::new(),
        };
        Ok(workload.into())
    }
}

impl ListSettings {
    /// The list of these flows, which begin by the clock. Their labels become their places in the list.
    ///
    /// # Panics
    /// If one waits for something else.
    pub fn of<'a>(flows: impl IntoIterator<Item = &'a FlowSpec>) -> Self {
        let item = |flow: &FlowSpec| {
            let Start::At(start) = flow.start else {
                panic!("flow {} does not begin by the clock", flow.label);
            };
            let (src, dst, bytes) = (flow.src.0, flow.dst.0, flow.bytes.as_u64());
            format!("{src}->{dst} {bytes}B at {}ps", start.as_ps())
        };
        Self {
            flows: flows.into_iter().map(item).collect(),
        }
    }
}

/// Description of a fault of an item, and suggested fix.
type ItemFault = (String, String);

/// The flow of one item.
fn flow(label: u64, text: &str) -> Result<FlowSpec, ItemFault> {
    let fault = |what: String| (what, FORM.to_owned());
    let (src, rest) = text
        .split_once("->")
        .ok_or_else(|| fault("there is no arrow `->`".into()))?;
    let rest = rest.trim_start();
    let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
    let (dst, rest) = rest.split_at(end);
    let (size, at) = match rest.split_once(" at ") {
        Some((size, at)) => (size, at),
        None => (rest, "0s"),
    };
    let host = |text: &str| {
        let number = whole_number(text.trim()).and_then(|number| u32::try_from(number).ok());
        number
            .map(HostId)
            .ok_or_else(|| fault(format!("`{}` is no host number", shown(text.trim()))))
    };
    if size.trim().is_empty() {
        return Err(fault("there is no size".into()));
    }
    let (src, dst) = (host(src)?, host(dst)?);
    let bytes: Bytes = size.parse().map_err(|error| {
        let what = format!("`{}` is no size: {error}", shown(size.trim()));
        fault(what)
    })?;
    let start: Time = at.parse().map_err(|error| {
        let what = format!("`{}` is no start: {error}", shown(at.trim()));
        fault(what)
    })?;
    Ok(FlowSpec::timed(label, src, dst, bytes, start))
}
