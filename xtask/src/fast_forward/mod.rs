//! Fast-forward beside runs that simulate every packet: the tables of `docs/src/fast-forward.md`.

mod random;
mod scenarios;
mod table;

use crate::Faults;
use std::path::Path;

/// Random scenarios of each kind of traffic, unless the developer says how many.
const SCENARIOS: u32 = 250;

/// Writes the table of reference workloads.
pub(crate) fn reference(root: &Path) -> Faults {
    write(root, table::RULE, table::rows(root))
}

/// Runs random scenarios, so many of each kind of traffic from a number on, and writes the table of them.
pub(crate) fn random(root: &Path, options: &[&str]) -> Faults {
    let number = |place: usize, default: u32| match options.get(place) {
        None => Ok(default),
        Some(text) => text
            .parse()
            .map_err(|_| format!("`{text}` is no number of scenarios")),
    };
    match (number(0, SCENARIOS), number(1, 0)) {
        (Ok(count), Ok(first)) => {
            write(root, random::RULE, random::rows(root, first..first + count))
        }
        (Err(fault), _) | (_, Err(fault)) => vec![fault],
    }
}

/// Writes the rows of the table whose head ends with `rule`.
fn write(root: &Path, rule: &str, rows: Result<String, String>) -> Faults {
    let path = root.join("docs/src/fast-forward.md");
    let written = rows.and_then(|rows| {
        let page = std::fs::read_to_string(&path).map_err(|error| error.to_string())?;
        let page = with_rows(&page, rule, &rows)
            .ok_or_else(|| format!("{}: there is no line {rule}", path.display()))?;
        std::fs::write(&path, page).map_err(|error| error.to_string())
    });
    written.err().into_iter().collect()
}

/// The page with these rows of a table instead of its own.
fn with_rows(page: &str, rule: &str, rows: &str) -> Option<String> {
    let (head, rest) = page.split_once(&format!("{rule}\n"))?;
    let after: Vec<&str> = rest
        .lines()
        .skip_while(|line| line.starts_with('|'))
        .collect();
    Some(format!("{head}{rule}\n{rows}{}\n", after.join("\n")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use table::RULE;

    #[test]
    fn rows_are_replaced_and_nothing_else() {
        let page = format!("a\n{RULE}\n| old |\n| older |\n\nb\n");
        let written = with_rows(&page, RULE, "| new |\n").unwrap();
        assert_eq!(written, format!("a\n{RULE}\n| new |\n\nb\n"));
        let written = with_rows(&format!("{RULE}\n\nb\n"), RULE, "| new |\n").unwrap();
        assert_eq!(written, format!("{RULE}\n| new |\n\nb\n"));
        assert_eq!(with_rows("no table\n", RULE, ""), None);
    }
}
