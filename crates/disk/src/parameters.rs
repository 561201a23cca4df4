//! What describes a disk, as text: `name=value` words with spaces between them, values being unsigned integers in the unit
//! that ends the name. The names are those that a plan has (python/dilaton/plan/model.py).

/// Why a text describes no disk: the parameter that is missing, no number, or 0 where that makes no sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParameterError(pub &'static str);

/// The word that follows `name=`.
pub(crate) fn word<'text>(text: &'text str, name: &str) -> Option<&'text str> {
    text.split_ascii_whitespace().find_map(|word| word.strip_prefix(name)?.strip_prefix('='))
}

/// The number that follows `name=`.
///
/// # Errors
/// There is none.
pub fn number(text: &str, name: &'static str) -> Result<u64, ParameterError> {
    word(text, name).and_then(|value| value.parse().ok()).ok_or(ParameterError(name))
}

macro_rules! parameters {
    ($(#[$about:meta])* $structure:ident { $($(#[$what:meta])* $field:ident,)* } above_zero $($positive:ident)*) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $structure {
            $($(#[$what])* pub $field: u64,)*
        }

        impl $structure {
            /// Reads them from a text.
            ///
            /// # Errors
            /// One is missing, is no number, or is 0 where it cannot be.
            pub fn parse(text: &str) -> Result<Self, ParameterError> {
                let parameters = Self { $($field: number(text, stringify!($field))?,)* };
                $(if parameters.$positive == 0 {
                    return Err(ParameterError(stringify!($positive)));
                })*
                Ok(parameters)
            }
        }
    };
}

parameters! {
    /// A disk that takes a fixed time.
    FixedParameters {
        /// The time from the start of a read to its first byte.
        read_latency_ns,
        /// The time from the start of a write to its first byte.
        write_latency_ns,
        /// Requests that may start in a second; 0: any number.
        requests_per_s,
        /// Bytes that are read or written in a second; 0: any number.
        bytes_per_s,
    } above_zero
}

parameters! {
    /// A solid-state disk.
    FlashParameters {
        /// Buses between controller and dies.
        channels,
        /// Dies in all, spread over the channels.
        dies,
        /// What a die reads or programs at once, all its planes together.
        page_bytes,
        /// How long a die takes to read a page.
        read_page_ns,
        /// How long it takes to program one.
        program_page_ns,
        /// The rate of one channel.
        channel_bytes_per_s,
        /// The rate of the link to the host.
        link_bytes_per_s,
        /// What each request takes of the controller's time, one after the other: 1 / this is the most requests a second.
        command_ns,
        /// What a request takes beside that, while others go on: firmware, interrupt, link protocol.
        overhead_ns,
        /// Writes are done when they are in this cache.
        write_cache_bytes,
        /// Whether a flush waits until the cache is empty, 1, or the cache survives a loss of power, 0.
        flush_drains,
        /// What can be written before room has to be made by moving what is still valid.
        clean_bytes,
        /// Bytes that random writes cost each byte once room has to be made, in thousandths: 1000 for none but its own.
        write_amplification_permille,
    } above_zero channels dies page_bytes channel_bytes_per_s link_bytes_per_s program_page_ns write_cache_bytes
        write_amplification_permille
}

parameters! {
    /// A drive with platters.
    MechanicalParameters {
        /// One revolution.
        revolution_ns,
        /// Positions of the arm.
        cylinders,
        /// Surfaces.
        heads,
        /// Sectors of 512 bytes of a track at the outer edge; from it to the inner, 16 zones.
        outer_track_sectors,
        /// Those of a track at the inner edge.
        inner_track_sectors,
        /// Seek of a read over one cylinder.
        seek_single_ns,
        /// Its mean between random places.
        seek_mean_ns,
        /// Over all cylinders.
        seek_full_ns,
        /// What the arm needs in addition before it may write.
        write_settle_ns,
        /// The time from the end of a track to the beginning of the next, the skew between them included.
        track_switch_ns,
        /// What each request takes of the controller's time.
        command_ns,
        /// The rate of the link to the host.
        link_bytes_per_s,
        /// What is read ahead at most at one place.
        read_ahead_bytes,
        /// Writes are done when they are in this cache; 0: when they are on the platter.
        write_cache_bytes,
    } above_zero revolution_ns cylinders heads outer_track_sectors inner_track_sectors link_bytes_per_s
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIXED: &str = "model=fixed read_latency_ns=100 write_latency_ns=20 requests_per_s=0 bytes_per_s=5";

    #[test]
    fn a_text_gives_every_parameter() {
        let read = FixedParameters::parse(FIXED).unwrap();
        let expected =
            FixedParameters { read_latency_ns: 100, write_latency_ns: 20, requests_per_s: 0, bytes_per_s: 5 };
        assert_eq!(read, expected);
        assert_eq!(word(FIXED, "model"), Some("fixed"));
    }

    #[test]
    fn what_is_missing_or_no_number_is_named() {
        assert_eq!(FixedParameters::parse("read_latency_ns=1"), Err(ParameterError("write_latency_ns")));
        let text = FIXED.replace("bytes_per_s=5", "bytes_per_s=-5");
        assert_eq!(FixedParameters::parse(&text), Err(ParameterError("bytes_per_s")));
    }
}
