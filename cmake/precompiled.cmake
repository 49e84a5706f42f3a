# Objects come from ccache where it is installed, and serve every checkout. Where it is not, clang reads
# the common headers once for all sources. Not gcc 12, which then reports overflows that are none:
# docs/decisions/0009.
option(TEMPER_CCACHE "Compile through ccache where it is installed" ON)
find_program(TEMPER_CCACHE_PROGRAM ccache)
if(TEMPER_CCACHE AND TEMPER_CCACHE_PROGRAM AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${TEMPER_CCACHE_PROGRAM})
endif()
cmake_dependent_option(TEMPER_PCH "Precompile the common headers" ON
  "CMAKE_CXX_COMPILER_ID STREQUAL Clang;NOT CMAKE_CXX_COMPILER_LAUNCHER" OFF)

# temper_precompiled(<target> <header> <library>...): a target whose precompiled header others use.
function(temper_precompiled name header)
  file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/${name}.cpp"
    CONTENT "// Here for the precompiled header alone.\n")
  add_library(${name} OBJECT "${PROJECT_BINARY_DIR}/${name}.cpp")
  # Not temper::core itself, which waits for this header.
  target_include_directories(${name} PRIVATE "${PROJECT_BINARY_DIR}/inc/core")
  target_link_libraries(${name} PRIVATE temper_warnings fmt::fmt ${ARGN})
  target_precompile_headers(${name} PRIVATE "${PROJECT_SOURCE_DIR}/cmake/${header}")
endfunction()

# temper_use_precompiled(<target> <name>): where they are on.
function(temper_use_precompiled target name)
  if(TEMPER_PCH)
    target_precompile_headers(${target} REUSE_FROM ${name})
  endif()
endfunction()

if(TEMPER_PCH)
  temper_precompiled(temper_precompiled precompiled.hpp)
endif()
