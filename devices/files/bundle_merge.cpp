#include "devices/files/bundle_merge.h"

#include <map>

#include "devices/files/bundle_index.h"
#include "devices/files/bundle_reader.h"
#include "devices/files/bundle_writer.h"

namespace tagflow::checkpoint {
namespace {

using MergedEntries = std::map<std::string, BundleEntry>;

// Merges slices of a tensor that has an entry already.
Status merge_slices(const BundleEntry& entry, const std::string& source,
                    BundleEntry& merged) {
  const auto refuse = [&](std::string_view what) {
    return invalid_argument("[checkpoint] tensor {:?} of \"{}\" {}", entry.key,
                            source, what);
  };
  if (!entry.is_sliced() || !merged.is_sliced())
    return refuse("is in another checkpoint, too");
  if (entry.dtype != merged.dtype || !(entry.shape == merged.shape))
    return refuse(fmt::format("is {}{}, but slices elsewhere are of {}{}",
                              entry.dtype_text(), entry.shape.to_string(),
                              merged.dtype_text(), merged.shape.to_string()));
  if (entry.slices.size() + merged.slices.size() > kMaxSlices)
    return refuse("has too many slices");
  merged.slices.insert(merged.slices.end(), entry.slices.begin(),
                       entry.slices.end());
  return {};
}

}  // namespace

Result<BundleMerge> BundleMerge::prepare(std::span<const std::string> sources,
                                         const std::string& target,
                                         const MergeOptions& options) {
  TAGFLOW_RETURN_IF_ERROR(check_prefix(target));
  BundleMerge merge;
  merge.target_ = target;
  merge.options_ = options.write;
  FileSystem& files = options.write.file_system();
  std::vector<std::unique_ptr<BundleReader>> readers;
  BundleIndex index;
  index.num_shards = 0;
  for (const std::string& source : sources) {
    auto reader = BundleReader::open(source, files);
    if (!reader.ok() && options.allow_missing &&
        reader.status().code() == Code::kNotFound)
      continue;
    TAGFLOW_RETURN_IF_ERROR(reader.status());
    TAGFLOW_RETURN_IF_ERROR((*reader)->check_complete());
    if ((*reader)->num_shards() > INT32_MAX - index.num_shards)
      return invalid_argument("[checkpoint] there are too many shards");
    index.num_shards += (*reader)->num_shards();
    readers.push_back(std::move(*reader));
  }
  if (readers.empty())
    return error(Code::kNotFound,
                 "[checkpoint] none of the {} checkpoints to merge into "
                 "\"{}\" exists",
                 sources.size(), target);

  MergedEntries merged;
  int first_shard = 0;
  for (const auto& reader : readers) {
    for (BundleEntry entry : reader->entries()) {
      entry.shard += first_shard;
      const auto [it, added] = merged.try_emplace(entry.key, entry);
      if (!added)
        TAGFLOW_RETURN_IF_ERROR(
            merge_slices(entry, reader->prefix(), it->second));
    }
    const int shards = reader->num_shards();
    for (int i = 0; i < shards; ++i)
      merge.moves_.push_back(
          {data_path(reader->prefix(), i, shards),
           data_path(target, first_shard + i, index.num_shards)});
    first_shard += shards;
    merge.old_indices_.push_back(index_path(reader->prefix()));
  }
  for (auto& [key, entry] : merged) {
    if (Status status = check_disjoint(entry.resolved_slices()); !status.ok())
      return std::move(status).with_prefix(
          fmt::format("[checkpoint] tensor {:?}: ", key));
    index.entries.push_back(std::move(entry));
  }
  TAGFLOW_ASSIGN(const std::string bytes, format_bundle_index(index));
  TAGFLOW_ASSIGN(merge.index_,
                 AtomicFile::create(index_path(target), options.write));
  TAGFLOW_RETURN_IF_ERROR(merge.index_->append(bytes));
  TAGFLOW_RETURN_IF_ERROR(merge.index_->finish());
  return merge;
}

Status BundleMerge::publish() {
  FileSystem& files = options_.file_system();
  TAGFLOW_RETURN_IF_ERROR(remove_index(target_, options_));
  for (const Move& move : moves_)
    TAGFLOW_RETURN_IF_ERROR(files.rename(move.from, move.to));
  const std::string folder = folder_of(target_);
  if (options_.sync) TAGFLOW_RETURN_IF_ERROR(files.sync_folder(folder));
  TAGFLOW_RETURN_IF_ERROR(index_->publish());
  if (options_.sync) TAGFLOW_RETURN_IF_ERROR(files.sync_folder(folder));
  for (const std::string& path : old_indices_)
    if (path != index_->target()) TAGFLOW_RETURN_IF_ERROR(files.remove(path));
  return {};
}

}  // namespace tagflow::checkpoint
