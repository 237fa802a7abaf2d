//! Checks lengths, starts and positions whose contents are readable: they must not lead out of a page table or of the
//! table of a rotation, because the library does not know where these end. The library itself checks all other rules:
//! that starts do not decrease, and, with the counts of rows and pages, starts, slots and page numbers.

use crate::args::{Args, PageNumbers, PageTable};
use crate::cache_ops::{Append, Gather, Numbers, Place, Rotary};
use crate::error::{Error, Result};
use crate::tensor::Memory;

/// Refuses a call that reads past the end of its page table. `page_size` is not 0; the last KV head's entries are
/// `last_head` after the first one's.
pub(crate) fn check_pages<M: Memory>(args: &Args<M>, page_size: usize, last_head: usize) -> Result<()> {
    let (lengths, table) = match (&args.kv_lengths, &args.page_table) {
        (Some(lengths), Some(table)) => (lengths, table),
        _ => return Ok(()), // the library names the missing one
    };
    check_lengths("page_table", table, lengths.contents().unwrap_or(&[]), args.batch, page_size, last_head)?;
    match args.prefixes.as_ref().map(|prefixes| (prefixes, &prefixes.lengths, &prefixes.page_table)) {
        Some((prefixes, Some(lengths), Some(table))) => {
            let lengths = lengths.contents().unwrap_or(&[]);
            check_lengths("prefix_page_table", table, lengths, prefixes.count, page_size, 0)
        }
        _ => Ok(()),
    }
}

/// Refuses a gather that reads past the end of its page table. `page_size` is not 0.
pub(crate) fn check_gather<M: Memory>(gather: &Gather<M>, page_size: usize) -> Result<()> {
    let lengths = gather.kv_lengths.contents().unwrap_or(&[]);
    check_lengths("page_table", &gather.page_table, lengths, gather.batch, page_size, 0)
}

/// Refuses a table that ends before the pages of `count` sequences or prefixes with these lengths do.
fn check_lengths<M: Memory>(
    field: &str,
    table: &PageTable<M>,
    lengths: &[i32],
    count: usize,
    page_size: usize,
    last_head: usize,
) -> Result<()> {
    for (b, length) in lengths.iter().enumerate().take(count) {
        let needed = (usize::try_from(*length).unwrap_or(0) + page_size - 1) / page_size;
        check_entries(field, table, b, needed, last_head)?;
    }
    Ok(())
}

/// Refuses a table that ends before the first `needed` entries of sequence b do, for its last KV head. The library
/// checks the page numbers in them.
fn check_entries<M: Memory>(
    field: &str,
    table: &PageTable<M>,
    b: usize,
    needed: usize,
    last_head: usize,
) -> Result<()> {
    let first = match table {
        PageTable::Block { stride, .. } => b.saturating_mul(*stride),
        // The library refuses negative ones before it uses them.
        PageTable::Csr { starts, .. } => {
            starts.contents().map_or(0, |starts| usize::try_from(starts[b]).unwrap_or(0))
        }
    };
    let end = first.saturating_add(last_head).saturating_add(needed);
    let entries = match table.pages() {
        PageNumbers::I32(numbers) => numbers.len(),
        PageNumbers::I64(numbers) => numbers.len(),
    };
    if needed > 0 && end > entries {
        let message = format!("{field} has {entries} entries; this call needs {end}");
        return Err(Error::invalid(field, message));
    }
    Ok(())
}

/// Refuses an append that reads past the end of a page table, or of the table of its rotation. `page_size` is not 0.
pub(crate) fn check_append<M: Memory>(append: &Append<M>, tokens: usize, page_size: usize) -> Result<()> {
    let rotary = append.rotary.as_ref();
    let positions = rotary.and_then(|rotary| rotary.positions).and_then(|positions| positions.contents());
    match &append.place {
        Place::Slots(slots) => {
            for (t, slot) in slots.contents().unwrap_or(&[]).iter().enumerate().take(tokens) {
                // Rows of Q are rotated whatever their slot is.
                if let (Some(positions), true) = (positions, *slot >= 0 || append.q.is_some()) {
                    check_position(rotary, "positions", t, positions[t].into())?;
                }
            }
        }
        Place::Sequences { batch, starts, kv_lengths, page_table } => {
            let (starts, lengths) = match (starts.contents(), kv_lengths.contents()) {
                (Some(starts), Some(lengths)) => (&starts[..=*batch], lengths),
                _ => return Ok(()),
            };
            let within = |start: &i32| usize::try_from(*start).map_or(false, |start| start <= tokens);
            if !starts.iter().all(within) || starts.windows(2).any(|pair| pair[0] > pair[1]) {
                return Ok(()); // the library refuses them before it uses them
            }
            for (b, keys) in lengths.iter().enumerate().take(*batch) {
                let rows = starts[b] as usize..starts[b + 1] as usize;
                let keys = usize::try_from(*keys).unwrap_or(0);
                if rows.is_empty() || keys < rows.len() {
                    continue; // the library refuses it
                }
                check_entries("page_table", page_table, b, (keys - 1) / page_size + 1, 0)?;
                match positions {
                    None => check_position(rotary, "kv_lengths", b, keys as i64 - 1)?,
                    Some(positions) => {
                        for t in rows {
                            check_position(rotary, "positions", t, positions[t].into())?;
                        }
                    }
                }
            }
        }
    }
    Ok(())
}

/// `name[i]` is where the position comes from. The library refuses negative ones.
fn check_position<M: Memory>(rotary: Option<&Rotary<M>>, name: &str, i: usize, position: i64) -> Result<()> {
    let (rotary, position) = match (rotary, usize::try_from(position)) {
        (Some(rotary), Ok(position)) => (rotary, position),
        _ => return Ok(()),
    };
    let needed = position.saturating_mul(rotary.stride).saturating_add(rotary.columns());
    for (table, table_name) in [(Some(&rotary.table), "rotary"), (rotary.sines.as_ref(), "rotary_sin")] {
        let len = table.map_or(needed, Numbers::len);
        if needed > len {
            let field = format!("{name}[{i}]");
            let message = format!(
                "{field} leads to position {position} of {table_name}, which needs {needed} elements; it has {len}"
            );
            return Err(Error::invalid(field, message));
        }
    }
    Ok(())
}
