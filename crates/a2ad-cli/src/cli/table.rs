//! Lists as lines in columns.

/// One line for each row; columns are as wide as their widest cell, and the last one ends its line.
pub(super) fn columns<const N: usize>(rows: &[[String; N]]) -> String {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; N] = std::array::from_fn(width);
    let mut out = String::new();
    for row in rows {
        let cells = row.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}"));
        out += cells.collect::<Vec<_>>().join("  ").trim_end();
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let row = |cells: [&str; 3]| cells.map(str::to_owned);
        let rows = [row(["a", "é", "x"]), row(["long", "b", "longer"])];
        assert_eq!(columns(&rows), "a     é  x\nlong  b  longer\n");
        assert_eq!(columns::<2>(&[]), "");
    }
}
