#include "actors/session/executable.h"

#include <algorithm>
#include <unordered_map>

#include "actors/diagnosis/diagnosis.h"
#include "actors/runtime/hold.h"
#include "devices/thread_activity.h"
#include "graph/fault.h"

namespace tagflow::actors {
namespace {

// How long a lent thread runs actors before it leaves them to the workers.
constexpr std::chrono::microseconds kLentQuantum{200};

}  // namespace

LocalExecutable::LocalExecutable(
    std::shared_ptr<DeviceSet> devices, const RunSettings& settings,
    std::vector<std::unique_ptr<Plan>> plans, std::vector<std::string> fetches,
    std::shared_ptr<const devices::HostAccess> host, std::optional<Peers> peers)
    : devices_(std::move(devices)),
      settings_(settings),
      plans_(std::move(plans)),
      fetches_(std::move(fetches)),
      has_fetch_(fetches_.size(), !peers),
      peers_(std::move(peers)),
      host_access_(std::move(host)) {
  number_transfers();
  for (const auto& plan : plans_)
    for (const uint32_t fetch : plan->fetches) has_fetch_[fetch] = true;
}

// All contexts are idle, since a running step has a reference to the
// executable.
LocalExecutable::~LocalExecutable() {
  if (std::unique_ptr<RunContext> context = take_spare()) {
    context->next = std::move(idle_);
    idle_ = std::move(context);
  }
  while (unended_ != nullptr) {
    std::unique_ptr<RunContext> context = std::move(unended_);
    unended_ = std::move(context->next);
    context->next = std::move(idle_);
    idle_ = std::move(context);
  }
  while (idle_ != nullptr) {
    std::unique_ptr<RunContext> context = std::move(idle_);
    idle_ = std::move(context->next);
    end_actors(std::move(context));
  }
  // Without memory for a message, the engine stops them when it ends.
  while (unended_ != nullptr) {
    std::unique_ptr<RunContext> context = std::move(unended_);
    unended_ = std::move(context->next);
  }
}

// A Send and its Recv, which are in different plans, have the same number.
void LocalExecutable::number_transfers() {
  std::unordered_map<std::string, uint32_t> numbers;
  for (const auto& plan : plans_)
    for (TransferItem& item : plan->transfers) {
      const auto ends =
          item.is_sent ? Transfer::Ends::kSend : Transfer::Ends::kRecv;
      const auto [it, is_new] =
          numbers.emplace(item.name, uint32_t(transfers_.size()));
      item.number = it->second;
      if (is_new) {
        transfers_.push_back({item.name, ends});
      } else if (transfers_[item.number].ends != ends) {
        transfers_[item.number].ends = Transfer::Ends::kBoth;
      }
    }
  if (!peers_) {
    for (Transfer& transfer : transfers_) transfer.ends = Transfer::Ends::kBoth;
    return;
  }
  for (const auto& plan : plans_)
    for (TransferItem& item : plan->transfers)
      item.leaves = transfers_[item.number].ends == Transfer::Ends::kSend;
}

std::unique_ptr<RunContext> LocalExecutable::make_context() {
  const SpawnRendezvous& spawn_rendezvous =
      peers_ ? peers_->spawn_rendezvous : devices_->engine().spawn_rendezvous();
  auto context = RunContext::make(*devices_, settings_, plans_, transfers_,
                                  spawn_rendezvous);
  context->resources.set_host_access(host_access_);
  try {
    context->supervise(devices_->engine());
  } catch (...) {
    end_actors(std::move(context));
    throw;
  }
  return context;
}

std::unique_ptr<RunContext> LocalExecutable::take_spare() {
  return std::unique_ptr<RunContext>(
      spare_.exchange(nullptr, std::memory_order_acquire));
}

std::unique_ptr<RunContext> LocalExecutable::acquire() {
  if (auto context = take_spare()) return context;
  {
    std::lock_guard lock(mutex_);
    if (idle_ != nullptr) {
      --num_idle_;
      auto context = std::move(idle_);
      idle_ = std::move(context->next);
      return context;
    }
  }
  return make_context();
}

int LocalExecutable::num_idle() const {
  std::lock_guard lock(mutex_);
  return num_idle_ + (spare_.load() != nullptr ? 1 : 0);
}

void LocalExecutable::release(std::unique_ptr<RunContext> context,
                              bool reusable) {
  if (reusable) {
    RunContext* none = nullptr;
    if (spare_.compare_exchange_strong(none, context.get(),
                                       std::memory_order_release)) {
      context.release();
      return;
    }
    std::lock_guard lock(mutex_);
    if (num_idle_ + 1 < kMostIdle) {
      ++num_idle_;
      context->next = std::move(idle_);
      idle_ = std::move(context);
      return;
    }
  }
  end_actors(std::move(context));
}

void LocalExecutable::end_actors(std::unique_ptr<RunContext> context) noexcept {
  try {
    context->end_actors(devices_->engine());
  } catch (...) {
    std::lock_guard lock(mutex_);
    context->next = std::move(unended_);
    unended_ = std::move(context);
  }
}

Status LocalExecutable::start(const std::shared_ptr<Step>& step,
                              std::span<const Tensor> feeds, bool lend,
                              bool count) {
  const Engine& engine = devices_->engine();
  std::unique_ptr<RunContext> context;
  try {
    context = acquire();
    for (const auto& plan : plans_)
      for (const ConstantFetch& constant : plan->constant_fetches)
        step->fetches[constant.fetch] = {constant.value, FetchSlot::kLive};
    if (step->trace != nullptr)
      devices_->begin_trace(step->info.step_id, *step->trace);
  } catch (...) {
    if (context != nullptr) release(std::move(context), true);
    return current_fault("session");
  }
  RunContext* const raw = context.get();
  step->info.parallel = engine.parallel();
  step->info.resources = &raw->resources;
  raw->before = Counters();
  if (count)
    for (PartitionActor* partition : raw->partitions)
      partition->collect(raw->before);
  // The step owns the context until it is quiet.
  step->executable = shared_from_this();
  step->counts = count;
  step->on_quiet = [this, raw](Step& quiet) {
    finish(quiet, std::unique_ptr<RunContext>(raw), quiet.counts);
  };
  context.release();
  step->keep_alive();
  step->add_activity();  // the start itself
  if (step->hold != nullptr) step->hold->attach(step, *raw);
  Runner runner(nullptr, settings_.hand_off, kLentQuantum, step->info.step_id);
  try {
    if (peers_ && !raw->partitions.empty()) {
      raw->peers.emplace(*step, raw->partitions.size(), peers_->describe_wait);
      for (const auto& run : raw->runs) run->peers = &*raw->peers;
      if (raw->rendezvous != nullptr) raw->rendezvous->begin(*step);
    }
    for (size_t p = 0; p < raw->partitions.size(); ++p) {
      Batch* const batch = raw->partitions[p]->take_start();
      batch->step = step.get();
      const std::vector<uint32_t>& taken = plans_[p]->feeds;
      for (uint32_t i = 0; i < taken.size(); ++i)
        batch->tokens.add(i).value = feeds[taken[i]];
      runner.post(raw->partitions[p], batch);
    }
  } catch (...) {
    step->fault();
  }
  if (lend) {
    const Engine::Lent lent(Engine::Lender::kCaller);
    runner.drain();
  } else {
    runner.flush();
  }
  step->drop_activity();
  return {};
}

Step::Answer LocalExecutable::outcome(Step& step, const RunContext& context) {
  const Status error = step.error();
  if (!error.ok() && (!step.was_stopped() || step.answered())) return error;
  std::vector<std::string> missing;
  for (size_t i = 0; i < step.fetches.size(); ++i)
    if (has_fetch_[i] && step.fetches[i].state == FetchSlot::kMissing)
      missing.push_back(fetches_[i]);
  if (!error.ok()) return explain_stop(error, context, missing);
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

void LocalExecutable::finish(Step& step, std::unique_ptr<RunContext> context,
                             bool count) {
  const devices::StepWork work(step.info);
  // An exception here is an error of the step, too.
  try {
    if (step.trace != nullptr)
      devices_->end_trace(step.info.step_id, *step.trace);
  } catch (...) {
    step.fault();
  }
  const auto guarded_outcome = [&]() -> Step::Answer {
    try {
      return outcome(step, *context);
    } catch (...) {
      return current_fault("session");
    }
  };
  Step::Answer answer = guarded_outcome();
  RunStats stats;
  if (count) {
    Counters after;
    for (PartitionActor* partition : context->partitions)
      partition->collect(after);
    after.subtract(context->before);
    after.add_to(stats);
  }
  // If a handler threw, its actor may be in any state.
  bool reusable = !step.faulted();
  try {
    if (!answer.ok() && reusable)
      for (PartitionActor* partition : context->partitions) partition->reset();
    // The next step must not receive tokens of this one.
    if (context->rendezvous != nullptr) context->rendezvous->reset();
    if (reusable)
      for (PartitionActor* partition : context->partitions) partition->trim();
  } catch (...) {
    reusable = false;
  }
  context->peers.reset();
  context->resources.end();
  release(std::move(context), reusable);
  if (step.on_over) {
    step.on_over(step, std::move(answer), stats);
  } else {
    step.answer_on_worker(std::move(answer), stats);
  }
}

}  // namespace tagflow::actors
