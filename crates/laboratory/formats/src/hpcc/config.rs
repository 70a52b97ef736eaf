//! Configuration of the simulator: HPCC's `config.txt` and `SimAI.conf`.

use super::quantity;
use crate::text::{Line, Source, Token, exact_decimal, lines, meant, shown, whole_number};
use clearway_units::{Rate, Span, suggestion};
use clearway_workload::{FileError, FileWarning};

/// Value of a key.
#[derive(Debug, Clone, PartialEq)]
pub enum HpccValue {
    /// 0 or 1.
    Switch(bool),
    /// Whole number.
    Whole(u64),
    /// Number with a fraction.
    Fraction(f64),
    /// Time; `None` if it is longer than 64 bits of picoseconds.
    Duration(Option<Span>),
    /// Rate.
    Rate(Rate),
    /// Path.
    Path(String),
    /// Whole number for each rate of a port.
    Sizes(Vec<(Rate, u64)>),
    /// Probability for each rate of a port.
    Probabilities(Vec<(Rate, f64)>),
    /// Link that fails.
    LinkDown {
        /// Time from 2 s to the failure; zero means never.
        after: Span,
        /// Nodes of the link.
        ends: [u32; 2],
    },
}

/// Key of a configuration with its value.
#[derive(Debug, Clone, PartialEq)]
pub struct HpccSetting {
    /// Key.
    pub key: &'static str,
    /// Line of the key, from 1.
    pub line: usize,
    /// Value.
    pub value: HpccValue,
    /// Value as the file has it.
    pub text: String,
}

/// Content of a configuration.
#[derive(Debug, Clone, PartialEq)]
pub struct HpccConfig {
    /// Settings in the order of the file. Each key occurs once.
    pub settings: Vec<HpccSetting>,
    /// Warnings about lines without effect.
    pub warnings: Vec<FileWarning>,
}

impl HpccConfig {
    /// The setting of a key, if the file has it.
    pub fn get(&self, key: &str) -> Option<&HpccSetting> {
        self.settings.iter().find(|setting| setting.key == key)
    }
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    Switch,
    Whole,
    /// Whole number of 64 bits.
    Long,
    Fraction,
    Probability,
    /// Whole microseconds: the simulator drops fractions.
    Microseconds,
    Seconds,
    Rate,
    Path,
    Sizes,
    Probabilities,
    LinkDown,
}

/// The keys that one of the two simulators reads.
const KEYS: &[(&str, Kind)] = &[
    ("ENABLE_QCN", Kind::Switch),
    ("USE_DYNAMIC_PFC_THRESHOLD", Kind::Switch),
    ("PAUSE_TIME", Kind::Fraction),
    ("DATA_RATE", Kind::Path),
    ("LINK_DELAY", Kind::Path),
    ("PACKET_PAYLOAD_SIZE", Kind::Whole),
    ("TOPOLOGY_FILE", Kind::Path),
    ("FLOW_FILE", Kind::Path),
    ("TRACE_FILE", Kind::Path),
    ("TRACE_OUTPUT_FILE", Kind::Path),
    ("FCT_OUTPUT_FILE", Kind::Path),
    ("PFC_OUTPUT_FILE", Kind::Path),
    ("SIMULATOR_STOP_TIME", Kind::Seconds),
    ("CC_MODE", Kind::Whole),
    ("ALPHA_RESUME_INTERVAL", Kind::Microseconds),
    ("RATE_DECREASE_INTERVAL", Kind::Microseconds),
    ("CLAMP_TARGET_RATE", Kind::Switch),
    ("RP_TIMER", Kind::Microseconds),
    ("EWMA_GAIN", Kind::Fraction),
    ("FAST_RECOVERY_TIMES", Kind::Whole),
    ("RATE_AI", Kind::Rate),
    ("RATE_HAI", Kind::Rate),
    ("MIN_RATE", Kind::Rate),
    ("DCTCP_RATE_AI", Kind::Rate),
    ("ERROR_RATE_PER_LINK", Kind::Probability),
    ("L2_CHUNK_SIZE", Kind::Whole),
    ("L2_ACK_INTERVAL", Kind::Whole),
    ("L2_BACK_TO_ZERO", Kind::Switch),
    ("HAS_WIN", Kind::Switch),
    ("GLOBAL_T", Kind::Switch),
    ("VAR_WIN", Kind::Switch),
    ("FAST_REACT", Kind::Switch),
    ("U_TARGET", Kind::Fraction),
    ("MI_THRESH", Kind::Whole),
    ("INT_MULTI", Kind::Whole),
    ("MULTI_RATE", Kind::Switch),
    ("SAMPLE_FEEDBACK", Kind::Switch),
    ("PINT_LOG_BASE", Kind::Fraction),
    ("PINT_PROB", Kind::Fraction),
    ("RATE_BOUND", Kind::Switch),
    ("ACK_HIGH_PRIO", Kind::Switch),
    ("LINK_DOWN", Kind::LinkDown),
    ("ENABLE_TRACE", Kind::Switch),
    ("KMAX_MAP", Kind::Sizes),
    ("KMIN_MAP", Kind::Sizes),
    ("PMAX_MAP", Kind::Probabilities),
    ("BUFFER_SIZE", Kind::Whole),
    ("QLEN_MON_FILE", Kind::Path),
    ("QLEN_MON_START", Kind::Long),
    ("QLEN_MON_END", Kind::Long),
    ("QLEN_MON_INTERVAL", Kind::Whole),
    ("BW_MON_FILE", Kind::Path),
    ("BW_MON_INTERVAL", Kind::Whole),
    ("RATE_MON_FILE", Kind::Path),
    ("CNP_MON_FILE", Kind::Path),
    ("QP_MON_INTERVAL", Kind::Whole),
    ("MON_START", Kind::Long),
    ("MON_END", Kind::Long),
    ("NIC_TOTAL_PAUSE_TIME", Kind::Whole),
];

/// Reads the configuration `text`; errors call the file `name`. Each line has a key and its values; a `#` begins a comment, and so does a
/// word that begins with `{`, as in HPCC's `config_doc.txt`.
///
/// If a key occurs twice the last value counts, as in the simulator, with a warning.
///
/// # Errors
/// At the first unknown key, which the simulator would ignore, and at the first malformed value.
pub fn parse_hpcc_config(name: &str, text: &str) -> Result<HpccConfig, FileError> {
    let source = Source { file: name };
    let (mut settings, mut warnings) = (Vec::<HpccSetting>::new(), Vec::new());
    for line in lines(text) {
        let setting = setting(source, &line)?;
        if let Some(former) = settings.iter().position(|s| s.key == setting.key) {
            let former = settings.remove(former);
            warnings.push(FileWarning {
                file: name.into(),
                line: former.line,
                message: format!(
                    "`{}` is also on line {}, whose value counts",
                    former.key, setting.line
                ),
            });
        }
        settings.push(setting);
    }
    if settings.is_empty() {
        let fault = source.fault(1, None, "the file has no keys");
        return Err(fault.fix("name a configuration, such as HPCC's mix/config.txt"));
    }
    Ok(HpccConfig { settings, warnings })
}

fn setting(source: Source<'_>, line: &Line<'_>) -> Result<HpccSetting, FileError> {
    let first = line.tokens[0];
    let known = KEYS.iter().find(|(key, _)| *key == first.text);
    let &(key, kind) = known.ok_or_else(|| unknown(source, line.number, first))?;
    let end = line
        .tokens
        .iter()
        .position(|word| word.text.starts_with('{'));
    let values = Values {
        source,
        line: line.number,
        key: first,
        words: line
            .tokens
            .get(1..end.unwrap_or(line.tokens.len()))
            .unwrap_or(&[]),
    };
    let value = values.read(kind)?;
    let words: Vec<String> = values.words.iter().map(|word| shown(word.text)).collect();
    Ok(HpccSetting {
        key,
        line: line.number,
        value,
        text: words.join(" "),
    })
}

fn unknown(source: Source<'_>, line: usize, word: Token<'_>) -> FileError {
    let names: Vec<&str> = KEYS.iter().map(|(key, _)| *key).collect();
    let message = format!("there is no key `{}`", shown(word.text));
    let advice = "remove the line, or put a `#` before it: HPCC's simulator and SimAI ignore it";
    let fix = suggestion(meant(word.text, &names), advice);
    source.fault(line, Some(word.column), message).fix(fix)
}

/// Words after a key.
struct Values<'a> {
    source: Source<'a>,
    line: usize,
    key: Token<'a>,
    words: &'a [Token<'a>],
}

impl Values<'_> {
    fn read(&self, kind: Kind) -> Result<HpccValue, FileError> {
        let value = match kind {
            Kind::Sizes => return self.map(whole_number, "KB").map(HpccValue::Sizes),
            Kind::Probabilities => {
                let probability = |text: &str| number(text).filter(|p| *p <= 1.0);
                let rows = self.map(probability, "PROBABILITY");
                return rows.map(HpccValue::Probabilities);
            }
            Kind::LinkDown => return self.link_down(),
            kind => single(kind, self.word(0, 1)?.text),
        };
        value.ok_or_else(|| self.invalid(0, expected(kind)))
    }

    /// The word at `index`, of `count`.
    fn word(&self, index: usize, count: usize) -> Result<&Token<'_>, FileError> {
        if let Some(further) = self.words.get(count) {
            let message = format!(
                "`{}` after the value of `{}`",
                shown(further.text),
                self.key.text
            );
            let fault = self.source.fault(self.line, Some(further.column), message);
            return Err(fault.fix("put each key on a separate line, and a `#` before a comment"));
        }
        self.words.get(index).ok_or_else(|| {
            let key = self.key.text;
            let fault = self.source.fault(
                self.line,
                Some(self.key.column),
                format!("`{key}` lacks its value"),
            );
            fault.fix(format!("write the value after `{key}`, on the same line"))
        })
    }

    fn invalid(&self, index: usize, expected: &str) -> FileError {
        let word = self.words.get(index).unwrap_or(&self.key);
        let message = format!(
            "`{}` is not a valid value for `{}`",
            shown(word.text),
            self.key.text
        );
        let fault = self.source.fault(self.line, Some(word.column), message);
        fault.fix(format!("write {expected}"))
    }

    /// Rows of a map: their number, then the rate of a port in bit/s and its value, for each row.
    fn map<T>(
        &self,
        read: impl Fn(&str) -> Option<T>,
        unit: &str,
    ) -> Result<Vec<(Rate, T)>, FileError> {
        let expected = format!("the number of rows, and for each row `BPS {unit}`");
        let (Some(count), rows) = (self.words.first(), self.words.get(1..).unwrap_or(&[])) else {
            self.word(0, 1)?;
            return Ok(Vec::new());
        };
        let announced = whole_number(count.text).ok_or_else(|| self.invalid(0, &expected))?;
        if announced.checked_mul(2) != Some(rows.len() as u64) {
            let message = format!(
                "`{}` announces {announced} rows of two words each, but {} words follow",
                self.key.text,
                rows.len()
            );
            let fault = self.source.fault(self.line, Some(count.column), message);
            return Err(fault.fix(format!("write {expected}, on one line")));
        }
        let mut map: Vec<(Rate, T)> = Vec::new();
        for (row, pair) in rows.chunks_exact(2).enumerate() {
            let at = 1 + 2 * row;
            let bps = whole_number(pair[0].text).filter(|bps| *bps > 0);
            let rate = bps.map(Rate::from_bps);
            let rate = rate.ok_or_else(|| self.invalid(at, "a rate in bit/s, without unit"))?;
            let value = read(pair[1].text).ok_or_else(|| self.invalid(at + 1, &expected))?;
            // The last row of a rate counts, as in the simulator.
            map.retain(|(other, _)| *other != rate);
            map.push((rate, value));
        }
        Ok(map)
    }

    fn link_down(&self) -> Result<HpccValue, FileError> {
        const EXPECTED: &str =
            "microseconds after 2 s and the numbers of two nodes; `0 0 0` is never";
        if self.words.len() < 3 {
            return Err(self.invalid(self.words.len(), EXPECTED));
        }
        let number = |index| {
            let word = self.word(index, 3)?;
            whole_number(word.text).ok_or_else(|| self.invalid(index, EXPECTED))
        };
        let node = |index| {
            let node = number(index)?;
            u32::try_from(node).map_err(|_| self.invalid(index, EXPECTED))
        };
        let after = number(0)?.checked_mul(1_000_000);
        let after = after.map(Span::from_ps);
        Ok(HpccValue::LinkDown {
            after: after.ok_or_else(|| self.invalid(0, EXPECTED))?,
            ends: [node(1)?, node(2)?],
        })
    }
}

/// The value of a key with one word.
fn single(kind: Kind, word: &str) -> Option<HpccValue> {
    Some(match kind {
        Kind::Switch => match word {
            "0" => HpccValue::Switch(false),
            "1" => HpccValue::Switch(true),
            _ => return None,
        },
        Kind::Whole => {
            let value = whole_number(word)?;
            HpccValue::Whole(u32::try_from(value).ok()?.into())
        }
        Kind::Long => HpccValue::Whole(whole_number(word)?),
        Kind::Fraction => HpccValue::Fraction(number(word)?),
        Kind::Probability => HpccValue::Fraction(quantity::probability(word)?),
        Kind::Microseconds => {
            let whole = exact_decimal(word, 0).ok()?.checked_mul(1_000_000)?;
            HpccValue::Duration(Some(Span::from_ps(whole)))
        }
        Kind::Seconds => match quantity::seconds(word) {
            Ok(span) => HpccValue::Duration(Some(span)),
            Err(crate::text::DecimalFault::TooLarge) => HpccValue::Duration(None),
            Err(_) => return None,
        },
        Kind::Rate => HpccValue::Rate(quantity::rate(word)?),
        Kind::Path => HpccValue::Path(word.to_owned()),
        Kind::Sizes | Kind::Probabilities | Kind::LinkDown => return None,
    })
}

const fn expected(kind: Kind) -> &'static str {
    match kind {
        Kind::Switch => "0 or 1",
        Kind::Whole => "a whole number of at most 32 bits",
        Kind::Long => "a whole number",
        Kind::Fraction => "a number such as 0.95",
        Kind::Probability => "a probability below 1, such as 0.001",
        Kind::Microseconds => "a whole number of microseconds: the simulator drops fractions",
        Kind::Seconds => "a number of seconds such as 4.00, with at most 12 decimals",
        Kind::Rate => "a rate above 0, such as 50Mb/s",
        Kind::Path => "a name",
        Kind::Sizes | Kind::Probabilities | Kind::LinkDown => "",
    }
}

/// A number of zero or more.
fn number(text: &str) -> Option<f64> {
    let is_number = text
        .bytes()
        .all(|b| b.is_ascii_digit() || b".eE-+".contains(&b));
    let value: f64 = text.parse().ok().filter(|_| is_number)?;
    (value.is_finite() && value >= 0.0).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_typed_values_and_lines() {
        let text = "# comment\nENABLE_QCN 1 {0: disable, 1: enable}\n\nCC_MODE 3\nRP_TIMER 900 \nSIMULATOR_STOP_TIME 4e13\n\
                    RATE_AI 50Mb/s\nKMAX_MAP 2 25000000000 400 100000000000 1600\nPMAX_MAP 1 25000000000 0.2\n\
                    LINK_DOWN 100 320 340\nCC_MODE 1\nU_TARGET 0.95\nFLOW_FILE mix/flow.txt\n";
        let config = parse_hpcc_config("config.txt", text).unwrap();
        let rate = Rate::from_bps;
        for (key, line, value) in [
            ("ENABLE_QCN", 2, HpccValue::Switch(true)),
            ("CC_MODE", 11, HpccValue::Whole(1)),
            ("RP_TIMER", 5, HpccValue::Duration(Some(Span::from_us(900)))),
            ("SIMULATOR_STOP_TIME", 6, HpccValue::Duration(None)),
            ("RATE_AI", 7, HpccValue::Rate(rate(50_000_000))),
            (
                "KMAX_MAP",
                8,
                HpccValue::Sizes(vec![
                    (rate(25_000_000_000), 400),
                    (rate(100_000_000_000), 1600),
                ]),
            ),
            (
                "PMAX_MAP",
                9,
                HpccValue::Probabilities(vec![(rate(25_000_000_000), 0.2)]),
            ),
            (
                "LINK_DOWN",
                10,
                HpccValue::LinkDown {
                    after: Span::from_us(100),
                    ends: [320, 340],
                },
            ),
            ("U_TARGET", 12, HpccValue::Fraction(0.95)),
            ("FLOW_FILE", 13, HpccValue::Path("mix/flow.txt".into())),
        ] {
            let found = config.get(key).unwrap();
            assert_eq!((found.line, &found.value), (line, &value), "{key}");
        }
        assert_eq!(
            config.get("KMAX_MAP").unwrap().text,
            "2 25000000000 400 100000000000 1600"
        );
        let warnings: Vec<String> = config.warnings.iter().map(ToString::to_string).collect();
        insta::assert_snapshot!(warnings.join("\n"), @"config.txt:4: `CC_MODE` is also on line 11, whose value counts");
    }

    #[test]
    fn mistakes_name_line_and_key() {
        let refused = |text: &str| parse_hpcc_config("c", text).unwrap_err().to_string();
        let all = [
            "",
            "ENABLE_QCN 1\nENABLE_QNC 1\n",
            "COLOUR red\n",
            "CC_MODE\n",
            "CC_MODE {1: DCQCN}\n",
            "CC_MODE 3 4\n",
            "CC_MODE three\n",
            "HAS_WIN 2\n",
            "RP_TIMER 0.5\n",
            "RATE_AI 50Mbit\n",
            "EWMA_GAIN -1\n",
            "ERROR_RATE_PER_LINK 1\n",
            "KMAX_MAP\n",
            "KMAX_MAP 2 25000000000 400\n",
            "KMAX_MAP 1 25Gbps 400\n",
            "PMAX_MAP 1 25000000000 20\n",
            "KMAX_MAP 99999999999999999999 1 1\n",
            "LINK_DOWN 1 2\n",
            "SIMULATOR_STOP_TIME soon\n",
        ]
        .map(refused)
        .join("\n");
        insta::assert_snapshot!(all, @"
        c:1: the file has no keys
          fix: name a configuration, such as HPCC's mix/config.txt
        c:2:1: there is no key `ENABLE_QNC`
          fix: did you mean `ENABLE_QCN`? Remove the line, or put a `#` before it: HPCC's simulator and SimAI ignore it
        c:1:1: there is no key `COLOUR`
          fix: remove the line, or put a `#` before it: HPCC's simulator and SimAI ignore it
        c:1:1: `CC_MODE` lacks its value
          fix: write the value after `CC_MODE`, on the same line
        c:1:1: `CC_MODE` lacks its value
          fix: write the value after `CC_MODE`, on the same line
        c:1:11: `4` after the value of `CC_MODE`
          fix: put each key on a separate line, and a `#` before a comment
        c:1:9: `three` is not a valid value for `CC_MODE`
          fix: write a whole number of at most 32 bits
        c:1:9: `2` is not a valid value for `HAS_WIN`
          fix: write 0 or 1
        c:1:10: `0.5` is not a valid value for `RP_TIMER`
          fix: write a whole number of microseconds: the simulator drops fractions
        c:1:9: `50Mbit` is not a valid value for `RATE_AI`
          fix: write a rate above 0, such as 50Mb/s
        c:1:11: `-1` is not a valid value for `EWMA_GAIN`
          fix: write a number such as 0.95
        c:1:21: `1` is not a valid value for `ERROR_RATE_PER_LINK`
          fix: write a probability below 1, such as 0.001
        c:1:1: `KMAX_MAP` lacks its value
          fix: write the value after `KMAX_MAP`, on the same line
        c:1:10: `KMAX_MAP` announces 2 rows of two words each, but 2 words follow
          fix: write the number of rows, and for each row `BPS KB`, on one line
        c:1:12: `25Gbps` is not a valid value for `KMAX_MAP`
          fix: write a rate in bit/s, without unit
        c:1:24: `20` is not a valid value for `PMAX_MAP`
          fix: write the number of rows, and for each row `BPS PROBABILITY`
        c:1:10: `99999999999999999999` is not a valid value for `KMAX_MAP`
          fix: write the number of rows, and for each row `BPS KB`
        c:1:1: `LINK_DOWN` is not a valid value for `LINK_DOWN`
          fix: write microseconds after 2 s and the numbers of two nodes; `0 0 0` is never
        c:1:21: `soon` is not a valid value for `SIMULATOR_STOP_TIME`
          fix: write a number of seconds such as 4.00, with at most 12 decimals
        ");
    }
}
