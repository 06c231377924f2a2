//! A deployed Worker does not check its answers: these functions do nothing.

use crate::operation::Reply;
use base::error::Result;

pub fn assert_matches_schema(_: &str, _: &Result<Reply>) {}

pub fn assert_refusal_matches_schema<T>(_: &str, _: &Result<T>) {}
