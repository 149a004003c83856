// Sizes of images.
#include "graph/op_registry.h"
#include "graph/shape_context.h"

namespace tagflow::graph {
namespace {

// [batch, size[0], size[1], channels] of the images of input 0.
Status resize_image_shape(ShapeContext& c) {
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
  return OpDefBuilder(name).attrs({types, "align_corners: bool = false",
                                   "half_pixel_centers: bool = false"});
}

}  // namespace

void register_image_ops(OpRegistry& registry) {
  const char* types =
      "T: {int8, uint8, int16, uint16, int32, int64, half, float, double, "
      "bfloat16}";
  registry.add(resize("ResizeBilinear", types)
                   .inputs({"images: T", "size: int32"})
                   .output("resized_images: float")
                   .shape(resize_image_shape)
                   .work(Work::kTranscendental));
  registry.add(resize("ResizeNearestNeighbor", types)
                   .inputs({"images: T", "size: int32"})
                   .output("resized_images: T")
                   .shape(resize_image_shape)
                   .work(Work::kPick));
  registry.add(
      resize("ResizeBilinearGrad", "T: {float, bfloat16, half, double}")
          .inputs({"grads: float", "original_image: T"})
          .output("output: T")
          .shape(like_image_shape)
          .work(Work::kTranscendental));
  registry.add(resize("ResizeNearestNeighborGrad",
                      "T: {uint8, int8, int32, half, float, double, bfloat16}")
                   .inputs({"grads: T", "size: int32"})
                   .output("output: T")
                   .shape(resize_image_shape));
}

}  // namespace tagflow::graph
