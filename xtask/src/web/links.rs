//! Links and pictures of the book as a site: each must lead to a file of the site, and to an element of it if it names one.

use crate::Faults;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

/// A link of a page: the file that it leads to, relative to the site, and the element. Without a file it leads out of the site.
struct Link<'a> {
    text: &'a str,
    file: Option<PathBuf>,
    element: &'a str,
}

/// Page for addresses that do not exist, whose links are relative to the root of a server.
const MISSING: &str = "404.html";

/// Faults of the links of all pages in a folder.
pub(super) fn check(site: &Path) -> Faults {
    let mut pages: BTreeMap<PathBuf, String> = BTreeMap::new();
    let entries = std::fs::read_dir(site).into_iter().flatten().flatten();
    for entry in entries {
        let name = PathBuf::from(entry.file_name());
        if name.extension().is_some_and(|end| end == "html") && name != Path::new(MISSING) {
            match std::fs::read_to_string(entry.path()) {
                Ok(text) => _ = pages.insert(name, text),
                Err(error) => return vec![format!("{}: {error}", entry.path().display())],
            }
        }
    }
    if pages.is_empty() {
        return vec![format!("{}: there are no pages", site.display())];
    }
    let elements: BTreeMap<&Path, BTreeSet<&str>> = pages
        .iter()
        .map(|(name, text)| (name.as_path(), values(text, " id=\"").collect()))
        .collect();
    let mut faults = Faults::new();
    for (name, text) in &pages {
        for link in links(name, text) {
            let is_there = link
                .file
                .is_some_and(|file| match elements.get(file.as_path()) {
                    Some(elements) => link.element.is_empty() || elements.contains(link.element),
                    None => site.join(file).exists(),
                });
            if !is_there {
                faults.push(format!("{}: {} leads nowhere", name.display(), link.text));
            }
        }
    }
    println!("book: {} pages, whose links were checked", pages.len());
    faults
}

/// The links and sources of a page that are part of the site.
fn links<'a>(page: &'a Path, text: &'a str) -> impl Iterator<Item = Link<'a>> {
    let all = values(text, " href=\"").chain(values(text, " src=\""));
    let own = all.filter(|link| !link.contains("://") && !link.starts_with("mailto:"));
    own.map(|link| {
        let (file, element) = link.split_once('#').unwrap_or((link, ""));
        Link {
            text: link,
            file: match file {
                "" => Some(page.to_owned()),
                file => normal(file),
            },
            element,
        }
    })
}

/// The values of an attribute.
fn values<'a>(text: &'a str, attribute: &'a str) -> impl Iterator<Item = &'a str> {
    let rests = text.split(attribute).skip(1);
    rests.filter_map(|rest| Some(rest.split_once('"')?.0))
}

/// The path without `.` and `..`, and a folder as its `index.html`; `None` if it leads out of the site.
fn normal(path: &str) -> Option<PathBuf> {
    let mut normal = PathBuf::new();
    for part in Path::new(path).components() {
        match part {
            Component::Normal(name) => normal.push(name),
            Component::CurDir => {}
            Component::ParentDir => normal.pop().then_some(())?,
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    if path.ends_with('/') || normal.as_os_str().is_empty() {
        normal.push("index.html");
    }
    Some(normal)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(site: &Path, name: &str, body: &str) {
        let file = site.join(name);
        std::fs::create_dir_all(file.parent().unwrap_or(site)).unwrap();
        std::fs::write(file, body).unwrap();
    }

    #[test]
    fn links_that_lead_nowhere_are_found() {
        let folder = clearway_testing::Folder::new("links");
        let site = folder.join("site");
        write(&site, "images/there.png", "");
        write(&site, "playground/index.html", "");
        let good = "<h2 id=\"here\"><a href=\"#here\"></a><a href=\"./other.html#there\"></a><a href=\"playground/\"></a>\
            <img src=\"images/there.png\"><a href=\"https://example.org/#x\"></a>";
        write(&site, "one.html", good);
        write(
            &site,
            "other.html",
            "<p id=\"there\"><a href=\"one.html\"></a>",
        );
        assert_eq!(check(&site), Faults::new());
        let bad = "<a href=\"#there\"></a><a href=\"other.html#gone\"></a><a href=\"gone.html\"></a>\
            <a href=\"../beside.txt\"></a><a href=\"/one.html\"></a><img src=\"images/gone.png\">";
        write(&folder, "beside.txt", "");
        write(&site, "bad.html", bad);
        let faults = check(&site);
        let expected = [
            "#there",
            "other.html#gone",
            "gone.html",
            "../beside.txt",
            "/one.html",
            "images/gone.png",
        ];
        let expected = expected.map(|link| format!("bad.html: {link} leads nowhere"));
        assert_eq!(faults, expected);
        assert_eq!(check(&folder.join("none")).len(), 1);
    }
}
