//! What starts and page tables hold, where it can be read: nothing in them may lead out of the tensors. All their
//! other rules, as that starts do not fall, the library checks itself; but it knows no extents.

use crate::args::{Args, PageNumbers, PageTable};
use crate::element::Plain;
use crate::error::{Error, Result};
use crate::tensor::{Array, Memory};
use sluice_sys as sys;

pub(crate) fn check<M: Memory>(args: &Args<M>, mode: u32, page_size: usize) -> Result<()> {
    let rows_of = |shape: [usize; 4]| shape[1];
    let written = args.lse.as_ref().map_or(usize::MAX, |lse| rows_of(lse.view.layout.shape()));
    let q_rows = rows_of(args.q.view.layout.shape()).min(rows_of(args.o.view.layout.shape())).min(written);
    check_starts("q_starts", &args.q_starts, args.batch, q_rows)?;
    let v_shape = args.v.as_ref().map_or([usize::MAX; 4], |v| v.view.layout.shape());
    let k_shape = args.k.view.layout.shape();
    if mode == sys::SLUICE_MODE_RAGGED {
        check_starts("kv_starts", &args.kv_starts, args.batch, rows_of(k_shape).min(rows_of(v_shape)))?;
    }
    if mode == sys::SLUICE_MODE_PAGED {
        check_pages(args, page_size.max(1), k_shape[0].min(v_shape[0]))?;
    }
    Ok(())
}

fn check_starts<M: Memory>(
    name: &str,
    starts: &Option<Array<i32, M>>,
    batch: usize,
    rows: usize,
) -> Result<()> {
    let contents = starts.as_ref().and_then(Array::contents).unwrap_or(&[]);
    // Negative ones are the library's to refuse.
    for (i, start) in contents.iter().enumerate().take(batch + 1) {
        if usize::try_from(*start).map_or(false, |start| start > rows) {
            let field = format!("{name}[{i}]");
            let message = format!("{field} is {start}; the tensors have {rows} rows");
            return Err(Error::invalid(field, message));
        }
    }
    Ok(())
}

fn check_pages<M: Memory>(args: &Args<M>, page_size: usize, pages: usize) -> Result<()> {
    let (lengths, table) = match (&args.kv_lengths, &args.page_table) {
        (Some(lengths), Some(table)) => (lengths, table),
        _ => return Ok(()), // the library says which is missing
    };
    let lengths = match lengths.contents() {
        Some(lengths) => lengths,
        None => return Ok(()),
    };
    for (b, length) in lengths.iter().enumerate().take(args.batch) {
        let needed = (usize::try_from(*length).unwrap_or(0) + page_size - 1) / page_size;
        let first = match table {
            PageTable::Block { stride, .. } => b.saturating_mul(*stride),
            // Negative ones are refused by the library before it reads what they lead to.
            PageTable::Csr { starts, .. } => {
                starts.contents().map_or(0, |starts| usize::try_from(starts[b]).unwrap_or(0))
            }
        };
        match table.pages() {
            PageNumbers::I32(numbers) => check_numbers(numbers, first, needed, pages)?,
            PageNumbers::I64(numbers) => check_numbers(numbers, first, needed, pages)?,
        }
    }
    Ok(())
}

fn check_numbers<T: Plain + Into<i64>, M: Memory>(
    numbers: &Array<T, M>,
    first: usize,
    needed: usize,
    pages: usize,
) -> Result<()> {
    let numbers = match numbers.contents() {
        Some(numbers) => numbers,
        None => return Ok(()),
    };
    let end = first.saturating_add(needed);
    if needed > 0 && end > numbers.len() {
        let message = format!("page_table has {} entries; this call needs {end}", numbers.len());
        return Err(Error::invalid("page_table", message));
    }
    for (i, number) in numbers.iter().enumerate().skip(first).take(needed) {
        let number: i64 = (*number).into();
        if usize::try_from(number).map_or(false, |number| number >= pages) {
            let field = format!("page_table[{i}]");
            let message = format!("{field} is {number}; the cache has {pages} pages");
            return Err(Error::invalid(field, message));
        }
    }
    Ok(())
}
