//! temp
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
/// t
pub enum At {
    /// e
    Entry,
    /// e
    Before(u16),
    /// e
    FallThrough(u16),
    /// e
    Taken {
        /// e
        from: u16,
        /// e
        target: u16,
    },
}
