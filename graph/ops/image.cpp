// Sizes of images.
#include "graph/op_registry.h"
#include "graph/ops/ops.h"
#include "graph/shape_context.h"

namespace tagflow::graph {
namespace {

// [batch, size[0], size[1], channels] of the images of input 0.
Status resize_shape(ShapeContext& c) {
  TAGFLOW_ASSIGN(PartialShape out, c.with_rank(0, 4));
  TAGFLOW_RETURN_IF_ERROR(c.with_rank(1, 1).status());
  TAGFLOW_ASSIGN(const PartialShape size, c.constant_as_shape(1));
  if (size.has_rank() && size.rank() != 2)
    return c.fail(fmt::format("the size has {} elements, not 2", size.rank()));
  for (int i : {0, 1})
    out.set_dim(i + 1, size.has_rank() ? size.dim(i) : PartialShape::kUnknown);
  c.set_output(0, std::move(out));
  return Status();
}

Status like_image_shape(ShapeContext& c) {
  TAGFLOW_RETURN_IF_ERROR(c.with_rank(0, 4).status());
  TAGFLOW_ASSIGN(PartialShape image, c.with_rank(1, 4));
  c.set_output(0, std::move(image));
  return Status();
}

OpDefBuilder resize(const char* name, const char* types) {
  return OpDefBuilder(name)
      .attr(types)
      .attr("align_corners: bool = false")
      .attr("half_pixel_centers: bool = false");
}

}  // namespace

void register_image_ops(OpRegistry& registry) {
  const char* types =
      "T: {int8, uint8, int16, uint16, int32, int64, half, float, double, "
      "bfloat16}";
  registry.add(resize("ResizeBilinear", types)
                   .input("images: T")
                   .input("size: int32")
                   .output("resized_images: float")
                   .work(Work::kTranscendental)
                   .shape(resize_shape));
  registry.add(resize("ResizeNearestNeighbor", types)
                   .input("images: T")
                   .input("size: int32")
                   .output("resized_images: T")
                   .work(Work::kPick)
                   .shape(resize_shape));
  registry.add(
      resize("ResizeBilinearGrad", "T: {float, bfloat16, half, double}")
          .input("grads: float")
          .input("original_image: T")
          .output("output: T")
          .work(Work::kTranscendental)
          .shape(like_image_shape));
  registry.add(resize("ResizeNearestNeighborGrad",
                      "T: {uint8, int8, int32, half, float, double, bfloat16}")
                   .input("grads: T")
                   .input("size: int32")
                   .output("output: T")
                   .shape(resize_shape));
}

}  // namespace tagflow::graph
