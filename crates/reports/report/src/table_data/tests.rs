use super::*;
use crate::column_values::ColumnValues;
use crate::observed::{Metric, Subject};
use crate::sample::{incomplete_run, run, scale_up_run};
use clearway_units::{Span, Time};

fn length(values: &ColumnValues) -> usize {
    match values {
        ColumnValues::U32(values) => values.len(),
        ColumnValues::U64(values) => values.len(),
        ColumnValues::I64(values) => values.len(),
        ColumnValues::Double(values) => values.len(),
        ColumnValues::Text { offsets, .. } => offsets.len() - 1,
    }
}

/// The columns of a table have its rows, and the types that are declared.
fn check(tables: &RunTables<'_>, table: TableName) {
    let rows = tables.rows(table);
    let columns = tables.batch(table, 0..rows).unwrap();
    let declared = table.columns();
    assert_eq!(columns.len(), declared.len(), "{table:?}");
    for (column, info) in columns.iter().zip(declared) {
        let of_type = match column.values {
            ColumnValues::U32(_) => "uint32",
            ColumnValues::U64(_) => "uint64",
            ColumnValues::I64(_) => "int64",
            ColumnValues::Double(_) => "double",
            ColumnValues::Text { .. } => "text",
        };
        assert_eq!(of_type, info.of_type, "{}", info.name);
        assert_eq!(length(&column.values), rows, "{}", info.name);
        assert_eq!(column.present.is_some(), !info.null.is_empty());
    }
}

#[test]
fn tables_have_the_columns_that_are_declared() {
    let sample = |number: u64| SeriesRow {
        time: Time::from_us(number),
        interval: Span::from_us(1),
        metric: Metric::ALL[0],
        subject: Subject::Flow(number as u32 % 2),
        value: number as f64,
    };
    let samples: Vec<SeriesRow> = (0..5).map(sample).collect();
    for record in [run(), incomplete_run(), scale_up_run()] {
        let tables = RunTables {
            record: &record,
            samples: &samples,
        };
        for table in TableName::ALL {
            check(&tables, table);
        }
    }
}

#[test]
fn rows_without_a_value_say_so() {
    let record = incomplete_run();
    let tables = RunTables {
        record: &record,
        samples: &[],
    };
    let columns = TableName::Flows.columns();
    let finish = columns.iter().position(|column| column.name == "finish_ps");
    let rows = tables.rows(TableName::Flows);
    let batch = tables.batch(TableName::Flows, 1..rows).unwrap();
    let expected: Vec<bool> = record.flows[1..]
        .iter()
        .map(|flow| flow.finish.is_some())
        .collect();
    assert!(expected.contains(&false));
    assert_eq!(batch[finish.unwrap()].present, Some(expected));
}

#[test]
fn a_time_beyond_the_signed_range_is_refused() {
    let mut record = run();
    record.flows[0].ideal_fct = Span::MAX;
    let tables = RunTables {
        record: &record,
        samples: &[],
    };
    let error = tables.batch(TableName::Flows, 0..1).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("more than a signed number holds")
    );
}
