// Dataset: a value that describes where elements come from, and the base of the
// kernels that make such values.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "devices/function_host.h"
#include "devices/kernel.h"
#include "devices/kernel_registry.h"
#include "devices/kernels/dataset/segment.h"
#include "devices/kernels/dataset/stage.h"
#include "graph/handle.h"

namespace tagflow::devices {

class Dataset;

inline constexpr int64_t kInfiniteCardinality = -1;
inline constexpr int64_t kUnknownCardinality = -2;

// What a dataset computes, without its types.
struct DatasetParts {
  // How many elements it has, or one of the above.
  int64_t cardinality = kUnknownCardinality;
  // Makes a stage, of that segment. The dataset is kept alive by the stages.
  std::function<Result<StagePtr>(Segment&, const Dataset&)> start;
  // The types of the components, unless a function gives them.
  std::optional<std::vector<DataType>> types = {};
  // Their shapes, if the node has no attributes of types and shapes.
  std::vector<PartialShape> shapes = {};
};

// The types and shapes of a dataset's components.
struct ElementSpec {
  std::vector<DataType> types;
  std::vector<PartialShape> shapes;

  // InvalidArgument, with both, unless elements of `made` are of these types,
  // and of shapes that are compatible.
  Status check(const ElementSpec& made, std::string_view what) const;
  // InvalidArgument unless the element is of these types and shapes.
  Status check(const Element& element) const;
};

// Note [Pipelines] in stage.h. Immutable.
class Dataset final : public VariantValue {
 public:
  // `depth`: one more than that of the deepest dataset that it refers to.
  Dataset(std::string op, std::string name, ElementSpec spec,
          DatasetParts parts, int depth = 0)
      : op_(std::move(op)),
        name_(std::move(name)),
        spec_(std::move(spec)),
        parts_(std::move(parts)),
        depth_(depth) {}
  // Datasets that only this one refers to end one after the other.
  ~Dataset() override;

  // The most stages on top of each other, and datasets that refer to each
  // other: their calls and their destruction go as deep.
  static constexpr int kMostDepth = 1000;

  const std::string& op() const { return op_; }
  const ElementSpec& spec() const { return spec_; }
  int64_t cardinality() const { return parts_.cardinality; }
  int depth() const { return depth_; }
  // For messages: '[MapDataset "name"] '.
  std::string prefix() const;
  std::string describe() const override;
  size_t own_bytes() const override { return sizeof(*this); }

  // A stage at its first element. Errors name the dataset; ResourceExhausted if
  // it would be too deep.
  Result<StagePtr> start(Segment& segment) const;

 private:
  const std::string op_;
  const std::string name_;
  const ElementSpec spec_;
  DatasetParts parts_;
  const int depth_;
};

using DatasetRef = Ref<const Dataset>;

// Stages of all of them, or the first error.
Result<std::vector<StagePtr>> start_all(const std::vector<DatasetRef>& datasets,
                                        Segment& segment);

// The dataset of a tensor; InvalidArgument, with `what`, if it is none.
Result<DatasetRef> dataset_of(const Tensor& tensor, std::string_view what);

// A function that a dataset calls, with the arguments that it passes after
// those of the element.
struct CapturedFunction {
  FunctionRef function;
  std::vector<Tensor> captured;
  // That has it; null: that of the host.
  FunctionHost::Library library;
};

// With what the host of the kernel brings along.
CapturedFunction captured_function(const KernelContext& context,
                                   FunctionRef function,
                                   std::vector<Tensor> captured = {});

// The inputs and attributes of a node that makes a dataset. Inputs that follow
// a list are counted from the end.
class DatasetArgs {
 public:
  explicit DatasetArgs(const KernelContext& context) : context_(context) {}

  const KernelContext& context() const { return context_; }
  // The index of the input that is the i-th from the end: 1 is the last.
  int from_end(int i) const { return context_.num_inputs() - i; }
  Result<DatasetRef> dataset(int input) const;
  Result<int64_t> number(int input, std::string_view name) const;
  // As number(); InvalidArgument unless it is at least `least`.
  Result<int64_t> at_least(int64_t least, int input,
                           std::string_view name) const;
  // "num_parallel_calls": positive, or -1, which leaves it to us.
  Result<int64_t> parallel_calls(int input) const;
  Result<bool> flag(int input, std::string_view name) const;
  Result<std::string> text(int input, std::string_view name) const;
  // The value of an attribute, or `otherwise` if there is none.
  template <class T>
  T attr(std::string_view name, T otherwise) const {
    const auto value = context_.node().attr<T>(name);
    return value.ok() ? *value : otherwise;
  }
  // The length of an attribute that is a list of types.
  int list_size(std::string_view name) const;
  // The function of an attribute, and its captured inputs from `first` on,
  // whose types are the attribute `types`.
  Result<CapturedFunction> function(
      std::string_view attr, int first,
      std::string_view types = "Targuments") const;

 private:
  const KernelContext& context_;
};

using MakeParts = Result<DatasetParts> (*)(const DatasetArgs&);

// Registers the kernel of an op whose only output is a dataset.
void add_dataset(KernelRegistry& registry, const char* op, MakeParts make);

}  // namespace tagflow::devices
