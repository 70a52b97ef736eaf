//! Explanatory sections of the report, on screens of several widths and in both colour schemes.

use crate::browser::{Browser, CONTRAST};
use crate::common::Bench;
use std::path::PathBuf;

/// Settings that cause warnings, and two sections of the workload, one of them with several size classes and a long name without a place to
/// break.
const MIX: &str = r#"
name = "mix"
topology = { kind = "leaf-spine", hosts = 32, hosts-per-leaf = 8, link-rate = "100Gbps" }
transport = { max-cwnd = "90%bdp" }

[[workload]]
name = "background_traffic_of_all_other_tenants"
kind = "poisson"
load = 0.3
duration = "200us"

[[workload]]
name = "burst"
kind = "incast"
senders = 8
message = "200KB"
start = "50us"
"#;

const SCREENS: [(u32, u32); 2] = [(1200, 900), (390, 844)];
const SCHEMES: [&str; 2] = ["light", "dark"];

/// Functions that the checks share. `parts` are the explanatory sections.
const HELPERS: &str = r#"
    const parts = [...document.querySelectorAll('#sections, #why')];
    const notes = document.querySelectorAll('header ~ .warning');
    const within = (selector) => [...notes, ...parts]
        .flatMap((part) => [part, ...part.querySelectorAll('*')]).filter((element) => element.matches(selector));
    const paperOf = (element) => {
        for (let at = element; at; at = at.parentElement) {
            const colour = channels(getComputedStyle(at).backgroundColor);
            if (colour[3] === 255) return colour;
        }
        return [255, 255, 255];
    };
"#;

fn script(body: &str) -> String {
    format!("{CONTRAST}\n{HELPERS}\n{body}")
}

fn explained(bench: &Bench) -> PathBuf {
    bench.write("mix.toml", MIX);
    bench.summary(&["mix.toml", "--why"]);
    bench.path("results/report.html")
}

/// Checks that only scrolling boxes of tables are wider than the page, and that the keyboard can reach these boxes.
fn nothing_sticks_out(browser: &Browser, width: u32) {
    let wide = browser.number("return document.documentElement.scrollWidth;");
    assert!(wide <= f64::from(width), "{wide} pixels of {width}");
    let outside = browser.text(&script(
        "return within('*').filter((element) => !element.closest('.scroll > *, svg > *'))
             .filter((element) => element.getClientRects().length > 0)
             .filter((element) => element.getBoundingClientRect().right > innerWidth + 0.5 || element.getBoundingClientRect().left < -0.5)
             .map((element) => element.tagName + ' ' + element.className + ' ' + element.textContent.slice(0, 60)).join('; ');",
    ));
    assert_eq!(outside, "", "at {width} pixels");
    let loose = browser.text(&script(
        "return within('table').map((table) => table.parentElement)
             .filter((box) => getComputedStyle(box).overflowX !== 'auto' || box.tabIndex !== 0).map((box) => box.outerHTML).join('; ');",
    ));
    assert_eq!(loose, "", "tables that do not scroll at {width} pixels");
}

/// Number of tables that are wider than their box and scroll in it.
fn scrolling(browser: &Browser) -> f64 {
    browser.number(&script(
        "for (const details of within('details')) details.open = true;
         return within('.scroll').filter((box) => {
             box.scrollLeft = 100000;
             return box.scrollWidth > box.clientWidth && box.scrollLeft === box.scrollWidth - box.clientWidth;
         }).length;",
    ))
}

/// Checks that all texts have the contrast of WCAG 2.1, level AA.
fn texts_can_be_read(browser: &Browser, scheme: &str) {
    let texts = "within('*').filter((element) => [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim()))
         .filter((element) => !element.closest('svg title, script'))";
    let count = browser.number(&script(&format!("return {texts}.length;")));
    assert!(count > 100.0, "{count} texts");
    let pale = browser.text(&script(&format!(
        "return {texts}.map((element) => {{
             const style = getComputedStyle(element);
             const ink = channels(element.closest('svg') ? style.fill : style.color);
             return [contrast(ink, paperOf(element)), element.textContent];
         }}).filter(([ratio]) => ratio < 4.5).map(([ratio, text]) => ratio.toFixed(2) + ' ' + text).join('; ');"
    )));
    assert_eq!(pale, "", "{scheme}");
    let paper = browser.number(&script("return luminance(paperOf(document.body));"));
    assert_eq!(paper > 0.5, scheme == "light", "{scheme}: {paper}");
}

#[test]
fn sections_that_explain_fit_every_screen_in_both_colour_schemes() {
    let Some(browser) = Browser::start("layout") else {
        return;
    };
    let bench = Bench::new("report-layout");
    let file = explained(&bench);
    for (width, height) in SCREENS {
        browser.emulate_screen(width, height);
        for scheme in SCHEMES {
            browser.prefer_colours(scheme);
            browser.open(&file);
            assert_eq!(
                browser.number("return parseFloat(innerWidth);"),
                f64::from(width)
            );
            nothing_sticks_out(&browser, width);
            let tables = scrolling(&browser);
            // On a phone several tables are wider than the screen. With all parts open, nothing else sticks out.
            assert!(width > 390 || tables >= 2.0, "{tables} tables scroll");
            nothing_sticks_out(&browser, width);
            texts_can_be_read(&browser, scheme);
            let log = browser.log();
            assert!(log.is_empty(), "the console says {log:?}");
        }
    }
}

#[test]
fn sections_that_explain_have_headings_links_and_texts_for_those_who_do_not_see() {
    let Some(browser) = Browser::start("layout-texts") else {
        return;
    };
    let bench = Bench::new("report-texts");
    browser.open(&explained(&bench));
    let headings = browser.text(&script(
        "return parts.map((part) => document.getElementById(part.getAttribute('aria-labelledby')).textContent).join('; ');",
    ));
    assert_eq!(headings, "By section of the workload; Why flows were slow");
    // The table names the costliest links of the fabric, the downlink of the receiver first.
    let links = browser.text(&script(
        "const heading = within('h3').find((heading) => heading.textContent === 'Links that cost these flows most');
         const table = heading.nextElementSibling.querySelector('table');
         return [...table.tBodies[0].rows].map((row) => row.cells[0].textContent).join(' ');",
    ));
    assert!(links.starts_with("leaf0-host0"), "{links}");
    let rows = browser.text(&script(
        "return [...document.querySelectorAll('#sections table tbody th[scope=row]')].map((cell) => cell.textContent).join('; ');",
    ));
    assert!(
        rows.contains("background_traffic_of_all_other_tenants, ") && rows.contains("burst"),
        "{rows}"
    );
    let note = browser.text(&script(
        "return [...notes].map((note) => note.getAttribute('role') + ': ' + note.textContent).join('; ');",
    ));
    assert!(
        note.starts_with("status: transport.max-cwnd = 90%bdp is "),
        "{note}"
    );
    bars(&browser);
}

/// Checks that each bar and each of its parts has a description, and that the parts fill the bar.
fn bars(browser: &Browser) {
    let count = browser.number(&script("return within('.delays svg').length;"));
    assert_eq!(count, 5.0);
    let silent = browser.text(&script(
        "return within('.delays svg').filter((bar) => {
             const label = bar.getAttribute('aria-label') ?? '';
             return bar.getAttribute('role') !== 'img' || !/^Flow \\d+: .* [mµn]s /.test(label) || !bar.closest('figure').querySelector('figcaption');
         }).map((bar) => bar.outerHTML).join('; ');",
    ));
    assert_eq!(silent, "", "bars without a text");
    let nameless = browser.text(&script(
        "return within('.delays rect').filter((part) => !/^[a-z ]+( at \\S+)?: .*%$/.test(part.querySelector('title')?.textContent ?? ''))
             .map((part) => part.outerHTML).join('; ');",
    ));
    assert_eq!(nameless, "", "parts without a text");
    let gap = browser.number(&script(
        "const share = (bar) => [...bar.querySelectorAll('rect')].reduce((sum, part) => sum + part.width.baseVal.value, 0) / bar.viewBox.baseVal.width;
         return Math.max(...within('.delays svg').map((bar) => Math.abs(1 - share(bar))));",
    ));
    assert!(gap < 0.001, "{gap}");
    // Each colour of a bar is in the legend.
    let unknown = browser.text(&script(
        "const known = within('.parts li').map((item) => item.className);
         return within('.delays rect').map((part) => part.getAttribute('class')).filter((name) => !known.includes(name)).join(' ');",
    ));
    assert_eq!(unknown, "");
}
