//! Tests of scale-up fabrics: closed forms, conservation, and the oracle, a second simulator. One program, so that they are linked once.

mod fabric;
mod oracle;
