# For find modules of libraries without a CMake config that serves us.
#
#   find_plain_library(NAME HEADER FILE LIBRARIES LIB...
#     [LINKS LIB...] [REQUIRES VARIABLE...])
#
# Defines NAME_FOUND, NAME_INCLUDE_DIR, and the imported target NAME::NAME of
# all LIBRARIES, which links LINKS, too. All REQUIRES must have values.

include(FindPackageHandleStandardArgs)

macro(find_plain_library name)
  cmake_parse_arguments(_plain "" "HEADER" "LIBRARIES;LINKS;REQUIRES" ${ARGN})
  find_path(${name}_INCLUDE_DIR ${_plain_HEADER})
  set(_plain_variables)
  set(_plain_files)
  foreach(_plain_library IN LISTS _plain_LIBRARIES)
    find_library(${name}_${_plain_library}_LIBRARY ${_plain_library})
    list(APPEND _plain_variables ${name}_${_plain_library}_LIBRARY)
    list(APPEND _plain_files "${${name}_${_plain_library}_LIBRARY}")
  endforeach()
  mark_as_advanced(${name}_INCLUDE_DIR ${_plain_variables})
  find_package_handle_standard_args(${name}
    REQUIRED_VARS ${_plain_variables} ${name}_INCLUDE_DIR ${_plain_REQUIRES})
  if(${name}_FOUND AND NOT TARGET ${name}::${name})
    list(POP_FRONT _plain_files _plain_first)
    add_library(${name}::${name} UNKNOWN IMPORTED)
    set_target_properties(${name}::${name} PROPERTIES
      IMPORTED_LOCATION "${_plain_first}"
      INTERFACE_INCLUDE_DIRECTORIES "${${name}_INCLUDE_DIR}"
      INTERFACE_LINK_LIBRARIES "${_plain_files};${_plain_LINKS}")
  endif()
endmacro()
