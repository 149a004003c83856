#include "actors/checkpoint/saver.h"

#include <algorithm>
#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <span>
#include <system_error>
#include <thread>
#include <utility>

#include "actors/checkpoint/checkpoint_folder.h"
#include "actors/checkpoint/snapshot.h"
#include "actors/session/backend.h"
#include "actors/session/session.h"
#include "devices/files/bundle_shard.h"
#include "graph/fault.h"

namespace tagflow::actors {
namespace {

using Clock = std::chrono::steady_clock;

Status check(const SaverOptions& options) {
  if (options.folder.empty())
    return invalid_argument("[saver] the folder has no name");
  if (options.name.empty() || options.name.find('/') != options.name.npos)
    return invalid_argument("[saver] \"{}\" is not a valid file name",
                            options.name);
  // A file name has at most 255 bytes, and contains more than this name.
  constexpr size_t kMostNameBytes = 200;
  if (options.name.size() > kMostNameBytes)
    return invalid_argument(
        "[saver] a name of {} bytes is too long, at most {} are possible",
        options.name.size(), kMostNameBytes);
  if (options.shard_patience.count() <= 0)
    return invalid_argument("[saver] shard_patience must be positive");
  if (options.keep < 0 || options.every_steps < 0 || options.every.count() < 0)
    return invalid_argument(
        "[saver] keep, every_steps and every must not be negative");
  return {};
}

bool has_any(const Snapshot& snapshot, std::span<const std::string> names) {
  return std::ranges::any_of(
      names, [&](const std::string& name) { return snapshot.has(name); });
}

}  // namespace

// At most two threads are active inside: one that saves, and the writer.
class Saver::Parts {
 public:
  explicit Parts(SaverOptions options)
      : options_(std::move(options)),
        write_{options_.files, options_.sync, /*makes_folders=*/false} {}
  ~Parts() { static_cast<void>(close()); }

  Status open(const Session& session);
  const Status& why_not_workers() const { return why_not_workers_; }
  Result<std::optional<Restored>> restore();
  Status save(int64_t step);
  Status save_if_due(int64_t step);
  Status wait();
  Status close();
  std::optional<int64_t> saved_step() const {
    std::lock_guard lock(mutex_);
    return saved_step_;
  }
  std::vector<std::string> left_out() const {
    std::lock_guard lock(mutex_);
    return left_out_;
  }

 private:
  Status choose_writers(const Session& session);
  Result<std::optional<Restored>> restore_by(const Readers& readers);
  std::string trial_prefix() const;
  void write_all();
  Status save_alone(int64_t step);
  // Waits until the writer is idle; returns its error, once.
  Status wait_for_writer();
  Status take_error();
  Clock::time_point now() const {
    return options_.clock ? options_.clock() : Clock::now();
  }

  const SaverOptions options_;
  const checkpoint::WriteOptions write_;
  std::vector<GraphVariable> variables_;
  std::vector<std::string> names_;
  ModelObjects objects_;
  std::unique_ptr<Snapshots> snapshots_;
  Status why_not_workers_;

  std::mutex saves_mutex_;  // guards the group below; locked before mutex_
  int64_t last_step_ = 0;
  Clock::time_point last_time_ = now();

  mutable std::mutex mutex_;  // guards the group below
  std::condition_variable changed_;
  std::optional<Checkpoint> next_;  // to be written
  bool is_writing_ = false;
  bool is_closed_ = false;
  Status error_;
  std::optional<int64_t> saved_step_;
  std::vector<std::string> left_out_;

  std::unique_ptr<CheckpointFolder> folder_;  // the writer's, while it writes
  std::thread writer_;                        // joined by close()
};

Status Saver::Parts::open(const Session& session) {
  TAGFLOW_ASSIGN(objects_, ModelObjects::make(session.graph(), options_.model));
  TAGFLOW_ASSIGN(auto variables, find_variables(session.graph()));
  variables_ = objects_.without_spare(std::move(variables));
  for (const GraphVariable& variable : variables_)
    names_.push_back(variable.name);
  TAGFLOW_ASSIGN(snapshots_, Snapshots::create(session));
  TAGFLOW_ASSIGN(folder_, CheckpointFolder::open(options_.folder, options_.name,
                                                 options_.keep, write_));
  TAGFLOW_RETURN_IF_ERROR(choose_writers(session));
  try {
    writer_ = std::thread([this] { write_all(); });
  } catch (const std::system_error& thrown) {
    return error(Code::kResourceExhausted, "[saver] cannot create a thread: {}",
                 thrown.what());
  }
  return {};
}

// Not a checkpoint of any step.
std::string Saver::Parts::trial_prefix() const {
  return (std::filesystem::path(options_.folder) / (options_.name + "-trial"))
      .string();
}

Status Saver::Parts::choose_writers(const Session& session) {
  const auto& backend = session.options().backend;
  const bool has_workers = backend != nullptr && !backend->has_local_files();
  if (options_.writers == ShardWriters::kMaster) return {};
  if (!has_workers && options_.writers == ShardWriters::kAny) return {};
  Status status =
      snapshots_->hold_at_workers(trial_prefix(), write_.file_system());
  if (options_.writers == ShardWriters::kWorkers || status.ok()) return status;
  // A worker that is lost is lost for whoever writes.
  if (status.code() == Code::kUnavailable) return status;
  why_not_workers_ = std::move(status);
  return {};
}

Result<std::optional<Restored>> Saver::Parts::restore() {
  std::lock_guard saves(saves_mutex_);
  TAGFLOW_RETURN_IF_ERROR(wait_for_writer());
  const Readers readers = snapshots_->readers();
  auto restored = restore_by(readers);
  // What a worker could not read this process reads; or it says what is
  // damaged, and goes back to an older checkpoint.
  const Status first = restored.status();
  if (!readers.empty() && !first.ok() && first.code() != Code::kUnavailable &&
      first.code() != Code::kCancelled) {
    restored = restore_by({});
    if (restored.ok() && *restored)
      (*restored)->not_by_workers = first.message();
    else if (!restored.ok() && restored.status().message() != first.message())
      return error(restored.status().code(), "{}; the workers could not: {}",
                   restored.status().message(), first.message());
  }
  if (!restored.ok() || !*restored) return restored;
  last_step_ = (*restored)->step;
  last_time_ = now();
  std::lock_guard lock(mutex_);
  saved_step_ = last_step_;
  return restored;
}

// Nothing if there is no checkpoint.
Result<std::optional<Restored>> Saver::Parts::restore_by(
    const Readers& readers) {
  auto loaded = folder_->load(variables_, objects_, readers);
  if (loaded.status().code() == Code::kNotFound)
    return std::optional<Restored>();
  if (!loaded.ok()) return std::move(loaded).status();
  TAGFLOW_RETURN_IF_ERROR(snapshots_->restore(
      loaded->checkpoint.snapshot, loaded->stored, options_.shard_patience));
  return std::optional<Restored>(std::move(loaded->restored));
}

Status Saver::Parts::save(int64_t step) {
  std::lock_guard saves(saves_mutex_);
  return save_alone(step);
}

Status Saver::Parts::save_if_due(int64_t step) {
  std::lock_guard saves(saves_mutex_);
  const bool is_due =
      (options_.every_steps > 0 && step - last_step_ >= options_.every_steps) ||
      (options_.every.count() > 0 && now() - last_time_ >= options_.every);
  return is_due ? save_alone(step) : take_error();
}

Status Saver::Parts::save_alone(int64_t step) {
  if (step < 0 || step > kMostSteps)
    return invalid_argument("[saver] {} is not a valid step number", step);
  {  // The saver cannot be closed meanwhile.
    std::lock_guard lock(mutex_);
    if (is_closed_)
      return error(Code::kFailedPrecondition, "[saver] the saver is closed");
  }
  TAGFLOW_RETURN_IF_ERROR(wait_for_writer());
  Checkpoint checkpoint;
  checkpoint.step = step;
  TAGFLOW_ASSIGN(checkpoint.snapshot, snapshots_->take(options_.patience));
  if (!names_.empty() && !has_any(checkpoint.snapshot, names_))
    return error(Code::kFailedPrecondition,
                 "[saver] there is nothing to save: variable \"{}\"{} "
                 "initialized",
                 names_[0],
                 names_.size() == 1 ? " is not" : " and all others are not");
  last_step_ = step;
  last_time_ = now();
  std::lock_guard lock(mutex_);
  left_out_ = std::move(checkpoint.snapshot.left_out);
  next_ = std::move(checkpoint);
  changed_.notify_all();
  return {};
}

Status Saver::Parts::wait() {
  std::lock_guard saves(saves_mutex_);
  return wait_for_writer();
}

Status Saver::Parts::wait_for_writer() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !next_ && !is_writing_; });
  return std::exchange(error_, Status());
}

Status Saver::Parts::take_error() {
  std::lock_guard lock(mutex_);
  return std::exchange(error_, Status());
}

Status Saver::Parts::close() {
  std::lock_guard saves(saves_mutex_);
  // The thread must end even after an error.
  Status status = guarded("saver", [this] { return wait_for_writer(); });
  {
    std::lock_guard lock(mutex_);
    is_closed_ = true;
    changed_.notify_all();
  }
  if (writer_.joinable()) writer_.join();
  if (folder_) folder_->release();
  return status;
}

void Saver::Parts::write_all() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return next_ || is_closed_; });
    if (!next_) return;
    Checkpoint checkpoint = *std::exchange(next_, std::nullopt);
    const int64_t step = checkpoint.step;
    is_writing_ = true;
    lock.unlock();
    const Clock::time_point begin = Clock::now();
    Status status = guarded("saver", [&] {
      return folder_->write(
          std::move(checkpoint), names_, objects_,
          [this](const Snapshot& snapshot, const std::string& prefix) {
            return snapshots_->write_held(
                snapshot, prefix,
                [this](const std::string& name) -> const std::string& {
                  return objects_.key_of(name);
                },
                write_, options_.shard_patience);
          });
    });
    if (options_.on_written)
      static_cast<void>(guarded([&] {
        options_.on_written({step, status, Clock::now() - begin});
      }));
    lock.lock();
    is_writing_ = false;
    if (status.ok()) saved_step_ = step;
    error_ = std::move(status);
    changed_.notify_all();
  }
}

Saver::Saver(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Saver::~Saver() = default;

Result<std::unique_ptr<Saver>> Saver::create(const Session& session,
                                             SaverOptions options) try {
  TAGFLOW_RETURN_IF_ERROR(check(options));
  auto parts = std::make_unique<Parts>(std::move(options));
  TAGFLOW_RETURN_IF_ERROR(parts->open(session));
  return std::unique_ptr<Saver>(new Saver(std::move(parts)));
} catch (...) {
  return current_fault("saver");
}

Result<std::optional<Restored>> Saver::restore() {
  return guarded("saver", [this] { return parts_->restore(); });
}
Status Saver::save(int64_t step) {
  return guarded("saver", [&] { return parts_->save(step); });
}
Status Saver::save_if_due(int64_t step) {
  return guarded("saver", [&] { return parts_->save_if_due(step); });
}
Status Saver::wait() { return parts_->wait(); }
Status Saver::close() { return parts_->close(); }
std::optional<int64_t> Saver::saved_step() const {
  return parts_->saved_step();
}

Status Saver::why_not_workers() const { return parts_->why_not_workers(); }

std::vector<std::string> Saver::left_out() const { return parts_->left_out(); }

}  // namespace tagflow::actors
