use super::*;
use crate::record::Status;
use crate::sample::run;
use crate::summary::StatusName;
use clearway_testing::Folder;

fn seeded(seed: u64) -> RunRecord {
    let mut record = run();
    record.scenario.seed = seed;
    record
}

#[test]
fn a_result_appears_only_when_it_is_whole() {
    let test = Folder::new("report-appears");
    let target = test.path().join("out/deep/result");
    let folder = ResultFolder::create(&target).unwrap();
    folder.write("scenario.toml", "seed = 1\n").unwrap();
    assert!(!target.exists());
    let summary = folder.publish(&run()).unwrap();
    assert_eq!(summary, Summary::read(&target).unwrap());
    assert_eq!(
        names(&target),
        ["flows.parquet", "scenario.toml", "summary.json"]
    );
    assert_eq!(names(target.parent().unwrap()), ["result"]);
}

#[test]
fn an_abandoned_result_leaves_no_trace_and_no_change() {
    let test = Folder::new("report-abandoned");
    let target = test.path().join("result");
    ResultFolder::create(&target)
        .unwrap()
        .publish(&seeded(1))
        .unwrap();
    let folder = ResultFolder::create(&target).unwrap();
    folder.write("scenario.toml", "").unwrap();
    drop(folder);
    assert_eq!(names(test.path()), ["result"]);
    assert_eq!(Summary::read(&target).unwrap().scenario.seed, 1);
}

#[test]
fn a_former_result_is_replaced_with_all_its_files() {
    let test = Folder::new("report-replaced");
    let target = test.path().join("result");
    let first = ResultFolder::create(&target).unwrap();
    first.write("old-trace.json", "").unwrap();
    first.publish(&seeded(1)).unwrap();
    ResultFolder::create(&target)
        .unwrap()
        .publish(&seeded(2))
        .unwrap();
    assert_eq!(Summary::read(&target).unwrap().scenario.seed, 2);
    assert_eq!(names(&target), ["flows.parquet", "summary.json"]);
    assert_eq!(names(test.path()), ["result"]);
}

#[test]
fn interrupted_runs_are_published_too() {
    let test = Folder::new("report-interrupted");
    let target = test.path().join("result");
    let mut record = run();
    record.status = Status::Interrupted;
    ResultFolder::create(&target)
        .unwrap()
        .publish(&record)
        .unwrap();
    assert_eq!(
        Summary::read(&target).unwrap().status,
        StatusName::Interrupted
    );
}

#[test]
fn an_empty_folder_is_taken() {
    let test = Folder::new("report-empty");
    ResultFolder::create(test.path())
        .unwrap()
        .publish(&run())
        .unwrap();
    assert_eq!(names(test.path()), ["flows.parquet", "summary.json"]);
}

#[test]
fn what_is_not_a_result_is_left_alone() {
    let test = Folder::new("report-refused");
    let thesis = test.path().join("thesis");
    fs::create_dir(&thesis).unwrap();
    let refused = |target: &Path| {
        let error = ResultFolder::create(target).unwrap_err();
        error.to_string().replace(test.path().to_str().unwrap(), "")
    };

    fs::write(thesis.join("chapter"), "").unwrap();
    let message = "the folder `/thesis` holds something other than Clearway results (no valid `summary.json`) and is left alone: \
                   choose another folder for the results, or delete this one";
    assert_eq!(refused(&thesis), message);
    for foreign in ["{}", "[1]", "{\"schema\": 1}", "schema"] {
        fs::write(thesis.join("summary.json"), foreign).unwrap();
        assert_eq!(refused(&thesis), message);
    }
    assert_eq!(
        refused(&thesis.join("chapter")),
        "`/thesis/chapter` is not a folder: choose another name for the results, or move it away"
    );
    assert_eq!(names(test.path()), ["thesis"]);
    assert_eq!(names(&thesis), ["chapter", "summary.json"]);
}

#[test]
fn a_result_with_other_results_in_it_is_left_alone() {
    let test = Folder::new("report-nested");
    let target = test.path().join("out");
    ResultFolder::create(&target)
        .unwrap()
        .publish(&run())
        .unwrap();
    ResultFolder::create(target.join("inner"))
        .unwrap()
        .publish(&run())
        .unwrap();
    let error = ResultFolder::create(&target).unwrap_err();
    assert!(matches!(error, FolderError::HoldsFolder { inner, .. } if inner == "inner"));
    assert!(Summary::read(target.join("inner")).is_ok());
}

#[test]
fn what_appears_during_the_run_is_left_alone() {
    let test = Folder::new("report-appeared");
    let target = test.path().join("result");
    let folder = ResultFolder::create(&target).unwrap();
    fs::create_dir(&target).unwrap();
    fs::write(target.join("notes"), "mine").unwrap();
    let error = folder.publish(&run()).unwrap_err();
    let FolderError::Beside { place, source } = &error else {
        panic!("{error}");
    };
    assert!(matches!(**source, FolderError::NotAResult { .. }));
    assert_eq!(error.kept(), Some(&**place));
    assert_eq!(names(&target), ["notes"]);
    // The simulated results are not lost.
    assert_eq!(names(test.path()), ["result", "result.new"]);
    assert!(Summary::read(place).is_ok());
}

#[test]
fn the_former_result_is_back_if_the_new_one_cannot_be_put_in_place() {
    let test = Folder::new("report-restored");
    let target = test.path().join("result");
    ResultFolder::create(&target)
        .unwrap()
        .publish(&seeded(1))
        .unwrap();
    let mut folder = ResultFolder::create(&target).unwrap();
    fs::remove_dir_all(folder.staging()).unwrap();
    let error = folder.replace_target().unwrap_err();
    assert!(matches!(error, FolderError::Io { .. }));
    drop(folder);
    assert_eq!(Summary::read(&target).unwrap().scenario.seed, 1);
    assert_eq!(names(test.path()), ["result"]);
}

/// A record whose flows do not fit in a table.
fn unwritable(seed: u64) -> RunRecord {
    let mut record = seeded(seed);
    record.flows[0].ideal_fct = clearway_units::Span::MAX;
    record
}

/// Publishes a record with `unwritable` flows; returns the error text without the path of the test.
fn part(test: &Folder, seed: u64) -> String {
    let mut folder = ResultFolder::create(test.path().join("result")).unwrap();
    folder.write("scenario.toml", "seed = 1\n").unwrap();
    folder.add("report.html", |file| file.write_all(b"<html>"));
    let error = folder.publish(&unwritable(seed)).unwrap_err();
    error.to_string().replace(test.path().to_str().unwrap(), "")
}

#[test]
fn what_is_whole_is_kept() {
    let test = Folder::new("report-part");
    let message = part(&test, 1);
    assert!(
        message.starts_with("the results are not whole: `flows.parquet` could not be written: "),
        "{message}"
    );
    assert!(
        message.ends_with("; `report.html`, `scenario.toml`, `summary.json` are kept in `/result`"),
        "{message}"
    );
    let kept = ["report.html", "scenario.toml", "summary.json"];
    assert_eq!(names(&test.path().join("result")), kept);
    assert_eq!(names(test.path()), ["result"]);
    // A later run may replace it.
    let folder = ResultFolder::create(test.path().join("result")).unwrap();
    folder.publish(&seeded(2)).unwrap();
    assert_eq!(names(test.path()), ["result"]);
}

#[test]
fn a_part_of_a_result_does_not_replace_a_whole_one() {
    let test = Folder::new("report-part-beside");
    let target = test.path().join("result");
    let folder = ResultFolder::create(&target).unwrap();
    folder.publish(&seeded(1)).unwrap();
    assert!(part(&test, 2).ends_with("are kept in `/result.partial`"));
    assert!(part(&test, 3).ends_with("are kept in `/result.partial-2`"));
    let seed = |name| {
        let summary = Summary::read(test.path().join(name)).unwrap();
        summary.scenario.seed
    };
    let all = ["result", "result.partial", "result.partial-2"];
    assert_eq!(all.map(seed), [1, 2, 3]);
    assert_eq!(names(test.path()), all);
}

#[test]
fn a_part_without_a_summary_is_kept_beside() {
    let test = Folder::new("report-part-summary");
    let mut folder = ResultFolder::create(test.path().join("result")).unwrap();
    folder.add_tables(&run());
    let full = || Err(io::Error::from(ErrorKind::StorageFull));
    folder.add(summary::FILE_NAME, |_| full());
    let error = folder.finish().unwrap_err();
    assert!(matches!(error, FolderError::Partial { .. }));
    assert_eq!(names(test.path()), ["result.partial"]);
    assert_eq!(
        names(&test.path().join("result.partial")),
        ["flows.parquet"]
    );
}

#[test]
fn the_scenario_alone_is_not_worth_keeping() {
    let test = Folder::new("report-part-nothing");
    let mut folder = ResultFolder::create(test.path().join("result")).unwrap();
    folder.write("scenario.toml", "seed = 1\n").unwrap();
    let full = || Err(io::Error::from(ErrorKind::StorageFull));
    folder.add(summary::FILE_NAME, |_| full());
    let error = folder.finish().unwrap_err();
    assert!(error.to_string().ends_with("; nothing is kept"), "{error}");
    assert_eq!(names(test.path()), [""; 0]);
}

#[test]
fn reserved_files_have_what_was_written_and_no_more() {
    let test = Folder::new("report-reserved");
    let target = test.path().join("result");
    let mut folder = ResultFolder::create(&target).unwrap();
    folder.reserve("report.html").unwrap();
    folder.reserve("unused").unwrap();
    folder.add("report.html", |file| file.write_all(b"<html>"));
    folder.publish(&run()).unwrap();
    assert_eq!(
        names(&target),
        ["flows.parquet", "report.html", "summary.json"]
    );
    assert_eq!(fs::read(target.join("report.html")).unwrap(), b"<html>");
    let json = fs::read_to_string(target.join("summary.json")).unwrap();
    assert_eq!(json, Summary::from_record(&run()).to_json());
}

#[test]
fn what_is_not_flushed_is_not_whole() {
    /// A file that accepts writes, and fails on sync.
    #[derive(Debug)]
    struct Late;
    impl std::fmt::Display for Late {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("too late")
        }
    }
    impl Error for Late {}
    let test = Folder::new("report-late");
    let mut folder = ResultFolder::create(test.path().join("result")).unwrap();
    let mut file = folder.create_file("series.parquet").unwrap();
    file.write_all(b"PAR1").unwrap();
    folder.complete("series.parquet", Err(Late.into()));
    let error = folder.publish(&run()).unwrap_err().to_string();
    assert!(
        error.contains("`series.parquet` could not be written: too late"),
        "{error}"
    );
    assert_eq!(
        names(&test.path().join("result")),
        ["flows.parquet", "summary.json"]
    );
}

#[test]
fn many_writers_of_one_folder_leave_one_whole_result() {
    let test = Folder::new("report-race");
    let target = test.path().join("result");
    for _ in 0..10 {
        let folders: Vec<ResultFolder> = (0..4)
            .map(|_| ResultFolder::create(&target).unwrap())
            .collect();
        std::thread::scope(|scope| {
            for (folder, seed) in folders.into_iter().zip(0..) {
                scope.spawn(move || folder.publish(&seeded(seed)).unwrap());
            }
        });
    }
    assert!(Summary::read(&target).is_ok());
    assert_eq!(names(&target), ["flows.parquet", "summary.json"]);
    assert_eq!(names(test.path()), ["result"]);
}

#[cfg(unix)]
#[test]
fn a_link_to_a_folder_stays_one() {
    let test = Folder::new("report-link");
    let (link, target) = (test.path().join("latest"), test.path().join("result"));
    fs::create_dir(&target).unwrap();
    std::os::unix::fs::symlink(&target, &link).unwrap();
    ResultFolder::create(&link)
        .unwrap()
        .publish(&run())
        .unwrap();
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert!(Summary::read(&link).is_ok());
}

#[test]
fn a_folder_without_a_name_is_refused() {
    let error = ResultFolder::create("/").unwrap_err();
    assert!(!error.to_string().is_empty());
    let test = Folder::new("report-unnamed");
    let error = ResultFolder::create(test.path().join("missing/..")).unwrap_err();
    assert!(matches!(error, FolderError::Unnamed { .. }));
}

#[test]
#[should_panic(expected = "is not a plain file name")]
fn files_stay_in_the_folder() {
    let test = Folder::new("report-escape");
    let folder = ResultFolder::create(test.path().join("result")).unwrap();
    let _ = folder.write("../escaped", "");
}
