#include "apps/shared/live/picture.h"

#include <charconv>
#include <nlohmann/json.hpp>
#include <utility>

namespace tagflow::apps::live {
namespace {

using Json = nlohmann::ordered_json;
using actors::StepView;

constexpr size_t kMostName = 1024;  // bytes, of a frame

Json to_object(const StepView::Iteration& iteration) {
  Json nodes = Json::array(), tokens = Json::array();
  for (const StepView::Node& node : iteration.nodes)
    nodes.push_back({{"name", node.name},
                     {"op", node.op},
                     {"runs", node.runs},
                     {"missing", node.missing}});
  for (const StepView::Token& token : iteration.tokens)
    tokens.push_back(
        {{"node", token.node}, {"input", token.input}, {"value", token.value}});
  return {{"number", iteration.number},
          {"stopped", iteration.is_stopped},
          {"fired", iteration.fired},
          {"waiting", iteration.waiting},
          {"running", iteration.running},
          {"untouched", iteration.untouched},
          {"nodes", std::move(nodes)},
          {"tokens", std::move(tokens)},
          {"more_nodes", iteration.more_nodes},
          {"more_tokens", iteration.more_tokens}};
}

Json to_object(const StepView& view) {
  Json devices = Json::array(), loops = Json::array(), frames = Json::array();
  for (const StepView::Device& device : view.devices)
    devices.push_back({{"name", device.name},
                       {"fired", device.fired},
                       {"dead", device.dead},
                       {"iterations", device.iterations},
                       {"hops", device.hops}});
  for (const StepView::Loop& loop : view.loops)
    loops.push_back({{"device", loop.device},
                     {"name", loop.name},
                     {"trips", loop.trips},
                     {"instances", loop.instances}});
  for (const StepView::Frame& frame : view.frames) {
    Json iterations = Json::array();
    for (const StepView::Iteration& iteration : frame.iterations)
      iterations.push_back(to_object(iteration));
    frames.push_back({{"parent", frame.parent},
                      {"device", frame.device},
                      {"name", frame.name},
                      {"tag", frame.tag},
                      {"window", frame.window},
                      {"ring", frame.ring},
                      {"iterations", std::move(iterations)},
                      {"more_iterations", frame.more_iterations}});
  }
  return {{"step", view.step},
          {"stopped", view.is_stopped},
          {"devices", std::move(devices)},
          {"loops", std::move(loops)},
          {"frames", std::move(frames)},
          {"more_frames", view.more_frames},
          {"waits", view.waits},
          {"kernels", view.kernels}};
}

Result<std::string> name_of(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end()) return std::string();
  if (!found->is_string() ||
      found->get_ref<const std::string&>().size() > kMostName)
    return invalid_argument("[inspect] \"{}\" is no name", key);
  return found->get<std::string>();
}

}  // namespace

std::string to_json(const Picture& picture) {
  Json parts = Json::array(), queues = Json::array(), memory = Json::array(),
       watched = Json::array();
  for (const actors::SeenPart& part : picture.parts)
    parts.push_back({{"task", part.task},
                     {"view", part.view ? to_object(*part.view) : Json()}});
  for (const Queue& queue : picture.queues)
    queues.push_back({{"name", queue.name},
                      {"size", queue.size},
                      {"capacity", queue.capacity},
                      {"closed", queue.is_closed},
                      {"text", queue.text}});
  for (const DeviceMemory& device : picture.memory)
    memory.push_back({{"device", device.device},
                      {"in_use", device.memory.in_use},
                      {"peak", device.memory.peak},
                      {"limit", device.memory.limit}});
  for (const auto& one : picture.watched)
    watched.push_back({{"tensor", one.tensor},
                       {"tag", one.tag},
                       {"value", one.value},
                       {"times", one.times}});
  Json object = {
      {"seconds", picture.seconds},
      {"running", picture.is_running},
      {"stop", picture.stop ? Json{{"frame", picture.stop->frame},
                                   {"iteration", picture.stop->iteration}}
                            : Json()},
      {"parts", std::move(parts)},
      {"queues", std::move(queues)},
      {"memory", std::move(memory)},
      {"process_bytes", picture.process_bytes},
      {"watched", std::move(watched)},
      {"can_watch", picture.can_watch},
      {"error", picture.error},
      {"look_ms", picture.look_ms},
      {"viewers", picture.viewers}};
  return object.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<Wish> Wish::parse(std::string_view text) {
  const Json object = Json::parse(text, nullptr, false);
  if (!object.is_object())
    return invalid_argument("[inspect] a viewer asks by a JSON object");
  TAGFLOW_ASSIGN(const std::string what, name_of(object, "do"));
  Wish wish;
  if (what == "go") return wish;
  if (what == "watch") {
    wish.kind = Kind::kWatch;
    const auto tensors = object.find("tensors");
    if (tensors == object.end() || !tensors->is_array() ||
        tensors->size() > actors::Inspector::kMostWatched)
      return invalid_argument("[inspect] \"tensors\" is a list of at most {}",
                              actors::Inspector::kMostWatched);
    for (const Json& tensor : *tensors) {
      if (!tensor.is_string() ||
          tensor.get_ref<const std::string&>().size() > kMostName)
        return invalid_argument("[inspect] a tensor is NODE:PORT");
      wish.tensors.push_back(tensor.get<std::string>());
    }
    return wish;
  }
  TAGFLOW_ASSIGN(wish.stop.frame, name_of(object, "frame"));
  if (what == "next") {
    wish.kind = Kind::kNext;
    return wish;
  }
  if (what != "stop")
    return invalid_argument(
        "[inspect] a viewer asks for \"stop\", \"go\", \"next\" or \"watch\"");
  wish.kind = Kind::kStop;
  const auto iteration = object.find("iteration");
  if (iteration == object.end()) return wish;
  if (!iteration->is_number_integer() || iteration->get<int64_t>() < 0)
    return invalid_argument("[inspect] \"iteration\" is a number from 0 on");
  wish.stop.iteration = iteration->get<int64_t>();
  return wish;
}

Result<actors::StopPoint> parse_stop(std::string_view text) {
  actors::StopPoint stop;
  const size_t slash = text.rfind('/');
  if (slash != std::string_view::npos) stop.frame = text.substr(0, slash);
  const std::string_view number =
      slash == std::string_view::npos ? text : text.substr(slash + 1);
  const auto [end, failure] = std::from_chars(
      number.data(), number.data() + number.size(), stop.iteration);
  if (number.empty() || failure != std::errc() ||
      end != number.data() + number.size() || stop.iteration < 0)
    return invalid_argument("\"{}\" is not [FRAME/]ITERATION", text);
  return stop;
}

}  // namespace tagflow::apps::live
