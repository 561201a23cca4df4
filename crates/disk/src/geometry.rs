//! Where a sector is on the platters, and how long the head takes to it.
//!
//! **Zones.** Tracks at the edge are longer and hold more sectors: sixteen zones of equally many cylinders, the sectors of
//! their tracks falling evenly from the outer to the inner. Blocks are numbered from outside, track by track through a
//! cylinder.
//!
//! **Seeks.** Over short distances the arm accelerates and brakes, and the time grows as the root of the distance; over long
//! ones it coasts, and the time grows evenly (Ruemmler and Wilkes, "An Introduction to Disk Drive Modeling", 1994). The two
//! meet at a third of the stroke. Data sheets tell the seek over one cylinder, over all, and the mean over random places;
//! the height of the joint follows: with f(0) = single, f(1) = full and distances x of density 2 (1 - x),
//! mean = single + 4/5 (joint - single) + 4/27 (full - joint).
//!
//! **Rotation.** All platters turn together and never stop: the angle follows from the instant. A track begins later than
//! the one before by the time that the head needs to come to it (skew), so that a long transfer loses no revolution.

use crate::parameters::MechanicalParameters;

const ZONES: u64 = 16;

/// Where a sector is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    pub cylinder: u64,
    pub head: u64,
    /// When in a revolution it comes by.
    angle_ns: u64,
    /// How many sectors of its track are before it, and how many the track has.
    before: u64,
    track_sectors: u64,
}

pub struct Geometry {
    parameters: MechanicalParameters,
    joint_ns: u64,
    joint_cylinders: u64,
}

impl Geometry {
    pub fn new(parameters: MechanicalParameters) -> Self {
        let MechanicalParameters { seek_single_ns, seek_mean_ns, seek_full_ns, cylinders, .. } = parameters;
        // (mean - single - 4/27 (full - single)) / (4/5 - 4/27)
        let above = seek_mean_ns.saturating_sub(seek_single_ns) * 135;
        let rise_ns = above.saturating_sub(seek_full_ns.saturating_sub(seek_single_ns) * 20) / 88;
        Self { parameters, joint_ns: seek_single_ns + rise_ns, joint_cylinders: (cylinders / 3).max(2) }
    }

    fn zone_cylinders(&self) -> u64 {
        (self.parameters.cylinders / ZONES).max(1)
    }

    fn zone_track_sectors(&self, zone: u64) -> u64 {
        let MechanicalParameters { outer_track_sectors: outer, inner_track_sectors: inner, .. } = self.parameters;
        outer - outer.saturating_sub(inner) * zone / (ZONES - 1)
    }

    /// Where sector `sector` is; what is beyond the capacity is on the last track.
    pub fn place(&self, sector: u64) -> Place {
        let MechanicalParameters { heads, revolution_ns, track_switch_ns, .. } = self.parameters;
        let (mut zone, mut rest) = (0, sector);
        loop {
            let track_sectors = self.zone_track_sectors(zone);
            let zone_sectors = self.zone_cylinders() * heads * track_sectors;
            if rest < zone_sectors || zone == ZONES - 1 {
                let track = (rest / track_sectors).min(self.zone_cylinders() * heads - 1);
                let before = rest % track_sectors;
                let tracks_before = zone * self.zone_cylinders() * heads + track;
                return Place {
                    cylinder: zone * self.zone_cylinders() + track / heads,
                    head: track % heads,
                    angle_ns: (before * revolution_ns / track_sectors + tracks_before * track_switch_ns)
                        % revolution_ns,
                    before,
                    track_sectors,
                };
            }
            rest -= zone_sectors;
            zone += 1;
        }
    }

    /// How long the arm takes over a distance.
    pub fn seek_ns(&self, cylinders: u64) -> u64 {
        let MechanicalParameters { seek_single_ns, seek_full_ns, cylinders: all, .. } = self.parameters;
        if cylinders == 0 {
            0
        } else if cylinders <= self.joint_cylinders {
            let root = root(((cylinders - 1) << 32) / (self.joint_cylinders - 1));
            seek_single_ns + (((self.joint_ns - seek_single_ns) * root) >> 16)
        } else {
            let beyond = (cylinders - self.joint_cylinders).min(all - self.joint_cylinders);
            self.joint_ns + seek_full_ns.saturating_sub(self.joint_ns) * beyond / (all - self.joint_cylinders).max(1)
        }
    }

    /// How long the head, at a cylinder and surface at `from_ns`, takes until `to` comes by under it.
    pub fn positioning_ns(&self, from_ns: u64, (cylinder, head): (u64, u64), to: Place, writes: bool) -> u64 {
        let MechanicalParameters { revolution_ns, track_switch_ns, write_settle_ns, .. } = self.parameters;
        let mut moved_ns = self.seek_ns(cylinder.abs_diff(to.cylinder));
        if cylinder == to.cylinder && head != to.head {
            moved_ns = track_switch_ns;
        }
        let settled_ns = if moved_ns > 0 && writes { moved_ns + write_settle_ns } else { moved_ns };
        let angle_ns = (from_ns + settled_ns) % revolution_ns;
        let wait_ns = (to.angle_ns + revolution_ns - angle_ns) % revolution_ns;
        // Half a sector is forgiven, since instants are rounded: the next sector is not missed by a nanosecond.
        let forgiven_ns = revolution_ns / to.track_sectors / 2;
        if wait_ns > revolution_ns - forgiven_ns {
            settled_ns
        } else {
            settled_ns + wait_ns
        }
    }

    /// How long `sectors` from `place` on take to pass under the head, switches of tracks included. Zones change too seldom
    /// to be looked at.
    pub fn passing_ns(&self, place: Place, sectors: u64) -> u64 {
        let switches = (place.before + sectors.max(1) - 1) / place.track_sectors;
        sectors * self.parameters.revolution_ns / place.track_sectors + switches * self.parameters.track_switch_ns
    }

    /// How long one sector takes in a long transfer around `place`, in 2^-16 ns.
    pub fn sector_ns_shifted(&self, place: Place) -> u64 {
        ((self.parameters.revolution_ns + self.parameters.track_switch_ns) << 16) / place.track_sectors
    }
}

/// The integer square root, by Newton's method.
fn root(square: u64) -> u64 {
    if square < 2 {
        return square;
    }
    let mut root = 1 << (square.ilog2() / 2 + 1);
    loop {
        let better = (root + square / root) / 2;
        if better >= root {
            return root;
        }
        root = better;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::tests::MECHANICAL;

    fn geometry() -> Geometry {
        Geometry::new(MechanicalParameters::parse(MECHANICAL).unwrap())
    }

    #[test]
    fn seeks_are_those_of_the_data_sheet_over_one_cylinder_over_all_and_in_the_mean() {
        let geometry = geometry();
        assert_eq!(geometry.seek_ns(0), 0);
        assert_eq!(geometry.seek_ns(1), 800_000);
        assert_eq!(geometry.seek_ns(200_000), 17_000_000);
        let (mut sum, cylinders) = (0.0, 200_000.0);
        for distance in (0..200_000).step_by(10) {
            sum += geometry.seek_ns(distance) as f64 * 2.0 * (1.0 - distance as f64 / cylinders) / (cylinders / 10.0);
        }
        assert!((sum / 8_500_000.0 - 1.0).abs() < 0.002, "{sum}");
    }

    #[test]
    fn a_longer_seek_takes_longer() {
        let geometry = geometry();
        let seeks: std::vec::Vec<u64> = (1..200_000).step_by(7).map(|distance| geometry.seek_ns(distance)).collect();
        assert!(seeks.windows(2).all(|pair| pair[0] <= pair[1]));
    }

    #[test]
    fn blocks_are_numbered_from_outside_through_the_cylinders() {
        let geometry = geometry();
        let [first, next_head, next_cylinder] = [0, 2000, 8000].map(|sector| geometry.place(sector));
        assert_eq!((first.cylinder, first.head, first.angle_ns), (0, 0, 0));
        assert_eq!((next_head.cylinder, next_head.head, next_head.angle_ns), (0, 1, 900_000));
        assert_eq!((next_cylinder.cylinder, next_cylinder.head, next_cylinder.angle_ns), (1, 0, 3_600_000));
        let last = geometry.place(200_000 * 4 * 1501);
        assert_eq!((last.cylinder, last.head, last.track_sectors), (199_999, 3, 1000));
    }

    #[test]
    fn what_follows_on_the_next_track_comes_by_without_a_lost_revolution() {
        let geometry = geometry();
        let end_ns = geometry.passing_ns(geometry.place(0), 2000);
        assert_eq!(end_ns, 8_333_333);
        assert_eq!(geometry.positioning_ns(end_ns, (0, 0), geometry.place(2000), false), 900_000);
        assert_eq!(geometry.passing_ns(geometry.place(0), 2001), 8_333_333 + 4_166 + 900_000);
    }

    #[test]
    fn roots_are_exact() {
        for square in (0..5_000).chain([u64::MAX / 2, 1 << 32, (1 << 32) - 1]) {
            let root = root(square);
            assert!(root * root <= square && (root + 1) * (root + 1) > square, "{square}");
        }
    }
}
