//! Reads workloads.

use super::unused;
use super::{
    CALLS, DP_EP, EP, NONE, SimaiCall, SimaiFile, SimaiGroup, SimaiLayer, SimaiPhase, SimaiPolicy,
    SimaiWorkload,
};
use crate::text::{
    DecimalFault, Line, Source, Token, exact_decimal, lines, meant, one_of, shown, whole_part,
};
use clearway_units::{Bytes, Span};
use clearway_workload::counted;
use clearway_workload::{FileError, FileWarning};
use std::collections::BTreeSet;

pub(super) const KEYS: [&str; 10] = [
    "model_parallel_NPU_group",
    "ep",
    "pp",
    "vpp",
    "ga",
    "all_gpus",
    "checkpoints",
    "checkpoint_initiates",
    "pp_comm",
    "DLRM_LAST_BOTTOM_LAYER",
];

pub(super) const COLUMNS: [&str; 13] = [
    "name",
    "dependency",
    "forward compute time",
    "forward collective",
    "forward bytes",
    "input gradient compute time",
    "input gradient collective",
    "input gradient bytes",
    "weight gradient compute time",
    "weight gradient collective",
    "weight gradient bytes",
    "update time",
    "policy",
];

/// Reads the workload `text`; errors call the file `name`.
///
/// # Errors
/// At the first invalid line.
pub fn parse_simai(name: &str, text: &str) -> Result<SimaiFile, FileError> {
    let source = Source { file: name };
    let mut lines = lines(text);
    let mut reader = Reader {
        source,
        warnings: Vec::new(),
        broadcasts: None,
    };
    let Some(header) = lines.next() else {
        let fault = source.fault(1, None, "the file is empty");
        return Err(fault.fix("begin it with the policy, as in `HYBRID_TRANSFORMER ep: 1`"));
    };
    let mut workload = reader.header(&header)?;
    let (count, count_line) = reader.count(lines.next(), header.number)?;
    let mut last = count_line;
    let mut layer_lines = Vec::new();
    for line in lines {
        if workload.layers.len() as u64 == count {
            let message = format!(
                "line {count_line} announces {}, and this line comes after them; SimAI ignores the rest of the file",
                counted(workload.layers.len(), "layer")
            );
            let fault = source.fault(line.number, None, message);
            return Err(fault.fix("correct the number of layers, or remove the rest"));
        }
        last = line.number;
        layer_lines.push(line.number);
        let layer = reader.layer(&line, workload.policy)?;
        workload.layers.push(layer);
    }
    let found = workload.layers.len();
    if (found as u64) < count {
        let message = format!(
            "line {count_line} announces {}, but the file has {found}",
            counted(usize::try_from(count).unwrap_or(usize::MAX), "layer")
        );
        let fault = source.fault(last, None, message);
        return Err(fault.fix("correct the number, or restore the missing lines"));
    }
    reader.warn_of_broadcasts();
    reader.warn_of_keys(&workload, header.number);
    Ok(SimaiFile {
        workload,
        warnings: reader.warnings,
        name: name.into(),
        header_line: header.number,
        layer_lines,
    })
}

/// True if `text` begins with a policy, as workloads do.
pub(crate) fn begins_with_a_policy(text: &str) -> bool {
    let first = lines(text).next();
    first.is_some_and(|line| {
        let word = line.tokens[0].text;
        SimaiPolicy::ALL.iter().any(|policy| policy.name() == word)
    })
}

struct Reader<'a> {
    source: Source<'a>,
    warnings: Vec<FileWarning>,
    /// Line of the first broadcast, and number of broadcasts.
    broadcasts: Option<(usize, u64)>,
}

impl Reader<'_> {
    fn warn_of_broadcasts(&mut self) {
        let Some((line, count)) = self.broadcasts else {
            return;
        };
        let others = match count {
            1 => String::new(),
            count => format!(" (and {} more like it)", count - 1),
        };
        let message = "`BROADCAST` is not a collective of SimAI, which treats it as `NONE`";
        self.warn(line, format!("{message}{others}"));
    }

    fn warn(&mut self, line: usize, message: String) {
        self.warnings.push(FileWarning {
            file: self.source.file.into(),
            line,
            message,
        });
    }

    fn warn_of_keys(&mut self, workload: &SimaiWorkload, line: usize) {
        let layers = workload.layers.len();
        if workload.policy == SimaiPolicy::Micro && layers > 1 {
            let others = layers - 1;
            let message = format!(
                "`MICRO` runs the first of {layers} layers, as in SimAI: {others} {} left out; give each its own file",
                if others == 1 { "is" } else { "are" }
            );
            self.warn(line, message);
        }
        if let Some(message) = unused::warning(workload) {
            self.warn(line, message);
        }
        if workload.pp > 1 {
            let given = [
                (workload.pp_comm.is_some(), "`pp_comm`"),
                (workload.vpp > 1, "`vpp`"),
            ];
            let given: Vec<&str> = given.iter().filter(|key| key.0).map(|key| key.1).collect();
            let bytes = match given.as_slice() {
                [] => String::new(),
                [one] => format!("; {one} is not used"),
                several => format!("; {} are not used", several.join(" and ")),
            };
            let message = format!(
                "a pipeline of {} stages sets ranks apart, but no messages go from stage to stage and no stage waits for another, as in SimAI{bytes}",
                workload.pp
            );
            self.warn(line, message);
        } else if workload.pp_comm.is_some() {
            self.warn(line, "`pp_comm` is not used: there is one stage".into());
        }
        if workload.dlrm_last_bottom_layer.is_some() && !workload.policy.is_recommendation() {
            let message = "`DLRM_LAST_BOTTOM_LAYER` is not used: the policy is of another model";
            self.warn(line, message.into());
        }
        if !workload.checkpoints.is_empty() || !workload.checkpoint_initiates.is_empty() {
            let message =
                "no forward pass is computed again: SimAI reads the checkpoints but never does so";
            self.warn(line, message.into());
        }
    }

    fn policy(&self, line: usize, token: Token<'_>) -> Result<SimaiPolicy, FileError> {
        let names: Vec<&str> = SimaiPolicy::ALL
            .iter()
            .map(|policy| policy.name())
            .collect();
        let mut policies = SimaiPolicy::ALL.iter().copied();
        let policy = policies.find(|policy| policy.name() == token.text);
        policy.ok_or_else(|| self.source.unknown(line, token, &names))
    }

    fn header(&mut self, line: &Line<'_>) -> Result<SimaiWorkload, FileError> {
        let mut workload = SimaiWorkload::new(self.policy(line.number, line.tokens[0])?);
        let mut seen = BTreeSet::new();
        let mut rest = &line.tokens[1..];
        while let [key, after @ ..] = rest {
            let name = key.text.strip_suffix(':').unwrap_or(key.text);
            let Some(known) = KEYS.iter().find(|known| **known == name) else {
                rest = self.unknown_key(line.number, *key, after)?;
                continue;
            };
            if !seen.insert(known) {
                let message = format!("`{known}` stands twice on the line");
                let fault = self.source.fault(line.number, Some(key.column), message);
                return Err(fault.fix("keep one of them"));
            }
            let [value, after @ ..] = after else {
                let message = format!("`{known}` lacks its value");
                let fault = self.source.fault(line.number, Some(key.column), message);
                return Err(fault.fix(format!("write a number after `{known}`")));
            };
            rest = self.key(line.number, known, *value, after, &mut workload)?;
        }
        Ok(workload)
    }

    /// Skips a key of another generator and its values; returns the words after them.
    fn unknown_key<'t>(
        &mut self,
        line: usize,
        key: Token<'_>,
        after: &'t [Token<'t>],
    ) -> Result<&'t [Token<'t>], FileError> {
        let name = key.text.strip_suffix(':').unwrap_or(key.text);
        let near = meant(name, &KEYS);
        if near.is_some() || !key.text.ends_with(':') {
            let message = format!("unknown word `{}`", shown(key.text));
            let fault = self.source.fault(line, Some(key.column), message);
            return Err(fault.fix(match near {
                Some(near) => format!("did you mean `{near}:`?"),
                None => format!("use {}, each with a colon", one_of(&KEYS)),
            }));
        }
        self.warn(
            line,
            format!(
                "`{}` is not known, and ignored as in SimAI",
                shown(key.text)
            ),
        );
        let values = after.iter().take_while(|token| {
            let word = token.text.strip_suffix(':').unwrap_or(token.text);
            !token.text.ends_with(':') && !KEYS.contains(&word)
        });
        Ok(&after[values.count()..])
    }

    /// Stores the value of a key; returns the words after it.
    fn key<'t>(
        &self,
        line: usize,
        key: &str,
        value: Token<'_>,
        after: &'t [Token<'t>],
        workload: &mut SimaiWorkload,
    ) -> Result<&'t [Token<'t>], FileError> {
        let number = |least: u32| -> Result<u32, FileError> {
            let number = self.number(line, value, key, 0)?;
            let number = u32::try_from(number).ok().filter(|&number| number >= least);
            number.ok_or_else(|| {
                let message = format!("`{}` is not a valid value for `{key}`", shown(value.text));
                let fault = self.source.fault(line, Some(value.column), message);
                fault.fix(format!("write a whole number from {least} to {}", u32::MAX))
            })
        };
        match key {
            "model_parallel_NPU_group" => workload.tp = Some(number(1)?),
            // Generators write 0 for kinds of parallelism that they do not use, and SimAI ignores it.
            "ep" => workload.ep = number(0)?.max(1),
            "pp" => workload.pp = number(0)?.max(1),
            "vpp" => workload.vpp = number(0)?.max(1),
            "ga" => workload.ga = number(1)?,
            "all_gpus" => workload.all_gpus = Some(number(1)?),
            "DLRM_LAST_BOTTOM_LAYER" => workload.dlrm_last_bottom_layer = Some(number(0)?),
            "pp_comm" => {
                let bytes = self.whole_part(line, value, key)?;
                workload.pp_comm = Some(Bytes::new(bytes)).filter(|&bytes| bytes > Bytes::ZERO);
            }
            _ => {
                let count = number(0)? as usize;
                let Some((ids, after)) = after.split_at_checked(count) else {
                    let message = format!(
                        "`{key}` announces {}, but {} on the line",
                        counted(count, "layer"),
                        match after.len() {
                            1 => "1 word is left".into(),
                            left => format!("{left} words are left"),
                        }
                    );
                    let fault = self.source.fault(line, Some(value.column), message);
                    return Err(fault.fix("write the number of layers, then the layers"));
                };
                let ids = ids.iter().map(|&id| {
                    let layer = self.number(line, id, key, 0)?;
                    u32::try_from(layer).map_err(|_| self.no_number(line, id, key))
                });
                let ids = ids.collect::<Result<Vec<u32>, FileError>>()?;
                match key {
                    "checkpoints" => workload.checkpoints = ids,
                    _ => workload.checkpoint_initiates = ids,
                }
                return Ok(after);
            }
        }
        Ok(after)
    }

    fn count(&self, line: Option<Line<'_>>, header: usize) -> Result<(u64, usize), FileError> {
        let Some(line) = line else {
            let fault = self
                .source
                .fault(header, None, "the number of layers is missing");
            return Err(fault.fix("write it on the second line"));
        };
        if let Some(second) = line.tokens.get(1) {
            let message = "the second line is the number of layers and nothing else";
            let fault = self.source.fault(line.number, Some(second.column), message);
            return Err(fault.fix("write each layer on a separate line"));
        }
        let count = self.number(line.number, line.tokens[0], "the number of layers", 0)?;
        if count == 0 {
            let column = Some(line.tokens[0].column);
            let fault = self
                .source
                .fault(line.number, column, "there are no layers");
            return Err(fault.fix("write how many follow, one on each line"));
        }
        Ok((count, line.number))
    }

    /// A number times ten to the power of `exponent`; decimals are accepted if the result is a whole number.
    fn number(
        &self,
        line: usize,
        token: Token<'_>,
        name: &str,
        exponent: i32,
    ) -> Result<u64, FileError> {
        exact_decimal(token.text, exponent).map_err(|fault| match fault {
            DecimalFault::TooFine => {
                let message = format!("`{}` is too fine for {name}", shown(token.text));
                let fault = self.source.fault(line, Some(token.column), message);
                fault.fix("round it")
            }
            DecimalFault::NotANumber | DecimalFault::TooLarge => self.no_number(line, token, name),
        })
    }

    fn no_number(&self, line: usize, token: Token<'_>, name: &str) -> FileError {
        let message = format!("`{}` is not a valid value for {name}", shown(token.text));
        let fault = self.source.fault(line, Some(token.column), message);
        fault.fix(match name.ends_with("time") {
            // Picoseconds have 64 bits.
            true => "write nanoseconds from 0 to 18446744073709551",
            false => "write a number of zero or more that fits in 64 bits",
        })
    }

    /// As [`number`](Self::number), rounded down.
    fn whole_part(&self, line: usize, token: Token<'_>, name: &str) -> Result<u64, FileError> {
        whole_part(token.text).map_err(|_| self.no_number(line, token, name))
    }

    fn layer(&mut self, line: &Line<'_>, policy: SimaiPolicy) -> Result<SimaiLayer, FileError> {
        let customized = policy == SimaiPolicy::HybridCustomized;
        let needed = 12 + usize::from(customized);
        let tokens = &line.tokens;
        if tokens.len() != needed {
            let column = tokens.get(needed).map(|token| token.column);
            let message = format!(
                "a layer has {needed} words, but this line has {}",
                tokens.len()
            );
            let fault = self.source.fault(line.number, column, message);
            return Err(fault.fix(format!("write {}", COLUMNS[..needed].join(", "))));
        }
        let dependency = tokens[1];
        if dependency.text != "-1" {
            self.number(line.number, dependency, "the dependency", 0)?;
        }
        Ok(SimaiLayer {
            name: tokens[0].text.into(),
            forward: self.phase(line, 2, SimaiGroup::Tp)?,
            input_gradient: self.phase(line, 5, SimaiGroup::Tp)?,
            weight_gradient: self.phase(line, 8, SimaiGroup::Dp)?,
            update: self.time(line, 11)?,
            policy: match customized {
                true => Some(self.policy(line.number, tokens[12])?),
                false => None,
            },
        })
    }

    fn time(&self, line: &Line<'_>, column: usize) -> Result<Span, FileError> {
        // Picoseconds in nanoseconds: ten to the third.
        let ps = self.number(line.number, line.tokens[column], COLUMNS[column], 3)?;
        Ok(Span::from_ps(ps))
    }

    /// Time, collective and size from word `column` on; a collective without suffix runs in `group`.
    fn phase(
        &mut self,
        line: &Line<'_>,
        column: usize,
        group: SimaiGroup,
    ) -> Result<SimaiPhase, FileError> {
        let compute = self.time(line, column)?;
        let word = line.tokens[column + 1];
        let size = line.tokens[column + 2];
        let bytes = Bytes::new(self.number(line.number, size, COLUMNS[column + 2], 0)?);
        let call = self.call(line.number, word, group)?;
        let call = call.map(|(kind, group)| SimaiCall { kind, group, bytes });
        Ok(SimaiPhase { compute, call })
    }

    fn call(
        &mut self,
        line: usize,
        word: Token<'_>,
        group: SimaiGroup,
    ) -> Result<Option<(clearway_workload::program::CollectiveKind, SimaiGroup)>, FileError> {
        if word.text == NONE {
            return Ok(None);
        }
        if word.text == "BROADCAST" {
            self.broadcasts.get_or_insert((line, 0)).1 += 1;
            return Ok(None);
        }
        let (name, group) = match (word.text.strip_suffix(DP_EP), word.text.strip_suffix(EP)) {
            (Some(name), _) => (name, SimaiGroup::DpEp),
            (None, Some(name)) => (name, SimaiGroup::Ep),
            (None, None) => (word.text, group),
        };
        match CALLS.iter().find(|(known, _)| *known == name) {
            Some(&(_, kind)) => Ok(Some((kind, group))),
            None => {
                let mut names = vec![NONE.to_owned()];
                for (name, _) in CALLS {
                    names.extend(["", EP, DP_EP].map(|suffix| format!("{name}{suffix}")));
                }
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                Err(self.source.unknown(line, word, &names))
            }
        }
    }
}
