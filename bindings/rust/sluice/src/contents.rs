//! What lengths, starts and positions hold, where it can be read: nothing in them may lead out of a page table or out of
//! the table of a rotation, since the library does not know where these end. All other rules it checks itself: that starts
//! do not fall, and by the counts of rows and pages what starts, slots and page numbers lead to.

use crate::args::{Args, PageNumbers, PageTable};
use crate::cache_ops::{Append, Place, Rotary};
use crate::error::{Error, Result};
use crate::tensor::Memory;

/// What leads a call out of its page table. `page_size` is not 0.
pub(crate) fn check_pages<M: Memory>(args: &Args<M>, page_size: usize) -> Result<()> {
    let (lengths, table) = match (&args.kv_lengths, &args.page_table) {
        (Some(lengths), Some(table)) => (lengths, table),
        _ => return Ok(()), // the library says which is missing
    };
    let lengths = lengths.contents().unwrap_or(&[]);
    for (b, length) in lengths.iter().enumerate().take(args.batch) {
        let needed = (usize::try_from(*length).unwrap_or(0) + page_size - 1) / page_size;
        check_entries(table, b, needed)?;
    }
    Ok(())
}

/// Refuses a table that ends before the first `needed` entries of sequence b do. The pages that they name, the library
/// compares with those there are.
fn check_entries<M: Memory>(table: &PageTable<M>, b: usize, needed: usize) -> Result<()> {
    let first = match table {
        PageTable::Block { stride, .. } => b.saturating_mul(*stride),
        // Negative ones are refused by the library before it reads what they lead to.
        PageTable::Csr { starts, .. } => {
            starts.contents().map_or(0, |starts| usize::try_from(starts[b]).unwrap_or(0))
        }
    };
    let end = first.saturating_add(needed);
    let entries = match table.pages() {
        PageNumbers::I32(numbers) => numbers.len(),
        PageNumbers::I64(numbers) => numbers.len(),
    };
    if needed > 0 && end > entries {
        let message = format!("page_table has {entries} entries; this call needs {end}");
        return Err(Error::invalid("page_table", message));
    }
    Ok(())
}

/// What leads an append out of a page table, or of the table of its rotation. `page_size` is not 0.
pub(crate) fn check_append<M: Memory>(append: &Append<M>, tokens: usize, page_size: usize) -> Result<()> {
    let rotary = append.rotary.as_ref();
    let positions = rotary.and_then(|rotary| rotary.positions).and_then(|positions| positions.contents());
    match &append.place {
        Place::Slots(slots) => {
            for (t, slot) in slots.contents().unwrap_or(&[]).iter().enumerate().take(tokens) {
                if let (Some(positions), true) = (positions, *slot >= 0) {
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
                return Ok(()); // the library refuses them before it goes by them
            }
            for (b, keys) in lengths.iter().enumerate().take(*batch) {
                let rows = starts[b] as usize..starts[b + 1] as usize;
                let keys = usize::try_from(*keys).unwrap_or(0);
                if rows.is_empty() || keys < rows.len() {
                    continue; // likewise
                }
                check_entries(page_table, b, (keys - 1) / page_size + 1)?;
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

/// `name[i]` is where the position comes from. Negative ones are the library's to refuse.
fn check_position<M: Memory>(rotary: Option<&Rotary<M>>, name: &str, i: usize, position: i64) -> Result<()> {
    let (rotary, position) = match (rotary, usize::try_from(position)) {
        (Some(rotary), Ok(position)) => (rotary, position),
        _ => return Ok(()),
    };
    let needed = position.saturating_mul(rotary.stride).saturating_add(rotary.dim);
    if needed > rotary.table.len() {
        let field = format!("{name}[{i}]");
        let message = format!(
            "{field} leads to position {position} of rotary, which needs {needed} elements; there are {}",
            rotary.table.len()
        );
        return Err(Error::invalid(field, message));
    }
    Ok(())
}
