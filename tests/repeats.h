// How many of very many cases a test runs.
#pragma once

namespace tagflow::testing {

// AddressSanitizer, which runs with every test of a change, makes each case
// many times as slow: a quarter is enough for it. Its builds are to find what
// is wrong with memory, and plain ones what is wrong with results.
#if defined(TAGFLOW_SANITIZES_ADDRESS)
constexpr int kShare = 4;
#else
constexpr int kShare = 1;
#endif

// How many random cases there are, of `count`.
constexpr int repeats(int count) { return count / kShare; }
// From one case to the next, of many in a row.
constexpr int stride(int step) { return step * kShare; }

}  // namespace tagflow::testing
