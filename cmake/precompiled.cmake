# One precompiled header for all sources, one for all tests. TEMPER_CCACHE=1 in the environment lets
# ccache compile instead: its objects then serve every checkout, which a precompiled header would
# prevent. docs/decisions/0009.
option(TEMPER_PCH "Precompile the common headers" ON)
find_program(TEMPER_CCACHE_PROGRAM ccache)
if(TEMPER_CCACHE_PROGRAM AND DEFINED ENV{TEMPER_CCACHE} AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${TEMPER_CCACHE_PROGRAM} CACHE STRING "Compiles through ccache")
endif()
if(CMAKE_CXX_COMPILER_LAUNCHER MATCHES "ccache")
  set(TEMPER_PCH OFF)
endif()

# temper_precompiled(<target> <header>): a target whose precompiled header others use.
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
