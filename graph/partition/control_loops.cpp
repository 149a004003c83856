// Control loops, which start a device's Recvs once in each iteration.
#include "graph/partition/cutter.h"

namespace tagflow::graph {

Cutter::Share& Cutter::share(FrameId frame, uint32_t device) {
  const auto [known, is_new] =
      share_index_.try_emplace(uint64_t(frame) << 32 | device, shares_.size());
  if (is_new) {
    shares_.emplace_back();
    share_of_.emplace_back(frame, device);
  }
  return shares_[known->second];
}

void Cutter::note_share(const Visit& visit) {
  const FrameId frame = frames_.of(*visit.original);
  if (frame == FrameId::kRoot) return;
  Share& share = this->share(frame, device_of(*visit.node));
  share.has_next_iteration |= visit.node->is_next_iteration();
  // If it reads any other value, that value has a token when the node does.
  bool reads_any = false, reads_constants_only = true;
  const auto note = [&](const Node& source) {
    reads_any = true;
    reads_constants_only &= source.is_constant_enter();
  };
  for (const Endpoint& input : visit.node->inputs()) note(*input.node);
  for (const Node* control : visit.node->control_inputs()) note(*control);
  if (reads_any && reads_constants_only)
    share.constant_readers.push_back(visit.node);
}

// These nodes have tokens in every iteration, but start none.
Status Cutter::drive_constant_readers() {
  for (size_t i = 0; i < shares_.size(); ++i) {
    const auto [frame, device] = share_of_[i];
    if (shares_[i].has_next_iteration || shares_[i].constant_readers.empty() ||
        frames_.frame(frame).next_iterations.empty())
      continue;
    const std::vector<Node*> readers = shares_[i].constant_readers;
    TAGFLOW_RETURN_IF_ERROR(
        make_loop({frame, nullptr, readers.front(), device}));
    // Makes the control loop needed, which may have been made for a node that
    // is not needed after all.
    for (Node* reader : readers) drives_.emplace_back(reader, shares_[i].merge);
  }
  return {};
}

Result<Node*> Cutter::starter(const Reading& reading) {
  if (reading.frame == FrameId::kRoot) return nullptr;
  if (frames_.frame(reading.frame).next_iterations.empty())
    return control_enter(reading);
  TAGFLOW_RETURN_IF_ERROR(make_loop(reading));
  return share(reading.frame, reading.device).merge;
}

Result<Node*> Cutter::control_enter(const Reading& reading) {
  if (Node* known = share(reading.frame, reading.device).enter) return known;
  const StaticFrame& frame = frames_.frame(reading.frame);
  if (const std::string& why = whole_[size_t(frame.id)]; !why.empty())
    return invalid_argument(
        "[partition] the loop of frame \"{}\" has to be on one device: {}; "
        "node \"{}\" is on {}{}",
        frame.name, why, reading.reader->name(), device_names_[reading.device],
        reading.source == nullptr
            ? std::string(", the back edges are not")
            : fmt::format(", and reads \"{}\" on {}", reading.source->name(),
                          device_names_[device_of(*reading.source)]));
  const Node& origin = *frame.enters.front();
  Reading outer = reading;
  outer.frame = frame.parent;
  TAGFLOW_ASSIGN(Node * start, starter(outer));
  if (start == nullptr) {
    TAGFLOW_ASSIGN(start, start_of_loops(reading, origin));
  }
  AttrMap attrs{{"frame_name", frame.name},
                {"is_constant", false},
                {"parallel_iterations", frame.parallel_iterations}};
  TAGFLOW_ASSIGN(Node * enter,
                 add(reading.device, origin, "/control_loop/Enter", "Enter",
                     {{start, 0}}, std::move(attrs)));
  return share(reading.frame, reading.device).enter = enter;
}

Status Cutter::make_loop(const Reading& reading) {
  const uint32_t device = reading.device;
  if (share(reading.frame, device).merge != nullptr) return {};
  const StaticFrame& frame = frames_.frame(reading.frame);
  const Node& origin = *frame.enters.front();
  TAGFLOW_ASSIGN(Node * enter, control_enter(reading));
  TAGFLOW_ASSIGN(
      Node * merge,
      add(device, origin, "/control_loop/Merge", "Merge", {{enter, 0}, {}},
          {{"N", int64_t(2)}, {"T", enter->output_dtypes()[0]}}));
  share(reading.frame, device).merge = merge;
  Endpoint predicate{frame.loop_conds.front(), 0};
  if (device_of(*predicate.node) == device) {
    need(predicate.node);
  } else {
    TAGFLOW_ASSIGN(predicate, bring(predicate, merge, device));
  }
  TAGFLOW_ASSIGN(Node * branch, add(device, origin, "/control_loop/Switch",
                                    "Switch", {{merge, 0}, predicate}, {}));
  TAGFLOW_ASSIGN(Node * next, add(device, origin, "/control_loop/NextIteration",
                                  "NextIteration", {{branch, 1}}, {}));
  return graph_.set_input(merge, 1, {next, 0});
}

// The constant that enters the outermost control loops of a device.
Result<Node*> Cutter::start_of_loops(const Reading& reading,
                                     const Node& origin) {
  Node*& start = starts_of_loops_[reading.device];
  if (start == nullptr) {
    AttrMap attrs{{"dtype", DataType::kInt32}, {"value", Tensor::scalar(0)}};
    TAGFLOW_ASSIGN(start, add(reading.device, origin, "/control_loop/start",
                              "Const", {}, std::move(attrs)));
  }
  return start;
}

}  // namespace tagflow::graph
