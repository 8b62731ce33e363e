//! What is shown, and what keys do to it. Knows neither a terminal nor a spool.

use super::load::{Loaded, Row, Tab};
use crate::failure::Result;
use std::cmp::Reverse;
use std::collections::HashMap;

/// A key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// A character.
    Char(char),
    /// So many rows up.
    Up(usize),
    /// Down.
    Down(usize),
    /// The next tab.
    Next,
    /// The one before.
    Previous,
    /// Look into the row.
    Enter,
    /// Out again.
    Back,
    /// The last character of the filter goes.
    Erase,
    /// Ctrl-C.
    End,
}

/// What is to be loaded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Want {
    /// Nothing, until something is asked for.
    pub paused: bool,
    /// The report of methods that match, of the profile with this title.
    pub detail: Option<(String, String)>,
    /// Columns that the report has.
    pub width: usize,
    /// A snapshot of this JVM first.
    pub snapshot: Option<u32>,
}

/// By what rows are ordered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// What was counted.
    #[default]
    Value,
    /// What came since the figures before.
    Change,
    /// The name.
    Name,
}

/// What is shown.
pub struct App {
    tabs: Vec<Tab>,
    /// By tab and row: the value of the figures before.
    before: HashMap<(String, String), u64>,
    tab: usize,
    at: usize,
    order: Order,
    filter: String,
    filtering: bool,
    want: Want,
    detail: Option<Vec<String>>,
    scroll: usize,
    message: Option<String>,
    over: bool,
}

impl App {
    /// Begins with the first figures.
    pub fn new(loaded: Loaded) -> Self {
        Self {
            tabs: loaded.tabs,
            before: HashMap::new(),
            tab: 0,
            at: 0,
            order: Order::default(),
            filter: String::new(),
            filtering: false,
            want: Want::default(),
            detail: None,
            scroll: 0,
            message: None,
            over: false,
        }
    }

    /// New figures. An error leaves what is shown, and says so.
    pub fn loaded(&mut self, loaded: Result<Loaded>) {
        let loaded = match loaded {
            Ok(loaded) => loaded,
            Err(failure) => {
                self.message = Some(failure.to_string());
                return;
            }
        };
        self.message = loaded.message;
        let shown = self.tab().map(|tab| tab.title.clone());
        let selected = self.selected().map(|(row, _)| row.name.clone());
        let old = std::mem::replace(&mut self.tabs, loaded.tabs);
        self.before = old
            .into_iter()
            .flat_map(|tab| {
                let title = tab.title;
                tab.rows
                    .into_iter()
                    .map(move |row| ((title.clone(), row.name), row.value))
            })
            .collect();
        // The same tab and row, wherever they are now.
        let same = |tab: &Tab| Some(&tab.title) == shown.as_ref();
        self.tab = self.tabs.iter().position(same).unwrap_or(0);
        if let Some(name) = selected {
            let rows = self.rows();
            self.at = rows
                .iter()
                .position(|(row, _)| row.name == name)
                .unwrap_or(0);
        }
        if self.want.detail.is_some() {
            self.detail = loaded.detail.or(self.detail.take());
        }
    }

    /// What is to be loaded at once because of it.
    pub fn press(&mut self, key: Key) -> Option<Want> {
        if key == Key::End {
            self.over = true;
            return None;
        }
        if self.filtering {
            self.filter_key(key);
            return None;
        }
        if self.detail.is_some() || self.want.detail.is_some() {
            return self.detail_key(key);
        }
        match key {
            Key::Char('q') => self.over = true,
            Key::Up(n) => self.at = self.at.saturating_sub(n),
            Key::Down(n) => {
                let last = self.rows().len().saturating_sub(1);
                self.at = self.at.saturating_add(n).min(last);
            }
            Key::Next => self.turn(1),
            Key::Previous => self.turn(self.tabs.len().saturating_sub(1)),
            Key::Char('s') => {
                self.order = match self.order {
                    Order::Value => Order::Change,
                    Order::Change => Order::Name,
                    Order::Name => Order::Value,
                };
                self.at = 0;
            }
            Key::Char('/') => self.filtering = true,
            Key::Back => {
                self.filter.clear();
                self.at = 0;
            }
            Key::Char('p') => return Some(self.pause()),
            Key::Char('n') => {
                let tab = self.tab()?;
                match tab.takes_snapshots {
                    Some(pid) => {
                        self.message = Some(format!("a snapshot of JVM {pid} is being taken"));
                        return Some(Want {
                            snapshot: Some(pid),
                            ..self.want.clone()
                        });
                    }
                    None => self.message = Some("no JVM here takes snapshots now".into()),
                }
            }
            Key::Enter => {
                let title = self.tab()?.title.clone();
                let (row, _) = self.selected()?;
                self.want.detail = Some((title, row.glob.clone()));
                self.scroll = 0;
                return Some(self.want.clone());
            }
            _ => {}
        }
        None
    }

    fn filter_key(&mut self, key: Key) {
        match key {
            Key::Char(c) => self.filter.push(c),
            Key::Erase => drop(self.filter.pop()),
            Key::Back => {
                self.filter.clear();
                self.filtering = false;
            }
            Key::Enter => self.filtering = false,
            _ => return,
        }
        self.at = 0;
    }

    fn detail_key(&mut self, key: Key) -> Option<Want> {
        match key {
            Key::Up(n) => self.scroll = self.scroll.saturating_sub(n),
            Key::Down(n) => {
                let lines = self.detail.as_ref().map_or(0, Vec::len);
                self.scroll = self.scroll.saturating_add(n).min(lines.saturating_sub(1));
            }
            Key::Back | Key::Enter | Key::Char('q') => {
                self.want.detail = None;
                self.detail = None;
                return Some(self.want.clone());
            }
            Key::Char('p') => return Some(self.pause()),
            _ => {}
        }
        None
    }

    fn pause(&mut self) -> Want {
        self.want.paused = !self.want.paused;
        self.want.clone()
    }

    fn turn(&mut self, by: usize) {
        if !self.tabs.is_empty() {
            self.tab = (self.tab + by) % self.tabs.len();
            self.at = 0;
        }
    }

    /// Whether it is to end.
    pub fn is_over(&self) -> bool {
        self.over
    }

    /// All tabs.
    pub fn tabs(&self) -> &[Tab] {
        &self.tabs
    }

    /// The number of the one that is shown.
    pub fn tab_number(&self) -> usize {
        self.tab
    }

    /// The one that is shown.
    pub fn tab(&self) -> Option<&Tab> {
        self.tabs.get(self.tab)
    }

    /// Its rows that pass the filter, in order, with what each got since the figures before; `None` = there were none.
    pub fn rows(&self) -> Vec<(&Row, Option<u64>)> {
        let Some(tab) = self.tab() else {
            return Vec::new();
        };
        let filter = self.filter.to_lowercase();
        let passes = |row: &&Row| row.name.to_lowercase().contains(&filter);
        let change = |row: &Row| {
            // A row that was not there has come whole, if anything was.
            let key = (tab.title.clone(), row.name.clone());
            let before = match self.before.is_empty() {
                true => return None,
                false => self.before.get(&key).copied().unwrap_or(0),
            };
            Some(row.value.saturating_sub(before))
        };
        let with = |row| (row, change(row));
        let mut rows: Vec<_> = tab.rows.iter().filter(passes).map(with).collect();
        match self.order {
            Order::Value => rows.sort_by_key(|(row, _)| Reverse(row.value)),
            Order::Change => rows.sort_by_key(|(row, change)| Reverse((*change, row.value))),
            Order::Name => rows.sort_by(|a, b| a.0.name.cmp(&b.0.name)),
        }
        rows
    }

    fn selected(&self) -> Option<(&Row, Option<u64>)> {
        self.rows().get(self.at).copied()
    }

    /// The row that is chosen, among those that are shown.
    pub fn at(&self) -> usize {
        self.at
    }

    /// By what they are ordered.
    pub fn order(&self) -> Order {
        self.order
    }

    /// The filter, and whether it is being typed.
    pub fn filter(&self) -> (&str, bool) {
        (&self.filter, self.filtering)
    }

    /// Whether figures stand still.
    pub fn is_paused(&self) -> bool {
        self.want.paused
    }

    /// The report of a row, and its line that is on top; `Some` without lines: it is being made.
    pub fn detail(&self) -> Option<(&[String], usize)> {
        match &self.detail {
            Some(lines) => Some((lines, self.scroll)),
            None => self.want.detail.as_ref().map(|_| (&[][..], 0)),
        }
    }

    /// What there is to say.
    pub fn message(&self) -> Option<&str> {
        self.message.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use super::super::load::{Loaded, Row, Tab};
    use super::*;

    /// Two JVMs, the second with snapshots.
    pub fn loaded(first: u64, second: u64) -> Loaded {
        let row = |name: &str, value| Row {
            name: name.into(),
            glob: name.into(),
            value,
            shown: value.to_string(),
            note: String::new(),
        };
        let tab = |title: &str, rows, takes_snapshots| Tab {
            title: title.into(),
            unit: "iterations",
            total: first + second,
            rows,
            note: "so far".into(),
            takes_snapshots,
        };
        Loaded {
            tabs: vec![
                tab("1", vec![row("a.B.c", first), row("a.B.d", second)], None),
                tab("2", vec![row("x.Y.z", 7)], Some(2)),
            ],
            detail: None,
            message: None,
        }
    }

    fn names(app: &App) -> Vec<&str> {
        app.rows()
            .iter()
            .map(|(row, _)| row.name.as_str())
            .collect()
    }

    #[test]
    fn rows_are_ordered_by_value_by_change_and_by_name() {
        let mut app = App::new(loaded(5, 100));
        assert_eq!(names(&app), ["a.B.d", "a.B.c"]);
        assert_eq!(app.rows()[0].1, None);
        app.loaded(Ok(loaded(50, 101)));
        app.press(Key::Char('s'));
        assert_eq!(app.order(), Order::Change);
        assert_eq!(names(&app), ["a.B.c", "a.B.d"]);
        assert_eq!(app.rows()[0].1, Some(45));
        app.press(Key::Char('s'));
        assert_eq!(names(&app), ["a.B.c", "a.B.d"]);
        app.press(Key::Char('s'));
        assert_eq!(app.order(), Order::Value);
    }

    #[test]
    fn what_is_chosen_stays_chosen_when_figures_change() {
        let mut app = App::new(loaded(5, 100));
        app.press(Key::Down(1));
        assert_eq!(app.selected().unwrap().0.name, "a.B.c");
        app.loaded(Ok(loaded(500, 101)));
        assert_eq!(app.selected().unwrap().0.name, "a.B.c");
        assert_eq!(app.at(), 0);
        app.press(Key::Down(usize::MAX));
        app.press(Key::Down(1));
        assert_eq!(app.at(), 1);
        app.press(Key::Up(usize::MAX));
        assert_eq!(app.at(), 0);
    }

    #[test]
    fn the_filter_takes_keys_until_enter() {
        let mut app = App::new(loaded(5, 100));
        for key in [
            Key::Char('/'),
            Key::Char('B'),
            Key::Char('.'),
            Key::Char('q'),
        ] {
            assert_eq!(app.press(key), None);
        }
        assert!(names(&app).is_empty() && !app.is_over());
        app.press(Key::Erase);
        app.press(Key::Char('c'));
        assert_eq!(names(&app), ["a.B.c"]);
        app.press(Key::Enter);
        assert_eq!(app.filter(), ("B.c", false));
        app.press(Key::Back);
        assert_eq!(names(&app).len(), 2);
        app.press(Key::Char('q'));
        assert!(app.is_over());
    }

    #[test]
    fn enter_asks_for_a_report_and_escape_drops_it() {
        let mut app = App::new(loaded(5, 100));
        let want = app.press(Key::Enter).unwrap();
        assert_eq!(want.detail, Some(("1".into(), "a.B.d".into())));
        assert_eq!(app.detail(), Some((&[][..], 0)));
        let mut with = loaded(5, 101);
        with.detail = Some(vec!["one".into(), "two".into()]);
        app.loaded(Ok(with));
        app.press(Key::Down(10));
        assert_eq!(app.detail().unwrap().1, 1);
        // A report that could not be made this time stays.
        app.loaded(Ok(loaded(5, 102)));
        assert_eq!(app.detail().unwrap().0.len(), 2);
        assert_eq!(app.press(Key::Back).unwrap().detail, None);
        assert_eq!(app.detail(), None);
    }

    #[test]
    fn tabs_pauses_and_snapshots() {
        let mut app = App::new(loaded(5, 100));
        assert_eq!(app.press(Key::Char('n')), None);
        assert!(app.message().unwrap().contains("no JVM"));
        app.press(Key::Next);
        assert_eq!(app.press(Key::Char('n')).unwrap().snapshot, Some(2));
        app.loaded(Ok(loaded(6, 100)));
        assert_eq!(app.tab_number(), 1);
        app.press(Key::Next);
        assert_eq!(app.tab_number(), 0);
        app.press(Key::Previous);
        assert_eq!(app.tab_number(), 1);
        assert!(app.press(Key::Char('p')).unwrap().paused);
        assert!(!app.press(Key::Char('p')).unwrap().paused);
    }

    #[test]
    fn an_error_leaves_what_is_shown() {
        let mut app = App::new(loaded(5, 100));
        app.loaded(Err(crate::failure::cannot!("the disk is full")));
        assert_eq!(app.message(), Some("the disk is full"));
        assert_eq!(names(&app).len(), 2);
        app.press(Key::End);
        assert!(app.is_over());
    }
}
