// What the training of a folder is of, so that no other one goes on from it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graph/status.h"

namespace tagflow::training {

// Lines "name: value" of what must stay as it is from run to run, such as the
// model and the data. Neither has a newline, and no name a colon.
using Subject = std::vector<std::pair<std::string, std::string>>;

std::filesystem::path subject_file(const std::filesystem::path& folder);

// Whether the folder is free, or has a training of that subject; one without a
// file of a subject may be. FailedPrecondition names the first line that
// differs, with both values; errors of reading.
Status check_subject(const std::filesystem::path& folder,
                     const Subject& subject);
// Writes the file, unless it is there. Errors of writing.
Status keep_subject(const std::filesystem::path& folder,
                    const Subject& subject);

// Sums up data by what they are, wherever they lie.
class DataSum {
 public:
  void add(std::string_view bytes);
  template <class T>
  void add(std::span<const T> numbers) {
    add(std::string_view(reinterpret_cast<const char*>(numbers.data()),
                         numbers.size_bytes()));
  }
  // "60000 pictures, checksum 1f2e3d4c".
  std::string describe(int64_t count, std::string_view examples) const;

 private:
  uint32_t sum_ = 0;
};

}  // namespace tagflow::training
