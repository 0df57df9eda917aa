//! Which bytes are read as a profile, and which are refused.

use crate::maker::{LIMIT, Maker, Pprof, maker, maker_of_one, recursive};
use crate::uninterrupted::{self as analysis, By, Site};
use prost::Message;

fn error(message: &Pprof) -> String {
    analysis::decode(&message.encode_to_vec(), LIMIT).unwrap_err().to_string()
}

#[test]
fn what_is_written_reads_back() {
    for profile in [recursive(), maker().profile(), analysis::diff(&recursive(), &maker().profile()).unwrap()] {
        let written = analysis::decode(&analysis::write(&profile, 1).unwrap(), LIMIT).unwrap();
        assert_eq!(written, profile);
    }
}

#[test]
fn profiles_that_differ_are_not_equal() {
    let profile = recursive();
    let other = |maker: Maker| assert_ne!(maker.profile(), maker_of_one().profile());
    assert_eq!(maker_of_one().profile(), maker_of_one().profile());
    other(maker().sample(&["a /a.rb:1 1"], None, &[1, 41]));
    other(maker().sample(&["a /a.rb:1 1"], Some("A"), &[1, 40]));
    other(maker().sample(&["a /a.rb:2 1"], None, &[1, 40]));
    other(maker().sample(&["a /b.rb:1 1"], None, &[1, 40]));
    other(maker().sample(&["a /a.rb:1 1", "a /a.rb:1 1"], None, &[1, 40]));
    assert_ne!(profile, maker_of_one().profile());
}

#[test]
fn numbers_may_be_packed_and_unknown_fields_present() {
    let mut message = maker_of_one().0;
    let expected = maker_of_one().profile();
    message.from_the_future = "x".into();
    // `comment` not packed: key 13 << 3; likewise the sample's locations and values.
    let comment = std::mem::take(&mut message.comment)[0];
    message.sample.clear();
    let mut bytes = message.encode_to_vec();
    bytes.extend([13 << 3, comment as u8]);
    bytes.extend([2 << 3 | 2, 6, 8, 1, 16, 1, 16, 40]);
    assert_eq!(analysis::decode(&bytes, LIMIT).unwrap(), expected);
}

#[test]
fn errors_name_the_place() {
    let broken = |change: fn(&mut Pprof)| {
        let mut message = maker_of_one().0;
        change(&mut message);
        error(&message)
    };
    type Case = (fn(&mut Pprof), &'static str);
    let cases: [Case; 11] = [
        (|m| m.sample[0].location_id[0] = 7, "refers to location 7, which is not in the profile"),
        (|m| m.sample[0].value.push(1), "has 3 values for 2 sample types"),
        (|m| m.location[0].id = 0, "location 0 at byte"),
        (|m| m.location[0].mapping_id = 3, "location 1: refers to mapping 3"),
        (|m| m.location[0].line[0].function_id = 9, "location 1: refers to function 9"),
        (|m| m.location.push(m.location[0].clone()), "id 1 is used twice"),
        (|m| m.function[0].name = 99, "function 1: refers to string 99, but there are only"),
        (|m| m.function[0].filename = -1, "function 1: refers to string -1"),
        (|m| m.string_table.clear(), "string table: the first entry"),
        (|m| m.sample_type[1].unit = 77, "sample type 1: refers to string 77"),
        (|m| m.comment.push(1 << 40), "comment: refers to string 1099511627776"),
    ];
    for (change, expected) in cases {
        let message = broken(change);
        assert!(message.contains(expected), "{message:?} instead of {expected:?}");
    }
    assert!(broken(|m| m.sample[0].location_id[0] = 7).contains(": sample 0 at byte "));
}

#[test]
fn every_cut_of_a_profile_is_an_error() {
    let plain = recursive_bytes();
    for end in 0..plain.len() {
        // Cutting between two fields leaves a complete message that lacks what it refers to.
        let result = analysis::decode(&plain[..end], LIMIT);
        assert!(result.is_err(), "{end} of {} bytes were accepted", plain.len());
    }
    let gzipped = analysis::write(&recursive(), 1).unwrap();
    for end in 0..gzipped.len() {
        assert!(analysis::decode(&gzipped[..end], LIMIT).is_err(), "{end} gzipped bytes were accepted");
    }
}

/// The string table comes last, so that a cut removes it.
fn recursive_bytes() -> Vec<u8> {
    let mut message = maker_of_one().0;
    let strings = std::mem::take(&mut message.string_table);
    message.comment.clear();
    let rest = Pprof { string_table: strings, ..Pprof::default() };
    let mut bytes = message.encode_to_vec();
    // Something refers to the last string.
    bytes.extend(rest.encode_to_vec());
    bytes
}

#[test]
fn what_decompresses_to_too_much_is_refused() {
    let plain = maker_of_one().0.encode_to_vec();
    let gzipped = analysis::write(&maker_of_one().profile(), 9).unwrap();
    for bytes in [&plain, &gzipped] {
        let message = analysis::decode(bytes, 20).unwrap_err().to_string();
        assert!(message.contains("has more than 20 bytes when decompressed"), "{message}");
    }
    assert!(analysis::decode(&plain, plain.len() as u64).is_ok());
}

#[test]
fn a_broken_checksum_is_reported_with_its_position() {
    let mut gzipped = analysis::write(&recursive(), 1).unwrap();
    let length = gzipped.len();
    gzipped[length - 6] ^= 1;
    let message = analysis::decode(&gzipped, LIMIT).unwrap_err().to_string();
    assert!(message.contains(": byte ") && message.contains("of the gzipped data"), "{message}");
}

/// The figures are those of `go tool pprof -top -sample_index=NUMBER -unit=bytes`.
#[test]
fn profiles_of_other_programs_are_read() {
    let go = analysis::decode(include_bytes!("../data/go-heap.pprof"), LIMIT).unwrap();
    let types: Vec<_> = go.header().sample_types.iter().map(ToString::to_string).collect();
    assert_eq!(types, ["alloc_objects/count", "alloc_space/bytes", "inuse_objects/count", "inuse_space/bytes"]);
    let cache = |site: &Site| &*site.group.name == "main.cache";
    let in_use = analysis::top(&go, 3, By::Method).into_iter().find(cache).unwrap();
    assert_eq!(in_use.flat.value, 4_737_047);
    assert!(in_use.flat.samples > 5.0 && in_use.flat.variance() > 0.0, "{in_use:?}");

    let node = analysis::decode(include_bytes!("../data/node-heap.pprof"), LIMIT).unwrap();
    assert_eq!(node.header().sample_types[1].to_string(), "inuse_space/bytes");
    let visit = |site: &Site| &*site.group.name == "visit";
    let in_use = analysis::top(&node, 1, By::Method).into_iter().find(visit).unwrap();
    assert_eq!((in_use.flat.value, in_use.cumulative.value), (8_745_416, 14_276_184));

    for profile in [go, node] {
        assert_eq!(analysis::decode(&analysis::write(&profile, 6).unwrap(), LIMIT).unwrap(), profile);
    }
}
