//! Reads schedules as text.

use super::lexer::{Lexer, Token, column_of, line_of};
use super::{ANY, GoalFile, Places, Seen};
use crate::text::{Source, meant, one_of, shown};
use clearway_units::{Bytes, Span};
use clearway_workload::FileError;
use clearway_workload::counted;
use clearway_workload::graph::Rank;
use clearway_workload::program::{
    JobProgram, Operation, OperationDependency, OperationId, RankProgram,
};
use rustc_hash::FxHashMap;
use std::ops::RangeInclusive;

const OPERATIONS: [&str; 3] = ["send", "recv", "calc"];

/// Reads the schedule `text`; errors call the file `name`.
///
/// # Errors
/// At the first invalid token. [`GoalFile::graph`] finds faults that involve several ranks.
pub fn parse_goal<'a>(name: &str, text: &'a str) -> Result<GoalFile<'a>, FileError> {
    let mut parser = Parser::new(name, text);
    let ranks = parser.header()?;
    let mut program = JobProgram::default();
    let mut starts = Vec::new();
    for rank in 0..ranks {
        parser.rank_header(rank, ranks)?;
        let (operations, places) = parser.rank(Rank(rank))?;
        program.ranks.push(operations);
        starts.push(places);
    }
    parser.skip_lines();
    if parser.token != Token::End {
        let announced = counted(ranks as usize, "rank");
        let message = format!("`{}` after the last of {announced}", parser.shown());
        return Err(parser.fault(message, "correct `num_ranks`, or remove the rest"));
    }
    let mut file = GoalFile {
        program,
        warnings: Vec::new(),
        name: name.into(),
        places: Places::Text { text, starts },
    };
    file.warn(parser.nics);
    Ok(file)
}

/// True if `text` begins with `num_ranks`, as schedules do.
pub(crate) fn begins_as_a_schedule(text: &str) -> bool {
    Parser::new("", text).begins()
}

struct Parser<'a> {
    source: Source<'a>,
    lexer: Lexer<'a>,
    /// The next token.
    token: Token<'a>,
    /// Byte offset at which `token` begins.
    start: usize,
    /// Operations on interfaces other than 0.
    nics: Seen,
}

/// Operations of one rank that are read so far.
#[derive(Default)]
struct Body<'a> {
    operations: Vec<Operation>,
    /// Byte offset at which each operation begins.
    starts: Vec<usize>,
    labels: FxHashMap<&'a str, u32>,
    waits: Vec<(u32, OperationDependency)>,
}

impl<'a> Parser<'a> {
    fn new<'n: 'a>(name: &'n str, text: &'a str) -> Self {
        let mut lexer = Lexer::new(text);
        let (token, start) = lexer.next();
        Self {
            source: Source { file: name },
            lexer,
            token,
            start,
            nics: Seen::default(),
        }
    }

    fn advance(&mut self) -> Token<'a> {
        let token = self.token;
        (self.token, self.start) = self.lexer.next();
        token
    }

    fn skip_lines(&mut self) {
        while self.token == Token::NewLine {
            self.advance();
        }
    }

    /// The next token as a message shows it.
    fn shown(&self) -> String {
        match self.token {
            Token::Word(text) | Token::Number(text) | Token::Other(text) => shown(text),
            Token::Any => "-1".into(),
            Token::Colon => ":".into(),
            Token::Open => "{".into(),
            Token::Close => "}".into(),
            Token::NewLine => "end of line".into(),
            Token::End => "end of file".into(),
        }
    }

    fn fault_at(&self, start: usize, message: String, fix: impl Into<String>) -> FileError {
        let text = self.lexer.text;
        // An error after the last line break belongs to the last line.
        let at = match start == text.len() && text.ends_with('\n') {
            true => start - 1,
            false => start,
        };
        let (line, column) = (line_of(text, at), column_of(text, at));
        self.source.fault(line, Some(column), message).fix(fix)
    }

    /// A fault of the next token.
    fn fault(&self, message: impl Into<String>, fix: impl Into<String>) -> FileError {
        self.fault_at(self.start, message.into(), fix)
    }

    /// Error about a next token that is not one of `names`.
    fn unexpected(&self, names: &[&str]) -> FileError {
        let fix = match self.token {
            Token::Word(word) if meant(word, names).is_some() => {
                format!("write `{}`", meant(word, names).unwrap_or_default())
            }
            _ => format!("write {}", one_of(names)),
        };
        self.fault(format!("`{}` stands where it cannot", self.shown()), fix)
    }

    fn word(&mut self, word: &'static str) -> Result<(), FileError> {
        match self.token {
            Token::Word(text) if text == word => {
                self.advance();
                Ok(())
            }
            _ => Err(self.unexpected(&[word])),
        }
    }

    /// Takes `word` if it is the next token; true if so.
    fn has_word(&mut self, word: &'static str) -> bool {
        let is_next = self.token == Token::Word(word);
        if is_next {
            self.advance();
        }
        is_next
    }

    fn number(&mut self, what: &str, range: RangeInclusive<u64>) -> Result<u64, FileError> {
        let value = match self.token {
            Token::Number(digits) => digits.parse().ok().filter(|value| range.contains(value)),
            _ => None,
        };
        match value {
            Some(value) => {
                self.advance();
                Ok(value)
            }
            None => {
                let (least, most) = (range.start(), range.end());
                let message = format!("`{}` is not a valid {what}", self.shown());
                let fix = format!("write a whole number from {least} to {most}");
                Err(self.fault(message, fix))
            }
        }
    }

    fn number_u32(&mut self, what: &str) -> Result<u32, FileError> {
        let value = self.number(what, 0..=u64::from(ANY) - 1)?;
        Ok(value as u32)
    }

    /// Checks that nothing but `}` follows on the line, and takes the line break.
    fn end_of_line(&mut self, expected: &[&str]) -> Result<(), FileError> {
        match self.token {
            Token::NewLine => {
                self.advance();
                Ok(())
            }
            Token::Close | Token::End => Ok(()),
            _ if expected.is_empty() => {
                let message = format!("`{}` after the end of the statement", self.shown());
                Err(self.fault(message, "begin a new line there, or remove it"))
            }
            _ => Err(self.unexpected(expected)),
        }
    }

    fn begins(&mut self) -> bool {
        self.skip_lines();
        self.has_word("num_ranks")
    }

    fn header(&mut self) -> Result<u32, FileError> {
        self.skip_lines();
        self.word("num_ranks")?;
        let ranks = self.number("number of ranks", 1..=u64::from(ANY))?;
        Ok(ranks as u32)
    }

    fn rank_header(&mut self, rank: u32, ranks: u32) -> Result<(), FileError> {
        self.skip_lines();
        if self.token == Token::End {
            let announced = counted(ranks as usize, "rank");
            let message =
                format!("the file has {announced} to describe, but ends before rank {rank}");
            let fix = format!("add `rank {rank} {{ }}`, or correct `num_ranks`");
            return Err(self.fault(message, fix));
        }
        self.word("rank")?;
        let start = self.start;
        let found = self.number_u32("rank")?;
        if found != rank {
            let message = format!("rank {found} stands where rank {rank} belongs");
            return Err(self.fault_at(start, message, "write the ranks in their order, each once"));
        }
        self.skip_lines();
        match self.token {
            Token::Open => {
                self.advance();
                Ok(())
            }
            _ => Err(self.unexpected(&["{"])),
        }
    }

    /// The operations of a rank up to its `}`, and where they begin.
    fn rank(&mut self, rank: Rank) -> Result<(RankProgram, Vec<usize>), FileError> {
        let mut body = Body::default();
        loop {
            self.skip_lines();
            match self.token {
                Token::Close => {
                    self.advance();
                    break;
                }
                Token::End => {
                    let message = format!("rank {rank} lacks its `}}`");
                    return Err(self.fault(message, "close it, or restore the missing part"));
                }
                _ => self.statement(rank, &mut body)?,
            }
        }
        let program = RankProgram::new(body.operations, body.waits);
        Ok((program, body.starts))
    }

    fn statement(&mut self, rank: Rank, body: &mut Body<'a>) -> Result<(), FileError> {
        let start = self.start;
        let Token::Word(word) = self.token else {
            return Err(self.unexpected(&["send", "recv", "calc", "}"]));
        };
        let index = body.operations.len();
        if index >= 1 << 31 {
            return Err(self.fault("a rank has less than 2^31 operations", "split the trace"));
        }
        let id = OperationId {
            rank,
            index: index as u32,
        };
        if !OPERATIONS.contains(&word) {
            self.advance();
            if self.token != Token::Colon {
                return self.dependency(word, start, rank, body);
            }
            self.advance();
            if let Some(first) = body.labels.insert(word, id.index) {
                let line = line_of(self.lexer.text, body.starts[first as usize]);
                let message = format!(
                    "label `{}` stands twice in rank {rank}, first on line {line}",
                    shown(word)
                );
                return Err(self.fault_at(start, message, "give one of them another name"));
            }
        }
        let operation = self.operation(id)?;
        body.operations.push(operation);
        body.starts.push(start);
        Ok(())
    }

    fn dependency(
        &mut self,
        word: &'a str,
        start: usize,
        rank: Rank,
        body: &mut Body<'a>,
    ) -> Result<(), FileError> {
        let is_begun = match self.token {
            Token::Word("requires") => false,
            Token::Word("irequires") => true,
            Token::Number(_) if meant(word, &OPERATIONS).is_some() => {
                let message = format!("`{}` is not an operation", shown(word));
                let fix = format!("write {}", one_of(&OPERATIONS));
                return Err(self.fault_at(start, message, fix));
            }
            _ => return Err(self.unexpected(&[":", "requires", "irequires"])),
        };
        self.advance();
        let who = self.label(word, start, rank, body)?;
        let start = self.start;
        let Token::Word(other) = self.token else {
            let message = format!("`{}` is not a valid label", self.shown());
            return Err(self.fault(message, "write the label of an operation"));
        };
        self.advance();
        let operation = self.label(other, start, rank, body)?;
        let wait = OperationDependency {
            operation,
            is_begun,
        };
        body.waits.push((who, wait));
        self.end_of_line(&[])
    }

    fn label(
        &self,
        label: &'a str,
        start: usize,
        rank: Rank,
        body: &Body<'a>,
    ) -> Result<u32, FileError> {
        body.labels.get(label).copied().ok_or_else(|| {
            let message = format!(
                "no operation of rank {rank} above this line is called `{}`",
                shown(label)
            );
            self.fault_at(
                start,
                message,
                "name an operation of the same rank that stands above",
            )
        })
    }

    fn operation(&mut self, id: OperationId) -> Result<Operation, FileError> {
        let Token::Word(word) = self.token else {
            return Err(self.unexpected(&OPERATIONS));
        };
        match word {
            "calc" => self.calc(),
            "send" => self.send(id),
            "recv" => self.receive(id),
            _ => Err(self.unexpected(&OPERATIONS)),
        }
    }

    fn calc(&mut self) -> Result<Operation, FileError> {
        const PS_PER_NS: u64 = 1000;
        self.advance();
        let span = self.number("time in nanoseconds", 0..=u64::MAX / PS_PER_NS)?;
        let mut unit = 0;
        if self.has_word("cpu") {
            unit = self.unit("cpu")?;
            self.end_of_line(&[])?;
        } else {
            self.end_of_line(&["cpu"])?;
        }
        let span = Span::from_ps(span * PS_PER_NS);
        Ok(Operation::Compute { unit, span })
    }

    fn send(&mut self, id: OperationId) -> Result<Operation, FileError> {
        let bytes = self.size("to")?;
        let to = Rank(self.number_u32("rank")?);
        let mut tag = 0;
        let has_tag = self.has_word("tag");
        if has_tag {
            if self.token == Token::Any {
                let message = "a send has no wildcard tag";
                return Err(self.fault(message, "name a tag; receives may take any"));
            }
            tag = self.number_u32("tag")?;
        }
        self.processor(id, has_tag)?;
        Ok(Operation::Send { to, bytes, tag })
    }

    fn receive(&mut self, id: OperationId) -> Result<Operation, FileError> {
        let bytes = self.size("from")?;
        let from = self.number_or_any("rank")?.map(Rank);
        let mut tag = Some(0);
        let has_tag = self.has_word("tag");
        if has_tag {
            tag = self.number_or_any("tag")?;
        }
        self.processor(id, has_tag)?;
        Ok(Operation::Receive { from, bytes, tag })
    }

    /// Reads `send 8b to`, starting at its first word; returns the size.
    fn size(&mut self, preposition: &'static str) -> Result<Bytes, FileError> {
        self.advance();
        let bytes = self.number("size", 0..=u64::MAX)?;
        self.word("b")?;
        self.word(preposition)?;
        Ok(Bytes::new(bytes))
    }

    fn number_or_any(&mut self, what: &str) -> Result<Option<u32>, FileError> {
        match self.token {
            Token::Any => {
                self.advance();
                Ok(None)
            }
            _ => self.number_u32(what).map(Some),
        }
    }

    fn unit(&mut self, what: &str) -> Result<u8, FileError> {
        let value = self.number(what, 0..=u8::MAX.into())?;
        Ok(value as u8)
    }

    /// Reads the processor and the interface at the end of a send or receive; neither affects the simulation.
    fn processor(&mut self, id: OperationId, has_tag: bool) -> Result<(), FileError> {
        let mut expected = match has_tag {
            true => &["cpu", "nic"][..],
            false => &["tag", "cpu", "nic"],
        };
        if self.has_word("cpu") {
            self.unit("cpu")?;
            expected = &["nic"];
        }
        if self.has_word("nic") {
            if self.unit("nic")? > 0 {
                self.nics.count(id);
            }
            expected = &[];
        }
        self.end_of_line(expected)
    }
}
