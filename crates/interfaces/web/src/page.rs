//! The page of the playground: one HTML file with the module, its worker, style and scripts. It loads nothing from anywhere, so it works
//! from a file and from any server of static files.
//!
//! Its security policy allows its own script, the scripts of reports, WebAssembly and a worker. Reports are in a frame that is isolated
//! from the page. The scenario of a link is text in the editor until somebody runs it.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use clearway_report_html::{HtmlFile, PAGE_STYLE, report_sources};
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::json;
use std::io::{self, Write};

/// Name of the page in its folder.
pub const FILE_NAME: &str = "index.html";

const BODY: &str = include_str!("../page/page.html");
const STYLE: &str = include_str!("../page/page.css");
const WORKER: &str = include_str!("../page/worker.js");
const SCRIPT: &str = include_str!("../page/page.js");

/// A page, and the size of its module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlaygroundPage {
    /// The page.
    pub html: String,
    /// Length of the compressed module in bytes.
    pub module: usize,
}

/// The page with a module of WebAssembly. The same module gives the same bytes.
///
/// # Errors
/// None in practice: the module is compressed in memory.
pub fn page(module: &[u8]) -> io::Result<PlaygroundPage> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(module)?;
    let compressed = encoder.finish()?;
    let data = json!({
        // Of the script of all pages.
        "plots": { "lists": [], "plots": [] },
        "heat": null,
        "map": null,
        "worker": WORKER,
        "module": BASE64_STANDARD.encode(&compressed),
    });
    let (style, script) = report_sources();
    let file = HtmlFile {
        title: "Clearway playground",
        body: BODY,
        // No text of it can end the script.
        data: &data.to_string().replace('<', "\\u003c"),
        style: &[PAGE_STYLE, STYLE].concat(),
        script: &[clearway_report_html::PAGE_SCRIPTS, SCRIPT].concat(),
        further: [&style, &format!("{script} 'wasm-unsafe-eval'")],
        sources: "; worker-src blob:; frame-src 'self'",
    };
    Ok(PlaygroundPage {
        html: file.html(),
        module: compressed.len(),
    })
}
