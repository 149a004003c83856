#include "actors/saved_list.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <system_error>
#include <utility>

#include "actors/checkpoint.h"
#include "devices/checkpoint/bundle_index.h"
#include "devices/checkpoint/saved_files.h"
#include "devices/checkpoint/tensor_file.h"

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
      push(prefix, state->timestamps.empty() ? 0 : state->timestamps[i]);
    } else if (is_left_of_ours(prefix)) {
      static_cast<void>(checkpoint::remove_bundle(prefix, options_));
    }
  }
  const auto newest = checkpoint::find_newest_checkpoint(folder_);
  const Code code = newest.status().code();
  if (code == Code::kNotFound || code == Code::kDataLoss) return {};
  TAGFLOW_RETURN_IF_ERROR(newest.status());
  if (!has(newest->prefix)) push(newest->prefix, seconds_since_1970());
  return {};
}

void SavedList::push(const std::string& prefix, double time) {
  state_.all.push_back(prefix);
  state_.timestamps.push_back(time);
  if (is_other(prefix)) others_.insert(prefix);
}

// One whose index cannot be read may be anybody's.
bool SavedList::is_other(const std::string& prefix) const {
  if (!is_in(folder_, prefix) ||
      options_.file_system().exists(prefix + ".meta"))
    return true;
  const auto file = checkpoint::open_tensor_file(prefix);
  return !file.ok() || (*file)->find(kStepKey) == nullptr;
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

Status SavedList::remove_oldest(size_t count) {
  checkpoint::CheckpointState left = state_;
  left.all.clear();
  left.timestamps.clear();
  for (size_t i = 0; i < state_.all.size(); ++i) {
    const std::string& prefix = state_.all[i];
    if (count > 0 && !others_.contains(prefix)) {
      --count;
      TAGFLOW_RETURN_IF_ERROR(checkpoint::remove_bundle(prefix, options_));
    } else {
      left.all.push_back(prefix);
      left.timestamps.push_back(state_.timestamps[i]);
    }
  }
  state_ = std::move(left);
  return {};
}

void SavedList::restored(const std::string& prefix) {
  const auto place =
      std::ranges::find_if(state_.all, [&](const std::string& other) {
        return normal(other) == normal(prefix);
      });
  if (place == state_.all.end()) return;
  const ptrdiff_t newer = place - state_.all.begin() + 1;
  std::rotate(state_.all.begin(), state_.all.begin() + newer, state_.all.end());
  std::rotate(state_.timestamps.begin(), state_.timestamps.begin() + newer,
              state_.timestamps.end());
}

Status SavedList::add(const std::string& prefix) {
  state_.newest = prefix;
  state_.all.push_back(prefix);
  state_.timestamps.push_back(seconds_since_1970());
  Status status = write();
  const size_t ours = state_.all.size() - others_.size();
  if (keep_ == 0 || ours <= size_t(keep_)) return status;
  // Also where the list cannot be written, or the disk would fill.
  Status removed = remove_oldest(ours - size_t(keep_));
  if (removed.ok()) removed = write();
  return status.ok() ? removed : status;
}

}  // namespace tagflow::actors
