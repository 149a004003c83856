// Errors of the engine as exceptions of Python: tagflow/errors.py has the
// classes.
//
// All functions REQUIRE that the thread holds the GIL.
#pragma once

#include <nanobind/nanobind.h>

#include <utility>

#include "graph/status.h"
#include "python/src/gil.h"

namespace tagflow::python {

// Sets Python's error indicator. If it is set already, as when Ctrl-C ended a
// run, that error is kept. REQUIRES: !status.ok()
void set_error(const Status& status) noexcept;

// Throws what nanobind turns into that exception.
[[noreturn]] void raise(const Status& status);
// The same unless the status is OK.
inline void check(const Status& status) {
  if (!status.ok()) raise(status);
}
// The value, or raise().
template <class T>
T take(Result<T> result) {
  if (!result.ok()) raise(result.status());
  return std::move(result).value();
}

// Releases the GIL for f(), which returns a Status or a Result, and raises its
// error.
template <class F>
auto unlocked(F&& f) {
  auto result = [&] {
    const Released released;
    return std::forward<F>(f)();
  }();
  if constexpr (std::is_same_v<decltype(result), Status>) {
    check(result);
  } else {
    return take(std::move(result));
  }
}

}  // namespace tagflow::python
