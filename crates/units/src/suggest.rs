//! "Did you mean": the nearest of a list of names.

/// The candidate that is nearest to `name` by edit distance, if one is near enough to be a likely slip.
///
/// ```
/// assert_eq!(clearway_units::nearest("kmni", ["kmin", "kmax", "pmax"]), Some("kmin"));
/// assert_eq!(clearway_units::nearest("colour", ["kmin", "kmax"]), None);
/// ```
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let limit = (name.chars().count() / 3).max(2);
    candidates
        .into_iter()
        .map(|candidate| (distance(name, candidate), candidate))
        .filter(|&(distance, candidate)| distance <= limit && distance < candidate.chars().count())
        .min()
        .map(|(_, candidate)| candidate)
}

/// Suggestion in place of an unknown name: the [`nearest`] known name if there is one, and `known`, a fragment that lists what there is
/// (may be empty).
///
/// ```
/// use clearway_units::{nearest, suggestion};
/// let keys = ["kmin", "kmax"];
/// assert_eq!(suggestion(nearest("kmni", keys), "the keys are: kmin, kmax"), "did you mean `kmin`? The keys are: kmin, kmax");
/// assert_eq!(suggestion(nearest("colour", keys), "the keys are: kmin, kmax"), "the keys are: kmin, kmax");
/// ```
pub fn suggestion(near: Option<&str>, known: &str) -> String {
    let Some(near) = near else {
        return known.into();
    };
    let mut rest = known.chars();
    match rest.next() {
        None => format!("did you mean `{near}`?"),
        Some(first) => {
            let first = first.to_uppercase();
            format!("did you mean `{near}`? {first}{}", rest.as_str())
        }
    }
}

/// Edit distance in insertions, deletions, substitutions and swaps of neighbours.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut rows = vec![vec![0; b.len() + 1]; a.len() + 1];
    for i in 0..=a.len() {
        for j in 0..=b.len() {
            rows[i][j] = if i == 0 || j == 0 {
                i + j
            } else {
                let substitution = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
                let mut best = substitution.min(rows[i - 1][j] + 1).min(rows[i][j - 1] + 1);
                if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                    best = best.min(rows[i - 2][j - 2] + 1);
                }
                best
            };
        }
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::distance;

    #[test]
    fn distances() {
        for (a, b, expected) in [
            ("", "", 0),
            ("ab", "ba", 1),
            ("spray", "sprya", 1),
            ("a", "b", 1),
        ]
        .into_iter()
        .chain([("link-rate", "linkrate", 1), ("", "abc", 3)])
        {
            assert_eq!(distance(a, b), expected, "{a} {b}");
        }
    }
}
