//! Assembling and running scenarios of scale-up fabrics.

mod assembly;
mod run;

pub use assembly::{FLIT_BYTES, ScaleupAssembly, ScaleupLink};
pub use run::{ScaleupFinished, ScaleupRunOptions};
