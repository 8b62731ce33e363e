//! Draws it.

use super::app::{App, Order};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Cell, Paragraph, Row as TableRow, Table, TableState, Tabs};

const REVERSED: Style = Style::new().add_modifier(Modifier::REVERSED);
const BOLD: Style = Style::new().add_modifier(Modifier::BOLD);
const DIM: Style = Style::new().add_modifier(Modifier::DIM);

/// Columns of numbers.
const COUNT: u16 = 15;
const SHARE: u16 = 7;
const CHANGE: u16 = 13;
/// Columns of a name below which there is no room for a note.
const NARROW: u16 = 50;

/// The whole screen: JVMs, what there is to know of the one that is shown, its rows or a report, keys.
pub fn draw(frame: &mut Frame<'_>, app: &mut App) {
    let [tabs, note, body, message, keys] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(1),
        Constraint::Min(1),
        Constraint::Length(1),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    let titles = app.tabs().iter().map(|tab| clean(&tab.title));
    frame.render_widget(
        Tabs::new(titles)
            .select(app.tab_number())
            .highlight_style(REVERSED),
        tabs,
    );
    let paused = if app.is_paused() { "PAUSED; " } else { "" };
    let said = app.tab().map_or(String::new(), |tab| clean(&tab.note));
    frame.render_widget(Paragraph::new(format!("{paused}{said}")).style(DIM), note);
    let message_shown = clean(app.message().unwrap_or_default());
    frame.render_widget(Paragraph::new(message_shown), message);
    let help = match (app.detail(), app.filter()) {
        (Some((lines, top)), _) => {
            report(frame, body, lines, top);
            "Esc back  ↑↓ PgUp PgDn scroll  p pause".to_owned()
        }
        (None, (filter, filtering)) => {
            rows(frame, body, app);
            match (filtering, filter) {
                (true, filter) => format!("/{filter}_  Enter keep  Esc drop"),
                (false, "") => keys_of(app.order()),
                (false, filter) => {
                    format!("only with {filter:?} (Esc: all)  {}", keys_of(app.order()))
                }
            }
        }
    };
    frame.render_widget(Paragraph::new(help).style(DIM), keys);
}

fn keys_of(order: Order) -> String {
    let by = match order {
        Order::Value => "value",
        Order::Change => "change",
        Order::Name => "name",
    };
    format!("q quit  ↑↓ Enter look  / filter  s sort (by {by})  p pause  n snapshot  Tab next")
}

fn report(frame: &mut Frame<'_>, area: Rect, lines: &[String], top: usize) {
    let lines: Vec<Line<'_>> = match lines {
        [] => vec![Line::from("...")],
        _ => lines
            .iter()
            .skip(top)
            .map(|line| Line::from(clean(line)))
            .collect(),
    };
    frame.render_widget(Paragraph::new(lines), area);
}

fn rows(frame: &mut Frame<'_>, area: Rect, app: &App) {
    let Some(tab) = app.tab() else {
        return;
    };
    let all = app.rows();
    let share = |value: u64| match tab.total {
        0 => String::new(),
        total => format!("{:.1} %", 100.0 * value as f64 / total as f64),
    };
    let numbers = [COUNT, SHARE, CHANGE];
    let taken: u16 = numbers.iter().map(|width| width + 1).sum();
    let longest = all.iter().map(|(row, _)| row.note.chars().count()).max();
    let room = area.width.saturating_sub(taken);
    // A note is worth a column where names have room enough.
    let note = u16::try_from(longest.unwrap_or(0)).map_or(room / 3, |n| n.min(room / 3));
    let note = if room >= NARROW { note } else { 0 };
    let name = usize::from(room.saturating_sub(note + 1));
    let table = all.iter().map(|(row, change)| {
        let change = match change {
            None | Some(0) => String::new(),
            Some(n) => format!("+{}", borescope_report::thousands(*n)),
        };
        TableRow::new([
            right(&row.shown),
            right(&share(row.value)),
            right(&change),
            Cell::from(end_of(&clean(&row.name), name)),
            Cell::from(clean(&row.note)),
        ])
    });
    let mut state = TableState::new().with_selected((!all.is_empty()).then_some(app.at()));
    let table = Table::new(
        table,
        [
            Constraint::Length(COUNT),
            Constraint::Length(SHARE),
            Constraint::Length(CHANGE),
            Constraint::Fill(1),
            Constraint::Length(note),
        ],
    )
    .header(
        TableRow::new([
            right(tab.unit),
            right("share"),
            right("new"),
            Cell::from(match tab.unit {
                "paths" => "method",
                "bytes" => "line",
                _ => "first line → second line",
            }),
            Cell::from(""),
        ])
        .style(BOLD),
    )
    .row_highlight_style(REVERSED);
    frame.render_stateful_widget(table, area, &mut state);
}

fn right(text: &str) -> Cell<'static> {
    Cell::from(Line::from(text.to_owned()).right_aligned())
}

/// A name is told by its end.
fn end_of(name: &str, width: usize) -> String {
    let more = name.chars().count().saturating_sub(width);
    match more {
        0 => name.to_owned(),
        _ => std::iter::once('…')
            .chain(name.chars().skip(more + 1))
            .collect(),
    }
}

/// Names come from the program: no control character reaches the terminal.
fn clean(text: &str) -> String {
    text.replace(char::is_control, "\u{fffd}")
}

#[cfg(test)]
mod tests {
    use super::super::app::Key;
    use super::super::load::{Loaded, Row, Tab};
    use super::*;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    fn app() -> App {
        let row = |name: &str, value: u64| Row {
            name: name.into(),
            glob: name.into(),
            value,
            shown: borescope_report::thousands(value),
            note: "7 of 16 paths ran".into(),
        };
        let tab = Tab {
            title: "paths of 4711".into(),
            unit: "paths",
            total: 200_000,
            rows: vec![
                row("acme.Scanner.next()V", 150_000),
                row("acme.\u{1b}[2J.x()V", 50_000),
            ],
            note: "acme.Main (runs); k = 4".into(),
            takes_snapshots: None,
        };
        App::new(Loaded {
            tabs: vec![tab],
            ..Loaded::default()
        })
    }

    fn screen(app: &mut App, width: u16, height: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| draw(frame, app)).unwrap();
        let buffer = terminal.backend().buffer();
        let lines = buffer.content().chunks(width.into());
        let lines = lines.map(|line| line.iter().map(|cell| cell.symbol()).collect::<String>());
        lines
            .map(|line| line.trim_end().to_owned() + "\n")
            .collect()
    }

    #[test]
    fn it_can_be_read_at_80_columns() {
        let text = screen(&mut app(), 80, 8);
        assert!(text.contains("150,000  75.0 %"), "{text}");
        assert!(text.contains("acme.Scanner.next()V"), "{text}");
        assert!(text.contains("acme.Main (runs); k = 4"), "{text}");
        assert!(text.contains("q quit"), "{text}");
        assert!(!text.contains('\u{1b}'), "{text:?}");
    }

    #[test]
    fn a_name_that_is_too_long_keeps_its_end() {
        assert_eq!(end_of("acme.Scanner.next", 17), "acme.Scanner.next");
        assert_eq!(end_of("acme.Scanner.next", 5), "…next");
        let text = screen(&mut app(), 56, 8);
        assert!(text.contains("…") && text.contains("next()V"), "{text}");
    }

    #[test]
    fn any_size_is_drawn() {
        let mut app = app();
        for (width, height) in [(1, 1), (2, 3), (10, 5), (300, 100)] {
            screen(&mut app, width, height);
        }
        app.press(Key::Enter);
        assert!(screen(&mut app, 40, 6).contains("..."));
    }
}
