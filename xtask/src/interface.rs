//! Public items of the crates that others may use, one per line, in `docs/interfaces`.
//!
//! The items come from the pages that `cargo doc` writes, in which macros are expanded and re-exports resolved. The sources do not show
//! that, and the JSON of rustdoc needs a nightly compiler. A line has the path of an item and a declaration: of the item, of a field,
//! variant or method, or of an implemented trait.

use crate::{Faults, output};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const FOLDER: &str = "docs/interfaces";
/// Crates that others may use (`docs/interfaces/README.md`), and crates whose types appear in their interfaces.
const CRATES: [&str; 8] = [
    "engine",
    "transport",
    "fabric",
    "udp",
    "planner",
    "formats",
    "units",
    "workload",
];
const HEADER: &str = "\
# Public items, a line each: path and declaration. Written by `cargo xtask interface`; `--check` fails if an item differs.
";

/// Use of the lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Write them.
    Write,
    /// Compare them with the crates.
    Check,
}

/// Items, one per line.
type Items = BTreeSet<String>;

/// Writes or checks the lists of all crates.
pub(crate) fn run(root: &Path, mode: Mode) -> Faults {
    let pages = match document(root) {
        Ok(pages) => pages,
        Err(fault) => return vec![fault],
    };
    let one = |name: &&str| one(root, name, &pages, mode).err();
    CRATES.iter().filter_map(one).collect()
}

/// Documents the workspace, as the gate does, so that nothing is built twice. Returns the folder of the pages.
fn document(root: &Path) -> Result<PathBuf, String> {
    let cargo = || {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.current_dir(root);
        cargo
    };
    output(cargo().args(["doc", "--workspace", "--no-deps", "--quiet"]))?;
    let metadata = output(cargo().args(["metadata", "--no-deps", "--format-version", "1"]))?;
    let metadata: Value =
        serde_json::from_str(&metadata).map_err(|error| format!("cargo metadata: {error}"))?;
    let target = metadata["target_directory"].as_str();
    Ok(Path::new(target.ok_or("cargo has no target folder")?).join("doc"))
}

fn one(root: &Path, name: &str, pages: &Path, mode: Mode) -> Result<(), String> {
    let mut items = Items::new();
    module(&pages.join(format!("clearway_{name}")), "", &mut items)?;
    if items.is_empty() {
        return Err(format!(
            "clearway-{name}: rustdoc writes pages in which no item is found; fix: adapt xtask/src/interface.rs"
        ));
    }
    let file = format!("{FOLDER}/clearway-{name}.txt");
    let path = root.join(&file);
    if mode == Mode::Write {
        let lines: String = items.iter().map(|item| format!("{item}\n")).collect();
        return fs::write(path, HEADER.to_string() + &lines)
            .map_err(|error| format!("{file}: {error}"));
    }
    let listed = fs::read_to_string(path).unwrap_or_default();
    let listed = listed.lines().filter(|line| !line.starts_with('#'));
    match differences(&listed.map(str::to_string).collect(), &items) {
        differences if differences.is_empty() => Ok(()),
        differences => Err(format!(
            "{file}: the public interface of clearway-{name} has changed\n{differences}  \
             fix: run `cargo xtask interface`, and write in CHANGELOG.md, under Unreleased, what users of the crate have to change"
        )),
    }
}

/// Removed and added items, as in a diff.
fn differences(listed: &Items, found: &Items) -> String {
    let gone = listed.difference(found).map(|item| format!("  -{item}\n"));
    let new = found.difference(listed).map(|item| format!("  +{item}\n"));
    gone.chain(new).collect()
}

/// Collects the items of a module and of its submodules. `path` ends in `::` unless the module is the crate root.
fn module(folder: &Path, path: &str, items: &mut Items) -> Result<(), String> {
    let page = read(&folder.join("index.html"))?;
    items.extend(declarations(&page).map(|item| format!("{path}{item}")));
    // A JavaScript object with the names of all items by kind.
    let sidebar = read(&folder.join("sidebar-items.js"))?;
    let names = sidebar.find('{').zip(sidebar.rfind('}'));
    let names = names.map_or("", |(from, to)| &sidebar[from..=to]);
    let names: Value = serde_json::from_str(names)
        .map_err(|error| format!("{}/sidebar-items.js: {error}", folder.display()))?;
    for (kind, names) in names.as_object().into_iter().flatten() {
        for name in names.as_array().into_iter().flatten() {
            let name = name.as_str().unwrap_or_default();
            if kind == "mod" {
                items.insert(format!("{path}{name}: pub mod {name}"));
                module(&folder.join(name), &format!("{path}{name}::"), items)?;
                continue;
            }
            let page = read(&folder.join(format!("{kind}.{name}.html")))?;
            let own = own_declaration(&page).ok_or(format!("{kind} {name} has no declaration"))?;
            items.insert(format!("{path}{name}: {own}"));
            items.extend(declarations(&page).map(|item| format!("{path}{name}: {item}")));
        }
    }
    Ok(())
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

/// Declaration of the item of a page, without its fields, variants or methods.
fn own_declaration(page: &str) -> Option<String> {
    let declaration = text(between(page, "item-decl\"><code>", "</code></pre>")?);
    // Attributes such as `#[non_exhaustive]` come first. For a macro the name is enough.
    let kinds = ["struct ", "enum ", "union ", "trait "].map(|kind| format!("pub {kind}"));
    let has_members = declaration.starts_with("macro_rules! ")
        || kinds.iter().any(|kind| declaration.contains(kind));
    Some(match declaration.split_once(" {") {
        Some((head, members)) if has_members && members.contains("/* private fields */") => {
            format!("{head} {{ /* private fields */ }}")
        }
        Some((head, _)) if has_members => head.to_string(),
        _ => declaration,
    })
}

/// Part of the page of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Own,
    Traits,
    AutoTraits,
    /// Methods of the target of `Deref`, implementations for everything, types that implement a trait.
    Others,
}

/// Declarations on a page: re-exports, fields, variants, methods, implemented traits, and the auto traits that are missing.
fn declarations(page: &str) -> impl Iterator<Item = String> + '_ {
    let mut part = Part::Own;
    let places = page.match_indices(" id=\"");
    places.filter_map(move |(at, before)| {
        let (id, rest) = page[at + before.len()..].split_once('"')?;
        let kind = id.split('.').next().unwrap_or(id);
        match kind {
            "trait-implementations" => part = Part::Traits,
            "synthetic-implementations" => part = Part::AutoTraits,
            "implementors" | "foreign-impls" | "blanket-implementations" => part = Part::Others,
            _ if kind.starts_with("deref-methods") => part = Part::Others,
            _ => {}
        }
        let header = |end| Some(text(between(rest, "class=\"code-header\">", end)?));
        let is_impl = kind == "impl" || kind.starts_with("impl-");
        match (part, kind) {
            (Part::Own, "reexport") => Some(text(between(rest, "<code>", "</code>")?)),
            (Part::Own, "structfield") => {
                Some(format!("pub {}", text(between(rest, "<code>", "</code>")?)))
            }
            (Part::Own, "variant") => match id.split('.').collect::<Vec<_>>()[..] {
                [_, variant, "field", _] => {
                    let field = text(between(rest, "<code>", "</code>")?);
                    Some(format!("{variant} {{ {field} }}"))
                }
                _ => header("</h3>"),
            },
            (Part::Own, "method") => header("</h4>"),
            // A type that implements the trait must have the item.
            (Part::Own, "tymethod") => Some(format!("required {}", header("</h4>")?)),
            (Part::Own | Part::Traits, "associatedconstant" | "associatedtype") => header("</h4>"),
            // Bounds of the methods that follow.
            (Part::Own, _) if is_impl => header("</h3>").filter(|header| header.contains('<')),
            (Part::Traits, _) if is_impl => {
                header("</h3>").filter(|header| !header.contains("StructuralPartialEq"))
            }
            (Part::AutoTraits, _) if is_impl => header("</h3>")
                .filter(|header| header.contains("!Send for") || header.contains("!Sync for")),
            _ => None,
        }
    })
}

/// Text between `from` and `to`.
fn between<'a>(text: &'a str, from: &str, to: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(from)?;
    Some(rest.split_once(to)?.0)
}

/// Text of HTML on one line: without tags, summaries of folded parts, and marks for readers.
fn text(html: &str) -> String {
    let mut text = String::new();
    let mut rest = html;
    while let Some((before, tag)) = rest.split_once('<') {
        text.push_str(before);
        let end = if tag.starts_with("summary") {
            "</summary>"
        } else {
            ">"
        };
        rest = tag.split_once(end).map_or("", |(_, rest)| rest);
    }
    text.push_str(rest);
    for (from, to) in [
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&#60;", "<"),
        ("&#62;", ">"),
        ("&quot;", "\""),
        ("&#34;", "\""),
        ("&#39;", "'"),
        ("&nbsp;", " "),
        ("&#38;", "&"),
        ("&amp;", "&"),
        ("ⓘ", ""),
    ] {
        text = text.replace(from, to);
    }
    let words: Vec<&str> = text.split_whitespace().collect();
    // Undo the line breaks of rustdoc.
    let line = words.join(" ");
    line.replace("( ", "(").replace(", )", ")")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Page of a struct, cut down to the elements that rustdoc writes around declarations.
    const PAGE: &str = r##"
<li><a href="#method.new">new</a></li>
<pre class="rust item-decl"><code>pub struct <a href="x">Wire</a>&lt;T&gt; {
    pub rate: Rate,<span class="comment">/* private fields */</span>
}</code></pre>
<span id="structfield.rate" class="structfield"><a href="#structfield.rate">§</a><code>rate: <a>Rate</a></code></span>
<h2 id="implementations">Implementations</h2>
<section id="impl-Wire%3CT%3E"><h3 class="code-header">impl&lt;T: <a>Copy</a>&gt; Wire&lt;T&gt;</h3></section>
<section id="method.new"><a>Source</a><h4 class="code-header">pub fn <a>new</a>(
    rate: Rate,
    name: &amp;'static str,
) -&gt; Self</h4></section>
<h2 id="deref-methods-Packet">Methods from Deref</h2>
<section id="method.trim"><h4 class="code-header">pub fn trim(&amp;self)</h4></section>
<h2 id="trait-implementations">Trait Implementations</h2>
<section id="impl-Clone-for-Wire"><h3 class="code-header">impl Clone for Wire</h3></section>
<section id="method.clone"><h4 class="code-header">fn clone(&amp;self) -> Self</h4></section>
<section id="impl-StructuralPartialEq-for-Wire"><h3 class="code-header">impl StructuralPartialEq for Wire</h3></section>
<h2 id="synthetic-implementations">Auto Trait Implementations</h2>
<section id="impl-Send-for-Wire"><h3 class="code-header">impl Send for Wire</h3></section>
<section id="impl-Sync-for-Wire"><h3 class="code-header">impl !Sync for Wire</h3></section>
<h2 id="blanket-implementations">Blanket Implementations</h2>
<section id="impl-Any-for-T"><h3 class="code-header">impl&lt;T&gt; Any for T</h3></section>
"##;

    #[test]
    fn members_and_traits_are_declarations_but_what_all_types_have_is_not() {
        let own = own_declaration(PAGE);
        assert_eq!(
            own.as_deref(),
            Some("pub struct Wire<T> { /* private fields */ }")
        );
        assert_eq!(
            declarations(PAGE).collect::<Vec<_>>(),
            [
                "pub rate: Rate",
                "impl<T: Copy> Wire<T>",
                "pub fn new(rate: Rate, name: &'static str) -> Self",
                "impl Clone for Wire",
                "impl !Sync for Wire",
            ]
        );
    }

    #[test]
    fn fields_of_variants_and_folded_declarations_are_read() {
        let page = r##"<pre class="rust item-decl"><code>#[non_exhaustive]
pub enum Header {
<details><summary class="hideme"><span>Show 9 variants</span></summary>Data { psn: u32 },</details>}</code></pre>
<section id="variant.Data" class="variant"><a>§</a><h3 class="code-header">Data</h3></section>
<span id="variant.Data.field.psn"><code>psn: <a>u32</a></code></span>"##;
        assert_eq!(
            own_declaration(page).as_deref(),
            Some("#[non_exhaustive] pub enum Header")
        );
        assert_eq!(
            declarations(page).collect::<Vec<_>>(),
            ["Data", "Data { psn: u32 }"]
        );
        let function = "item-decl\"><code>pub fn f() -&gt; [u8; { 4 }]</code></pre>";
        let function = own_declaration(function);
        assert_eq!(function.as_deref(), Some("pub fn f() -> [u8; { 4 }]"));
    }

    #[test]
    fn modules_are_followed_and_items_that_went_or_came_are_named() {
        let root = std::env::temp_dir().join(format!("xtask-interface-{}", std::process::id()));
        let inner = root.join("inner");
        fs::create_dir_all(&inner).unwrap();
        let write = |file: PathBuf, text: &str| fs::write(file, text).unwrap();
        write(
            root.join("sidebar-items.js"),
            r#"window.SIDEBAR_ITEMS = {"mod":["inner"]};"#,
        );
        let reexport = r#"<dt id="reexport.Time"><code>pub use units::<a>Time</a>;</code></dt>"#;
        write(root.join("index.html"), reexport);
        write(
            inner.join("sidebar-items.js"),
            r#"window.SIDEBAR_ITEMS = {"fn":["f"]};"#,
        );
        write(inner.join("index.html"), "");
        write(
            inner.join("fn.f.html"),
            "item-decl\"><code>pub fn f()</code></pre>",
        );
        let mut items = Items::new();
        module(&root, "", &mut items).unwrap();
        fs::remove_dir_all(&root).unwrap();
        let found = [
            "inner: pub mod inner",
            "inner::f: pub fn f()",
            "pub use units::Time;",
        ];
        assert_eq!(items, Items::from(found.map(str::to_string)));
        let listed = Items::from([found[0], found[1], "g: pub fn g()"].map(str::to_string));
        assert_eq!(
            differences(&listed, &items),
            "  -g: pub fn g()\n  +pub use units::Time;\n"
        );
    }
}
