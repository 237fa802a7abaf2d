# sluice_add_code_object(NAME SOURCE file.s [FLAGS ...]): assembles and links gfx942 machine code at build time.
# sluice_add_hip_code_object(NAME SOURCE file.hip [FLAGS ...]): the same of HIP C++, for --offload-arch=gfx942 unless
# FLAGS name another; without ROCm's headers and libraries, which tests/hip/device.h stands in for.
# The target's property SLUICE_FILE is the code object; `sluice_use_code_object(TEST NAME)` makes a test depend
# on it and defines SLUICE_CODE_OBJECT_<NAME> as its path.
find_program(SLUICE_CLANG NAMES clang-22 REQUIRED)

function(sluice_add_code_object name)
  cmake_parse_arguments(ARG "" "SOURCE" "FLAGS" ${ARGN})
  set(output ${CMAKE_CURRENT_BINARY_DIR}/${name}.co)
  set(source ${CMAKE_CURRENT_SOURCE_DIR}/${ARG_SOURCE})
  add_custom_command(
    OUTPUT ${output}
    COMMAND ${SLUICE_CLANG} -target amdgcn-amd-amdhsa -mcpu=gfx942 -mcode-object-version=5 ${ARG_FLAGS}
            -o ${output} ${source}
    DEPENDS ${source}
    COMMENT "Assembling ${name}.co"
    VERBATIM)
  add_custom_target(${name} DEPENDS ${output})
  set_target_properties(${name} PROPERTIES SLUICE_FILE ${output})
endfunction()

function(sluice_add_hip_code_object name)
  cmake_parse_arguments(ARG "" "SOURCE" "FLAGS" ${ARGN})
  set(output ${CMAKE_CURRENT_BINARY_DIR}/${name}.co)
  set(source ${CMAKE_CURRENT_SOURCE_DIR}/${ARG_SOURCE})
  if(NOT "${ARG_FLAGS}" MATCHES "--offload-arch")
    list(APPEND ARG_FLAGS --offload-arch=gfx942)
  endif()
  add_custom_command(
    OUTPUT ${output}
    COMMAND ${SLUICE_CLANG} -x hip --cuda-device-only --no-gpu-bundle-output -nogpuinc -nogpulib -std=c++20 -fdeclspec
            ${ARG_FLAGS} -MD -MF ${output}.d -MT ${output} -o ${output} ${source}
    DEPENDS ${source}
    DEPFILE ${output}.d
    COMMENT "Compiling ${name}.co"
    VERBATIM)
  add_custom_target(${name} DEPENDS ${output})
  set_target_properties(${name} PROPERTIES SLUICE_FILE ${output})
endfunction()

function(sluice_use_code_object test name)
  add_dependencies(${test} ${name})
  get_target_property(file ${name} SLUICE_FILE)
  string(TOUPPER ${name} upper)
  target_compile_definitions(${test} PRIVATE SLUICE_CODE_OBJECT_${upper}="${file}")
endfunction()
