//! `trace.pcapng`: the frames that `[observe] trace.pcap` selects.

use crate::record::REVISION;
use clearway_lab::record::{Capture, CapturePlan};
use clearway_lab::units::Time;
use clearway_lab::{Assembly, Finished, Scenario};
use clearway_report::{CapturedLink, PcapngWriter, ResultFolder, pcapng};
use std::io::{self, Write};

/// Adds the capture to the results.
pub(crate) fn write(
    folder: &mut ResultFolder,
    scenario: &Scenario,
    assembly: &Assembly,
    capture: &Capture,
    finished: &Finished,
) {
    let Some(plan) = &assembly.capture else {
        return;
    };
    let general = &scenario.general;
    let (name, hash, seed) = (&general.name, scenario.hash(), general.seed);
    let comment = format!("scenario {name} ({hash}), seed {seed}");
    let end = finished.simulated;
    folder.add(pcapng::FILE_NAME, |file| {
        write_frames(file, &comment, plan, assembly, capture, end)
    });
}

fn write_frames(
    file: impl Write,
    comment: &str,
    plan: &CapturePlan,
    assembly: &Assembly,
    capture: &Capture,
    end: Time,
) -> io::Result<()> {
    let application = format!("Clearway {} ({REVISION})", env!("CARGO_PKG_VERSION"));
    let mut writer = PcapngWriter::new(file, &application, comment)?;
    let mut interfaces = Vec::new();
    for place in &plan.places {
        interfaces.push(writer.interface(&CapturedLink {
            name: place.name.clone(),
            rate: place.rate,
            snap: plan.snap as u32,
        })?);
    }
    let mut bytes = Vec::new();
    for frame in &capture.frames {
        let length = assembly.frame(frame, &mut bytes);
        writer.frame(interfaces[frame.place], frame.time, length as u32, &bytes)?;
    }
    for (&interface, (seen, left_out)) in interfaces.iter().zip(capture.counts()) {
        writer.statistics(interface, end, seen, left_out)?;
    }
    writer.finish()?;
    Ok(())
}

/// Warning about frames beyond the limit, if there are any.
pub fn warning(capture: &Capture) -> Option<String> {
    let left_out: u64 = capture.counts().iter().map(|(_, left_out)| left_out).sum();
    let (file, kept) = (pcapng::FILE_NAME, capture.frames.len());
    (left_out > 0).then(|| {
        format!(
            "{file} has the first {kept} frames and lacks {left_out} later ones; raise `observe.trace.pcap-frames` or capture fewer links"
        )
    })
}
