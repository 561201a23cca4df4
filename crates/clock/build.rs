//! Makes the Rust structure of the clock page out of its definition, `clock-page.def`.

use std::fmt::Write as _;
use std::{env, fs, path::Path};

fn main() {
    println!("cargo:rerun-if-changed=clock-page.def");
    let definition = fs::read_to_string("clock-page.def").expect("crates/clock/clock-page.def is readable");
    let (mut fields, mut version) = (String::new(), None);
    for line in definition.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if let Some(number) = line.strip_prefix("version ") {
            version = Some(number.parse::<u64>().expect("the version is a number"));
        } else if let Some((name, count)) = line.strip_suffix(']').and_then(|line| line.split_once('[')) {
            writeln!(fields, "    pub {name}: [AtomicU64; {count}],").unwrap();
        } else {
            writeln!(fields, "    pub {line}: AtomicU64,").unwrap();
        }
    }
    let version = version.expect("clock-page.def names its version");
    let source = format!(
        "/// Version of the layout.\npub const PAGE_VERSION: u64 = {version};\n\n\
         /// The shared words, as `clock-page.def` documents them.\n\
         #[repr(C)]\n#[allow(missing_docs)]\npub struct ClockPage {{\n{fields}}}\n"
    );
    let out = env::var_os("OUT_DIR").expect("cargo sets OUT_DIR");
    fs::write(Path::new(&out).join("clock_page.rs"), source).expect("OUT_DIR is writable");
}
