//! Grouped bars as SVG: a group a program, a bar a series. (The plotting crates do no groups of bars with names below them.)

use std::fmt::Write as _;

/// What to draw.
pub struct Chart<'a> {
    /// Above the plot.
    pub title: &'a str,
    /// Along the vertical axis.
    pub unit: &'a str,
    /// A dashed line across: the value that bars are compared with.
    pub reference: Option<f64>,
    /// Names of the groups.
    pub groups: &'a [String],
    /// Names of the bars in each group.
    pub series: &'a [String],
    /// Which colour each series has: the same k looks the same in all plots.
    pub shades: &'a [usize],
    /// By group, then by series. No value draws a cross.
    pub values: &'a [Vec<Option<f64>>],
}

const GAP: f64 = 14.0;
const LEFT: f64 = 64.0;
const TOP: f64 = 52.0;
const HEIGHT: f64 = 260.0;
const BELOW: f64 = 74.0;
/// From light to dark as k grows.
const COLOURS: [&str; 8] = [
    "#fde725", "#a0da39", "#4ac16d", "#1fa187", "#277f8e", "#365c8d", "#46327e", "#2d0b45",
];

/// Where values stand on the vertical axis.
struct Axis {
    low: f64,
    high: f64,
    log: bool,
}

impl Axis {
    /// Logarithmic where the values lie far apart.
    fn of(values: impl Iterator<Item = f64> + Clone) -> Axis {
        let high = values.clone().fold(f64::MIN_POSITIVE, f64::max);
        let low = values.filter(|v| *v > 0.0).fold(high, f64::min);
        if high / low > 25.0 {
            return Axis {
                low: 10f64.powf(low.log10().floor()),
                high: 10f64.powf(high.log10().ceil()),
                log: true,
            };
        }
        let step = Self::step(high);
        Axis {
            low: 0.0,
            high: (high / step).ceil() * step,
            log: false,
        }
    }

    /// 1, 2 or 5 times a power of ten: four to ten of them make `high`.
    fn step(high: f64) -> f64 {
        let power = 10f64.powf((high / 10.0).log10().ceil());
        [power / 5.0, power / 2.0, power]
            .into_iter()
            .find(|step| high / step <= 10.0)
            .unwrap_or(power)
    }

    fn ticks(&self) -> Vec<f64> {
        if self.log {
            let decades = self.low.log10().round() as i32..=self.high.log10().round() as i32;
            return decades.map(|d| 10f64.powi(d)).collect();
        }
        let step = Self::step(self.high);
        let last = (self.high / step).round() as u32;
        (0..=last).map(|i| f64::from(i) * step).collect()
    }

    /// Height above the bottom.
    fn place(&self, value: f64) -> f64 {
        let share = match self.log {
            true => (value.max(self.low) / self.low).log10() / (self.high / self.low).log10(),
            false => value / self.high,
        };
        HEIGHT * share.clamp(0.0, 1.0)
    }
}

impl Chart<'_> {
    /// The picture.
    pub fn svg(&self) -> String {
        let bar = self.bar();
        let group = bar * self.series.len() as f64 + GAP;
        let width = group * self.groups.len() as f64;
        let bottom = TOP + HEIGHT;
        let (full, tall) = ((LEFT + width + 16.0).max(520.0), bottom + BELOW);
        let all = self.values.iter().flatten().flatten().copied();
        let axis = Axis::of(all.chain(self.reference));
        let mut out = String::new();
        // Writing to a string does not fail.
        let _ = self.draw(&mut out, &axis, group, [full, tall, width, bottom]);
        out
    }

    /// Wide enough that the names below the groups do not meet.
    fn bar(&self) -> f64 {
        if self.series.len() > 2 { 9.0 } else { 18.0 }
    }

    fn colour(&self, series: usize) -> &'static str {
        let shade = self.shades.get(series).copied().unwrap_or(series);
        COLOURS[shade % COLOURS.len()]
    }

    fn draw(
        &self,
        out: &mut String,
        axis: &Axis,
        group: f64,
        [full, tall, width, bottom]: [f64; 4],
    ) -> std::fmt::Result {
        writeln!(
            out,
            r##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {full:.0} {tall:.0}" width="{full:.0}" height="{tall:.0}" font-family="sans-serif" font-size="11" fill="#222">"##
        )?;
        writeln!(
            out,
            r##"<rect width="100%" height="100%" fill="#fff"/><text x="8" y="16" font-size="13" font-weight="bold">{}</text>"##,
            escape(self.title)
        )?;
        let mut x = LEFT;
        for (i, name) in self.series.iter().enumerate() {
            let colour = self.colour(i);
            writeln!(
                out,
                r##"<rect x="{x:.0}" y="26" width="9" height="9" fill="{colour}"/><text x="{:.0}" y="35">{}</text>"##,
                x + 13.0,
                escape(name)
            )?;
            x += 26.0 + 6.6 * name.chars().count() as f64;
        }
        writeln!(
            out,
            r##"<text transform="translate(14 {:.0}) rotate(-90)" text-anchor="middle">{}</text>"##,
            TOP + HEIGHT / 2.0,
            escape(self.unit) + if axis.log { " (logarithmic)" } else { "" }
        )?;
        for tick in axis.ticks() {
            let y = bottom - axis.place(tick);
            writeln!(
                out,
                r##"<path d="M{LEFT} {y:.1}h{width:.1}" stroke="#ddd"/><text x="{:.0}" y="{:.1}" text-anchor="end">{}</text>"##,
                LEFT - 6.0,
                y + 4.0,
                short(tick)
            )?;
        }
        for (at, (name, values)) in self.groups.iter().zip(self.values).enumerate() {
            let left = LEFT + GAP / 2.0 + group * at as f64;
            for (i, value) in values.iter().enumerate() {
                let x = left + self.bar() * i as f64;
                let series = self.series.get(i).map_or("", String::as_str);
                match value {
                    Some(value) => {
                        let height = axis.place(*value);
                        writeln!(
                            out,
                            r##"<rect x="{x:.1}" y="{:.1}" width="{:.1}" height="{height:.1}" fill="{}"><title>{}, {}: {}</title></rect>"##,
                            bottom - height,
                            self.bar() - 1.0,
                            self.colour(i),
                            escape(name),
                            escape(series),
                            short(*value)
                        )?;
                    }
                    None => writeln!(
                        out,
                        r##"<text x="{x:.1}" y="{:.1}" fill="#b00">×<title>{}, {}: no value</title></text>"##,
                        bottom - 2.0,
                        escape(name),
                        escape(series)
                    )?,
                }
            }
            writeln!(
                out,
                r##"<text transform="translate({:.1} {:.1}) rotate(-35)" text-anchor="end">{}</text>"##,
                left + (group - GAP) / 2.0 + 4.0,
                bottom + 14.0,
                escape(name)
            )?;
        }
        if let Some(value) = self.reference {
            let y = bottom - axis.place(value);
            writeln!(
                out,
                r##"<path d="M{LEFT} {y:.1}h{width:.1}" stroke="#b00" stroke-dasharray="5 3"/>"##
            )?;
        }
        writeln!(
            out,
            r##"<path d="M{LEFT} {TOP}v{HEIGHT}h{width:.1}" fill="none" stroke="#222"/>"##
        )?;
        writeln!(out, "</svg>")
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

/// Three digits or so: 0.0123, 1.53, 152, 15.2k, 3M.
pub fn short(value: f64) -> String {
    let (scaled, unit) = match value.abs() {
        v if v >= 999.5e9 => (value / 1e12, "T"),
        v if v >= 999.5e6 => (value / 1e9, "G"),
        v if v >= 999.5e3 => (value / 1e6, "M"),
        v if v >= 9995.0 => (value / 1e3, "k"),
        _ => (value, ""),
    };
    let decimals = match scaled.abs() {
        v if v >= 99.95 || v == 0.0 => 0,
        v if v >= 9.995 => 1,
        v if v >= 0.0995 => 2,
        _ => return format!("{scaled:.2e}"),
    };
    let digits = format!("{scaled:.decimals$}");
    let digits = match digits.contains('.') {
        true => digits.trim_end_matches('0').trim_end_matches('.'),
        false => &digits,
    };
    format!("{digits}{unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes() {
        let axis = Axis::of([1.1, 1.7, 3.2].into_iter());
        assert!(!axis.log);
        assert_eq!(axis.ticks(), [0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5]);
        assert_eq!(axis.place(0.0), 0.0);
        assert_eq!(axis.place(3.5), HEIGHT);
        let axis = Axis::of([3.0, 2e6].into_iter());
        assert!(axis.log);
        assert_eq!((axis.low, axis.high), (1.0, 1e7));
        assert_eq!(axis.ticks().len(), 8);
        assert!((axis.place(1000.0) - HEIGHT * 3.0 / 7.0).abs() < 1e-9);
    }

    #[test]
    fn numbers() {
        for (value, text) in [
            (0.0, "0"),
            (0.5, "0.5"),
            (1.234, "1.23"),
            (15.0, "15"),
            (152.4, "152"),
            (1234.0, "1234"),
            (15_230.0, "15.2k"),
            (3e6, "3M"),
            (0.00123, "1.23e-3"),
        ] {
            assert_eq!(short(value), text);
        }
    }

    #[test]
    fn a_bar_a_value_and_a_cross_where_there_is_none() {
        let chart = Chart {
            title: "a < b",
            unit: "ratio",
            reference: Some(1.0),
            groups: &["ecj".into(), "lu".into()],
            series: &["k=2".into(), "k=4".into()],
            shades: &[1, 3],
            values: &[vec![Some(1.5), None], vec![Some(2.0), Some(3.0)]],
        };
        let svg = chart.svg();
        assert_eq!(svg.matches("<title>").count(), 4);
        assert_eq!(svg.matches('×').count(), 1);
        assert!(svg.contains("a &lt; b") && svg.contains("ecj, k=2: 1.5"));
        // Each colour in the legend and for its bars.
        let uses = |shade: usize| svg.matches(COLOURS[shade]).count();
        assert_eq!([uses(0), uses(1), uses(2), uses(3)], [0, 3, 0, 2]);
    }
}
