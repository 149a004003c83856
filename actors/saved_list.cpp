#include "actors/saved_list.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <system_error>
#include <utility>

#include "devices/checkpoint/bundle_index.h"
#include "devices/checkpoint/saved_files.h"

namespace tagflow::actors {
namespace {

namespace fs = std::filesystem;

double seconds_since_1970() {
  return std::chrono::duration<double>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

fs::path normal(const std::string& path) {
  std::error_code unknown;
  return fs::absolute(path, unknown).lexically_normal();
}

bool is_in(const std::string& folder, const std::string& prefix) {
  std::error_code unknown;
  return fs::equivalent(checkpoint::folder_of(prefix), folder, unknown);
}

}  // namespace

Status SavedList::read() {
  checkpoint::FileSystem& files = options_.file_system();
  auto state = checkpoint::read_checkpoint_state(folder_, files);
  if (!state.ok()) {
    if (!checkpoint::names_nothing(state.status())) return state.status();
    state = checkpoint::CheckpointState();
  }
  state_ = {};
  state_.last_preserved = state->last_preserved;
  for (size_t i = 0; i < state->all.size(); ++i) {
    const std::string& prefix = state->all[i];
    if (has(prefix)) continue;
    if (files.exists(checkpoint::index_path(prefix))) {
      state_.all.push_back(prefix);
      state_.timestamps.push_back(
          state->timestamps.empty() ? 0 : state->timestamps[i]);
    } else if (is_left_of_ours(prefix)) {
      static_cast<void>(checkpoint::remove_bundle(prefix, options_));
    }
  }
  const auto newest = checkpoint::find_newest_checkpoint(folder_);
  const Code code = newest.status().code();
  if (code == Code::kNotFound || code == Code::kDataLoss) return {};
  TAGFLOW_RETURN_IF_ERROR(newest.status());
  if (has(newest->prefix)) return {};
  state_.all.push_back(newest->prefix);
  state_.timestamps.push_back(seconds_since_1970());
  return {};
}

// Ours have no MetaGraph beside them: what has one is somebody else's, as the
// checkpoints of version 1 are, which have no index.
bool SavedList::is_left_of_ours(const std::string& prefix) const {
  checkpoint::FileSystem& files = options_.file_system();
  return is_in(folder_, prefix) &&
         fs::path(prefix).filename().string().starts_with(name_ + "-") &&
         !files.exists(prefix) && !files.exists(prefix + ".meta");
}

bool SavedList::has(const std::string& prefix) const {
  return std::ranges::any_of(state_.all, [&](const std::string& other) {
    return normal(other) == normal(prefix);
  });
}

std::string SavedList::free_prefix(int64_t step) const {
  const std::string first =
      (fs::path(folder_) / fmt::format("{}-{}", name_, step)).string();
  std::string prefix = first;
  checkpoint::FileSystem& files = options_.file_system();
  for (int i = 1; has(prefix) || files.exists(checkpoint::index_path(prefix));
       ++i)
    prefix = fmt::format("{}.{}", first, i);
  return prefix;
}

Status SavedList::write() const {
  return checkpoint::write_checkpoint_state(folder_, state_, options_);
}

void SavedList::forget_first(size_t count) {
  state_.all.erase(state_.all.begin(), state_.all.begin() + ptrdiff_t(count));
  state_.timestamps.erase(state_.timestamps.begin(),
                          state_.timestamps.begin() + ptrdiff_t(count));
}

Status SavedList::remove_first(size_t count) {
  for (size_t i = 0; i < count; ++i) {
    // What is elsewhere is not ours to remove.
    if (is_in(folder_, state_.all[i]))
      TAGFLOW_RETURN_IF_ERROR(
          checkpoint::remove_bundle(state_.all[i], options_));
  }
  return {};
}

Status SavedList::add(const std::string& prefix) {
  state_.newest = prefix;
  state_.all.push_back(prefix);
  state_.timestamps.push_back(seconds_since_1970());
  Status status = write();
  if (keep_ == 0 || state_.all.size() <= size_t(keep_)) return status;
  // Also where the list cannot be written, or the disk would fill.
  const size_t count = state_.all.size() - size_t(keep_);
  Status removed = remove_first(count);
  if (removed.ok()) {
    forget_first(count);
    removed = write();
  }
  return status.ok() ? removed : status;
}

}  // namespace tagflow::actors
