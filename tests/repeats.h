// How many of very many cases a test runs.
#pragma once

#include <cstdlib>

namespace tagflow::testing {

// AddressSanitizer makes each case many times as slow: a quarter is enough for
// it. Its builds are to find what is wrong with memory, and plain ones what is
// wrong with results.
#if defined(TAGFLOW_SANITIZES_ADDRESS)
constexpr int kShare = 4;
#else
constexpr int kShare = 1;
#endif

// How many times as many cases as usual: TAGFLOW_THOROUGH, which
// tests/checks/all.sh sets; 1 if it is not set.
inline int thoroughness() {
  const char* text = std::getenv("TAGFLOW_THOROUGH");
  const int times = text == nullptr ? 1 : std::atoi(text);
  return times < 1 ? 1 : times;
}

// How many random cases there are, of `count`.
inline int repeats(int count) { return count * thoroughness() / kShare; }
// From one case to the next, of many in a row.
constexpr int stride(int step) { return step * kShare; }

}  // namespace tagflow::testing
