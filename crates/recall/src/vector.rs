//! A vector as it is stored and compared: one printable character per number.
//!
//! Only directions are compared, so a vector needs no scale: its largest number becomes
//! 47 steps, and the others are scaled alike. The rounding changes a cosine by about a
//! thousandth (a test checks this). The text takes a quarter of the bytes of a BLOB of
//! floats and needs no decoding: the engine returns thousands of vectors as one string,
//! whose bytes are multiplied directly.

/// The character for zero, and the steps on either side: from ` ` to `~`.
const ZERO: u8 = b'O';
const STEPS: f32 = 47.0;

/// Steps of a query's largest number. The sum of products stays below 2^31, whatever bytes a stored
/// text contains: 2047 × 176 × 4,096 numbers.
const QUERY_STEPS: f32 = 2047.0;

/// A vector without a direction becomes all zeros, and is near to nothing.
pub fn pack(vector: &[f32]) -> String {
    let largest = largest(vector).unwrap_or(1.0);
    let character = |number: &f32| {
        let steps = (number / largest * STEPS).round() as i16;
        char::from((i16::from(ZERO) + steps).clamp(0, 127) as u8)
    };
    vector.iter().map(character).collect()
}

fn largest(vector: &[f32]) -> Option<f32> {
    let largest = vector.iter().fold(0.0_f32, |most, x| most.max(x.abs()));
    (largest > 0.0 && largest.is_finite()).then_some(largest)
}

/// A query's vector, to which stored vectors are compared.
pub struct QueryVector {
    numbers: Vec<i16>,
    length: f32,
}

impl QueryVector {
    /// `None` if the vector has no direction.
    pub fn new(vector: &[f32]) -> Option<Self> {
        let largest = largest(vector)?;
        let numbers: Vec<i16> = vector
            .iter()
            .map(|number| (number / largest * QUERY_STEPS).round() as i16)
            .collect();
        let squares: f32 = numbers.iter().map(|n| f32::from(*n).powi(2)).sum();
        Some(Self {
            numbers,
            length: squares.sqrt(),
        })
    }

    pub fn dimensions(&self) -> usize {
        self.numbers.len()
    }

    /// How near a stored vector is: its cosine, from -1 to 1.
    pub fn compare(&self, stored: &[u8]) -> f32 {
        let (dot, squares) = multiply(&self.numbers, stored);
        if squares == 0 {
            return 0.0;
        }
        dot as f32 / (self.length * (squares as f32).sqrt())
    }
}

/// The sum of the products, and the sum of the stored numbers' squares.
#[cfg(target_arch = "wasm32")]
fn multiply(query: &[i16], stored: &[u8]) -> (i32, i32) {
    simd::multiply(query, stored)
}

#[cfg(not(target_arch = "wasm32"))]
fn multiply(query: &[i16], stored: &[u8]) -> (i32, i32) {
    multiply_singly(query, stored)
}

fn multiply_singly(query: &[i16], stored: &[u8]) -> (i32, i32) {
    query
        .iter()
        .zip(stored)
        .fold((0, 0), |(dot, squares), (q, s)| {
            let s = i32::from(*s) - i32::from(ZERO);
            (dot + i32::from(*q) * s, squares + s * s)
        })
}

/// Multiplies sixteen numbers at a time. Written by hand, because a build for size
/// vectorises no loops. The functions enable the feature themselves, so no build flag is
/// needed.
#[cfg(target_arch = "wasm32")]
#[expect(unsafe_code, reason = "no safe function loads a vector")]
mod simd {
    use core::arch::wasm32::{
        i16x8_splat, i16x8_sub, i32x4_add, i32x4_dot_i16x8, i32x4_extract_lane, i32x4_splat,
        u16x8_extend_high_u8x16, u16x8_extend_low_u8x16, v128, v128_load,
    };

    use super::{ZERO, multiply_singly};

    const LANES: usize = 16;

    #[target_feature(enable = "simd128")]
    pub fn multiply(query: &[i16], stored: &[u8]) -> (i32, i32) {
        let zero = i16x8_splat(i16::from(ZERO));
        let mut dots = i32x4_splat(0);
        let mut squares = i32x4_splat(0);
        let queries = query.chunks_exact(LANES);
        let stores = stored.chunks_exact(LANES);
        let rest = multiply_singly(queries.remainder(), stores.remainder());
        for (q, s) in queries.zip(stores) {
            // SAFETY: a load reads 16 bytes and needs no alignment. A chunk of `q` has 16
            // numbers of two bytes: two loads. A chunk of `s` has 16 bytes: one load.
            let (low_q, high_q, bytes) = unsafe {
                let q: *const v128 = q.as_ptr().cast();
                (
                    v128_load(q),
                    v128_load(q.add(1)),
                    v128_load(s.as_ptr().cast()),
                )
            };
            let low = i16x8_sub(u16x8_extend_low_u8x16(bytes), zero);
            let high = i16x8_sub(u16x8_extend_high_u8x16(bytes), zero);
            dots = i32x4_add(dots, i32x4_dot_i16x8(low_q, low));
            dots = i32x4_add(dots, i32x4_dot_i16x8(high_q, high));
            squares = i32x4_add(squares, i32x4_dot_i16x8(low, low));
            squares = i32x4_add(squares, i32x4_dot_i16x8(high, high));
        }
        (sum(dots) + rest.0, sum(squares) + rest.1)
    }

    #[target_feature(enable = "simd128")]
    fn sum(lanes: v128) -> i32 {
        i32x4_extract_lane::<0>(lanes)
            + i32x4_extract_lane::<1>(lanes)
            + i32x4_extract_lane::<2>(lanes)
            + i32x4_extract_lane::<3>(lanes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers like a model's, nearly normally distributed.
    fn random(seed: u64, dimensions: usize) -> Vec<f32> {
        let mut x = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        let mut next = || {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            (x >> 40) as f32 / (1 << 24) as f32 - 0.5
        };
        (0..dimensions)
            .map(|_| next() + next() + next() + next())
            .collect()
    }

    fn cosine(a: &[f32], b: &[f32]) -> f32 {
        let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
        dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()
    }

    #[test]
    fn a_packed_vector_is_printable_and_length_independent() {
        assert_eq!(pack(&[1.0, -1.0, 0.0, 0.5]), "~ Og");
        assert_eq!(pack(&[0.1, -0.1, 0.0, 0.05]), "~ Og");
        assert_eq!(pack(&[0.0, 0.0]), "OO");
        assert_eq!(pack(&[]), "");
        assert!(QueryVector::new(&[0.0]).is_none());
    }

    #[test]
    fn the_packed_cosine_is_close_to_the_exact_one() {
        for dimensions in [5, 384, 1024] {
            for seed in 1..50 {
                let a = random(seed, dimensions);
                let mut b = random(seed + 1000, dimensions);
                // Some near, some far.
                for (b, a) in b.iter_mut().zip(&a) {
                    *b += a * (seed % 5) as f32 / 2.0;
                }
                let found = QueryVector::new(&a).unwrap().compare(pack(&b).as_bytes());
                let wanted = cosine(&a, &b);
                let most = if dimensions < 10 { 0.01 } else { 0.002 };
                assert!(
                    (found - wanted).abs() < most,
                    "{found} {wanted} {dimensions}"
                );
            }
        }
    }

    #[test]
    fn a_vector_is_nearest_to_itself_and_farthest_from_its_opposite() {
        let a = random(7, 384);
        let opposite: Vec<f32> = a.iter().map(|x| -x).collect();
        let query = QueryVector::new(&a).unwrap();
        assert!(query.compare(pack(&a).as_bytes()) > 0.999);
        assert!(query.compare(pack(&opposite).as_bytes()) < -0.999);
        assert_eq!(query.compare(b""), 0.0);
        assert_eq!(query.compare(&[ZERO; 384]), 0.0);
    }

    #[test]
    fn no_stored_bytes_overflow() {
        for sign in [1.0, -1.0] {
            let query = QueryVector::new(&[sign; 4096]).unwrap();
            for byte in [0, 255] {
                assert!(query.compare(&[byte; 4096]).abs() > 0.99);
            }
        }
    }
}
