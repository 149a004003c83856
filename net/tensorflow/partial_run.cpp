#include "net/tensorflow/partial_run.h"

#include <algorithm>
#include <utility>

#include "graph/dtype.h"
#include "graph/fault.h"
#include "graph/node_set.h"
#include "net/tensorflow/rewiring.h"

namespace tagflow::net {
namespace {

using graph::Endpoint;
using graph::Node;

DataType type_of(const Endpoint& at) {
  return remove_ref(at.node->output_dtypes()[size_t(at.port)]);
}

}  // namespace

std::chrono::nanoseconds time_left(EndTime by) {
  return std::max(by - EndTime::clock::now(), EndTime::duration::zero());
}

void end_session(actors::Session& session, const std::string& container,
                 EndTime by) {
  // Errors say that there is nothing to be done, or that a kernel goes on.
  static_cast<void>(session.reset({container}));
  static_cast<void>(session.close(time_left(by)));
  static_cast<void>(session.reset({container}));
}

Result<std::shared_ptr<PartialRun>> PartialRun::start(
    graph::Graph graph, actors::SessionOptions options, const Setup& setup,
    std::function<void()> on_over) {
  if (setup.fetches.empty() && setup.targets.empty())
    return invalid_argument(
        "[service] a partial run must specify at least one target to fetch or "
        "execute.");
  return guarded("service", [&]() -> Result<std::shared_ptr<PartialRun>> {
    std::shared_ptr<PartialRun> run(new PartialRun());
    run->graph_ = std::move(graph);
    run->container_ = setup.name;
    run->on_end_ = std::move(on_over);
    // The run itself waits for its client's next step, however long.
    run->timeout_ = std::exchange(options.timeout, {});
    TAGFLOW_RETURN_IF_ERROR(run->build(setup));
    TAGFLOW_ASSIGN(run->session_, actors::Session::create(std::move(options)));
    TAGFLOW_RETURN_IF_ERROR(run->session_->extend(run->graph_));
    std::vector<std::string> at_end{run->end_put_};
    for (const auto& [name, port] : run->fetches_) at_end.push_back(port.close);
    TAGFLOW_ASSIGN(run->tell_end_,
                   run->session_->make_callable({}, {}, at_end));
    std::vector<std::string> targets = run->outs_;
    targets.insert(targets.end(), setup.targets.begin(), setup.targets.end());
    run->session_->run_async({}, {}, targets, {.cancel = run->token_},
                             [run](auto answer, const actors::RunStats&) {
                               run->on_over(std::move(answer).status());
                             });
    return run;
  });
}

Status PartialRun::build(const Setup& setup) {
  for (const std::string& name : setup.feeds)
    TAGFLOW_RETURN_IF_ERROR(add_feed(name, setup));
  for (const std::string& name : setup.fetches)
    TAGFLOW_RETURN_IF_ERROR(add_fetch(name, setup));
  return add_end(setup);
}

Status PartialRun::add_end(const Setup& setup) {
  const std::string prefix = "_partial_run/end";
  TAGFLOW_ASSIGN(const Endpoint queue,
                 add_queue(prefix, DataType::kBool, setup));
  TAGFLOW_ASSIGN(Node* const value,
                 graph_.add(graph_.unique_name(prefix + "/value"), "Const", {},
                            {{"dtype", DataType::kBool},
                             {"value", Tensor::scalar<bool>(true)}}));
  TAGFLOW_ASSIGN(const Node* const put,
                 add_enqueue(prefix + "/put", queue, {value, 0}));
  TAGFLOW_ASSIGN(const Node* const take,
                 add_dequeue(prefix + "/take", queue, DataType::kBool));
  end_put_ = put->name();
  end_take_ = take->name();
  return {};
}

Result<Endpoint> PartialRun::add_queue(const std::string& prefix, DataType type,
                                       const Setup& setup) {
  TAGFLOW_ASSIGN(
      Node* const queue,
      graph_.add(graph_.unique_name(prefix + "/queue"), "FIFOQueueV2", {},
                 {{"component_types", std::vector<DataType>{type}},
                  {"container", setup.name},
                  {"shared_name", prefix}}));
  return Endpoint{queue, 0};
}

Result<Node*> PartialRun::add_enqueue(const std::string& name,
                                      const Endpoint& queue,
                                      const Endpoint& value) {
  return graph_.add(graph_.unique_name(name), "QueueEnqueueV2",
                    {{queue, value}},
                    {{"Tcomponents", std::vector<DataType>{type_of(value)}}});
}

Result<Node*> PartialRun::add_dequeue(const std::string& name,
                                      const Endpoint& queue, DataType type) {
  return graph_.add(graph_.unique_name(name), "QueueDequeueV2", {{queue}},
                    {{"component_types", std::vector<DataType>{type}}});
}

Status PartialRun::add_feed(const std::string& name, const Setup& setup) {
  TAGFLOW_ASSIGN(const Endpoint fed, graph_.endpoint(name));
  Port port;
  const std::string prefix = fmt::format("_partial_run/feed_{}", feeds_.size());
  TAGFLOW_ASSIGN(const Endpoint queue, add_queue(prefix, type_of(fed), setup));
  TAGFLOW_ASSIGN(port.get, add_dequeue(prefix + "/get", queue, type_of(fed)));
  TAGFLOW_ASSIGN(
      Node* const value,
      graph_.add(graph_.unique_name(prefix + "/value"), "Placeholder", {},
                 {{"dtype", type_of(fed)},
                  {"shape", fed.node->output_shape(fed.port)}}));
  TAGFLOW_ASSIGN(const Node* const put,
                 add_enqueue(prefix + "/put", queue, {value, 0}));
  port.value = value->name();
  port.put = put->name();
  TAGFLOW_RETURN_IF_ERROR(replace_readers(graph_, fed, {port.get, 0}));
  if (!feeds_.emplace(fed.to_string(), std::move(port)).second)
    return invalid_argument("[service] {} is fed twice", fed.to_string());
  return {};
}

Status PartialRun::add_fetch(const std::string& name, const Setup& setup) {
  TAGFLOW_ASSIGN(const Endpoint fetched, graph_.endpoint(name));
  if (fetches_.contains(fetched.to_string())) return {};
  Port port;
  const auto fed = feeds_.find(fetched.to_string());
  port.source = fed == feeds_.end() ? fetched : Endpoint{fed->second.get, 0};
  const std::string prefix =
      fmt::format("_partial_run/fetch_{}", fetches_.size());
  TAGFLOW_ASSIGN(const Endpoint queue,
                 add_queue(prefix, type_of(fetched), setup));
  TAGFLOW_ASSIGN(const Node* const out,
                 add_enqueue(prefix + "/out", queue, port.source));
  TAGFLOW_ASSIGN(const Node* const take,
                 add_dequeue(prefix + "/take", queue, type_of(fetched)));
  TAGFLOW_ASSIGN(const Node* const close,
                 graph_.add(graph_.unique_name(prefix + "/close"),
                            "QueueCloseV2", {{queue}}));
  outs_.push_back(out->name());
  port.take = take->name();
  port.close = close->name();
  fetches_.emplace(fetched.to_string(), std::move(port));
  return {};
}

Result<std::string> PartialRun::key(const std::string& name) const {
  TAGFLOW_ASSIGN(const Endpoint at, graph_.endpoint(name));
  return at.to_string();
}

const std::string* PartialRun::missing_for(const Endpoint& source) const {
  std::map<const Node*, const std::string*> unfed;
  for (const auto& [name, port] : feeds_)
    if (!port.is_used) unfed.emplace(port.get, &name);
  if (unfed.empty()) return nullptr;
  graph::NodeSet seen;
  std::vector<const Node*> todo;
  const auto visit = [&](const Node* node) {
    if (node != nullptr && seen.insert(*node)) todo.push_back(node);
  };
  visit(source.node);
  while (!todo.empty()) {
    const Node* const node = todo.back();
    todo.pop_back();
    if (const auto at = unfed.find(node); at != unfed.end()) return at->second;
    for (const Endpoint& input : node->inputs()) visit(input.node);
    for (const Node* control : node->control_inputs()) visit(control);
  }
  return nullptr;
}

Status PartialRun::claim(const Feeds& feeds,
                         const std::vector<std::string>& fetches) {
  std::vector<Port*> used;
  const auto look_up = [&](Ports& ports, const std::string& name,
                           const char* kind, const char* done) -> Status {
    TAGFLOW_ASSIGN(const std::string tensor, key(name));
    const auto at = ports.find(tensor);
    if (at == ports.end())
      return invalid_argument(
          "[service] the {} {} was not specified in partial_run_setup.", kind,
          tensor);
    if (std::exchange(at->second.is_used, true))
      return invalid_argument("[service] the {} {} has already been {}.", kind,
                              tensor, done);
    used.push_back(&at->second);
    return {};
  };
  const auto check = [&]() -> Status {
    for (const auto& [name, value] : feeds)
      TAGFLOW_RETURN_IF_ERROR(look_up(feeds_, name, "feed", "fed"));
    for (const std::string& name : fetches) {
      TAGFLOW_RETURN_IF_ERROR(look_up(fetches_, name, "fetch", "fetched"));
      if (const auto* missing = missing_for(used.back()->source))
        return invalid_argument(
            "[service] the fetch {} cannot be computed from the feeds that "
            "have been fed so far: {} is missing",
            name, *missing);
    }
    return {};
  };
  Status status = check();
  if (!status.ok())
    for (Port* port : used) port->is_used = false;
  return status;
}

bool PartialRun::is_used_up() const {
  const auto is_used = [](const auto& port) { return port.second.is_used; };
  return std::ranges::all_of(feeds_, is_used) &&
         std::ranges::all_of(fetches_, is_used);
}

void PartialRun::step(Feeds feeds, const std::vector<std::string>& fetches,
                      std::chrono::nanoseconds timeout,
                      const actors::CancelToken& token, Answer answer) {
  std::vector<actors::Feed> values;
  std::vector<std::string> takes, puts;
  uint64_t number = 0;
  Status status = guarded("service", [&]() -> Status {
    const std::lock_guard lock(mutex_);
    if (over_ && !over_->ok()) {
      has_failed_step_ = true;
      return *over_;
    }
    if (feeds.empty() && fetches.empty())
      return invalid_argument("[service] the step feeds and fetches nothing");
    TAGFLOW_RETURN_IF_ERROR(claim(feeds, fetches));
    for (auto& [name, value] : feeds) {
      TAGFLOW_ASSIGN(const std::string tensor, key(name));
      const Port& port = feeds_.at(tensor);
      values.emplace_back(port.value, std::move(value));
      puts.push_back(port.put);
    }
    for (const std::string& name : fetches) {
      TAGFLOW_ASSIGN(const std::string tensor, key(name));
      takes.push_back(fetches_.at(tensor).take);
    }
    if (is_used_up()) puts.push_back(end_take_);
    number = ++last_step_;
    open_.emplace(number, token);
    return {};
  });
  if (!status.ok()) return answer(std::move(status));
  if (timeout.count() == 0) timeout = timeout_;
  session_->run_async(
      values, takes, puts, {.timeout = timeout, .cancel = token},
      [self = shared_from_this(), number, answer = std::move(answer)](
          Result<std::vector<Tensor>> result, const actors::RunStats&) {
        answer(self->on_step(number, std::move(result)));
      });
}

Result<std::vector<Tensor>> PartialRun::on_step(
    uint64_t number, Result<std::vector<Tensor>> result) {
  std::optional<Status> over;
  {
    const std::lock_guard lock(mutex_);
    open_.erase(number);
    over = over_;
    has_failed_step_ = has_failed_step_ || !result.ok();
  }
  if (result.ok()) return result;
  token_.cancel();
  if (over && !over->ok()) return *std::move(over);
  if (over && result.status().code() == Code::kOutOfRange)
    return invalid_argument(
        "[service] a fetch of the partial run is dead: a conditional has taken "
        "its other branch");
  return result;
}

void PartialRun::on_over(Status status) {
  std::vector<actors::CancelToken> open;
  {
    const std::lock_guard lock(mutex_);
    over_ = status;
    if (!status.ok())
      for (const auto& [number, token] : open_) open.push_back(token);
  }
  for (actors::CancelToken& token : open) token.cancel();
  if (status.ok())
    tell_end_.run_async({}, {}, [self = shared_from_this()](auto, auto) {});
  if (on_end_) on_end_();
}

bool PartialRun::is_over() const {
  const std::lock_guard lock(mutex_);
  return over_ && open_.empty() &&
         (has_failed_step_ || (over_->ok() && is_used_up()));
}

void PartialRun::close(EndTime by) { end_session(*session_, container_, by); }

}  // namespace tagflow::net
