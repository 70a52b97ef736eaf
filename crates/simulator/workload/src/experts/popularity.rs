//! Popularity of experts, in whole numbers.

use crate::power::power;
use clearway_units::RandomStream;

/// The largest exponent of a Zipf distribution. With it the second expert gets 1/256 of the first expert's tokens.
pub const MOST_SKEW: f64 = 8.0;

/// Spread of tokens over experts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Popularity {
    /// All experts get the same number of tokens, to within one: in turn, in an order that is drawn.
    Balanced,
    /// The i-th most popular expert is drawn in proportion to i to the power of minus this exponent, from 0 to [`MOST_SKEW`]; with 0 all
    /// experts have the same probability. The order of the experts is also drawn.
    Zipf(f64),
}

/// Weights of a Zipf distribution with this exponent, from the most popular on. The largest is 2^32, none is zero.
pub(super) fn zipf(experts: u32, exponent: f64) -> Vec<u64> {
    const LARGEST: f64 = 4_294_967_296.0;
    let weight = |place: u32| (LARGEST / power(place.into(), exponent)) as u64;
    (1..=experts).map(|place| weight(place).max(1)).collect()
}

/// Draws without replacement among things that lie on a line, each as long as its weight.
#[derive(Debug)]
pub(super) struct Draw<'a> {
    /// Start of each thing, and the end of the last.
    line: &'a [u64],
    /// Parts of the line that are not to be drawn, in ascending order, none of which touch another's inside.
    excluded: Vec<(u64, u64)>,
    /// Length of all other parts.
    left: u64,
}

impl<'a> Draw<'a> {
    /// All things may be drawn.
    pub(super) const fn new(line: &'a [u64]) -> Self {
        Self {
            line,
            excluded: Vec::new(),
            left: 0,
        }
    }

    /// Begins again with all things.
    pub(super) fn reset(&mut self) {
        self.excluded.clear();
        self.left = self.line[self.line.len() - 1];
    }

    /// Excludes a part of the line, of which nothing is excluded yet.
    pub(super) fn exclude(&mut self, start: u64, end: u64) {
        if start < end {
            let place = self.excluded.partition_point(|part| part.0 < start);
            self.excluded.insert(place, (start, end));
            self.left -= end - start;
        }
    }

    /// Draws a thing, and excludes it. Something must be left.
    pub(super) fn pick(&mut self, random: &mut RandomStream) -> usize {
        // The bias is below 2^-16: weights add up to less than 2^48.
        let mut at = ((u128::from(random.next_u64()) * u128::from(self.left)) >> 64) as u64;
        for &(start, end) in &self.excluded {
            if at < start {
                break;
            }
            at += end - start;
        }
        let thing = self.line.partition_point(|&start| start <= at) - 1;
        self.exclude(self.line[thing], self.line[thing + 1]);
        thing
    }
}

/// Starts of things with these weights on a line, and the end of the last.
pub(super) fn line(weights: impl IntoIterator<Item = u64>) -> Vec<u64> {
    let mut end = 0;
    let mut line = vec![0];
    for weight in weights {
        end += weight;
        line.push(end);
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use clearway_units::Purpose;

    #[test]
    fn weights_are_those_of_the_distribution() {
        assert_eq!(zipf(4, 1.0), [1 << 32, 1 << 31, 1_431_655_765, 1 << 30]);
        assert_eq!(zipf(3, 0.0), [1 << 32; 3]);
        assert_eq!(zipf(1000, MOST_SKEW)[999], 1);
    }

    /// Of weights 1, 2, 3 the pair drawn first without replacement has known probabilities.
    #[test]
    fn draws_follow_the_weights_and_never_repeat() {
        const DRAWS: u32 = 60_000;
        let line = line([1 << 20, 2 << 20, 3 << 20]);
        let mut draw = Draw::new(&line);
        let mut random = RandomStream::new(1, Purpose::Test, 0);
        let mut pairs = [[0u32; 3]; 3];
        for _ in 0..DRAWS {
            draw.reset();
            let (first, second) = (draw.pick(&mut random), draw.pick(&mut random));
            pairs[first][second] += 1;
            let third = draw.pick(&mut random);
            assert_eq!(first + second + third, 3);
            assert_eq!(draw.left, 0);
        }
        for (first, weight) in [1.0f64, 2.0, 3.0].into_iter().enumerate() {
            for (second, other) in [1.0f64, 2.0, 3.0].into_iter().enumerate() {
                let probability = match first == second {
                    true => 0.0,
                    false => weight / 6.0 * other / (6.0 - weight),
                };
                let expected = probability * f64::from(DRAWS);
                let error = (expected * (1.0 - probability)).sqrt();
                let seen = f64::from(pairs[first][second]);
                assert!(
                    (seen - expected).abs() <= 4.0 * error,
                    "{first} {second}: {seen}"
                );
            }
        }
    }

    #[test]
    fn excluded_parts_are_never_drawn() {
        let line = line([5, 5, 5, 5]);
        let mut draw = Draw::new(&line);
        let mut random = RandomStream::new(1, Purpose::Test, 1);
        for _ in 0..100 {
            draw.reset();
            draw.exclude(0, 5);
            draw.exclude(10, 15);
            let mut drawn = [draw.pick(&mut random), draw.pick(&mut random)];
            drawn.sort_unstable();
            assert_eq!(drawn, [1, 3]);
        }
    }
}
