# Functions that turn a top-level folder into targets. New source files are
# found by themselves (CONFIGURE_DEPENDS): nobody lists files by hand.

# Headers worth precompiling for every folder: those of others, and values of
# ours that nearly every source includes and that change rarely, since a change
# rebuilds everything. A folder adds what most of its sources include by PCH.
# Headers that are edited every week are not precompiled: an edit rebuilds only
# the sources that include them.
set(TAGFLOW_COMMON_PCH
  <algorithm> <array> <atomic> <chrono> <cstdint> <functional> <limits> <map>
  <memory> <mutex> <optional> <span> <string> <string_view> <unordered_map>
  <utility> <variant> <vector> <boost/container/small_vector.hpp>
  <fmt/format.h>)

set(TAGFLOW_LIBRARIES "" CACHE INTERNAL "The libraries declared so far")

# tagflow_precompile(TARGET HEADER...): the headers, where TAGFLOW_PCH is on.
# GCC then optimises the target's sources as the headers were compiled: a source
# with a level of its own has to set SKIP_PRECOMPILE_HEADERS.
function(tagflow_precompile target)
  if(TAGFLOW_PCH)
    target_precompile_headers(${target} PRIVATE ${ARGN})
  endif()
endfunction()

# tagflow_unite(TARGET [SIZE]): unites up to SIZE sources of one folder, 4 by
# default, to a translation unit, where TAGFLOW_UNITY is on. Names in anonymous
# namespaces must then differ between the files of a folder. A source that is
# added to a folder changes the units of that folder only. A source that has to
# stay alone must have SKIP_UNITY_BUILD_INCLUSION set before.
function(tagflow_unite target)
  set(size 4)
  if(ARGC GREATER 1)
    set(size ${ARGV1})
  endif()
  set_target_properties(${target} PROPERTIES
    UNITY_BUILD ${TAGFLOW_UNITY} UNITY_BUILD_MODE GROUP)
  get_target_property(sources ${target} SOURCES)
  list(FILTER sources EXCLUDE REGEX "^\\$<")
  foreach(source IN LISTS sources)
    get_source_file_property(skips "${source}" SKIP_UNITY_BUILD_INCLUSION)
    if(skips)
      continue()
    endif()
    cmake_path(GET source PARENT_PATH folder)
    file(RELATIVE_PATH folder "${PROJECT_SOURCE_DIR}" "${folder}")
    string(MAKE_C_IDENTIFIER "${folder}" room)
    if(NOT DEFINED count_${room})
      set(count_${room} 0)
    endif()
    math(EXPR number "${count_${room}} / ${size}")
    math(EXPR count_${room} "${count_${room}} + 1")
    set_source_files_properties("${source}"
      PROPERTIES UNITY_GROUP "${room}_${number}")
  endforeach()
endfunction()

# tagflow_reuse_pch(TARGET FROM): the headers that FROM precompiled, where
# TAGFLOW_PCH is on. They fit code that is generated alike only, and CMake asks
# for -fPIC in a library, but for -fPIE in a program, where
# CMAKE_POSITION_INDEPENDENT_CODE is on: neither is linked into anything, so
# both leave it to the compiler.
function(tagflow_reuse_pch target from)
  if(TAGFLOW_PCH)
    target_precompile_headers(${target} REUSE_FROM ${from})
    set_target_properties(${target} ${from} PROPERTIES
      POSITION_INDEPENDENT_CODE OFF)
  endif()
endfunction()

# tagflow_embeddable(TARGET): what makes a library fit for BUILD_SHARED_LIBS,
# and a static one fit to be linked into a shared one, as a language's extension
# is.
function(tagflow_embeddable target)
  # Without a definition for the shared library, objects of both kinds are the
  # same.
  set_target_properties(${target} PROPERTIES
    POSITION_INDEPENDENT_CODE ON DEFINE_SYMBOL "")
  # A library's calls of its own functions are never redirected.
  target_compile_options(${target} PRIVATE -fno-semantic-interposition)
  # Access to a thread's variables is an offset, as in a program, and not a
  # call. If the binary is loaded late, each thread needs room for all of its
  # variables. There is always room for ours, which are some hundred bytes, but
  # not for those of CUDA's static run time, which are two pages.
  if(NOT TAGFLOW_CUDA_TARGETS OR
     (BUILD_SHARED_LIBS AND NOT target MATCHES "^tagflow_devices"))
    target_compile_options(${target} PRIVATE -ftls-model=initial-exec)
  endif()
  if(BUILD_SHARED_LIBS)
    # Versions of the same minor number replace each other, as
    # tagflowConfigVersion.cmake says.
    set_target_properties(${target} PROPERTIES
      VERSION ${PROJECT_VERSION}
      SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
    target_link_options(${target} PRIVATE LINKER:-Bsymbolic-functions)
    if(NOT TAGFLOW_SANITIZE)  # the program defines the sanitizer's names
      target_link_options(${target} PRIVATE LINKER:-z,defs)
    endif()
  endif()
endfunction()

# tagflow_compile_lean(TARGET): less optimisation, for what need not be fast.
function(tagflow_compile_lean target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>)
endfunction()

# tagflow_choose_sources(VAR SOURCE...)
# Sets VAR to the sources that fit this configuration. Optional libraries are
# chosen by file, never by #ifdef: where x_onednn.cpp and x_eigen.cpp stand
# side by side, exactly one of them is compiled, and so of their tests; of the
# folders cuda/ and no_cuda/ one is, and x_cuda.cpp is if there is CUDA; of the
# folders grpc/ and no_grpc/ one is.
function(tagflow_choose_sources var)
  set(chosen ${ARGN})
  foreach(source IN LISTS ARGN)
    file(RELATIVE_PATH path "${PROJECT_SOURCE_DIR}" "${source}")
    if(path MATCHES "/no_cuda/")
      if(TAGFLOW_CUDA_TARGETS)
        list(REMOVE_ITEM chosen "${source}")
      endif()
    elseif(path MATCHES "/cuda/|_cuda\\.cpp$" AND NOT TAGFLOW_CUDA_TARGETS)
      list(REMOVE_ITEM chosen "${source}")
    endif()
    if((path MATCHES "/grpc/" AND NOT TAGFLOW_GRPC_TARGET) OR
       (path MATCHES "/no_grpc/" AND TAGFLOW_GRPC_TARGET))
      list(REMOVE_ITEM chosen "${source}")
    endif()
    if(source MATCHES "_onednn(_test)?\\.cpp$")
      string(REPLACE "_onednn" "_eigen" fallback "${source}")
      if(TAGFLOW_ONEDNN_TARGET)
        list(REMOVE_ITEM chosen "${fallback}")
      else()
        list(REMOVE_ITEM chosen "${source}")
      endif()
    endif()
  endforeach()
  set(${var} ${chosen} PARENT_SCOPE)
endfunction()

# tagflow_folder(NAME [DEPENDS folder...] [LINK lib...] [LINK_PRIVATE lib...]
#                [PCH header...] [APART path...]
#                [FURTHER path... FURTHER_LINK lib...])
# Makes library tagflow_NAME, alias tagflow::NAME, of every NAME/**.cpp and
# NAME/**.cu, static or as BUILD_SHARED_LIBS says, with its public headers and
# its place in the export. CUDA sources are a target of their own, since flags,
# precompiled headers and unity are for C++; they are linked as C++. Then makes
# the folder's test binary: see tagflow_tests(). DEPENDS names folders whose
# headers it may include. The sources and folders FURTHER are compiled as a
# target of their own, tagflow_NAME_further, with the libraries FURTHER_LINK.
# They are in the library where TAGFLOW_KERNELS is "all". The folders APART are
# for libraries of their own.
# Does nothing where the folder has no sources.
function(tagflow_folder name)
  cmake_parse_arguments(arg "" ""
    "DEPENDS;LINK;LINK_PRIVATE;PCH;APART;FURTHER;FURTHER_LINK" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS
    "${PROJECT_SOURCE_DIR}/${name}/*.cpp")
  foreach(path IN LISTS arg_APART)
    list(FILTER sources EXCLUDE REGEX "^${PROJECT_SOURCE_DIR}/${path}/")
  endforeach()
  if(NOT sources)
    return()
  endif()
  file(GLOB_RECURSE cuda_sources CONFIGURE_DEPENDS
    "${PROJECT_SOURCE_DIR}/${name}/*.cu")
  tagflow_choose_sources(sources ${sources})
  if(NOT TAGFLOW_CUDA_TARGETS)
    set(cuda_sources "")
  endif()
  list(TRANSFORM arg_DEPENDS PREPEND "tagflow::")
  foreach(library IN LISTS arg_DEPENDS)
    if(NOT TARGET ${library})  # no sources (yet)
      list(REMOVE_ITEM arg_DEPENDS ${library})
    endif()
  endforeach()

  set(target tagflow_${name})
  set(further "")
  list(TRANSFORM arg_FURTHER PREPEND "${PROJECT_SOURCE_DIR}/")
  foreach(source IN LISTS sources)
    foreach(path IN LISTS arg_FURTHER)
      cmake_path(IS_PREFIX path "${source}" is_further)
      if(is_further)
        list(APPEND further "${source}")
      endif()
    endforeach()
  endforeach()
  list(REMOVE_ITEM sources ${further})
  add_library(${target} ${sources})
  tagflow_embeddable(${target})
  add_library(tagflow::${name} ALIAS ${target})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name})
  target_compile_features(${target} PUBLIC cxx_std_20)
  target_include_directories(${target} PUBLIC
    "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>"
    "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/tagflow>")
  target_link_libraries(${target}
    PUBLIC ${arg_DEPENDS} ${arg_LINK}
    PRIVATE ${arg_LINK_PRIVATE} "$<BUILD_INTERFACE:tagflow_flags>")
  if(further)
    # Headers that both parts reuse belong to neither, since the library depends
    # on its further part.
    set(empty "${PROJECT_BINARY_DIR}/generated/empty.cpp")
    file(CONFIGURE OUTPUT "${empty}" CONTENT "")
    add_library(${target}_pch OBJECT EXCLUDE_FROM_ALL "${empty}")
    add_library(${target}_further OBJECT EXCLUDE_FROM_ALL ${further})
    foreach(part IN ITEMS pch further)
      tagflow_embeddable(${target}_${part})
      target_compile_features(${target}_${part} PRIVATE cxx_std_20)
      target_include_directories(${target}_${part} PRIVATE
        "${PROJECT_SOURCE_DIR}")
      target_link_libraries(${target}_${part} PRIVATE
        ${arg_DEPENDS} ${arg_LINK} ${arg_LINK_PRIVATE} tagflow_flags)
    endforeach()
    target_link_libraries(${target}_further PRIVATE ${arg_FURTHER_LINK})
    tagflow_precompile(${target}_pch ${TAGFLOW_COMMON_PCH} ${arg_PCH})
    if(TAGFLOW_PCH)
      target_precompile_headers(${target} REUSE_FROM ${target}_pch)
      target_precompile_headers(${target}_further REUSE_FROM ${target}_pch)
    endif()
    if(TAGFLOW_KERNELS STREQUAL "all")
      target_sources(${target} PRIVATE $<TARGET_OBJECTS:${target}_further>)
      list(TRANSFORM arg_FURTHER_LINK REPLACE "(.+)" "$<LINK_ONLY:\\1>"
        OUTPUT_VARIABLE link_only)
      target_link_libraries(${target} PRIVATE ${link_only})
    endif()
  else()
    tagflow_precompile(${target} ${TAGFLOW_COMMON_PCH} ${arg_PCH})
  endif()
  if(cuda_sources)
    add_library(${target}_cuda OBJECT ${cuda_sources})
    target_include_directories(${target}_cuda PRIVATE "${PROJECT_SOURCE_DIR}")
    # A property, since CMake ignores the feature cuda_std_17 where it is nvcc's
    # own default: it passes on the C++ compiler's, which is C++14 for clang.
    set_target_properties(${target}_cuda PROPERTIES
      CUDA_STANDARD 17 CUDA_STANDARD_REQUIRED ON POSITION_INDEPENDENT_CODE ON)
    target_sources(${target} PRIVATE $<TARGET_OBJECTS:${target}_cuda>)
  endif()

  install(TARGETS ${target} EXPORT tagflow COMPONENT libraries)
  tagflow_install_headers(${name})
  set(TAGFLOW_LIBRARIES ${TAGFLOW_LIBRARIES} tagflow::${name}
    CACHE INTERNAL "The libraries declared so far")

  if(TAGFLOW_BUILD_TESTS)
    # Tests look into headers that nobody else includes.
    tagflow_tests(${name}
      LINK tagflow::${name} ${arg_LINK_PRIVATE} ${arg_FURTHER_LINK})
  endif()
endfunction()

# tagflow_install_headers(FOLDER)
# Has those of the folder's headers installed that are listed in
# cmake/public_headers.txt, which says what they are.
function(tagflow_install_headers folder)
  set(list "${PROJECT_SOURCE_DIR}/cmake/public_headers.txt")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${list}")
  file(STRINGS "${list}" lines REGEX "^${folder}/")
  foreach(line IN LISTS lines)
    string(REGEX REPLACE " .*" "" header "${line}")
    cmake_path(GET header PARENT_PATH parent)
    install(FILES "${PROJECT_SOURCE_DIR}/${header}"
      DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/tagflow/${parent}"
      COMPONENT libraries)
  endforeach()
endfunction()

# tagflow_tests(NAME [SUPPORT target] [LINK lib...])
# Makes the doctest binary NAME_tests of every tests/NAME/**.cpp. Each file
# X_test.cpp becomes the CTest case NAME/X, labels NAME and its tier:
#   X_test.cpp       smoke: under 5 s; the sanitizer checks run these
#   X_slow_test.cpp  slow: what takes longer
# A test that finds no device to run on exits with 77, which means skipped.
# SUPPORT makes a library of the sources that are not tests.
function(tagflow_tests name)
  cmake_parse_arguments(arg "" "SUPPORT" "LINK" ${ARGN})
  set(root "${PROJECT_SOURCE_DIR}/tests/${name}")
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${root}/*.cpp")
  tagflow_choose_sources(sources ${sources})
  if(NOT sources)
    return()
  endif()
  if(TAGFLOW_TEST_FILTER)
    set(tests ${sources})
    list(FILTER tests INCLUDE REGEX "_test\\.cpp$")
    list(REMOVE_ITEM sources ${tests})
    list(FILTER tests INCLUDE REGEX "${TAGFLOW_TEST_FILTER}")
    list(APPEND sources ${tests})
    if(NOT sources)
      return()
    endif()
  endif()
  find_package(doctest REQUIRED)
  find_package(rapidcheck REQUIRED)

  if(NOT TARGET tagflow_test_main)
    # main(), an operator new that can fail, and one precompiled header that
    # all test binaries share: they have to agree on flags, so these are set
    # here.
    add_library(tagflow_test_main OBJECT
      "${PROJECT_SOURCE_DIR}/tests/main.cpp"
      "${PROJECT_SOURCE_DIR}/tests/failing_new.cpp"
      "${PROJECT_SOURCE_DIR}/tests/source_path.cpp")
    target_compile_features(tagflow_test_main PUBLIC cxx_std_20)
    target_include_directories(tagflow_test_main
      PUBLIC "${PROJECT_SOURCE_DIR}")
    # For this source alone: ccache finds the others from any folder.
    set_source_files_properties("${PROJECT_SOURCE_DIR}/tests/source_path.cpp"
      PROPERTIES COMPILE_DEFINITIONS
      "TAGFLOW_SOURCE_DIR=\"${PROJECT_SOURCE_DIR}\"")
    # Tests are compiled far more often than they run: what they measure is
    # in the libraries, which keep their optimisation.
    target_compile_options(tagflow_test_main
      PUBLIC $<$<CONFIG:Release>:-O0>)
    target_link_libraries(tagflow_test_main PUBLIC
      doctest::doctest rapidcheck fmt::fmt Eigen3::Eigen Threads::Threads
      tagflow_flags)
    tagflow_precompile(tagflow_test_main
      ${TAGFLOW_COMMON_PCH} <doctest/doctest.h>)
    # The sanitizers of clang bring an operator new of theirs, which the linker
    # takes before ours. TSan's is left out of a program that the driver links
    # as one in C.
    if(TAGFLOW_SANITIZE AND CMAKE_CXX_COMPILER_ID MATCHES "Clang")
      if(TAGFLOW_SANITIZE MATCHES "thread")
        target_link_options(tagflow_test_main PUBLIC --driver-mode=gcc)
        target_link_libraries(tagflow_test_main PUBLIC stdc++ m)
      else()
        target_link_options(tagflow_test_main
          PUBLIC LINKER:--allow-multiple-definition)
      endif()
    endif()
  endif()

  # What is not a test itself may serve other test binaries too.
  if(arg_SUPPORT)
    set(support ${sources})
    list(FILTER support EXCLUDE REGEX "_test\\.cpp$")
    list(FILTER sources INCLUDE REGEX "_test\\.cpp$")
    add_library(${arg_SUPPORT} STATIC ${support})
    target_link_libraries(${arg_SUPPORT}
      PUBLIC ${arg_LINK} PRIVATE tagflow_flags)
    target_include_directories(${arg_SUPPORT} PUBLIC "${PROJECT_SOURCE_DIR}")
    tagflow_compile_lean(${arg_SUPPORT})
    tagflow_precompile(${arg_SUPPORT} ${TAGFLOW_COMMON_PCH})
    list(APPEND arg_LINK ${arg_SUPPORT})
  endif()

  set(target ${name}_tests)
  add_executable(${target} ${sources})
  target_link_libraries(${target} PRIVATE ${arg_LINK} tagflow_test_main)
  set_target_properties(${target} PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/tests")
  tagflow_reuse_pch(${target} tagflow_test_main)

  foreach(source IN LISTS sources)
    cmake_path(RELATIVE_PATH source BASE_DIRECTORY "${root}"
      OUTPUT_VARIABLE path)
    if(NOT path MATCHES "_test\\.cpp$")
      file(STRINGS "${source}" cases REGEX "^ *(TEST_CASE|SCENARIO)"
        LIMIT_COUNT 1)
      if(cases)
        message(FATAL_ERROR
          "tests/${name}/${path} has test cases: name it *_test.cpp, "
          "CTest does not see it otherwise")
      endif()
      continue()
    endif()
    string(REGEX REPLACE "_test\\.cpp$" "" case "${path}")
    set(tier smoke)
    if(case MATCHES "_slow$")
      set(tier slow)
    endif()
    add_test(NAME ${name}/${case}
      COMMAND ${target} "--source-file=*tests/${name}/${path}")
    set_tests_properties(${name}/${case} PROPERTIES
      LABELS "${name};${tier}" TIMEOUT 600 SKIP_RETURN_CODE 77
      WORKING_DIRECTORY "${PROJECT_BINARY_DIR}/tests")
    # Their operator new gives the least alignment there is: code that keeps an
    # over-aligned type, such as Tensor, in memory of plain operator new then
    # always crashes. What else runs, runs with the usual one.
    if(name MATCHES "^(graph|devices|actors|net)$" AND NOT TAGFLOW_SANITIZE)
      set_tests_properties(${name}/${case} PROPERTIES
        ENVIRONMENT TAGFLOW_MISALIGNED_NEW=1)
    endif()
  endforeach()
endfunction()

# tagflow_app(NAME SOURCE... [DIRECTORY dir] LINK lib...)
# Makes executable NAME as <build>/apps[/DIRECTORY]/NAME.
function(tagflow_app name)
  cmake_parse_arguments(arg "" "DIRECTORY" "LINK" ${ARGN})
  add_executable(${name} ${arg_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PRIVATE ${arg_LINK} tagflow_flags)
  target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}")
  target_compile_features(${name} PRIVATE cxx_std_20)
  set_target_properties(${name} PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY
    "${PROJECT_BINARY_DIR}/apps/${arg_DIRECTORY}")
endfunction()

# tagflow_proto(NAME FOLDER [LINK lib...])
# Makes library tagflow_NAME, alias tagflow::NAME, of FOLDER/**.proto. The
# generated headers are included as "FOLDER/x.pb.h"; a .proto imports another
# as "FOLDER/y.proto". LINK names the libraries of other folders whose .proto
# files these import. An empty interface where there are no .proto files.
function(tagflow_proto name folder)
  cmake_parse_arguments(arg "" "" "LINK" ${ARGN})
  set(target tagflow_${name})
  file(GLOB_RECURSE protos CONFIGURE_DEPENDS
    "${PROJECT_SOURCE_DIR}/${folder}/*.proto")
  if(NOT protos)
    add_library(${target} INTERFACE)
  else()
    set(generated "${PROJECT_BINARY_DIR}/generated")
    set(outputs "")
    tagflow_protoc(outputs pb "--cpp_out=${generated}" ${protos})
    add_library(${target} ${outputs})
    tagflow_embeddable(${target})
    target_compile_features(${target} PUBLIC cxx_std_20)
    # SYSTEM: we do not answer for the warnings of generated headers. They are
    # not installed: GraphDef goes in and out as bytes or text.
    target_include_directories(${target} SYSTEM PUBLIC
      "$<BUILD_INTERFACE:${generated}>")
    target_link_libraries(${target}
      PUBLIC ${arg_LINK} protobuf::libprotobuf
      PRIVATE "$<BUILD_INTERFACE:tagflow_build>")
    tagflow_compile_lean(${target})
    # What most generated sources include. They cannot be united: they have
    # names of file scope in common.
    tagflow_precompile(${target}
      <google/protobuf/extension_set.h> <google/protobuf/map_field_inl.h>
      <google/protobuf/reflection_ops.h> <google/protobuf/wire_format.h>)
  endif()
  add_library(tagflow::${name} ALIAS ${target})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name})
  install(TARGETS ${target} EXPORT tagflow COMPONENT libraries)
endfunction()

# tagflow_protoc(VAR SUFFIX OPTION PROTO...)
# Appends to VAR the sources X.SUFFIX.cc that protoc makes of each X.proto, with
# a header X.SUFFIX.h each, in the build's folder "generated".
function(tagflow_protoc var suffix option)
  set(generated "${PROJECT_BINARY_DIR}/generated")
  file(MAKE_DIRECTORY "${generated}")
  set(outputs ${${var}})
  foreach(proto IN LISTS ARGN)
    file(RELATIVE_PATH path "${PROJECT_SOURCE_DIR}" "${proto}")
    cmake_path(REMOVE_EXTENSION path LAST_ONLY)
    set(base "${generated}/${path}.${suffix}")
    add_custom_command(
      OUTPUT "${base}.cc" "${base}.h"
      COMMAND "${CMAKE_COMMAND}" -E make_directory "${generated}"
      COMMAND protobuf::protoc "--proto_path=${PROJECT_SOURCE_DIR}"
        ${option} "${proto}"
      # One proto's header includes another's.
      DEPENDS ${ARGN}
      COMMENT "protoc ${path}.${suffix}"
      VERBATIM)
    list(APPEND outputs "${base}.cc")
  endforeach()
  set(${var} ${outputs} PARENT_SCOPE)
endfunction()

# tagflow_grpc(PROTO...)
# Makes library tagflow_net_grpc, alias tagflow::net_grpc, of net/grpc/ and the
# services of the PROTOs, or of net/no_grpc/, whose functions say what is
# missing. Programs link it; it is not installed.
function(tagflow_grpc)
  set(room no_grpc)
  if(TAGFLOW_GRPC_TARGET)
    set(room grpc)
  endif()
  file(GLOB sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/net/${room}/*.cpp")
  add_library(tagflow_net_grpc STATIC ${sources})
  add_library(tagflow::net_grpc ALIAS tagflow_net_grpc)
  tagflow_embeddable(tagflow_net_grpc)
  target_link_libraries(tagflow_net_grpc
    PUBLIC tagflow::net
    PRIVATE tagflow::net_proto tagflow_flags)
  tagflow_compile_lean(tagflow_net_grpc)
  if(TAGFLOW_GRPC_TARGET)
    set(stubs "")
    tagflow_protoc(stubs grpc.pb
      "--grpc_out=${PROJECT_BINARY_DIR}/generated;--plugin=protoc-gen-grpc=${TAGFLOW_GRPC_PLUGIN}"
      ${ARGN})
    # By themselves: we do not answer for their warnings.
    add_library(tagflow_net_stubs OBJECT ${stubs})
    tagflow_embeddable(tagflow_net_stubs)
    target_link_libraries(tagflow_net_stubs
      PUBLIC tagflow::net_proto ${TAGFLOW_GRPC_TARGET}
      PRIVATE tagflow_build)
    tagflow_compile_lean(tagflow_net_stubs)
    # Tests are clients.
    target_link_libraries(tagflow_net_grpc
      PUBLIC tagflow_net_stubs $<TARGET_OBJECTS:tagflow_net_stubs>)
  endif()
endfunction()
