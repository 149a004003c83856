// A pause for busy waits of a few microseconds.
#pragma once

namespace tagflow::actors {

// Some 50 ns, during which the core does other things.
inline void pause_briefly() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace tagflow::actors
