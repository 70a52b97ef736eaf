//! The format of claim files.

use super::definition::{AxisValue, OverSeeds, RecordSpec, Scale};
use clearway_units::{Span, Value};
use serde::Deserialize;
use toml::Table;

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct FigureFile {
    pub(super) title: String,
    pub(super) source: String,
    pub(super) setup: String,
    #[serde(default)]
    pub(super) base: Table,
    #[serde(default)]
    pub(super) record: RecordFile,
    pub(super) small: ScaleFile,
    pub(super) full: ScaleFile,
    #[serde(default)]
    pub(super) axes: Vec<AxisFile>,
    #[serde(default)]
    pub(super) without: Vec<Vec<String>>,
    pub(super) claims: Vec<ClaimFile>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct ScaleFile {
    #[serde(default)]
    pub(super) setup: String,
    #[serde(default = "three")]
    pub(super) seeds: u64,
    #[serde(default)]
    pub(super) base: Table,
}

fn three() -> u64 {
    3
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct AxisFile {
    pub(super) name: String,
    pub(super) key: Option<String>,
    pub(super) values: Option<Vec<ValueFile>>,
    pub(super) small: Option<Vec<ValueFile>>,
    pub(super) full: Option<Vec<ValueFile>>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub(super) enum ValueFile {
    Text(String),
    Number(i64),
    Labelled(LabelledFile),
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct LabelledFile {
    label: String,
    #[serde(default)]
    set: Table,
    #[serde(default)]
    small: Table,
    #[serde(default)]
    full: Table,
    plan: Option<String>,
    needs: Option<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct RecordFile {
    queue: Option<String>,
    queue_link: Option<String>,
    long_queues: Option<String>,
    losses: Option<String>,
    #[serde(default)]
    switch_marks: bool,
    #[serde(default)]
    link_loads: bool,
    last_hops: Option<String>,
    #[serde(default)]
    packet_latency: bool,
    goodput: Option<GoodputFile>,
    #[serde(default)]
    overlaps: bool,
    acks: Option<usize>,
    rates: Option<String>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct GoodputFile {
    flows: u32,
    bin: String,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct ClaimFile {
    pub(super) id: String,
    pub(super) paper: String,
    pub(super) source: String,
    pub(super) expect: String,
    pub(super) at: Option<AtFile>,
    pub(super) scale: Option<Scale>,
    pub(super) needs: Option<String>,
    #[serde(default)]
    pub(super) seeds: OverSeeds,
    pub(super) note: Option<String>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub(super) enum AtFile {
    Both(Vec<String>),
    ByScale {
        #[serde(default)]
        small: Vec<String>,
        #[serde(default)]
        full: Vec<String>,
    },
}

impl LabelledFile {
    fn has_settings(&self) -> bool {
        [&self.set, &self.small, &self.full]
            .into_iter()
            .any(|table| !table.is_empty())
    }

    /// Settings at a scale: common settings, then settings of the scale.
    fn settings(&self, scale: Scale) -> Result<Vec<String>, String> {
        let own = match scale {
            Scale::Small => &self.small,
            Scale::Full => &self.full,
        };
        Ok([settings("", &self.set)?, settings("", own)?].concat())
    }
}

impl ValueFile {
    pub(super) fn into_value(self, key: Option<&str>, scale: Scale) -> Result<AxisValue, String> {
        let plain = |value: Value, label: String| {
            let key = key.ok_or("an axis with plain values needs a `key`")?;
            Ok(AxisValue {
                label,
                settings: vec![format!("{key}={value}")],
                plan: None,
                needs: None,
            })
        };
        match self {
            Self::Text(text) => plain(Value::Text(text.clone()), text),
            Self::Number(number) => plain(Value::Integer(number), number.to_string()),
            Self::Labelled(value) if value.plan.is_some() && value.has_settings() => Err(format!(
                "`{}` has a `plan` and something to `set`: only a simulation has settings",
                value.label
            )),
            Self::Labelled(value) => Ok(AxisValue {
                settings: value.settings(scale)?,
                label: value.label,
                plan: value.plan,
                needs: value.needs,
            }),
        }
    }
}

impl RecordFile {
    pub(super) fn into_spec(self) -> Result<RecordSpec, String> {
        let span = |text: Option<String>| -> Result<Option<Span>, String> {
            let parsed = text.map(|text| {
                let span: Option<Span> = text.parse().ok();
                span.filter(|span| !span.is_zero())
                    .ok_or_else(|| format!("`record`: `{text}` is not a duration such as \"1us\""))
            });
            parsed.transpose()
        };
        let goodput = match self.goodput {
            None => None,
            Some(goodput) => span(Some(goodput.bin))?.map(|bin| (goodput.flows, bin)),
        };
        if self.queue_link.is_some() && self.queue.is_none() {
            return Err("`record`: `queue-link` needs `queue`, the width of its buckets".into());
        }
        Ok(RecordSpec {
            queue: span(self.queue)?,
            queue_link: self.queue_link,
            rates: span(self.rates)?,
            long_queues: span(self.long_queues)?,
            losses: span(self.losses)?,
            switch_marks: self.switch_marks,
            link_loads: self.link_loads,
            last_hops: span(self.last_hops)?,
            packet_latency: self.packet_latency,
            goodput,
            overlaps: self.overlaps,
            acks: self.acks,
        })
    }
}

/// The entries of a table as `KEY=VALUE`, in the order of keys.
pub(super) fn settings(prefix: &str, table: &Table) -> Result<Vec<String>, String> {
    let mut all = Vec::new();
    for (name, value) in table {
        let key = match prefix {
            "" => name.clone(),
            _ => format!("{prefix}.{name}"),
        };
        match value {
            toml::Value::Table(table) => all.extend(settings(&key, table)?),
            other => all.push(format!("{key}={}", plain(&key, other)?)),
        }
    }
    Ok(all)
}

fn plain(key: &str, value: &toml::Value) -> Result<Value, String> {
    Ok(match value {
        toml::Value::String(text) => Value::Text(text.clone()),
        toml::Value::Integer(number) => Value::Integer(*number),
        toml::Value::Float(number) => Value::Float(*number),
        toml::Value::Boolean(value) => Value::Boolean(*value),
        toml::Value::Array(items) => {
            let items: Result<_, _> = items.iter().map(|item| plain(key, item)).collect();
            Value::List(items?)
        }
        toml::Value::Table(_) | toml::Value::Datetime(_) => {
            return Err(format!("`{key}` has a value that no scenario has"));
        }
    })
}
