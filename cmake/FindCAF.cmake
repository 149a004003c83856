# Finds the C++ Actor Framework, which Debian ships without a CMake config.
#
#   find_package(CAF 0.17.6 REQUIRED COMPONENTS core io openssl)
#
# Without COMPONENTS: core. Defines CAF_FOUND, CAF_VERSION, CAF_INCLUDE_DIR
# and one imported target for each component found: CAF::core, CAF::io
# (links core), CAF::openssl (links io and OpenSSL).

find_path(CAF_INCLUDE_DIR caf/all.hpp)
mark_as_advanced(CAF_INCLUDE_DIR)

if(CAF_INCLUDE_DIR AND EXISTS "${CAF_INCLUDE_DIR}/caf/config.hpp")
  # CAF_VERSION is major * 10000 + minor * 100 + patch, as one number.
  file(STRINGS "${CAF_INCLUDE_DIR}/caf/config.hpp" _caf_line
    REGEX "^#define CAF_VERSION [0-9]+")
  if(_caf_line MATCHES "CAF_VERSION ([0-9]+)")
    math(EXPR _caf_major "${CMAKE_MATCH_1} / 10000")
    math(EXPR _caf_minor "${CMAKE_MATCH_1} / 100 % 100")
    math(EXPR _caf_patch "${CMAKE_MATCH_1} % 100")
    set(CAF_VERSION "${_caf_major}.${_caf_minor}.${_caf_patch}")
  endif()
endif()

if(NOT CAF_FIND_COMPONENTS)
  set(CAF_FIND_COMPONENTS core)
endif()

find_package(Threads QUIET)
foreach(_caf_component IN LISTS CAF_FIND_COMPONENTS)
  find_library(CAF_${_caf_component}_LIBRARY caf_${_caf_component})
  mark_as_advanced(CAF_${_caf_component}_LIBRARY)
  if(CAF_INCLUDE_DIR AND CAF_${_caf_component}_LIBRARY)
    set(CAF_${_caf_component}_FOUND TRUE)
  endif()
endforeach()
if(CAF_openssl_FOUND)
  find_package(OpenSSL QUIET)
  set(CAF_openssl_FOUND ${OPENSSL_FOUND})
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(CAF
  REQUIRED_VARS CAF_INCLUDE_DIR
  VERSION_VAR CAF_VERSION
  HANDLE_COMPONENTS)

if(CAF_FOUND)
  set(_caf_links_core Threads::Threads)
  set(_caf_links_io CAF::core)
  set(_caf_links_openssl CAF::io OpenSSL::SSL OpenSSL::Crypto)
  foreach(_caf_component IN LISTS CAF_FIND_COMPONENTS)
    if(CAF_${_caf_component}_FOUND AND NOT TARGET CAF::${_caf_component})
      add_library(CAF::${_caf_component} UNKNOWN IMPORTED)
      set_target_properties(CAF::${_caf_component} PROPERTIES
        IMPORTED_LOCATION "${CAF_${_caf_component}_LIBRARY}"
        INTERFACE_INCLUDE_DIRECTORIES "${CAF_INCLUDE_DIR}"
        INTERFACE_LINK_LIBRARIES "${_caf_links_${_caf_component}}")
    endif()
  endforeach()
endif()
