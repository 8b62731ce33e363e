//! The invented trace: valid, the same each time, and of the shape that its description promises.

use borescope_sites::demo;
use borescope_sites::simulate::sites_per_class;
use borescope_sites::trace::Trace;

#[test]
fn shape() {
    let trace = demo::trace(7, 2000);
    trace.check().unwrap();
    let rows = sites_per_class(&trace).unwrap();
    assert_eq!(rows[0].sites, 2000);
    let sites: u64 = rows.iter().map(|r| r.sites).sum();
    let allocating: u64 = rows.iter().map(|r| r.allocating).sum();
    let (objects, hashed) = rows
        .iter()
        .fold((0, 0), |(o, h), r| (o + r.objects, h + r.hashed));
    assert!(rows[..10].iter().map(|r| r.sites).sum::<u64>() > sites / 2);
    assert!((0.3..0.37).contains(&(allocating as f64 / sites as f64)));
    assert!(0 < hashed && hashed * 10 < objects, "{hashed} of {objects}");
    assert!(rows.iter().filter(|r| r.hashed == 0).count() * 2 > rows.len());
}

#[test]
fn the_same_seed_gives_the_same_trace_and_it_can_be_written() {
    let trace = demo::trace(7, 50);
    assert_eq!(trace, demo::trace(7, 50));
    assert_ne!(trace, demo::trace(8, 50));
    let bytes = trace.write(Vec::new()).unwrap();
    assert_eq!(Trace::read(bytes.as_slice()).unwrap(), trace);
}
