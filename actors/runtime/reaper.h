// Reaper: destroys what the thread that let go of it last must not destroy,
// since it would wait for itself.
#pragma once

#include <functional>

namespace tagflow::actors {

// Calls `destroy` soon, on a thread that is no engine's and no device's. The
// thread ends with the process, after the last call. Where no thread can be
// had, and once the process ends, the object is left alone. Thread-safe.
void destroy_elsewhere(std::function<void()> destroy) noexcept;

}  // namespace tagflow::actors
