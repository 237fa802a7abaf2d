//! Queries without a device, and about one.

mod common;

use common::{emulator, target};
use sluice::{
    abi_version, build_info, version, Attention, Bounds, Code, Context, DeviceKind, Dtype, KvFormat, Layout,
    Lse, Mask, Tensor, F16,
};

fn attention(dtype: Dtype) -> Attention {
    Attention::new(dtype, 8, KvFormat::new(dtype, 2, 128))
}

#[test]
fn the_library_says_what_it_is() {
    let info = build_info().unwrap();
    assert_eq!(info.version, version());
    assert_eq!(version().split('.').count(), 3);
    assert_eq!(abi_version().0, sluice_sys::SLUICE_ABI_MAJOR);
    assert!(info.kernel_count > 0 && info.chips.contains("gfx942") && !info.pack_id.is_empty());
    assert!(!info.compiler.is_empty() && !info.llvm_version.is_empty() && !info.git_commit.is_empty());
}

#[test]
fn contexts_say_what_they_are_bound_to() {
    let device = target().device();
    assert_eq!((device.kind, device.ordinal, device.compute_units), (DeviceKind::Target, None, 304));
    assert_eq!((device.chip.as_str(), device.runtime.as_str()), ("gfx942", "none"));
    let device = emulator().device();
    assert_eq!((device.kind, device.ordinal, device.wave_size), (DeviceKind::Emulated, Some(0), 64));
    assert!(device.runtime.contains("libsluice_emulator"), "{}", device.runtime);
    assert!(
        device.arch.starts_with("gfx942:") && device.lds_bytes == 65536 && device.hip_runtime_version > 0
    );
}

#[test]
fn kernels_are_listed_and_chosen_from() {
    let context = target();
    let kernels = context.list_kernels().unwrap();
    assert!(kernels.windows(2).all(|pair| pair[0].name < pair[1].name), "in the order of their names");
    let problem = Attention { mask: Some(Mask::causal()), ..attention(Dtype::F16) };
    let support = context.query_support(&problem).unwrap();
    let kernel = kernels.iter().find(|kernel| kernel.name == support.kernel).expect("the kernel is listed");
    assert_eq!((kernel.dtype, kernel.head_dim_qk, kernel.head_dim_v), (Some(Dtype::F16), 128, 128));
    assert_eq!((kernel.operation.as_str(), kernel.threads), ("attention_forward", kernel.waves * 64));
    assert!(kernel.features.contains("causal") && kernel.p_rounding == "centred_cut");
    assert!(kernel.more_features.contains("spans") && !kernel.features.contains("spans"));
    assert_eq!((support.pointer_alignment, support.stride_multiple), (16, 8));
    for operation in ["kv_append", "merge_states"] {
        assert!(kernels.iter().any(|kernel| kernel.operation == operation));
    }
    let info = context.plan(&problem).unwrap().info();
    assert_eq!((info.kernel, info.tile_q, info.waves), (support.kernel, kernel.tile_q, kernel.waves));
    assert!(!info.reason.is_empty() && info.block[0] == kernel.threads && info.lds_bytes == kernel.lds_bytes);
}

#[test]
fn the_workspace_is_the_same_in_every_answer() {
    let context = target();
    let bounds = Bounds { batch: 4, q_len: 1, kv_len: 8192, ..Bounds::default() };
    let problem = Attention { batch_invariant: true, bounds, ..attention(Dtype::F16) };
    let bytes = context.query_support(&problem).unwrap().workspace_bytes;
    assert!(bytes > 0);
    let plan = context.plan(&problem).unwrap();
    assert_eq!(plan.info().workspace_bytes, bytes);
    assert_eq!(*plan.attention(), problem);
}

#[test]
fn a_target_has_no_device_and_no_functions() {
    let context = target();
    let problem = Attention { lse: Some(Lse::Ln), ..attention(Dtype::F16) };
    assert_eq!(context.preload(&problem).unwrap_err().code, Code::NoDevice);
    assert_eq!(context.preload_all().unwrap_err().code, Code::NoDevice);
    assert_eq!(context.hip_symbol("hipMalloc"), None);
    let error = sluice::hip::Hip::new(&context).err().unwrap();
    assert_eq!((error.code, error.field.as_str()), (Code::NoDevice, "context"));
}

#[test]
fn the_emulator_loads_kernels_and_has_functions() {
    let context = emulator();
    let problem = attention(Dtype::Bf16);
    context.preload(&problem).unwrap();
    context.preload_all().unwrap();
    assert!(context.hip_symbol("hipMalloc").is_some());
    assert_eq!(context.hip_symbol("hipMalloc\0"), None);
    assert_eq!(context.hip_symbol("noSuchFunction"), None);
}

#[test]
fn impossible_contexts_are_refused() {
    let error = Context::target("gfx9000").build().unwrap_err();
    assert_eq!(error.field, "target");
    let error = Context::target("gfx\0").build().unwrap_err();
    assert_eq!((error.code, error.field.as_str()), (Code::InvalidArgument, "target"));
    let error = Context::target("gfx942:304").pack(vec![1u8; 100]).build().unwrap_err();
    assert_eq!(error.code, Code::PackCorrupt);
}

#[test]
fn views_remember_what_they_are_of() {
    let elements = [F16::default(); 24];
    let view = Tensor::new(&elements, Layout::rows([1, 3, 8])).unwrap();
    assert_eq!((view.dtype(), view.layout()), (Some(Dtype::F16), Layout::rows([1, 3, 8])));
    let error = Tensor::new(&elements[1..], Layout::rows([1, 3, 8])).unwrap_err();
    assert_eq!(
        error.message,
        "shape [1, 1, 3, 8] with stride [0, 24, 8, 1] needs 24 elements; the memory has 23"
    );
}
