// Summaries: what programs say of themselves, as serialized messages, and what
// writes these to event files.
#include "graph/op_registry.h"
#include "graph/ops/summary_ops.h"
#include "graph/shape_context.h"

namespace tagflow::graph {
namespace {

Status summary_shape(ShapeContext& c) {
  c.set_output(0, PartialShape::scalar());
  return {};
}

// Input 0, and those from 2 on, are scalars.
Status tagged_summary_shape(ShapeContext& c) {
  TAGFLOW_RETURN_IF_ERROR(c.with_rank(0, 0).status());
  for (int i = 2; i < c.num_inputs(); ++i)
    TAGFLOW_RETURN_IF_ERROR(c.with_rank(i, 0).status());
  return summary_shape(c);
}

Status picture_summary_shape(ShapeContext& c) {
  TAGFLOW_RETURN_IF_ERROR(c.with_rank(1, 4).status());
  return tagged_summary_shape(c);
}

OpDef picture_summary() {
  OpDef def = OpDefBuilder("ImageSummary")
                  .inputs({"tag: string", "tensor: T"})
                  .output("summary: string")
                  .attrs({"max_images: int >= 1 = 3",
                          "T: {uint8, float, half, double} = float",
                          "bad_color: tensor"})
                  .shape(picture_summary_shape)
                  .work(Work::kSort)
                  .build();
  for (AttrDef& attr : def.attrs)
    // Red.
    if (attr.name == "bad_color")
      attr.default_value = Tensor::vector<uint8_t>({255, 0, 0, 255});
  return def;
}

}  // namespace

void register_summary_ops(OpRegistry& registry) {
  registry.add(OpDefBuilder("ScalarSummary")
                   .inputs({"tags: string", "values: T"})
                   .output("summary: string")
                   .attr("T: realnumbertype")
                   .shape(summary_shape));
  registry.add(OpDefBuilder("HistogramSummary")
                   .inputs({"tag: string", "values: T"})
                   .output("summary: string")
                   .attr("T: realnumbertype = float")
                   .shape(tagged_summary_shape)
                   .work(Work::kSort));
  (void)registry.add(picture_summary());
  registry.add(OpDefBuilder("AudioSummary")
                   .inputs({"tag: string", "tensor: float"})
                   .output("summary: string")
                   .attrs({"sample_rate: float", "max_outputs: int >= 1 = 3"})
                   .shape(tagged_summary_shape));
  registry.add(
      OpDefBuilder("AudioSummaryV2")
          .inputs({"tag: string", "tensor: float", "sample_rate: float"})
          .output("summary: string")
          .attr("max_outputs: int >= 1 = 3")
          .shape(tagged_summary_shape));
  registry.add(
      OpDefBuilder("TensorSummary")
          .input("tensor: T")
          .output("summary: string")
          .attrs({"T: type", "description: string = ''",
                  "labels: list(string) = []", "display_name: string = ''"})
          .shape(summary_shape));
  registry.add(OpDefBuilder("TensorSummaryV2")
                   .inputs({"tag: string", "tensor: T",
                            "serialized_summary_metadata: string"})
                   .output("summary: string")
                   .attr("T: type")
                   .shape(tagged_summary_shape));
  registry.add(OpDefBuilder("MergeSummary")
                   .input("inputs: N * string")
                   .output("summary: string")
                   .attr("N: int >= 1")
                   .shape(summary_shape));
  register_summary_writer_ops(registry);
}

}  // namespace tagflow::graph
