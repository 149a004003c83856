# Tables of the families of ops; cmake/families.txt lists these.

set(list "${PROJECT_SOURCE_DIR}/cmake/families.txt")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${list}")
file(STRINGS "${list}" lines REGEX "^[^#]")
set(TAGFLOW_FAMILIES "")
set(TAGFLOW_FURTHER_FAMILIES "")
foreach(line IN LISTS lines)
  if(NOT line MATCHES "^([a-z_]+) (basic|further)$")
    message(FATAL_ERROR "cmake/families.txt: \"${line}\" must be \"FAMILY "
      "basic\" or \"FAMILY further\"")
  endif()
  list(APPEND TAGFLOW_FAMILIES ${CMAKE_MATCH_1})
  if(CMAKE_MATCH_2 STREQUAL "further")
    list(APPEND TAGFLOW_FURTHER_FAMILIES ${CMAKE_MATCH_1})
  endif()
endforeach()

# tagflow_family_table(OUTPUT HEADER FUNCTION SOURCE REGISTRY FURTHER_CODE
#                      FAMILY...)
# Writes a source that defines the function declared in HEADER,
#   std::span<const Family<REGISTRY>> FUNCTION()
# FUNCTION is qualified by its namespace, which also has the registrars. SOURCE
# and REGISTRY are "<pattern of the file> <pattern of the registrar>" and the
# class that a registrar takes; "@" stands for the family. A family whose file
# does not exist has no entry. FURTHER_CODE follows the function.
function(tagflow_family_table output header function source registry further)
  string(REGEX MATCH "^(.*)::([a-z_]+)$" _ "${function}")
  set(namespace ${CMAKE_MATCH_1})
  set(name ${CMAKE_MATCH_2})
  string(REGEX MATCH "^([^ ]+) ([^ ]+)$" _ "${source}")
  set(file_pattern ${CMAKE_MATCH_1})
  set(registrar_pattern ${CMAKE_MATCH_2})
  set(declarations "")
  set(entries "")
  foreach(family IN LISTS ARGN)
    string(REPLACE "@" ${family} file ${file_pattern})
    string(REPLACE "@" ${family} registrar ${registrar_pattern})
    if(EXISTS "${PROJECT_SOURCE_DIR}/${file}")
      string(APPEND declarations "void ${registrar}(${registry}& registry);\n")
      string(APPEND entries "      {\"${family}\", &${registrar}},\n")
    endif()
  endforeach()
  file(CONFIGURE OUTPUT "${output}" @ONLY CONTENT
"// Made by cmake/TagflowFamilies.cmake.
#include \"@header@\"

namespace @namespace@ {

@declarations@
std::span<const Family<@registry@>> @name@() {
  static constexpr Family<@registry@> kFamilies[] = {
@entries@  };
  return kFamilies;
}
@further@
}  // namespace @namespace@
")
endfunction()

# tagflow_kernel_tables()
# Adds the table of the families' kernels to tagflow_devices: of all families,
# or of the basic ones, as TAGFLOW_KERNELS says. TAGFLOW_BASIC_KERNEL_TABLE is
# the source of the latter.
function(tagflow_kernel_tables)
  set(folder "${PROJECT_BINARY_DIR}/generated/devices/kernels")
  set(basic ${TAGFLOW_FAMILIES})
  list(REMOVE_ITEM basic ${TAGFLOW_FURTHER_FAMILIES})
  foreach(kind IN ITEMS all basic)
    set(families ${TAGFLOW_FAMILIES})
    set(is_basic false)
    if(kind STREQUAL "basic")
      set(families ${basic})
      set(is_basic true)
    endif()
    tagflow_family_table("${folder}/families_${kind}.cpp"
      devices/kernels/families.h tagflow::devices::kernel_families
      "devices/kernels/@/register.cpp register_@_kernels" KernelRegistry
      "\nbool has_basic_families_only() { return ${is_basic}; }\n"
      ${families})
    set_source_files_properties("${folder}/families_${kind}.cpp"
      PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  endforeach()
  if(TAGFLOW_KERNELS STREQUAL "all")
    target_sources(tagflow_devices_further PRIVATE "${folder}/families_all.cpp")
  else()
    target_sources(tagflow_devices PRIVATE "${folder}/families_basic.cpp")
  endif()
  set(TAGFLOW_BASIC_KERNEL_TABLE "${folder}/families_basic.cpp" PARENT_SCOPE)
endfunction()
