//! Synthetic streams that the examples measure on.
#![allow(dead_code, reason = "each example uses a part")]

/// A stream: its name, the number of paths, the activations.
pub struct Stream {
    pub name: &'static str,
    pub num_paths: u32,
    pub activations: Vec<Vec<u32>>,
}

/// Pseudo-random numbers below `n` (xorshift, fixed seed: every run feeds the same streams).
pub struct Random(u64);

impl Random {
    /// The next one.
    pub fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % n
    }
}

/// Activations of about 1000 IDs each, `items` in all, made of rounds.
pub fn stream(
    name: &'static str,
    num_paths: u32,
    items: usize,
    mut round: impl FnMut(&mut Random, &mut Vec<u32>),
) -> Stream {
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    let activations = (0..items / 1000).map(|_| {
        let mut ids = Vec::with_capacity(1100);
        while ids.len() < 1000 {
            round(&mut random, &mut ids);
        }
        ids
    });
    Stream {
        name,
        num_paths,
        activations: activations.collect(),
    }
}

/// Two loop nests, a scanner, noise (an eighth of the items).
pub fn streams(items: usize) -> Vec<Stream> {
    vec![
        stream("nested loops, 3 inner rounds", 8, items, |_, ids| {
            ids.extend([3, 5, 5, 5, 6])
        }),
        stream(
            "nested loops, 0 to 7 inner rounds",
            8,
            items,
            |random, ids| {
                ids.push(3);
                ids.extend(std::iter::repeat_n(5, random.below(8) as usize));
                ids.push(6);
            },
        ),
        stream(
            "scanner: 40 words of 1 to 6 of 200 paths",
            200,
            items,
            |random, ids| {
                // Like a tokenizer: a skewed choice among fixed sequences.
                let word = (random.below(40) * random.below(40) / 40) as u32;
                ids.extend((0..=word % 6).map(|i| (word * 37 + i * i * 11) % 200));
            },
        ),
        stream("noise over 4 paths", 4, items / 8, |random, ids| {
            ids.push(random.below(4) as u32)
        }),
    ]
}
