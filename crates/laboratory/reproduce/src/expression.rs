//! The language of acceptance rules.
//!
//! ```text
//! condition  = comparison { "and" comparison }
//! comparison = sum ( "<=" | "<" | ">=" | ">" ) sum  |  sum "in" "[" sum "," sum "]"
//! sum        = product { ( "+" | "-" ) product }
//! product    = factor { ( "*" | "/" ) factor }
//! factor     = number | "-" factor | "(" sum ")" | call
//! call       = ( "max" | "min" | "abs" ) "(" sum { "," sum } ")"
//!            | ( "largest" | "smallest" ) "(" axis "," sum ")"
//!            | measure "(" word { "," word } { "," option "=" word } ")"
//! ```
//! The words of a measure choose runs by the labels of their axes: `max_fct(adaptive, 16MB)`. The name of an axis stands for the current
//! label: of the claim's `at`, or of the axis of a `largest` or `smallest`.

use std::collections::BTreeMap;
use std::fmt;

/// A measure of a run, as written: its name, words that choose the run, and options.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Call {
    pub(crate) measure: String,
    pub(crate) words: Vec<String>,
    pub(crate) options: BTreeMap<String, String>,
}

/// Expression with a number as its value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Expression {
    Number(f64),
    Negative(Box<Self>),
    Binary(Operator, Box<Self>, Box<Self>),
    Function(Function, Vec<Self>),
    /// `largest(axis, …)` or `smallest(axis, …)`.
    Over(Function, String, Box<Self>),
    Measure(Call),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operator {
    Plus,
    Minus,
    Times,
    Divide,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Function {
    Max,
    Min,
    Abs,
}

/// Relation that must hold between a quantity and its bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Relation {
    AtMost,
    Below,
    AtLeast,
    Above,
    /// Between two bounds, both included.
    Within,
}

/// A quantity and its bounds.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Comparison {
    pub(crate) quantity: Expression,
    pub(crate) relation: Relation,
    /// One, or two for [`Relation::Within`].
    pub(crate) bounds: Vec<Expression>,
    /// The quantity as written.
    pub(crate) quantity_text: String,
    /// Relation and bounds as written.
    pub(crate) rule_text: String,
}

impl Relation {
    /// True if the relation holds. No relation holds for a value that is not a number.
    pub(crate) fn holds(self, value: f64, bounds: &[f64]) -> bool {
        match self {
            Self::AtMost => value <= bounds[0],
            Self::Below => value < bounds[0],
            Self::AtLeast => value >= bounds[0],
            Self::Above => value > bounds[0],
            Self::Within => (bounds[0]..=bounds[1]).contains(&value),
        }
    }
}

/// Syntax error in the text of a condition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SyntaxError {
    /// Characters before the fault.
    pub(crate) position: usize,
    pub(crate) message: String,
}

impl fmt::Display for SyntaxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at character {}", self.message, self.position + 1)
    }
}

/// Numbers from the leaves of an expression.
pub(crate) trait Leaves {
    type Error;
    /// The value of a measure.
    fn measure(&mut self, call: &Call) -> Result<f64, Self::Error>;
    /// Evaluates `body` for each label of `axis`.
    fn over(&mut self, axis: &str, body: &Expression) -> Result<Vec<f64>, Self::Error>;
}

impl Expression {
    /// The value, with measures taken from `leaves`. Division by zero gives a value that is not a number, for which no rule holds.
    pub(crate) fn evaluate<L: Leaves>(&self, leaves: &mut L) -> Result<f64, L::Error> {
        Ok(match self {
            Self::Number(number) => *number,
            Self::Negative(inner) => -inner.evaluate(leaves)?,
            Self::Binary(operator, left, right) => {
                let (left, right) = (left.evaluate(leaves)?, right.evaluate(leaves)?);
                operator.apply(left, right)
            }
            Self::Function(function, arguments) => {
                let values: Result<Vec<f64>, _> =
                    arguments.iter().map(|item| item.evaluate(leaves)).collect();
                function.apply(&values?)
            }
            Self::Over(function, axis, body) => function.apply(&leaves.over(axis, body)?),
            Self::Measure(call) => leaves.measure(call)?,
        })
    }

    /// All measures in the expression.
    pub(crate) fn calls(&self) -> Vec<&Call> {
        match self {
            Self::Number(_) => Vec::new(),
            Self::Negative(inner) | Self::Over(_, _, inner) => inner.calls(),
            Self::Binary(_, left, right) => [left.calls(), right.calls()].concat(),
            Self::Function(_, items) => items.iter().flat_map(Self::calls).collect(),
            Self::Measure(call) => vec![call],
        }
    }
}

impl Operator {
    fn apply(self, left: f64, right: f64) -> f64 {
        match self {
            Self::Plus => left + right,
            Self::Minus => left - right,
            Self::Times => left * right,
            Self::Divide if right == 0.0 => f64::NAN,
            Self::Divide => left / right,
        }
    }
}

impl Function {
    /// Result of the function; NaN if any value is NaN.
    fn apply(self, values: &[f64]) -> f64 {
        if values.is_empty() || values.iter().any(|value| value.is_nan()) {
            return f64::NAN;
        }
        match self {
            Self::Max => values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            Self::Min => values.iter().copied().fold(f64::INFINITY, f64::min),
            Self::Abs => values[0].abs(),
        }
    }
}

/// Reads a condition: all of its comparisons must hold.
pub(crate) fn parse(text: &str) -> Result<Vec<Comparison>, SyntaxError> {
    let mut parser = Parser { text, at: 0 };
    let mut comparisons = vec![parser.comparison()?];
    while parser.take_word("and") {
        comparisons.push(parser.comparison()?);
    }
    parser.skip_blanks();
    if parser.at < text.len() {
        return Err(parser.fault("expected `and` or the end"));
    }
    Ok(comparisons)
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Parser<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn skip_blanks(&mut self) {
        self.at = self.text.len() - self.rest().trim_start().len();
    }

    fn fault(&self, message: impl Into<String>) -> SyntaxError {
        SyntaxError {
            position: self.text[..self.at].chars().count(),
            message: message.into(),
        }
    }

    fn take(&mut self, token: &str) -> bool {
        self.skip_blanks();
        let found = self.rest().starts_with(token);
        if found {
            self.at += token.len();
        }
        found
    }

    fn expect(&mut self, token: &str) -> Result<(), SyntaxError> {
        if self.take(token) {
            return Ok(());
        }
        Err(self.fault(format!("expected `{token}`")))
    }

    fn take_word(&mut self, word: &str) -> bool {
        self.skip_blanks();
        let found = self.rest().strip_prefix(word).is_some_and(|rest| {
            !rest.starts_with(|next: char| next.is_alphanumeric() || next == '_')
        });
        if found {
            self.at += word.len();
        }
        found
    }

    fn comparison(&mut self) -> Result<Comparison, SyntaxError> {
        self.skip_blanks();
        let start = self.at;
        let quantity = self.sum()?;
        let quantity_text = self.text[start..self.at].trim().to_owned();
        self.skip_blanks();
        let rule = self.at;
        let (relation, bounds) = if self.take_word("in") {
            self.expect("[")?;
            let low = self.sum()?;
            self.expect(",")?;
            let high = self.sum()?;
            self.expect("]")?;
            (Relation::Within, vec![low, high])
        } else {
            // Longer signs come first, because shorter signs are their prefixes.
            let signs = [
                ("<=", Relation::AtMost),
                (">=", Relation::AtLeast),
                ("<", Relation::Below),
                (">", Relation::Above),
            ];
            let found = signs.into_iter().find(|(sign, _)| self.take(sign));
            let (_, relation) =
                found.ok_or_else(|| self.fault("expected `<=`, `<`, `>=`, `>` or `in`"))?;
            (relation, vec![self.sum()?])
        };
        Ok(Comparison {
            quantity,
            relation,
            bounds,
            quantity_text,
            rule_text: self.text[rule..self.at].trim().to_owned(),
        })
    }

    fn sum(&mut self) -> Result<Expression, SyntaxError> {
        let mut left = self.product()?;
        loop {
            let operator = if self.take("+") {
                Operator::Plus
            } else if self.take("-") {
                Operator::Minus
            } else {
                return Ok(left);
            };
            left = Expression::Binary(operator, Box::new(left), Box::new(self.product()?));
        }
    }

    fn product(&mut self) -> Result<Expression, SyntaxError> {
        let mut left = self.factor()?;
        loop {
            let operator = if self.take("*") {
                Operator::Times
            } else if self.take("/") {
                Operator::Divide
            } else {
                return Ok(left);
            };
            left = Expression::Binary(operator, Box::new(left), Box::new(self.factor()?));
        }
    }

    fn factor(&mut self) -> Result<Expression, SyntaxError> {
        if self.take("-") {
            return Ok(Expression::Negative(Box::new(self.factor()?)));
        }
        if self.take("(") {
            let inner = self.sum()?;
            self.expect(")")?;
            return Ok(inner);
        }
        match self.rest().chars().next() {
            Some(c) if c.is_ascii_digit() => self.number(),
            Some(c) if c.is_ascii_alphabetic() => self.call(),
            _ => Err(self.fault("expected a number, a measure or `(`")),
        }
    }

    fn number(&mut self) -> Result<Expression, SyntaxError> {
        let length = self
            .rest()
            .find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_'))
            .unwrap_or(self.rest().len());
        let digits = self.rest()[..length].replace('_', "");
        let number = digits
            .parse()
            .map_err(|_| self.fault("expected a number such as `1.25`"))?;
        self.at += length;
        Ok(Expression::Number(number))
    }

    fn name(&mut self) -> &'a str {
        self.skip_blanks();
        let rest = self.rest();
        let length = rest
            .find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
            .unwrap_or(rest.len());
        self.at += length;
        &rest[..length]
    }

    fn call(&mut self) -> Result<Expression, SyntaxError> {
        let name = self.name();
        self.expect("(")?;
        let function = match name {
            "max" | "largest" => Function::Max,
            "min" | "smallest" => Function::Min,
            "abs" => Function::Abs,
            _ => return self.measure(name),
        };
        if matches!(name, "largest" | "smallest") {
            let axis = self.name().to_owned();
            self.expect(",")?;
            let body = self.sum()?;
            self.expect(")")?;
            return Ok(Expression::Over(function, axis, Box::new(body)));
        }
        let mut arguments = vec![self.sum()?];
        while self.take(",") {
            arguments.push(self.sum()?);
        }
        self.expect(")")?;
        if function == Function::Abs && arguments.len() > 1 {
            return Err(self.fault("`abs` takes one number"));
        }
        Ok(Expression::Function(function, arguments))
    }

    fn measure(&mut self, name: &str) -> Result<Expression, SyntaxError> {
        let mut call = Call {
            measure: name.to_owned(),
            words: Vec::new(),
            options: BTreeMap::new(),
        };
        let length = self
            .rest()
            .find(')')
            .ok_or_else(|| self.fault("expected `)`"))?;
        for word in self.rest()[..length].split(',').map(str::trim) {
            match word.split_once('=') {
                Some((key, value)) => {
                    let former = call.options.insert(key.trim().into(), value.trim().into());
                    if former.is_some() {
                        return Err(self.fault(format!("option `{}` twice", key.trim())));
                    }
                }
                None if word.is_empty() && length > 0 => {
                    return Err(self.fault("expected a label between the commas"));
                }
                None if word.is_empty() => {}
                None => call.words.push(word.to_owned()),
            }
        }
        self.at += length + 1;
        Ok(Expression::Measure(call))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Leaves in which `m(a, x=2)` is 2 with option `x`, otherwise the number of its word; an axis gives 1 to 3.
    struct Fixed;

    impl Leaves for Fixed {
        type Error = String;
        fn measure(&mut self, call: &Call) -> Result<f64, String> {
            let text = call.options.get("x").or(call.words.first());
            let text = text.ok_or("no word")?;
            text.parse().map_err(|_| format!("unknown {text}"))
        }
        fn over(&mut self, axis: &str, body: &Expression) -> Result<Vec<f64>, String> {
            let body = body.evaluate(self)?;
            (axis == "size")
                .then(|| vec![body, 2.0 * body, 3.0 * body])
                .ok_or_else(|| format!("no axis {axis}"))
        }
    }

    fn value(text: &str) -> f64 {
        let comparisons = parse(&format!("{text} < 0")).unwrap();
        comparisons[0].quantity.evaluate(&mut Fixed).unwrap()
    }

    #[test]
    fn arithmetic_has_the_usual_precedence() {
        for (text, expected) in [
            ("1 + 2 * 3", 7.0),
            ("(1 + 2) * 3", 9.0),
            ("8 / 4 / 2", 1.0),
            ("10 - 4 - 3", 3.0),
            ("-2 * -3", 6.0),
            ("1_000.5", 1000.5),
            ("max(1, 5, 3) - min(2, 7)", 3.0),
            ("abs(3 - 5)", 2.0),
            ("m(4)/m(a, x = 2)", 2.0),
            ("largest(size, m(5) - 1)", 12.0),
            ("smallest(size, m(5))", 5.0),
        ] {
            assert_eq!(value(text), expected, "{text}");
        }
    }

    #[test]
    fn what_has_no_value_fulfils_no_rule() {
        for text in ["1 / 0", "0 / 0", "max(1, 1/0)", "abs(1/0)"] {
            let value = value(text);
            assert!(value.is_nan(), "{text}");
            let relations = [
                Relation::AtMost,
                Relation::Below,
                Relation::AtLeast,
                Relation::Above,
                Relation::Within,
            ];
            assert!(relations.iter().all(|r| !r.holds(value, &[0.0, 1e9])));
        }
    }

    #[test]
    fn relations_hold_up_to_their_bounds() {
        let table = [
            (Relation::AtMost, [true, true, false]),
            (Relation::Below, [true, false, false]),
            (Relation::AtLeast, [false, true, true]),
            (Relation::Above, [false, false, true]),
        ];
        for (relation, expected) in table {
            let found = [1.0, 2.0, 3.0].map(|value| relation.holds(value, &[2.0]));
            assert_eq!(found, expected, "{relation:?}");
        }
        let within = [0.9, 1.0, 2.0, 2.1].map(|value| Relation::Within.holds(value, &[1.0, 2.0]));
        assert_eq!(within, [false, true, true, false]);
    }

    #[test]
    fn conditions_keep_their_text_and_their_measures() {
        let text = "max_fct(oblivious, 16MB) / max_fct(adaptive, 16MB) - 1 in [0.08, 0.45] and drops(a) <= 3";
        let comparisons = parse(text).unwrap();
        let parts: Vec<_> = comparisons
            .iter()
            .map(|c| (c.quantity_text.as_str(), c.rule_text.as_str(), c.relation))
            .collect();
        assert_eq!(
            parts,
            [
                (
                    "max_fct(oblivious, 16MB) / max_fct(adaptive, 16MB) - 1",
                    "in [0.08, 0.45]",
                    Relation::Within
                ),
                ("drops(a)", "<= 3", Relation::AtMost),
            ]
        );
        let calls = comparisons[0].quantity.calls();
        assert_eq!(calls.len(), 2);
        assert_eq!(calls[1].words, ["adaptive", "16MB"]);
    }

    #[test]
    fn faults_say_where_they_are() {
        for (text, expected) in [
            ("", "expected a number, a measure or `(` at character 1"),
            ("1 + ", "expected a number, a measure or `(` at character 5"),
            ("1", "expected `<=`, `<`, `>=`, `>` or `in` at character 2"),
            (
                "1 = 2",
                "expected `<=`, `<`, `>=`, `>` or `in` at character 3",
            ),
            ("(1 < 2", "expected `)` at character 4"),
            ("1 in (2, 3)", "expected `[` at character 6"),
            ("1 in [2]", "expected `,` at character 8"),
            ("m < 2", "expected `(` at character 3"),
            ("m(a < 2", "expected `)` at character 3"),
            (
                "m(a,,b) < 2",
                "expected a label between the commas at character 3",
            ),
            ("m(a, x=1, x=2) < 2", "option `x` twice at character 3"),
            ("abs(1, 2) < 2", "`abs` takes one number at character 10"),
            ("1 < 2 or 3 < 4", "expected `and` or the end at character 7"),
            (
                "1.2.3 < 4",
                "expected a number such as `1.25` at character 1",
            ),
        ] {
            let error = parse(text).expect_err(text).to_string();
            assert_eq!(error, expected, "{text}");
        }
    }
}
