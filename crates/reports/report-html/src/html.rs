//! HTML elements of pages.

use std::fmt::{self, Display, Write as _};

/// A text in HTML: content or a quoted attribute.
pub(crate) struct Escaped<'a>(pub(crate) &'a str);

impl Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in self.0.chars() {
            match c {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                '\'' => f.write_str("&#39;")?,
                c => f.write_char(c)?,
            }
        }
        Ok(())
    }
}

/// Format of a table column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Column {
    /// Words.
    Text,
    /// Figures, aligned to the right.
    Number,
    /// Code: keys, values, hashes.
    Code,
}

/// A table of texts. The first column names the row.
pub(crate) fn table(columns: &[(&str, Column)], rows: &[Vec<String>]) -> String {
    let class = |column: Column| match column {
        Column::Text => "",
        Column::Number => " class=\"n\"",
        Column::Code => " class=\"code\"",
    };
    let mut html = String::from("<div class=\"scroll\" tabindex=\"0\"><table>\n<thead><tr>");
    for (name, column) in columns {
        let _ = write!(
            html,
            "<th scope=\"col\"{}>{}</th>",
            class(*column),
            Escaped(name)
        );
    }
    html.push_str("</tr></thead>\n<tbody>\n");
    for row in rows {
        html.push_str("<tr>");
        for (place, (cell, (_, column))) in row.iter().zip(columns).enumerate() {
            let (open, close) = if place == 0 {
                ("th scope=\"row\"", "th")
            } else {
                ("td", "td")
            };
            let _ = write!(
                html,
                "<{open}{}>{}</{close}>",
                class(*column),
                Escaped(cell)
            );
        }
        html.push_str("</tr>\n");
    }
    html.push_str("</tbody></table></div>");
    html
}

/// A paragraph.
pub(crate) fn paragraph(text: &str) -> String {
    format!("<p>{}</p>", prose(text))
}

/// Text for people; text between two backticks is code.
pub(crate) fn prose(text: &str) -> String {
    let parts: Vec<&str> = text.split('`').collect();
    if parts.len().is_multiple_of(2) {
        // A backtick without a closing one.
        return Escaped(text).to_string();
    }
    let mut html = String::new();
    for (place, part) in parts.into_iter().enumerate() {
        let _ = match place % 2 {
            0 => write!(html, "{}", Escaped(part)),
            _ => write!(html, "<code>{}</code>", Escaped(part)),
        };
    }
    html
}

/// The most important figures: name, value, and the text under the value.
pub(crate) fn tiles_of(figures: &[(&str, String, String)]) -> String {
    let mut html = String::from("<dl class=\"tiles\">\n");
    for (name, value, under) in figures {
        let _ = writeln!(
            html,
            "<div><dt>{name}</dt><dd><b>{}</b> <span>{}</span></dd></div>",
            Escaped(value),
            Escaped(under)
        );
    }
    html + "</dl>"
}

/// A part that opens on demand; `html` is already escaped.
pub(crate) fn details(summary: &str, html: &str) -> String {
    format!(
        "<details><summary>{}</summary>\n{html}\n</details>",
        Escaped(summary)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_a_meaning_in_html_is_escaped() {
        let evil = "<img src=x onerror='a()'> & \"b\"";
        let text = Escaped(evil).to_string();
        assert_eq!(
            text,
            "&lt;img src=x onerror=&#39;a()&#39;&gt; &amp; &quot;b&quot;"
        );
        let cell = table(&[(evil, Column::Text)], &[vec![evil.into()]]);
        assert!(!cell.contains("<img"), "{cell}");
        assert!(!details(evil, &paragraph(evil)).contains("<img"));
        assert!(!paragraph(&format!("`{evil}`")).contains("<img"));
    }

    #[test]
    fn what_stands_between_backticks_is_code() {
        for (text, html) in [
            ("`a < b`: so", "<p><code>a &lt; b</code>: so</p>"),
            ("a `b` c `d`", "<p>a <code>b</code> c <code>d</code></p>"),
            ("a ` b", "<p>a ` b</p>"),
            ("", "<p></p>"),
        ] {
            assert_eq!(paragraph(text), html);
        }
    }
}
