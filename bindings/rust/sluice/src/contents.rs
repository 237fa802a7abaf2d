//! Checks lengths, starts and positions whose contents are readable: they must not lead out of a page table or of the
//! table of a rotation, because the library does not know where these end. The library itself checks all other rules:
//! that starts do not decrease, and, with the counts of rows and pages, starts, slots and page numbers.

use crate::cache_ops::{Append, Numbers, Place, Rotation};
use crate::error::{Error, Result};
use crate::format::KvFormat;
use crate::kv::{PagePlace, Pages};
use crate::tensor::{Array, Memory};

/// Refuses a table that ends before the pages of `count` sequences or groups with these lengths do.
pub(crate) fn check_pages<M: Memory>(
    name: &str,
    pages: &Pages<M>,
    lengths: Option<Array<i32, M>>,
    count: usize,
    format: &KvFormat,
) -> Result<()> {
    let last_head = format.heads.saturating_sub(1).saturating_mul(pages.head_stride);
    let page_size = format.page_size().max(1);
    let lengths = lengths.and_then(|lengths| lengths.contents()).unwrap_or(&[]);
    for (b, length) in lengths.iter().enumerate().take(count) {
        let needed = (usize::try_from(*length).unwrap_or(0) + page_size - 1) / page_size;
        check_entries(name, pages, b, needed, last_head)?;
    }
    Ok(())
}

/// Refuses a table that ends before the first `needed` entries of sequence b do, for its last KV head. The library
/// checks the page numbers in them.
fn check_entries<M: Memory>(
    name: &str,
    pages: &Pages<M>,
    b: usize,
    needed: usize,
    last_head: usize,
) -> Result<()> {
    let first = match &pages.place {
        PagePlace::Stride(stride) => b.saturating_mul(*stride),
        PagePlace::Shared => 0,
        // The library refuses negative ones before it uses them.
        PagePlace::Starts(starts) => {
            starts.contents().map_or(0, |starts| usize::try_from(starts[b]).unwrap_or(0))
        }
    };
    let end = first.saturating_add(last_head).saturating_add(needed);
    let entries = pages.table.len();
    if needed > 0 && end > entries {
        let field = format!("{name}.table");
        let message = format!("{field} has {entries} entries; this call needs {end}");
        return Err(Error::invalid(field, message));
    }
    Ok(())
}

/// Refuses an append that reads past the end of a page table, or of the table of its rotation. `page_size` is not 0.
pub(crate) fn check_append<M: Memory>(append: &Append<M>, tokens: usize, page_size: usize) -> Result<()> {
    let rotary = append.rotation.as_ref();
    let positions = append.positions.and_then(|positions| positions.contents());
    match &append.place {
        Place::Slots(slots) => {
            for (t, slot) in slots.contents().unwrap_or(&[]).iter().enumerate().take(tokens) {
                // Rows of Q are rotated whatever their slot is.
                if let (Some(positions), true) = (positions, *slot >= 0 || append.q.is_some()) {
                    check_position(rotary, "positions", t, positions[t].into())?;
                }
            }
        }
        Place::Sequences { batch, starts, lengths, pages } => {
            let (starts, lengths) = match (starts.contents(), lengths.contents()) {
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
                check_entries("pages", pages, b, (keys - 1) / page_size + 1, 0)?;
                match positions {
                    None => check_position(rotary, "lengths", b, keys as i64 - 1)?,
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
fn check_position<M: Memory>(
    rotary: Option<&Rotation<M>>,
    name: &str,
    i: usize,
    position: i64,
) -> Result<()> {
    let (rotary, position) = match (rotary, usize::try_from(position)) {
        (Some(rotary), Ok(position)) => (rotary, position),
        _ => return Ok(()),
    };
    let needed = position.saturating_mul(rotary.stride).saturating_add(rotary.columns());
    for (table, table_name) in
        [(Some(&rotary.cosines), "rotation.cosines"), (rotary.sines.as_ref(), "rotation.sines")]
    {
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
