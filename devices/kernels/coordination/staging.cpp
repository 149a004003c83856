// The ops of staging areas. Each op finds its area by the name in its node's
// attributes, and makes it if it does not exist.
#include <algorithm>

#include "devices/kernel_registry.h"
#include "devices/kernels/containers/values.h"
#include "devices/kernels/variable/state_inputs.h"
#include "devices/state/staging_area.h"

namespace tagflow::devices {

namespace {

using Indices = std::span<const int32_t>;

// A kernel on the area of class `Area` that its attributes name.
template <class Area>
class StagingKernel : public ActorKernel {
 public:
  explicit StagingKernel(const KernelInfo& info)
      : resource_(info),
        limits_{attr_of<int64_t>(info, "capacity"),
                attr_of<int64_t>(info, "memory_limit")} {}

  Result<Ref<StateActor>> find(const KernelContext& context) const final {
    TAGFLOW_ASSIGN(
        Ref<StateObject> object,
        resource_.find_or_make(context, [&]() -> Result<Ref<StateObject>> {
          return Ref<StateObject>(
              make_ref_counted<Area>(resource_.key().name, limits_));
        }));
    return Ref<StateActor>(static_cast<Area*>(object.get()));
  }

 protected:
  static const Area& area_of(const StateActor& actor) {
    return static_cast<const Area&>(actor);
  }
  static Area& area_of(StateActor& actor) { return static_cast<Area&>(actor); }

 private:
  const ResourceOp resource_;
  const StagingLimits limits_;
};

// Tensor `i` of a tuple as an output of the type that the node declares.
Status set_checked_output(KernelContext& context, int output, int i,
                          const Tensor& value) {
  const DataType wanted = context.node().output_dtypes()[size_t(output)];
  if (value.dtype() != wanted)
    return context.fail("tensor {} is {}, not of {}", i, value.describe(),
                        dtype_name(wanted));
  context.set_output(output, value);
  return {};
}

// --- In order ---------------------------------------------------------------

class StageKernel final : public StagingKernel<StagingList> {
 public:
  using StagingKernel::StagingKernel;
  std::optional<Line> line() const override { return Line::kIn; }
  Status check(const KernelContext& context, const StateActor& actor,
               Errand&) const override {
    return area_of(actor).check_bytes(context, bytes_of(context.inputs()));
  }
  Readiness readiness(const KernelContext& context, const StateActor& actor,
                      const Errand&) const override {
    return area_of(actor).may_put(bytes_of(context.inputs()))
               ? Readiness::kWhole
               : Readiness::kNotYet;
  }
  Status perform(KernelContext& context, StateActor& actor,
                 Errand&) const override {
    return area_of(actor).put(context, context.inputs());
  }
};

// Unstage takes the first tuple, StagePeek reads any.
template <bool kTakes>
class UnstageKernel final : public StagingKernel<StagingList> {
 public:
  using StagingKernel::StagingKernel;
  std::optional<Line> line() const override { return Line::kOut; }
  Status check(const KernelContext& context, const StateActor&,
               Errand&) const override {
    if constexpr (kTakes) return {};
    TAGFLOW_ASSIGN(const int64_t index, int32_input(context, 0, "index"));
    if (index < 0)
      return context.fail("the index must not be negative, but is {}", index);
    return {};
  }
  Readiness readiness(const KernelContext& context, const StateActor& actor,
                      const Errand&) const override {
    return area_of(actor).at(index_of(context)) == nullptr ? Readiness::kNotYet
                                                           : Readiness::kWhole;
  }
  Status perform(KernelContext& context, StateActor& actor,
                 Errand&) const override {
    StagingList& area = area_of(actor);
    const StagingList::Tuple& tuple = *area.at(index_of(context));
    if (int(tuple.size()) != context.num_outputs())
      return context.fail("{} has tuples of {} tensors, not of {}",
                          area.describe(), tuple.size(), context.num_outputs());
    for (int i = 0; i < context.num_outputs(); ++i)
      TAGFLOW_RETURN_IF_ERROR(
          set_checked_output(context, i, i, tuple[size_t(i)]));
    if (kTakes) (void)area.pop();
    return {};
  }

 private:
  static int64_t index_of(const KernelContext& context) {
    return kTakes ? 0 : context.input(0).scalar_value<int32_t>();
  }
};

// --- By key -----------------------------------------------------------------

// Checks the indices of an input: ascending, and below `width`.
Status check_parts(const KernelContext& context, const Tensor& indices,
                   size_t width) {
  if (indices.rank() != 1)
    return context.fail("indices must be a vector, not {}", indices.describe());
  int64_t before = -1;
  for (const int32_t index : indices.flat<int32_t>()) {
    if (index < 0 || size_t(index) >= width)
      return context.fail("index {} is out of bounds: tuples have {} tensors",
                          index, width);
    if (index <= before)
      return context.fail("indices must increase, but {} comes after {}", index,
                          before);
    before = index;
  }
  return {};
}

Status check_key(const KernelContext& context) {
  if (context.input(0).is_scalar()) return {};
  return context.fail("the key must be a scalar, not {}",
                      context.input(0).describe());
}

int64_t key_of(const KernelContext& context) {
  return context.input(0).scalar_value<int64_t>();
}

class MapStageKernel final : public StagingKernel<StagingMap> {
 public:
  explicit MapStageKernel(const KernelInfo& info)
      : StagingKernel(info),
        types_(attr_of<std::vector<DataType>>(info, "dtypes")) {}

  std::optional<Line> line() const override { return Line::kIn; }
  Status check(const KernelContext& context, const StateActor& actor,
               Errand&) const override {
    TAGFLOW_RETURN_IF_ERROR(check_key(context));
    const Tensor& indices = context.input(1);
    TAGFLOW_RETURN_IF_ERROR(check_parts(context, indices, types_.size()));
    const auto values = context.inputs().subspan(2);
    if (indices.num_elements() != int64_t(values.size()))
      return context.fail("there are {} values, but {} indices", values.size(),
                          indices.num_elements());
    for (size_t i = 0; i < values.size(); ++i) {
      const DataType wanted = types_[size_t(indices.data<int32_t>()[i])];
      if (values[i].dtype() != wanted)
        return context.fail("value {} is {}, not of {}", i,
                            values[i].describe(), dtype_name(wanted));
    }
    return area_of(actor).check_bytes(context, bytes_of(values));
  }
  Readiness readiness(const KernelContext& context, const StateActor& actor,
                      const Errand&) const override {
    return area_of(actor).may_put(key_of(context),
                                  bytes_of(context.inputs().subspan(2)))
               ? Readiness::kWhole
               : Readiness::kNotYet;
  }
  Status perform(KernelContext& context, StateActor& actor,
                 Errand&) const override {
    return area_of(actor).put(context, key_of(context), types_.size(),
                              context.input(1).flat<int32_t>(),
                              context.inputs().subspan(2));
  }

 private:
  const std::vector<DataType> types_;
};

enum class MapTake : uint8_t { kPeek, kUnstage, kUnstageAny };

template <MapTake kWhat>
class MapUnstageKernel final : public StagingKernel<StagingMap> {
 public:
  using StagingKernel::StagingKernel;
  std::optional<Line> line() const override { return Line::kOut; }
  Status check(const KernelContext& context, const StateActor&,
               Errand&) const override {
    if (!kAny) TAGFLOW_RETURN_IF_ERROR(check_key(context));
    constexpr size_t kNoBound = std::numeric_limits<int32_t>::max();
    return check_parts(context, context.input(kIndices), kNoBound);
  }
  Readiness readiness(const KernelContext& context, const StateActor& actor,
                      const Errand&) const override {
    return key(context, area_of(actor)) ? Readiness::kWhole
                                        : Readiness::kNotYet;
  }
  Status perform(KernelContext& context, StateActor& actor,
                 Errand&) const override {
    StagingMap& area = area_of(actor);
    const int64_t taken = *key(context, area);
    const StagingMap::Tuple& tuple = *area.find(taken);
    const Indices indices = context.input(kIndices).flat<int32_t>();
    constexpr int kFirst = kAny ? 1 : 0;
    if (int(indices.size()) != context.num_outputs() - kFirst)
      return context.fail("there are {} indices, but {} outputs",
                          indices.size(), context.num_outputs() - kFirst);
    TAGFLOW_RETURN_IF_ERROR(
        check_parts(context, context.input(kIndices), tuple.size()));
    for (size_t i = 0; i < indices.size(); ++i) {
      const Tensor& value = tuple[size_t(indices[i])];
      if (!value.valid())
        return context.fail("tensor {} of key {} has been taken", indices[i],
                            taken);
      TAGFLOW_RETURN_IF_ERROR(
          set_checked_output(context, kFirst + int(i), int(indices[i]), value));
    }
    if (kAny) context.set_output(0, Tensor::scalar(taken));
    if (kWhat != MapTake::kPeek) area.take(taken, indices);
    return {};
  }

 private:
  static constexpr bool kAny = kWhat == MapTake::kUnstageAny;
  static constexpr int kIndices = kAny ? 0 : 1;

  static std::optional<int64_t> key(const KernelContext& context,
                                    const StagingMap& area) {
    if (kAny) return area.any_key();
    const int64_t wanted = key_of(context);
    return area.find(wanted) == nullptr ? std::nullopt : std::optional(wanted);
  }
};

// --- Both -------------------------------------------------------------------

template <class Area>
class StagingClearKernel final : public StagingKernel<Area> {
 public:
  using StagingKernel<Area>::StagingKernel;
  Status perform(KernelContext&, StateActor& actor, Errand&) const override {
    this->area_of(actor).clear();
    return {};
  }
};

enum class Count : uint8_t { kWhole, kIncomplete };

template <class Area, Count kWhat>
class StagingSizeKernel final : public StagingKernel<Area> {
 public:
  using StagingKernel<Area>::StagingKernel;
  Status perform(KernelContext& context, StateActor& actor,
                 Errand&) const override {
    const Area& area = this->area_of(actor);
    int64_t size = area.size();
    if constexpr (kWhat == Count::kIncomplete) size = area.incomplete();
    constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
    context.set_output(0, Tensor::scalar(int32_t(std::min(size, kMost))));
    return {};
  }
};

}  // namespace

void register_staging_kernels(KernelRegistry& registry) {
  registry.add<StageKernel>("Stage");
  registry.add<UnstageKernel<true>>("Unstage");
  registry.add<UnstageKernel<false>>("StagePeek");
  registry.add<StagingSizeKernel<StagingList, Count::kWhole>>("StageSize");
  registry.add<StagingClearKernel<StagingList>>("StageClear");
  // Both are ordered: that TensorFlow's first one is not is of no use.
  for (const std::string start : {"Map", "OrderedMap"}) {
    registry.add<MapStageKernel>(start + "Stage");
    registry.add<MapUnstageKernel<MapTake::kPeek>>(start + "Peek");
    registry.add<MapUnstageKernel<MapTake::kUnstage>>(start + "Unstage");
    registry.add<MapUnstageKernel<MapTake::kUnstageAny>>(start +
                                                         "UnstageNoKey");
    registry.add<StagingSizeKernel<StagingMap, Count::kWhole>>(start + "Size");
    registry.add<StagingSizeKernel<StagingMap, Count::kIncomplete>>(
        start + "IncompleteSize");
    registry.add<StagingClearKernel<StagingMap>>(start + "Clear");
  }
}

}  // namespace tagflow::devices
