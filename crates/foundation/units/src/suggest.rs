//! "Did you mean": the nearest of a list of names.

/// The candidate nearest to `name` by edit distance, if it is near enough for a likely typo.
///
/// ```
/// assert_eq!(clearway_units::nearest("kmni", ["kmin", "kmax", "pmax"]), Some("kmin"));
/// assert_eq!(clearway_units::nearest("colour", ["kmin", "kmax"]), None);
/// ```
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let limit = (name.chars().count() / 3).max(2);
    // In insertions, deletions, substitutions and swaps of neighbours.
    let distance = |candidate| strsim::osa_distance(name, candidate);
    candidates
        .into_iter()
        .map(|candidate| (distance(candidate), candidate))
        .filter(|&(distance, candidate)| distance <= limit && distance < candidate.chars().count())
        .min()
        .map(|(_, candidate)| candidate)
}

/// Suggestion in place of an unknown name: the [`nearest`] known name, if any, and `known`, a fragment that lists the known names (may be
/// empty).
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
