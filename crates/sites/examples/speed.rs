//! How long numbering and decoding take, for the agent's budget: `cargo run --release -p borescope-sites --example speed`.

use borescope_sites::rng::Rng;
use borescope_sites::*;
use std::collections::HashMap;
use std::hint::black_box;
use std::sync::Mutex;
use std::time::Instant;

/// The stamps, by site.
#[derive(Default)]
struct Stamps(Mutex<HashMap<SiteId, Stamp>>);

impl Sink for Stamps {
    fn log(&self, _: &Event) -> bool {
        true
    }
    fn publish(&self, site: SiteId, _: Space, stamp: Option<Stamp>) {
        let mut stamps = self.0.lock().unwrap();
        match stamp {
            Some(stamp) => stamps.insert(site, stamp),
            None => stamps.remove(&site),
        };
    }
}

fn main() {
    // The seed's largest class: 14,933 sites (figure 11, Object[] in Trade6), all of them hot.
    const SITES: u32 = 14_933;
    let scheme = Scheme::ours(Mode::Dynamic, 31, 1).unwrap();
    let registry = Registry::new(scheme, Stamps::default());
    let site = |id| Site {
        id: SiteId(id),
        class: ClassId(1),
        method: MethodId(id / 2),
    };
    let begin = Instant::now();
    for id in 0..SITES {
        registry.stamp(&site(id), Space::Dynamic).unwrap();
    }
    println!("{SITES} first numbers: {:?}", begin.elapsed());
    let begin = Instant::now();
    let (mut searches, mut longest) = (0, 0);
    for id in 0..SITES {
        let get = || registry.sink().0.lock().unwrap()[&SiteId(id)];
        while get().may_shorten() {
            let one = Instant::now();
            registry.shorten(&site(id), get());
            longest = longest.max(one.elapsed().as_micros());
            searches += 1;
        }
    }
    println!(
        "{searches} searches for shorter numbers: {:?}, the longest {longest} us",
        begin.elapsed()
    );
    let decoder = registry.decoder();
    let mut rng = Rng::new(2);
    let fields: Vec<u32> = (0..1 << 16)
        .map(|_| {
            registry.sink().0.lock().unwrap()[&SiteId(rng.next_u32() % SITES)].field(rng.next_u32())
        })
        .collect();
    let begin = Instant::now();
    let class = decoder.class(ClassId(1)).unwrap();
    let mut sum = 0u64;
    for _ in 0..100 {
        for &field in &fields {
            sum += u64::from(class.decode(field).unwrap().slot);
        }
    }
    black_box(sum);
    let each = begin.elapsed().as_secs_f64() * 1e9 / 6_553_600.0;
    println!(
        "decoding: {each:.1} ns an object, {} numbers held",
        decoder.slots()
    );
}
