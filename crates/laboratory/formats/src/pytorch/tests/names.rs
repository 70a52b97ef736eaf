//! Names of files.

use super::*;

/// Empty traces with these names in a folder.
fn folder(test: &str, names: &[&str]) -> clearway_testing::Folder {
    let folder = clearway_testing::Folder::new(&format!("pytorch-{test}"));
    for name in names {
        std::fs::write(folder.join(name), "{\"traceEvents\": []}").unwrap();
    }
    folder
}

/// The files of the job of `name`, with their ranks.
fn files(folder: &clearway_testing::Folder, name: &str) -> Vec<(String, Option<u32>)> {
    let files = pytorch_files(&folder.join(name)).unwrap();
    let name = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_owned();
    files
        .into_iter()
        .map(|file| (name(&file.path), file.rank))
        .collect()
}

#[test]
fn the_rank_is_in_the_name() {
    let names = [
        "rank0.json",
        "rank10.json",
        "rank2.json",
        "kineto_0.json",
        "kineto_1.json",
        "et.00.json",
        "et.01.json",
        "gpt4_rank-0.1700000000.pt.trace.json",
        "gpt4_rank-1.1700000001.pt.trace.json",
        "node7_123.1700000000123456789.pt.trace.json",
        "other4.json",
    ];
    let folder = folder("names", &names);
    std::fs::write(folder.join("rank3.json"), "{\"a\": 1}").unwrap();
    let found = |name: &str| {
        let files = files(&folder, name);
        let shown: Vec<String> = files
            .iter()
            .map(|(name, rank)| format!("{name} {rank:?}"))
            .collect();
        shown.join(", ")
    };
    assert_eq!(
        found("rank2.json"),
        "rank0.json Some(0), rank2.json Some(2), rank10.json Some(10)"
    );
    assert_eq!(
        found("kineto_1.json"),
        "kineto_0.json Some(0), kineto_1.json Some(1)"
    );
    assert_eq!(
        found("et.00.json"),
        "et.00.json Some(0), et.01.json Some(1)"
    );
    let timed = "gpt4_rank-0.1700000000.pt.trace.json Some(0), gpt4_rank-1.1700000001.pt.trace.json Some(1)";
    assert_eq!(found("gpt4_rank-1.1700000001.pt.trace.json"), timed);
    // A time is no rank, and neither is a number within a word.
    for name in &names[9..] {
        assert_eq!(found(name), format!("{name} None"));
    }
    assert_eq!(pytorch_files(&folder).unwrap().len(), names.len());
    let paths = trace_files(&folder.join("kineto_1.json"));
    assert_eq!(
        paths,
        ["kineto_0.json", "kineto_1.json"].map(|name| folder.join(name))
    );
    assert_eq!(trace_files(&folder).len(), names.len());
}

#[test]
fn a_folder_without_traces_is_an_error() {
    let folder = folder("empty", &[]);
    assert_snapshot!(pytorch_files(&folder).unwrap_err(), @"the folder has no traces of PyTorch, whose names end with `.json` or `.json.gz`");
    let error = read_pytorch(&folder, None, &[]).unwrap_err().to_string();
    assert!(
        error.contains("the folder has no traces of PyTorch"),
        "{error}"
    );
}

#[test]
fn jobs_are_named_after_their_files() {
    let folder = folder("labels", &[]);
    let label = |name: &str| job_name(&folder.join(name));
    let own = folder.file_name().unwrap().to_str().unwrap().to_owned();
    assert_eq!(job_name(&folder), own);
    for (name, expected) in [
        ("rank0.json", own.as_str()),
        ("0.json", own.as_str()),
        ("gpt_rank_0.json.gz", "gpt"),
        ("llama.3.json", "llama"),
        ("résumé.0.json", "résumé"),
        (
            "host_1.1700000000123456789.pt.trace.json",
            "host_1.1700000000123456789",
        ),
    ] {
        assert_eq!(label(name), expected, "{name}");
    }
}

#[test]
fn a_job_is_read_from_its_folder() {
    let folder = folder("job", &[]);
    // Names without ranks.
    for (name, rank) in [("a.json", 1), ("b.json", 0)] {
        std::fs::write(folder.join(name), data_parallel(rank, 2).text()).unwrap();
    }
    std::fs::write(folder.join("notes.json"), "{\"not\": \"a trace\"}").unwrap();
    let trace = read_pytorch(&folder, None, &[]).unwrap();
    assert_eq!(trace.program.ranks.len(), 2);
    let name = |file: &String| {
        Path::new(file)
            .file_name()
            .unwrap()
            .to_str()
            .unwrap()
            .to_owned()
    };
    let files: Vec<String> = trace.files.iter().map(name).collect();
    assert_eq!(files, ["b.json", "a.json"]);
}
