//! The functions of log and trace: what they get, that their panics do not leave them, and that they are dropped.

mod common;

use sluice::{clear_log, set_log, Attention, Context, Dtype, KvFormat, LogLevel, TraceEvent};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

fn problem() -> Attention {
    Attention::new(Dtype::F16, 8, KvFormat::new(Dtype::F16, 2, 128))
}

/// One test, because the log is per process.
#[test]
fn the_log_gets_lines_until_another_one_takes_its_place() {
    let lines = Arc::new(Mutex::new(Vec::new()));
    let kept = lines.clone();
    set_log(LogLevel::Debug, move |level, line| kept.lock().unwrap().push((level, line.to_string())));
    let make = || Context::target("gfx942:304").build().unwrap().plan(&problem()).unwrap();
    make();
    let count = lines.lock().unwrap().len();
    assert!(count > 0);
    assert!(lines
        .lock()
        .unwrap()
        .iter()
        .all(|(level, line)| *level >= LogLevel::Info && !line.ends_with('\n')));

    let panics = Arc::new(AtomicUsize::new(0));
    let counted = panics.clone();
    set_log(LogLevel::Info, move |_, line| {
        counted.fetch_add(1, Ordering::Relaxed);
        panic!("this panic of a test must not leave the log: {line}");
    });
    assert_eq!(Arc::strong_count(&lines), 1, "the first function is gone");
    make();
    assert!(panics.load(Ordering::Relaxed) > 0);
    assert_eq!(lines.lock().unwrap().len(), count);

    clear_log();
    assert_eq!(Arc::strong_count(&panics), 1);
    let before = panics.load(Ordering::Relaxed);
    make();
    assert_eq!(panics.load(Ordering::Relaxed), before);
}

#[test]
fn the_trace_sees_plans_and_lives_as_long_as_they_do() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let kept = seen.clone();
    let context = Context::target("gfx942:304")
        .trace(move |record| {
            let entry = (record.event, record.kernel.to_string(), record.reason.to_string(), record.block);
            kept.lock().unwrap().push(entry);
            panic!("this panic of a test must not leave the trace");
        })
        .build()
        .unwrap();
    let plan = context.plan(&problem()).unwrap();
    let info = plan.info();
    assert_eq!(plan.counters(), sluice::Counters::default());
    assert_eq!(*seen.lock().unwrap(), [(TraceEvent::Plan, info.kernel, info.reason, info.block)]);
    drop(context);
    assert_eq!(Arc::strong_count(&seen), 2, "the plan keeps the function");
    drop(plan);
    assert_eq!(Arc::strong_count(&seen), 1);
}
