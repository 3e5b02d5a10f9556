//! Texts with `{name}` for arguments (pure).

/// A text with arguments in it.
#[derive(Debug, Default)]
pub(super) struct Text(Vec<Piece>);

#[derive(Debug)]
pub(super) enum Piece {
    Literal(String),
    Argument(String),
}

impl Text {
    /// Splits a text at its arguments. There is no escape: a brace in a URL is written `%7B` or `%7D`.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut pieces = Vec::new();
        let mut rest = text;
        while let Some((literal, after)) = rest.split_once('{') {
            let (name, after) = after.split_once('}').ok_or("a { without }")?;
            if literal.contains('}') || name.contains('{') {
                return Err("braces that do not match".into());
            }
            if name.is_empty() {
                return Err("{} without the name of an argument".into());
            }
            pieces.push(Piece::Literal(literal.to_owned()));
            pieces.push(Piece::Argument(name.to_owned()));
            rest = after;
        }
        if rest.contains('}') {
            return Err("a } without {".into());
        }
        pieces.push(Piece::Literal(rest.to_owned()));
        pieces.retain(|piece| !matches!(piece, Piece::Literal(text) if text.is_empty()));
        Ok(Self(pieces))
    }

    /// The same with other literals.
    pub(super) fn map_literals(self, map: impl Fn(&str) -> String) -> Self {
        let each = |piece| match piece {
            Piece::Literal(text) => Piece::Literal(map(&text)),
            argument => argument,
        };
        Self(self.0.into_iter().map(each).collect())
    }

    pub(super) fn pieces(&self) -> &[Piece] {
        &self.0
    }

    /// The argument, if there is nothing else.
    pub(super) fn only_argument(&self) -> Option<&str> {
        match self.pieces() {
            [Piece::Argument(name)] => Some(name),
            _ => None,
        }
    }

    /// The names of the arguments.
    pub(super) fn arguments(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|piece| match piece {
            Piece::Argument(name) => Some(name.as_str()),
            Piece::Literal(_) => None,
        })
    }

    /// The text with `value` in place of each argument.
    pub(super) fn expand(
        &self,
        mut value: impl FnMut(&str) -> Result<String, String>,
    ) -> Result<String, String> {
        let mut out = String::new();
        for piece in &self.0 {
            match piece {
                Piece::Literal(text) => out.push_str(text),
                Piece::Argument(name) => out.push_str(&value(name)?),
            }
        }
        Ok(out)
    }
}
