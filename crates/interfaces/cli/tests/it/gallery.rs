//! The gallery of the book: its commands, their output, and its pictures.
//!
//! `CLEARWAY_PICTURES=1 cargo test -p clearway --test it gallery` redraws the pictures.

use crate::browser::Browser;
use crate::common::Bench;
use clearway_testing::cases;
use clearway_testing::chapter::calls;
use std::path::{Path, PathBuf};

const CHAPTER: &str = include_str!("../../../../../docs/src/gallery.md");

/// Width of a picture in pixels.
const WIDTH: u32 = 1000;
/// Height of a window in pixels.
const HEIGHT: u32 = 620;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..")
}

/// A picture of the chapter: its file in the book, the page, and the element of the page, or "top" for the beginning of the page.
struct Picture {
    file: &'static str,
    page: &'static str,
    element: &'static str,
}

/// Every picture of a page that the commands write, as the comment after it describes it. Others come from another test.
fn pictures() -> Vec<Picture> {
    let mut pictures = Vec::new();
    let mut lines = CHAPTER.lines();
    while let Some(line) = lines.next() {
        let Some((_, rest)) = line
            .strip_prefix("![")
            .and_then(|rest| rest.split_once("]("))
        else {
            continue;
        };
        let comment = lines.next().and_then(|next| next.strip_prefix("<!-- "));
        let shown = comment.and_then(|text| text.strip_suffix(" -->"));
        if shown.is_some_and(|text| text.starts_with("another test: ")) {
            continue;
        }
        let (page, element) = shown.and_then(|text| text.split_once(' ')).expect(line);
        pictures.push(Picture {
            file: rest.strip_suffix(')').expect(line),
            page,
            element,
        });
    }
    pictures
}

/// One command takes half of the total time, so it runs only in `cargo xtask ci` and for new pictures.
fn is_long(text: &str) -> bool {
    text.contains("trace") && !draws() && cases(0, 1) == 0
}

/// True if the pictures are redrawn.
fn draws() -> bool {
    std::env::var_os("CLEARWAY_PICTURES").is_some()
}

/// A folder in which the commands of the chapter have run.
fn visited() -> Bench {
    let bench = Bench::new("gallery");
    std::fs::create_dir(bench.path("gallery")).unwrap();
    for file in std::fs::read_dir(root().join("gallery")).unwrap() {
        let file = file.unwrap();
        std::fs::copy(file.path(), bench.path("gallery").join(file.file_name())).unwrap();
    }
    for call in calls(CHAPTER) {
        if is_long(&call.command) {
            continue;
        }
        let arguments = call.arguments("clearway").expect("a call of clearway");
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let output = bench.output(&arguments);
        let printed = [output.stdout, output.stderr].concat();
        let printed = String::from_utf8(printed).unwrap();
        assert_eq!(
            output.status.code(),
            Some(call.code),
            "{}\n{printed}",
            call.command
        );
        let missing = call.missing(&printed);
        assert!(
            missing.is_empty(),
            "{}: {missing:#?}\n{printed}",
            call.command
        );
    }
    bench
}

#[test]
fn commands_print_what_stands_below_them() {
    let bench = visited();
    let pictures = pictures();
    assert_eq!(pictures.len(), 10);
    let draws = draws();
    let pictures = pictures.iter().filter(|picture| !is_long(picture.page));
    let pictures: Vec<&Picture> = pictures.collect();
    for picture in &pictures {
        assert!(bench.path(picture.page).is_file(), "{}", picture.page);
        let file = root().join("docs/src").join(picture.file);
        assert!(draws || file.is_file(), "{}", file.display());
    }
    let Some(browser) = Browser::start("gallery") else {
        return;
    };
    for picture in &pictures {
        browser.resize(WIDTH, HEIGHT);
        browser.open(&bench.path(picture.page));
        let image = match picture.element {
            "top" => browser.screenshot(),
            element => browser.picture_of(element),
        };
        assert!(image.len() > 5000, "{} is empty", picture.file);
        if draws {
            std::fs::write(root().join("docs/src").join(picture.file), image).unwrap();
        }
    }
}
