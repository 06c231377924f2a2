//! Vectors with one bit per dimension, to compare tens of thousands of messages in one
//! search.
//!
//! A bit is set if the number is above the vector's average. The query's numbers are not changed.
//! With real models' vectors, this loses a few answers in a thousand questions, and takes an eighth
//! of the bytes (docs/search.md has the figures).
//!
//! The average is subtracted first, because some models return no negative numbers, so that
//! every bit would be set.

/// The number of values of a byte.
const BYTES: usize = 256;

/// The bytes of a packed vector with this many dimensions.
pub fn bytes_of(dimensions: usize) -> usize {
    dimensions.div_ceil(8)
}

/// Packs a vector, with the first number in the lowest bit of the first byte.
pub fn pack(vector: &[f32]) -> Vec<u8> {
    let average = average(vector);
    let bit = |(index, number): (usize, &f32)| u8::from(*number > average) << index;
    let byte = |numbers: &[f32]| numbers.iter().enumerate().map(bit).sum();
    vector.chunks(8).map(byte).collect()
}

/// Packs a vector that an earlier build stored with one byte per number.
pub fn of_characters(stored: &[u8]) -> Vec<u8> {
    let numbers: Vec<f32> = stored.iter().copied().map(f32::from).collect();
    pack(&numbers)
}

fn average(vector: &[f32]) -> f32 {
    vector.iter().sum::<f32>() / vector.len().max(1) as f32
}

/// A query's vector, to which packed vectors are compared.
pub struct SignQuery {
    dimensions: usize,
    /// For each byte of a stored vector and each value of it: the sum that its eight bits
    /// contribute.
    sums: Vec<f32>,
}

impl SignQuery {
    /// `None` if the vector has no direction.
    pub fn new(vector: &[f32]) -> Option<Self> {
        let norm = |numbers: &[f32]| numbers.iter().map(|x| x * x).sum::<f32>().sqrt();
        let length = norm(vector);
        if !(length > 0.0 && length.is_finite()) {
            return None;
        }
        let average = average(vector);
        let centered: Vec<f32> = vector.iter().map(|number| number - average).collect();
        // Normalizes by the length of a vector of ones, so that a comparison is a cosine.
        let unit = norm(&centered) * (vector.len() as f32).sqrt();
        let unit = if unit > 0.0 { unit } else { 1.0 };
        let mut sums = Vec::with_capacity(bytes_of(vector.len()) * BYTES);
        for numbers in centered.chunks(8) {
            for bits in 0..BYTES {
                let signed = numbers.iter().enumerate().map(|(index, number)| {
                    let is_set = bits >> index & 1 == 1;
                    if is_set { *number } else { -*number }
                });
                sums.push(signed.sum::<f32>() / unit);
            }
        }
        Some(Self {
            dimensions: vector.len(),
            sums,
        })
    }

    pub fn dimensions(&self) -> usize {
        self.dimensions
    }

    /// The similarity of a stored vector, from -1 to 1.
    pub fn compare(&self, stored: &[u8]) -> f32 {
        let sums = self.sums.chunks_exact(BYTES).zip(stored);
        sums.map(|(sums, byte)| sums.get(usize::from(*byte)).copied().unwrap_or_default())
            .sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vector;

    #[test]
    fn a_bit_is_set_for_each_number_above_the_average() {
        assert_eq!(pack(&[1.0, -1.0, 0.5]), [0b101]);
        assert_eq!(pack(&[0.9, 0.1, 0.2]), [0b001]);
        assert_eq!(pack(&[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 9.0]), [0, 1]);
        assert_eq!(pack(&[0.0, 0.0]), [0]);
        assert_eq!(pack(&[]), [0; 0]);
        assert_eq!([0, 1, 8, 9, 384].map(bytes_of), [0, 1, 1, 2, 48]);
    }

    #[test]
    fn packed_characters_contain_the_sign_bits() {
        for vector in [
            vec![1.0, -1.0, 0.0, 0.5],
            vec![0.3, 0.2, 0.9, 0.1, 0.8, 0.7, 0.1, 0.0, 0.9],
        ] {
            let characters = vector::pack(&vector);
            assert_eq!(of_characters(characters.as_bytes()), pack(&vector));
        }
    }

    #[test]
    fn vectors_rank_by_direction() {
        let query = SignQuery::new(&[0.9, 0.1, 0.2, 0.0]).unwrap();
        let near = |vector: &[f32]| query.compare(&pack(vector));
        let ranked = [
            near(&[0.8, 0.0, 0.3, 0.1]),
            near(&[0.1, 0.2, 0.9, 0.0]),
            near(&[0.0, 0.9, 0.1, 0.8]),
        ];
        assert!(ranked.is_sorted_by(|a, b| a > b), "{ranked:?}");
        assert!(ranked.iter().all(|near| near.abs() <= 1.0));
        assert!(SignQuery::new(&[0.0, 0.0]).is_none());
        assert!(SignQuery::new(&[f32::INFINITY]).is_none());
        assert_eq!(SignQuery::new(&[1.0, 1.0]).unwrap().compare(&[3]), 0.0);
        assert_eq!(query.compare(&[]), 0.0);
        assert!(query.compare(&[255; 9]).is_finite());
    }
}
