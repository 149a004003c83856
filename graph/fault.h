// Converts exceptions to errors. They come from code that we do not control
// (kernels, shape functions, factories, observers) or from allocations.
#pragma once

#include <string_view>
#include <type_traits>
#include <utility>

#include "graph/status.h"

namespace tagflow {

// The exception that is being handled, as an error: ResourceExhausted "out of
// memory" for std::bad_alloc and std::length_error, the status of a
// StatusException, Internal "unexpected exception: WHAT" for any other
// std::exception, and Internal "unexpected exception of type T" for the rest.
// If `module` is given, "[module] " is the prefix. Works without free memory.
//
// Throws nothing, but rethrows abi::__forced_unwind: a cancelled thread must
// not be delayed. So it is not noexcept, and if a noexcept function calls it,
// the cancellation of a thread there ends the process. REQUIRES: it is called
// in a catch block. Thread-safe.
Status current_fault(std::string_view module = {});

// Returns f(), which returns a Status, a Result or nothing. An exception
// becomes an error, as in current_fault().
template <class F>
auto guarded(std::string_view module, F&& f) {
  using Returned = std::invoke_result_t<F>;
  constexpr bool kVoid = std::is_void_v<Returned>;
  using Answer = std::conditional_t<kVoid, Status, Returned>;
  try {
    if constexpr (kVoid) {
      std::forward<F>(f)();
      return Answer();
    } else {
      return Answer(std::forward<F>(f)());
    }
  } catch (...) {
    return Answer(current_fault(module));
  }
}
template <class F>
auto guarded(F&& f) {
  return guarded({}, std::forward<F>(f));
}

}  // namespace tagflow
