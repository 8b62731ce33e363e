//! `borescope top`: a live view of what the agents of a run have counted so far. Only the spool is read: the JVM does not notice.
//!
//! [`load`] makes rows of the profiles as they are now, in a thread of its own; [`app`] is what keys do to what is shown; [`view`] draws it. Only this file knows a terminal.

mod app;
mod load;
mod view;

use crate::args::TopArgs;
use crate::failure::{Result, cannot, usage};
use crate::{control, show};
use app::{App, Key, Want};
use load::{Loaded, Source};
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use signal_hook::consts::{SIGHUP, SIGTERM};
use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

/// Between two looks for a key or for new figures.
const STEP: Duration = Duration::from_millis(50);

/// Shows it until a key ends it.
pub fn run(args: &TopArgs) -> Result<ExitCode> {
    if !std::io::stdout().is_terminal() || !std::io::stdin().is_terminal() {
        return Err(usage!(
            "`borescope top` needs a terminal: `borescope report DIR` prints what there is so far"
        ));
    }
    let dir = directory(&args.target)?;
    let source = Source {
        dir,
        sources: show::sources(&args.source)?,
    };
    // What is wrong from the start is said in a line, not in a picture.
    let first = source.load(&Want::default())?;
    let ended = Arc::new(AtomicBool::new(false));
    for signal in [SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&ended))
            .map_err(|e| cannot!("signal handling: {e}"))?;
    }
    let (wants, asked) = channel();
    let (made, loads) = channel();
    let every = Duration::from_secs(args.interval.into());
    std::thread::spawn(move || keep_loading(&source, every, &asked, &made));
    let mut terminal =
        ratatui::try_init().map_err(|e| cannot!("the terminal cannot be drawn to: {e}"))?;
    let shown = watch(&mut terminal, App::new(first), &wants, &loads, &ended);
    ratatui::restore();
    shown.map_err(|e| cannot!("the terminal cannot be drawn to: {e}"))?;
    Ok(ExitCode::SUCCESS)
}

/// The output directory: named, or that of the agent in a JVM.
fn directory(target: &Path) -> Result<PathBuf> {
    if target.is_dir() {
        return Ok(target.to_owned());
    }
    match target.to_str().and_then(|text| text.parse().ok()) {
        Some(pid) => control::output_of(pid),
        None => Err(usage!(
            "no directory {}: give the one that `borescope paths`, `sites` or `waste` named, or a process id",
            target.display()
        )),
    }
}

/// Loads when the time has come or something is wanted. Ends with the other side.
fn keep_loading(
    source: &Source,
    every: Duration,
    asked: &Receiver<Want>,
    made: &Sender<Result<Loaded>>,
) {
    let mut want = Want::default();
    loop {
        match asked.recv_timeout(every) {
            Ok(newest) => want = asked.try_iter().last().unwrap_or(newest),
            Err(RecvTimeoutError::Timeout) if want.paused => continue,
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        let loaded = source.load(&want);
        want.snapshot = None;
        if made.send(loaded).is_err() {
            return;
        }
    }
}

fn watch(
    terminal: &mut ratatui::DefaultTerminal,
    mut app: App,
    wants: &Sender<Want>,
    loads: &Receiver<Result<Loaded>>,
    ended: &AtomicBool,
) -> std::io::Result<()> {
    let mut drawn = false;
    while !app.is_over() && !ended.load(Ordering::Relaxed) {
        for loaded in loads.try_iter() {
            app.loaded(loaded);
            drawn = false;
        }
        if !drawn {
            terminal.draw(|frame| view::draw(frame, &mut app))?;
            drawn = true;
        }
        if event::poll(STEP)? {
            drawn = false;
            if let Some(key) = key(&event::read()?)
                && let Some(mut want) = app.press(key)
            {
                want.width = terminal.size()?.width.into();
                // The loading thread ends only with us.
                let _ = wants.send(want);
            }
        }
    }
    Ok(())
}

/// The keys that mean something; a change of the terminal's size is none, but the picture is drawn anew.
fn key(event: &Event) -> Option<Key> {
    let Event::Key(pressed) = event else {
        return None;
    };
    if pressed.kind == KeyEventKind::Release {
        return None;
    }
    Some(match pressed.code {
        KeyCode::Char('c') if pressed.modifiers.contains(KeyModifiers::CONTROL) => Key::End,
        KeyCode::Char(c) => Key::Char(c),
        KeyCode::Up => Key::Up(1),
        KeyCode::Down => Key::Down(1),
        KeyCode::PageUp => Key::Up(10),
        KeyCode::PageDown => Key::Down(10),
        KeyCode::Home => Key::Up(usize::MAX),
        KeyCode::End => Key::Down(usize::MAX),
        KeyCode::Tab | KeyCode::Right => Key::Next,
        KeyCode::BackTab | KeyCode::Left => Key::Previous,
        KeyCode::Enter => Key::Enter,
        KeyCode::Esc => Key::Back,
        KeyCode::Backspace => Key::Erase,
        _ => return None,
    })
}
