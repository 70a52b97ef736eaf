use super::*;

fn planned(name: &str) -> (JobsFile, Placed) {
    let file = JobsFile::load(name).expect("a built-in plan");
    let placed = file.plan().expect("a plan");
    (file, placed)
}

#[test]
fn built_in_plans_say_what_the_paper_says() {
    let (file, placed) = planned("vgg-pair");
    assert_eq!(placed.plan.verdict(), Verdict::Compatible);
    assert_eq!(placed.plan.jobs[1].shift.to_string(), "114ms");
    assert_eq!(file.reasons(&placed), Vec::<String>::new());

    let (file, placed) = planned("table-1");
    let verdicts: Vec<(&str, bool)> = placed
        .plan
        .resources
        .iter()
        .map(|planned| {
            (
                file.resource_name(planned.resource),
                planned.is_compatible(),
            )
        })
        .collect();
    assert_eq!(
        verdicts,
        [
            ("group-1", false),
            ("group-2", true),
            ("group-3", false),
            ("group-4", true),
            ("group-5", true)
        ]
    );
    let reasons = file.reasons(&placed);
    assert!(
        reasons[0]
            .starts_with("`group-3`: 3.901s of 5.616s collide; its jobs ask for 159.7 % of it"),
        "{reasons:#?}"
    );
    let dlrm = reasons.iter().find(|line| line.contains("DLRM-a"));
    assert_eq!(
        dlrm.map(String::as_str),
        Some(
            "`DLRM-a` begins an iteration every 1.019s instead of 1.001s (+1.8 %), so that iterations repeat together"
        )
    );

    let (file, placed) = planned("two-racks");
    assert_eq!(placed.plan.verdict(), Verdict::Compatible);
    let reasons = file.reasons(&placed);
    assert!(
        reasons[0].starts_with("`GPT-b` moves to placement `rack 2`: if it alone stayed"),
        "{reasons:#?}"
    );
    assert_eq!(reasons.len(), 3, "{reasons:#?}");
}

#[test]
fn collisions_are_explained() {
    let text = "[plan]\ntolerance = 0.0\n[[link]]\nname = \"L\"\n\
        [[job]]\nname = \"A\"\ncompute = \"20ms\"\ncommunication = \"20ms\"\nlinks = [\"L\"]\n\
        [[job]]\nname = \"B\"\ncompute = \"50ms\"\ncommunication = \"10ms\"\nlinks = [\"L\"]\n";
    let file = JobsFile::read("x.toml", text).expect("jobs");
    let placed = file.plan().expect("a plan");
    assert_eq!(
        file.reasons(&placed),
        [
            "`L`: 10ms of 120ms collide; `A` and `B` meet in every distance within 20ms, where 20ms and 10ms do not fit"
        ]
    );
}

#[test]
fn what_cannot_be_meant_is_refused_with_place_and_fix() {
    let job = "[[job]]\nname = \"A\"\n";
    let link = "[[link]]\nname = \"L1\"\nrate = \"50Gbps\"\n";
    let whole = "compute = \"5ms\"\ncommunication = \"50ms\"\n";
    for (text, message) in [
        (
            String::new(),
            "x.toml: there are no jobs\n  fix: write `[[job]]`, and below it a name, `compute`, `communication` and `links`",
        ),
        (
            "[[jop]]\nname = \"A\"\n".into(),
            "x.toml:1: there is no section `jop`\n  fix: did you mean `job`? The sections are: plan, link, job, placement",
        ),
        (
            format!("{link}[[job]]\n{whole}links = [\"L1\"]\n"),
            "x.toml:5: job 1 has no name\n  fix: write `name = \"…\"` into it",
        ),
        (
            format!("{link}{job}{whole}links = [\"L2\"]\n"),
            "x.toml:8: there is no link `L2`\n  fix: did you mean `L1`? The links are: L1",
        ),
        (
            format!("{link}{job}{whole}{job}{whole}"),
            "x.toml:9: there are two jobs called `A`\n  fix: rename one of them",
        ),
        (
            format!("{job}{whole}linsk = [\"L1\"]\n"),
            "x.toml:5: a job has no key `linsk`\n  fix: did you mean `links`? The keys are: arcs, communication, compute, compute-arcs, demand, gpus, links, name, period",
        ),
        (
            format!("{job}compute = \"5ms\"\n"),
            "x.toml:3: job `A` has only one of `compute` and `communication`\n  fix: give both: an iteration is one after the other",
        ),
        (
            format!("{job}links = []\n"),
            "x.toml:2: job `A` does not say how long an iteration takes\n  fix: give `compute` and `communication`, such as \"141ms\" and \"114ms\", or `period` and `arcs`",
        ),
        (
            format!("{job}period = \"10ms\"\narcs = [\"1ms..11ms\"]\n"),
            "x.toml:4: job `A`: communication phase 1 ends at 11ms, after the iteration of 10ms\n  fix: lengthen the period, or cut the phase in two where the next iteration begins",
        ),
        (
            format!("{job}period = \"10ms\"\narcs = [\"8ms..2ms\"]\n"),
            "x.toml:4: job `A` has an arc that ends at 2ms, before it begins\n  fix: cut an arc that goes past the end of the iteration in two: one to the end, one from 0s",
        ),
        (
            format!("{job}period = \"0s\"\n"),
            "x.toml:3: job `A`: an iteration takes no time\n  fix: give the time that it takes alone, such as \"255ms\"",
        ),
        (
            format!("{link}{job}{whole}demand = \"80Gbps\"\nlinks = [\"L1\"]\n"),
            "x.toml:8: job `A` asks for 80Gbps of link `L1`, which has 50Gbps\n  fix: lower the demand and lengthen the communication, or raise the link's `rate`",
        ),
        (
            format!("{link}{job}{whole}demand = 1.5\n"),
            "x.toml:8: `demand` cannot be 1.5\n  fix: expected a share above 0 and at most 1, such as `0.5`, or a rate such as \"25Gbps\"",
        ),
        (
            format!("{link}{job}{whole}links = [\"L1\", \"L1\"]\n"),
            "x.toml:8: `links` has `L1` twice\n  fix: name each once: what a job takes of it is its `demand`",
        ),
        (
            format!("{link}{job}period = \"10ms\"\nlinks = [\"L1\"]\n"),
            "x.toml:7: job `A` has links, but never communicates\n  fix: give `arcs`, such as [\"141ms..255ms\"]",
        ),
        (
            format!("{job}{whole}[[placement]]\njob = \"B\"\n"),
            "x.toml:6: there is no job `B`\n  fix: the jobs are: A",
        ),
        (
            format!("[plan]\ngrid = \"0s\"\n{job}{whole}"),
            "x.toml:2: `plan.grid`: a grid of no length\n  fix: give a duration such as \"1ms\"",
        ),
    ] {
        let error = JobsFile::read("x.toml", &text)
            .expect_err(message)
            .to_string();
        assert!(error.starts_with(message), "{error}\ninstead of\n{message}");
    }
    let short = format!(
        "{link}{job}compute = \"2ms\"\ncommunication = \"3ms\"\nlinks = [\"L1\"]\n[[job]]\nname = \"B\"\n{whole}links = [\"L1\"]\n"
    );
    let file = JobsFile::read("x.toml", &short).expect("jobs");
    assert_eq!(
        file.plan().expect_err("too short").to_string(),
        "x.toml:6: job `A`: an iteration of 5ms has fewer than 10 steps of 1ms\n  fix: set `grid` to 50us or less"
    );
    let error = JobsFile::load("vgg-pai").expect_err("no such plan");
    assert_eq!(
        error.to_string(),
        "vgg-pai: there is no such file or built-in plan\n  fix: did you mean `vgg-pair`? Give the path of a TOML file or a built-in plan: vgg-pair, table-1, two-racks"
    );
}
