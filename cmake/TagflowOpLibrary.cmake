# Op libraries and the programs that load them; see graph/op_library.h. These
# functions are installed: find_package(tagflow) defines them.

# tagflow_op_library(NAME SOURCE...)
# Makes an op library, a shared one, of the sources. Where tagflow is static,
# only its headers are used: what they declare is found in the program.
function(tagflow_op_library name)
  add_library(${name} MODULE ${ARGN})
  target_compile_features(${name} PRIVATE cxx_std_20)
  tagflow_op_library_version(definition)
  target_compile_definitions(${name} PRIVATE ${definition})
  get_target_property(kind tagflow::graph TYPE)
  if(kind STREQUAL "SHARED_LIBRARY")
    target_link_libraries(${name} PRIVATE tagflow::tagflow)
  else()
    # Those of the libraries that tagflow uses are among them.
    set(all "TARGET_PROPERTY:tagflow::tagflow,INTERFACE")
    target_include_directories(${name} SYSTEM PRIVATE
      "$<${all}_INCLUDE_DIRECTORIES>")
    target_compile_definitions(${name} PRIVATE
      "$<${all}_COMPILE_DEFINITIONS>")
    target_compile_options(${name} PRIVATE "$<${all}_COMPILE_OPTIONS>")
  endif()
endfunction()

# tagflow_loads_op_libraries(PROGRAM)
# Lets a program that links tagflow::tagflow serve op libraries: where tagflow
# is static, all of it is linked, and what the program links is exported.
# Nothing is to be done where tagflow is shared.
function(tagflow_loads_op_libraries program)
  get_target_property(kind tagflow::graph TYPE)
  if(kind STREQUAL "SHARED_LIBRARY")
    return()
  endif()
  set(archives "")
  get_target_property(libraries tagflow::tagflow INTERFACE_LINK_LIBRARIES)
  foreach(library IN LISTS libraries)
    string(APPEND archives ",$<TARGET_FILE:${library}>")
  endforeach()
  # The archives come again among the libraries, where they add nothing.
  target_link_options(${program} PRIVATE
    "LINKER:--whole-archive${archives},--no-whole-archive")
  set_target_properties(${program} PROPERTIES ENABLE_EXPORTS ON)
endfunction()

# tagflow_op_library_version(VAR)
# Sets VAR to the definition of the version that the loader compares. Versions
# of the same minor number replace each other.
function(tagflow_op_library_version var)
  set(version "${tagflow_VERSION_MAJOR}.${tagflow_VERSION_MINOR}")
  set(${var} "TAGFLOW_OP_LIBRARY_VERSION=\"${version}\"" PARENT_SCOPE)
endfunction()
