; What the chip table says of wait states, except those after an MFMA, is what LLVM generates. gfx90a needs fewer.
; RUN: llc -mtriple=amdgcn-amd-amdhsa -mcpu=gfx90a %s -o - | FileCheck %s --check-prefixes=CHECK
; RUN: llc -mtriple=amdgcn-amd-amdhsa -mcpu=gfx942 %s -o - | FileCheck %s --check-prefixes=CHECK,GFX94
; RUN: llc -mtriple=amdgcn-amd-amdhsa -mcpu=gfx950 %s -o - | FileCheck %s --check-prefixes=CHECK,GFX94

declare float @llvm.amdgcn.exp2.f32(float)
declare <16 x float> @llvm.amdgcn.mfma.f32.32x32x8f16(<4 x half>, <4 x half>, <16 x float>, i32, i32, i32)
declare void @llvm.amdgcn.raw.ptr.buffer.load.lds(ptr addrspace(8), ptr addrspace(3), i32, i32, i32, i32, i32)

; CHECK-LABEL:  after_transcendental:
; CHECK:        v_exp_f32
; GFX94-NEXT:   s_nop 0
; CHECK-NEXT:   v_add_f32
define float @after_transcendental(float %x) {
  %exp = call float @llvm.amdgcn.exp2.f32(float %x)
  %more = fadd float %exp, 1.0
  ret float %more
}

; CHECK-LABEL:  after_mask:
; CHECK:        v_cmp_lt_f32
; GFX94-NEXT:   s_nop 1
; CHECK-NEXT:   v_cndmask_b32
define i32 @after_mask(float %a, float %b, i32 %c, i32 %d) {
  %less = fcmp olt float %a, %b
  %either = select i1 %less, i32 %c, i32 %d
  ret i32 %either
}

; CHECK-LABEL:  vector_to_matrix:
; CHECK:        v_accvgpr_write_b32
; CHECK:        s_nop 1
; CHECK-NEXT:   v_mfma_f32_32x32x8
define <16 x float> @vector_to_matrix(<4 x half> %a, <16 x float> %c) {
  %sum = call <16 x float> @llvm.amdgcn.mfma.f32.32x32x8f16(<4 x half> %a, <4 x half> %a, <16 x float> %c, i32 0, i32 0, i32 0)
  ret <16 x float> %sum
}

; CHECK-LABEL:  after_m0:
; CHECK:        s_mov_b32 m0
; CHECK-NEXT:   s_nop 0
; CHECK-NEXT:   buffer_load_dword {{.*}} lds
define amdgpu_kernel void @after_m0(ptr addrspace(8) %rows, ptr addrspace(3) %lds) {
  call void @llvm.amdgcn.raw.ptr.buffer.load.lds(ptr addrspace(8) %rows, ptr addrspace(3) %lds, i32 4, i32 0, i32 0, i32 0, i32 0)
  ret void
}
