# cmake --install BUILD --prefix PREFIX, and packages: cpack --config BUILD/CPackConfig.cmake.
# A program finds the others beside itself, and PREFIX/share/temper/configs (sim_hw/catalog).
install(TARGETS temper temper-study temper-worker temper-server-worker
  RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(DIRECTORY configs/ DESTINATION ${CMAKE_INSTALL_DATADIR}/temper/configs)
install(FILES LICENSE README.md CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY docs/ DESTINATION ${CMAKE_INSTALL_DOCDIR}/docs
  FILES_MATCHING PATTERN "*.md" PATTERN "*.svg")

include(cmake/library.cmake)

set(CPACK_GENERATOR DEB)
# Programs and what they read, without the component `devel`.
set(CPACK_INSTALL_CMAKE_PROJECTS "${PROJECT_BINARY_DIR};temper;Unspecified;/")
set(CPACK_PACKAGE_NAME temper)
set(CPACK_PACKAGE_CONTACT "Temper maintainers <maintainers@example.invalid>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "RL post-training orchestrator")
set(CPACK_RESOURCE_FILE_LICENSE "${PROJECT_SOURCE_DIR}/LICENSE")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS python3)
include(CPack)
