#include "net/serving/model_store.h"

#include <algorithm>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include "graph/fault.h"
#include "net/serving/model_folder.h"

namespace tagflow::net::serving {
namespace {

using enum VersionStatus::State;

// How many versions that have gone a model tells of.
constexpr size_t kMostEnded = 16;
// How soon a version that is to go is looked at again, if it was in use.
constexpr std::chrono::milliseconds kUnloadInterval{10};

struct Version {
  VersionStatus::State state = kStart;
  Status status;
  std::shared_ptr<const Servable> servable;  // if available or unloading
  std::string stamp;                         // of the last load
};

struct Model {
  ModelConfig config;
  bool is_wanted = true;  // else all of its versions go
  std::map<int64_t, Version> versions;
};

Status ends() { return error(Code::kCancelled, "[serving] the server ends"); }

}  // namespace

const char* state_name(VersionStatus::State state) {
  switch (state) {
    case kStart:
      return "START";
    case kLoading:
      return "LOADING";
    case kAvailable:
      return "AVAILABLE";
    case kUnloading:
      return "UNLOADING";
    case kEnd:
      break;
  }
  return "END";
}

struct ModelStore::State {
  explicit State(Options given) : options(std::move(given)) {}

  void serve();
  Status look();
  Status look_at_all();
  Status look_at(const std::string& name);
  bool is_to_load(const std::string& name, int64_t number,
                  const std::string& folder, Status& status);
  Status load_chosen(const std::string& name, const std::set<int64_t>& chosen,
                     const std::map<int64_t, std::string>& there);
  void retire_others(const std::string& name, bool is_wanted,
                     const std::set<int64_t>& chosen);
  Status load(const std::string& name, int64_t version,
              const std::string& folder);
  // Drops what nobody uses any more. Whether something still goes.
  bool unload();
  void set(const std::string& name, int64_t version, VersionStatus::State to,
           Status status = {});
  // REQUIRES: mutex is held. Null with the error.
  Result<const Model*> find_model(const ModelSpec& spec) const;
  Result<std::optional<int64_t>> number_of(const Model& model,
                                           const ModelSpec& spec) const;

  const Options options;
  actors::CancelToken ended;
  std::mutex looking;        // held while it looks
  mutable std::mutex mutex;  // guards the below; taken after `looking`
  std::condition_variable changed;
  std::map<std::string, Model> models;
  int looks = 0;  // calls of look()
  bool is_ending = false;
  bool is_asked = false;
  std::thread thread;
};

void ModelStore::State::set(const std::string& name, int64_t version,
                            VersionStatus::State to, Status status) {
  {
    const std::lock_guard lock(mutex);
    Version& entry = models[name].versions[version];
    entry.state = to;
    entry.status = status;
  }
  if (options.on_change)
    static_cast<void>(guarded("serving", [&] {
      options.on_change(name, {version, to, std::move(status)});
    }));
}

Status ModelStore::State::load(const std::string& name, int64_t version,
                               const std::string& folder) {
  set(name, version, kLoading);
  std::string stamp = stamp_of(folder);  // files may change while they are read
  auto loaded = guarded(
      "serving", [&] { return options.loader(name, version, folder, ended); });
  Status status = loaded.status();
  {
    const std::lock_guard lock(mutex);
    if (!loaded.ok() && is_ending) status = ends();
    Version& entry = models[name].versions[version];
    entry.stamp = std::move(stamp);
    if (loaded.ok()) entry.servable = *std::move(loaded);
  }
  set(name, version, status.ok() ? kAvailable : kEnd, status);
  return status;
}

// Whether a load of the version is due. If it has failed before, and its files
// are the same, `status` is why.
bool ModelStore::State::is_to_load(const std::string& name, int64_t number,
                                   const std::string& folder, Status& status) {
  std::string stamp;
  {
    const std::lock_guard lock(mutex);
    if (is_ending) {
      status = ends();
      return false;
    }
    const Version& entry = models[name].versions[number];
    if (entry.state == kAvailable || entry.state == kUnloading) return false;
    if (entry.state != kEnd || entry.status.ok()) return true;
    stamp = entry.stamp;
    status = entry.status;
  }
  if (stamp == stamp_of(folder)) return false;
  status = {};
  return true;
}

// Loads what is not there yet of the chosen versions. The first error.
Status ModelStore::State::load_chosen(
    const std::string& name, const std::set<int64_t>& chosen,
    const std::map<int64_t, std::string>& there) {
  Status first;
  // The newest first: it is what most requests are for.
  for (auto it = chosen.rbegin(); it != chosen.rend(); ++it) {
    const std::string& folder = there.at(*it);
    Status status;
    if (is_to_load(name, *it, folder, status)) status = load(name, *it, folder);
    if (first.ok() && !status.ok())
      first = std::move(status).with_prefix(
          fmt::format("model \"{}\", version {}: ", name, *it));
  }
  return first;
}

// Those that are available go if they are not chosen, and another one is there.
void ModelStore::State::retire_others(const std::string& name, bool is_wanted,
                                      const std::set<int64_t>& chosen) {
  std::vector<int64_t> superfluous;
  {
    const std::lock_guard lock(mutex);
    const auto& versions = models[name].versions;
    const bool has_new = std::ranges::any_of(chosen, [&](int64_t number) {
      const auto found = versions.find(number);
      return found != versions.end() && found->second.state == kAvailable;
    });
    for (const auto& [number, entry] : versions)
      if (entry.state == kAvailable && !chosen.contains(number) &&
          (has_new || !is_wanted))
        superfluous.push_back(number);
  }
  for (const int64_t number : superfluous) set(name, number, kUnloading);
}

Status ModelStore::State::look_at(const std::string& name) {
  ModelConfig config;
  bool is_wanted;
  {
    const std::lock_guard lock(mutex);
    config = models[name].config;
    is_wanted = models[name].is_wanted;
  }
  const auto there = is_wanted ? find_versions(config.base_path)
                               : std::map<int64_t, std::string>();
  std::set<int64_t> numbers;
  for (const auto& [number, folder] : there) numbers.insert(number);
  const std::set<int64_t> chosen = config.policy.choose(numbers);
  const Status first = load_chosen(name, chosen, there);
  retire_others(name, is_wanted, chosen);
  if (!is_wanted || !chosen.empty()) return first;
  return error(Code::kNotFound,
               "[serving] model \"{}\" has no version to serve in \"{}\"", name,
               config.base_path);
}

bool ModelStore::State::unload() {
  std::vector<std::pair<std::string, int64_t>> gone;
  std::vector<std::shared_ptr<const Servable>> dropped;
  bool is_any_left = false;
  {
    const std::lock_guard lock(mutex);
    for (auto& [name, model] : models)
      for (auto& [number, entry] : model.versions) {
        if (entry.state != kUnloading) continue;
        // Nobody takes another reference: find() gives available ones.
        if (entry.servable.use_count() > 1) {
          is_any_left = true;
          continue;
        }
        dropped.push_back(std::move(entry.servable));
        gone.emplace_back(name, number);
      }
  }
  dropped.clear();
  for (const auto& [name, number] : gone) set(name, number, kEnd);
  const std::lock_guard lock(mutex);
  for (auto it = models.begin(); it != models.end();) {
    auto& versions = it->second.versions;
    const auto has_ended = [](const auto& entry) {
      return entry.second.state == kEnd;
    };
    size_t ended = size_t(std::ranges::count_if(versions, has_ended));
    for (auto each = versions.begin();
         each != versions.end() && ended > kMostEnded;) {
      if (!has_ended(*each)) {
        ++each;
        continue;
      }
      each = versions.erase(each);
      --ended;
    }
    const bool is_over =
        !it->second.is_wanted && std::ranges::all_of(versions, has_ended);
    it = is_over ? models.erase(it) : std::next(it);
  }
  return is_any_left;
}

Status ModelStore::State::look() {
  {
    const std::lock_guard lock(mutex);
    if (is_ending) return ends();
    ++looks;
  }
  const Status first = guarded("serving", [&] { return look_at_all(); });
  const std::lock_guard lock(mutex);
  --looks;
  changed.notify_all();
  return first;
}

Status ModelStore::State::look_at_all() {
  const std::lock_guard only(looking);
  std::vector<std::string> names;
  {
    const std::lock_guard lock(mutex);
    for (const auto& [name, model] : models) names.push_back(name);
  }
  Status first;
  for (const std::string& name : names) {
    Status status = look_at(name);
    if (first.ok()) first = std::move(status);
  }
  unload();
  return first;
}

void ModelStore::State::serve() {
  std::unique_lock lock(mutex);
  auto next = std::chrono::steady_clock::now();
  bool is_unloading = false;
  while (!is_ending) {
    const auto now = std::chrono::steady_clock::now();
    if (is_asked || now >= next) {
      is_asked = false;
      lock.unlock();
      static_cast<void>(look());
      lock.lock();
      next = std::chrono::steady_clock::now() + options.poll_interval;
    }
    lock.unlock();
    {
      const std::lock_guard only(looking);
      is_unloading = unload();
    }
    lock.lock();
    const auto until =
        is_unloading
            ? std::min(next, std::chrono::steady_clock::now() + kUnloadInterval)
            : next;
    changed.wait_until(lock, until, [&] { return is_ending || is_asked; });
  }
}

Result<const Model*> ModelStore::State::find_model(
    const ModelSpec& spec) const {
  const auto found = models.find(spec.name);
  if (found != models.end()) return &found->second;
  return error(Code::kNotFound, "[serving] there is no model \"{}\"",
               spec.name);
}

Result<std::optional<int64_t>> ModelStore::State::number_of(
    const Model& model, const ModelSpec& spec) const {
  if (spec.label.empty()) return spec.version;
  const auto& labels = model.config.labels;
  const auto found = labels.find(spec.label);
  if (found != labels.end()) return std::optional(found->second);
  return invalid_argument("[serving] model \"{}\" has no version label \"{}\"",
                          spec.name, spec.label);
}

ModelStore::ModelStore(std::unique_ptr<State> state)
    : state_(std::move(state)) {}

Result<std::unique_ptr<ModelStore>> ModelStore::create(Options options) {
  return guarded("serving", [&]() -> Result<std::unique_ptr<ModelStore>> {
    std::unique_ptr<ModelStore> store(
        new ModelStore(std::make_unique<State>(std::move(options))));
    State* const state = store->state_.get();
    if (state->options.poll_interval.count() > 0)
      state->thread = std::thread([state] { state->serve(); });
    return store;
  });
}

ModelStore::~ModelStore() {
  stop();
  if (state_->thread.joinable()) state_->thread.join();
}

void ModelStore::stop() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->is_ending = true;
    state_->changed.notify_all();
  }
  state_->ended.cancel();
}

bool ModelStore::wait_until_idle(std::chrono::milliseconds time) {
  std::unique_lock lock(state_->mutex);
  return state_->changed.wait_for(lock, time,
                                  [this] { return state_->looks == 0; });
}

Status ModelStore::set_configs(const std::vector<ModelConfig>& configs) {
  TAGFLOW_RETURN_IF_ERROR(check_configs(configs));
  const std::lock_guard lock(state_->mutex);
  for (auto& [name, model] : state_->models) model.is_wanted = false;
  for (const ModelConfig& config : configs) {
    Model& model = state_->models[config.name];
    model.config = config;
    model.is_wanted = true;
  }
  state_->is_asked = true;
  state_->changed.notify_all();
  return {};
}

Status ModelStore::look() { return state_->look(); }

Result<std::shared_ptr<const Servable>> ModelStore::find(
    const ModelSpec& spec) const {
  const std::lock_guard lock(state_->mutex);
  TAGFLOW_ASSIGN(const Model* model, state_->find_model(spec));
  TAGFLOW_ASSIGN(const auto number, state_->number_of(*model, spec));
  if (!number) {
    for (auto it = model->versions.rbegin(); it != model->versions.rend(); ++it)
      if (it->second.state == kAvailable) return it->second.servable;
    return error(Code::kNotFound,
                 "[serving] no version of model \"{}\" is available",
                 spec.name);
  }
  const auto found = model->versions.find(*number);
  if (found == model->versions.end())
    return error(Code::kNotFound,
                 "[serving] model \"{}\" has no version {} here", spec.name,
                 *number);
  const Version& entry = found->second;
  if (entry.state == kAvailable) return entry.servable;
  return error(Code::kNotFound,
               "[serving] version {} of model \"{}\" is not available; its "
               "state is {}",
               *number, spec.name, state_name(entry.state));
}

Result<std::vector<VersionStatus>> ModelStore::statuses(
    const ModelSpec& spec) const {
  const std::lock_guard lock(state_->mutex);
  TAGFLOW_ASSIGN(const Model* model, state_->find_model(spec));
  TAGFLOW_ASSIGN(const auto number, state_->number_of(*model, spec));
  std::vector<VersionStatus> all;
  for (auto it = model->versions.rbegin(); it != model->versions.rend(); ++it)
    if (!number || *number == it->first)
      all.push_back({it->first, it->second.state, it->second.status});
  if (!all.empty() || !number) return all;
  return error(Code::kNotFound, "[serving] model \"{}\" has no version {} here",
               spec.name, *number);
}

Status ModelStore::ready() const {
  const std::lock_guard lock(state_->mutex);
  for (const auto& [name, model] : state_->models) {
    if (!model.is_wanted) continue;
    Status why;
    bool is_ready = false;
    for (const auto& [number, entry] : model.versions) {
      is_ready = is_ready || entry.state == kAvailable;
      if (!entry.status.ok()) why = entry.status;
    }
    if (is_ready) continue;
    return error(Code::kUnavailable, "model \"{}\" has no version yet{}{}",
                 name, why.ok() ? "" : ": ", why.message());
  }
  return {};
}

std::vector<std::string> ModelStore::names() const {
  const std::lock_guard lock(state_->mutex);
  std::vector<std::string> names;
  for (const auto& [name, model] : state_->models)
    if (model.is_wanted) names.push_back(name);
  return names;
}

}  // namespace tagflow::net::serving
