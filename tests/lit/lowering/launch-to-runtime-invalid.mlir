// RUN: sluice-opt %s --launch-to-runtime --split-input-file --verify-diagnostics

module attributes {gpu.container_module} {
  gpu.binary @k [#gpu.object<#rocdl.target<chip = "gfx942">, bin = "ELF">]
  func.func @unknown_kind(%token: !gpu.async.token, %n: index) {
    // expected-error@+1 {{takes a token that no gpu.launch_func, gpu.wait or sluice.record_event defines: whether it is a stream or an event is not known}}
    %a = gpu.launch_func async [%token] @k::@a blocks in (%n, %n, %n) threads in (%n, %n, %n)
    return
  }
}

// -----

func.func @other_user(%m: memref<4xi32>) {
  %a = gpu.wait async
  // expected-error@+1 {{takes an async token, but only gpu.launch_func, gpu.wait and sluice.record_event can be lowered}}
  gpu.dealloc [%a] %m : memref<4xi32>
  return
}

// -----

func.func @escapes() -> !gpu.async.token {
  %a = gpu.wait async
  // expected-error@+1 {{takes an async token, but only}}
  return %a : !gpu.async.token
}

// -----

func.func @unstructured() {
  %a = gpu.wait async
  cf.br ^next
^next:
  // expected-error@+1 {{takes a token of another block; tokens are lowered while control flow is still structured}}
  gpu.wait [%a]
  return
}

// -----

module attributes {gpu.container_module} {
  gpu.module @k {
    gpu.func @a() kernel {
      gpu.return
    }
  }
  func.func @not_compiled(%n: index) {
    // expected-error@+1 {{launches a kernel of 'k', which is not compiled: a gpu.binary is expected}}
    %a = gpu.launch_func async @k::@a blocks in (%n, %n, %n) threads in (%n, %n, %n)
    return
  }
}

// -----

module attributes {gpu.container_module} {
  gpu.binary @k [#gpu.object<#rocdl.target<chip = "gfx942">, assembly = "s_endpgm">]
  func.func @not_loadable(%n: index) {
    // expected-error@+1 {{needs a gpu.binary with exactly one object, compiled to a binary or a fat binary}}
    %a = gpu.launch_func async @k::@a blocks in (%n, %n, %n) threads in (%n, %n, %n)
    return
  }
}

// -----

module attributes {gpu.container_module} {
  gpu.binary @k [#gpu.object<#rocdl.target<chip = "gfx942">, bin = "ELF">]
  func.func @clusters(%n: index) {
    // expected-error@+1 {{has clusters, which AMD GPUs do not have}}
    %a = gpu.launch_func async @k::@a clusters in (%n, %n, %n) blocks in (%n, %n, %n) threads in (%n, %n, %n)
    return
  }
}

// -----

module attributes {gpu.container_module} {
  gpu.binary @k [#gpu.object<#rocdl.target<chip = "gfx942">, bin = "ELF">]
  func.func @argument(%n: index, %t: tensor<4xi32>) {
    // expected-error@+1 {{has an argument of type 'tensor<4xi32>', which has no form in LLVM}}
    %a = gpu.launch_func async @k::@a blocks in (%n, %n, %n) threads in (%n, %n, %n) args(%t : tensor<4xi32>)
    return
  }
}

// -----

// expected-error@+1 {{has a name of the launch runtime}}
func.func private @sluiceRtLaunch()
func.func @taken() {
  gpu.wait
  return
}
