//! Bundled exchange rates of April 2025, per US dollar, rounded.

/// A currency and its rate.
#[derive(Debug, PartialEq)]
pub(super) struct Currency {
    pub(super) code: &'static str,
    /// Units per US dollar.
    pub(super) per_dollar: f64,
    /// Names and signs, in lower case; an ambiguous name belongs to the first currency in the table.
    names: &'static [&'static str],
}

/// Looks up a currency by code or name, ignoring case.
pub(super) fn find(word: &str) -> Option<&'static Currency> {
    let same = |name: &str| name.eq_ignore_ascii_case(word) || name == word;
    RATES.iter().find(|currency| same(currency.code) || currency.names.iter().any(|name| same(name)))
}

/// All codes.
pub(super) fn codes() -> impl Iterator<Item = &'static str> {
    RATES.iter().map(|currency| currency.code)
}

/// All codes and names.
pub(super) fn words() -> impl Iterator<Item = &'static str> {
    RATES.iter().flat_map(|currency| currency.names.iter().copied().chain([currency.code]))
}

const fn rate(code: &'static str, per_dollar: f64, names: &'static [&'static str]) -> Currency {
    Currency { code, per_dollar, names }
}

static RATES: [Currency; 31] = [
    rate("USD", 1.0, &["$", "dollar", "dollars", "american"]),
    rate("EUR", 0.9257, &["€", "euro", "euros"]),
    rate("GBP", 0.7725, &["£", "pound", "pounds", "sterling", "british"]),
    rate("JPY", 149.65, &["¥", "yen", "japanese"]),
    rate("INR", 85.49, &["₹", "rupee", "rupees", "indian"]),
    rate("CAD", 1.4328, &["canadian"]),
    rate("AUD", 1.5895, &["australian"]),
    rate("CHF", 0.8841, &["franc", "francs", "swiss"]),
    rate("CNY", 7.272, &["yuan", "renminbi", "chinese"]),
    rate("AED", 3.6725, &["dirham", "dirhams"]),
    rate("BRL", 5.682, &["reais", "brazilian"]),
    rate("CZK", 23.11, &["koruna", "czech"]),
    rate("DKK", 6.906, &["danish"]),
    rate("HKD", 7.783, &[]),
    rate("HUF", 372.9, &["forint", "forints", "hungarian"]),
    rate("IDR", 16_724.0, &["rupiah", "indonesian"]),
    rate("ILS", 3.713, &["₪", "shekel", "shekels", "israeli"]),
    rate("ISK", 132.5, &["icelandic"]),
    rate("KRW", 1_464.0, &["₩", "korean"]),
    rate("MXN", 20.32, &["peso", "pesos", "mexican"]),
    rate("MYR", 4.462, &["ringgit", "malaysian"]),
    rate("NOK", 10.44, &["krone", "kroner", "norwegian"]),
    rate("NZD", 1.7448, &[]),
    rate("PHP", 57.2, &["philippine"]),
    rate("PLN", 3.87, &["zloty", "polish"]),
    rate("RON", 4.607, &["romanian"]),
    rate("SAR", 3.75, &["riyal", "riyals", "saudi"]),
    rate("SEK", 9.988, &["krona", "kronor", "swedish"]),
    rate("SGD", 1.3434, &[]),
    rate("THB", 34.23, &["baht", "thai"]),
    rate("ZAR", 18.7, &["rand"]),
];
