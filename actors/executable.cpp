#include "actors/executable.h"

#include <algorithm>
#include <caf/actor_system.hpp>
#include <unordered_map>

#include "actors/diagnosis.h"
#include "devices/device.h"

namespace tagflow::actors {
namespace {

// How long a thread that lends itself runs, before the workers go on alone.
constexpr std::chrono::microseconds kLentQuantum{200};

}  // namespace

Executable::Executable(Engine& engine, std::vector<std::unique_ptr<Plan>> plans,
                       std::vector<std::string> fetches)
    : engine_(engine), plans_(std::move(plans)), fetches_(std::move(fetches)) {
  number_transfers();
}

// All contexts are idle: a step that runs has a reference.
Executable::~Executable() {
  std::vector<caf::actor> actors;
  for (const auto& context : idle_) {
    actors.insert(actors.end(), context->handles.begin(),
                  context->handles.end());
    if (context->rendezvous != nullptr)
      actors.push_back(context->rendezvous_handle);
  }
  if (!actors.empty()) engine_.dismiss(std::move(actors));
}

// A Send and its Recv, which are in different plans, have the same number.
void Executable::number_transfers() {
  std::unordered_map<std::string, uint32_t> numbers;
  for (const auto& plan : plans_)
    for (TransferItem& transfer : plan->transfers) {
      const auto [it, is_new] =
          numbers.emplace(transfer.name, uint32_t(transfers_.size()));
      transfer.number = it->second;
      if (is_new) transfers_.push_back(transfer.name);
    }
}

std::unique_ptr<RunContext> Executable::make_context() {
  auto context = std::make_unique<RunContext>();
  if (!transfers_.empty()) {
    context->rendezvous_handle = spawn_actor<LocalRendezvous, caf::lazy_init>(
        engine_.system(), engine_.hand_off(), std::cref(transfers_));
    context->rendezvous =
        actor_pointer<LocalRendezvous>(context->rendezvous_handle);
    engine_.supervise(context->rendezvous_handle);
  }
  for (const auto& plan : plans_) {
    auto run = std::make_unique<PartitionRun>();
    run->plan = plan.get();
    run->policy = engine_.hand_off();
    run->workers = engine_.workers();
    devices::Device& device = engine_.device(plan->device);
    run->device = engine_.device_actor(plan->device);
    run->allocator = &device.allocator();
    run->accelerated = device.accelerator() != nullptr;
    run->max_call_depth = engine_.max_call_depth();
    run->max_open_calls = engine_.max_open_calls();
    run->rendezvous = context->rendezvous;
    context->handles.push_back(spawn_actor<PartitionActor, caf::lazy_init>(
        engine_.system(), std::ref(*run)));
    context->partitions.push_back(
        actor_pointer<PartitionActor>(context->handles.back()));
    engine_.supervise(context->handles.back());
    context->runs.push_back(std::move(run));
  }
  return context;
}

std::unique_ptr<RunContext> Executable::acquire() {
  {
    std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      auto context = std::move(idle_.back());
      idle_.pop_back();
      return context;
    }
  }
  return make_context();
}

void Executable::start(const std::shared_ptr<Step>& step,
                       std::span<const Tensor> feeds, bool lend, bool count) {
  std::unique_ptr<RunContext> context = acquire();
  RunContext* raw = context.get();
  step->info.parallel = engine_.parallel();
  step->info.resources = &raw->resources;
  for (const auto& plan : plans_)
    for (const ConstantFetch& constant : plan->constant_fetches)
      step->fetches[constant.fetch] = {constant.value, FetchSlot::kLive};
  if (step->trace != nullptr) engine_.begin_trace(*step->trace);
  raw->before = Counters();
  if (count)
    for (PartitionActor* partition : raw->partitions)
      partition->collect(raw->before);
  // The step owns the context until it is quiet.
  step->on_quiet = [self = shared_from_this(), raw, count](Step& quiet) {
    self->finish(quiet, std::unique_ptr<RunContext>(raw), count);
  };
  context.release();
  step->keep_alive();
  step->add_activity();  // the start itself
  Runner runner(nullptr, engine_.hand_off(), kLentQuantum, step->info.step_id);
  for (size_t p = 0; p < raw->partitions.size(); ++p) {
    // The partition gives it to its own pool.
    auto* batch = new Batch;
    batch->kind = BatchKind::kStart;
    batch->step = step.get();
    const std::vector<uint32_t>& taken = plans_[p]->feeds;
    for (uint32_t i = 0; i < taken.size(); ++i)
      batch->tokens.add(i).value = feeds[taken[i]];
    runner.post(raw->partitions[p], batch);
  }
  if (lend) {
    runner.drain();
  } else {
    runner.flush();
  }
  step->drop_activity();
}

Step::Answer Executable::outcome(Step& step, const RunContext& context) {
  if (Status error = step.error(); !error.ok()) {
    return step.expired() && !step.answered() ? explain_late(error, context)
                                              : error;
  }
  std::vector<std::string> missing;
  for (size_t i = 0; i < step.fetches.size(); ++i)
    if (step.fetches[i].state == FetchSlot::kMissing)
      missing.push_back(fetches_[i]);
  const bool done =
      std::ranges::all_of(context.partitions, &PartitionActor::done);
  if (!done || !missing.empty()) return explain_deadlock(context, missing);
  std::vector<Tensor> values;
  values.reserve(step.fetches.size());
  for (size_t i = 0; i < step.fetches.size(); ++i) {
    FetchSlot& fetch = step.fetches[i];
    if (fetch.state == FetchSlot::kDead)
      return explain_dead(context, i, fetches_[i]);
    values.push_back(std::move(fetch.value));
  }
  return values;
}

void Executable::finish(Step& step, std::unique_ptr<RunContext> context,
                        bool count) {
  if (step.trace != nullptr) engine_.end_trace(*step.trace);
  Step::Answer answer = outcome(step, *context);
  RunStats stats;
  if (count) {
    Counters after;
    for (PartitionActor* partition : context->partitions)
      partition->collect(after);
    after.subtract(context->before);
    after.add_to(stats);
  }
  if (!answer.ok()) {
    for (PartitionActor* partition : context->partitions) partition->reset();
  }
  // What nobody received must not be taken for the next step's.
  if (context->rendezvous != nullptr) context->rendezvous->reset();
  context->resources.end();
  {
    std::lock_guard lock(mutex_);
    idle_.push_back(std::move(context));
  }
  if (step.on_answer && !Engine::is_worker()) {
    engine_.run_on_worker([self = step.shared_from_this(),
                           answer = std::move(answer),
                           stats] { self->answer(answer, stats); });
    return;
  }
  step.answer(std::move(answer), stats);
}

}  // namespace tagflow::actors
