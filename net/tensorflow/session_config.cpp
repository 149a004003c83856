#include "net/tensorflow/session_config.h"

#include <algorithm>
#include <initializer_list>

#include "net/proto/config.pb.h"

namespace tagflow::net {
namespace {

constexpr char kOfServer[] = "this is chosen when the server starts";

int count_devices(std::span<const graph::DeviceInfo> devices,
                  const std::string& type) {
  return int(std::ranges::count_if(
      devices, [&](const auto& device) { return device.name.type == type; }));
}

void read_optimizer(const tensorflow::OptimizerOptions& proto,
                    std::vector<std::string>& ignored) {
  using Jit = tensorflow::OptimizerOptions;
  if (proto.global_jit_level() == Jit::ON_1 ||
      proto.global_jit_level() == Jit::ON_2)
    ignored.push_back("global_jit_level has no effect: there is no XLA");
}

using Rewrites = tensorflow::RewriterConfig;

// The passes that do what a client can switch off.
struct Rewrite {
  Rewrites::Toggle (Rewrites::*asked)() const;
  std::initializer_list<graph::Pass> passes;
};
const Rewrite kRewrites[] = {
    {&Rewrites::constant_folding, {graph::Pass::kFold}},
    {&Rewrites::common_subgraph_elimination, {graph::Pass::kCse}},
    {&Rewrites::dependency_optimization, {graph::Pass::kIdentity}},
    {&Rewrites::arithmetic_optimization, {graph::Pass::kAbsorb}},
    {&Rewrites::loop_optimization, {graph::Pass::kDead, graph::Pass::kHoist}},
    {&Rewrites::remapping,
     {graph::Pass::kFuse, graph::Pass::kGroup, graph::Pass::kLayer}},
};

std::vector<graph::Pass> unwanted_passes(const Rewrites& proto) {
  std::vector<graph::Pass> unwanted;
  for (const Rewrite& rewrite : kRewrites)
    if (proto.disable_meta_optimizer() ||
        (proto.*rewrite.asked)() == Rewrites::OFF)
      unwanted.insert(unwanted.end(), rewrite.passes);
  return unwanted;
}

}  // namespace

std::chrono::nanoseconds timeout_of(int64_t milliseconds) {
  constexpr int64_t kLongest = int64_t{1} << 42;  // more than a century
  return std::chrono::milliseconds(
      std::clamp<int64_t>(milliseconds, 0, kLongest));
}

SessionConfig read_config(const tensorflow::ConfigProto& proto,
                          std::span<const graph::DeviceInfo> devices,
                          int workers) {
  SessionConfig config;
  config.soft_placement = proto.allow_soft_placement();
  config.isolated = proto.isolate_session_state();
  config.timeout = timeout_of(proto.operation_timeout_in_ms());
  std::vector<std::string>& ignored = config.ignored;
  for (const auto& [type, count] : proto.device_count()) {
    const int here = count_devices(devices, type);
    // Fewer than there are is what clients say by default.
    if (count > here || (count == 0 && here > 0))
      ignored.push_back(
          fmt::format("device_count has no effect: there are {} {}s, and {}",
                      here, type, kOfServer));
  }
  for (const int threads : {proto.intra_op_parallelism_threads(),
                            proto.inter_op_parallelism_threads()})
    if (threads > 0 && threads != workers)
      ignored.push_back(fmt::format(
          "the numbers of threads have no effect: {} workers run all nodes, "
          "and {}",
          workers, kOfServer));
  const auto say = [&](bool is_set, const char* name, const char* why) {
    if (is_set)
      ignored.push_back(fmt::format("{} has no effect: {}", name, why));
  };
  say(proto.use_per_session_threads() ||
          proto.session_inter_op_thread_pool_size() > 0,
      "a pool of threads of a session", "all sessions share the workers");
  say(proto.device_filters_size() > 0, "device_filters",
      "a session sees all devices of the server");
  const auto& gpu = proto.gpu_options();
  say(gpu.per_process_gpu_memory_fraction() > 0 || gpu.allow_growth() ||
          !gpu.visible_device_list().empty(),
      "gpu_options", kOfServer);
  say(proto.cluster_def().job_size() > 0, "cluster_def",
      "the workers are named by --cluster of the server");
  say(proto.log_device_placement(), "log_device_placement",
      "`tagflow place` prints where nodes run");
  const auto& graph = proto.graph_options();
  say(graph.enable_bfloat16_sendrecv(), "enable_bfloat16_sendrecv", kOfServer);
  say(graph.build_cost_model() > 0, "build_cost_model",
      "the placement has costs of its own");
  read_optimizer(graph.optimizer_options(), ignored);
  config.unwanted = unwanted_passes(graph.rewrite_options());
  return config;
}

std::vector<std::string> ignored_options(const tensorflow::RunOptions& proto) {
  std::vector<std::string> ignored;
  if (proto.inter_op_thread_pool() > 0)
    ignored.push_back(
        "inter_op_thread_pool has no effect: all sessions share the workers");
  if (proto.debug_options().debug_tensor_watch_opts_size() > 0)
    ignored.push_back(
        "debug_options has no effect: no tensor is watched by this server");
  return ignored;
}

}  // namespace tagflow::net
