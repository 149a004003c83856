// Writes and reads bundles for the tests of checkpoints.
#pragma once

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "devices/files/bundle_reader.h"
#include "devices/files/bundle_writer.h"

namespace tagflow::checkpoint {

using Named = std::vector<std::pair<std::string, Tensor>>;

inline void check(const Status& status) {
  INFO(status.to_string());
  REQUIRE(status.ok());
}

inline std::string text_of(const Status& status) { return status.to_string(); }
template <class T>
inline std::string text_of(const Result<T>& result) {
  return result.status().to_string();
}

inline bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != text.npos;
}

inline std::unique_ptr<BundleReader> open_bundle(const std::string& prefix,
                                                 FileSystem& files) {
  auto reader = BundleReader::open(prefix, files);
  INFO(text_of(reader));
  REQUIRE(reader.ok());
  return std::move(*reader);
}

inline std::unique_ptr<BundleWriter> start(const std::string& prefix,
                                           int shards, FileSystem& files) {
  auto writer = BundleWriter::create(prefix, shards, {&files, true});
  REQUIRE(writer.ok());
  return std::move(*writer);
}

inline void save(const std::string& prefix, const Named& tensors,
                 FileSystem& files, int shards = 1) {
  const auto writer = start(prefix, shards, files);
  for (const auto& [name, tensor] : tensors) check(writer->add(name, tensor));
  check(writer->finish());
  check(writer->publish());
}

}  // namespace tagflow::checkpoint
