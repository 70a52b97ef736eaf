//! Prefetch: a hint to the processor to load memory that will be used soon into its caches.
//!
//! In a round the simulator visits every host and every port once, and all of them together are larger than the caches. What it will touch
//! next is known some hundred nanoseconds before, which is what a load from memory takes. An ordinary load ahead of time does not help:
//! the processor cannot finish the instructions behind it before it has the value.
//!
//! A prefetch has no effect that a program can observe. Processors other than x86-64 and AArch64 get none.

use std::ptr;

/// Bytes of a cache line.
pub const LINE: usize = 64;

/// Loads the cache lines of a value.
#[inline(always)]
pub fn prefetch<T>(value: &T) {
    lines(ptr::from_ref(value).cast(), size_of::<T>());
}

/// Loads the cache lines of the first elements of a slice, at most `most` bytes.
#[inline(always)]
pub fn prefetch_first<T>(values: &[T], most: usize) {
    lines(values.as_ptr().cast(), size_of_val(values).min(most));
}

/// Loads the cache lines of so many bytes.
#[inline(always)]
fn lines(start: *const u8, bytes: usize) {
    if bytes == 0 {
        return;
    }
    let skipped = start.addr() % LINE;
    let (mut line, end) = (start.wrapping_sub(skipped), start.wrapping_add(bytes));
    while line < end {
        load(line);
        line = line.wrapping_add(LINE);
    }
}

/// Loads the cache line of `place`.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline(always)]
#[allow(unsafe_code)]
fn load(place: *const u8) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    // SAFETY: the instruction is a hint. It never faults and writes nothing, whatever the address.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(place.cast()) }
}

/// Loads the cache line of `place`.
#[cfg(all(target_arch = "aarch64", not(miri)))]
#[inline(always)]
#[allow(unsafe_code)]
fn load(place: *const u8) {
    // SAFETY: the instruction is a hint. It never faults and writes nothing, whatever the address.
    unsafe {
        std::arch::asm!(
            "prfm pldl1keep, [{place}]",
            place = in(reg) place,
            options(nostack, preserves_flags, readonly),
        );
    }
}

/// Does nothing: there is no such instruction here.
#[cfg(not(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri))))]
#[inline(always)]
fn load(_place: *const u8) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn anything_can_be_loaded() {
        let values = vec![7u64; 100];
        prefetch(&values);
        prefetch(&());
        for first in 0..=values.len() {
            for most in [0, 1, LINE, usize::MAX] {
                prefetch_first(&values[first..], most);
            }
        }
        assert!(values.iter().all(|value| *value == 7));
    }
}
