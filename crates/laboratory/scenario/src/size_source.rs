//! Source of the sizes of a generator: a published distribution, by name, or a file.

use crate::generate::{WorkloadDefinition, located};
use clearway_formats::parse_sizes;
use clearway_formats::read_text;
use clearway_formats::{one_of, shown};
use clearway_input::InputKind;
use clearway_units::{Parameter, Value, ValueDomain, nearest, suggestion};
use clearway_workload::WorkloadError;
use clearway_workload::{PublishedSizes, SizeDistribution};
use std::path::Path;

/// Published distribution, or file with a distribution. If both have the same name, the name means the published distribution; `./hadoop`
/// is the file.
#[derive(Debug, Clone, PartialEq)]
pub enum SizeSource {
    /// Built-in distribution.
    Published(&'static PublishedSizes),
    /// The path of a file.
    File(String),
}

impl Default for SizeSource {
    fn default() -> Self {
        Self::Published(&PublishedSizes::ALL[0])
    }
}

impl SizeSource {
    /// The distribution, for the setting `key` of the generator `D`. Files are searched in `base_dir`, then in the current folder.
    pub(crate) fn read<D: WorkloadDefinition>(
        &self,
        key: &'static str,
        base_dir: Option<&Path>,
    ) -> Result<SizeDistribution, WorkloadError> {
        let name = match self {
            Self::Published(published) => return Ok(published.distribution()),
            Self::File(name) => name,
        };
        let path = located(Path::new(name), base_dir);
        if name.is_empty() || !path.exists() {
            let names: Vec<&str> = PublishedSizes::ALL.iter().map(|sizes| sizes.name).collect();
            let known = format!("name a file that exists, or use {}", one_of(&names));
            let near = nearest(name, names.iter().copied());
            let message = format!(
                "`{}` is neither a published distribution nor a file",
                shown(name)
            );
            return Err(D::fault(key, message, suggestion(near, &known)));
        }
        let text = read_text(&path, InputKind::SIZES)?;
        Ok(parse_sizes(&path.display().to_string(), &text)?)
    }
}

impl Parameter for SizeSource {
    fn expected() -> String {
        let names = PublishedSizes::ALL
            .iter()
            .map(|sizes| format!("\"{}\"", sizes.name));
        format!(
            "{} or the path of a file",
            names.collect::<Vec<_>>().join(", ")
        )
    }
    fn domain() -> ValueDomain {
        let names = PublishedSizes::ALL.iter().map(|sizes| sizes.name);
        ValueDomain::Either(vec![ValueDomain::Words(names.collect()), ValueDomain::Text])
    }

    fn from_value(value: &Value) -> Option<Self> {
        let Value::Text(text) = value else {
            return None;
        };
        Some(match PublishedSizes::named(text) {
            Some(published) => Self::Published(published),
            None => Self::File(text.clone()),
        })
    }

    fn to_value(&self) -> Value {
        Value::Text(match self {
            Self::Published(published) => published.name.into(),
            Self::File(name) => name.clone(),
        })
    }
}
