//! Times as text.

/// RFC 3339, in UTC, of a number of seconds since 1970.
pub fn format(seconds: u64) -> String {
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = date(days);
    format!("{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z", second / 3600, second / 60 % 60, second % 60)
}

/// The Gregorian date. Years are counted from March on, so that the leap day comes last; 400 of them have 146,097 days.
fn date(days_since_1970: u64) -> (u64, u64, u64) {
    let days = days_since_1970 + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (400 * era + year_of_era + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::format;

    #[test]
    fn knows_leap_years() {
        // `date -u -d @N +%FT%TZ`
        assert_eq!(format(0), "1970-01-01T00:00:00Z");
        assert_eq!(format(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(format(1_709_251_199), "2024-02-29T23:59:59Z");
        assert_eq!(format(1_709_251_200), "2024-03-01T00:00:00Z");
        assert_eq!(format(4_107_542_400), "2100-03-01T00:00:00Z");
        assert_eq!(format(1_798_761_599), "2026-12-31T23:59:59Z");
    }
}
