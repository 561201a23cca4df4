//! Makes the Rust structures of the wire's memory out of their definition, `wire.def`.

use std::fmt::Write as _;
use std::{env, fs, path::Path};

fn main() {
    println!("cargo:rerun-if-changed=wire.def");
    let definition = fs::read_to_string("wire.def").expect("crates/wire/wire.def is readable");
    let (mut source, mut open) = (String::new(), false);
    for line in definition.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if let Some(number) = line.strip_prefix("version ") {
            let number: u64 = number.parse().expect("the version is a number");
            writeln!(source, "/// Version of the layout.\npub const WIRE_VERSION: u64 = {number};\n").unwrap();
        } else if let Some(section) = line.strip_prefix("section ") {
            let name = section[..1].to_uppercase() + &section[1..];
            source.push_str(if open { "}\n\n" } else { "" });
            writeln!(
                source,
                "/// As `wire.def` documents it.\n#[repr(C)]\n#[allow(missing_docs)]\npub struct {name} {{"
            )
            .unwrap();
            open = true;
        } else if let Some((name, count)) = line.strip_suffix(']').and_then(|line| line.split_once('[')) {
            writeln!(source, "    pub {name}: [AtomicU64; {count}],").unwrap();
        } else {
            writeln!(source, "    pub {line}: AtomicU64,").unwrap();
        }
    }
    source.push_str("}\n");
    let out = env::var_os("OUT_DIR").expect("cargo sets OUT_DIR");
    fs::write(Path::new(&out).join("wire.rs"), source).expect("OUT_DIR is writable");
}
