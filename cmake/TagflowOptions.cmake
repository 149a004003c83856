# The TAGFLOW_* options, and the two interface targets that carry compile
# flags:
#   tagflow_build  how code is generated (architecture, sanitizers)
#   tagflow_flags  tagflow_build and the warnings; for our own sources
# Both are linked PRIVATE: nothing of them reaches a user of the library.

option(TAGFLOW_NATIVE
  "Generate code for the processor of the building machine (-march=native)."
  ON)
option(TAGFLOW_BUILD_TESTS
  "Build the tests, and register them and the checks with CTest."
  ${PROJECT_IS_TOP_LEVEL})
set(TAGFLOW_TEST_FILTER "" CACHE STRING
  "A regular expression: build only the test sources that match; empty: all.")
option(TAGFLOW_BUILD_APPS
  "Build the tagflow command, the applications and the examples."
  ${PROJECT_IS_TOP_LEVEL})
option(TAGFLOW_CHECKS
  "Register the format, include, consumer and sanitizer checks with CTest."
  ${PROJECT_IS_TOP_LEVEL})
set(TAGFLOW_SANITIZER_CHECKS asan CACHE STRING
  "The short sanitizer passes that CTest builds and runs: of asan, tsan.")
option(TAGFLOW_SHARED_CHECK
  "Let CTest also build and use the libraries as shared ones, which takes as \
long as a build."
  OFF)
option(TAGFLOW_WERROR
  "Let every compiler warning fail the build."
  OFF)
set(TAGFLOW_KERNELS all CACHE STRING
  "The kernels to build: all, or basic, which leaves out those of networks, \
training, linear algebra, GPUs and more: see cmake/families.txt. Tests need \
all.")
set_property(CACHE TAGFLOW_KERNELS PROPERTY STRINGS all basic)
if(NOT TAGFLOW_KERNELS MATCHES "^(all|basic)$" OR
   (TAGFLOW_BUILD_TESTS AND NOT TAGFLOW_KERNELS STREQUAL "all"))
  message(FATAL_ERROR "TAGFLOW_KERNELS is \"${TAGFLOW_KERNELS}\": it must be "
    "all, or basic without tests")
endif()
set(TAGFLOW_PREBUILT_DEVICES "" CACHE FILEPATH
  "A libtagflow_devices.a to link instead of compiling devices/, by which the \
short sanitizer pass saves half of its time.")
option(TAGFLOW_PCH
  "Precompile the standard and third-party headers that many sources use."
  ON)
option(TAGFLOW_UNITY
  "Compile several sources at a time where that is quicker from scratch."
  ON)
option(TAGFLOW_CCACHE
  "Compile through ccache where it is installed."
  ON)
option(TAGFLOW_FUZZ
  "Build the fuzz targets for libFuzzer (needs clang), not for replay."
  OFF)
set(TAGFLOW_SANITIZE "" CACHE STRING
  "Sanitizers to instrument with, as -fsanitize= takes them; empty for none.")
set(TAGFLOW_WITH_ONEDNN AUTO CACHE STRING
  "Use oneDNN for dense kernels: ON (required), OFF, or AUTO (if found).")
set_property(CACHE TAGFLOW_WITH_ONEDNN PROPERTY STRINGS AUTO ON OFF)
set(TAGFLOW_WITH_GRPC AUTO CACHE STRING
  "Build the doors of gRPC: ON (required), OFF, or AUTO (if found).")
set_property(CACHE TAGFLOW_WITH_GRPC PROPERTY STRINGS AUTO ON OFF)
set(TAGFLOW_CUDA AUTO CACHE STRING
  "Build devices of type GPU: ON (CUDA required), OFF, or AUTO (if found).")
set_property(CACHE TAGFLOW_CUDA PROPERTY STRINGS AUTO ON OFF)
set(TAGFLOW_CUDA_ARCHITECTURES "80-real;90" CACHE STRING
  "What GPUs to generate code for, as CMAKE_CUDA_ARCHITECTURES says it; newer \
ones run what the last one's PTX gives.")

option(BUILD_SHARED_LIBS
  "Make shared libraries of what users link, not static ones."
  OFF)

set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib")
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib")
if(BUILD_SHARED_LIBS AND NOT DEFINED CMAKE_INSTALL_RPATH)
  # Programs and libraries find each other wherever the tree is moved to.
  cmake_path(RELATIVE_PATH CMAKE_INSTALL_FULL_LIBDIR
    BASE_DIRECTORY "${CMAKE_INSTALL_FULL_BINDIR}" OUTPUT_VARIABLE path)
  set(CMAKE_INSTALL_RPATH "$ORIGIN" "$ORIGIN/${path}")
  set(CMAKE_INSTALL_RPATH_USE_LINK_PATH ON)
endif()

add_library(tagflow_build INTERFACE)
if(TAGFLOW_NATIVE)
  target_compile_options(tagflow_build INTERFACE -march=native)
endif()
# Neither changes a result: nobody reads errno after a mathematical function,
# or the floating-point exception flags. Without them loops vectorise.
target_compile_options(tagflow_build INTERFACE
  -fno-math-errno -fno-trapping-math)
# GCC collects garbage once its heap exceeds 128 MiB, which most sources do by a
# little. A limit of 512 MiB, in KiB here, saves a tenth of the time to compile
# for that much memory in each process.
target_compile_options(tagflow_build INTERFACE
  $<$<COMPILE_LANG_AND_ID:CXX,GNU>:--param=ggc-min-heapsize=524288>)
if(TAGFLOW_SANITIZE)
  target_compile_options(tagflow_build INTERFACE
    -fsanitize=${TAGFLOW_SANITIZE} -fno-sanitize-recover=all
    -fno-omit-frame-pointer)
  # The value of an empty std::optional is memory that no sanitizer objects to.
  target_compile_definitions(tagflow_build INTERFACE _GLIBCXX_ASSERTIONS=1)
  target_link_options(tagflow_build INTERFACE -fsanitize=${TAGFLOW_SANITIZE})
  set_property(DIRECTORY "${PROJECT_SOURCE_DIR}" APPEND PROPERTY
    TEST_INCLUDE_FILES "${PROJECT_SOURCE_DIR}/cmake/SanitizerOptions.cmake")
endif()
# Names of our own. With GCC's names, which Clang does not define, protobuf's
# headers change the layout of types that its library was built with.
foreach(kind IN ITEMS thread address)
  if(TAGFLOW_SANITIZE MATCHES "${kind}")
    string(TOUPPER "TAGFLOW_SANITIZES_${kind}" name)
    target_compile_definitions(tagflow_build INTERFACE ${name}=1)
  endif()
endforeach()
if(TAGFLOW_FUZZ)
  # Coverage for libFuzzer in the libraries too, but its main() only in the
  # fuzz targets.
  target_compile_options(tagflow_build INTERFACE -fsanitize=fuzzer-no-link)
endif()

# Asserts and symbols name a source by its path in the checkout, so that a
# checkout in another folder compiles to the same.
target_compile_options(tagflow_build INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-ffile-prefix-map=${PROJECT_SOURCE_DIR}/=>)

add_library(tagflow_flags INTERFACE)
target_link_libraries(tagflow_flags INTERFACE tagflow_build)
target_compile_options(tagflow_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wnon-virtual-dtor -Woverloaded-virtual
  -Wcast-align -Wunused -Wno-missing-field-initializers
  $<$<BOOL:${TAGFLOW_WERROR}>:-Werror>
  # "GCC ivdep", by which the kernels' loops vectorise, is GCC's alone.
  $<$<CXX_COMPILER_ID:Clang>:-Wno-unknown-pragmas>
  # A constructor's parameter may have the name of what it sets.
  $<IF:$<CXX_COMPILER_ID:GNU>,-Wshadow=local,-Wshadow>)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # Where GCC 12 inlines much, it is wrong about what is initialised and how
  # long it is: in strings, in AVX-512 intrinsics, in small vectors. Clang and
  # the sanitizers look after these.
  target_compile_options(tagflow_flags INTERFACE
    -Wno-maybe-uninitialized -Wno-uninitialized -Wno-array-bounds
    -Wno-stringop-overread -Wno-stringop-overflow -Wno-restrict
    # Of use for headers only, but takes united sources for headers.
    -Wno-subobject-linkage)
endif()
if(TAGFLOW_SANITIZE MATCHES "thread" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # GCC 12 warns of fences, which its ThreadSanitizer does not model; the
  # annotations in actors/ stand for them.
  target_compile_options(tagflow_flags INTERFACE -Wno-tsan)
endif()

# --- ccache ------------------------------------------------------------------

if(TAGFLOW_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  find_program(TAGFLOW_CCACHE_PROGRAM ccache)
  mark_as_advanced(TAGFLOW_CCACHE_PROGRAM)
  if(TAGFLOW_CCACHE_PROGRAM)
    # Without this sloppiness ccache refuses sources that use a precompiled
    # header.
    set(sloppiness
      pch_defines time_macros include_file_mtime include_file_ctime)
    list(JOIN sloppiness "," sloppiness)
    # A checkout in another folder finds what this one compiled: paths are
    # relative to the checkout, and the build folder is not a part of a key.
    # Debug symbols name the sources of whichever compiled first. All
    # configurations together exceed the 5 GB that are ccache's default.
    set(CMAKE_CXX_COMPILER_LAUNCHER
      "${CMAKE_COMMAND}" -E env "CCACHE_SLOPPINESS=${sloppiness}"
      "CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}" CCACHE_NOHASHDIR=1
      CCACHE_MAXSIZE=20G "${TAGFLOW_CCACHE_PROGRAM}")
    if(TAGFLOW_PCH)
      # The form in which each compiler's precompiled headers can be cached.
      target_compile_options(tagflow_build INTERFACE
        $<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>
        "$<$<CXX_COMPILER_ID:Clang>:SHELL:-Xclang -fno-pch-timestamp>")
    endif()
  endif()
endif()

# tagflow_find_onednn()
# Sets TAGFLOW_ONEDNN_TARGET to OneDNN::OneDNN or to nothing, as
# TAGFLOW_WITH_ONEDNN wants. tagflow_folder() chooses sources by it.
function(tagflow_find_onednn)
  set(target "")
  if(TAGFLOW_WITH_ONEDNN STREQUAL "AUTO")
    find_package(OneDNN QUIET)
  elseif(TAGFLOW_WITH_ONEDNN)
    find_package(OneDNN REQUIRED)
  endif()
  if(OneDNN_FOUND AND TAGFLOW_WITH_ONEDNN)
    set(target OneDNN::OneDNN)
  endif()
  set(TAGFLOW_ONEDNN_TARGET "${target}" PARENT_SCOPE)
  message(STATUS "oneDNN: ${TAGFLOW_WITH_ONEDNN} -> \"${target}\"")
endfunction()

# tagflow_find_grpc()
# Sets TAGFLOW_GRPC_TARGET to GRPC++::GRPC++ or to nothing, as TAGFLOW_WITH_GRPC
# wants, and TAGFLOW_GRPC_PLUGIN to protoc's plugin. Sources are chosen by it.
function(tagflow_find_grpc)
  set(target "")
  if(TAGFLOW_WITH_GRPC STREQUAL "AUTO")
    find_package(GRPC++ QUIET)
  elseif(TAGFLOW_WITH_GRPC)
    find_package(GRPC++ REQUIRED)
  endif()
  if(GRPC++_FOUND AND TAGFLOW_WITH_GRPC)
    set(target GRPC++::GRPC++)
  endif()
  set(TAGFLOW_GRPC_TARGET "${target}" PARENT_SCOPE)
  set(TAGFLOW_GRPC_PLUGIN "${GRPC++_PLUGIN}" PARENT_SCOPE)
  message(STATUS "gRPC: ${TAGFLOW_WITH_GRPC} -> \"${target}\"")
endfunction()

# tagflow_find_cuda()
# Sets TAGFLOW_CUDA_TARGETS to what devices/cuda links, or to nothing, as
# TAGFLOW_CUDA wants. tagflow_folder() chooses sources by it. A macro: a
# language is enabled for the scope of a file.
macro(tagflow_find_cuda)
  set(TAGFLOW_CUDA_TARGETS "")
  if(NOT TAGFLOW_KERNELS STREQUAL "all" AND TAGFLOW_CUDA AND
     NOT TAGFLOW_CUDA STREQUAL "AUTO")
    message(FATAL_ERROR "TAGFLOW_CUDA needs TAGFLOW_KERNELS=all")
  endif()
  if(TAGFLOW_CUDA AND TAGFLOW_KERNELS STREQUAL "all")
    include(CheckLanguage)
    check_language(CUDA)
    find_package(CUDAToolkit 12.2 QUIET)
    if(CMAKE_CUDA_COMPILER AND TARGET CUDA::cublas)
      set(CMAKE_CUDA_ARCHITECTURES "${TAGFLOW_CUDA_ARCHITECTURES}")
      set(CMAKE_CUDA_COMPILER_LAUNCHER "${CMAKE_CXX_COMPILER_LAUNCHER}")
      enable_language(CUDA)
      # The run time is linked statically, cuBLAS loaded when it is needed: so
      # programs start, and start fast, where there is neither.
      set(TAGFLOW_CUDA_TARGETS CUDA::cudart_static)
    elseif(NOT TAGFLOW_CUDA STREQUAL "AUTO")
      message(FATAL_ERROR
        "TAGFLOW_CUDA is ${TAGFLOW_CUDA}, but there is no CUDA toolkit 12.2 or "
        "newer with cuBLAS; CUDACXX names its compiler")
    endif()
  endif()
  message(STATUS "CUDA: ${TAGFLOW_CUDA} -> \"${TAGFLOW_CUDA_TARGETS}\"")
endmacro()
