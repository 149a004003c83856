// Fuzzes the parts of MetaGraphDefs beside their graphs, and the objects of a
// checkpoint. The first two bytes are the length of these objects, which
// follow; the rest is the MetaGraphDef.
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "graph/file/graph_proto.h"
#include "graph/file/object_graph.h"
#include "graph/file/wire.h"
#include "graph/proto/meta_graph.pb.h"
#include "tests/fuzz/graphdef_checks.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  using namespace tagflow::graph;
  std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (bytes.size() < 2) return 0;
  const size_t length = data[0] | size_t(data[1]) << 8;
  bytes.remove_prefix(2);
  const auto objects = parse_checkpoint_objects(bytes.substr(0, length));
  bytes.remove_prefix(std::min(length, bytes.size()));
  tensorflow::MetaGraphDef proto;
  if (!parse_message(bytes, "MetaGraphDef", &proto).ok()) return 0;
  const auto file = meta_graph_from_proto(proto, fuzz_limits());
  if (!file.ok()) return 0;
  const auto graph = build_graph(*file);
  if (!graph.ok() || !objects.ok()) return 0;
  const auto variables =
      captured_variables(*graph, file->state.objects, *objects);
  if (!variables.ok()) return 0;
  for (const SavedVariable& variable : *variables)
    if (variable.node == nullptr || variable.node->op() != "VarHandleOp")
      std::abort();
  return 0;
}
