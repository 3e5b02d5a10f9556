//! Parses a question: an amount, a source currency and a target currency, in any order.

use super::rates::{self, Currency};

/// A possibly incomplete question.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Question {
    /// As written, without thousands separators.
    amount: Option<String>,
    from: Option<&'static Currency>,
    to: Option<&'static Currency>,
    /// A word that looks like a currency code but has no rate.
    unknown: Option<String>,
    /// Currencies whose role (source or target) depends on the earlier messages.
    unassigned: Vec<&'static Currency>,
}

/// Why a question cannot be answered yet.
#[derive(Debug, PartialEq)]
pub(super) enum Missing {
    Everything,
    Source,
    Target,
    Rate(String),
}

impl Question {
    /// Parses one message.
    pub(super) fn read(text: &str) -> Self {
        let mut question = Self::default();
        let mut previous = Previous::Nothing;
        for word in split(text) {
            previous = question.parse_word(word, previous);
        }
        question
    }

    /// Completes the question with the parts it leaves open from the earlier one.
    pub(super) fn following(mut self, earlier: Self) -> Self {
        // A message with two currencies after a complete question is a new question.
        let anew = earlier.is_complete() && self.currencies() > 1;
        let earlier = if anew { Self::default() } else { earlier };
        let mut unassigned = std::mem::take(&mut self.unassigned).into_iter();
        // "What is the rate for dollars?" after "10 USD in INR" does not ask for dollars in dollars.
        let same = unassigned.as_slice().first().copied() == earlier.from;
        if self.from.is_none()
            && (same || earlier.from.is_none() || self.to.is_some() || unassigned.len() > 1)
        {
            self.from = unassigned.next();
        }
        self.to = self.to.or_else(|| unassigned.next());
        Self {
            amount: self.amount.or(earlier.amount),
            from: self.from.or(earlier.from),
            to: self.to.or(earlier.to),
            ..self
        }
    }

    /// The question, if it can be answered without earlier messages.
    pub(super) fn standalone(&self) -> Option<Self> {
        Some(self.clone().following(Self::default())).filter(|standalone| standalone.answer().is_ok())
    }

    /// The question so far after one more earlier message, which may have been sent to another skill.
    pub(super) fn merge_earlier_message(self, text: &str) -> Self {
        let asked = Self::read(text);
        match asked.standalone() {
            Some(standalone) => standalone,
            None if asked.currencies() > 0 || is_bare_amount(text) => asked.following(self),
            None => self,
        }
    }

    /// The answer as a sentence, or what is missing.
    pub(super) fn answer(&self) -> Result<String, Missing> {
        let (from, to) = match (&self.unknown, self.from, self.to) {
            (Some(code), ..) => return Err(Missing::Rate(code.clone())),
            (None, Some(from), Some(to)) => (from, to),
            (None, Some(_), None) => return Err(Missing::Target),
            (None, None, Some(_)) => return Err(Missing::Source),
            (None, None, None) => return Err(Missing::Everything),
        };
        let amount = self.amount.as_deref().unwrap_or("1");
        let value = amount.parse::<f64>().unwrap_or(1.0) / from.per_dollar * to.per_dollar;
        let (value, from, to) = (format_value(value), from.code, to.code);
        Ok(match amount {
            "1" => format!("The exchange rate for 1 {from} to {to} is {value}."),
            _ => format!("{amount} {from} is {value} {to}."),
        })
    }

    /// The checkpoint as text: amount, source and target.
    pub(super) fn save(&self) -> String {
        let code = |currency: Option<&Currency>| currency.map_or("-", |currency| currency.code);
        format!("{} {} {}", self.amount.as_deref().unwrap_or("-"), code(self.from), code(self.to))
    }

    /// Parses a checkpoint.
    pub(super) fn from_saved(saved: &str) -> Option<Self> {
        let mut fields = saved.split(' ');
        let (amount, from, to) = (fields.next()?, fields.next()?, fields.next()?);
        let amount = Some(amount.to_owned()).filter(|amount| amount != "-");
        Some(Self { amount, from: rates::find(from), to: rates::find(to), ..Self::default() })
    }

    fn is_complete(&self) -> bool {
        self.from.is_some() && self.to.is_some()
    }

    /// Number of currencies in the message.
    fn currencies(&self) -> usize {
        self.from.iter().len() + self.to.iter().len() + self.unassigned.len()
    }

    fn parse_word(&mut self, word: &str, previous: Previous) -> Previous {
        if let Some(amount) = amount(word) {
            // "$10": the sign belongs to the amount after it.
            if previous == Previous::Sign && self.from.is_none() {
                self.from = self.unassigned.pop();
            }
            self.amount = Some(amount);
            return Previous::Amount;
        }
        let Some(currency) = rates::find(word) else { return self.parse_other_word(word) };
        let is_code = word.eq_ignore_ascii_case(currency.code);
        match previous {
            // "Canadian dollars" is one currency, not two.
            Previous::Currency if !is_code => {}
            Previous::Amount => self.from = Some(currency),
            Previous::Into => self.to = Some(currency),
            Previous::From => self.from = Some(currency),
            Previous::Currency | Previous::Sign | Previous::Nothing => self.unassigned.push(currency),
        }
        if word.chars().all(char::is_alphabetic) { Previous::Currency } else { Previous::Sign }
    }

    fn parse_other_word(&mut self, word: &str) -> Previous {
        if word.len() == 3 && word.bytes().all(|byte| byte.is_ascii_uppercase()) {
            self.unknown = Some(word.into());
        }
        match word.to_lowercase().as_str() {
            "in" | "into" | "to" => Previous::Into,
            "from" => Previous::From,
            _ => Previous::Nothing,
        }
    }
}

/// The kind of the previous word.
#[derive(Clone, Copy, PartialEq)]
enum Previous {
    Nothing,
    Amount,
    Currency,
    Sign,
    Into,
    From,
}

/// Splits a text into words, numbers with their separators, and single currency signs.
fn split(text: &str) -> impl Iterator<Item = &str> {
    #[derive(PartialEq)]
    enum Kind {
        Digits,
        Letters,
        Sign,
        Gap,
    }
    let kind = |character: char| match character {
        '0'..='9' | '.' | ',' => Kind::Digits,
        '$' | '€' | '£' | '¥' | '₹' | '₪' | '₩' => Kind::Sign,
        letter if letter.is_alphabetic() => Kind::Letters,
        _ => Kind::Gap,
    };
    let mut rest = text;
    std::iter::from_fn(move || {
        rest = rest.trim_start_matches(|character| kind(character) == Kind::Gap);
        let first = rest.chars().next()?;
        let end = match kind(first) {
            Kind::Sign => first.len_utf8(),
            run => rest.find(|character| kind(character) != run).unwrap_or(rest.len()),
        };
        let word;
        (word, rest) = rest.split_at(end);
        Some(word)
    })
}

/// Whether a text has only a number and filler words, as "And 30?"; "wait 5" and "delay=1ms" do not count.
fn is_bare_amount(text: &str) -> bool {
    const FILLER_WORDS: [&str; 16] = [
        "about", "and", "currency", "for", "how", "if", "it", "just", "make", "no", "only", "or", "please",
        "then", "what", "with",
    ];
    let is_filler = |word: &str| FILLER_WORDS.iter().any(|known| known.eq_ignore_ascii_case(word));
    split(text).all(|word| is_filler(word) || !word.contains(char::is_alphabetic))
}

/// A number of at most 15 digits: `10`, `2.50`, `1,000`, `2,50`.
fn amount(word: &str) -> Option<String> {
    let word = word.trim_matches(['.', ',']);
    let thousands =
        word.split(',').skip(1).all(|group| group.split('.').next().is_some_and(|digits| digits.len() == 3));
    let plain = if thousands { word.replace(',', "") } else { word.replace(',', ".") };
    let digits = plain.bytes().filter(u8::is_ascii_digit).count();
    (1..=15).contains(&digits).then_some(())?;
    plain.parse::<f64>().ok().map(|_| plain)
}

/// Two decimals; below one, four significant decimals.
fn format_value(value: f64) -> String {
    if value >= 1.0 || value == 0.0 {
        return format!("{value:.2}");
    }
    let zeros = (-value.log10()).floor().clamp(0.0, 20.0);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a small whole number")]
    let digits = zeros as usize + 4;
    format!("{value:.digits$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const EUR_IN_JPY: &str = "The exchange rate for 1 EUR to JPY is 161.66.";

    fn answer(texts: &[&str]) -> Result<String, Missing> {
        let exchange = |earlier: Question, text: &&str| {
            let question = Question::read(text).following(earlier);
            Question::from_saved(&question.save())
                .map(|kept| Question { unknown: question.unknown, ..kept })
                .unwrap()
        };
        texts
            .iter()
            .fold(Question::default(), |earlier, text| exchange(Question { unknown: None, ..earlier }, text))
            .answer()
    }

    #[test]
    fn question_is_parsed_in_any_word_order() {
        for (text, expected) in [
            (
                "How much is the exchange rate for 1 USD to INR?",
                "The exchange rate for 1 USD to INR is 85.49.",
            ),
            ("1 USD to INR", "The exchange rate for 1 USD to INR is 85.49."),
            ("how much is 10 USD in INR?", "10 USD is 854.90 INR."),
            ("convert 5 eur into jpy", "5 EUR is 808.31 JPY."),
            ("1,000 dollars in rupees", "1000 USD is 85490.00 INR."),
            ("how many rupees are 10 dollars?", "10 USD is 854.90 INR."),
            ("$2.50 in euros.", "2.50 USD is 2.31 EUR."),
            ("2,50€ in dollars", "2.50 EUR is 2.70 USD."),
            ("3 canadian dollars to swiss francs", "3 CAD is 1.85 CHF."),
            ("100 JPY USD", "100 JPY is 0.6682 USD."),
            ("usd inr", "The exchange rate for 1 USD to INR is 85.49."),
            (r#"{"to":"INR","from":"USD","amount":10}"#, "10 USD is 854.90 INR."),
        ] {
            assert_eq!(answer(&[text]).as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn missing_part_can_come_in_a_later_message() {
        assert_eq!(answer(&["how much is 1 USD?"]), Err(Missing::Target));
        for cad in ["CAD", "in CAD", "to canadian dollars please"] {
            let expected = "The exchange rate for 1 USD to CAD is 1.43.";
            assert_eq!(answer(&["how much is 1 USD?", cad]).as_deref(), Ok(expected), "{cad}");
        }
        assert_eq!(answer(&["what do I get in INR?"]), Err(Missing::Source));
        assert_eq!(answer(&["what do I get in INR?", "for 10 USD"]).as_deref(), Ok("10 USD is 854.90 INR."));
        assert_eq!(answer(&["good morning"]), Err(Missing::Everything));
        assert_eq!(answer(&["10 USD in XAU"]), Err(Missing::Rate("XAU".into())));
        assert_eq!(answer(&["10 USD in XAU", "INR"]).as_deref(), Ok("10 USD is 854.90 INR."));
    }

    #[test]
    fn follow_up_question_changes_one_part() {
        let first = "10 USD in INR";
        assert_eq!(answer(&[first, "and in EUR?"]).as_deref(), Ok("10 USD is 9.26 EUR."));
        assert_eq!(answer(&[first, "EUR?"]).as_deref(), Ok("10 USD is 9.26 EUR."));
        assert_eq!(answer(&[first, "and 20 GBP?"]).as_deref(), Ok("20 GBP is 2213.33 INR."));
        assert_eq!(answer(&[first, "and 30?"]).as_deref(), Ok("30 USD is 2564.70 INR."));
        assert_eq!(answer(&[first, "EUR to GBP", "and in JPY?"]).as_deref(), Ok(EUR_IN_JPY));
        for dollars in ["what is the rate for dollars?", "USD"] {
            assert_eq!(answer(&[first, dollars]).as_deref(), Ok("10 USD is 854.90 INR."), "{dollars}");
        }
        assert_eq!(answer(&["how much is 10 USD?", "USD to INR"]).as_deref(), Ok("10 USD is 854.90 INR."));
        assert_eq!(answer(&[first, "and in XAU?"]), Err(Missing::Rate("XAU".into())));
    }

    #[test]
    fn earlier_messages_count_only_if_they_are_about_money() {
        let following = |texts: &[&str]| {
            let earlier =
                texts.iter().fold(Question::default(), |earlier, text| earlier.merge_earlier_message(text));
            Question::read("and in EUR?").following(earlier).answer()
        };
        let first = "10 USD in INR";
        for other in ["good morning", "the sea sections=2 delay=1ms", "echo 5", "Use the API", "no"] {
            assert_eq!(following(&[first, other]).as_deref(), Ok("10 USD is 9.26 EUR."), "{other}");
        }
        for more in ["30", "And 30?", "what about 30, please?", "currency: make it 30", "30 USD"] {
            assert_eq!(following(&[first, more]).as_deref(), Ok("30 USD is 27.77 EUR."), "{more}");
        }
        assert_eq!(
            following(&["how much is 10 USD?", "GBP to INR"]).as_deref(),
            Ok("The exchange rate for 1 GBP to EUR is 1.20.")
        );
    }

    #[test]
    fn malformed_numbers_do_not_panic() {
        for text in
            [".", ",,,", "1.2.3 USD in INR", "99999999999999999999 USD in INR", "0 USD in INR", "1,2,3 USD"]
        {
            let _ = answer(&[text]);
        }
        assert_eq!(answer(&["0 USD in INR"]).as_deref(), Ok("0 USD is 0.00 INR."));
    }
}
