// Einsum of one or two operands.
//
// Labels fall into classes: batch labels are in both operands and in the
// result, contracted ones in both but not in the result, free ones in one
// operand and the result, summed ones in one operand only. Each operand is
// gathered to [batch, free, contracted]; this takes diagonals and sums. A batch
// of matrix products follows. Its result [batch, free a, free b] is written in
// the order of the output's labels.
#include <algorithm>
#include <cmath>
#include <map>

#include "devices/kernel_registry.h"
#include "devices/kernels/product/products.h"
#include "devices/kernels/reduction/ops.h"
#include "graph/ops/product_einsum.h"

namespace tagflow::devices {
namespace {

using graph::Equation;
using graph::kEllipsis;
using graph::Label;
using graph::Labels;

bool contains(const Labels& labels, Label label) {
  return std::ranges::find(labels, label) != labels.end();
}

// The size of each label, over all operands.
class LabelSizes {
 public:
  // InvalidArgument if a label has two sizes.
  Status add(const KernelContext& context, const Labels& labels,
             const Tensor& operand) {
    for (size_t i = 0; i < labels.size(); ++i) {
      const int64_t size = operand.dim(int(i));
      const auto [it, is_new] = sizes_.try_emplace(labels[i], size);
      const bool broadcasts = labels[i] >= kEllipsis;
      if (is_new || it->second == size || (broadcasts && size == 1)) continue;
      if (!broadcasts || it->second != 1)
        return context.fail(
            "dimension {} of {} is not {} as another of its "
            "label",
            i, operand.describe(), it->second);
      it->second = size;
    }
    return Status();
  }
  int64_t operator[](Label label) const { return sizes_.at(label); }
  Result<Shape> shape(const Labels& labels) const {
    Shape::Dims dims;
    for (Label label : labels) dims.push_back(sizes_.at(label));
    return Shape::make({dims.data(), dims.size()});
  }

 private:
  std::map<Label, int64_t> sizes_;
};

// One dimension of a walk: the number of steps, and their stride in elements.
struct Walk {
  int64_t size, step;
};

// The walk over `operand` along the labels. A repeated label walks along a
// diagonal; a label that the operand lacks, or has with size 1, does not move.
std::vector<Walk> walk_along(const Labels& along, const Labels& labels,
                             const Tensor& operand, const LabelSizes& sizes) {
  std::vector<Walk> walk;
  for (Label label : along) {
    // Unsigned: for an empty operand they may overflow.
    uint64_t step = 1, sum = 0;
    for (size_t i = labels.size(); i-- > 0;) {
      if (labels[i] == label && operand.dim(int(i)) != 1) sum += step;
      step *= uint64_t(operand.dim(int(i)));
    }
    walk.push_back({sizes[label], int64_t(sum)});
  }
  return walk;
}

// Calls body(offset) for every position of the walk, in order.
// REQUIRES: no size is 0.
template <class Body>
void for_walk(const std::vector<Walk>& walk, Body&& body) {
  std::vector<int64_t> at(walk.size(), 0);
  int64_t offset = 0;
  while (true) {
    body(offset);
    size_t i = walk.size();
    while (i > 0) {
      --i;
      offset += walk[i].step;
      if (++at[i] < walk[i].size) break;
      offset -= at[i] * walk[i].step;
      at[i] = 0;
      if (i == 0) return;
    }
    if (walk.empty()) return;
  }
}

// The elements of `operand` in the order of `wanted`, summed over `summed`.
Result<Tensor> gather(const KernelContext& context, const Tensor& operand,
                      const Labels& labels, const Labels& wanted,
                      const Labels& summed, const LabelSizes& sizes) {
  TAGFLOW_ASSIGN(const Shape shape, sizes.shape(wanted));
  if (wanted == labels && shape == operand.shape()) return operand;
  TAGFLOW_ASSIGN(Tensor out,
                 Tensor::allocate(operand.dtype(), shape, context.allocator()));
  if (out.num_elements() == 0) return out;
  const auto outer = walk_along(wanted, labels, operand, sizes);
  const auto inner = walk_along(summed, labels, operand, sizes);
  const bool nothing = operand.num_elements() == 0;
  visit_numeric(operand.dtype(), [&]<class T>(TypeTag<T>) {
    using Op = SumOp<T>;
    const T* in = operand.data<T>();
    T* to = out.mutable_data<T>();
    if (nothing) {
      std::fill_n(to, out.num_elements(), T(0));
    } else if (summed.empty()) {
      for_walk(outer, [&](int64_t at) { *to++ = in[at]; });
    } else {
      for_walk(outer, [&](int64_t at) {
        typename Op::Acc sum = Op::initial();
        for_walk(inner, [&](int64_t rest) {
          sum = Op::combine(sum, Op::load(in[at + rest]));
        });
        *to++ = Op::finish(sum, 0);
      });
    }
  });
  return out;
}

class EinsumKernel : public Kernel {
 public:
  explicit EinsumKernel(std::string text) : text_(std::move(text)) {}
  static Result<std::unique_ptr<Kernel>> make(const KernelInfo& info) {
    TAGFLOW_ASSIGN(std::string text, info.attr<std::string>("equation"));
    return std::unique_ptr<Kernel>(
        std::make_unique<EinsumKernel>(std::move(text)));
  }

  Status compute(KernelContext& context) const override {
    std::vector<int> ranks;
    for (const Tensor& input : context.inputs()) ranks.push_back(input.rank());
    Result<Equation> equation = graph::parse_equation(text_, ranks);
    if (!equation.ok()) return context.fail("{}", equation.status().message());
    LabelSizes sizes;
    for (int i = 0; i < context.num_inputs(); ++i)
      TAGFLOW_RETURN_IF_ERROR(
          sizes.add(context, equation->inputs[size_t(i)], context.input(i)));
    Labels distinct;
    for (Label label : equation->output)
      if (!contains(distinct, label)) distinct.push_back(label);
    // The distinct labels' result, in its own order.
    Labels order = distinct;
    Tensor result;
    if (context.num_inputs() == 1) {
      const Labels& labels = equation->inputs[0];
      TAGFLOW_ASSIGN(result, gather(context, context.input(0), labels, distinct,
                                    without(labels, distinct), sizes));
    } else {
      TAGFLOW_ASSIGN(result, contract(context, *equation, sizes, order));
    }
    TAGFLOW_ASSIGN(result, gather(context, result, order, distinct, {}, sizes));
    return write(context, *equation, distinct, result, sizes);
  }

  double cost(const KernelContext& context) const override {
    double elements = 1;
    for (const Tensor& input : context.inputs())
      elements *= 1 + double(input.num_elements());
    // A square product does n^3 work on n^2 elements each.
    return 1000 + std::pow(elements, context.num_inputs() == 2 ? 0.75 : 1.0);
  }

 private:
  // The labels that are not in `others`, each once.
  static Labels without(const Labels& labels, const Labels& others) {
    Labels rest;
    for (Label label : labels)
      if (!contains(others, label) && !contains(rest, label))
        rest.push_back(label);
    return rest;
  }

  // The product of two operands; `order` becomes the labels of its
  // dimensions.
  static Result<Tensor> contract(KernelContext& context,
                                 const Equation& equation,
                                 const LabelSizes& sizes, Labels& order) {
    const Labels& a = equation.inputs[0];
    const Labels& b = equation.inputs[1];
    Labels batch, contracted;
    for (Label label : without(a, {}))
      if (contains(b, label))
        (contains(equation.output, label) ? batch : contracted)
            .push_back(label);
    const auto free_of = [&](const Labels& labels) {
      Labels free;
      for (Label label : without(labels, batch))
        if (contains(equation.output, label)) free.push_back(label);
      return free;
    };
    const Labels free_a = free_of(a), free_b = free_of(b);
    const auto joined = [&](const Labels& free) {
      Labels all = batch;
      all.insert(all.end(), free.begin(), free.end());
      all.insert(all.end(), contracted.begin(), contracted.end());
      return all;
    };
    const Labels order_a = joined(free_a), order_b = joined(free_b);
    TAGFLOW_ASSIGN(const Tensor left,
                   gather(context, context.input(0), a, order_a,
                          without(a, order_a), sizes));
    TAGFLOW_ASSIGN(const Tensor right,
                   gather(context, context.input(1), b, order_b,
                          without(b, order_b), sizes));
    order = batch;
    order.insert(order.end(), free_a.begin(), free_a.end());
    order.insert(order.end(), free_b.begin(), free_b.end());
    TAGFLOW_ASSIGN(const Shape shape, sizes.shape(order));
    TAGFLOW_ASSIGN(Tensor result, context.allocate_temp(left.dtype(), shape));
    if (result.num_elements() == 0) return result;
    const auto size_of = [&](const Labels& labels) {
      int64_t size = 1;
      for (Label label : labels) size *= sizes[label];
      return size;
    };
    ProductBatch products;
    products.m = size_of(free_a);
    products.n = size_of(free_b);
    products.k = left.num_elements() == 0 ? 0 : size_of(contracted);
    products.b_form.transposed = true;
    products.dims.push_back({size_of(batch), 1, 1});
    TAGFLOW_RETURN_IF_ERROR(multiply(context, products, left, right, result));
    return result;
  }

  // Output 0, if a repeated label spreads the result along a diagonal.
  static Status write(KernelContext& context, const Equation& equation,
                      const Labels& distinct, const Tensor& result,
                      const LabelSizes& sizes) {
    if (distinct.size() == equation.output.size()) {
      context.set_output(0, result);
      return Status();
    }
    TAGFLOW_ASSIGN(const Shape shape, sizes.shape(equation.output));
    TAGFLOW_ASSIGN(Tensor * out, context.allocate_output(0, shape));
    const auto walk = walk_along(distinct, equation.output, *out, sizes);
    visit_numeric(out->dtype(), [&]<class T>(TypeTag<T>) {
      T* to = out->mutable_data<T>();
      std::fill_n(to, out->num_elements(), T(0));
      const T* from = result.data<T>();
      if (result.num_elements() > 0)
        for_walk(walk, [&](int64_t at) { to[at] = *from++; });
    });
    return Status();
  }

  std::string text_;
};

}  // namespace

void register_einsum_kernels(KernelRegistry& registry) {
  registry.add<EinsumKernel>(
      "Einsum", {{"T",
                  {DataType::kFloat, DataType::kDouble, DataType::kHalf,
                   DataType::kBFloat16, DataType::kInt16, DataType::kInt32,
                   DataType::kInt64, DataType::kUInt8, DataType::kUInt16,
                   DataType::kUInt32, DataType::kUInt64, DataType::kComplex64,
                   DataType::kComplex128}}});
}

}  // namespace tagflow::devices
