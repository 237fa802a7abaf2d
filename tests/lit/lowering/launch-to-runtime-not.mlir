// The pass only changes launches with tokens. Device code, a launch whose stream was given to it, and modules without
// launches do not change.
// RUN: sluice-opt %s --launch-to-runtime | FileCheck %s

// CHECK-LABEL: module
// CHECK-NOT:   sluiceRt
// CHECK:       gpu.binary @k
// CHECK:       gpu.module @device
// CHECK:       func.func @lowered_by_others
// CHECK:         gpu.launch_func <%{{.*}} : !llvm.ptr> @k::@a
// CHECK-NOT:   sluiceRt
module attributes {gpu.container_module} {
  gpu.binary @k [#gpu.object<#rocdl.target<chip = "gfx942">, bin = "ELF">]
  gpu.module @device {
    gpu.func @kernel() kernel {
      gpu.return
    }
  }
  func.func @lowered_by_others(%stream: !llvm.ptr, %n: i64) {
    gpu.launch_func <%stream : !llvm.ptr> @k::@a blocks in (%n, %n, %n) threads in (%n, %n, %n) : i64
    return
  }
}
