#include "devices/files/event_file.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <limits>
#include <utility>

namespace tagflow::checkpoint {
namespace {

std::string host_name() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return "localhost";
  std::string text = name.data();
  std::ranges::replace(text, '/', '_');
  return text.empty() ? "localhost" : text;
}

}  // namespace

Result<std::unique_ptr<EventFile>> EventFile::create(
    FileSystem& files, const std::string& folder, const std::string& suffix) {
  static std::atomic<uint64_t> number{0};
  constexpr int kMostTries = 100;
  TAGFLOW_RETURN_IF_ERROR(files.make_folder(folder));
  Status status;
  for (int i = 0; i < kMostTries; ++i) {
    std::string path = fmt::format("{}/events.out.tfevents.{:010}.{}.{}.{}{}",
                                   folder, int64_t(files.now()), host_name(),
                                   getpid(), number.fetch_add(1), suffix);
    auto file = files.create(path);
    if (file.ok())
      return std::unique_ptr<EventFile>(
          new EventFile(std::move(path), std::move(file).value()));
    status = std::move(file).status();
    if (status.code() != Code::kAlreadyExists) break;
  }
  return status;
}

Status EventFile::append(std::string_view records, size_t& written) {
  written = 0;
  while (written < records.size()) {
    TAGFLOW_ASSIGN(const size_t count, file_->write(records.substr(written)));
    written += count;
  }
  return {};
}

}  // namespace tagflow::checkpoint
