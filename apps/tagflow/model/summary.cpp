#include "apps/tagflow/model/summary.h"

#include <algorithm>
#include <unordered_set>

#include "apps/tagflow/model/arg_text.h"
#include "graph/function.h"
#include "graph/function_uses.h"

namespace tagflow::apps {
namespace {

TensorNote note_of_output(const graph::Node& node, int port) {
  return {graph::Endpoint{const_cast<graph::Node*>(&node), port}.to_string(),
          dtype_name(node.output_dtypes()[size_t(port)]),
          node.output_shape(port).to_string()};
}

TensorNote note_of_placeholder(const graph::Node& node) {
  TensorNote note = note_of_output(node, 0);
  const Result<PartialShape> declared = node.attr<PartialShape>("shape");
  if (!node.output_shape(0).has_rank() && declared.ok()) {
    note.shape = declared->to_string();
  }
  return note;
}

// The reader of an Enter: its Merge, if it is a loop variable.
const graph::Node* merge_of(const graph::Node* enter,
                            const graph::StaticFrame& frame) {
  for (const graph::Node* merge : frame.merges) {
    for (const graph::Endpoint& input : merge->inputs()) {
      if (input.node == enter) return merge;
    }
  }
  return nullptr;
}

FrameNote note_of_frame(const graph::StaticFrame& frame) {
  FrameNote note;
  note.name = frame.name;
  note.parent = int(frame.parent);
  note.depth = frame.depth;
  note.parallel_iterations = frame.parallel_iterations;
  for (const graph::Node* cond : frame.loop_conds) {
    if (!cond->inputs().empty()) note.condition = cond->inputs()[0].to_string();
  }
  for (const graph::Node* enter : frame.enters) {
    const graph::Node* merge = merge_of(enter, frame);
    if (merge != nullptr) {
      note.variables.push_back(note_of_output(*merge, 0));
    } else {
      note.invariants.push_back(note_of_output(*enter, 0));
    }
  }
  for (const graph::Node* exit : frame.exits) {
    note.results.push_back(note_of_output(*exit, 0));
  }
  return note;
}

bool is_functional_loop(std::string_view op) {
  return op == "While" || op == "StatelessWhile" || op == "For";
}
bool is_functional_conditional(std::string_view op) {
  return op == "If" || op == "StatelessIf" || op == "Case" ||
         op == "StatelessCase";
}

// Adds a node that calls functions to `calls`, and counts it.
void add_call(const std::string& name, const std::string& op,
              const AttrMap& attrs, const graph::FunctionLibrary& library,
              std::vector<CallNote>& calls, GraphSummary& summary) {
  auto functions = graph::named_functions(op, attrs, library);
  if (functions.empty()) return;
  if (is_functional_loop(op)) ++summary.functional_loops;
  if (is_functional_conditional(op)) ++summary.functional_conditionals;
  calls.push_back({name, op, std::move(functions)});
}

void add_functions(const graph::FunctionLibrary& library,
                   std::span<graph::Node* const> nodes, GraphSummary& summary) {
  for (const graph::Node* node : nodes) {
    add_call(node->name(), node->op(), node->attrs(), library, summary.calls,
             summary);
  }
  const auto all = graph::reached_functions(nodes, library);
  const std::unordered_set<const graph::FunctionDef*> reached(all.begin(),
                                                              all.end());
  for (const graph::FunctionDef* function : library.functions()) {
    FunctionNote note;
    note.name = function->name();
    note.nodes = function->nodes.size();
    note.is_reached = reached.contains(function);
    note.inputs = arg_texts(function->signature.inputs);
    note.outputs = arg_texts(function->signature.outputs);
    for (const graph::NodeDef& node : function->nodes) {
      add_call(node.name, node.op, node.attrs, library, note.calls, summary);
    }
    summary.functions.push_back(std::move(note));
  }
}

// Counts, and finds outputs without readers.
class Summariser {
 public:
  explicit Summariser(std::span<graph::Node* const> nodes) : nodes_(nodes) {
    for (const graph::Node* node : nodes) {
      for (const graph::Endpoint& input : node->inputs()) {
        ++summary_.data_edges;
        if (input.node == nullptr) continue;
        read_.insert({input.node, input.port});
        has_readers_.insert(input.node);
      }
      for (const graph::Node* input : node->control_inputs()) {
        ++summary_.control_edges;
        has_readers_.insert(input);
      }
    }
  }

  GraphSummary run() {
    summary_.nodes = nodes_.size();
    for (const graph::Node* node : nodes_) add(*node);
    return std::move(summary_);
  }

 private:
  void add(const graph::Node& node) {
    ++summary_.ops[node.op()];
    if (!node.device().empty()) ++summary_.devices[node.device()];
    for (const DataType dtype : node.output_dtypes()) {
      ++summary_.dtypes[dtype_name(dtype)];
    }
    if (node.is_const()) add_constant(node);
    if (node.op() == "Placeholder") {
      summary_.inputs.push_back(note_of_placeholder(node));
    }
    if (node.num_outputs() == 0 && !has_readers_.contains(&node)) {
      summary_.sinks.push_back(node.name());
    }
    for (int port = 0; port < node.num_outputs(); ++port) {
      // An unused output of a Switch is not a result.
      if (node.is_switch() && has_readers_.contains(&node)) break;
      // The index of a Merge is not a result either.
      if (node.is_merge() && port == 1) break;
      if (!read_.contains({&node, port})) {
        summary_.unconsumed.push_back(note_of_output(node, port));
      }
    }
  }

  void add_constant(const graph::Node& node) {
    ++summary_.constants;
    const Result<Tensor> value = node.attr<Tensor>("value");
    if (!value.ok()) return;
    summary_.constant_bytes += value->bytes();
    if (value->bytes() > largest_ || summary_.constants == 1) {
      largest_ = value->bytes();
      summary_.largest_constant = {node.name(), dtype_name(value->dtype()),
                                   value->shape().to_string()};
    }
  }

  struct PortHash {
    size_t operator()(const std::pair<const graph::Node*, int>& port) const {
      return std::hash<const void*>()(port.first) * 31 + size_t(port.second);
    }
  };

  std::span<graph::Node* const> nodes_;
  GraphSummary summary_;
  size_t largest_ = 0;
  std::unordered_set<std::pair<const graph::Node*, int>, PortHash> read_;
  std::unordered_set<const graph::Node*> has_readers_;
};

}  // namespace

TensorNote note_of(const graph::Endpoint& endpoint) {
  return endpoint.node->op() == "Placeholder"
             ? note_of_placeholder(*endpoint.node)
             : note_of_output(*endpoint.node, endpoint.port);
}

GraphSummary summarise(const graph::Graph& graph,
                       std::span<graph::Node* const> nodes,
                       const graph::FrameMap& frames) {
  GraphSummary summary = Summariser(nodes).run();
  for (const graph::StaticFrame& frame : frames.frames()) {
    summary.frames.push_back(note_of_frame(frame));
  }
  for (const graph::Node* node : nodes) {
    ++summary.frames[size_t(frames.of(*node))].nodes;
  }
  add_functions(graph.library(), nodes, summary);
  summary.warnings = frames.warnings();
  return summary;
}

}  // namespace tagflow::apps
