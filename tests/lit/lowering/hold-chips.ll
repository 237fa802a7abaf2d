; What the chip table says of the wait states between an MFMA and a read of its result, and of the names that the
; assembler has for MFMAs, is what LLVM generates for each chip.
; RUN: llc -mtriple=amdgcn-amd-amdhsa -mcpu=gfx90a %s -o - | FileCheck %s --check-prefix=GFX90A
; RUN: llc -mtriple=amdgcn-amd-amdhsa -mcpu=gfx942 %s -o - | FileCheck %s --check-prefix=GFX942
; RUN: llc -mtriple=amdgcn-amd-amdhsa -mcpu=gfx950 %s -o - | FileCheck %s --check-prefix=GFX950

; GFX90A:      v_mfma_f32_32x32x8bf16_1k
; GFX90A:      v_mfma_f32_32x32x8f16
; GFX90A-NEXT: s_nop 15
; GFX90A-NEXT: s_nop 2
; GFX90A-NEXT: v_accvgpr_read_b32
; GFX942:      v_mfma_f32_32x32x8_bf16
; GFX942:      v_mfma_f32_32x32x8_f16
; GFX942-NEXT: s_nop 10
; GFX942-NEXT: v_accvgpr_read_b32
; GFX950:      v_mfma_f32_32x32x8_bf16
; GFX950:      v_mfma_f32_32x32x8_f16
; GFX950-NEXT: s_nop 11
; GFX950-NEXT: v_accvgpr_read_b32

declare <16 x float> @llvm.amdgcn.mfma.f32.32x32x8f16(<4 x half>, <4 x half>, <16 x float>, i32, i32, i32)
declare <16 x float> @llvm.amdgcn.mfma.f32.32x32x8bf16.1k(<4 x i16>, <4 x i16>, <16 x float>, i32, i32, i32)

define amdgpu_kernel void @sum(ptr addrspace(1) %sum, <4 x half> %a, <4 x i16> %b, <16 x float> %c) {
  %first = call <16 x float> @llvm.amdgcn.mfma.f32.32x32x8bf16.1k(<4 x i16> %b, <4 x i16> %b, <16 x float> %c, i32 0, i32 0, i32 0)
  %second = call <16 x float> @llvm.amdgcn.mfma.f32.32x32x8f16(<4 x half> %a, <4 x half> %a, <16 x float> %first, i32 0, i32 0, i32 0)
  %twice = fadd <16 x float> %second, %second
  store <16 x float> %twice, ptr addrspace(1) %sum
  ret void
}
