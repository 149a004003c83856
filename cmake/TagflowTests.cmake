# Tests that belong to no folder's binary: test scripts of the applications,
# fuzz targets, and the checks of the whole tree.

if(TAGFLOW_BUILD_TESTS)
  tagflow_tests(apps LINK tagflow_apps)
  # The interpreter and the random graphs that the engine is compared with.
  tagflow_tests(reference LINK tagflow::devices SUPPORT tagflow_reference)
  target_link_libraries(actors_tests PRIVATE tagflow_reference)
  if(TARGET net_tests)
    target_link_libraries(net_tests PRIVATE tagflow_reference)
  endif()
  # Gradients are checked by what they are when they run.
  if(TARGET autodiff_tests)
    target_link_libraries(autodiff_tests PRIVATE tagflow::actors)
  endif()
endif()

# The engine with the basic kernels only, of the objects that all tests use. Not
# linked with their libraries, which would add what is missing.
if(TAGFLOW_BUILD_TESTS AND TARGET tagflow_devices_further AND
   NOT BUILD_SHARED_LIBS AND NOT TAGFLOW_TEST_FILTER)
  set(no_cuda "")
  if(TAGFLOW_CUDA_TARGETS)
    set(no_cuda "${PROJECT_SOURCE_DIR}/devices/no_cuda/no_cuda.cpp")
  endif()
  add_executable(basic_kernels_test
    "${PROJECT_SOURCE_DIR}/tests/basic_kernels_test.cpp"
    "${TAGFLOW_BASIC_KERNEL_TABLE}" ${no_cuda}
    $<TARGET_OBJECTS:tagflow_devices> $<TARGET_OBJECTS:tagflow_actors>)
  get_target_property(libraries tagflow_devices LINK_LIBRARIES)
  target_link_libraries(basic_kernels_test PRIVATE
    tagflow_test_main CAF::core ${libraries})
  tagflow_reuse_pch(basic_kernels_test tagflow_test_main)
  set_target_properties(basic_kernels_test PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/tests")
  add_test(NAME devices/basic_kernels COMMAND basic_kernels_test)
  set_tests_properties(devices/basic_kernels PROPERTIES
    LABELS "devices;smoke" TIMEOUT 600)
endif()

# tests/apps/*_test.sh run the built programs, which they find in TAGFLOW_BIN.
if(TAGFLOW_BUILD_TESTS AND TAGFLOW_BUILD_APPS)
  file(GLOB scripts CONFIGURE_DEPENDS
    "${PROJECT_SOURCE_DIR}/tests/apps/*_test.sh")
  foreach(script IN LISTS scripts)
    cmake_path(GET script STEM name)
    string(REGEX REPLACE "_test$" "" name "${name}")
    set(tier smoke)
    if(name MATCHES "_slow$")
      set(tier slow)
    endif()
    add_test(NAME apps/${name} COMMAND bash "${script}")
    set_tests_properties(apps/${name} PROPERTIES
      LABELS "apps;${tier}" TIMEOUT 600 SKIP_RETURN_CODE 77
      ENVIRONMENT "TAGFLOW_BIN=${PROJECT_BINARY_DIR}/apps")
  endforeach()
endif()

# The Python package, built of this build's libraries. It is an optimised one, so
# that no test waits for a second engine.
if(TAGFLOW_BUILD_TESTS AND TAGFLOW_CHECKS AND NOT BUILD_SHARED_LIBS AND
   NOT TAGFLOW_SANITIZE AND CMAKE_BUILD_TYPE STREQUAL "Release")
  add_test(NAME python/package
    COMMAND bash "${PROJECT_SOURCE_DIR}/tests/python/run.sh")
  set_tests_properties(python/package PROPERTIES
    LABELS "python" TIMEOUT 1800 SKIP_RETURN_CODE 77
    ENVIRONMENT "TAGFLOW_BUILD=${PROJECT_BINARY_DIR}")
endif()

# Every tests/fuzz/NAME.cpp defines LLVMFuzzerTestOneInput and becomes
# fuzz_NAME. With TAGFLOW_FUZZ libFuzzer drives it; otherwise a small main()
# replays tests/fuzz/corpus/NAME, and CTest case fuzz/NAME runs that.
file(GLOB sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/fuzz/*.cpp")
set(replay_main "${PROJECT_SOURCE_DIR}/tests/fuzz/replay_main.cpp")
list(REMOVE_ITEM sources "${replay_main}")
add_custom_target(fuzz_targets)
foreach(source IN LISTS sources)
  cmake_path(GET source STEM name)
  set(target fuzz_${name})
  add_executable(${target} "${source}")
  target_link_libraries(${target} PRIVATE tagflow_apps_common tagflow_flags)
  if(TARGET tagflow_reference)
    target_link_libraries(${target} PRIVATE tagflow_reference)
  endif()
  target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}")
  target_compile_features(${target} PRIVATE cxx_std_20)
  tagflow_compile_lean(${target})
  set_target_properties(${target} PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/fuzz")
  add_dependencies(fuzz_targets ${target})
  if(TAGFLOW_FUZZ)
    target_link_options(${target} PRIVATE -fsanitize=fuzzer)
  else()
    target_sources(${target} PRIVATE "${replay_main}")
    add_test(NAME fuzz/${name} COMMAND ${target}
      "${PROJECT_SOURCE_DIR}/tests/fuzz/corpus/${name}")
    set_tests_properties(fuzz/${name} PROPERTIES
      LABELS "fuzz;smoke" TIMEOUT 300)
  endif()
endforeach()

if(NOT TAGFLOW_CHECKS OR NOT TAGFLOW_BUILD_TESTS)
  return()
endif()

# tagflow_check(NAME TIMEOUT COMMAND...): CTest case check.NAME of a script in
# tests/checks. Exit status 77, for a tool that is not there, skips it.
function(tagflow_check name timeout)
  add_test(NAME check.${name} COMMAND ${ARGN}
    WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}/tests/checks")
  set_tests_properties(check.${name} PROPERTIES
    LABELS check TIMEOUT ${timeout} SKIP_RETURN_CODE 77)
endfunction()

tagflow_check(format 300 bash format.sh)
tagflow_check(includes 300 python3 includes.py)
tagflow_check(families 300 python3 families.py)
tagflow_check(references 300 python3 references.py)
tagflow_check(quotes 300 python3 quotes.py)
tagflow_check(pages 300 python3 pages.py)
tagflow_check(notes 300 python3 notes.py)
tagflow_check(consumer 1200 bash consumer.sh
  "${CMAKE_COMMAND}" "${PROJECT_BINARY_DIR}" "${CMAKE_CXX_COMPILER}")
if(TAGFLOW_SHARED_CHECK)
  tagflow_check(shared 7200 bash shared.sh
    "${CMAKE_COMMAND}" "${PROJECT_BINARY_DIR}/checks" "${CMAKE_CXX_COMPILER}")
  set_tests_properties(check.shared PROPERTIES RUN_SERIAL ON)
endif()
# The short sanitizer passes. Each builds what it runs in a folder of its own
# below this build's, with all processors: nothing else may run meanwhile.
set(prebuilt_devices "$<TARGET_FILE:tagflow_devices>")
if(BUILD_SHARED_LIBS)  # they would bring a second graph/ along
  set(prebuilt_devices "")
endif()
foreach(sanitizer IN LISTS TAGFLOW_SANITIZER_CHECKS)
  tagflow_check(${sanitizer} 2700 bash ${sanitizer}.sh
    "${CMAKE_COMMAND}" "${PROJECT_BINARY_DIR}/checks/${sanitizer}"
    "${prebuilt_devices}" ${TAGFLOW_NATIVE})
  set_tests_properties(check.${sanitizer} PROPERTIES RUN_SERIAL ON)
endforeach()
