# temper_module(<name> SOURCES ... HEADERS ... DEPS ... [FOLDER dir])
#
# One folder = one library, `temper::<name>`. The folder is seen through a link of its own in the
# build tree, so a source can include only what it names in DEPS: anything else stops with
# "No such file or directory". FOLDER is the path from the root where it differs from the name
# (a sub-folder that is a library of its own, such as actors/policy).
function(temper_module name)
  cmake_parse_arguments(M "" "FOLDER" "SOURCES;HEADERS;DEPS" ${ARGN})
  if(NOT M_FOLDER)
    set(M_FOLDER ${name})
  endif()
  add_library(temper_${name} STATIC)
  add_library(temper::${name} ALIAS temper_${name})
  set(root "${PROJECT_BINARY_DIR}/inc/${name}") # inc/core/core -> <source>/core
  cmake_path(GET M_FOLDER PARENT_PATH parent)
  file(MAKE_DIRECTORY "${root}/${parent}")
  file(CREATE_LINK "${CMAKE_CURRENT_SOURCE_DIR}" "${root}/${M_FOLDER}" SYMBOLIC)
  target_include_directories(temper_${name} PUBLIC "${root}")
  target_compile_options(temper_${name} PUBLIC "-ffile-prefix-map=${root}/=")
  target_sources(temper_${name} PRIVATE ${M_SOURCES}
    PUBLIC FILE_SET HEADERS BASE_DIRS "${CMAKE_CURRENT_SOURCE_DIR}" FILES ${M_HEADERS})
  target_compile_features(temper_${name} PUBLIC cxx_std_20)
  target_link_libraries(temper_${name} PUBLIC temper_warnings ${M_DEPS})
endfunction()
