// Faults: what is thrown by code that is not ours to trust - kernels, shape
// functions, factories, observers, an allocation - as the error that it is.
#pragma once

#include <string_view>
#include <type_traits>
#include <utility>

#include "graph/status.h"

namespace tagflow {

// What is being handled, as an error: ResourceExhausted "out of memory" for
// std::bad_alloc, Internal "unexpected exception: WHAT" for any other
// std::exception, Internal "unexpected exception of type T" for the rest. With
// a module, "[module] " is put before it. Takes no more memory than there is.
//
// Throws nothing, but passes abi::__forced_unwind on: the thread is being
// cancelled, which must not be held up. For this it is not noexcept, and who
// calls it from a noexcept function ends the process when a thread is cancelled
// there. REQUIRES: called in a catch block. Thread-safe.
Status current_fault(std::string_view module = {});

// f(), which returns a Status, a Result or nothing; what it throws as an error,
// see current_fault().
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
