// Writers of event files, and what is written by them. All of these ops use
// files: a session without files has no use for any.
#include <utility>

#include "graph/op_registry.h"
#include "graph/ops/summary_ops.h"
#include "graph/shape_context.h"

namespace tagflow::graph {
namespace {

// All inputs are scalars.
Status writer_setup_shape(ShapeContext& c) {
  for (int i = 0; i < c.num_inputs(); ++i)
    TAGFLOW_RETURN_IF_ERROR(c.with_rank(i, 0).status());
  return {};
}

// A writer, a step, and what is written.
Status written_shape(ShapeContext& c) {
  TAGFLOW_RETURN_IF_ERROR(c.with_rank(0, 0).status());
  return c.with_rank(1, 0).status();
}

OpDefBuilder writes(const char* name, OpDefBuilder::Texts further) {
  OpDefBuilder op(name);
  op.inputs({"writer: resource", "step: int64"}).inputs(further).stateful();
  return op.shape(written_shape);
}

void add_writer_op(OpRegistry& registry, OpDefBuilder op) {
  registry.add(std::move(op), always_uses_files);
}

}  // namespace

void register_summary_writer_ops(OpRegistry& registry) {
  const char* const number = "T: realnumbertype";
  add_writer_op(registry, OpDefBuilder("SummaryWriter")
                              .output("writer: resource")
                              .attrs({"shared_name: string = ''",
                                      "container: string = ''"})
                              .stateful()
                              .shape(scalar_shape));
  add_writer_op(
      registry,
      OpDefBuilder("CreateSummaryFileWriter")
          .inputs({"writer: resource", "logdir: string", "max_queue: int32",
                   "flush_millis: int32", "filename_suffix: string"})
          .stateful()
          .shape(writer_setup_shape));
  for (const char* name : {"FlushSummaryWriter", "CloseSummaryWriter"})
    add_writer_op(registry, OpDefBuilder(name)
                                .input("writer: resource")
                                .stateful()
                                .shape(writer_setup_shape));
  add_writer_op(
      registry,
      writes("WriteScalarSummary", {"tag: string", "value: T"}).attr(number));
  add_writer_op(
      registry,
      writes("WriteHistogramSummary", {"tag: string", "values: T"})
          .attr("T: {float, double, int32, uint8, int16, int8, int64, "
                "bfloat16, uint16, half, uint32, uint64, bool} = float"));
  add_writer_op(registry,
                writes("WriteImageSummary",
                       {"tag: string", "tensor: T", "bad_color: uint8"})
                    .attrs({"max_images: int >= 1 = 3",
                            "T: {uint8, double, float, half} = float"}));
  add_writer_op(registry,
                writes("WriteAudioSummary",
                       {"tag: string", "tensor: float", "sample_rate: float"})
                    .attr("max_outputs: int >= 1 = 3"));
  add_writer_op(registry, writes("WriteSummary", {"tensor: T", "tag: string",
                                                  "summary_metadata: string"})
                              .attr("T: type"));
  add_writer_op(registry, writes("WriteRawProtoSummary", {"tensor: string"}));
  add_writer_op(registry, writes("WriteGraphSummary", {"tensor: string"}));
  add_writer_op(registry, OpDefBuilder("ImportEvent")
                              .inputs({"writer: resource", "event: string"})
                              .stateful()
                              .shape(writer_setup_shape));
}

}  // namespace tagflow::graph
