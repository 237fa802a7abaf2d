// RUN: sluice-opt %s --allow-unregistered-dialect --pass-pipeline='builtin.module(gpu.module(lower-sluice-to-rocdl))' | FileCheck %s

!a = !sluice.lds_tile<4x64xf16>
!b = !sluice.lds_tile<2x64xf16>

// Tiles are at their given offsets. %a and %b share bytes: each is noalias with %c only, and %c with both.
// CHECK:       llvm.mlir.global internal @kernel_lds() {{.*}} : !llvm.array<768 x i8>
// CHECK-LABEL: gpu.func @kernel
// CHECK-NOT:     sluice
// CHECK:         llvm.getelementptr inbounds {{.*}}[0]
// CHECK:         llvm.load {{.*}} {alias_scopes = [#[[A:.*]]], alignment = 8 : i64, noalias_scopes = [#[[C:.*]]]}
// CHECK-NOT:     sluice
// CHECK:         llvm.getelementptr inbounds {{.*}}[256]
// CHECK:         llvm.load {{.*}} {alias_scopes = [#[[B:.*]]], alignment = 8 : i64, noalias_scopes = [#[[C]]]}
// CHECK:         llvm.getelementptr inbounds {{.*}}[512]
// CHECK:         llvm.load {{.*}} {alias_scopes = [#[[C]]], alignment = 8 : i64, noalias_scopes = [#[[A]], #[[B]]]}
// CHECK-NOT:     sluice
gpu.module @m {
  gpu.func @kernel(%row: i32, %column: i32) kernel {
    %a = sluice.lds_alloc {offset = 0 : i32} : !a
    %b = sluice.lds_alloc {offset = 256 : i32} : !b
    %c = sluice.lds_alloc {offset = 512 : i32} : !b
    sluice.live_in %a : !a
    %x = sluice.lds_read %a[%row, %column] : !a, vector<4xf16>
    sluice.live_out %a : !a
    %y = sluice.lds_read %b[%row, %column] : !b, vector<4xf16>
    %z = sluice.lds_read %c[%row, %column] : !b, vector<4xf16>
    "test.use"(%x, %y, %z) : (vector<4xf16>, vector<4xf16>, vector<4xf16>) -> ()
    gpu.return
  }
}
