//! borescope
fn main() {}
