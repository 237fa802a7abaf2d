# What users link: libsluice.so, its static equivalent libsluice.a, the headers, and files for CMake and
# pkg-config.
include(CMakePackageConfigHelpers)

# libsluice.a holds one object: all objects joined, with every symbol but the functions of sluice.h made local, so
# that no symbol of ours or of the C++ library's templates can clash with the program's.
set(joined ${CMAKE_CURRENT_BINARY_DIR}/joined.o)
set(one ${CMAKE_CURRENT_BINARY_DIR}/sluice.o)
set(names ${CMAKE_CURRENT_BINARY_DIR}/exported.txt)
file(STRINGS ${CMAKE_CURRENT_SOURCE_DIR}/sluice.map exported REGEX "^    sluice_")
list(TRANSFORM exported REPLACE "[ ;]" "")
list(JOIN exported "\n" exported)
file(WRITE ${names} "${exported}\n")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/sluice.map)
set(parts sluice_abi_checks sluice_reference sluice_runtime sluice_tensors sluice_package sluice_support)
foreach(target sluice ${parts})
  # Unique symbols would stay global and keep a library from being unloaded. Objects left for the linker to compile
  # cannot be joined.
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fno-gnu-unique> $<$<COMPILE_LANGUAGE:CXX>:-fno-lto>)
endforeach()
list(TRANSFORM parts REPLACE "(.+)" "$<TARGET_FILE:\\1>" OUTPUT_VARIABLE part_files)
set(archive ${CMAKE_ARCHIVE_OUTPUT_DIRECTORY}/libsluice.a)
add_custom_command(
  OUTPUT ${archive}
  COMMAND ${CMAKE_LINKER} -r --force-group-allocation -o ${joined} $<TARGET_OBJECTS:sluice> --whole-archive ${part_files}
          --no-whole-archive
  COMMAND ${CMAKE_OBJCOPY} --strip-debug --keep-global-symbols=${names} ${joined} ${one}
  COMMAND ${CMAKE_COMMAND} -E rm -f ${archive}
  COMMAND ${CMAKE_AR} qcs ${archive} ${one}
  DEPENDS sluice ${parts} $<TARGET_OBJECTS:sluice> ${names}
  COMMAND_EXPAND_LISTS VERBATIM
  COMMENT "Joining libsluice.a")
add_custom_target(sluice_archive ALL DEPENDS ${archive})
# For projects that contain this one; sluiceConfig.cmake defines the same for an installed one.
add_library(sluice_static INTERFACE)
add_library(sluice::static ALIAS sluice_static)
add_dependencies(sluice_static sluice_archive)
target_include_directories(sluice_static INTERFACE ${PROJECT_SOURCE_DIR}/include)
target_link_libraries(sluice_static INTERFACE ${archive} sluice_zstd ${CMAKE_DL_LIBS} stdc++ m)
# A library that contains this one does not export it to others, which may have another release.
target_link_options(sluice_static INTERFACE LINKER:--exclude-libs,libsluice.a)

if(NOT SLUICE_INSTALL)
  return()
endif()
set(config_folder ${CMAKE_INSTALL_LIBDIR}/cmake/sluice)
install(
  TARGETS sluice
  EXPORT sluiceTargets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime NAMELINK_COMPONENT dev
  INCLUDES
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT sluiceTargets NAMESPACE sluice:: DESTINATION ${config_folder} COMPONENT dev)
install(FILES ${archive} DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT dev)
set(headers
    attention.h
    cache.h
    context.h
    device.h
    make.h
    merge.h
    observe.h
    sluice.h
    sluice.hpp
    types.h)
list(TRANSFORM headers PREPEND ${PROJECT_SOURCE_DIR}/include/sluice/)
install(FILES ${headers} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/sluice COMPONENT dev)
configure_package_config_file(sluiceConfig.cmake.in sluiceConfig.cmake INSTALL_DESTINATION ${config_folder}
                              PATH_VARS CMAKE_INSTALL_LIBDIR CMAKE_INSTALL_INCLUDEDIR)
write_basic_package_version_file(sluiceConfigVersion.cmake COMPATIBILITY SameMajorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/sluiceConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/sluiceConfigVersion.cmake
        DESTINATION ${config_folder} COMPONENT dev)
set(pc_folder ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
sluice_pkg_config_paths(pc_)
configure_file(sluice.pc.in sluice.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/sluice.pc DESTINATION ${pc_folder} COMPONENT dev)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/sluice COMPONENT runtime)
