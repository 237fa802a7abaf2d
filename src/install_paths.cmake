# Paths between the files of an installation.

# The folder of libraries as seen from another installed folder: a relative path, so that an installation can
# move, unless one of the two is fixed.
function(sluice_path_to_libraries variable from)
  set(path ${CMAKE_INSTALL_FULL_LIBDIR})
  if(NOT IS_ABSOLUTE "${from}" AND NOT IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}")
    file(RELATIVE_PATH path /prefix/${from} /prefix/${CMAKE_INSTALL_LIBDIR})
  endif()
  set(${variable} ${path} PARENT_SCOPE)
endfunction()

# The paths in sluice.pc: relative to its own folder, so that an installation can move; from a fixed folder they cannot
# be. Sets `prefix`, `libdir` and `includedir`, each prefixed with the name.
function(sluice_pkg_config_paths name)
  set(prefix ${CMAKE_INSTALL_PREFIX})
  if(NOT IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}")
    file(RELATIVE_PATH to_prefix /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
    string(REGEX REPLACE "/$" "" to_prefix ${to_prefix})
    set(prefix "\${pcfiledir}/${to_prefix}")
  endif()
  set(${name}prefix ${prefix} PARENT_SCOPE)
  foreach(folder LIBDIR INCLUDEDIR)
    string(TOLOWER ${name}${folder} variable)
    set(${variable} ${CMAKE_INSTALL_${folder}} PARENT_SCOPE)
    if(NOT IS_ABSOLUTE "${CMAKE_INSTALL_${folder}}")
      set(${variable} "\${prefix}/${CMAKE_INSTALL_${folder}}" PARENT_SCOPE)
    endif()
  endforeach()
endfunction()

# sluice_set_rpath(TARGET PATH...): where the installed target finds libraries, including libLLVM if the loader does not
# search its folder. If folders have their usual names, the build tree has the same shape and the target keeps these
# paths unchanged. Otherwise CMake would end the build tree's paths with an empty one, which means the folder in which a
# program happens to run.
function(sluice_set_rpath target)
  set(paths ${ARGN})
  if(LLVM_LIBRARY_DIR)
    find_file(SLUICE_SYSTEM_LLVM libLLVM.so.${LLVM_VERSION_MAJOR}.${LLVM_VERSION_MINOR} PATHS ${CMAKE_C_IMPLICIT_LINK_DIRECTORIES}
              NO_DEFAULT_PATH)
    mark_as_advanced(SLUICE_SYSTEM_LLVM)
    if(NOT SLUICE_SYSTEM_LLVM)
      list(APPEND paths ${LLVM_LIBRARY_DIR})
    endif()
  endif()
  set_target_properties(${target} PROPERTIES INSTALL_RPATH "${paths}")
  if(CMAKE_INSTALL_BINDIR STREQUAL "bin" AND CMAKE_INSTALL_LIBDIR STREQUAL "lib")
    set_target_properties(${target} PROPERTIES BUILD_WITH_INSTALL_RPATH TRUE)
  endif()
endfunction()

# sluice_install_program(TARGET COMPONENT): a program that finds the installed libsluice.so.
function(sluice_install_program target component)
  if(NOT SLUICE_INSTALL)
    return()
  endif()
  sluice_path_to_libraries(path ${CMAKE_INSTALL_BINDIR})
  if(NOT IS_ABSOLUTE "${path}")
    set(path $ORIGIN/${path})
  endif()
  sluice_set_rpath(${target} ${path})
  install(TARGETS ${target} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT ${component})
endfunction()
