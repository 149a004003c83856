// The growth of containers, whose memory is counted before it is taken.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "devices/kernel.h"

namespace tagflow::devices {

// What a node of std::map and the like takes beside its value, as allocated.
inline constexpr size_t kNodeBytes = 64;

// Calls grow(), which makes places that take `bytes` with all that `charge` is
// for; from then on it counts these. ResourceExhausted if that would exceed the
// limit, also while old and new places exist; then nothing changes. what() is
// for the message. Throws what grow() throws.
template <class What, class Grow>
Status grow_counted(const KernelContext& context, MemoryCharge& charge,
                    size_t bytes, const What& what, const Grow& grow) {
  MemoryCharge grown;
  TAGFLOW_RETURN_IF_ERROR(context.count(grown, bytes, what));
  grow();
  charge = std::move(grown);
  return {};
}

// Makes room for `wanted` elements, so that adding them throws nothing. A
// vector that must grow at least doubles. `charge` then counts its places, and
// `beside` bytes more. Errors as those of grow_counted(). Throws
// std::bad_alloc.
template <class T, class What>
Status make_room(const KernelContext& context, std::vector<T>& elements,
                 size_t wanted, MemoryCharge& charge, size_t beside,
                 const What& what) {
  if (wanted <= elements.capacity()) [[likely]]
    return {};
  const size_t places = std::max({wanted, 2 * elements.capacity(), size_t(8)});
  return grow_counted(context, charge, beside + places * sizeof(T), what,
                      [&] { elements.reserve(places); });
}

}  // namespace tagflow::devices
