#include "actors/checkpoint/checkpoint_folder.h"

#include <utility>

#include "devices/files/saved_files.h"

namespace tagflow::actors {

Result<std::unique_ptr<CheckpointFolder>> CheckpointFolder::open(
    const std::string& folder, const std::string& name, int keep,
    const checkpoint::WriteOptions& options) {
  std::unique_ptr<CheckpointFolder> opened(
      new CheckpointFolder(folder, name, keep, options));
  TAGFLOW_RETURN_IF_ERROR(options.file_system().make_folder(folder));
  TAGFLOW_ASSIGN(opened->lock_, options.file_system().lock_folder(folder));
  if (opened->lock_->is_exclusive()) {
    opened->list_.end_killed_save();
    checkpoint::remove_temporary_files(folder, name + "-", options);
  }
  // What is found now may be what a killed process has done, and not synced.
  if (options.sync)
    TAGFLOW_RETURN_IF_ERROR(options.file_system().sync_folder(folder));
  TAGFLOW_RETURN_IF_ERROR(opened->list_.read());
  return opened;
}

Status CheckpointFolder::write(Checkpoint checkpoint,
                               std::span<const std::string> names,
                               const ModelObjects& objects,
                               const WriteHeld& write_held) {
  const int64_t step = checkpoint.step;
  Status status =
      write_there(std::move(checkpoint), names, objects, write_held);
  // If the folder has gone, that is why, whatever failed.
  if (!status.ok())
    if (Status moved = lock_->check_place(); !moved.ok()) status = moved;
  return std::move(status).with_prefix(
      fmt::format("[saver] the checkpoint of step {}: ", step));
}

Result<std::vector<checkpoint::ForeignShard>> CheckpointFolder::held_shards(
    const Checkpoint& checkpoint, const std::string& prefix,
    const WriteHeld& write_held) {
  if (checkpoint.snapshot.held.empty())
    return std::vector<checkpoint::ForeignShard>();
  // A worker that was given up in an earlier save may have left its file.
  if (lock_->is_exclusive())
    checkpoint::remove_temporary_files(folder_, name_ + "-", options_);
  return write_held(checkpoint.snapshot, prefix);
}

Status CheckpointFolder::write_there(Checkpoint checkpoint,
                                     std::span<const std::string> names,
                                     const ModelObjects& objects,
                                     const WriteHeld& write_held) {
  // Another saver may have locked a folder of that name since.
  TAGFLOW_RETURN_IF_ERROR(lock_->check_place());
  TAGFLOW_ASSIGN(std::string prefix, list_.free_prefix(checkpoint.step));
  TAGFLOW_ASSIGN(auto shards, held_shards(checkpoint, prefix, write_held));
  std::vector<std::string> left;
  for (const auto& shard : shards) left.push_back(shard.path);
  const auto writer = prepare_checkpoint(prefix, std::move(checkpoint), names,
                                         objects, std::move(shards), options_);
  // Not all of them may have been taken over.
  if (!writer.ok())
    for (const std::string& path : left)
      static_cast<void>(options_.file_system().remove(path));
  TAGFLOW_RETURN_IF_ERROR(writer.status());
  // The above may take long.
  TAGFLOW_RETURN_IF_ERROR(lock_->check_place());
  auto list = list_.announce(prefix);
  TAGFLOW_RETURN_IF_ERROR((*writer)->publish());
  return list_.add(std::move(prefix), std::move(list));
}

Result<LoadedCheckpoint> CheckpointFolder::load(
    std::span<const GraphVariable> variables, const ModelObjects& objects,
    const Readers& readers) {
  auto loaded =
      load_checkpoint(folder_, variables, objects, OtherTensors::kRefused,
                      options_.file_system(), readers);
  if (loaded.ok()) list_.put_first(loaded->passed_over);
  return loaded;
}

}  // namespace tagflow::actors
