//! Transfers that were cut off, and go on.

use super::pair::{Pair, content, kept, write};
use super::{done, sources, tree};
use crate::ReceiveStore;
use crate::record::Record;
use clearway_testing::Folder;
use std::fs;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::PathBuf;

const SIZE: usize = 12 << 20;

fn partial(folder: &Folder, kind: &str) -> PathBuf {
    let entries = fs::read_dir(folder.join("to/.clearway-partial")).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let mut right = paths.filter(|path| path.extension().is_some_and(|found| found == kind));
    right.next().expect("a partial file")
}

/// Transfers a part of one file. Returns the bytes that have come.
fn begin(folder: &Folder, seed: u64) -> u64 {
    write(&folder.join("from"), &content(SIZE, 1));
    let mut pair = Pair::new(&sources(folder), &folder.join("to"), seed);
    pair.run_to(5 << 20);
    let unfinished: Vec<_> = pair.receiving().unfinished().collect();
    assert_eq!(unfinished[0].size, SIZE as u64);
    let came = pair.progress()[1].moved;
    assert!(came > 0 && came < SIZE as u64, "{came}");
    came
}

/// Transfers the rest. Returns the pair.
fn go_on(folder: &Folder) -> Pair {
    let mut pair = Pair::new(&sources(folder), &folder.join("to"), 99);
    pair.run().unwrap();
    assert_eq!(done(&pair.events[0]), 1);
    pair
}

#[test]
fn a_transfer_that_was_cut_off_anywhere_goes_on() {
    for seed in 0..15 {
        let folder = Folder::new(&format!("transfer-cut-{seed}"));
        let files = tree(&folder);
        let all: u64 = files.iter().map(|(_, content)| content.len() as u64).sum();
        let mut moved = 0;
        // Each attempt gets further than the one before.
        for attempt in 0.. {
            let mut pair = Pair::new(&sources(&folder), &folder.join("to"), seed * 100 + attempt);
            let is_over = pair.run_for(20 + 25 * attempt as u32).unwrap();
            moved += pair.progress()[1].moved;
            if is_over {
                break;
            }
        }
        for (name, content) in &files {
            assert!(
                fs::read(folder.join("to/from").join(name)).unwrap() == *content,
                "{name}"
            );
        }
        assert_eq!(moved, all, "nothing was sent twice");
    }
}

#[test]
fn only_what_is_missing_is_sent() {
    let folder = Folder::new("transfer-rest");
    let came = begin(&folder, 1);
    let pair = go_on(&folder);
    for progress in pair.progress() {
        assert_eq!((progress.kept, progress.moved), (came, SIZE as u64 - came));
    }
    assert_eq!(kept(&pair.events[0]), Some((came, false)));
    assert_eq!(kept(&pair.events[1]), Some((came, false)));
}

#[test]
fn damage_on_the_disk_is_repaired() {
    let folder = Folder::new("transfer-damage");
    let came = begin(&folder, 2);
    let data = partial(&folder, "data");
    let file = fs::File::options().write(true).open(&data).unwrap();
    // One byte of each block.
    for block in 0..SIZE as u64 >> 20 {
        file.write_at(&[0x11, 0x22], (block << 20) + 77).unwrap();
    }
    let pair = go_on(&folder);
    assert_eq!(kept(&pair.events[0]), Some((came, false)));
    assert_eq!(
        (pair.progress()[0].kept, pair.progress()[0].moved),
        (0, SIZE as u64)
    );
    assert!(fs::read(folder.join("to/from")).unwrap() == content(SIZE, 1));
}

#[test]
fn a_partial_file_that_was_cut_short_is_completed() {
    let folder = Folder::new("transfer-short");
    begin(&folder, 3);
    let data = fs::File::options()
        .write(true)
        .open(partial(&folder, "data"))
        .unwrap();
    data.set_len(100).unwrap();
    let pair = go_on(&folder);
    assert_eq!(pair.progress()[0].kept, 0);
    assert!(fs::read(folder.join("to/from")).unwrap() == content(SIZE, 1));
}

#[test]
fn without_its_record_or_with_another_a_file_begins_anew() {
    for text in [
        None,
        Some(""),
        Some("clearway partial file 1\nname x\n\n"),
        Some("\0\n\n"),
    ] {
        let folder = Folder::new("transfer-record");
        begin(&folder, 4);
        let record = partial(&folder, "record");
        match text {
            None => fs::remove_file(record).unwrap(),
            Some(text) => fs::write(record, text).unwrap(),
        }
        let pair = go_on(&folder);
        assert_eq!((kept(&pair.events[1]), pair.progress()[1].kept), (None, 0));
        assert!(fs::read(folder.join("to/from")).unwrap() == content(SIZE, 1));
    }
}

#[test]
fn of_a_source_that_has_changed_since_only_what_is_the_same_is_used() {
    let folder = Folder::new("transfer-changed");
    let came = begin(&folder, 5);
    let mut changed = content(SIZE, 1);
    let record = Record::decode(&fs::read(partial(&folder, "record")).unwrap()).unwrap();
    let (same, other): (Vec<u32>, Vec<u32>) =
        record.blocks.iter().partition(|block| **block % 2 == 0);
    assert!(!same.is_empty() && !other.is_empty());
    // In every other block, and beyond the end of what was there.
    for block in (1..SIZE >> 20).step_by(2) {
        changed[(block << 20) + 5] ^= 1;
    }
    changed.extend([7; 100]);
    write(&folder.join("from"), &changed);
    let pair = go_on(&folder);
    assert_eq!(kept(&pair.events[0]), Some((came, true)));
    assert_eq!(kept(&pair.events[1]), Some((came, true)));
    let [sending, receiving] = pair.progress();
    assert_eq!(sending.kept, (same.len() as u64) << 20);
    assert_eq!(sending.kept + sending.moved, SIZE as u64 + 100);
    assert_eq!(receiving.kept, sending.kept);
    assert!(fs::read(folder.join("to/from")).unwrap() == changed);
}

#[test]
fn a_source_that_has_become_shorter_since_is_no_longer_at_the_end() {
    let folder = Folder::new("transfer-shorter");
    begin(&folder, 6);
    write(&folder.join("from"), &content(1000, 9));
    go_on(&folder);
    assert_eq!(fs::read(folder.join("to/from")).unwrap(), content(1000, 9));
}

#[test]
fn a_partial_file_with_a_second_name_is_not_written_to() {
    let folder = Folder::new("transfer-second-name");
    begin(&folder, 7);
    let other = folder.join("to/other");
    fs::hard_link(partial(&folder, "data"), &other).unwrap();
    let before = fs::read(&other).unwrap();
    let pair = go_on(&folder);
    assert_eq!((kept(&pair.events[1]), pair.progress()[1].kept), (None, 0));
    assert!(fs::read(folder.join("to/from")).unwrap() == content(SIZE, 1));
    assert!(fs::read(&other).unwrap() == before);
    assert_eq!(fs::metadata(&other).unwrap().nlink(), 1);
}

#[test]
fn a_file_that_got_its_name_just_before_a_power_failure_is_done() {
    let folder = Folder::new("transfer-power");
    begin(&folder, 8);
    let data = partial(&folder, "data");
    fs::write(&data, content(SIZE, 1)).unwrap();
    // The step after this one has not come.
    fs::hard_link(&data, folder.join("to/from")).unwrap();
    let pair = go_on(&folder);
    assert_eq!(pair.progress()[1].moved, 0);
    pair.store.tidy();
    assert!(!folder.join("to/.clearway-partial").exists());
    assert_eq!(fs::metadata(folder.join("to/from")).unwrap().nlink(), 1);
}

/// Names in the folder of partial files, in order; `None` if it is not there.
fn partial_names(folder: &Folder) -> Option<Vec<String>> {
    let entries = fs::read_dir(folder.join("to/.clearway-partial")).ok()?;
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = names.collect();
    names.sort();
    Some(names)
}

#[test]
fn the_record_of_a_file_that_is_in_its_place_goes_when_the_receiver_is_started_again() {
    let folder = Folder::new("transfer-orphan");
    begin(&folder, 9);
    let path = partial(&folder, "record");
    let record = fs::read(&path).unwrap();
    go_on(&folder).store.tidy();
    assert_eq!(partial_names(&folder), None);
    // As if the receiver had been killed before it removed the record.
    write(&path, &record);
    ReceiveStore::open(&folder.join("to"), false).unwrap();
    assert_eq!(partial_names(&folder), None);
    assert!(fs::read(folder.join("to/from")).unwrap() == content(SIZE, 1));
}

#[test]
fn records_of_unfinished_files_and_files_of_others_stay() {
    let folder = Folder::new("transfer-orphans");
    let came = begin(&folder, 10);
    let unfinished = partial_names(&folder).unwrap();
    assert_eq!(unfinished.len(), 2);
    let path = |name: &str| folder.join("to/.clearway-partial").join(name);
    let orphan = "0".repeat(32);
    for name in [
        format!("{orphan}.record"),
        // The step after moving it aside has not come.
        format!("{}.aside", "1".repeat(32)),
        "notes.record".into(),
        format!("{orphan}.txt"),
    ] {
        fs::write(path(&name), "clearway").unwrap();
    }
    fs::create_dir(path(&format!("{}.record", "2".repeat(32)))).unwrap();
    ReceiveStore::open(&folder.join("to"), false).unwrap();
    let mut expected = unfinished;
    expected.extend([
        format!("{orphan}.txt"),
        format!("{}.record", "2".repeat(32)),
        "notes.record".into(),
    ]);
    expected.sort();
    assert_eq!(partial_names(&folder), Some(expected));
    assert_eq!(kept(&go_on(&folder).events[1]), Some((came, false)));
}
