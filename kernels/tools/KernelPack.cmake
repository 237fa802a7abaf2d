# sluice_add_kernel_pack(NAME OUTPUT file TABLE file CHIPS chip... [FIRST n]): target NAME makes a pack of the table's
# rows, or the first n. Each row and chip is a command of its own, so that a build makes them in parallel and again only
# if the row is new or changed - or if the generator itself has changed, which may change everything. Packs share the
# commands for equal rows and chips.
function(sluice_add_kernel_pack name)
  cmake_parse_arguments(ARG "" "OUTPUT;TABLE;FIRST" "CHIPS" ${ARGN})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${ARG_TABLE})
  file(STRINGS ${ARG_TABLE} rows REGEX "^SLUICE_[A-Z_]+\\(")
  if(ARG_FIRST)
    list(SUBLIST rows 0 ${ARG_FIRST} rows)
  endif()
  set(parts "")
  foreach(row IN LISTS rows)
    string(REGEX REPLACE "^([^)]*\\)).*" "\\1" row "${row}")
    string(REGEX REPLACE " +" "" row "${row}")
    string(REGEX MATCH "^SLUICE_([A-Z_]+)\\(([^)]*)" match "${row}")
    string(TOLOWER "${CMAKE_MATCH_1}_${CMAKE_MATCH_2}" id)
    string(REPLACE "," "_" id "${id}")
    foreach(chip IN LISTS ARG_CHIPS)
      set(part ${PROJECT_BINARY_DIR}/kernels/parts/${chip}/${id}.pack)
      list(APPEND parts ${part})
      get_property(known GLOBAL PROPERTY SLUICE_KERNEL_PARTS)
      if(NOT part IN_LIST known)
        set_property(GLOBAL APPEND PROPERTY SLUICE_KERNEL_PARTS ${part})
        file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/kernels/parts/${chip})
        add_custom_command(
          OUTPUT ${part}
          COMMAND sluice-kernelgen --row ${row} --chips ${chip} --pack ${part}
          DEPENDS sluice-kernelgen
          COMMENT "Generating the kernel ${id} for ${chip}"
          VERBATIM)
      endif()
    endforeach()
  endforeach()
  add_custom_command(
    OUTPUT ${ARG_OUTPUT}
    COMMAND sluice-kernelgen --merge --pack ${ARG_OUTPUT} ${parts}
    DEPENDS sluice-kernelgen ${parts}
    COMMENT "Packing ${name}"
    VERBATIM)
  add_custom_target(${name} DEPENDS ${ARG_OUTPUT})
endfunction()
