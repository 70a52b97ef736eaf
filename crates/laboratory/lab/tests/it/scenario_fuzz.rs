//! Mutated scenarios: never a panic, always an error with a fix, and what is read survives being written and read again.
//!
//! `CLEARWAY_FUZZ_ITERATIONS` sets the number of mutants (default 3000, 50 000 if thorough).

use clearway_lab::{Laboratory, builtin_scenarios};
use clearway_testing::{cases, number};
use clearway_units::{Purpose, RandomStream};

const WORDS: [&str; 24] = [
    "kind",
    "=",
    "\"",
    "[topology]",
    "[[workload]]",
    "[workload]",
    "[transport]",
    "[switch]",
    "hosts",
    "-1",
    "1e300",
    "99999999999999999999",
    "\"5bdp\"",
    "\"1us\"",
    "true",
    "[]",
    "{ a = 1 }",
    "ecn",
    ".",
    "kmin",
    "file",
    "\"x.cm\"",
    "#",
    "\u{1F980}",
];

/// Deletes, doubles, swaps or replaces a word or a line.
fn mutate(text: &str, random: &mut RandomStream) -> String {
    let mut lines: Vec<String> = text.lines().map(String::from).collect();
    let line = random.below(lines.len() as u32) as usize;
    match random.below(5) {
        0 => drop(lines.remove(line)),
        1 => lines.insert(line, lines[line].clone()),
        2 => {
            let other = random.below(lines.len() as u32) as usize;
            lines.swap(line, other);
        }
        _ => {
            let mut words: Vec<&str> = lines[line].split(' ').collect();
            let word = random.below(words.len() as u32) as usize;
            words[word] = WORDS[random.below(WORDS.len() as u32) as usize];
            lines[line] = words.join(" ");
        }
    }
    if lines.is_empty() {
        String::new()
    } else {
        lines.join("\n")
    }
}

#[test]
fn mutated_scenarios_are_read_or_refused() {
    let iterations = number("CLEARWAY_FUZZ_ITERATIONS", cases(3_000, 50_000).into());
    let laboratory = Laboratory::new();
    let mut random = RandomStream::new(4, Purpose::Test, 4);
    let (mut read, mut refused) = (0, 0);
    for round in 0..iterations {
        let (_, text) = builtin_scenarios()[round as usize % builtin_scenarios().len()];
        let mut mutant = laboratory
            .read_any("full", text, None, &[])
            .expect("built in")
            .resolved();
        for _ in 0..=random.below(4) {
            mutant = mutate(&mutant, &mut random);
        }
        match laboratory.read_any("mutant", &mutant, None, &[]) {
            Ok(scenario) => {
                read += 1;
                let again = laboratory.read_any("again", &scenario.resolved(), None, &[]);
                // Not the scenarios themselves: what has become the name of a file is an absolute path in the text.
                let again = again.map(|again| again.resolved());
                assert_eq!(again, Ok(scenario.resolved()), "{mutant}");
            }
            Err(error) => {
                refused += 1;
                assert!(
                    error.place.is_some() && !error.fix.is_empty(),
                    "{error}\n{mutant}"
                );
            }
        }
    }
    assert!(
        read > iterations / 20 && refused > iterations / 10,
        "{read} read, {refused} refused"
    );
}
