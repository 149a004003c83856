# What `cmake --install` adds beside the libraries, so that a user writes
# find_package(tagflow) and links tagflow::tagflow. Of the component `libraries`
# is what that needs, so that python/ can install it where no program is built.

set(tagflow_cmake_dir "${CMAKE_INSTALL_LIBDIR}/cmake/tagflow")
install(EXPORT tagflow
  NAMESPACE tagflow::
  FILE tagflowTargets.cmake
  DESTINATION "${tagflow_cmake_dir}"
  COMPONENT libraries)
configure_package_config_file(
  "${PROJECT_SOURCE_DIR}/cmake/tagflowConfig.cmake.in"
  "${PROJECT_BINARY_DIR}/tagflowConfig.cmake"
  INSTALL_DESTINATION "${tagflow_cmake_dir}")
write_basic_package_version_file(
  "${PROJECT_BINARY_DIR}/tagflowConfigVersion.cmake"
  COMPATIBILITY SameMinorVersion)
install(FILES
  "${PROJECT_BINARY_DIR}/tagflowConfig.cmake"
  "${PROJECT_BINARY_DIR}/tagflowConfigVersion.cmake"
  "${PROJECT_SOURCE_DIR}/cmake/TagflowOpLibrary.cmake"
  "${PROJECT_SOURCE_DIR}/cmake/FindCAF.cmake"
  "${PROJECT_SOURCE_DIR}/cmake/FindFarmHash.cmake"
  "${PROJECT_SOURCE_DIR}/cmake/FindOneDNN.cmake"
  "${PROJECT_SOURCE_DIR}/cmake/FindRE2.cmake"
  "${PROJECT_SOURCE_DIR}/cmake/FindWebP.cmake"
  "${PROJECT_SOURCE_DIR}/cmake/PlainLibrary.cmake"
  DESTINATION "${tagflow_cmake_dir}"
  COMPONENT libraries)
install(FILES
  "${PROJECT_SOURCE_DIR}/LICENSE"
  "${PROJECT_SOURCE_DIR}/README.md"
  "${PROJECT_SOURCE_DIR}/ARCHITECTURE.md"
  DESTINATION "${CMAKE_INSTALL_DOCDIR}")
install(DIRECTORY "${PROJECT_SOURCE_DIR}/docs"
  DESTINATION "${CMAKE_INSTALL_DOCDIR}"
  FILES_MATCHING PATTERN "*.md" PATTERN "*.png")
