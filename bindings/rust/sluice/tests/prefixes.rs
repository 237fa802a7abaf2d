//! Prefixes that rows share: the same results as with the keys in one sequence, and errors that name the field.

use sluice::{
    reference, Args, Array, Code, Dtype, Host, Layout, PageNumbers, PageTable, PageTableKind, Prefixes,
    Problem, Tensor, TensorMut,
};

const Q: [f32; 2] = [1.0, 2.0];
// Pages of one key: of sequence 0, of sequence 1, and two of a prefix.
const K: [f32; 4] = [0.1, 0.2, 0.3, 0.4];
const V: [f32; 4] = [1.0, 2.0, 3.0, 4.0];

fn array(numbers: &[i32]) -> Array<'_, i32, Host> {
    Array::new(numbers)
}

fn table(pages: &[i32], stride: usize) -> Option<PageTable<'_, Host>> {
    Some(PageTable::Block { pages: PageNumbers::I32(array(pages)), stride })
}

/// Two sequences of one row and one key, of which the second sees the prefix.
fn attend(prefix_pages: &[i32], lengths: &[i32], starts: &[i32]) -> sluice::Result<[f32; 2]> {
    let problem = Problem::builder(Dtype::F32, 1, 1, 1)
        .paged(1, PageTableKind::Block)
        .max_q_tokens(2)
        .shared_prefix(1, 2)
        .build()?;
    let (rows, pages) = (Layout::contiguous([2, 1, 1, 1]), Layout::contiguous([4, 1, 1, 1]));
    let mut o = [0.0; 2];
    let (k, v) = (Tensor::new(&K, pages)?, Some(Tensor::new(&V, pages)?));
    let mut args = Args::new(2, Tensor::new(&Q, rows)?, k, v, TensorMut::new(&mut o, rows)?);
    (args.q_len, args.kv_len) = (Some(1), Some(1));
    args.kv_lengths = Some(array(&[1, 1]));
    args.page_table = table(&[0, 1], 1);
    args.prefixes = Some(Prefixes {
        count: 1,
        len: None,
        q_starts: array(starts),
        lengths: Some(array(lengths)),
        page_table: table(prefix_pages, 2),
        k: None,
        v: None,
    });
    reference(&problem, &mut args)?;
    Ok(o)
}

#[test]
fn a_row_sees_its_prefix_before_its_own_keys() {
    let o = attend(&[2, 3], &[2], &[1, 2]).unwrap();
    let seen = [1, 2, 3];
    let weights = seen.map(|key| (Q[1] * K[key]).exp());
    let weighted: f32 = seen.iter().zip(weights).map(|(key, weight)| weight * V[*key]).sum();
    assert_eq!(o[0], 1.0);
    assert!((o[1] - weighted / weights.iter().sum::<f32>()).abs() < 1e-6, "{o:?}");
}

#[test]
fn arrays_of_prefixes_that_are_too_short_or_wrong_are_refused() {
    let refused = |result: sluice::Result<[f32; 2]>, field: &str| {
        let error = result.expect_err(field);
        assert_eq!((error.code, error.field.as_str()), (Code::InvalidArgument, field), "{error}");
    };
    refused(attend(&[2], &[2], &[1, 2]), "prefix_page_table");
    refused(attend(&[2, 4], &[2], &[1, 2]), "prefix_page_table[1]");
    refused(attend(&[2, 3], &[], &[1, 2]), "prefix_lengths");
    refused(attend(&[2, 3], &[3], &[1, 2]), "prefix_page_table");
    refused(attend(&[2, 3], &[2], &[1]), "prefix_q_starts");
    refused(attend(&[2, 3], &[2], &[1, 3]), "prefix_q_starts[1]");
}
