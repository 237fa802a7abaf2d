//! The subset of JSON that the model's files need: everything except escapes of more than two characters.

use std::iter::Peekable;
use std::str::Chars;

/// A value.
#[derive(Debug, PartialEq)]
pub enum Json {
    Null,
    Bool(bool),
    Number(f64),
    Text(String),
    List(Vec<Json>),
    Object(Vec<(String, Json)>),
}

impl Json {
    /// Parses `text`.
    pub fn parse(text: &str) -> Result<Json, String> {
        let mut reader = Reader { text: text.chars().peekable(), depth: 0 };
        let value = reader.value()?;
        reader.skip_space();
        match reader.text.next() {
            None => Ok(value),
            Some(character) => Err(format!("'{character}' follows the value")),
        }
    }

    pub fn get(&self, name: &str) -> Result<&Json, String> {
        match self {
            Json::Object(members) => members.iter().find(|(n, _)| n == name).map(|(_, value)| value),
            _ => None,
        }
        .ok_or_else(|| format!("member '{name}' is missing"))
    }

    pub fn number(&self) -> Result<f64, String> {
        match self {
            Json::Number(number) => Ok(*number),
            other => Err(format!("{other:?} is not a number")),
        }
    }

    /// A number that counts something.
    pub fn count(&self) -> Result<usize, String> {
        let number = self.number()?;
        // Below 2^53 a double is exact.
        if number.fract() == 0.0 && (0.0..9e15).contains(&number) {
            Ok(number as usize)
        } else {
            Err(format!("{number} is not a count"))
        }
    }

    pub fn text(&self) -> Result<&str, String> {
        match self {
            Json::Text(text) => Ok(text),
            other => Err(format!("{other:?} is not a string")),
        }
    }

    pub fn list(&self) -> Result<&[Json], String> {
        match self {
            Json::List(list) => Ok(list),
            other => Err(format!("{other:?} is not an array")),
        }
    }

    pub fn members(&self) -> Result<&[(String, Json)], String> {
        match self {
            Json::Object(members) => Ok(members),
            other => Err(format!("{other:?} is not an object")),
        }
    }
}

/// Maximum nesting depth, because nested values are parsed recursively.
const DEEPEST: usize = 64;

struct Reader<'a> {
    text: Peekable<Chars<'a>>,
    depth: usize,
}

impl Reader<'_> {
    fn skip_space(&mut self) {
        while self.text.next_if(|c| " \t\r\n".contains(*c)).is_some() {}
    }

    fn expect(&mut self, wanted: char) -> Result<(), String> {
        match self.text.next() {
            Some(character) if character == wanted => Ok(()),
            other => Err(format!("{other:?} is in the place of '{wanted}'")),
        }
    }

    fn value(&mut self) -> Result<Json, String> {
        self.skip_space();
        match self.text.peek() {
            Some('{') => {
                let members = self.sequence('{', '}', |reader| {
                    reader.skip_space();
                    let name = reader.quoted()?;
                    reader.skip_space();
                    reader.expect(':')?;
                    Ok((name, reader.value()?))
                })?;
                Ok(Json::Object(members))
            }
            Some('[') => Ok(Json::List(self.sequence('[', ']', Reader::value)?)),
            Some('"') => Ok(Json::Text(self.quoted()?)),
            Some(_) => self.word(),
            None => Err("the text ends where a value should be".into()),
        }
    }

    fn sequence<T>(
        &mut self,
        open: char,
        close: char,
        item: impl Fn(&mut Self) -> Result<T, String>,
    ) -> Result<Vec<T>, String> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(format!("values are nested more than {DEEPEST} deep"));
        }
        self.expect(open)?;
        let mut items = vec![];
        self.skip_space();
        if self.text.peek() != Some(&close) {
            loop {
                items.push(item(self)?);
                self.skip_space();
                if self.text.next_if_eq(&',').is_none() {
                    break;
                }
            }
        }
        self.expect(close)?;
        self.depth -= 1;
        Ok(items)
    }

    fn quoted(&mut self) -> Result<String, String> {
        self.expect('"')?;
        let mut text = String::new();
        loop {
            match self.text.next() {
                Some('"') => return Ok(text),
                Some('\\') => text.push(match self.text.next() {
                    Some('n') => '\n',
                    Some('t') => '\t',
                    Some('r') => '\r',
                    Some(same @ ('"' | '\\' | '/')) => same,
                    other => return Err(format!("the escape {other:?} is not known")),
                }),
                Some(character) => text.push(character),
                None => return Err("a string does not end".into()),
            }
        }
    }

    fn word(&mut self) -> Result<Json, String> {
        let mut word = String::new();
        while let Some(character) = self.text.next_if(|c| c.is_ascii_alphanumeric() || "+-.".contains(*c)) {
            word.push(character);
        }
        match word.as_str() {
            "null" => Ok(Json::Null),
            "true" => Ok(Json::Bool(true)),
            "false" => Ok(Json::Bool(false)),
            // Rust also parses names such as "inf" as numbers.
            number if number.starts_with(|c: char| c == '-' || c.is_ascii_digit()) => {
                number.parse().map(Json::Number).map_err(|_| format!("'{number}' is not a number"))
            }
            other => Err(format!("'{other}' is not a value")),
        }
    }
}
