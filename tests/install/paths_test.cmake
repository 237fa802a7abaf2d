# usage: cmake -P paths_test.cmake: how installed files find one another, for folders of all kinds.
include(${CMAKE_CURRENT_LIST_DIR}/../../src/install_paths.cmake)
set(CMAKE_INSTALL_PREFIX /opt/sluice)

function(check what is wanted)
  if(NOT is STREQUAL wanted)
    message(SEND_ERROR "${what}, with libraries in ${CMAKE_INSTALL_LIBDIR}: ${is} instead of ${wanted}")
  endif()
endfunction()

# The folder of libraries, relative to that of programs.
function(check_path libdir full from wanted)
  set(CMAKE_INSTALL_LIBDIR ${libdir})
  set(CMAKE_INSTALL_FULL_LIBDIR ${full})
  sluice_path_to_libraries(path ${from})
  check("seen from ${from}" "${path}" ${wanted})
endfunction()
check_path(lib /opt/sluice/lib bin ../lib)
check_path(lib/x86_64-linux-gnu /usr/lib/x86_64-linux-gnu bin ../lib/x86_64-linux-gnu)
check_path(lib /opt/sluice/lib libexec/sluice ../../lib)
check_path(lib /opt/sluice/lib /usr/bin /opt/sluice/lib)
check_path(/srv/lib /srv/lib bin /srv/lib)

# sluice.pc.
function(check_pkg_config libdir includedir prefix pc_libdir pc_includedir)
  set(CMAKE_INSTALL_LIBDIR ${libdir})
  set(CMAKE_INSTALL_INCLUDEDIR ${includedir})
  sluice_pkg_config_paths(is_)
  check("the prefix" "${is_prefix}" ${prefix})
  check("libdir" "${is_libdir}" ${pc_libdir})
  check("includedir" "${is_includedir}" ${pc_includedir})
endfunction()
check_pkg_config(lib include "\${pcfiledir}/../.." "\${prefix}/lib" "\${prefix}/include")
check_pkg_config(lib/x86_64-linux-gnu include
                 "\${pcfiledir}/../../.." "\${prefix}/lib/x86_64-linux-gnu" "\${prefix}/include")
check_pkg_config(lib /srv/include "\${pcfiledir}/../.." "\${prefix}/lib" /srv/include)
check_pkg_config(/srv/lib include /opt/sluice /srv/lib "\${prefix}/include")
check_pkg_config(/srv/lib /srv/include /opt/sluice /srv/lib /srv/include)
