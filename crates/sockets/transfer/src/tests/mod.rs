//! Both sides without sockets, with messages and jobs in random order.

mod hostile;
mod pair;
mod refusals;
mod resuming;

use pair::{Pair, content, done, write};

use clearway_testing::Folder;
use std::fs;
use std::path::PathBuf;

/// A folder with files of many sizes, below `from`.
fn tree(folder: &Folder) -> Vec<(&'static str, Vec<u8>)> {
    let sizes = [0, 1, 65_535, 65_536, 1_000_000, 1 << 20, (3 << 20) + 5];
    let names = ["empty", "one", "a/b", "a/c", "a/d/e", "\u{e4} b", "z"];
    let files: Vec<_> = names.into_iter().zip(sizes).collect();
    let write = |(name, size)| {
        let content = content(size, size as u64);
        write(&folder.join("from").join(name), &content);
        (name, content)
    };
    files.into_iter().map(write).collect()
}

fn sources(folder: &Folder) -> Vec<PathBuf> {
    vec![folder.join("from")]
}

#[test]
fn files_of_all_sizes_arrive_in_whatever_order_blocks_come() {
    for seed in 0..8 {
        let folder = Folder::new(&format!("transfer-all-{seed}"));
        let files = tree(&folder);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            fs::set_permissions(folder.join("from/one"), fs::Permissions::from_mode(0o700))
                .unwrap();
        }
        let mut pair = Pair::new(&sources(&folder), &folder.join("to"), seed);
        pair.run().unwrap();
        for (name, content) in &files {
            let [from, to] = ["from", "to/from"].map(|side| folder.join(side).join(name));
            assert!(fs::read(&to).unwrap() == *content, "{name}");
            let [from, to] = [from, to].map(|path| fs::metadata(path).unwrap());
            assert_eq!(from.modified().unwrap(), to.modified().unwrap(), "{name}");
            #[cfg(unix)]
            {
                use std::os::unix::fs::PermissionsExt as _;
                let executable = to.permissions().mode() & 0o100 != 0;
                assert_eq!(executable, *name == "one", "{name}");
            }
        }
        let all: u64 = files.iter().map(|(_, content)| content.len() as u64).sum();
        for progress in pair.progress() {
            assert!(
                progress.is_complete() && progress.failed == 0,
                "{progress:?}"
            );
            assert_eq!(
                (
                    progress.moved,
                    progress.written,
                    progress.kept,
                    progress.bytes
                ),
                (all, all, 0, all)
            );
        }
        pair.store.tidy();
        assert!(!folder.join("to/.clearway-partial").exists());
    }
}

#[test]
fn more_files_than_may_be_offered_at_a_time() {
    let folder = Folder::new("transfer-many");
    for number in 0..200 {
        write(
            &folder.join(format!("from/{number:03}")),
            &content(number, number as u64),
        );
    }
    let mut pair = Pair::new(&sources(&folder), &folder.join("to"), 1);
    pair.run().unwrap();
    assert_eq!(done(&pair.events[1]), 200);
    assert_eq!(fs::read_dir(folder.join("to/from")).unwrap().count(), 200);
}

#[test]
fn blocks_that_are_damaged_on_the_way_come_again() {
    let folder = Folder::new("transfer-damaged");
    write(&folder.join("from"), &content(5 << 20, 3));
    let mut pair = Pair::new(&sources(&folder), &folder.join("to"), 4);
    let mut left = 7;
    pair.damage = Box::new(move |_, content| {
        if content.len() > 1000 && left > 0 {
            content[left * 100] ^= 1;
            left -= 1;
        }
    });
    pair.run().unwrap();
    assert!(fs::read(folder.join("to/from")).unwrap() == content(5 << 20, 3));
    let [sending, receiving] = pair.progress();
    assert_eq!((sending.repaired, receiving.repaired), (7, 7));
    assert_eq!(receiving.moved, 5 << 20);
}

#[test]
fn the_sender_hears_what_is_written() {
    let folder = Folder::new("transfer-written");
    write(&folder.join("from"), &content(20 << 20, 3));
    let mut pair = Pair::new(&sources(&folder), &folder.join("to"), 4);
    pair.run_to(5 << 20);
    let [sending, receiving] = pair.progress();
    assert_eq!((sending.written, receiving.written), (0, receiving.moved));
    assert!(sending.moved > receiving.written, "some is on its way");
    pair.tick();
    let told = receiving.written;
    while pair.progress()[0].written == 0 {
        assert!(!pair.run_for(1).unwrap());
    }
    let [sending, receiving] = pair.progress();
    assert_eq!(sending.written, told);
    assert!(receiving.written < 20 << 20, "it is heard before the end");
}
