//! Compares the declarations of this crate with those of `sluice.h`. The list of what to compare is read from the
//! header, so that nothing can be left out: numbers (sizes, offsets, values) from a C program compiled with it, types
//! and signatures from its text.

mod header;

use sluice_sys::*;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::mem::{size_of, size_of_val, MaybeUninit};
use std::process::Command;
use std::ptr::addr_of;

/// Name -> number: `sluice_error` -> size, `sluice_error.code` -> offset, `sluice_error.code size` -> size, a
/// constant -> value.
type Numbers = BTreeMap<String, i64>;

/// The numbers of structs. A field that is missing here, or that does not exist, does not compile.
macro_rules! layouts {
    ($($name:ident { $($field:ident),* })*) => {{
        let mut numbers = Numbers::new();
        $(
            numbers.insert(stringify!($name).into(), size_of::<$name>() as i64);
            let memory = MaybeUninit::<$name>::zeroed();
            let base = memory.as_ptr();
            // SAFETY: all zero is a value of every struct of the header, and the pointers stay inside it.
            unsafe {
                let $name { $($field: _),* } = &*base;
                $(
                    let offset = addr_of!((*base).$field) as usize - base as usize;
                    let field = concat!(stringify!($name), ".", stringify!($field));
                    numbers.insert(field.into(), offset as i64);
                    numbers.insert(format!("{field} size"), size_of_val(&(*base).$field) as i64);
                )*
            }
        )*
        numbers
    }};
}

macro_rules! constants {
    ($($name:ident),* $(,)?) => { Numbers::from([$((stringify!($name).to_string(), $name as i64)),*]) };
}

macro_rules! functions {
    ($($name:ident),* $(,)?) => { [$((stringify!($name), $name as *const ())),*] };
}

fn rust_layouts() -> Numbers {
    layouts! {
        sluice_error { struct_size, code, hip_code, field, message }
        sluice_build {
            struct_size, kernel_count, version, git_commit, compiler, llvm_version, pack_id, chips
        }
        sluice_context_desc {
            struct_size, kind, device_ordinal, flags, target, hip_resolver, hip_resolver_user, pack,
            pack_bytes
        }
        sluice_device_info {
            struct_size, kind, ordinal, compute_units, wave_size, lds_bytes, hip_runtime_version, reserved,
            chip, arch, name, runtime
        }
        sluice_problem {
            struct_size, flags, mode, q_type, k_type, v_type, o_type, q_heads, kv_heads, head_dim_qk,
            head_dim_v, max_batch, max_q_len, max_kv_len, max_q_tokens, mask_alignment, window_left,
            window_right, sink_tokens, soft_cap, bias_type, q_scale_kind, k_scale_kind, v_scale_kind,
            page_size, page_table_kind, k_pack, lse_base, determinism, workspace_ceiling_bytes,
            o_scale_kind, scale_group, max_prefixes, max_prefix_len,
            v_pack, reserved
        }
        sluice_support {
            struct_size, workspace_alignment, workspace_bytes, pointer_alignment, stride_multiple, kernel
        }
        sluice_kernel_info {
            struct_size, dtype, head_dim_qk, head_dim_v, tile_q, tile_kv, waves, threads, lds_bytes,
            kernarg_bytes, name, operation, features, p_rounding, chips, more_features
        }
        sluice_plan_info {
            struct_size, tile_q, tile_kv, waves, lds_bytes, workspace_alignment, workspace_bytes, max_grid,
            block, kernel, reason
        }
        sluice_tensor { data, stride }
        sluice_args {
            struct_size, flags, batch, q_len, kv_len, scale, q, k, v, o, lse, q_starts, kv_starts,
            q_lengths, kv_lengths, page_table, page_table_stride, page_starts, bias, mask, alibi_slopes,
            sink_logits, q_scale, k_scale, v_scale, page_count, q_tokens, kv_tokens, k_scales, v_scales,
            o_scale, bias_scale, diagonals, causal, spans, span_count, alibi_batch_stride,
            bias_scale_batch_stride, prefix_count, prefix_len, prefix_q_starts, prefix_lengths,
            prefix_page_table, prefix_page_table_stride, prefix_page_starts, prefix_k, prefix_v,
            k_zeros, v_zeros, page_table_head_stride
        }
        sluice_dependency { kind, reserved, event, stream }
        sluice_launch {
            struct_size, dependency_count, stream, workspace, workspace_bytes, dependencies, signal_event
        }
        sluice_append {
            struct_size, flags, source_type, cache_type, kv_heads, head_dim_qk, head_dim_v, page_size,
            page_table_kind, k_pack, k_scale_kind, v_scale_kind, tokens, batch, rotary_dim, rotary_style, k,
            v, k_cache, v_cache, slots, starts, kv_lengths, page_table, page_table_stride, page_starts,
            k_scale, v_scale, rotary, rotary_stride, positions, page_count, rotary_type, rotary_first,
            rotary_sin, q_heads, tail_dim, q, q_out, k_tail, q_tail, q_norm, k_norm, norm_epsilon, norm_type,
            k_scales, v_scales, k_zeros, v_zeros, scale_group, v_pack
        }
        sluice_merge {
            struct_size, flags, partial_type, o_type, parts, tokens, heads, head_dim_v, lse_base, reserved,
            partial, partial_lse, o, lse, sink_logits, partial_list, partial_lse_list,
            partial_lse_sequence_stride, lse_sequence_stride, sequence_tokens, o_scale_kind, o_scale
        }
        sluice_page_copy { struct_size, flags, source_type, target_type, kv_heads, head_dim_qk, head_dim_v, page_size, source_k_pack, target_k_pack, k_scale_kind, v_scale_kind, k_source, v_source, k_target, v_target, pairs, pair_count, page_count, k_scale, v_scale, k_scales, v_scales, k_zeros, v_zeros, k_target_scales, v_target_scales, k_target_zeros, v_target_zeros, scale_group, reserved }
        sluice_gather { struct_size, flags, cache_type, out_type, kv_heads, head_dim_qk, head_dim_v, page_size, page_table_kind, k_pack, k_scale_kind, v_scale_kind, batch, tokens, k_cache, v_cache, k_out, v_out, out_starts, kv_lengths, first_keys, page_table, page_table_stride, page_starts, page_count, k_scale, v_scale, k_scales, v_scales, k_zeros, v_zeros, k_out_scales, v_out_scales, k_out_zeros, v_out_zeros, scale_group, reserved }
        sluice_counters { struct_size, reserved, runs, refused, launches, main_launches, other_launches, merge_launches }
        sluice_trace_record {
            struct_size, event, grid, block, lds_bytes, waves, workspace_bytes, kernel, reason
        }
    }
}

fn rust_constants() -> Numbers {
    constants![
        SLUICE_ABI_MAJOR,
        SLUICE_ABI_MINOR,
        SLUICE_OK,
        SLUICE_INVALID_ARGUMENT,
        SLUICE_UNSUPPORTED,
        SLUICE_NEWER_STRUCT,
        SLUICE_NO_DEVICE,
        SLUICE_WRONG_ARCH,
        SLUICE_HIP,
        SLUICE_PACK_CORRUPT,
        SLUICE_WORKSPACE_TOO_SMALL,
        SLUICE_OUT_OF_MEMORY,
        SLUICE_INTERNAL,
        SLUICE_LOG_ERROR,
        SLUICE_LOG_WARNING,
        SLUICE_LOG_INFO,
        SLUICE_LOG_DEBUG,
        SLUICE_DEVICE_HIP,
        SLUICE_DEVICE_EMULATED,
        SLUICE_DEVICE_TARGET,
        SLUICE_MODE_DENSE,
        SLUICE_MODE_RAGGED,
        SLUICE_MODE_PAGED,
        SLUICE_F16,
        SLUICE_BF16,
        SLUICE_F32,
        SLUICE_E4M3FNUZ,
        SLUICE_E4M3FN,
        SLUICE_E5M2FNUZ,
        SLUICE_E5M2,
        SLUICE_I8,
        SLUICE_U4,
        SLUICE_Q8_0,
        SLUICE_Q4_0,
        SLUICE_CAUSAL,
        SLUICE_WRITE_LSE,
        SLUICE_HAS_WINDOW_LEFT,
        SLUICE_HAS_WINDOW_RIGHT,
        SLUICE_ALIBI,
        SLUICE_SINK_LOGITS,
        SLUICE_BOOL_MASK,
        SLUICE_PAGE_INDEX_64,
        SLUICE_V_IN_K,
        SLUICE_MASK_NEW_ROWS,
        SLUICE_SPANS,
        SLUICE_CAUSAL_BY_SEQUENCE,
        SLUICE_BIAS_SCALE,
        SLUICE_SHARED_PREFIX,
        SLUICE_ZERO_POINTS,
        SLUICE_MISSING_PAGES_HIDDEN,
        SLUICE_PADDED_ROWS,
        SLUICE_BOTTOM_RIGHT,
        SLUICE_TOP_LEFT,
        SLUICE_GIVEN_DIAGONAL,
        SLUICE_SCALE_NONE,
        SLUICE_SCALE_PER_TENSOR,
        SLUICE_SCALE_PER_HEAD,
        SLUICE_SCALE_PER_TOKEN,
        SLUICE_SCALE_PER_PAGE,
        SLUICE_SCALE_PER_GROUP,
        SLUICE_V_PACK_ALL,
        SLUICE_PAGE_TABLE_NONE,
        SLUICE_PAGE_TABLE_BLOCK,
        SLUICE_PAGE_TABLE_CSR,
        SLUICE_LSE_BASE_E,
        SLUICE_LSE_BASE_2,
        SLUICE_DETERMINISM_FAST,
        SLUICE_DETERMINISM_BATCH_INVARIANT,
        SLUICE_EXACT_SCALE,
        SLUICE_EXACT_LENGTHS,
        SLUICE_DEPENDS_ON_EVENT,
        SLUICE_DEPENDS_ON_STREAM,
        SLUICE_ROTARY_HALVES,
        SLUICE_ROTARY_PAIRS,
        SLUICE_MERGE_INFINITY_IS_EMPTY,
        SLUICE_TRACE_PLAN,
        SLUICE_TRACE_RUN,
    ]
}

fn compile_and_run(program: &str) -> Numbers {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
    let (source, binary) = (folder.join("layout.c"), folder.join("layout"));
    std::fs::write(&source, program).unwrap();
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".into());
    let compiled = Command::new(&compiler)
        .args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-o"])
        .arg(&binary)
        .arg("-I")
        .arg(header::include_dir())
        .arg(&source)
        .output()
        .unwrap_or_else(|error| panic!("{compiler}: {error}"));
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    let output = Command::new(&binary).output().unwrap();
    assert!(output.status.success());
    let lines = String::from_utf8(output.stdout).unwrap();
    lines
        .lines()
        .map(|line| line.split_once('=').unwrap())
        .map(|(k, v)| (k.into(), v.parse().unwrap()))
        .collect()
}

fn c_numbers(header: &header::Header) -> Numbers {
    let mut program = String::from(
        "#include <sluice/sluice.h>\n#include <stdio.h>\n\
         #define SAY(name, value) printf(\"%s=%lld\\n\", name, (long long)(value))\nint main(void) {\n",
    );
    for header::Struct { name, fields } in &header.structs {
        writeln!(program, "SAY(\"{name}\", sizeof({name}));").unwrap();
        for header::Field { name: field, .. } in fields {
            writeln!(program, "SAY(\"{name}.{field}\", offsetof({name}, {field}));").unwrap();
            writeln!(program, "SAY(\"{name}.{field} size\", sizeof((({name} *)0)->{field}));").unwrap();
        }
    }
    for name in &header.constants {
        writeln!(program, "SAY(\"{name}\", {name});").unwrap();
    }
    compile_and_run(&(program + "return 0; }\n"))
}

/// Every difference, by name.
fn differences(c: &Numbers, rust: &Numbers) -> Vec<String> {
    let mut found = vec![];
    for (name, value) in c {
        match rust.get(name) {
            Some(other) if other == value => {}
            Some(other) => found.push(format!("{name} is {value} in C and {other} in Rust")),
            None => found.push(format!("{name} is in the header and not in Rust")),
        }
    }
    found.extend(
        rust.keys().filter(|name| !c.contains_key(*name)).map(|name| format!("{name} is only in Rust")),
    );
    found
}

/// src/lib.rs without comments, with single spaces, and without trailing commas of lists.
fn declarations() -> String {
    let lines = include_str!("../src/lib.rs").lines().filter(|line| !line.trim_start().starts_with("//"));
    let words: Vec<&str> = lines.flat_map(str::split_whitespace).collect();
    words.join(" ").replace("( ", "(").replace(", )", ")").replace("Option< ", "Option<").replace(", >", ">")
}

#[test]
fn numbers_are_those_of_c() {
    let header = header::read();
    let mut rust = rust_layouts();
    rust.extend(rust_constants());
    let c = c_numbers(&header);
    assert!(header.structs.len() >= 14 && header.constants.len() >= 50, "the header was not read");
    assert_eq!(differences(&c, &rust), Vec::<String>::new());
}

#[test]
fn types_and_signatures_are_those_of_the_header() {
    let (header, rust) = (header::read(), declarations());
    let expect = |text: String| assert!(rust.contains(&text), "src/lib.rs lacks: {text}");
    for header::Struct { name, fields } in &header.structs {
        let fields: Vec<String> =
            fields.iter().map(|f| format!("pub {}: {},", f.name, f.rust_type)).collect();
        expect(format!(
            "#[repr(C)] #[derive(Clone, Copy, Debug)] pub struct {name} {{ {} }}",
            fields.join(" ")
        ));
    }
    for name in &header.handles {
        expect(format!("#[repr(C)] pub struct {name} {{ _data: [u8; 0],"));
    }
    for header::Function { name, signature } in &header.callbacks {
        expect(format!("pub type {name} = Option<unsafe extern \"C\" fn{signature}>;"));
    }
    for header::Function { name, signature } in &header.functions {
        expect(format!("pub fn {name}{signature};"));
    }
    assert_eq!(rust.matches("pub struct ").count(), header.structs.len() + header.handles.len());
    assert_eq!(rust.matches("pub const ").count(), header.constants.len());
    assert_eq!(rust.matches("pub fn ").count(), header.functions.len());
    // The callbacks and sluice_status.
    assert_eq!(rust.matches("pub type ").count(), header.callbacks.len() + 1);
}

#[test]
fn every_function_can_be_linked() {
    let linked = functions![
        sluice_error_init,
        sluice_status_name,
        sluice_abi_version,
        sluice_version,
        sluice_build_init,
        sluice_build_info,
        sluice_set_log,
        sluice_context_desc_init,
        sluice_context_create,
        sluice_context_destroy,
        sluice_device_info_init,
        sluice_context_device,
        sluice_context_hip_symbol,
        sluice_problem_init,
        sluice_support_init,
        sluice_query_support,
        sluice_workspace_size,
        sluice_kernel_info_init,
        sluice_list_kernels,
        sluice_plan_create,
        sluice_plan_destroy,
        sluice_plan_info_init,
        sluice_plan_describe,
        sluice_preload,
        sluice_args_init,
        sluice_launch_init,
        sluice_run,
        sluice_append_init,
        sluice_kv_append,
        sluice_page_copy_init,
        sluice_kv_copy,
        sluice_gather_init,
        sluice_kv_gather,
        sluice_merge_init,
        sluice_merge_states,
        sluice_reference,
        sluice_reference_append,
        sluice_reference_copy,
        sluice_reference_gather,
        sluice_set_trace,
        sluice_set_ranges,
        sluice_counters_init,
        sluice_plan_counters,
    ];
    let mut names: Vec<&str> = linked.iter().map(|(name, _)| *name).collect();
    let header = header::read();
    let mut declared: Vec<&str> = header.functions.iter().map(|function| function.name.as_str()).collect();
    names.sort_unstable();
    declared.sort_unstable();
    assert_eq!(names, declared);
    assert!(linked.iter().all(|(_, address)| !address.is_null()));
}

#[test]
fn the_library_is_of_this_header() {
    // SAFETY: takes nothing and touches nothing.
    let version = unsafe { sluice_abi_version() };
    assert_eq!(version >> 16, SLUICE_ABI_MAJOR);
    assert!((SLUICE_ABI_MINOR..).contains(&(version & 0xffff)), "the library is older than the header");
}

/// Comments of this crate are sentences of the header. Reports those that were changed only there.
#[test]
fn comments_are_those_of_the_header() {
    let said = header::comments();
    let mut comment = String::new();
    let (mut count, mut wrong) = (0, vec![]);
    for line in include_str!("../src/lib.rs").lines().map(str::trim).chain([""]) {
        if let Some(text) = line.strip_prefix("///") {
            comment = comment + text.trim_start() + " ";
        } else if !comment.is_empty() {
            // Markdown needs these escapes.
            let sentence = comment.trim_end().replace('\\', "");
            count += 1;
            if !said.contains(&sentence) {
                wrong.push(sentence);
            }
            comment.clear();
        }
    }
    assert!(wrong.is_empty(), "not in the header: {wrong:#?}");
    assert!(count > 300, "{count} comments were found");
}

#[test]
fn differences_are_seen() {
    let number = |name: &str, value| (name.to_string(), value);
    let c = Numbers::from([number("a", 1), number("b", 2), number("c", 3)]);
    let rust = Numbers::from([number("a", 1), number("b", 4), number("d", 3)]);
    assert_eq!(
        differences(&c, &rust),
        ["b is 2 in C and 4 in Rust", "c is in the header and not in Rust", "d is only in Rust"]
    );
}

#[test]
fn the_header_is_read_to_its_end() {
    let header = header::parse(
        "/* ; */ #define N 3\nextern \"C\" {\nenum e { A = 1 << 2, /* , */ B };\n\
         typedef struct s { const void *p; char t[8]; } s;\ntypedef struct h h;\n\
         SLUICE_API const char *f(const sluice_s *a, sluice_s **out) SLUICE_NOEXCEPT;\ntypedef void (*c)(void *user);\n}\n",
    );
    assert_eq!(header.constants, ["N", "A", "B"]);
    assert_eq!(header.handles, ["h"]);
    assert_eq!((header.structs.len(), header.structs[0].fields[1].rust_type.as_str()), (1, "[c_char; 8]"));
    assert_eq!(
        header.functions[0].signature,
        "(a: *const sluice_s, out: *mut *mut sluice_s) -> *const c_char"
    );
    assert_eq!(header.callbacks[0].signature, "(user: *mut c_void)");
}
