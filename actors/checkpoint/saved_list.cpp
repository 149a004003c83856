#include "actors/checkpoint/saved_list.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "actors/checkpoint/checkpoint.h"
#include "devices/files/bundle_index.h"
#include "devices/files/bundle_reader.h"
#include "devices/files/saved_files.h"

namespace tagflow::actors {
namespace {

namespace fs = std::filesystem;

bool has_path(std::span<const std::string> paths, const std::string& path) {
  return std::ranges::any_of(paths, [&](const std::string& one) {
    return checkpoint::is_same_path(one, path);
  });
}

}  // namespace

void SavedList::end_killed_save() const {
  checkpoint::FileSystem& files = options_.file_system();
  for (const std::string& path : checkpoint::temporary_lists(folder_, files)) {
    const auto coming = checkpoint::read_checkpoint_list(folder_, path, files);
    if (!coming.ok() || coming->newest.empty()) continue;
    const std::string& prefix = coming->newest;
    if (!files.exists(checkpoint::index_path(prefix))) {
      if (is_left_of_ours(prefix))
        static_cast<void>(checkpoint::remove_bundle(prefix, options_));
      continue;
    }
    const auto now = checkpoint::read_checkpoint_state(folder_, files);
    const bool is_next =
        now.ok() ? now->newest.empty() || has_path(coming->all, now->newest)
                 : checkpoint::names_nothing(now.status());
    if (!is_next || !is_whole_and_ours(prefix)) continue;
    const Status renamed =
        files.rename(path, checkpoint::checkpoint_state_path(folder_));
    if (renamed.ok() && options_.sync)
      static_cast<void>(files.sync_folder(folder_));
  }
}

Status SavedList::read() {
  checkpoint::FileSystem& files = options_.file_system();
  auto state = checkpoint::read_checkpoint_state(folder_, files);
  if (!state.ok()) {
    if (!checkpoint::names_nothing(state.status())) return state.status();
    state = checkpoint::CheckpointState();
  }
  saved_.clear();
  last_preserved_ = state->last_preserved;
  for (size_t i = 0; i < state->all.size(); ++i) {
    const std::string& prefix = state->all[i];
    if (has(prefix)) continue;
    if (files.exists(checkpoint::index_path(prefix))) {
      const double time = state->timestamps.empty() ? 0 : state->timestamps[i];
      saved_.push_back({prefix, time, is_other(prefix)});
    } else if (is_left_of_ours(prefix)) {
      static_cast<void>(checkpoint::remove_bundle(prefix, options_));
    }
  }
  const auto newest = checkpoint::find_newest_checkpoint(folder_, {}, files);
  const Code code = newest.status().code();
  if (code == Code::kNotFound || code == Code::kDataLoss) return {};
  TAGFLOW_RETURN_IF_ERROR(newest.status());
  const std::string& prefix = newest->prefix;
  if (!has(prefix) && has_our_name(prefix))
    saved_.push_back({prefix, options_.file_system().now(), is_other(prefix)});
  return {};
}

bool SavedList::has_our_name(const std::string& prefix) const {
  std::string name = fs::path(prefix).filename().string();
  if (!name.starts_with(name_ + "-")) return false;
  name.erase(0, name_.size() + 1);
  return !name.empty() &&
         name.find_first_not_of("0123456789.") == std::string::npos;
}

// Our checkpoints have no MetaGraph beside them. Others are not ours, nor are
// checkpoints of version 1, which have no index.
bool SavedList::may_be_ours(const std::string& prefix) const {
  checkpoint::FileSystem& files = options_.file_system();
  return files.is_same_folder(checkpoint::folder_of(prefix), folder_) &&
         has_our_name(prefix) && !files.exists(prefix + ".meta");
}

bool SavedList::is_left_of_ours(const std::string& prefix) const {
  return may_be_ours(prefix) && !options_.file_system().exists(prefix);
}

bool SavedList::is_other(const std::string& prefix) const {
  if (!may_be_ours(prefix)) return true;
  const auto file =
      checkpoint::BundleReader::open(prefix, options_.file_system());
  return !file.ok() || (*file)->find(kStepKey) == nullptr;
}

bool SavedList::is_whole_and_ours(const std::string& prefix) const {
  if (!may_be_ours(prefix)) return false;
  const auto file =
      checkpoint::BundleReader::open(prefix, options_.file_system());
  if (!file.ok() || !(*file)->check_complete().ok()) return false;
  const auto step = (*file)->read(kStepKey);
  if (!step.ok()) return false;
  const auto number = step->item<int64_t>();
  if (!number.ok()) return false;
  const std::string name = fs::path(prefix).filename().string();
  const std::string of_step = fmt::format("{}-{}", name_, *number);
  return name == of_step || name.starts_with(of_step + ".");
}

bool SavedList::has(const std::string& prefix) const {
  return std::ranges::any_of(saved_, [&](const Saved& one) {
    return checkpoint::is_same_path(one.prefix, prefix);
  });
}

Result<std::string> SavedList::free_prefix(int64_t step) {
  saved_.reserve(saved_.size() + 1);
  const std::string first =
      (fs::path(folder_) / fmt::format("{}-{}", name_, step)).string();
  std::string prefix = first;
  checkpoint::FileSystem& files = options_.file_system();
  const auto is_taken = [&] {
    return has(prefix) || files.exists(checkpoint::index_path(prefix)) ||
           files.exists(prefix) || files.exists(prefix + ".meta");
  };
  constexpr int kMostTries = 10'000;
  for (int i = 1; is_taken(); ++i) {
    if (i > kMostTries)
      return error(
          Code::kResourceExhausted,
          "[saver] no name is free for \"{}\", or its folder cannot be "
          "searched",
          first);
    prefix = fmt::format("{}.{}", first, i);
  }
  return prefix;
}

checkpoint::CheckpointState SavedList::state() const {
  checkpoint::CheckpointState state;
  state.newest = newest_;
  state.last_preserved = last_preserved_;
  for (const Saved& one : saved_) {
    state.all.push_back(one.prefix);
    state.timestamps.push_back(one.time);
  }
  return state;
}

Result<std::unique_ptr<checkpoint::AtomicFile>> SavedList::announce(
    const std::string& prefix) const {
  checkpoint::CheckpointState coming = state();
  coming.newest = prefix;
  coming.all.push_back(prefix);
  coming.timestamps.push_back(options_.file_system().now());
  auto list = checkpoint::prepare_checkpoint_state(folder_, coming, options_);
  // Otherwise a signal could leave a checkpoint without its list.
  if (list.ok()) (*list)->keep_after_signals();
  return list;
}

Status SavedList::remove_oldest(size_t count) {
  std::vector<Saved> left;
  for (const Saved& one : saved_) {
    if (one.is_other || count == 0) {
      left.push_back(one);
      continue;
    }
    --count;
    TAGFLOW_RETURN_IF_ERROR(checkpoint::remove_bundle(one.prefix, options_));
  }
  saved_ = std::move(left);
  return {};
}

void SavedList::put_first(std::span<const std::string> damaged) {
  const auto is_damaged = [&](const Saved& one) {
    return has_path(damaged, one.prefix);
  };
  // Clang 14 cannot compile std::ranges::stable_partition.
  std::stable_partition(saved_.begin(), saved_.end(), is_damaged);
}

Status SavedList::add(std::string prefix,
                      Result<std::unique_ptr<checkpoint::AtomicFile>> list) {
  saved_.push_back({std::move(prefix), options_.file_system().now()});
  newest_ = saved_.back().prefix;
  Status status = list.ok() ? (*list)->publish() : list.status();
  if (status.ok() && options_.sync)
    status = options_.file_system().sync_folder(folder_);
  const auto ours = size_t(std::ranges::count(saved_, false, &Saved::is_other));
  if (keep_ == 0 || ours <= size_t(keep_)) return status;
  // Removes them even if the list cannot be written: otherwise the disk would
  // fill.
  Status removed = remove_oldest(ours - size_t(keep_));
  if (removed.ok())
    removed = checkpoint::write_checkpoint_state(folder_, state(), options_);
  return status.ok() ? removed : status;
}

}  // namespace tagflow::actors
