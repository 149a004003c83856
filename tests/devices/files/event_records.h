// Reads event files, as TensorBoard does.
#pragma once

#include <algorithm>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "devices/files/crc32c.h"
#include "devices/files/files.h"
#include "graph/proto/event.pb.h"

namespace tagflow::checkpoint {

inline uint64_t little_endian_at(std::string_view bytes, size_t at,
                                 size_t size) {
  uint64_t number = 0;
  for (size_t i = 0; i < size; ++i)
    number |= uint64_t(uint8_t(bytes[at + i])) << (8 * i);
  return number;
}

// The events of whole records; a part of one at the end is left out. DataLoss
// for a wrong checksum, or bytes that are not an event.
inline Result<std::vector<tensorflow::Event>> events_in(std::string_view file) {
  constexpr size_t kHead = 12, kTail = 4;
  std::vector<tensorflow::Event> events;
  while (file.size() >= kHead) {
    const uint64_t size = little_endian_at(file, 0, 8);
    if (little_endian_at(file, 8, 4) != mask_crc32c(crc32c(file.substr(0, 8))))
      return error(Code::kDataLoss, "a length has a wrong checksum");
    if (size > file.size() - kHead || size + kTail > file.size() - kHead) break;
    const std::string_view bytes = file.substr(kHead, size);
    if (little_endian_at(file, kHead + size, 4) != mask_crc32c(crc32c(bytes)))
      return error(Code::kDataLoss, "an event has a wrong checksum");
    if (!events.emplace_back().ParseFromArray(bytes.data(), int(bytes.size())))
      return error(Code::kDataLoss, "a record is not an event");
    file.remove_prefix(kHead + size + kTail);
  }
  return events;
}

// Those of all event files of a folder, in the order of their names.
// REQUIRES: nobody writes them.
inline Result<std::vector<tensorflow::Event>> events_of_folder(
    const std::string& folder) {
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().string().find("tfevents") != std::string::npos)
      paths.push_back(entry.path());
  std::ranges::sort(paths);
  std::vector<tensorflow::Event> all;
  for (const std::string& path : paths) {
    TAGFLOW_ASSIGN(const std::string bytes,
                   read_whole(local_files(), path, UINT64_MAX));
    TAGFLOW_ASSIGN(const auto events, events_in(bytes));
    all.insert(all.end(), events.begin(), events.end());
  }
  return all;
}

}  // namespace tagflow::checkpoint
