# What lies in apps/:
#   tagflow/*.cpp         the tagflow command: main() and its subcommands. Its
#                         rooms are in libraries, for tests and fuzz targets:
#     model/                what it does with a model's file: feeds, results,
#                           summaries, gradients
#     checkpoint/, conform/, placement/, stepper/
#                           what the subcommands of these names do
#   bench/*.cpp           the benchmarks, as `tagflow bench` runs them
#   examples/*.cpp        one executable and CTest case each
#     fortunes/, g2p/, kmeans/, train_images/, train_jpegs/
#                           a program each: main.cpp; the rest is in a library,
#                           for its tests and benchmark
#     ode/                  a solver of differential equations
#   chaos/                a program that disturbs trainings over workers
#   shared/               what several of these include:
#     io/                   formats of files
#     program/              what every program has: exit codes, the terminal,
#                           the command line
#     runs/                 what a program with long runs needs besides:
#                           signals, stalls, progress, saving
#     draw/                 pictures of graphs, and charts
#     training/             the loop of a training
# tests/checks/includes.py has the order in which these include each other.
# Without TAGFLOW_BUILD_APPS only the libraries are made.

find_package(CLI11 REQUIRED)
find_package(spdlog REQUIRED)
find_package(ZLIB REQUIRED)
find_package(LibZip REQUIRED)

set(apps "${PROJECT_SOURCE_DIR}/apps")

# tagflow_apps_library(NAME FOLDER...): of the folders' sources but main.cpp.
function(tagflow_apps_library name)
  list(TRANSFORM ARGN PREPEND "${apps}/" OUTPUT_VARIABLE globs)
  list(TRANSFORM globs APPEND "/*.cpp")
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${globs})
  list(FILTER sources EXCLUDE REGEX "/main\\.cpp$")
  add_library(${name} STATIC ${sources})
  target_link_libraries(${name} PRIVATE tagflow_flags)
  tagflow_compile_lean(${name})
  tagflow_unite(${name})
endfunction()

tagflow_apps_library(tagflow_apps_program shared/io shared/program)
target_compile_features(tagflow_apps_program PUBLIC cxx_std_20)
target_include_directories(tagflow_apps_program PUBLIC "${PROJECT_SOURCE_DIR}")
target_link_libraries(tagflow_apps_program
  PUBLIC tagflow::actors CLI11::CLI11 nlohmann_json::nlohmann_json
    spdlog::spdlog ZLIB::ZLIB PNG::PNG LibZip::LibZip fmt::fmt Threads::Threads)
# Not CLI11: its constants are made anew in every source that sees it. Not JSON:
# the first program of the quickstart does without it.
tagflow_precompile(tagflow_apps_program ${TAGFLOW_COMMON_PCH})

# What fuzz targets link, too.
tagflow_apps_library(tagflow_apps_common
  shared/runs tagflow/model tagflow/conform)
target_link_libraries(tagflow_apps_common
  PUBLIC tagflow_apps_program tagflow::tagflow)
tagflow_precompile(tagflow_apps_common
  ${TAGFLOW_COMMON_PCH} <nlohmann/json.hpp>)

# Without optimisation, GCC 12 takes its own intrinsics for optimised code after
# precompiled headers with {fmt}, and then refuses those of Eigen.
set_source_files_properties(
  "${apps}/examples/kmeans/reference.cpp" "${apps}/examples/stacked_rnn.cpp"
  PROPERTIES SKIP_PRECOMPILE_HEADERS ON SKIP_UNITY_BUILD_INCLUSION ON)

# By itself, since the quickstart builds it first: no gradients, no models.
tagflow_apps_library(tagflow_kmeans examples/kmeans)
target_link_libraries(tagflow_kmeans PUBLIC tagflow_apps_program)
tagflow_reuse_pch(tagflow_kmeans tagflow_apps_program)

tagflow_apps_library(tagflow_apps
  shared/draw shared/live shared/training
  tagflow/checkpoint tagflow/placement tagflow/stepper chaos
  examples/fortunes examples/g2p examples/ode examples/train_images
  examples/train_jpegs)
target_link_libraries(tagflow_apps PUBLIC tagflow_apps_common tagflow_kmeans)
tagflow_reuse_pch(tagflow_apps tagflow_apps_common)

# tagflow_page(FOLDER PREFIX PART...): the parts of a page, which are in that
# folder of apps/, as texts of its page_parts.h.
function(tagflow_page folder prefix)
  foreach(part IN LISTS ARGN)
    set(file "${apps}/${folder}/${part}")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${file}")
    string(MAKE_C_IDENTIFIER "${prefix}_${part}" variable)
    file(READ "${file}" ${variable})
  endforeach()
  configure_file("${apps}/${folder}/page_parts.h.in"
    "${PROJECT_BINARY_DIR}/generated/apps/${folder}/page_parts.h"
    @ONLY)
endfunction()
# The pages are part of the library.
tagflow_page(tagflow/stepper TAGFLOW page.css page.html page_state.js
  page_frames.js page.js)
tagflow_page(shared/live TAGFLOW_live page.css page.html page.js)
target_include_directories(tagflow_apps PRIVATE
  "${PROJECT_BINARY_DIR}/generated")

if(NOT TAGFLOW_BUILD_APPS)
  return()
endif()

# tagflow_program(NAME LIBRARY PCH SOURCE...): an app that is installed and
# knows its version. It reuses the precompiled headers of the target PCH.
function(tagflow_program name library pch)
  tagflow_app(${name} ${ARGN} LINK ${library})
  target_compile_definitions(${name} PRIVATE
    TAGFLOW_VERSION="${PROJECT_VERSION}")
  tagflow_compile_lean(${name})
  tagflow_unite(${name})
  tagflow_reuse_pch(${name} ${pch})
  install(TARGETS ${name})
endfunction()

# A program without sources (yet) is not a target.
file(GLOB sources CONFIGURE_DEPENDS
  "${apps}/tagflow/*.cpp" "${apps}/bench/*.cpp")
if(sources)
  tagflow_program(tagflow tagflow_apps tagflow_apps_common ${sources})
  target_link_libraries(tagflow PRIVATE tagflow::net_grpc)
  tagflow_loads_op_libraries(tagflow)
  # What shells and man take from the command, as it prints it.
  set(shares "${PROJECT_BINARY_DIR}/generated/share")
  set(bash "${shares}/bash-completion/completions")
  set(zsh "${shares}/zsh/site-functions")
  file(MAKE_DIRECTORY "${bash}" "${zsh}")
  add_custom_command(TARGET tagflow POST_BUILD
    COMMAND tagflow man --out "${shares}/man/man1"
    COMMAND tagflow completion bash > "${bash}/tagflow"
    COMMAND tagflow completion zsh > "${zsh}/_tagflow"
    VERBATIM)
  install(DIRECTORY "${shares}/" DESTINATION "${CMAKE_INSTALL_DATADIR}")
endif()
# The scripts that `tagflow bench` gives to Python are part of the command.
foreach(name IN ITEMS compare input models)
  set(script "${apps}/bench/${name}.py")
  if(sources AND EXISTS "${script}")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${script}")
    string(TOUPPER "TAGFLOW_${name}_SCRIPT" variable)
    file(READ "${script}" ${variable})
    configure_file("${apps}/bench/${name}_script.h.in"
      "${PROJECT_BINARY_DIR}/generated/apps/bench/${name}_script.h" @ONLY)
    target_include_directories(tagflow PRIVATE
      "${PROJECT_BINARY_DIR}/generated")
  endif()
endforeach()

tagflow_program(kmeans tagflow_kmeans tagflow_apps_program
  "${apps}/examples/kmeans/main.cpp")
foreach(name IN ITEMS train_images train_jpegs fortunes g2p)
  tagflow_program(${name} tagflow_apps tagflow_apps_common
    "${apps}/examples/${name}/main.cpp")
endforeach()
# It runs the command that lies beside it. A tool of ours: it is not installed.
tagflow_app(chaos "${apps}/chaos/main.cpp" LINK tagflow_apps)
tagflow_compile_lean(chaos)
tagflow_reuse_pch(chaos tagflow_apps_common)

file(GLOB sources CONFIGURE_DEPENDS "${apps}/examples/*.cpp")
foreach(source IN LISTS sources)
  cmake_path(GET source STEM name)
  tagflow_app(${name} "${source}" DIRECTORY examples
    LINK tagflow_apps tagflow::tagflow)
  if(TAGFLOW_BUILD_TESTS)
    add_test(NAME examples/${name} COMMAND ${name})
    set_tests_properties(examples/${name} PROPERTIES
      LABELS "examples;smoke" TIMEOUT 300)
  endif()
endforeach()
