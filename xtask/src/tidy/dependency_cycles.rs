//! Cycles of files: files of one crate that need each other's items.
//!
//! A file needs another if it names an item that is defined there: in a `use`, or in a path that begins with `crate`, `super` or the
//! name of a module. Re-exports are followed to the definition; a re-export does not count as a need, and tests do not count. Items are
//! found by their keywords, so methods count as items of their file. That does no harm, because paths do not name methods.

use super::lexer;
use super::source::Source;
use crate::Faults;
use std::collections::{BTreeMap, BTreeSet};

/// Keywords in front of the name of an item.
const ITEMS: [&str; 9] = [
    "struct",
    "enum",
    "trait",
    "type",
    "fn",
    "const",
    "static",
    "union",
    "macro_rules",
];
/// Maximum number of re-exports that are followed in a row.
const MOST_REEXPORTS: usize = 8;

/// Path of a module from the root of its crate; the root's is empty.
pub(super) type Module = Vec<String>;

/// A path in the source, segment by segment.
type Path = Vec<String>;

/// One file of a crate.
#[derive(Debug, Default)]
struct File {
    items: BTreeSet<String>,
    /// Paths of its `use` statements: the imported name, and true if the import is public.
    uses: Vec<Use>,
    /// Paths in other places.
    paths: Vec<Path>,
}

#[derive(Debug)]
struct Use {
    path: Path,
    name: String,
    is_reexport: bool,
}

/// Checks every crate.
pub(super) fn check(sources: &[Source]) -> Faults {
    let mut crates: BTreeMap<&str, BTreeMap<Module, File>> = BTreeMap::new();
    for source in sources.iter().filter(|source| source.is_rust()) {
        if let Some((name, module)) = place(&source.path) {
            let files = crates.entry(name).or_default();
            files.insert(module, File::read(&source.text));
        }
    }
    let all = crates.iter();
    all.flat_map(|(name, files)| circles(name, files)).collect()
}

/// The folder of the crate and the module of a file; `None` for tests and for programs beside a library.
fn place(path: &str) -> Option<(&str, Module)> {
    let (name, file) = path.split_once("/src/")?;
    let mut module: Module = file
        .strip_suffix(".rs")?
        .split('/')
        .map(Into::into)
        .collect();
    if module.iter().any(|part| part == "tests") || module == ["main"] {
        return None;
    }
    if module.last().is_some_and(|last| last == "mod") || module == ["lib"] {
        module.pop();
    }
    Some((name, module))
}

fn circles(name: &str, files: &BTreeMap<Module, File>) -> Faults {
    let needs = files
        .keys()
        .map(|module| (module, needed_by(files, module)));
    faults_of(name, &needs.collect())
}

/// A fault for each cycle of modules. `needs` gives the modules that each module needs.
pub(super) fn faults_of(name: &str, needs: &BTreeMap<&Module, BTreeSet<&Module>>) -> Faults {
    let reached: BTreeMap<&Module, BTreeSet<&Module>> = needs
        .keys()
        .map(|module| (*module, reach(needs, module)))
        .collect();
    let mut told: BTreeSet<&Module> = BTreeSet::new();
    let mut faults = Faults::new();
    for (module, others) in &reached {
        let circle = others
            .iter()
            .filter(|other| reached[**other].contains(module));
        let circle: Vec<&Module> = circle.copied().collect();
        if circle.len() > 1 && !told.contains(module) {
            told.extend(&circle);
            let shown = |module: &&Module| match module.is_empty() {
                true => "lib".into(),
                false => module.join("/"),
            };
            let shown: Vec<String> = circle.iter().map(shown).collect();
            faults.push(format!(
                "{name}: files in a circle, move what they share into one that needs none of them: {}",
                shown.join(", ")
            ));
        }
    }
    faults
}

/// All modules that can be reached in one or more steps.
fn reach<'a>(
    needs: &BTreeMap<&'a Module, BTreeSet<&'a Module>>,
    from: &Module,
) -> BTreeSet<&'a Module> {
    let mut reached = BTreeSet::new();
    let mut waiting: Vec<&Module> = needs[from].iter().copied().collect();
    while let Some(module) = waiting.pop() {
        if reached.insert(module) {
            waiting.extend(&needs[module]);
        }
    }
    reached
}

fn needed_by<'a>(files: &'a BTreeMap<Module, File>, module: &'a Module) -> BTreeSet<&'a Module> {
    let file = &files[module];
    let used = file.uses.iter().filter(|used| !used.is_reexport);
    let used = used.map(|used| used.path.clone());
    // Names of modules that may start a path.
    let mut modules: BTreeMap<&str, Module> = BTreeMap::new();
    for used in &file.uses {
        if let Some(found) = module_at(files, module, &used.path) {
            modules.insert(&used.name, found);
        }
    }
    for child in files.keys().filter(|child| child.len() == module.len() + 1) {
        if child.starts_with(module) {
            modules.entry(&child[module.len()]).or_insert(child.clone());
        }
    }
    let inline = file
        .paths
        .iter()
        .map(|path| match modules.get(path[0].as_str()) {
            Some(found) => {
                let root = ["crate".into()].into_iter();
                root.chain(found.iter().cloned())
                    .chain(path[1..].iter().cloned())
                    .collect()
            }
            None => path.clone(),
        });
    let defining = used
        .chain(inline)
        .filter_map(|path| definition(files, module, &path, 0));
    defining.filter(|other| *other != module).collect()
}

/// The first modules of a path from `module`, and the segments after them; `None` if the path leads out of the crate.
fn resolve<'p>(
    files: &BTreeMap<Module, File>,
    module: &Module,
    path: &'p [String],
) -> Option<(Module, &'p [String])> {
    let (mut at, mut rest) = match path.first()?.as_str() {
        "crate" => (Module::new(), &path[1..]),
        "self" => (module.clone(), &path[1..]),
        "super" => (module.clone(), path),
        first => {
            let child: Module = [&module[..], &[first.into()]].concat();
            files
                .contains_key(&child)
                .then_some((module.clone(), path))?
        }
    };
    while rest.first().is_some_and(|first| first == "super") {
        at.pop()?;
        rest = &rest[1..];
    }
    while let Some(next) = rest.first() {
        at.push(next.clone());
        if !files.contains_key(&at) {
            at.pop();
            break;
        }
        rest = &rest[1..];
    }
    Some((at, rest))
}

/// The module that the whole path names; `None` if the path names something else, or the root.
fn module_at(files: &BTreeMap<Module, File>, module: &Module, path: &[String]) -> Option<Module> {
    let (found, rest) = resolve(files, module, path)?;
    let is_whole = rest.is_empty() || rest == ["self"];
    (is_whole && !found.is_empty()).then_some(found)
}

/// The module that defines the item of a path.
fn definition<'a>(
    files: &'a BTreeMap<Module, File>,
    module: &Module,
    path: &[String],
    depth: usize,
) -> Option<&'a Module> {
    let (found, rest) = resolve(files, module, path)?;
    let (found, file) = files.get_key_value(&found)?;
    let name = rest.first().filter(|name| *name != "self")?;
    if name == "*" || file.items.contains(name) || depth > MOST_REEXPORTS {
        return Some(found);
    }
    if let Some(used) = file.uses.iter().find(|used| used.name == *name) {
        return definition(files, found, &used.path, depth + 1);
    }
    let globs = file.uses.iter().filter(|used| used.name == "*");
    let mut through = globs.filter_map(|used| {
        let mut path = used.path.clone();
        *path.last_mut()? = name.clone();
        let found = definition(files, found, &path, depth + 1)?;
        files[found].items.contains(name).then_some(found)
    });
    through.next()
}

impl File {
    fn read(text: &str) -> Self {
        let code = lexer::code(text);
        // Any condition may stand above the module: tests may be for one kind of system.
        let end = code.find("\nmod tests {");
        let tokens = tokens(&code[..end.unwrap_or(code.len())]);
        let mut file = Self::default();
        let mut place = 0;
        while place < tokens.len() {
            let token = tokens[place];
            let before = if place == 0 { ";" } else { tokens[place - 1] };
            if token == "use" && matches!(before, ";" | "{" | "}" | "]" | "pub" | ")") {
                let length = tokens[place..].iter().position(|token| *token == ";");
                let statement = &tokens[place + 1..place + length.unwrap_or(1)];
                let is_reexport = matches!(before, "pub" | ")");
                file.take_use(&mut statement.iter().copied(), &Path::new(), is_reexport);
                place += length.unwrap_or(1);
                continue;
            }
            if ITEMS.contains(&token) {
                let names = tokens[place + 1..].iter().filter(|token| **token != "!");
                file.items.extend(names.take(1).map(ToString::to_string));
            }
            place += 1;
            if is_word(token) && before != "::" && tokens.get(place) == Some(&"::") {
                let mut path = vec![token.to_string()];
                while tokens.get(place) == Some(&"::")
                    && tokens.get(place + 1).is_some_and(|token| is_word(token))
                {
                    path.push(tokens[place + 1].into());
                    place += 2;
                }
                file.paths.push(path);
            }
        }
        file
    }

    /// Reads the tree of a `use`, whose paths all begin with `prefix`, up to the end of its group.
    fn take_use<'t>(
        &mut self,
        tokens: &mut impl Iterator<Item = &'t str>,
        prefix: &Path,
        is_reexport: bool,
    ) {
        let mut path = prefix.clone();
        let mut name = None;
        let mut end = |path: &mut Path, name: &mut Option<String>| {
            if path.len() > prefix.len() {
                let own = if path.last().is_some_and(|last| last == "self") {
                    path.get(path.len().wrapping_sub(2))
                } else {
                    path.last()
                };
                let name = name.take().or(own.cloned()).unwrap_or_default();
                let path = path.clone();
                self.uses.push(Use {
                    path,
                    name,
                    is_reexport,
                });
            }
            path.truncate(prefix.len());
        };
        let mut groups: Vec<Path> = Vec::new();
        while let Some(token) = tokens.next() {
            match token {
                "::" => {}
                "as" => name = tokens.next().map(Into::into),
                "," => end(&mut path, &mut name),
                "{" => {
                    let mut inner: Vec<&str> = Vec::new();
                    let mut depth = 1;
                    for token in tokens.by_ref() {
                        depth += i32::from(token == "{");
                        depth -= i32::from(token == "}");
                        if depth == 0 {
                            break;
                        }
                        inner.push(token);
                    }
                    groups.push(std::mem::replace(&mut path, prefix.clone()));
                    groups.push(inner.into_iter().map(Into::into).collect());
                }
                word => path.push(word.into()),
            }
        }
        end(&mut path, &mut name);
        for group in groups.chunks_exact(2) {
            let inner: Vec<&str> = group[1].iter().map(String::as_str).collect();
            self.take_use(&mut inner.into_iter(), &group[0], is_reexport);
        }
    }
}

fn is_word(token: &str) -> bool {
    token.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

/// Words, `::`, and all other characters separately.
fn tokens(code: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut rest = code.trim_start();
    while let Some(first) = rest.chars().next() {
        let is_part = |c: char| c.is_alphanumeric() || c == '_';
        let length = match first {
            ':' if rest.starts_with("::") => 2,
            first if is_part(first) => rest.find(|c| !is_part(c)).unwrap_or(rest.len()),
            first => first.len_utf8(),
        };
        tokens.push(&rest[..length]);
        rest = rest[length..].trim_start();
    }
    tokens
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(files: &[(&str, &str)]) -> Faults {
        let source = |(path, text): &(&str, &str)| Source {
            path: format!("crates/x/src/{path}.rs"),
            text: (*text).into(),
        };
        let sources: Vec<Source> = files.iter().map(source).collect();
        check(&sources)
    }

    #[test]
    fn files_that_need_each_other_are_found() {
        let lib = ("lib", "mod a; mod b; pub use a::A; pub use b::{B, c as d};");
        let a = ("a", "use crate::B; pub struct A;");
        let b = ("b", "pub struct B(crate::A); pub fn c() {}");
        let expected = "crates/x: files in a circle, move what they share into one that needs none of them: a, b";
        assert_eq!(faults(&[lib, a, b]), [expected]);
        let b = ("b", "pub struct B; pub fn c() {}");
        assert_eq!(faults(&[lib, a, b]), Faults::new());
        let renamed = ("a", "use crate::d; pub struct A;");
        let b = ("b", "use super::A; pub struct B; pub fn c() {}");
        assert_eq!(faults(&[lib, renamed, b]), [expected]);
        // A path through an imported module or a child module.
        let through = ("a", "use crate::b; pub struct A; fn f() { b::c() }");
        assert_eq!(faults(&[lib, through, b]), [expected]);
        let root = ("lib", "mod a; pub struct B; fn f() -> a::A {}");
        let child = ("a", "pub struct A(super::B);");
        assert_eq!(faults(&[root, child]).len(), 1);
    }

    #[test]
    fn tests_comments_texts_and_reexports_are_no_needs() {
        let lib = ("lib", "mod a; mod b; pub use a::A; pub use b::B;");
        let a = ("a", "use crate::B; pub struct A;");
        for b in [
            "pub struct B; // crate::A",
            "pub struct B; const C: &str = \"crate::A\";",
            "pub struct B;\n#[cfg(test)]\nmod tests {\n use crate::A;\n}",
            "pub struct B;\n#[cfg(all(test, unix))]\nmod tests {\n use crate::A;\n}",
            "pub struct B; pub use crate::A as D;",
            "pub struct B; use other::A;",
        ] {
            assert_eq!(faults(&[lib, a, ("b", b)]), Faults::new(), "{b}");
        }
        let tests = ("b/tests", "use crate::A;");
        assert_eq!(
            faults(&[lib, a, ("b", "pub struct B;"), tests]),
            Faults::new()
        );
    }
}
