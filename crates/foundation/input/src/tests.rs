//! Files that have no end, no writer or too much in them.

use super::*;
use clearway_testing::Folder;
use clearway_units::Bytes;
use insta::assert_snapshot;
use std::ffi::OsStr;
use std::fs;

fn refusal(path: &Path, kind: InputKind) -> String {
    let error = read(path, kind).expect_err("it cannot be read");
    format!("{error}\n  fix: {}", error.fix())
}

#[cfg(unix)]
#[test]
fn devices_folders_and_pipes_are_refused_at_once() {
    let folder = Folder::new("input-types");
    let pipe = folder.join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    let socket = folder.join("socket");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let link = folder.join("link");
    std::os::unix::fs::symlink("/dev/zero", &link).unwrap();
    let paths = [Path::new("/dev/zero"), &link, &*folder, &pipe, &socket];
    let refused: Vec<String> = paths.map(|path| refusal(path, InputKind::SCENARIO)).into();
    assert_snapshot!(refused.join("\n"), @r"
    this is a device, and only regular files are read
      fix: name a file; a scenario or a plan can come from standard input, which is called `-`
    this is a device, and only regular files are read
      fix: name a file; a scenario or a plan can come from standard input, which is called `-`
    this is a folder, and only regular files are read
      fix: name a file in it
    this is a pipe, and only regular files are read
      fix: name a file; a scenario or a plan can come from standard input, which is called `-`
    this is a socket, and only regular files are read
      fix: name a file; a scenario or a plan can come from standard input, which is called `-`
    ");
}

#[test]
fn files_have_limits() {
    let folder = Folder::new("input-limits");
    let sparse = folder.join("sparse");
    let file = File::create(&sparse).unwrap();
    file.set_len(1 << 40).unwrap();
    assert_snapshot!(refusal(&sparse, InputKind::FLOWS), @r"
    1099511627776B is more than the limit of 4GB for a file of flows
      fix: name another file; if it is the right one, set the variable CLEARWAY_INPUT_LIMIT of the environment to a size such as `64GB`
    ");
    file.set_len(17_000_000).unwrap();
    assert!(open(&sparse, InputKind::SCENARIO).is_err());
    assert!(open(&sparse, InputKind::FLOWS).is_ok());
}

#[test]
fn a_stream_that_shows_no_length_ends_at_the_limit() {
    let endless = read_all(std::io::repeat(b'x'), InputKind::SIZES).expect_err("no end");
    assert_snapshot!(endless, @"more bytes than the limit of 16MB for a size distribution");
    let mut limited = Limited::new(std::io::repeat(b'x'), InputKind::SIZES).unwrap();
    let error = std::io::copy(&mut limited, &mut std::io::sink()).expect_err("no end");
    assert!(error.to_string().contains("unpacked"), "{error}");
    let exactly = std::io::repeat(b'x').take(16_000_000);
    let mut limited = Limited::new(exactly, InputKind::SIZES).unwrap();
    assert_eq!(
        std::io::copy(&mut limited, &mut std::io::sink()).unwrap(),
        16_000_000
    );
}

#[test]
fn the_environment_replaces_limits() {
    let limit = |value| InputKind::SCENARIO.limit_with(Some(OsStr::new(value)));
    assert_eq!(limit("64GB").unwrap(), Bytes::new(64 * 1_000_000_000));
    let error = limit("much").expect_err("no size");
    assert_snapshot!(error, @"the variable CLEARWAY_INPUT_LIMIT is `much`, which is not a size");
}

#[test]
fn bytes_that_are_no_text_are_named_by_line() {
    let folder = Folder::new("input-text");
    let path = folder.join("x");
    fs::write(&path, b"one\ntwo\n\xff").unwrap();
    let error = read_text(&path, InputKind::SCENARIO).expect_err("no text");
    assert_snapshot!(error, @"line 3 is not plain text (UTF-8)");
    assert!(read_text(&folder.join("none"), InputKind::SCENARIO).is_err_and(|e| e.is_missing()));
}
