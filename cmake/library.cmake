# What another CMake project links: `find_package(temper)` gives temper::sim_hw, every library under
# it as temper::sim_hw_catalog and so on, and temper::core. In the component `devel`, which packages
# leave out: cmake --install BUILD --component devel.
include(CMakePackageConfigHelpers)
set(package "${CMAKE_INSTALL_LIBDIR}/cmake/temper")

function(temper_install_library folder)
  string(REPLACE "/" "_" name ${folder})
  install(TARGETS temper_${name} EXPORT temper
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}/temper COMPONENT devel
    FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/temper/${folder} COMPONENT devel)
endfunction()

get_property(folders DIRECTORY sim_hw PROPERTY SUBDIRECTORIES)
foreach(folder core core/text)
  temper_install_library(${folder})
endforeach()
foreach(path ${folders})
  cmake_path(GET path FILENAME folder)
  temper_install_library(sim_hw/${folder})
endforeach()
install(TARGETS temper_sim_hw temper_msgpack EXPORT temper)
install(EXPORT temper FILE temperTargets.cmake NAMESPACE temper:: DESTINATION ${package}
  COMPONENT devel)
configure_package_config_file(cmake/temperConfig.cmake.in "${PROJECT_BINARY_DIR}/temperConfig.cmake"
  INSTALL_DESTINATION ${package} NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file("${PROJECT_BINARY_DIR}/temperConfigVersion.cmake"
  COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/temperConfig.cmake"
  "${PROJECT_BINARY_DIR}/temperConfigVersion.cmake" DESTINATION ${package} COMPONENT devel)
