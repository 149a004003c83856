#include "tests/net/protocol/sim_training.h"

#include <algorithm>
#include <utility>

#include "actors/checkpoint/training_loop.h"
#include "devices/files/bundle_index.h"
#include "devices/files/bundle_reader.h"
#include "devices/files/saved_files.h"
#include "tests/net/protocol/sim_undisturbed.h"

namespace tagflow::net::simulated {

namespace {

constexpr const char* kName = "model.ckpt";

std::string variable_name(size_t i) { return "v" + std::to_string(i); }
std::string random_name(size_t i) { return "noise" + std::to_string(i); }

// Contents of a queue, as Note [Saved contents] has them.
Tensor queue_tensor(const std::string& name,
                    const std::vector<uint64_t>& elements) {
  std::vector<std::string> texts = {"queue", "", name};
  for (uint64_t element : elements) texts.push_back(std::to_string(element));
  return Tensor::of<std::string>({int64_t(texts.size())}, texts);
}

std::vector<uint64_t> elements_of(const actors::Snapshot& snapshot,
                                  const std::string& name, bool& is_there) {
  std::vector<uint64_t> elements;
  for (const Tensor& tensor : snapshot.contents) {
    const auto texts = tensor.flat<std::string>();
    if (texts[2] != name) continue;
    is_there = true;
    for (const std::string& text : texts.subspan(3))
      elements.push_back(std::stoull(text));
  }
  return elements;
}

// More than the value, so that parts of two files are no tensor.
std::vector<uint64_t> numbers_of(const Shard& shard, size_t num_elements) {
  std::vector<uint64_t> numbers(num_elements + 2);
  uint64_t* number = numbers.data();
  *number++ = shard.value;
  *number++ = uint64_t(shard.steps);
  for (size_t i = 0; i < num_elements; ++i) *number++ = mixed(shard.value + i);
  return numbers;
}

actors::Snapshot snapshot_of(const Shards& shards, uint64_t seed,
                             size_t num_elements) {
  actors::Snapshot snapshot;
  snapshot.seed = seed;
  for (const auto& [i, shard] : shards) {
    const auto numbers = numbers_of(shard, num_elements);
    snapshot.variables[variable_name(i)] =
        Tensor::of<uint64_t>({int64_t(numbers.size())}, numbers);
    snapshot.run_counts[random_name(i)] = shard.runs;
    snapshot.contents.push_back(
        queue_tensor("rows" + std::to_string(i), shard.rows));
    snapshot.contents.push_back(
        queue_tensor("log" + std::to_string(i), shard.log));
  }
  return snapshot;
}

// Nothing if it is not what snapshot_of() has made.
std::optional<Shards> shards_of(const actors::Snapshot& snapshot,
                                const TrainingPlan& plan) {
  Shards shards;
  for (size_t i = 0; i < plan.num_variables; ++i) {
    const auto variable = snapshot.variables.find(variable_name(i));
    const auto runs = snapshot.run_counts.find(random_name(i));
    if (variable == snapshot.variables.end() ||
        runs == snapshot.run_counts.end())
      return std::nullopt;
    const auto numbers = variable->second.flat<uint64_t>();
    bool has_rows = false, has_log = false;
    Shard& shard = shards[i];
    shard.value = numbers[0];
    shard.steps = int64_t(numbers[1]);
    shard.runs = runs->second;
    shard.rows = elements_of(snapshot, "rows" + std::to_string(i), has_rows);
    shard.log = elements_of(snapshot, "log" + std::to_string(i), has_log);
    const auto all = numbers_of(shard, plan.num_elements);
    if (!std::ranges::equal(numbers, all) || !has_rows || !has_log)
      return std::nullopt;
  }
  return shards;
}

}  // namespace

// One session of the command, and its saver. What it does not share with
// actors/checkpoint/saver.h is that no thread but a fiber writes.
class TrainingMaster::Run final : public actors::TrainingRun {
 public:
  Run(TrainingMaster& master, Master& session, uint64_t number)
      : master_(master),
        world_(master.world_),
        plan_(master.plan_),
        watch_(master.watch_),
        session_(session),
        number_(number),
        files_(world_, master.disk_, master.process_, master.clock_ahead_,
               [&master](Duration time) { master.pass(time); }),
        options_{&files_, plan_.sync, /*makes_folders=*/false} {
    for (size_t i = 0; i < plan_.num_variables; ++i) {
      names_.push_back(variable_name(i));
      variables_.push_back(
          {.name = names_.back(),
           .dtype = DataType::kUInt64,
           .shape = PartialShape({int64_t(plan_.num_elements + 2)})});
    }
  }

  // Begins, with as many workers as the plan wants.
  Status connect();
  Status open();
  // As the end of a saver does.
  void end();
  // An error that ends the run is a loss, or one of what came before the first
  // step or after the last.
  void check_error(const Status& status) const;
  const std::vector<MasterStep::Part>& parts() const { return parts_; }
  void keep_state_of(std::vector<MasterStep::Part> parts) {
    unrestored_ = std::move(parts);
  }

  Result<std::optional<int64_t>> restore() override;
  Status init() override;
  Status step(int64_t number) override;
  Status save(int64_t step) override;
  Status save_if_due(int64_t step) override;
  Status wait() override;
  std::optional<int64_t> saved_step() const override { return saved_step_; }
  Status close() override;

 private:
  enum class Call : uint8_t { kBegin, kStep, kSaveIfDue, kEnd };
  bool has(const MasterStep::Part& part) const;
  Status run(Script script, Answered& answered);
  Status load(const Shards& shards);
  Result<actors::LoadedCheckpoint> load_files();
  void start_writing(int64_t step, const Shards& shards);
  void write(actors::Checkpoint checkpoint);
  void remove_oldest();
  Status wait_for_writer();

  TrainingMaster& master_;
  World& world_;
  const TrainingPlan& plan_;
  TrainingWatch& watch_;
  Master& session_;
  const uint64_t number_;
  DiskFiles files_;
  const checkpoint::WriteOptions options_;
  std::vector<std::string> names_;
  std::vector<actors::GraphVariable> variables_;
  const actors::ModelObjects objects_;
  std::vector<MasterStep::Part> parts_;
  std::vector<MasterStep::Part> unrestored_;
  std::unique_ptr<actors::CheckpointFolder> folder_;
  uint64_t seed_ = 0;
  int64_t last_step_ = 0;
  Time last_time_;
  bool is_writing_ = false;
  Status error_;
  std::optional<int64_t> saved_step_;
  Call call_ = Call::kBegin;
  uint64_t num_logged_ = 0;
};

// --- The session ---

bool TrainingMaster::Run::has(const MasterStep::Part& part) const {
  const Members& members = session_.members();
  return members.state(part.task) == Members::State::kReady &&
         members.incarnation(part.task) == part.incarnation;
}

Status TrainingMaster::Run::connect() {
  watch_.on_moment(Moment::kConnect);
  const auto ready = [this] {
    std::vector<MasterStep::Part> parts;
    const Members& members = session_.members();
    for (size_t i = 0; i < plan_.num_workers; ++i) {
      const TaskIndex task{uint32_t(i)};
      if (members.state(task) == Members::State::kReady)
        parts.push_back({task, members.incarnation(task), task_name(i), false});
    }
    return parts;
  };
  const auto is_late = std::make_shared<bool>(false);
  if (!world_.is_planted(Planted::kWaitsForEver))
    world_.local(master_.host_, plan_.patience, [is_late] { *is_late = true; });
  master_.wait([this, ready, is_late] {
    return *is_late || ready().size() == plan_.num_workers;
  });
  parts_ = ready();
  last_time_ = world_.now();
  if (parts_.size() == plan_.num_workers ||
      (plan_.leaves_out_lost && !parts_.empty()))
    return {};
  return error(Code::kUnavailable, "only {} of {} workers have come",
               parts_.size(), plan_.num_workers);
}

Status TrainingMaster::Run::run(Script script, Answered& answered) {
  for (const MasterStep::Part& part : parts_)
    if (!has(part)) return error(Code::kUnavailable, "{} is lost", part.name);
  if (script.updates() && !script.restores)
    TAGFLOW_RETURN_IF_ERROR(session_.torn().check(TornState::Effect::kUpdates));
  const auto is_answered = std::make_shared<bool>(false);
  session_.run(std::move(script), parts_, {}, [this, is_answered, &answered] {
    answered = session_.answered().back();
    *is_answered = true;
  });
  master_.wait([is_answered] { return *is_answered; });
  return answered.answer.status;
}

Status TrainingMaster::Run::load(const Shards& shards) {
  watch_.on_moment(Moment::kLoad);
  Script script = load_script(shards, parts_.size());
  for (size_t i = 0; i < parts_.size(); ++i)
    if (std::ranges::any_of(unrestored_, [&](const MasterStep::Part& part) {
          return part.incarnation == parts_[i].incarnation;
        }))
      script.parts[i] = {};
  Answered answered;
  TAGFLOW_RETURN_IF_ERROR(run(std::move(script), answered));
  watch_.on_loaded(number_, parts_.size(), shards);
  return {};
}

// --- The loop's part ---

Status TrainingMaster::Run::open() {
  TAGFLOW_ASSIGN(folder_, actors::CheckpointFolder::open(Disk::kFolder, kName,
                                                         plan_.keep, options_));
  return {};
}

Result<actors::LoadedCheckpoint> TrainingMaster::Run::load_files() {
  if (!world_.is_planted(Planted::kBelievesNames))
    return folder_->load(variables_, objects_);
  constexpr std::string_view kIndex = ".index";
  std::string newest;
  int64_t most = -1;
  for (const auto& [path, node] : master_.disk_.names()) {
    if (!path.ends_with(kIndex)) continue;
    const int64_t step = std::stoll(path.substr(path.rfind('-') + 1));
    if (step > most) newest = path.substr(0, path.size() - kIndex.size());
    most = std::max(most, step);
  }
  if (most < 0) return error(Code::kNotFound, "there is none");
  return actors::load_checkpoint(newest, variables_, objects_,
                                 actors::OtherTensors::kRefused, files_);
}

Result<std::optional<int64_t>> TrainingMaster::Run::restore() {
  watch_.on_moment(Moment::kRestore);
  TAGFLOW_RETURN_IF_ERROR(wait_for_writer());
  auto loaded = load_files();
  if (loaded.status().code() == Code::kNotFound)
    return std::optional<int64_t>();
  if (!loaded.ok()) return std::move(loaded).status();
  const actors::Snapshot& snapshot = loaded->checkpoint.snapshot;
  const auto shards = shards_of(snapshot, plan_);
  if (!shards || !snapshot.seed) {
    world_.violation("a torn checkpoint is loaded");
    return error(Code::kDataLoss, "it is torn");
  }
  seed_ = *snapshot.seed;
  watch_.on_restored(loaded->restored.step, seed_, *shards);
  if (world_.is_planted(Planted::kSeedDrawnAgain))
    seed_ = world_.random().next();
  TAGFLOW_RETURN_IF_ERROR(load(*shards));
  last_step_ = loaded->restored.step;
  last_time_ = world_.now();
  saved_step_ = last_step_;
  if (world_.is_planted(Planted::kGoesOnTooEarly))
    return std::optional(std::max<int64_t>(last_step_ - 1, 0));
  return std::optional(last_step_);
}

Status TrainingMaster::Run::init() {
  seed_ = world_.random().next();
  watch_.on_init(seed_);
  return load(first_shards(plan_.num_variables, seed_));
}

Status TrainingMaster::Run::step(int64_t number) {
  if (world_.is_planted(Planted::kSaveFailsRun) && !error_.ok()) return error_;
  call_ = Call::kStep;
  watch_.on_moment(Moment::kStep);
  Random& random = world_.random();
  if (random.percent(40) &&
      std::ranges::all_of(parts_, [this](const auto& p) { return has(p); }))
    session_.run(log_script(parts_.size(), random.below(plan_.num_variables),
                            ++num_logged_),
                 parts_, {}, nullptr);
  Answered answered;
  const auto run_it = [&] {
    return run(
        training_script(plan_.num_variables, parts_.size(), number, seed_),
        answered);
  };
  Status status = run_it();
  if (world_.is_planted(Planted::kStepRepeated) && !status.ok())
    status = run_it();
  if (world_.is_planted(Planted::kStepLeftOut) && !status.ok() &&
      has(parts_[0]))
    return {};
  if (status.ok()) watch_.on_step(number, seed_, answered.value);
  return status;
}

// --- The saver's part ---

Status TrainingMaster::Run::save(int64_t step) {
  if (call_ != Call::kSaveIfDue)
    call_ = step == plan_.steps ? Call::kEnd : Call::kBegin;
  TAGFLOW_RETURN_IF_ERROR(wait_for_writer());
  watch_.on_moment(Moment::kSnapshot);
  Script script = fetch_script(plan_.num_variables, parts_.size());
  if (world_.is_planted(Planted::kSavesBesideSteps)) {
    last_step_ = step;
    is_writing_ = true;
    session_.run(std::move(script), parts_, {}, [this, step] {
      is_writing_ = false;
      const Answered& answered = session_.answered().back();
      if (answered.answer.status.ok()) start_writing(step, answered.fetched);
    });
    return {};
  }
  Answered answered;
  Status status = session_.torn().check_snapshot();
  if (status.ok()) status = run(std::move(script), answered);
  if (world_.is_planted(Planted::kSavesTorn) && !status.ok()) {
    for (const auto& [i, shard] : first_shards(plan_.num_variables, seed_))
      answered.fetched.try_emplace(i, shard);
    status = {};
  }
  TAGFLOW_RETURN_IF_ERROR(status);
  last_step_ = step;
  last_time_ = world_.now();
  start_writing(step, answered.fetched);
  return {};
}

void TrainingMaster::Run::start_writing(int64_t step, const Shards& shards) {
  watch_.on_snapshot(step, seed_, shards);
  actors::Checkpoint checkpoint{snapshot_of(shards, seed_, plan_.num_elements),
                                step};
  is_writing_ = true;
  master_.spawn([this, checkpoint = std::move(checkpoint)]() mutable {
    write(std::move(checkpoint));
  });
}

void TrainingMaster::Run::write(actors::Checkpoint checkpoint) {
  watch_.on_moment(Moment::kWrite);
  if (world_.is_planted(Planted::kRemovesFirst)) remove_oldest();
  const int64_t step = checkpoint.step;
  Status status =
      folder_->write(std::move(checkpoint), names_, objects_, nullptr);
  is_writing_ = false;
  if (status.ok()) {
    saved_step_ = step;
    watch_.on_saved(step);
  }
  error_ = std::move(status);
}

void TrainingMaster::Run::remove_oldest() {
  constexpr std::string_view kIndex = ".index";
  std::vector<std::string> prefixes;
  for (const auto& [path, node] : master_.disk_.names())
    if (path.ends_with(kIndex))
      prefixes.push_back(path.substr(0, path.size() - kIndex.size()));
  if (prefixes.size() >= size_t(plan_.keep))
    static_cast<void>(checkpoint::remove_bundle(prefixes[0], options_));
}

Status TrainingMaster::Run::save_if_due(int64_t step) {
  call_ = Call::kSaveIfDue;
  const bool is_due =
      (plan_.every_steps > 0 && step - last_step_ >= plan_.every_steps) ||
      (plan_.every > Duration(0) && world_.now() - last_time_ >= plan_.every);
  if (is_due) return save(step);
  if (world_.is_planted(Planted::kSaveFailsRun)) return {};
  return std::exchange(error_, Status());
}

Status TrainingMaster::Run::wait_for_writer() {
  master_.wait([this] { return !is_writing_; });
  return std::exchange(error_, Status());
}

Status TrainingMaster::Run::wait() {
  if (call_ != Call::kBegin) call_ = Call::kEnd;
  return wait_for_writer();
}

Status TrainingMaster::Run::close() {
  call_ = Call::kEnd;
  Status status = wait_for_writer();
  folder_->release();
  return status;
}

void TrainingMaster::Run::end() {
  if (!world_.is_planted(Planted::kWriterLeft))
    static_cast<void>(wait_for_writer());
  if (folder_ != nullptr) folder_->release();
}

void TrainingMaster::Run::check_error(const Status& status) const {
  if (status.ok()) return;
  if (call_ == Call::kSaveIfDue)
    world_.violation("a save that fails ends the run: " + status.to_string());
  if (call_ == Call::kStep && status.code() != Code::kUnavailable)
    world_.violation("no loss ends the run: " + status.to_string());
}

// --- The process ---

TrainingMaster::TrainingMaster(World& world, Ledger& ledger, Disk& disk,
                               const TrainingPlan& plan, TrainingWatch& watch,
                               size_t host, uint64_t process,
                               Duration clock_ahead)
    : world_(world),
      ledger_(ledger),
      disk_(disk),
      plan_(plan),
      watch_(watch),
      host_(host),
      process_(process),
      clock_ahead_(clock_ahead) {}

TrainingMaster::~TrainingMaster() { on_killed(); }

void TrainingMaster::start() {
  world_.start(host_, this);
  spawn([this] {
    result_ = actors::run_with_restarts(plan_.restarts,
                                        [this](int) { return attempt(); });
  });
}

void TrainingMaster::on_killed() {
  for (Task& task : tasks_)
    if (task.fiber != nullptr) task.fiber->end();
  tasks_.clear();
  if (disk_.locked_by == process_) disk_.locked_by = 0;
}

Status TrainingMaster::attempt() {
  std::vector<MasterStep::Part> kept;
  if (world_.is_planted(Planted::kRestoresLostAlone) && has_session_) {
    kept = runs_.back()->parts();
  } else {
    sessions_.push_back(
        std::make_unique<Master>(world_, ledger_, plan_.num_workers, host_));
  }
  Master& session = *sessions_.back();
  const uint64_t number = process_ * kMostSessions + sessions_.size();
  session.set_session(number);
  has_session_ = true;
  runs_.push_back(std::make_unique<Run>(*this, session, number));
  Run& run = *runs_.back();
  run.keep_state_of(std::move(kept));
  Status status = run.connect();
  if (status.ok()) status = run.open();
  if (status.ok())
    status = actors::run_steps(
        run, plan_.steps, [this](const Status&) { watch_.on_failed_save(); });
  run.check_error(status);
  if (status.code() == Code::kUnavailable) watch_.on_loss();
  run.end();
  if (!world_.is_planted(Planted::kRestoresLostAlone)) {
    session.end();
    has_session_ = false;
  }
  return status;
}

void TrainingMaster::spawn(std::function<void()> body) {
  tasks_.push_back({std::make_unique<Fiber>(std::move(body)), nullptr});
}

void TrainingMaster::wait(std::function<bool()> is_ready) {
  Fiber::check();
  if (is_ready()) return;
  tasks_[running_].is_ready = std::move(is_ready);
  Fiber::pause();
}

void TrainingMaster::pass(Duration time) {
  const auto is_over = std::make_shared<bool>(false);
  world_.local(host_, time, [is_over] { *is_over = true; });
  wait([is_over] { return *is_over; });
}

void TrainingMaster::poll() {
  if (!world_.is_up(host_) || world_.is_stopped(host_)) return;
  for (bool has_run = true; has_run;) {
    has_run = false;
    for (size_t i = 0; i < tasks_.size(); ++i) {
      const Task& task = tasks_[i];
      if (task.fiber == nullptr || (task.is_ready && !task.is_ready()))
        continue;
      tasks_[i].is_ready = nullptr;
      running_ = i;
      tasks_[i].fiber->resume();
      if (tasks_[i].fiber->is_over()) tasks_[i].fiber.reset();
      has_run = true;
    }
  }
}

void TrainingMaster::on_message(LinkId link, Message message) {
  if (has_session_)
    return sessions_.back()->on_message(link, std::move(message));
  world_.close(link, host_);
}

void TrainingMaster::on_closed(LinkId link) {
  if (has_session_) sessions_.back()->on_closed(link);
}

}  // namespace tagflow::net::simulated
