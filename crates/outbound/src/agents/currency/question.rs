//! Reading a question: an amount, a currency to convert from, and one to convert to, in whatever order people
//! say them.

use super::rates::{self, Currency};

/// What is known of a question.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Question {
    /// As it was written, without the marks between thousands.
    amount: Option<String>,
    from: Option<&'static Currency>,
    to: Option<&'static Currency>,
    /// What looks like a currency and has no rate.
    unknown: Option<String>,
    /// Currencies whose place only the rest of the conversation tells.
    loose: Vec<&'static Currency>,
}

/// What keeps a question from being answered.
#[derive(Debug, PartialEq)]
pub(super) enum Missing {
    Everything,
    Source,
    Target,
    Rate(String),
}

impl Question {
    /// What one message says.
    pub(super) fn read(text: &str) -> Self {
        let mut question = Self::default();
        let mut before = Before::Nothing;
        for word in split(text) {
            before = question.hear(word, before);
        }
        question
    }

    /// The question of a message within a conversation: what it leaves open is as before.
    pub(super) fn after(mut self, earlier: Self) -> Self {
        // Who names both currencies once there was an answer asks anew.
        let anew = earlier.is_complete() && self.currencies() > 1;
        let earlier = if anew { Self::default() } else { earlier };
        let mut loose = std::mem::take(&mut self.loose).into_iter();
        // "What is the rate for dollars?" after "10 USD in INR" does not ask for dollars in dollars.
        let same = loose.as_slice().first().copied() == earlier.from;
        if self.from.is_none() && (same || earlier.from.is_none() || self.to.is_some() || loose.len() > 1) {
            self.from = loose.next();
        }
        self.to = self.to.or_else(|| loose.next());
        Self {
            amount: self.amount.or(earlier.amount),
            from: self.from.or(earlier.from),
            to: self.to.or(earlier.to),
            ..self
        }
    }

    /// The question of a message that needs no other to be answered.
    pub(super) fn alone(&self) -> Option<Self> {
        Some(self.clone().after(Self::default())).filter(|alone| alone.answer().is_ok())
    }

    /// What is known after one more message of the conversation, which may have been meant for another skill.
    pub(super) fn overhear(self, text: &str) -> Self {
        let asked = Self::read(text);
        match asked.alone() {
            Some(alone) => alone,
            None if asked.currencies() > 0 || is_bare_amount(text) => asked.after(self),
            None => self,
        }
    }

    /// The answer in one sentence, or what is missing.
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
        let (value, from, to) = (show(value), from.code, to.code);
        Ok(match amount {
            "1" => format!("The exchange rate for 1 {from} to {to} is {value}."),
            _ => format!("{amount} {from} is {value} {to}."),
        })
    }

    /// What is worth remembering, as text.
    pub(super) fn save(&self) -> String {
        let code = |currency: Option<&Currency>| currency.map_or("-", |currency| currency.code);
        format!("{} {} {}", self.amount.as_deref().unwrap_or("-"), code(self.from), code(self.to))
    }

    /// What was remembered.
    pub(super) fn recall(saved: &str) -> Option<Self> {
        let mut fields = saved.split(' ');
        let (amount, from, to) = (fields.next()?, fields.next()?, fields.next()?);
        let amount = Some(amount.to_owned()).filter(|amount| amount != "-");
        Some(Self { amount, from: rates::find(from), to: rates::find(to), ..Self::default() })
    }

    fn is_complete(&self) -> bool {
        self.from.is_some() && self.to.is_some()
    }

    /// How many currencies it names.
    fn currencies(&self) -> usize {
        self.from.iter().len() + self.to.iter().len() + self.loose.len()
    }

    fn hear(&mut self, word: &str, before: Before) -> Before {
        if let Some(amount) = amount(word) {
            // "$10": the sign belongs to the amount behind it.
            if before == Before::Sign && self.from.is_none() {
                self.from = self.loose.pop();
            }
            self.amount = Some(amount);
            return Before::Amount;
        }
        let Some(currency) = rates::find(word) else { return self.pass_over(word) };
        let is_code = word.eq_ignore_ascii_case(currency.code);
        match before {
            // "Canadian dollars" is one currency, not two.
            Before::Currency if !is_code => {}
            Before::Amount => self.from = Some(currency),
            Before::Into => self.to = Some(currency),
            Before::From => self.from = Some(currency),
            Before::Currency | Before::Sign | Before::Nothing => self.loose.push(currency),
        }
        if word.chars().all(char::is_alphabetic) { Before::Currency } else { Before::Sign }
    }

    fn pass_over(&mut self, word: &str) -> Before {
        if word.len() == 3 && word.bytes().all(|byte| byte.is_ascii_uppercase()) {
            self.unknown = Some(word.into());
        }
        match word.to_lowercase().as_str() {
            "in" | "into" | "to" => Before::Into,
            "from" => Before::From,
            _ => Before::Nothing,
        }
    }
}

/// What stood before a word.
#[derive(Clone, Copy, PartialEq)]
enum Before {
    Nothing,
    Amount,
    Currency,
    Sign,
    Into,
    From,
}

/// Runs of letters, runs of digits with the marks inside them, and single signs.
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

/// "And 30?" says no more than a number; "wait 5" and "delay=1ms" are about something else.
fn is_bare_amount(text: &str) -> bool {
    const LITTLE: [&str; 16] = [
        "about", "and", "currency", "for", "how", "if", "it", "just", "make", "no", "only", "or", "please",
        "then", "what", "with",
    ];
    let little = |word: &str| LITTLE.iter().any(|known| known.eq_ignore_ascii_case(word));
    split(text).all(|word| little(word) || !word.contains(char::is_alphabetic))
}

/// A number of a sensible size: `10`, `2.50`, `1,000`, `2,50`.
fn amount(word: &str) -> Option<String> {
    let word = word.trim_matches(['.', ',']);
    let thousands =
        word.split(',').skip(1).all(|group| group.split('.').next().is_some_and(|digits| digits.len() == 3));
    let plain = if thousands { word.replace(',', "") } else { word.replace(',', ".") };
    let digits = plain.bytes().filter(u8::is_ascii_digit).count();
    (1..=15).contains(&digits).then_some(())?;
    plain.parse::<f64>().ok().map(|_| plain)
}

/// Two digits behind the point, or four that tell something where it is less than one.
fn show(value: f64) -> String {
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

    fn answer(said: &[&str]) -> Result<String, Missing> {
        let talk = |earlier: Question, text: &&str| {
            let question = Question::read(text).after(earlier);
            Question::recall(&question.save())
                .map(|kept| Question { unknown: question.unknown, ..kept })
                .unwrap()
        };
        said.iter()
            .fold(Question::default(), |earlier, text| talk(Question { unknown: None, ..earlier }, text))
            .answer()
    }

    #[test]
    fn a_question_is_understood_however_it_is_put() {
        for (said, expected) in [
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
            assert_eq!(answer(&[said]).as_deref(), Ok(expected), "{said}");
        }
    }

    #[test]
    fn what_is_missing_is_asked_for_and_may_come_later() {
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
    fn an_answer_can_be_followed_by_another_question() {
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
    fn what_is_overheard_counts_only_where_it_is_about_money() {
        let after = |said: &[&str]| {
            let earlier = said.iter().fold(Question::default(), |earlier, said| earlier.overhear(said));
            Question::read("and in EUR?").after(earlier).answer()
        };
        let first = "10 USD in INR";
        for other in ["good morning", "the sea sections=2 delay=1ms", "echo 5", "Use the API", "no"] {
            assert_eq!(after(&[first, other]).as_deref(), Ok("10 USD is 9.26 EUR."), "{other}");
        }
        for more in ["30", "And 30?", "what about 30, please?", "currency: make it 30", "30 USD"] {
            assert_eq!(after(&[first, more]).as_deref(), Ok("30 USD is 27.77 EUR."), "{more}");
        }
        assert_eq!(
            after(&["how much is 10 USD?", "GBP to INR"]).as_deref(),
            Ok("The exchange rate for 1 GBP to EUR is 1.20.")
        );
    }

    #[test]
    fn strange_numbers_do_no_harm() {
        for said in
            [".", ",,,", "1.2.3 USD in INR", "99999999999999999999 USD in INR", "0 USD in INR", "1,2,3 USD"]
        {
            let _ = answer(&[said]);
        }
        assert_eq!(answer(&["0 USD in INR"]).as_deref(), Ok("0 USD is 0.00 INR."));
    }
}
