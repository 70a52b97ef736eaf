//! Writes the page of the playground: `clearway-web-page MODULE.wasm FOLDER`. `cargo xtask web` calls it.

#![allow(clippy::print_stdout, reason = "a program for developers")]

#[cfg(not(target_family = "wasm"))]
fn main() -> std::process::ExitCode {
    use std::path::{Path, PathBuf};
    use std::process::ExitCode;

    fn write(module: &Path, folder: &Path) -> std::io::Result<PathBuf> {
        let page = clearway_web::page::page(&std::fs::read(module)?)?;
        std::fs::create_dir_all(folder)?;
        let file = folder.join(clearway_web::page::FILE_NAME);
        std::fs::write(&file, page.html)?;
        println!("module: {} bytes compressed", page.module);
        Ok(file)
    }

    let arguments: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let [module, folder] = &arguments[..] else {
        eprintln!("usage: clearway-web-page MODULE.wasm FOLDER");
        return ExitCode::from(2);
    };
    match write(module, folder) {
        Ok(file) => {
            println!("page: {}", file.display());
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{}: {error}", module.display());
            ExitCode::FAILURE
        }
    }
}

#[cfg(target_family = "wasm")]
fn main() {}
