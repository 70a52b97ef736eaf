//! Figures with their claims, as stored in result files and records.

use serde_json::{Value, json};

/// Verdict on a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Pass,
    Miss,
    Unsure,
    /// Not judged: the claim belongs to the other scale, or cannot be judged yet.
    Other,
}

impl Verdict {
    const NAMES: [(Self, &'static str); 4] = [
        (Self::Pass, "pass"),
        (Self::Miss, "miss"),
        (Self::Unsure, "unsure"),
        (Self::Other, "other-scale"),
    ];

    fn read(value: &Value) -> Self {
        let known = Self::NAMES
            .into_iter()
            .find(|(_, name)| value.as_str() == Some(name));
        known.map_or(Self::Other, |(verdict, _)| verdict)
    }

    pub(super) fn name(self) -> &'static str {
        let known = Self::NAMES
            .into_iter()
            .find(|(verdict, _)| *verdict == self);
        known.map_or("", |(_, name)| name)
    }
}

/// A comparison of a claim: label, number over all seeds, and the minimum and maximum over seeds.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Measured {
    pub(super) at: Option<String>,
    pub(super) value: Option<f64>,
    pub(super) low: Option<f64>,
    pub(super) high: Option<f64>,
}

/// A claim of a figure.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Claim {
    pub(super) id: String,
    pub(super) paper: String,
    pub(super) expect: String,
    pub(super) verdict: Verdict,
    pub(super) passes_without: Vec<String>,
    pub(super) measured: Vec<Measured>,
}

/// A figure, reproduced at one scale.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Figure {
    pub(super) id: String,
    pub(super) title: String,
    pub(super) source: String,
    pub(super) setup: String,
    pub(super) revision: String,
    pub(super) seeds: usize,
    pub(super) fingerprint: Option<String>,
    /// Null subject in place of the figure's transports.
    pub(super) null: Option<String>,
    pub(super) claims: Vec<Claim>,
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn texts(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().map(text).collect()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

impl Figure {
    /// A figure from a file of `clearway reproduce`.
    pub(super) fn from_outcome(file: &str) -> Result<Self, String> {
        let mut figure = None;
        for line in file.lines() {
            let line: Value = serde_json::from_str(line).map_err(|error| error.to_string())?;
            match (line["kind"].as_str(), &mut figure) {
                (Some("reproduction"), None) => {
                    if line["complete"] != true || !list(&line["changes"]).is_empty() {
                        return Err("interrupted, or with changed settings".into());
                    }
                    figure = Some(Self::header(&line, list(&line["seeds"]).len()));
                }
                (Some("claim"), Some(figure)) => figure.claims.push(Claim {
                    measured: list(&line["judgements"])
                        .iter()
                        .map(Measured::of_judgement)
                        .collect(),
                    ..Claim::read(&line)
                }),
                _ => {}
            }
        }
        figure.ok_or_else(|| "no header".into())
    }

    /// A figure from a line of the records at small scale.
    pub(super) fn from_record(line: &str) -> Result<Self, String> {
        let line: Value = serde_json::from_str(line).map_err(|error| error.to_string())?;
        let claims = list(&line["claims"]).iter().map(|claim| Claim {
            measured: list(&claim["measured"])
                .iter()
                .map(Measured::of_record)
                .collect(),
            ..Claim::read(claim)
        });
        Ok(Self {
            claims: claims.collect(),
            ..Self::header(&line, line["seeds"].as_u64().unwrap_or_default() as usize)
        })
    }

    fn header(line: &Value, seeds: usize) -> Self {
        Self {
            id: text(&line["figure"]),
            title: text(&line["title"]),
            source: text(&line["source"]),
            setup: text(&line["setup"]),
            revision: text(&line["revision"]),
            seeds,
            fingerprint: line["fingerprint"].as_str().map(str::to_owned),
            null: line["null"].as_str().map(str::to_owned),
            claims: Vec::new(),
        }
    }

    /// The line of the records at small scale.
    pub(super) fn to_record(&self) -> String {
        let claims: Vec<Value> = self.claims.iter().map(Claim::to_record).collect();
        json!({
            "figure": self.id,
            "title": self.title,
            "source": self.source,
            "setup": self.setup,
            "revision": self.revision,
            "seeds": self.seeds,
            "fingerprint": self.fingerprint,
            "claims": claims,
        })
        .to_string()
    }
}

impl Claim {
    fn read(claim: &Value) -> Self {
        Self {
            id: text(&claim["id"]),
            paper: text(&claim["paper"]),
            expect: text(&claim["expect"]),
            verdict: Verdict::read(&claim["verdict"]),
            passes_without: texts(&claim["passes-without"]),
            measured: Vec::new(),
        }
    }

    fn to_record(&self) -> Value {
        let measured = self.measured.iter().map(|measured| {
            let Measured {
                at,
                value,
                low,
                high,
            } = measured;
            json!({ "at": at, "value": value, "low": low, "high": high })
        });
        json!({
            "id": self.id,
            "paper": self.paper,
            "expect": self.expect,
            "verdict": self.verdict.name(),
            "passes-without": self.passes_without,
            "measured": measured.collect::<Vec<Value>>(),
        })
    }
}

impl Measured {
    fn of_judgement(judgement: &Value) -> Self {
        let seeds = list(&judgement["per-seed"])
            .iter()
            .filter_map(Value::as_f64);
        let (low, high) = (seeds.clone().reduce(f64::min), seeds.reduce(f64::max));
        Self {
            low,
            high,
            value: judgement["measured"].as_f64(),
            at: judgement["at"].as_str().map(str::to_owned),
        }
    }

    fn of_record(record: &Value) -> Self {
        Self {
            at: record["at"].as_str().map(str::to_owned),
            value: record["value"].as_f64(),
            low: record["low"].as_f64(),
            high: record["high"].as_f64(),
        }
    }
}
