use super::notes::Notes;
use super::record::{Figure, Measured};
use super::records::{FigureId, by_id};
use super::*;
use std::collections::BTreeMap;

const OUTCOME: &str = r#"{"kind":"reproduction","figure":"strack/fig9","title":"T","source":"S","setup":"s","revision":"abc","fingerprint":"f","seeds":[1,2],"changes":[],"complete":true}
{"kind":"claim","id":"fast","paper":"it is fast","expect":"max_fct(a) <= 2","verdict":"FIRST","passes-without":["spray"],"judgements":[{"at":"2MB","per-seed":[1.0,null,1.5],"measured":1.25}]}
{"kind":"claim","id":"slow","paper":"it is slow","expect":"max_fct(a) >= 2","verdict":"SECOND","judgements":[]}
{"kind":"claim","id":"large","paper":"it is large","expect":"max_fct(b) >= 2","verdict":"other-scale","judgements":[]}
{"kind":"run","seed":1}
"#;

fn figure(verdicts: [&str; 2]) -> Figure {
    let text = OUTCOME.replace("FIRST", verdicts[0]);
    Figure::from_outcome(&text.replace("SECOND", verdicts[1])).unwrap()
}

#[test]
fn an_outcome_becomes_a_record_and_back() {
    let figure = figure(["pass", "miss"]);
    assert_eq!((figure.seeds, figure.claims.len()), (2, 3));
    let verdicts: Vec<Verdict> = figure.claims.iter().map(|claim| claim.verdict).collect();
    assert_eq!(verdicts, [Verdict::Pass, Verdict::Miss, Verdict::Other]);
    let expected = Measured {
        at: Some("2MB".into()),
        value: Some(1.25),
        low: Some(1.0),
        high: Some(1.5),
    };
    assert_eq!(figure.claims[0].measured, [expected]);
    assert_eq!(figure.claims[0].passes_without, ["spray"]);
    assert_eq!(Figure::from_record(&figure.to_record()).unwrap(), figure);
    let interrupted = OUTCOME.replace("\"complete\":true", "\"complete\":false");
    assert!(Figure::from_outcome(&interrupted).is_err());
    assert!(Figure::from_outcome("").is_err());
}

#[test]
fn only_what_is_sure_contradicts_a_record() {
    let record = figure(["pass", "miss"]);
    for (now, faults) in [
        (["pass", "miss"], 0),
        (["unsure", "unsure"], 0),
        (["miss", "miss"], 1),
        (["miss", "pass"], 2),
    ] {
        assert_eq!(
            contradictions(&record, &figure(now)).len(),
            faults,
            "{now:?}"
        );
    }
    assert!(contradictions(&figure(["unsure", "unsure"]), &figure(["miss", "pass"])).is_empty());
    let mut without = record.clone();
    without.claims.remove(1);
    assert_eq!(
        contradictions(&without, &record),
        ["strack/fig9 slow: not recorded at small scale"]
    );
}

#[test]
fn notes_are_complete_and_have_no_more() {
    let notes = |causes: &str, reasons: &str| {
        let small = by_id(vec![figure(["pass", "miss"])]);
        let records = Records {
            small,
            full: BTreeMap::new(),
            causes: Notes::from_text("misses.txt", causes, 2),
            reasons: Notes::from_text("null.txt", reasons, 3),
            subjects: Notes::from_text("null-subjects.txt", "", 3),
        };
        missing_notes(&records)
    };
    let (cause, reason) = (
        "strack/fig9 slow: Too fast.\n",
        "strack/fig9 fast spray: All are fast.\n",
    );
    assert!(notes(cause, reason).is_empty());
    assert_eq!(
        notes("", reason),
        ["misses.txt: strack/fig9 slow: a miss without a cause"]
    );
    assert_eq!(notes(cause, "").len(), 1);
    assert_eq!(
        notes(&format!("{cause}strack/fig9 fast: It is not.\n"), reason),
        ["misses.txt: strack/fig9 fast: no miss any more"]
    );
    for wrong in [
        "strack/fig9 slow",
        "slow: Too fast.",
        "strack/fig9 slow: no stop",
    ] {
        assert!(Notes::parse("misses.txt", wrong, 2).is_err(), "{wrong}");
    }
    assert!(Notes::parse("misses.txt", &cause.repeat(2), 2).is_err());
}

#[test]
fn passes_with_null_subjects_need_reasons() {
    let faults = |recorded: [&str; 2], reasons: &str, run: [&str; 2]| {
        let records = Records {
            small: by_id(vec![figure(recorded)]),
            full: BTreeMap::new(),
            causes: Notes::from_text("misses.txt", "", 2),
            reasons: Notes::from_text("null.txt", "", 3),
            subjects: Notes::from_text("null-subjects.txt", reasons, 3),
        };
        let figures = [("one-packet".to_owned(), figure(run))];
        null_faults(&records, &figures, &null_passes(&records, &figures))
    };
    let unexplained = "null-subjects.txt: strack/fig9 slow one-packet: passes with that null subject, and no reason is given";
    assert_eq!(
        faults(["pass", "pass"], "", ["miss", "pass"]),
        [unexplained]
    );
    assert_eq!(
        faults(["pass", "unsure"], "", ["miss", "pass"]),
        [unexplained]
    );
    assert!(faults(["pass", "miss"], "", ["miss", "pass"]).is_empty());
    let reason = "strack/fig9 slow one-packet: One packet is slow.\n";
    assert!(faults(["pass", "pass"], reason, ["miss", "pass"]).is_empty());
    assert_eq!(faults(["pass", "pass"], reason, ["miss", "miss"]).len(), 1);
    let of_others = "strack/fig9 slow wrong-protocol: Not run.\n";
    assert!(faults(["pass", "pass"], of_others, ["miss", "miss"]).is_empty());
}

#[test]
fn figures_stand_in_the_order_of_papers() {
    let mut ids = [
        "snyder/fig4.10",
        "snyder/fig4.9",
        "snyder/table3.1",
        "snyder/fig10",
        "mlcc/section4",
    ]
    .map(FigureId::from);
    ids.sort();
    let texts = ids.map(|id| id.text);
    assert_eq!(
        texts,
        [
            "mlcc/section4",
            "snyder/fig4.9",
            "snyder/fig4.10",
            "snyder/fig10",
            "snyder/table3.1"
        ]
    );
}

/// A figure with two verdicts at either scale.
fn records() -> Records {
    Records {
        small: by_id(vec![figure(["pass", "miss"])]),
        full: by_id(vec![figure(["pass", "unsure"])]),
        causes: Notes::from_text("misses.txt", "strack/fig9 slow: Too fast.\n", 2),
        reasons: Notes::from_text("null.txt", "", 3),
        subjects: Notes::from_text("null-subjects.txt", "", 3),
    }
}

#[test]
fn verdicts_are_counted_by_scale() {
    let mut records = records();
    let list = "strack/fig9 small 1 1 0 current\nstrack/fig9 full 1 0 1 current\n";
    assert_eq!(verdicts::text(&records), list);
    for full in records.full.values_mut() {
        full.fingerprint = Some("of other sources".into());
    }
    assert_eq!(
        verdicts::text(&records),
        list.replace("full 1 0 1 current", "full 1 0 1 stale")
    );
}

#[test]
fn the_page_counts_what_could_have_failed() {
    let records = records();
    let page = page::text(&records);
    assert!(page.contains("| small | 2 | 1 | 0 | 1 | 0 |\n"), "{page}");
    assert!(page.contains("| full | 2 | 1 | 0 | 0 | 1 |\n"), "{page}");
    assert!(
        page.contains("| it is fast | `max_fct(a) <= 2` | 2MB: 1.25 (1 to 1.50); **PASS** |"),
        "{page}"
    );
    assert!(
        page.contains("* Missed, *it is slow*: Too fast.\n"),
        "{page}"
    );
    assert!(!page.contains("*stale*.\n\n|"), "{page}");
}

#[test]
fn headlines_show_what_is_judged_and_why_it_misses() {
    let records = Records {
        small: by_id(vec![figure(["pass", "miss"])]),
        full: BTreeMap::new(),
        causes: Notes::from_text(
            "misses.txt",
            "strack/fig9 slow: Links idle. More of it.\n",
            2,
        ),
        reasons: Notes::from_text("null.txt", "", 3),
        subjects: Notes::from_text("null-subjects.txt", "", 3),
    };
    let list = ["slow", "fast", "large", "gone"].map(|claim| format!("strack/fig9 {claim}"));
    let page = headlines::text(&records, &list);
    assert!(
        page.contains("## STrack\n\n1 pass, 1 miss, 0 unsure."),
        "{page}"
    );
    assert_eq!(headlines::summary(&records, &list), "STrack 1 of 2");
    let row = |text: &str| {
        page.lines()
            .find(|line| line.contains(text))
            .map(str::to_owned)
    };
    assert!(
        row("it is slow").unwrap().ends_with("| Links idle. |"),
        "{page}"
    );
    assert!(row("it is fast").unwrap().contains("**PASS**"), "{page}");
    assert!(
        row("it is large").unwrap().contains("not judged yet"),
        "{page}"
    );
    assert_eq!(
        headlines::unknown(&records, &list),
        ["headlines.txt: strack/fig9 gone: no such claim is recorded"]
    );
}
