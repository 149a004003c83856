#include "actors/runtime/run_context.h"

#include <algorithm>
#include <caf/actor_system.hpp>

#include "devices/device.h"
#include "devices/memory_ledger.h"

namespace tagflow::actors {

std::unique_ptr<RunContext> RunContext::make(
    const DeviceSet& devices, const RunSettings& settings,
    std::span<const std::unique_ptr<Plan>> plans,
    const std::vector<Transfer>& transfers,
    const SpawnRendezvous& spawn_rendezvous) {
  const Engine& engine = devices.engine();
  const bool may_wait = std::ranges::any_of(
      plans, [](const auto& plan) { return plan->may_wait; });
  auto context = std::make_unique<RunContext>();
  context->handles.reserve(plans.size() + 1);
  if (!transfers.empty()) {
    context->handles.push_back(spawn_rendezvous(
        engine.system(), settings.hand_off, transfers, &context->batches));
    context->rendezvous = actor_pointer<Rendezvous>(context->handles.back());
  }
  for (const auto& plan : plans) {
    auto run = std::make_unique<PartitionRun>();
    run->plan = plan.get();
    run->policy = settings.hand_off;
    run->workers = engine.workers();
    devices::Device& device = devices.device(plan->device);
    run->device = devices.actor(plan->device);
    run->allocator = &device.allocator();
    run->accelerated = device.accelerator() != nullptr;
    // Note [Budget] in iteration_memory.cpp.
    if (devices::MemoryLedger* ledger = device.ledger();
        ledger != nullptr && ledger->limit() > 0 && !may_wait)
      run->memory = ledger;
    run->max_call_depth = settings.max_call_depth;
    run->max_open_calls = settings.max_open_calls;
    run->batches = &context->batches;
    run->rendezvous = context->rendezvous;
    context->handles.push_back(spawn_actor<PartitionActor, caf::lazy_init>(
        engine.system(), std::ref(*run)));
    context->partitions.push_back(
        actor_pointer<PartitionActor>(context->handles.back()));
    context->runs.push_back(std::move(run));
  }
  return context;
}

void RunContext::supervise(const Engine& engine) const {
  for (const caf::actor& actor : handles) engine.supervise(actor);
}

void RunContext::end_actors(const Engine& engine) const {
  std::vector<caf::actor> ended = handles;
  engine.dismiss(std::move(ended));
}

}  // namespace tagflow::actors
