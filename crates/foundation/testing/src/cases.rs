//! Numbers of cases.

/// Number of cases that a test tries: `usual`, or `thorough` if `CLEARWAY_THOROUGH` is 1, as `cargo xtask ci` sets it.
///
/// Both numbers run the same code. Assertions must hold with either number.
#[must_use]
pub fn cases(usual: u32, thorough: u32) -> u32 {
    match is_thorough(&std::env::var(THOROUGH).unwrap_or_default()) {
        true => thorough,
        false => usual,
    }
}

/// Number in the environment variable `name`; `otherwise` if it is not set.
///
/// # Panics
/// If the variable is set but is not a whole number.
#[must_use]
pub fn number(name: &str, otherwise: u64) -> u64 {
    match std::env::var(name) {
        Ok(text) => text
            .parse()
            .unwrap_or_else(|_| panic!("{name}={text}: no whole number")),
        Err(_) => otherwise,
    }
}

const THOROUGH: &str = "CLEARWAY_THOROUGH";

fn is_thorough(value: &str) -> bool {
    match value {
        "" | "0" => false,
        "1" => true,
        other => panic!("{THOROUGH}={other}: 0 or 1"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_asks_for_more_and_other_words_are_refused() {
        assert!(!is_thorough("") && !is_thorough("0") && is_thorough("1"));
        assert!(std::panic::catch_unwind(|| is_thorough("yes")).is_err());
    }

    #[test]
    fn a_variable_that_is_not_set_leaves_the_number() {
        assert_eq!(number("CLEARWAY_NO_SUCH_VARIABLE", 7), 7);
        // Cargo sets it for every test.
        assert!(std::panic::catch_unwind(|| number("CARGO_MANIFEST_DIR", 7)).is_err());
    }
}
