//! `cargo xtask web`: the playground and, if mdbook is installed, the book, as a folder for any server of static files.
//!
//! `target/site/playground/index.html` is the page, and `target/site/index.html` the book, whose scenarios have a button that opens them in
//! the playground. Links within the book are checked.

mod links;

use crate::{Faults, output};
use std::path::Path;
use std::process::Command;

/// Target of the module.
const TARGET: &str = "wasm32-unknown-unknown";
/// Maximum length of the compressed module, in bytes.
const MOST: u64 = 2_000_000;

pub(crate) fn write(root: &Path) -> Faults {
    match build(root) {
        Ok(faults) => faults,
        Err(fault) => vec![fault],
    }
}

/// Builds all; the faults are those of links.
fn build(root: &Path) -> Result<Faults, String> {
    let target = target_folder(root)?;
    let module = module(root, &target)?;
    let site = target.join("site");
    // First, because mdbook clears its folder.
    let has_book = book(root, &site)?;
    let mut page = cargo(root);
    page.args(["run", "--quiet", "--package", "clearway-web", "--bin"])
        .arg("clearway-web-page")
        .arg(module)
        .arg(site.join("playground"));
    let said = output(&mut page)?;
    print!("{said}");
    let length = said
        .split_whitespace()
        .find_map(|word| word.parse::<u64>().ok());
    match length {
        Some(length) if length <= MOST => Ok(match has_book {
            true => links::check(&site),
            false => Faults::new(),
        }),
        Some(length) => Err(format!(
            "the module of the playground has {length} bytes compressed, more than {MOST}"
        )),
        None => Err(format!("clearway-web-page does not say a length: {said}")),
    }
}

fn cargo(root: &Path) -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(root);
    cargo
}

/// The folder in which cargo builds.
fn target_folder(root: &Path) -> Result<std::path::PathBuf, String> {
    let mut metadata = cargo(root);
    metadata.args(["metadata", "--no-deps", "--format-version", "1"]);
    let text = output(&mut metadata)?;
    let (_, rest) = text
        .split_once("\"target_directory\":\"")
        .ok_or("cargo metadata names no target folder")?;
    let (folder, _) = rest
        .split_once('"')
        .ok_or("cargo metadata names no target folder")?;
    Ok(folder.into())
}

/// Builds the module.
fn module(root: &Path, target: &Path) -> Result<std::path::PathBuf, String> {
    let mut build = cargo(root);
    build.args(["build", "--quiet", "--profile", "web", "--lib"]);
    build.args(["--package", "clearway-web", "--target", TARGET]);
    let status = build.status();
    let status = status.map_err(|error| format!("cargo cannot be started: {error}"))?;
    if !status.success() {
        return Err(format!(
            "the module was not built\n  fix: `rustup target add {TARGET}` installs what its target needs"
        ));
    }
    Ok(target.join(TARGET).join("web").join("clearway_web.wasm"))
}

/// Builds the book, if mdbook is installed; false if it is not.
fn book(root: &Path, site: &Path) -> Result<bool, String> {
    if Command::new("mdbook").arg("--version").output().is_err() {
        println!("no book: mdbook is not installed (`cargo install mdbook`)");
        return Ok(false);
    }
    let mut mdbook = Command::new("mdbook");
    mdbook.arg("build").arg(root.join("docs"));
    mdbook.arg("--dest-dir").arg(site);
    output(&mut mdbook)?;
    println!("book: {}", site.join("index.html").display());
    Ok(true)
}
