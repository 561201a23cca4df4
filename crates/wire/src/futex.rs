//! Waiting for a shared word to change, and a lock on one (Drepper: Futexes Are Tricky, 2011).

use core::ptr::null;
use core::sync::atomic::{AtomicU64, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};

const FREE: u64 = 0;
const HELD: u64 = 1;
const WAITED_FOR: u64 = 2;

/// Looks at a lock before sleeping: it is held for less than a microsecond, unless its holder has lost its core.
const LOOKS: u32 = 200;

/// Sleeps while `word` is `seen`, until it is woken, a signal handler has run, or `timeout_ns` of the host is over.
pub fn wait(word: &AtomicU64, seen: u64, timeout_ns: Option<u64>) {
    let timeout = timeout_ns
        .map(|ns| libc::timespec { tv_sec: (ns / 1_000_000_000) as i64, tv_nsec: (ns % 1_000_000_000) as i64 });
    let timeout = timeout.as_ref().map_or(null(), core::ptr::from_ref);
    // The kernel compares the lower half of the word, which alone ever changes within a sleep.
    // SAFETY: the word and the timeout are readable.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAIT, seen as u32, timeout) };
}

/// Wakes who sleeps on `word`, at most one.
pub fn wake(word: &AtomicU64) {
    // SAFETY: only the address counts.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, 1) };
}

/// Runs `f` while nobody else holds `lock`.
pub fn locked<T>(lock: &AtomicU64, f: impl FnOnce() -> T) -> T {
    acquire(lock);
    let result = f();
    if lock.swap(FREE, Release) == WAITED_FOR {
        wake(lock);
    }
    result
}

fn acquire(lock: &AtomicU64) {
    for _ in 0..LOOKS {
        if lock.load(Relaxed) == FREE && lock.compare_exchange(FREE, HELD, Acquire, Relaxed).is_ok() {
            return;
        }
        core::hint::spin_loop();
    }
    while lock.swap(WAITED_FOR, Acquire) != FREE {
        wait(lock, WAITED_FOR, None);
    }
}
