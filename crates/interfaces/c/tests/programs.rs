//! Programs in C and C++ that use the library: they are compiled with all warnings, run, and compared with runs of the scenarios that they
//! leave.

use clearway_lab::Laboratory;
use clearway_testing::{Folder, cases, skip};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Language of a program.
#[derive(Clone, Copy)]
enum Language {
    C,
    Cpp,
}

/// How a program gets the library.
#[derive(Clone, Copy)]
enum Linkage {
    Dynamic,
    Static,
}

/// Compiles a program of this crate, and returns its path. `None` without a compiler.
fn compile(
    source: &str,
    (language, linkage): (Language, Linkage),
    folder: &Path,
) -> Option<PathBuf> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (compiler, standard) = match language {
        Language::C => ("cc", "-std=gnu11"),
        Language::Cpp => ("c++", "-std=c++17"),
    };
    // Cargo puts the libraries beside the tests.
    let tests = std::env::current_exe().unwrap();
    let libraries = tests.parent().unwrap();
    let program = folder.join("program");
    let mut command = Command::new(compiler);
    if source.ends_with("network_test.cpp") {
        command.arg(here.join("../../../integrations/astra-sim/src/network.cc"));
    }
    command
        .args([standard, "-Wall", "-Wextra", "-pedantic", "-Werror", "-I"])
        .arg(here.join("include"))
        .arg(here.join(source));
    match linkage {
        Linkage::Dynamic => {
            command.arg("-L").arg(libraries);
            command.args([
                "-lclearway_c",
                &format!("-Wl,-rpath,{}", libraries.display()),
            ]);
        }
        Linkage::Static => {
            command.arg(libraries.join("libclearway_c.a"));
            command.args(["-lpthread", "-ldl", "-lm"]);
        }
    }
    let compiled = command.arg("-o").arg(&program).output();
    let Ok(compiled) = compiled else {
        skip(
            "compilers",
            &format!("there is no {compiler}: {source} was not compiled"),
        );
        return None;
    };
    let errors = String::from_utf8_lossy(&compiled.stderr);
    assert!(compiled.status.success(), "{source}: {errors}");
    Some(program)
}

/// Runs a program with the library that it was linked with. Cargo sets a path of libraries that may hold an older one, from
/// `cargo build`.
fn run(program: &Path) -> Command {
    let mut command = Command::new(program);
    command
        .env_remove("LD_LIBRARY_PATH")
        .env_remove("DYLD_FALLBACK_LIBRARY_PATH");
    command
}

/// Runs a program with the name of a result folder, and returns what it printed.
fn output(program: &Path, results: &Path) -> String {
    let ran = run(program).arg(results).output().unwrap();
    let errors = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{}: {errors}", ran.status);
    String::from_utf8(ran.stdout).unwrap()
}

/// Digest in `summary.json` of a result folder.
fn digest_of(results: &Path) -> String {
    let summary = std::fs::read_to_string(results.join("summary.json")).unwrap();
    let (_, digest) = summary.split_once("\"digest\": \"").unwrap();
    digest[..16].to_owned()
}

/// Digest of a run of the scenario in a result folder.
fn digest_again(results: &Path) -> String {
    let path = results.join("scenario.toml");
    let laboratory = Laboratory::new();
    let scenario = laboratory.load(path.to_str().unwrap(), &[]).unwrap();
    laboratory.run(&scenario).unwrap().digest.to_string()
}

#[test]
fn misuse_is_refused() {
    for linkage in [Linkage::Dynamic, Linkage::Static] {
        let folder = Folder::new("c-misuse");
        let path = folder.path();
        let Some(program) = compile("tests/programs/misuse.c", (Language::C, linkage), path) else {
            return;
        };
        assert_eq!(output(&program, path), "refused as documented\n");
    }
}

#[test]
fn random_calls_are_answered() {
    let folder = Folder::new("c-random");
    let way = (Language::C, Linkage::Dynamic);
    let Some(program) = compile("tests/programs/random.c", way, folder.path()) else {
        return;
    };
    for seed in 1..=cases(4, 100) {
        let ran = run(&program).arg(seed.to_string()).output();
        let ran = ran.unwrap();
        let errors = String::from_utf8_lossy(&ran.stderr);
        assert!(
            ran.status.success(),
            "seed {seed}: {}: {errors}",
            ran.status
        );
        let printed = String::from_utf8(ran.stdout).unwrap();
        let numbers = printed.split(|byte: char| !byte.is_ascii_digit());
        let numbers: Vec<u64> = numbers.filter_map(|word| word.parse().ok()).collect();
        let [calls, refused, callbacks] = numbers[..] else {
            panic!("{printed}");
        };
        // Calls reach both the refusals and the simulator.
        assert!(refused > calls / 10 && callbacks > calls / 50, "{printed}");
    }
}

#[test]
fn equal_posts_have_equal_digests() {
    let folder = Folder::new("c-events");
    let (path, results) = (folder.path(), folder.path().join("results"));
    let way = (Language::C, Linkage::Dynamic);
    let Some(program) = compile("tests/programs/events.c", way, path) else {
        return;
    };
    let printed = output(&program, &results);
    assert_eq!(printed.trim(), digest_of(&results));
    assert_eq!(printed.trim(), digest_again(&results));
    for file in ["flows.parquet", "report.html"] {
        assert!(results.join(file).is_file(), "{file}");
    }
}

#[test]
fn ranks_send_and_receive_as_astra_sim_expects() {
    let folder = Folder::new("c-ranks");
    let way = (Language::Cpp, Linkage::Dynamic);
    let source = "../../../integrations/astra-sim/tests/network_test.cpp";
    let Some(program) = compile(source, way, folder.path()) else {
        return;
    };
    let printed = output(&program, folder.path());
    assert_eq!(printed, "the network behaves as documented\n");
}

#[test]
fn the_examples_run() {
    for (source, language, printed) in [
        (
            "examples/ring.c",
            Language::C,
            "all-reduce of 16777216 bytes by 16 ranks: ",
        ),
        ("examples/rpc.cpp", Language::Cpp, "160 calls: fastest "),
    ] {
        let folder = Folder::new("c-examples");
        let (path, results) = (folder.path(), folder.path().join("results"));
        let Some(program) = compile(source, (language, Linkage::Dynamic), path) else {
            return;
        };
        let text = output(&program, &results);
        assert!(text.starts_with(printed), "{text}");
        assert_eq!(digest_of(&results), digest_again(&results));
    }
}
