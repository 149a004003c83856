// Reaper: destroys objects whose last owner must not destroy them, since its
// thread would wait for itself.
#pragma once

#include <functional>

namespace tagflow::actors {

// Calls `destroy` soon, on a thread that belongs to no engine and no device.
// The thread ends with the process, after the last call. If no thread can be
// created, or the process is ending, the object is leaked. Thread-safe.
void destroy_elsewhere(std::function<void()> destroy) noexcept;

}  // namespace tagflow::actors
