# sluice_add_code_object(NAME SOURCE file.s [FLAGS ...] [INCLUDES file.inc ...]): assembles and links gfx942 machine code
# at build time.
# The target's property SLUICE_FILE is the code object; `sluice_use_code_object(TEST NAME)` makes a test depend
# on it and defines SLUICE_CODE_OBJECT_<NAME> as its path.
find_program(SLUICE_CLANG NAMES clang-22 REQUIRED)

function(sluice_add_code_object name)
  cmake_parse_arguments(ARG "" "SOURCE" "FLAGS;INCLUDES" ${ARGN})
  set(output ${CMAKE_CURRENT_BINARY_DIR}/${name}.co)
  set(source ${CMAKE_CURRENT_SOURCE_DIR}/${ARG_SOURCE})
  add_custom_command(
    OUTPUT ${output}
    COMMAND ${SLUICE_CLANG} -target amdgcn-amd-amdhsa -mcpu=gfx942 -mcode-object-version=5 ${ARG_FLAGS} -I
            ${CMAKE_CURRENT_SOURCE_DIR} -o ${output} ${source}
    DEPENDS ${source} ${ARG_INCLUDES}
    COMMENT "Assembling ${name}.co"
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
