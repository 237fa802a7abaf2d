include(${CMAKE_CURRENT_LIST_DIR}/KernelTable.cmake)

# sluice_kernel_command(VARIABLE kernel chip pack): the command that generates a kernel. With ccache, it asks ccache first: a kernel
# depends on its name, the generator, the libraries with its compiler, and the table that the generator reads.
function(sluice_kernel_command variable kernel chip pack)
  set(generator $<TARGET_FILE:sluice-kernelgen>)
  set(command ${generator} --row ${kernel} --chips ${chip} --pack ${pack})
  if(CMAKE_CXX_COMPILER_LAUNCHER MATCHES "ccache$")
    set(source ${PROJECT_BINARY_DIR}/kernels/parts/kernel.i)
    if(NOT EXISTS ${source})
      file(WRITE ${source} "")
    endif()
    string(JOIN ":" read ${generator} $<TARGET_FILE:LLVM> $<TARGET_FILE:MLIR> ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/schedules.txt)
    set(command
        env
        SLUICE_KERNELGEN=${generator}
        CCACHE_COMPILERTYPE=other
        CCACHE_COMPILERCHECK=content
        CCACHE_EXTRAFILES=${read}
        ${CMAKE_CXX_COMPILER_LAUNCHER}
        ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/kernel_compiler.sh
        --kernel=${kernel}
        --chip=${chip}
        -c
        ${source}
        -o
        ${pack})
  endif()
  set(${variable} ${command} PARENT_SCOPE)
endfunction()

# sluice_add_kernel_pack(NAME OUTPUT file TABLE file CHIPS chip... [ONLY regex]): target NAME makes a pack of the table's
# kernels, or of those whose names match. Each kernel and chip is a separate command, so that a build makes them in parallel and
# remakes them only if the kernel is new or the generator itself has changed, which may change every kernel. Packs share
# the commands for equal kernels and chips.
function(sluice_add_kernel_pack name)
  cmake_parse_arguments(ARG "" "OUTPUT;TABLE;ONLY" "CHIPS" ${ARGN})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${ARG_TABLE})
  sluice_kernel_names(names ${ARG_TABLE})
  set(parts "")
  foreach(kernel line IN ZIP_LISTS names names_LINES)
    if(ARG_ONLY AND NOT kernel MATCHES "^(${ARG_ONLY})$")
      continue()
    endif()
    foreach(chip IN LISTS ARG_CHIPS)
      set(part ${PROJECT_BINARY_DIR}/kernels/parts/${chip}/${kernel}.pack)
      list(APPEND parts ${part})
      get_property(known GLOBAL PROPERTY SLUICE_KERNEL_PARTS)
      if(NOT part IN_LIST known)
        set_property(GLOBAL APPEND PROPERTY SLUICE_KERNEL_PARTS ${part})
        file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/kernels/parts/${chip})
        sluice_kernel_command(command ${kernel} ${chip} ${part})
        add_custom_command(
          OUTPUT ${part}
          COMMAND ${command}
          DEPENDS sluice-kernelgen ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/schedules.txt
          COMMENT "Generating the kernel ${kernel} for ${chip} (line ${line} of ${ARG_TABLE})"
          VERBATIM)
      endif()
    endforeach()
  endforeach()
  add_custom_command(
    OUTPUT ${ARG_OUTPUT}
    COMMAND sluice-kernelgen --merge --pack ${ARG_OUTPUT}.merged ${parts}
    COMMAND sluice-kernelfigures ${ARG_OUTPUT}.merged ${ARG_OUTPUT}
    COMMAND ${CMAKE_COMMAND} -E rm ${ARG_OUTPUT}.merged
    DEPENDS sluice-kernelgen sluice-kernelfigures ${parts}
    COMMENT "Packing ${name}"
    VERBATIM)
  add_custom_target(${name} DEPENDS ${ARG_OUTPUT})
endfunction()
