// Fuzzes DecodeProtoV2: a descriptor that a graph brings, and a message. The
// first byte chooses the format, the next two are the descriptor's size. Fields
// that were decoded are encoded again.
#include <cstdlib>
#include <string>
#include <string_view>

#include "devices/kernel_registry.h"
#include "graph/graph.h"

using namespace tagflow;           // NOLINT: a fuzz target
using namespace tagflow::devices;  // NOLINT: likewise

namespace {

// Runs a node whose inputs are fed.
Result<std::vector<Tensor>> run(std::string_view op, std::vector<Tensor> inputs,
                                AttrMap attrs) {
  graph::Graph graph;
  std::vector<graph::Endpoint> from;
  for (size_t i = 0; i < inputs.size(); ++i) {
    TAGFLOW_ASSIGN(graph::Node * input,
                   graph.add("i" + std::to_string(i), "Placeholder", {},
                             {{"dtype", inputs[i].dtype()}}));
    from.push_back({input, 0});
  }
  TAGFLOW_ASSIGN(graph::Node * node,
                 graph.add("op", op, from, std::move(attrs)));
  TAGFLOW_ASSIGN(const auto kernel,
                 KernelRegistry::global().make(*node, "CPU"));
  std::vector<Tensor> outputs(size_t(node->num_outputs()));
  const StepInfo step;
  const Tag tag;
  KernelContext context(node, inputs, outputs, &step, &tag);
  TAGFLOW_RETURN_IF_ERROR(kernel->compute(context));
  return outputs;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 3) return 0;
  const std::string_view all(reinterpret_cast<const char*>(data) + 3, size - 3);
  const size_t split = size_t(data[1]) << 8 | data[2];
  const std::string source =
      "bytes://" + std::string(all.substr(0, std::min(split, all.size())));
  const std::string message(all.substr(std::min(split, all.size())));
  using Types = std::vector<DataType>;
  const std::vector<std::string> names{"a", "b", "c"};
  const Types types{DataType::kInt32, DataType::kString, DataType::kFloat};
  const size_t count = size_t(data[0] & 3);
  const std::vector<std::string> some(names.begin(),
                                      names.begin() + int64_t(count));
  const Types their(types.begin(), types.begin() + int64_t(count));
  const auto decoded =
      run("DecodeProtoV2", {Tensor::vector<std::string>({message})},
          {{"descriptor_source", source},
           {"message_type", std::string("M")},
           {"field_names", some},
           {"output_types", their},
           {"message_format", std::string(data[0] & 4 ? "text" : "binary")},
           {"sanitize", (data[0] & 8) != 0}});
  if (!decoded.ok() || count == 0) return 0;
  const auto encoded = run("EncodeProto", *decoded,
                           {{"descriptor_source", source},
                            {"message_type", std::string("M")},
                            {"field_names", some},
                            {"Tinput_types", their}});
  // Extensions cannot be encoded. Those of a file without a package are named
  // as fields are.
  if (!encoded.ok() &&
      encoded.status().message().find("is an extension") == std::string::npos)
    std::abort();
  return 0;
}
