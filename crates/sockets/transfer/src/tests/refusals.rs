//! Refusals, and files that are left alone.

use super::pair::{Pair, content, done, failed, write};
use super::sources;
use crate::{ReceiveLimits, ReceiveStore, Sources};
use clearway_testing::Folder;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

/// Sends all below `from`; returns what failed at both sides, which is the same.
fn refused(folder: &Folder, overwrite: bool, bounds: ReceiveLimits) -> Vec<String> {
    let store = ReceiveStore::open(&folder.join("to"), overwrite).unwrap();
    let mut pair = Pair::with(&sources(folder), store, bounds, 5);
    pair.run().unwrap();
    let [sent, received] = &pair.events;
    let [mut sent, mut received] = [failed(sent), failed(received)];
    sent.sort();
    received.sort();
    assert_eq!(sent, received);
    sent
}

#[test]
fn what_is_there_is_compared_and_never_overwritten_unless_asked() {
    let folder = Folder::new("transfer-exists");
    write(&folder.join("from/same"), &content(3_000_000, 1));
    write(&folder.join("from/other"), &content(3_000_000, 2));
    write(&folder.join("from/longer"), b"longer");
    write(&folder.join("to/from/same"), &content(3_000_000, 1));
    let mut other = content(3_000_000, 2);
    other[2_999_999] ^= 1;
    write(&folder.join("to/from/other"), &other);
    write(&folder.join("to/from/longer"), b"short");
    assert_eq!(
        refused(&folder, false, ReceiveLimits::default()),
        [
            "from/longer: the receiver has a file of this name: its size is another",
            "from/other: the receiver has a file of this name: its content is another"
        ]
    );
    assert!(fs::read(folder.join("to/from/other")).unwrap() == other);
    assert_eq!(fs::read(folder.join("to/from/longer")).unwrap(), b"short");
    assert_eq!(refused(&folder, true, ReceiveLimits::default()), [""; 0]);
    assert!(fs::read(folder.join("to/from/other")).unwrap() == content(3_000_000, 2));
    assert_eq!(fs::read(folder.join("to/from/longer")).unwrap(), b"longer");
}

#[test]
fn a_transfer_that_is_repeated_moves_nothing() {
    let folder = Folder::new("transfer-again");
    write(&folder.join("from/a"), &content(3_000_000, 1));
    write(&folder.join("from/b"), b"");
    for moved in [3_000_000, 0] {
        let mut pair = Pair::new(&sources(&folder), &folder.join("to"), 5);
        pair.run().unwrap();
        assert_eq!(done(&pair.events[0]), 2);
        assert_eq!(pair.progress().map(|progress| progress.moved), [moved; 2]);
    }
}

#[test]
fn links_and_folders_in_the_way_are_told_and_nothing_outside_is_touched() {
    let folder = Folder::new("transfer-way");
    write(&folder.join("outside/file"), b"outside");
    for name in ["a/file", "b", "c", "d/x", "e", "f/x"] {
        write(&folder.join("from").join(name), b"new content");
    }
    fs::create_dir_all(folder.join("to/from/c")).unwrap();
    symlink(folder.join("outside"), folder.join("to/from/a")).unwrap();
    symlink(folder.join("outside/file"), folder.join("to/from/b")).unwrap();
    write(&folder.join("to/from/d"), b"a file");
    symlink("nowhere", folder.join("to/from/e")).unwrap();
    symlink(".", folder.join("to/from/f")).unwrap();
    for overwrite in [false, true] {
        let way = "something is in the way at the receiver";
        assert_eq!(
            refused(&folder, overwrite, ReceiveLimits::default()),
            [
                format!("from/a/file: {way}: `a` is a link"),
                format!("from/b: {way}: `b` is a link"),
                format!("from/c: {way}: `c` is a folder"),
                format!("from/d/x: {way}: `d` is a file"),
                format!("from/e: {way}: `e` is a link"),
                format!("from/f/x: {way}: `f` is a link"),
            ]
        );
    }
    assert_eq!(fs::read(folder.join("outside/file")).unwrap(), b"outside");
    assert_eq!(fs::read_dir(folder.join("outside")).unwrap().count(), 1);
    assert!(!folder.join("to/from/x").exists() && !folder.join("to/from/nowhere").exists());
}

#[test]
fn the_folder_of_partial_files_is_no_link() {
    let folder = Folder::new("transfer-partial-link");
    fs::create_dir_all(folder.join("outside")).unwrap();
    fs::create_dir_all(folder.join("to")).unwrap();
    write(&folder.join("from"), b"content");
    symlink(folder.join("outside"), folder.join("to/.clearway-partial")).unwrap();
    let told = refused(&folder, false, ReceiveLimits::default());
    assert!(
        told.len() == 1
            && told[0].starts_with("from: the receiver cannot write it: .clearway-partial: "),
        "{told:?}"
    );
    assert_eq!(fs::read_dir(folder.join("outside")).unwrap().count(), 0);
}

#[test]
fn a_file_that_another_transfer_has_is_busy() {
    let folder = Folder::new("transfer-busy");
    write(&folder.join("from"), &content(10 << 20, 1));
    let mut first = Pair::new(&sources(&folder), &folder.join("to"), 5);
    first.run_to(3 << 20);
    let told = refused(&folder, false, ReceiveLimits::default());
    assert_eq!(told, ["from: the receiver is receiving this file already"]);
    first.run().unwrap();
    assert!(fs::read(folder.join("to/from")).unwrap() == content(10 << 20, 1));
}

#[test]
fn more_refusals_than_files_may_be_open() {
    let folder = Folder::new("transfer-many-refused");
    for number in 0..150 {
        let name = format!("from/{number:03}");
        write(&folder.join(&name), &content(100, number));
        write(&folder.join("to").join(&name), &content(100, number % 2));
    }
    let told = refused(&folder, false, ReceiveLimits::default());
    assert_eq!(told.len(), 148);
}

#[test]
fn bytes_and_files_have_bounds() {
    let folder = Folder::new("transfer-bounds");
    fs::create_dir_all(folder.join("to")).unwrap();
    for name in ["a", "b", "c"] {
        write(&folder.join("from").join(name), &[1; 100]);
    }
    let bytes = ReceiveLimits {
        bytes: 250,
        ..ReceiveLimits::default()
    };
    let told = refused(&folder, false, bytes);
    assert!(
        told.len() == 1
            && told[0].ends_with("the receiver does not take so much: 250 bytes are allowed"),
        "{told:?}"
    );
    fs::remove_dir_all(folder.join("to/from")).unwrap();
    let files = ReceiveLimits {
        files: 1,
        ..ReceiveLimits::default()
    };
    let told = refused(&folder, false, files);
    assert!(
        told.len() == 2
            && told[0].ends_with("the receiver does not take so much: 1 files are allowed"),
        "{told:?}"
    );
}

#[test]
fn a_source_that_changes_while_it_is_sent_is_withdrawn() {
    let folder = Folder::new("transfer-moving");
    write(&folder.join("from"), &content(20 << 20, 1));
    for (change, told) in [
        (
            20 << 20,
            "from: it has changed while it was being sent: its size or time is another",
        ),
        (
            100,
            "from: it has changed while it was being sent: it has become shorter",
        ),
    ] {
        let mut pair = Pair::new(&sources(&folder), &folder.join("to"), 6);
        pair.run_to(3 << 20);
        let new = content(20 << 20, 2);
        fs::write(folder.join("from"), &new[..change]).unwrap();
        pair.run().unwrap();
        assert_eq!(failed(&pair.events[0]), [told]);
        assert_eq!(failed(&pair.events[1]), [told]);
        assert!(!folder.join("to/from").exists());
    }
}

#[test]
fn what_cannot_be_sent_is_told_before_anything_is() {
    let folder = Folder::new("transfer-sources");
    write(&folder.join("a/x"), b"1");
    write(&folder.join("b/x"), b"2");
    write(&folder.join("c/line\nbreak"), b"3");
    write(&folder.join("d/.clearway-partial"), b"4");
    let latin = folder.join(OsStr::from_bytes(b"e/caf\xe9"));
    write(&latin, b"5");
    symlink("/etc", folder.join("a/link")).unwrap();
    let told = |names: &[&str]| {
        let paths: Vec<PathBuf> = names.iter().map(|name| folder.join(name)).collect();
        let error = Sources::find(&paths).unwrap_err().to_string();
        error.replace(folder.to_str().unwrap(), "")
    };
    assert_eq!(
        told(&["a/x", "b/x"]),
        "/a/x and /b/x would both be `x` at the receiver"
    );
    assert_eq!(
        told(&["none"]),
        "/none: cannot read it: No such file or directory (os error 2)"
    );
    assert_eq!(
        told(&["c"]),
        "/c/line\\nbreak: its name cannot be sent: it has a control character"
    );
    assert_eq!(
        told(&["d/.clearway-partial"]),
        "/d/.clearway-partial: its name cannot be sent: `.clearway-partial` is where partial files are kept"
    );
    assert_eq!(
        told(&["e"]),
        r#""/e/caf\xE9": its name cannot be sent: it is not UTF-8"#
    );
    assert!(Sources::find(&["/dev/null".into()]).is_err());
    let found = Sources::find(&[folder.join("a"), folder.join("b")]).unwrap();
    let names: Vec<_> = found
        .files()
        .map(|(name, size)| (name.to_string(), size))
        .collect();
    assert_eq!(names, [("a/x".into(), 1), ("b/x".into(), 1)]);
    assert_eq!(found.skipped(), [folder.join("a/link")]);
}

#[test]
fn a_folder_that_receives_can_be_sent_without_its_partial_files() {
    let folder = Folder::new("transfer-send-inbox");
    write(&folder.join("inbox/done"), b"1");
    write(&folder.join("inbox/.clearway-partial/key.data"), b"2");
    write(&folder.join("inbox/below/.clearway-partial/key.data"), b"3");
    let found = Sources::find(&[folder.join("inbox/.")]).unwrap();
    let names: Vec<_> = found.files().map(|(name, _)| name.to_string()).collect();
    // A path that ends in a dot has a name all the same.
    assert_eq!(names, ["inbox/done"]);
    let mut partial = found.partial_folders().to_vec();
    partial.sort();
    let wanted = ["inbox/.clearway-partial", "inbox/below/.clearway-partial"];
    assert_eq!(partial, wanted.map(|name| folder.join(name)));
}
