//! Sorts lists. The standard library's sorting is compiled once for each type of items and
//! takes five kilobytes each time; here, numbers are sorted and the items follow.

use std::cmp::Ordering;

/// Sorts a list.
pub fn sort<T: Ord>(items: &mut Vec<T>) {
    sort_by(items, T::cmp);
}

/// Sorts a list by `compare`. Equal items keep their order.
pub fn sort_by<T>(items: &mut Vec<T>, compare: impl Fn(&T, &T) -> Ordering) {
    let order = sorted_places(
        items.len(),
        &|left, right| match (items.get(left), items.get(right)) {
            (Some(left), Some(right)) => compare(left, right),
            _ => Ordering::Equal,
        },
    );
    let mut unsorted: Vec<Option<T>> = items.drain(..).map(Some).collect();
    items.extend(
        order
            .into_iter()
            .filter_map(|place| unsorted.get_mut(place)?.take()),
    );
}

#[inline(never)]
fn sorted_places(count: usize, compare: &dyn Fn(usize, usize) -> Ordering) -> Vec<usize> {
    let mut places: Vec<usize> = (0..count).collect();
    places.sort_by(|left, right| compare(*left, *right));
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_sorted_as_the_standard_library_sorts_it() {
        let mut seed = 7_u64;
        for length in 0..60 {
            let mut items: Vec<(u64, String)> = (0..length)
                .map(|place| {
                    seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    ((seed >> 33) % 9, format!("item {place}"))
                })
                .collect();
            let mut expected = items.clone();
            expected.sort_by(|(left, _), (right, _)| right.cmp(left));
            sort_by(&mut items, |(left, _), (right, _)| right.cmp(left));
            assert_eq!(items, expected);
        }
    }
}
