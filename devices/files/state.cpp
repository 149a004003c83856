#include "devices/files/state.h"

#include <google/protobuf/arena.h>

#include <algorithm>
#include <charconv>
#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <system_error>
#include <tuple>

#include "devices/files/bundle_reader.h"
#include "graph/file/wire.h"
#include "graph/proto/checkpoint.pb.h"

namespace tagflow::checkpoint {
namespace {

namespace pb = google::protobuf;

namespace fs = std::filesystem;

constexpr uint64_t kMaxStateBytes = uint64_t{1} << 24;

std::string in_folder(const std::string& folder, const std::string& path) {
  return (fs::path(folder) / path).string();  // `path` if it is absolute
}

std::string relative_to(const std::string& folder, const std::string& prefix) {
  const fs::path from = fs::absolute(folder).lexically_normal();
  const fs::path path = fs::absolute(prefix).lexically_normal();
  const std::string relative = path.lexically_relative(from).string();
  return relative.empty() || relative.starts_with("..") ? path.string()
                                                        : relative;
}

// Whether it is complete; damage that only reading reveals is not checked.
Status check(const std::string& prefix, const DamagedCheckpoints& known,
             FileSystem& files) {
  if (const auto it = known.find(prefix); it != known.end()) return it->second;
  const auto reader = BundleReader::open(prefix, files);
  return reader.ok() ? (*reader)->check_complete() : reader.status();
}

bool is_damage(Code code) {
  return code == Code::kDataLoss || code == Code::kNotFound;
}

// Whether a path may be wrong that somebody has written: it is too long, or
// leads to a file of another kind, or to where nobody may look.
bool is_wrong_name(Code code) {
  return code == Code::kInvalidArgument || code == Code::kPermissionDenied ||
         code == Code::kUnimplemented;
}

struct Found {
  std::string prefix;
  std::string_view series;  // the prefix without "-STEP" or "-STEP.COPY"
  int64_t step = -1;        // -1: it has none
  int64_t copy = 0;
  int64_t time = 0;
};

void split_step(Found& found) {
  found.series = found.prefix;
  const size_t dash = found.prefix.rfind('-');
  if (dash == std::string::npos) return;
  const char* const end = found.prefix.data() + found.prefix.size();
  const char* const digits = found.prefix.data() + dash + 1;
  int64_t step = 0, copy = 0;
  std::from_chars_result read = std::from_chars(digits, end, step);
  if (read.ec == std::errc() && read.ptr != end && *read.ptr == '.')
    read = std::from_chars(read.ptr + 1, end, copy);
  if (read.ec != std::errc() || read.ptr != end || step < 0 || copy < 0) return;
  found.copy = copy;
  found.series = found.series.substr(0, dash);
  found.step = step;
}

// Prefixes of the bundles in a folder. The series that was written to last
// comes first; within a series the step decides, since copied files may all
// have the same time.
Result<std::vector<std::string>> bundles_in(const std::string& folder,
                                            FileSystem& files) {
  constexpr std::string_view kSuffix = ".index";
  std::deque<Found> found;                   // series point into it
  std::map<std::string_view, int64_t> last;  // by series
  TAGFLOW_ASSIGN(const auto names, files.list(folder));
  for (const std::string& name : names) {
    if (!name.ends_with(kSuffix)) continue;
    std::string path = in_folder(folder, name);
    const int64_t time = files.written_at(path);
    path.resize(path.size() - kSuffix.size());
    Found& one = found.emplace_back();
    one.prefix = std::move(path);
    one.time = time;
    split_step(one);
    const auto [entry, is_new] = last.emplace(one.series, time);
    if (!is_new) entry->second = std::max(entry->second, time);
  }
  std::vector<const Found*> order;
  for (const Found& one : found) order.push_back(&one);
  std::ranges::sort(order, std::ranges::greater(), [&](const Found* one) {
    return std::tuple(last.at(one->series), one->series, one->step, one->copy,
                      one->time);
  });
  std::vector<std::string> prefixes;
  for (const Found* one : order) prefixes.push_back(one->prefix);
  return prefixes;
}

}  // namespace

std::string checkpoint_state_path(const std::string& folder) {
  return (fs::path(folder) / "checkpoint").string();
}

bool is_same_path(const std::string& a, const std::string& b) {
  std::error_code unknown;
  return fs::absolute(a, unknown).lexically_normal() ==
         fs::absolute(b, unknown).lexically_normal();
}

bool names_nothing(const Status& status) {
  return status.code() == Code::kNotFound ||
         status.code() == Code::kInvalidArgument;
}

Result<CheckpointState> read_checkpoint_state(const std::string& folder,
                                              FileSystem& files) {
  return read_checkpoint_list(folder, checkpoint_state_path(folder), files);
}

Result<CheckpointState> read_checkpoint_list(const std::string& folder,
                                             const std::string& path,
                                             FileSystem& files) {
  TAGFLOW_ASSIGN(const std::string text,
                 read_whole(files, path, kMaxStateBytes));
  pb::Arena arena;
  auto& proto = *pb::Arena::CreateMessage<tensorflow::CheckpointState>(&arena);
  if (Status status =
          graph::parse_text(text, "checkpoint state", graph::Limits{}, &proto);
      !status.ok())
    return invalid_argument("[checkpoint] \"{}\" names no checkpoints: {}",
                            path, status.message());
  CheckpointState state;
  if (!proto.model_checkpoint_path().empty())
    state.newest = in_folder(folder, proto.model_checkpoint_path());
  for (const std::string& prefix : proto.all_model_checkpoint_paths())
    state.all.push_back(in_folder(folder, prefix));
  if (size_t(proto.all_model_checkpoint_timestamps_size()) == state.all.size())
    state.timestamps.assign(proto.all_model_checkpoint_timestamps().begin(),
                            proto.all_model_checkpoint_timestamps().end());
  state.last_preserved = proto.last_preserved_timestamp();
  return state;
}

Result<std::unique_ptr<AtomicFile>> prepare_checkpoint_state(
    const std::string& folder, const CheckpointState& state,
    const WriteOptions& options) {
  pb::Arena arena;
  auto& proto = *pb::Arena::CreateMessage<tensorflow::CheckpointState>(&arena);
  if (!state.newest.empty())
    proto.set_model_checkpoint_path(relative_to(folder, state.newest));
  for (const std::string& prefix : state.all)
    proto.add_all_model_checkpoint_paths(relative_to(folder, prefix));
  for (const double time : state.timestamps)
    proto.add_all_model_checkpoint_timestamps(time);
  proto.set_last_preserved_timestamp(state.last_preserved);
  TAGFLOW_ASSIGN(auto file,
                 AtomicFile::create(checkpoint_state_path(folder), options));
  TAGFLOW_RETURN_IF_ERROR(file->append(graph::print_text(proto)));
  TAGFLOW_RETURN_IF_ERROR(file->finish());
  return file;
}

Status write_checkpoint_state(const std::string& folder,
                              const CheckpointState& state,
                              const WriteOptions& options) {
  TAGFLOW_ASSIGN(const auto file,
                 prepare_checkpoint_state(folder, state, options));
  TAGFLOW_RETURN_IF_ERROR(file->publish());
  return options.sync ? options.file_system().sync_folder(folder) : Status();
}

Result<NewestCheckpoint> find_newest_checkpoint(const std::string& folder,
                                                const DamagedCheckpoints& known,
                                                FileSystem& files) {
  const auto state = read_checkpoint_state(folder, files);
  if (!state.ok() && !names_nothing(state.status())) return state.status();
  TAGFLOW_ASSIGN(std::vector<std::string> candidates,
                 bundles_in(folder, files));
  bool leads_elsewhere = false;
  if (state.ok() && !state->newest.empty()) {
    leads_elsewhere = std::erase_if(candidates, [&](const std::string& prefix) {
                        return is_same_path(prefix, state->newest);
                      }) == 0;
    candidates.insert(candidates.begin(), state->newest);
  }
  NewestCheckpoint newest;
  Status first;
  for (const std::string& prefix : candidates) {
    Status status = check(prefix, known, files);
    if (status.ok()) {
      newest.prefix = prefix;
      return newest;
    }
    // Other errors may be temporary; then an older checkpoint would be taken
    // for the newest.
    const bool is_elsewhere = leads_elsewhere && newest.damaged.empty();
    if (!is_damage(status.code()) &&
        !(is_elsewhere && is_wrong_name(status.code())))
      return status;
    newest.damaged.push_back({prefix, std::string(status.message())});
    if (first.ok()) first = std::move(status);
  }
  if (first.ok())
    return error(Code::kNotFound,
                 "[checkpoint] there is no checkpoint in \"{}\"", folder);
  if (!is_damage(first.code())) return first;
  // The caller must not mistake this for an empty folder.
  return error(Code::kDataLoss,
               "[checkpoint] there is no complete checkpoint in \"{}\": {}; "
               "to start anew, use another folder, or remove the checkpoints "
               "and the list \"{}\"",
               folder, first.message(), checkpoint_state_path(folder));
}

}  // namespace tagflow::checkpoint
