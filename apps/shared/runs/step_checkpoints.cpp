#include "apps/shared/runs/step_checkpoints.h"

#include <fmt/ranges.h>
#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <functional>
#include <optional>
#include <set>
#include <utility>

#include "actors/checkpoint/snapshot.h"
#include "apps/shared/program/command_line.h"
#include "apps/shared/runs/log.h"
#include "apps/shared/runs/run_figures.h"

namespace tagflow::apps {
namespace {

constexpr std::chrono::minutes kDefaultInterval{10};

// Of all of the text.
template <class T>
std::optional<T> number_in(std::string_view text) {
  T value{};
  const char* end = text.data() + text.size();
  const auto [rest, code] = std::from_chars(text.data(), end, value);
  if (text.empty() || code != std::errc() || rest != end) return std::nullopt;
  return value;
}

// Whether some variable has a value, as from the model's own checkpoint.
Result<bool> has_values(const actors::Session& session) {
  TAGFLOW_ASSIGN(const auto snapshots, actors::Snapshots::create(session));
  TAGFLOW_ASSIGN(const actors::Snapshot snapshot, snapshots->take());
  return !snapshot.variables.empty();
}

// The initializers of iterators that a node runs, by itself or by its inputs. A
// checkpoint has the place of an iterator, but not its dataset.
void add_iterators(const graph::Node* node, std::set<const graph::Node*>& seen,
                   std::vector<std::string>& found) {
  std::vector<const graph::Node*> open;
  const auto add = [&](const graph::Node* next) {
    if (next != nullptr && seen.insert(next).second) open.push_back(next);
  };
  for (add(node); !open.empty();) {
    const graph::Node* const next = open.back();
    open.pop_back();
    if (next->op() == "MakeIterator") {
      found.push_back(next->name());
      continue;
    }
    for (const graph::Endpoint& input : next->inputs()) add(input.node);
    for (const graph::Node* input : next->control_inputs()) add(input);
  }
}

// `model_init`: a node of the model that has run before a checkpoint was
// restored; or empty.
Failure run_init(std::vector<std::string> nodes, const std::string& model_init,
                 actors::Session& session, const actors::RunOptions& run,
                 const std::vector<actors::Feed>& feeds) {
  if (nodes.empty() && model_init.empty()) return {};
  const Result<bool> is_done = has_values(session);
  if (!is_done.ok()) return run_time_error(is_done.status());
  if (*is_done) {
    std::set<const graph::Node*> seen;
    std::vector<std::string> iterators;
    for (const std::string& node : nodes)
      add_iterators(session.graph().find(node), seen, iterators);
    add_iterators(session.graph().find(model_init), seen, iterators);
    nodes = std::move(iterators);
  }
  for (const std::string& node : nodes) {
    Status status = session.run(feeds, {}, {node}, run).status();
    if (!status.ok())
      return run_time_error(std::move(status).with_prefix("[--init] "));
  }
  return {};
}

// A resumed run does not need them, but a misspelt name is an error at once.
Status check_init(const std::vector<std::string>& nodes,
                  const actors::Session& session) {
  for (const std::string& node : nodes) {
    if (session.graph().find(node) != nullptr) continue;
    Status found = session.graph().endpoint(node).status();
    if (found.ok()) found = invalid_argument("\"{}\" is not a node", node);
    return std::move(found).with_prefix("[--init] ");
  }
  return {};
}

// Using an older checkpoint causes a warning, and so does reading for workers.
void warn_of_damaged(std::string_view option,
                     const actors::Restored& restored) {
  if (!restored.not_by_workers.empty() && restored.damaged.empty())
    spdlog::warn(
        "[{}] the workers could not read \"{}\", so the master did: {}", option,
        restored.path, restored.not_by_workers);
  for (const std::string& what : restored.damaged)
    spdlog::warn("[{}] {}; \"{}\" is used instead", option, what,
                 restored.path);
}

void warn_of_unused(const actors::Restored& restored) {
  if (restored.unused.empty()) return;
  spdlog::warn(
      "\"{}\" has {} tensors that are not variables of the graph, "
      "such as \"{}\"",
      restored.path, restored.unused.size(), restored.unused[0]);
}

Failure cannot_save(const Status& status, actors::ShardWriters writers) {
  const bool lacks_leave = writers == actors::ShardWriters::kWorkers &&
                           status.code() == Code::kPermissionDenied;
  return run_time_error(
      error(status.code(), "[--save] {}{}", status.message(),
            lacks_leave ? "; tagflow worker --checkpoints DIR allows it" : ""));
}

// What a saver is told to do with each checkpoint that it has written. Its
// error is the next call's to tell.
std::function<void(const actors::SaverOptions::Written&)> tell_written(
    std::shared_ptr<RunFigures> figures) {
  return [figures = std::move(figures)](
             const actors::SaverOptions::Written& written) {
    if (figures != nullptr) figures->on_written(written);
    if (!written.status.ok()) return;
    const std::chrono::duration<double> seconds = written.time;
    log_news({.step = uint64_t(written.step)},
             fmt::format("saved step {} in {:.3f} s", written.step,
                         seconds.count()));
  };
}

}  // namespace

Result<SaveInterval> parse_save_every(const std::string& text) {
  constexpr double kMostSeconds = 1e9;
  SaveInterval interval;
  if (text.empty()) {
    interval.time = kDefaultInterval;
    return interval;
  }
  if (text.ends_with('s')) {
    const auto seconds =
        number_in<double>(std::string_view(text).substr(0, text.size() - 1));
    if (seconds && *seconds > 0 && *seconds <= kMostSeconds) {
      interval.time =
          std::max(std::chrono::nanoseconds(1),
                   std::chrono::duration_cast<std::chrono::nanoseconds>(
                       std::chrono::duration<double>(*seconds)));
      return interval;
    }
  } else if (const auto steps = number_in<int64_t>(text); steps && *steps > 0) {
    interval.steps = *steps;
    return interval;
  }
  return invalid_argument(
      "[--save-every] \"{}\" is neither a number of steps, as 100, nor a time, "
      "as 30s",
      text);
}

Result<actors::ShardWriters> parse_save_on(const std::string& text) {
  if (text.empty()) return actors::ShardWriters::kAny;
  if (text == "master") return actors::ShardWriters::kMaster;
  if (text == "workers") return actors::ShardWriters::kWorkers;
  return invalid_argument("[--save-on] \"{}\" is neither workers nor master",
                          text);
}

void add_saving_options(CLI::App& app, CheckpointOptions& options) {
  const std::string interval =
      options.save_every.empty() ? "600s" : options.save_every;
  CLI::Option* save =
      add_output_option(app, "--save", options.save,
                        "save the variables to this folder, and go on from the "
                        "newest checkpoint that is there",
                        "DIR");
  if (!options.save.empty()) save->capture_default_str();
  app.add_option("--save-every", options.save_every,
                 "after how many steps, or seconds, to save; default: " +
                     interval + "; the last step is always saved")
      ->type_name("N|Ns");
  app.add_option("--keep", options.keep,
                 "how many checkpoints stay in the folder; 0: all")
      ->capture_default_str()
      ->check(CLI::Range(0, 1'000'000));
  app.add_option("--save-on", options.save_on,
                 "who writes the variables of a cluster: each of the workers "
                 "those that it has, or the master, which fetches them; "
                 "default: the workers, if all of them may write to the folder "
                 "and the master sees their files")
      ->type_name("workers|master");
}

void add_checkpoint_options(CLI::App& app, CheckpointOptions& options) {
  add_saving_options(app, options);
  add_output_option(app, "--restore", options.restore,
                    "read the variables from this: a folder, of which the "
                    "newest checkpoint is taken, a checkpoint's prefix, or a "
                    ".safetensors file",
                    "PATH");
  app.add_option("--init", options.init,
                 "a node to run before the first step, if there is no "
                 "checkpoint, the model's own included; what it initializes of "
                 "iterators of datasets is run with a checkpoint, too")
      ->type_name("NODE")
      ->expected(1)
      ->take_all();
}

Status with_hint_of_init(Status status, const CheckpointOptions& options) {
  const bool is_hinted =
      status.code() == Code::kFailedPrecondition &&
      status.message().find("is not initialized") != std::string::npos &&
      options.init.empty();
  if (!is_hinted) return status;
  return error(status.code(),
               "{}; --init NODE runs a node of the graph that initializes",
               status.message());
}

Status StepCheckpoints::check(const CheckpointOptions& options, bool has_steps,
                              bool has_workers) {
  TAGFLOW_RETURN_IF_ERROR(parse_save_every(options.save_every).status());
  TAGFLOW_ASSIGN(const auto writers, parse_save_on(options.save_on));
  if (!options.save_on.empty() && options.save.empty())
    return invalid_argument("[--save-on] there is no --save DIR");
  if (writers == actors::ShardWriters::kWorkers && !has_workers)
    return invalid_argument("[--save-on] there are no workers: no --cluster");
  if (!options.save_every.empty() && options.save.empty())
    return invalid_argument("[--save-every] there is no --save DIR");
  if (!options.save.empty() && !has_steps)
    return invalid_argument("[--save] there is no --steps N");
  for (const std::string& node : options.init)
    if (node.empty())
      return invalid_argument("[--init] the name of a node is empty");
  return {};
}

Failure StepCheckpoints::start(const CheckpointOptions& options,
                               actors::Session& session,
                               const graph::SavedState& model,
                               const actors::RunOptions& run,
                               const std::vector<actors::Feed>& feeds) {
  if (Status found = check_init(options.init, session); !found.ok())
    return run_time_error(std::move(found));
  bool is_resumed = false;
  if (!options.save.empty()) {
    const auto interval = parse_save_every(options.save_every);
    if (!interval.ok()) return usage_error(interval.status());
    const auto writers = parse_save_on(options.save_on);
    if (!writers.ok()) return usage_error(writers.status());
    auto saver = actors::Saver::create(
        session, {.folder = options.save,
                  .keep = options.keep,
                  .every_steps = interval->steps,
                  .every = interval->time,
                  .model = model,
                  .writers = *writers,
                  .on_written = tell_written(options.figures)});
    if (!saver.ok()) return cannot_save(saver.status(), *writers);
    saver_ = std::move(saver).value();
    // That none of them may is usual.
    if (const Status why = saver_->why_not_workers();
        !why.ok() && why.code() != Code::kPermissionDenied)
      spdlog::info("[--save] the master writes the checkpoints: {}",
                   why.message());
    const auto begin = std::chrono::steady_clock::now();
    auto restored = saver_->restore();
    const auto time = std::chrono::steady_clock::now() - begin;
    if (!restored.ok())
      return run_time_error(
          std::move(restored).status().with_prefix("[--save] "));
    is_resumed = restored->has_value();
    if (is_resumed) {
      warn_of_damaged("--save", **restored);
      step_ = (*restored)->step;
      const std::string& path = (*restored)->path;
      if (options.figures != nullptr) options.figures->on_restored(time);
      if ((*restored)->counts_steps)
        log_with(spdlog::level::info, {.step = uint64_t(step_)},
                 fmt::format("resumed after step {} from \"{}\"", step_, path));
      else
        spdlog::info("resumed from \"{}\", which has no step count", path);
    }
  }
  if (!is_resumed && !options.restore.empty()) {
    const auto restored =
        actors::restore_checkpoint(session, options.restore, model);
    if (!restored.ok())
      return file_error(restored.status().with_prefix("[--restore] "));
    warn_of_damaged("--restore", *restored);
    warn_of_unused(*restored);
  }
  const bool is_restored = is_resumed || !options.restore.empty();
  Failure failure = run_init(options.init, is_restored ? model.init_op : "",
                             session, run, feeds);
  if (failure.exit_code != ExitCode::kOk) return failure;
  if (saver_ == nullptr || is_resumed) return {};
  // Errors of the folder are found before any computation.
  Status status = saver_->save(0);
  // The first step may initialise the variables.
  if (status.code() == Code::kFailedPrecondition) return {};
  if (status.ok()) status = saver_->wait();
  return run_time_error(std::move(status).with_prefix("[--save] "));
}

void StepCheckpoints::after_step(int64_t step) {
  step_ = step;
  if (saver_ == nullptr) return;
  warn(saver_->save_if_due(step));
  warn_of_left_out();
  if (saver_->saved_step() > said_step_) is_failing_ = false;
}

void StepCheckpoints::warn(const Status& status) {
  // Warns once, and again when a later save fails.
  if (status.ok() || std::exchange(is_failing_, true)) return;
  said_step_ = saver_->saved_step();
  spdlog::warn("[--save] {}", status.to_string());
}

void StepCheckpoints::warn_of_left_out() {
  if (has_said_left_out_) return;
  const std::vector<std::string> left_out = saver_->left_out();
  if (left_out.empty()) return;
  has_said_left_out_ = true;
  spdlog::warn("[--save] the checkpoints do not have {}",
               fmt::join(left_out, ", "));
}

void StepCheckpoints::stop() {
  if (saver_ != nullptr) warn(saver_->wait());
}

Status StepCheckpoints::finish() {
  if (saver_ == nullptr) return {};
  stop();
  Status status;
  if (saver_->saved_step() != step_) status = saver_->save(step_);
  warn_of_left_out();
  Status closed = saver_->close();
  if (status.ok()) status = std::move(closed);
  return std::move(status).with_prefix("[--save] ");
}

}  // namespace tagflow::apps
