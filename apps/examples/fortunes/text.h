// The texts of Debian's package fortunes, as numbers for characters.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "graph/status.h"
#include "graph/tensor.h"

namespace tagflow::fortunes {

// A symbol is kEnd, which is before and after each text, or 1 for a newline, or
// 2 and more for the ASCII characters from space to '~'.
inline constexpr int32_t kEnd = 0, kSymbols = 97;

using Symbols = std::vector<int32_t>;

// The symbols of a text. Tabs become spaces; other characters are left out.
Symbols symbols_of(std::string_view text);
// The text up to the first kEnd; numbers that are not symbols are left out.
std::string text_of(const Symbols& symbols);

// The texts between the lines "%" of all files without an extension, in the
// order of the files' names; texts without a symbol are left out. Returns
// NotFound if the folder does not exist, InvalidArgument if no file has a
// text, and errors of reading the files. Thread-safe.
Result<std::vector<Symbols>> read_fortunes(const std::filesystem::path& folder);

// Whether a text is for validation. It depends on its symbols only; one of 20
// is.
bool is_held_out(const Symbols& text);

// The concatenated texts, with kEnd around each.
Symbols joined(const std::vector<Symbols>& texts);

// An endless list of pieces of texts. The seed determines the order, so a
// resumed training gets the same pieces. Each epoch has another order of texts.
// These are cut into `streams` parts of equal length, which are read in
// parallel, piece by piece. Thread-compatible.
class Streams {
 public:
  // Returns InvalidArgument if the texts do not have a piece for each
  // stream, or a number is not positive.
  static Result<Streams> create(std::vector<Symbols> texts, int64_t streams,
                                int64_t piece, uint64_t seed);

  int64_t steps_per_epoch() const { return steps_per_epoch_; }
  // int32 [streams, piece + 1] of a step, counted from 1: the last symbol is
  // the first one of the next piece. REQUIRES: step >= 1
  Tensor at(int64_t step);
  // Whether the piece continues that of the previous step; else it is the first
  // one of an epoch.
  bool goes_on(int64_t step) const {
    return (step - 1) % steps_per_epoch_ != 0;
  }

 private:
  Streams() = default;

  std::vector<Symbols> texts_;
  int64_t streams_ = 0, piece_ = 0, steps_per_epoch_ = 0;
  uint64_t seed_ = 0;
  int64_t epoch_ = -1;  // of symbols_
  Symbols symbols_;
};

}  // namespace tagflow::fortunes
