#include "net/worker/registration.h"

#include <algorithm>
#include <utility>

#include "actors/session/backend.h"
#include "actors/session/session_functions.h"
#include "devices/murmur_hash.h"
#include "graph/file/program_file.h"
#include "graph/partition/transfer_name.h"

namespace tagflow::net {
namespace {

actors::SessionOptions options_of(const Register::Settings& settings) {
  static_assert(uint8_t(actors::HandOff::kRandom) ==
                Register::Settings::kMostHandOff);
  actors::SessionOptions options;
  options.window = int(settings.window);
  options.max_call_depth = int(settings.max_call_depth);
  options.max_open_calls = int(settings.max_open_calls);
  if (!settings.compile_edges)
    options.passes = options.passes.without(graph::Pass::kEdges);
  options.hand_off = actors::HandOff(settings.hand_off);
  return options;
}

Result<std::vector<graph::Partition>> read_parts(
    const Register& registration, const actors::DeviceSet& devices,
    const Registrar& worker, graph::Budget& budget) {
  const auto check = [&](const graph::Graph& graph) {
    return worker.policy.check(graph).with_prefix(
        fmt::format("[net] {}, whose owner decides (tagflow worker "
                    "--file-root): ",
                    worker.task));
  };
  std::vector<graph::Partition> partitions;
  for (const Register::Part& part : registration.parts) {
    const auto infos = devices.infos();
    const auto info = std::ranges::find_if(infos, [&](const auto& each) {
      return each.name.to_string() == part.device;
    });
    if (info == infos.end())
      return error(Code::kNotFound, "[net] there is no device {:?} here",
                   part.device);
    graph::Partition partition;
    partition.device = uint32_t(info - infos.begin());
    TAGFLOW_ASSIGN(partition.program,
                   graph::read_program(part.program, {.budget = &budget}));
    TAGFLOW_RETURN_IF_ERROR(check(partition.program.graph));
    for (const auto& body : partition.program.bodies)
      TAGFLOW_RETURN_IF_ERROR(check(body->graph));
    if (!partitions.empty()) {
      const graph::Program& first = partitions.front().program;
      if (first.feeds.size() != partition.program.feeds.size())
        return invalid_argument("[net] the parts have {} and {} feeds",
                                first.feeds.size(),
                                partition.program.feeds.size());
    }
    if (partition.program.fetches.size() != registration.fetches.size())
      return invalid_argument("[net] a part has {} fetches, not {}",
                              partition.program.fetches.size(),
                              registration.fetches.size());
    partitions.push_back(std::move(partition));
  }
  return partitions;
}

void find_feeds(const std::vector<graph::Partition>& partitions,
                Registered& registered) {
  for (const graph::Partition& partition : partitions) {
    const auto& feeds = partition.program.feeds;
    registered.num_feeds = feeds.size();
    for (uint32_t i = 0; i < feeds.size(); ++i) {
      const auto& [node, port] = feeds[i];
      if (node == nullptr) continue;
      registered.feeds.push_back({i, fmt::format("{}:{}", node->name(), port),
                                  node->output_dtypes()[size_t(port)],
                                  node->output_shape(port)});
    }
  }
}

// The transfers of a Send or Recv without its other end have routes; a Recv
// says what it expects.
Status complete_routes(const std::vector<graph::Partition>& partitions,
                       Routes& routes) {
  std::unordered_map<std::string, int> ends;
  for (const graph::Partition& partition : partitions)
    for (const graph::Node* node : partition.program.graph.nodes()) {
      if (!graph::is_transfer(*node)) continue;
      TAGFLOW_ASSIGN(const auto name, graph::transfer_name_of(*node));
      ends[name.key] += name.is_sent ? 1 : -1;
      const auto found = routes.find(name.key);
      if (found == routes.end()) continue;
      found->second.tensor = fmt::format("{:?}", name.tensor);
      if (name.is_sent) continue;
      found->second.dtype = remove_ref(node->output_dtypes()[0]);
      found->second.shape = node->output_shape(0);
    }
  for (const auto& [key, sum] : ends)
    if (sum != 0 && !routes.contains(key))
      return invalid_argument("[net] {} has one end here, and no peer", key);
  return {};
}

// Each worker draws other numbers in its functions, and so does each
// registration of the same functions. This does not depend on what else was
// registered.
uint64_t seed_of(const graph::FunctionLibrary& library, uint64_t seed,
                 Registrar& worker) {
  constexpr size_t kMostCounts = 4096;
  std::string text = worker.task;
  for (const graph::FunctionDef* function : library.functions())
    text += " " + function->name();
  if (worker.counts.size() >= kMostCounts) worker.counts.clear();
  text += fmt::format(" {}", worker.counts[text]++);
  devices::MurmurHash hash(seed, text.size());
  hash.add(text);
  return hash.value();
}

// What the kernels of the parts may reach, with the functions that they call,
// which live at least as long as it.
Result<std::shared_ptr<const devices::HostAccess>> host_of(
    const std::vector<graph::Partition>& partitions,
    const Register::Settings& settings, Registrar& worker) {
  auto library = std::make_shared<graph::FunctionLibrary>();
  for (const graph::Partition& partition : partitions)
    TAGFLOW_RETURN_IF_ERROR(library->merge(partition.program.graph.library()));
  actors::SessionOptions options = options_of(settings);
  options.soft_placement = settings.soft_placement;
  options.seed = seed_of(*library, settings.seed, worker);
  options.policy = worker.policy;
  options.on_warning = worker.on_warning;
  struct Host {
    std::shared_ptr<actors::SessionFunctions> functions;
    std::shared_ptr<const devices::HostAccess> access;
  };
  const auto host = std::make_shared<Host>();
  host->functions = std::make_shared<actors::SessionFunctions>(
      std::move(options), worker.devices, worker.files, nullptr,
      std::move(library));
  host->access = host->functions->host();
  std::erase_if(worker.functions,
                [](const auto& known) { return known.expired(); });
  worker.functions.push_back(host->functions);
  return std::shared_ptr<const devices::HostAccess>(host, host->access.get());
}

// The ports of an executable keep its routes, and so the sessions.
struct NamedSessions {
  Routes routes;
  std::vector<std::shared_ptr<PeerSession>> sessions;
};

}  // namespace

void Registrar::close_functions() {
  for (const auto& known : functions)
    if (const auto open = known.lock()) static_cast<void>(open->close({}));
}

Result<std::shared_ptr<Registered>> compile_registration(
    const Register& registration, Registrar& worker,
    const std::vector<std::shared_ptr<PeerSession>>& sessions, Parts& parts,
    graph::Budget& budget) {
  auto registered = std::make_shared<Registered>();
  registered->fetches = registration.fetches;
  TAGFLOW_ASSIGN(auto partitions,
                 read_parts(registration, *worker.devices, worker, budget));
  find_feeds(partitions, *registered);
  TAGFLOW_ASSIGN(auto host, host_of(partitions, registration.settings, worker));

  const auto named = std::make_shared<NamedSessions>();
  named->sessions = sessions;
  const std::shared_ptr<Routes> routes(named, &named->routes);
  std::vector<std::pair<uint32_t, uint32_t>> counts(sessions.size());
  for (const Register::Transfer& transfer : registration.transfers) {
    auto& [sent, received] = counts[transfer.peer];
    const uint32_t number = transfer.is_sent ? sent++ : received++;
    routes->emplace(transfer.name,
                    Route{sessions[transfer.peer].get(), number});
  }
  TAGFLOW_RETURN_IF_ERROR(complete_routes(partitions, *routes));

  std::string names;
  for (const auto& session : sessions)
    names += (names.empty() ? "" : ", ") + session->name();
  if (names.empty()) names = "no other worker";
  actors::Peers peers{
      .spawn_rendezvous = actors::spawn_with_port(
          [&parts, routes](const std::vector<actors::Transfer>& transfers) {
            return std::make_unique<LinkedPort>(parts, routes, transfers);
          }),
      .describe_wait = [names] { return "what comes from " + names; }};
  TAGFLOW_ASSIGN(
      auto made,
      actors::make_local(std::move(partitions), registration.fetches,
                         options_of(registration.settings), worker.devices,
                         std::move(host), std::move(peers), &budget));
  registered->executable = std::move(made.executable);
  registered->warnings = std::move(made.warnings);
  return registered;
}

}  // namespace tagflow::net
