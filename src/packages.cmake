# Debian packages and archives: `cpack -G DEB` in the build folder. One package with what programs need to run, one with
# what they need to be built, two similar ones for the emulator, one for the command line, one for the pages. Libraries
# go to Debian's folder for the architecture if the build is configured with -DCMAKE_INSTALL_PREFIX=/usr, as the preset
# `debian` is. lintian reports no errors for them.
set(CPACK_PACKAGE_NAME sluice)
set(CPACK_PACKAGE_VENDOR "The Sluice authors")
set(CPACK_PACKAGE_CONTACT "The Sluice authors <sluice@sluice.invalid>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES TRUE)
set(CPACK_VERBATIM_VARIABLES TRUE)
set(CPACK_GENERATOR DEB TGZ)
set(CPACK_ARCHIVE_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_COMPONENTS_ALL runtime dev doc)
if(SLUICE_BUILD_EMULATOR)
  list(APPEND CPACK_COMPONENTS_ALL emulator emulator_dev)
endif()
if(SLUICE_BUILD_TOOLS)
  list(APPEND CPACK_COMPONENTS_ALL tools)
endif()
set(CPACK_COMPONENT_RUNTIME_DESCRIPTION "The library and its kernels.")
set(CPACK_COMPONENT_DEV_DESCRIPTION "Headers, the static library, and files for CMake and pkg-config.")
set(CPACK_COMPONENT_EMULATOR_DESCRIPTION "A gfx942 GPU in software, and HIP runtimes over it for programs without a GPU.")
set(CPACK_COMPONENT_EMULATOR_DEV_DESCRIPTION "The header of the emulator's own functions.")
set(CPACK_COMPONENT_DOC_DESCRIPTION "Pages, and the bill of materials.")
set(CPACK_COMPONENT_TOOLS_DESCRIPTION "The sluice command line and the conformance kit.")

set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${CMAKE_LIBRARY_OUTPUT_DIRECTORY})
set(CPACK_DEBIAN_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_NAME libsluice2)
set(CPACK_DEBIAN_DEV_PACKAGE_NAME libsluice-dev)
set(CPACK_DEBIAN_DEV_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEV_PACKAGE_DEPENDS "libsluice2 (= ${PROJECT_VERSION}), libzstd-dev")
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SUGGESTS "sluice-emulator")
set(CPACK_DEBIAN_EMULATOR_PACKAGE_NAME sluice-emulator)
set(CPACK_DEBIAN_EMULATOR_DEV_PACKAGE_NAME sluice-emulator-dev)
set(CPACK_DEBIAN_EMULATOR_DEV_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_EMULATOR_DEV_PACKAGE_DEPENDS "sluice-emulator (= ${PROJECT_VERSION})")
set(CPACK_DEBIAN_DOC_PACKAGE_NAME sluice-doc)
set(CPACK_DEBIAN_DOC_PACKAGE_SECTION doc)
set(CPACK_DEBIAN_DOC_PACKAGE_ARCHITECTURE all)
set(CPACK_DEBIAN_TOOLS_PACKAGE_NAME sluice-tools)
set(CPACK_DEBIAN_TOOLS_PACKAGE_SECTION devel)
set(CPACK_DEBIAN_TOOLS_PACKAGE_DEPENDS "libsluice2 (= ${PROJECT_VERSION})")
set(CPACK_DEBIAN_TOOLS_PACKAGE_RECOMMENDS "sluice-emulator")
# For dpkg-shlibdeps, for those who package programs: a program may call what its own minor version has
# (docs/concepts/abi.md).
set(control ${PROJECT_BINARY_DIR}/debian)
foreach(line "runtime libsluice 2 libsluice2" "emulator libsluice_emulator 1 sluice-emulator")
  separate_arguments(line)
  list(GET line 0 component)
  list(GET line 1 library)
  list(GET line 2 generation)
  list(GET line 3 package)
  file(WRITE ${control}/${component}/shlibs
       "${library} ${generation} ${package} (>= ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})\n")
  string(TOUPPER ${component} name)
  set(CPACK_DEBIAN_${name}_PACKAGE_CONTROL_EXTRA ${control}/${component}/shlibs ${PROJECT_SOURCE_DIR}/src/debian/triggers)
endforeach()

# The pages, and what the files contain (SPDX 2.3).
set(doc_folder ${CMAKE_INSTALL_DATADIR}/doc/sluice)
install(FILES ${PROJECT_SOURCE_DIR}/README.md DESTINATION ${doc_folder} COMPONENT doc)
install(
  DIRECTORY ${PROJECT_SOURCE_DIR}/docs/
  DESTINATION ${doc_folder}/docs
  COMPONENT doc
  FILES_MATCHING
  PATTERN "*.md"
  PATTERN "*.svg"
  PATTERN examples EXCLUDE)
find_package(CLI11 QUIET)
find_package(fmt QUIET)
find_package(nlohmann_json QUIET)
file(STRINGS ${ZSTD_INCLUDE_DIR}/zstd.h zstd_numbers REGEX "^#define ZSTD_VERSION_(MAJOR|MINOR|RELEASE) ")
string(REGEX MATCHALL "[0-9]+" zstd_numbers "${zstd_numbers}")
string(JOIN . SLUICE_SBOM_ZSTD ${zstd_numbers})
set(SLUICE_SBOM_LLVM ${LLVM_PACKAGE_VERSION})
set(SLUICE_SBOM_CLI11 ${CLI11_VERSION})
set(SLUICE_SBOM_JSON ${nlohmann_json_VERSION})
set(SLUICE_SBOM_FMT ${fmt_VERSION})
configure_file(${PROJECT_SOURCE_DIR}/src/debian/sluice.spdx.json.in ${control}/sluice.spdx.json @ONLY)
install(FILES ${control}/sluice.spdx.json DESTINATION ${doc_folder} COMPONENT doc)

# Where Debian looks for them, in every package; an installation without packages has the library's licence.
find_program(SLUICE_GZIP gzip REQUIRED)
execute_process(COMMAND ${SLUICE_GZIP} -9nc ${PROJECT_SOURCE_DIR}/src/debian/changelog OUTPUT_FILE ${control}/changelog.gz
                                                                                                   COMMAND_ERROR_IS_FATAL ANY)
foreach(component ${CPACK_COMPONENTS_ALL})
  string(TOUPPER ${component} name)
  install(FILES ${PROJECT_SOURCE_DIR}/src/debian/copyright ${control}/changelog.gz COMPONENT ${component} EXCLUDE_FROM_ALL
          DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${CPACK_DEBIAN_${name}_PACKAGE_NAME})
endforeach()
include(CPack)
