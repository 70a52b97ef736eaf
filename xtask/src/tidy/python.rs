//! Cycles of modules in Python packages: modules that import each other when they are loaded or called.
//!
//! An import counts anywhere, also in functions. Imports under `if TYPE_CHECKING:` serve only annotations and do not count.

use super::dependency_cycles::{Module, faults_of};
use super::source::Source;
use crate::Faults;
use std::collections::{BTreeMap, BTreeSet};

/// Checks every package: a folder with an `__init__.py`.
pub(super) fn check(sources: &[Source]) -> Faults {
    let roots = sources.iter().filter_map(|source| {
        let folder = source.path.strip_suffix("__init__.py")?;
        Some(check_package(folder, sources))
    });
    roots.flatten().collect()
}

fn check_package(folder: &str, sources: &[Source]) -> Faults {
    let modules = sources.iter().filter_map(|source| {
        let file = source.path.strip_prefix(folder)?;
        let name = file
            .strip_suffix(".py")
            .filter(|name| !name.contains('/'))?;
        Some((vec![name.to_owned()], imports(&source.text)))
    });
    let modules: BTreeMap<Module, BTreeSet<String>> = modules.collect();
    let needs = modules.iter().map(|(module, imported)| {
        let others = modules.keys().filter(|other| imported.contains(&other[0]));
        (module, others.collect())
    });
    faults_of(folder.trim_end_matches('/'), &needs.collect())
}

/// Names of modules of the package that a file imports: `from .name import x`, `from . import name, other as x`.
fn imports(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut lines = text.lines();
    // Indentation of the enclosing `if TYPE_CHECKING:`.
    let mut skipped: Option<usize> = None;
    while let Some(line) = lines.next() {
        let statement = line.trim_start();
        let indent = line.len() - statement.len();
        if skipped.is_some_and(|outer| indent <= outer && !statement.is_empty()) {
            skipped = None;
        }
        if statement.starts_with("if TYPE_CHECKING:") {
            skipped = Some(indent);
        }
        let import = statement
            .strip_prefix("from .")
            .filter(|_| skipped.is_none());
        let Some((module, names)) = import.and_then(|rest| rest.split_once("import ")) else {
            continue;
        };
        if !module.trim().is_empty() {
            found.insert(module.trim().to_owned());
            continue;
        }
        let mut names = names.to_owned();
        while names.contains('(') && !names.contains(')') {
            let Some(next) = lines.next() else { break };
            names += next;
        }
        let names = names.trim_matches(['(', ')', ' ']).split(',');
        let names = names.filter_map(|name| name.split_whitespace().next());
        found.extend(names.map(str::to_owned));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn imports_in_functions_count_and_those_for_types_do_not() {
        let text = "from __future__ import annotations\nimport os\nfrom . import _a, _b as b\n\nif TYPE_CHECKING:\n    from ._c import C\n\n\
            def f():\n    from ._d import D\n\nfrom . import (\n    _e,\n    _f,\n)\n";
        let found: Vec<String> = imports(text).into_iter().collect();
        assert_eq!(found, ["_a", "_b", "_d", "_e", "_f"]);
    }

    #[test]
    fn modules_that_import_each_other_are_found() {
        let source = |path: &str, text: &str| Source {
            path: path.into(),
            text: text.into(),
        };
        let mut sources = vec![
            source("p/x/__init__.py", "from ._a import A\n"),
            source("p/x/_a.py", "from ._b import B\n"),
            source("p/x/_b.py", "import os\n"),
        ];
        assert_eq!(check(&sources), Faults::new());
        sources[2].text = "def f():\n    from . import _a\n".into();
        assert_eq!(
            check(&sources),
            [
                "p/x: files in a circle, move what they share into one that needs none of them: _a, _b"
            ]
        );
    }
}
