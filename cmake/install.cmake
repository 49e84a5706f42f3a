# cmake --install BUILD --prefix PREFIX, and packages: cpack --config BUILD/CPackConfig.cmake.
# A program finds the others beside itself, and PREFIX/share/temper/configs (sim_hw/catalog).
set(programs temper temper-worker temper-server-worker)
if(TEMPER_LAB)
  list(APPEND programs temper-study)
endif()
install(TARGETS ${programs}
  RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(DIRECTORY configs/ DESTINATION ${CMAKE_INSTALL_DATADIR}/temper/configs)
# Beside them what printed commands name: they work in PREFIX/share/temper as in the source tree.
foreach(folder docs/cluster bench/gpu python/examples)
  install(DIRECTORY ${folder}/ DESTINATION ${CMAKE_INSTALL_DATADIR}/temper/${folder}
    PATTERN __pycache__ EXCLUDE)
endforeach()
install(FILES LICENSE README.md CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY docs/ DESTINATION ${CMAKE_INSTALL_DOCDIR}/docs
  FILES_MATCHING PATTERN "*.md" PATTERN "*.svg" PATTERN "*.png" PATTERN "grafana.json")

# Completion for three shells and the manual page, as the program itself says them.
set(said "${PROJECT_BINARY_DIR}/said")
function(said_by_temper file folder)
  add_custom_command(OUTPUT "${said}/${file}" DEPENDS temper VERBATIM
    COMMAND ${CMAKE_COMMAND} -E make_directory "${said}"
    COMMAND temper ${ARGN} > "${said}/${file}")
  install(FILES "${said}/${file}" DESTINATION ${CMAKE_INSTALL_DATADIR}/${folder})
  set_property(GLOBAL APPEND PROPERTY temper_said "${said}/${file}")
endfunction()
said_by_temper(temper bash-completion/completions completion bash)
said_by_temper(_temper zsh/vendor-completions completion zsh)
said_by_temper(temper.fish fish/vendor_completions.d completion fish)
said_by_temper(temper.1 man/man1 man)
get_property(files GLOBAL PROPERTY temper_said)
add_custom_target(temper_said ALL DEPENDS ${files})

# The package `temper` of Python, for Debian's own interpreter: only in the .deb. Elsewhere pip.
install(DIRECTORY python/src/temper DESTINATION lib/python3/dist-packages
  COMPONENT python EXCLUDE_FROM_ALL PATTERN __pycache__ EXCLUDE)

include(cmake/library.cmake)

set(CPACK_GENERATOR DEB)
# Programs and what they read, without the component `devel`.
set(CPACK_INSTALL_CMAKE_PROJECTS
  "${PROJECT_BINARY_DIR};temper;Unspecified;/;${PROJECT_BINARY_DIR};temper;python;/")
set(CPACK_PACKAGE_NAME temper)
set(CPACK_PACKAGE_CONTACT "Temper maintainers <maintainers@example.invalid>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "RL post-training orchestrator")
set(CPACK_RESOURCE_FILE_LICENSE "${PROJECT_SOURCE_DIR}/LICENSE")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "python3, python3-jinja2, python3-msgpack, python3-numpy, python3-zmq")
include(CPack)
