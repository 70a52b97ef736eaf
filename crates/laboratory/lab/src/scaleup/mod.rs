//! Assembly and runs of scenarios of scale-up fabrics.

mod assembly;
mod run;

pub use assembly::{ScaleupAssembly, ScaleupLink};
pub use clearway_scaleup::FLIT_BYTES;
pub use run::{ScaleupFinished, ScaleupRunOptions};
