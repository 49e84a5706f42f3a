# temper_module(<folder> SOURCES ... HEADERS ... DEPS ... LIBS ... [RUNS_ONCE])
#
# One folder = one library, `temper::<folder>` with `_` for `/`. DEPS names the folders whose headers
# it includes, LIBS the libraries of others. The headers of a folder are seen through links of their
# own in the build tree, so a source can include only what DEPS leads to: anything else stops with
# "No such file or directory". tests/structure holds DEPS against the includes, edge by edge.
# RUNS_ONCE: nothing in it is hot, so it is compiled with -O1 where others have -O2.
function(temper_module folder)
  cmake_parse_arguments(M "RUNS_ONCE" "" "SOURCES;HEADERS;DEPS;LIBS" ${ARGN})
  string(REPLACE "/" "_" name ${folder})
  temper_targets(deps ${M_DEPS})
  set(root "${PROJECT_BINARY_DIR}/inc/${name}")
  file(REMOVE_RECURSE "${root}")
  foreach(header ${M_HEADERS})
    cmake_path(GET header PARENT_PATH parent)
    file(MAKE_DIRECTORY "${root}/${folder}/${parent}")
    file(CREATE_LINK "${CMAKE_CURRENT_SOURCE_DIR}/${header}" "${root}/${folder}/${header}" SYMBOLIC)
  endforeach()
  if(M_SOURCES)
    add_library(temper_${name} STATIC ${M_SOURCES})
    target_link_libraries(temper_${name} PRIVATE
      $<BUILD_INTERFACE:temper_warnings> $<BUILD_INTERFACE:temper_hardening>)
    set(scope PUBLIC)
    target_compile_options(temper_${name} PRIVATE "-ffile-prefix-map=${PROJECT_SOURCE_DIR}/=")
    temper_use_precompiled(temper_${name} temper_precompiled)
    temper_in_batches(temper_${name})
    if(M_RUNS_ONCE)
      temper_runs_once(temper_${name})
    endif()
    if(M_RUNS_ONCE OR folder IN_LIST TEMPER_READ_FOREIGN_BYTES)
      temper_check_indexes(temper_${name})
    endif()
  else()
    add_library(temper_${name} INTERFACE)
    set(scope INTERFACE)
  endif()
  add_library(temper::${name} ALIAS temper_${name})
  target_include_directories(temper_${name} ${scope}
    "$<BUILD_INTERFACE:${root}>" "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/temper>")
  target_compile_features(temper_${name} ${scope} cxx_std_20)
  target_sources(temper_${name}
    PUBLIC FILE_SET HEADERS BASE_DIRS "${CMAKE_CURRENT_SOURCE_DIR}" FILES ${M_HEADERS})
  target_link_libraries(temper_${name} ${scope} ${deps} ${M_LIBS})
  set_target_properties(temper_${name} PROPERTIES EXPORT_NAME ${name})
endfunction()

# temper_in_batches(<target>): compile its sources several to a unit, where that is on. gcc thinks that
# a member of an unnamed namespace in a class of such a unit is one in a class of a header.
function(temper_in_batches target)
  if(TEMPER_UNITY)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 8)
    target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
  endif()
endfunction()

# temper_runs_once(<target>): compile it with -O1, at which gcc 12 takes the short buffer of
# std::string for an array that is overrun (not at -O2).
function(temper_runs_once target)
  target_compile_options(${target} PRIVATE
    $<$<CONFIG:RelWithDebInfo>:-O1> $<$<CONFIG:RelWithDebInfo>:-Wno-array-bounds>
    $<$<CONFIG:RelWithDebInfo>:-Wno-stringop-overflow>)
endfunction()

# temper_targets(<variable> <folder>...): the targets of these folders.
function(temper_targets variable)
  set(targets)
  foreach(folder ${ARGN})
    string(REPLACE "/" "_" name ${folder})
    list(APPEND targets temper::${name})
  endforeach()
  set(${variable} ${targets} PARENT_SCOPE)
endfunction()

# temper_program(<name> SOURCES ... DEPS ... LIBS ...): an executable in bin/, made of its folder.
function(temper_program name)
  cmake_parse_arguments(P "" "" "SOURCES;DEPS;LIBS" ${ARGN})
  temper_targets(deps ${P_DEPS})
  add_executable(${name} ${P_SOURCES})
  temper_in_batches(${name})
  temper_use_precompiled(${name} temper_precompiled)
  temper_runs_once(${name})
  target_include_directories(${name} PRIVATE "${PROJECT_BINARY_DIR}/inc/${name}")
  temper_harden_program(${name})
  target_link_libraries(${name} PRIVATE temper_warnings ${deps} ${P_LIBS})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")
endfunction()
