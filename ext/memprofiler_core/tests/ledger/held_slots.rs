//! Who holds free slots.

use memprofiler_core::ledger::{HeapPage, Site, held_slots};

fn page(start: u64, live: u32) -> HeapPage {
    HeapPage { start, end: start + 1000, slot_size: 40, slots: 25, live }
}

fn site(name: &str, objects: &[(u64, f64)]) -> Site {
    Site { name: name.to_owned(), objects: objects.to_vec() }
}

#[test]
fn the_free_slots_of_a_page_are_shared_by_its_objects() {
    let pages = [page(0, 5), page(1000, 25), page(4000, 1)];
    let sites = [
        // Of 800 bytes it holds a fifth, for each of the ten objects that it stands for.
        site("sparse", &[(40, 10.0)]),
        site("dense", &[(1040, 20.0), (1080, 20.0)]),
        site("alone", &[(4040, 1.0), (3000, 5.0), (5000, 5.0)]),
        site("sparse", &[(80, 5.0)]),
    ];
    let held: Vec<_> =
        held_slots(&sites, &pages).into_iter().map(|held| (held.site, held.bytes, held.objects)).collect();
    assert_eq!(held, [("sparse".to_owned(), 2400.0, 15.0), ("alone".to_owned(), 960.0, 1.0)]);
}

#[test]
fn only_the_largest_are_listed() {
    let sites: Vec<_> = (0..30).map(|number| site(&format!("{number}"), &[(0, f64::from(number))])).collect();
    let held = held_slots(&sites, &[page(0, 1)]);
    assert_eq!((held.len(), held[0].site.as_str(), held[9].site.as_str()), (10, "29", "20"));
}
