//! Settings with one value for all jobs of a section, or one value for each job.

use clearway_units::{Parameter, Value, ValueDomain};

/// Value for all jobs of a section, or list with one value for each job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PerJob<T> {
    /// The same value for all jobs.
    All(T),
    /// A value for each job, in order.
    Each(Vec<T>),
}

impl<T: Copy> PerJob<T> {
    /// The value of the job with this number; jobs beyond the list have the last value.
    ///
    /// # Panics
    /// If the list is empty. Lists of scenarios are never empty.
    pub fn get(&self, job: usize) -> T {
        match self {
            Self::All(value) => *value,
            Self::Each(values) => values[job.min(values.len() - 1)],
        }
    }

    /// Number of values in the list; `None` without a list.
    pub fn count(&self) -> Option<usize> {
        match self {
            Self::All(_) => None,
            Self::Each(values) => Some(values.len()),
        }
    }
}

impl<T: Parameter> Parameter for PerJob<T> {
    fn expected() -> String {
        format!("{}, or a list of one for each job", T::expected())
    }
    fn domain() -> ValueDomain {
        ValueDomain::Either(vec![T::domain(), T::domain().list()])
    }
    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::List(values) if values.is_empty() => None,
            Value::List(values) => {
                let values = values.iter().map(T::from_value);
                values.collect::<Option<_>>().map(Self::Each)
            }
            value => T::from_value(value).map(Self::All),
        }
    }
    fn advice(value: &Value) -> Option<String> {
        match value {
            Value::List(_) => Vec::<T>::advice(value),
            value => T::advice(value),
        }
    }
    fn to_value(&self) -> Value {
        match self {
            Self::All(value) => value.to_value(),
            Self::Each(values) => Value::List(values.iter().map(T::to_value).collect()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clearway_units::Span;

    #[test]
    fn a_list_has_a_value_for_each_job() {
        let text = |text: &str| Value::Text(text.into());
        let list = Value::List(vec![text("1us"), text("2us")]);
        let each = PerJob::<Span>::from_value(&list).unwrap();
        assert_eq!(each.to_value(), list);
        assert_eq!((each.count(), each.get(1)), (Some(2), Span::from_us(2)));
        let all = PerJob::<Span>::from_value(&text("3us")).unwrap();
        assert_eq!(all.to_value(), text("3us"));
        assert_eq!((all.count(), all.get(7)), (None, Span::from_us(3)));
        assert_eq!(PerJob::<Span>::from_value(&Value::List(vec![])), None);
        assert_eq!(PerJob::<Span>::from_value(&text("x")), None);
    }
}
