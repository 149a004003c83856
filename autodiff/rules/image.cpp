// Images of other sizes.
#include <string>

#include "autodiff/rule.h"
#include "autodiff/rules/attributes.h"
#include "graph/builder/ops_array.h"

namespace tagflow::autodiff {

namespace ops = graph::ops;

namespace {

// Resizing is linear in the image, so the gradient of each gradient op is the
// op.
constexpr std::string_view kResizeAttrs[] = {"align_corners",
                                             "half_pixel_centers"};

// Height and width of an input.
Output image_size(RuleContext& r, int input) {
  return ops::slice(r.scope(), r.input_shape(input), r.ints({1}), r.ints({2}));
}

void set_resized(RuleContext& r, const char* op, const graph::Input& size) {
  r.set(0, r.scope().op(op, {r.grad(), size},
                        copied_attrs(r.node(), kResizeAttrs)));
}

}  // namespace

void add_image_rules(RuleTable& table) {
  // The gradient op reads only the shape and type of the image.
  table.add("ResizeBilinear", [](RuleContext& r) {
    set_resized(r, "ResizeBilinearGrad", r.input(0));
  });
  for (const char* op : {"ResizeBilinearGrad", "ResizeNearestNeighborGrad"})
    table.add(op, [](RuleContext& r) {
      std::string resize = r.node().op();
      resize.resize(resize.size() - std::string_view("Grad").size());
      set_resized(r, resize.c_str(), image_size(r, 0));
    });
  table.add("ResizeNearestNeighbor", [](RuleContext& r) {
    set_resized(r, "ResizeNearestNeighborGrad", image_size(r, 0));
  });
}

}  // namespace tagflow::autodiff
