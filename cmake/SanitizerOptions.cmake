# How the sanitizers behave in every test of a build that has them: CTest
# includes this (TEST_INCLUDE_FILES), however it is started.

set(asan
  halt_on_error=1
  detect_leaks=1
  strict_string_checks=1
  detect_stack_use_after_return=1
  check_initialization_order=1
  # Allocators are asked for more than there is, and have to say so.
  allocator_may_return_null=1)
list(JOIN asan ":" asan)
set(ENV{ASAN_OPTIONS} "${asan}")
set(ENV{UBSAN_OPTIONS} "halt_on_error=1:print_stacktrace=1")
set(ENV{TSAN_OPTIONS} "halt_on_error=1:second_deadlock_stack=1:allocator_may_return_null=1:suppressions=${CMAKE_CURRENT_LIST_DIR}/../tests/checks/tsan.supp")
set(ENV{LSAN_OPTIONS} "print_suppressions=0:suppressions=${CMAKE_CURRENT_LIST_DIR}/../tests/checks/lsan.supp")
