// ShuffleDataset, ShuffleAndRepeatDataset, RandomDataset, and the resources
// that give them seeds. The order, and the numbers, are those of TensorFlow for
// the same seeds.
#include "devices/kernels/dataset/shuffle.h"

#include <atomic>
#include <deque>
#include <functional>
#include <limits>
#include <optional>

#include "devices/kernels/dataset/dataset.h"
#include "devices/kernels/dataset/pipeline.h"
#include "devices/murmur_hash.h"
#include "devices/state/handle_input.h"
#include "devices/state/resource_op.h"

namespace tagflow::devices {

Result<Ref<DrawnSeeds>> DrawnSeeds::of_node(const KernelContext& context) {
  TAGFLOW_ASSIGN(ResourceManager * state, state_of(context));
  const ResourceKey key{"", std::string(kKind), context.node().name()};
  TAGFLOW_ASSIGN(const Ref<StateObject> found, state->find_or_make(key, [] {
    return Result<Ref<StateObject>>(
        Ref<StateObject>(make_ref_counted<DrawnSeeds>()));
  }));
  return Ref<DrawnSeeds>(static_cast<DrawnSeeds*>(found.get()));
}

ShuffleSeeds DrawnSeeds::next(Pipeline& pipeline) {
  const std::string& name = key().name;
  const ShuffleSeeds seeds = pipeline.seeds_of(name, [&] {
    MurmurHash hash(pipeline.seed(), name.size());
    hash.add(name);
    // Two zeros are seeds like any others here.
    return ShuffleSeeds{int64_t(hash.value()),
                        drawn_.fetch_add(1, std::memory_order_relaxed)};
  });
  // Of a checkpoint: later ones are others.
  for (int64_t known = drawn_.load(std::memory_order_relaxed);
       known <= seeds.seed2;)
    if (drawn_.compare_exchange_weak(known, int64_t(uint64_t(seeds.seed2) + 1)))
      break;
  return seeds;
}

std::string DrawnSeeds::describe() const {
  return fmt::format("{} of \"{}\"", kKind, key().name);
}

ShuffleSeeds SeedGenerator::next(Pipeline& pipeline) {
  const std::lock_guard lock(mutex_);
  if (!state_) state_.emplace(drawn_->next(pipeline));
  if (!reshuffles_) return state_->seeds;
  const int64_t seed = state_->numbers.next();
  return {seed, int64_t(state_->numbers.next())};
}

Ref<SharedSource> SeedGenerator::copy() const {
  const std::lock_guard lock(mutex_);
  auto copied =
      make_ref_counted<SeedGenerator>(ShuffleSeeds(), drawn_, reshuffles_);
  copied->state_ = state_;
  return Ref<SharedSource>(copied);
}

namespace {

bool are_drawn(const ShuffleSeeds& seeds) {
  return seeds.seed == 0 && seeds.seed2 == 0;
}

// Where a dataset takes the seeds of its iterations from.
struct SeedSpec {
  ShuffleSeeds seeds;
  bool reshuffles = true;
  Ref<SeedGenerator> generator;  // may be null
  Ref<DrawnSeeds> drawn;         // null: `seeds` are those of the graph
};

struct ShuffleSpec {
  int64_t buffer_size = 1;
  int64_t epochs = 1;  // negative: no end
  SeedSpec seeds;
};

// A buffer of elements, of which one is drawn and replaced by the next of the
// input. Elements of several epochs may be in it at once; each epoch is a
// *slice*, and all of one are drawn before the first of the next.
class ShuffleStage final : public Stage {
 public:
  using NextSeeds = std::function<ShuffleSeeds()>;

  ShuffleStage(Segment& segment, DatasetRef input, const ShuffleSpec& spec,
               NextSeeds next_seeds)
      : segment_(segment),
        input_(std::move(input)),
        spec_(spec),
        next_seeds_(std::move(next_seeds)),
        numbers_(numbers_of(next_seeds_())) {
    slices_.push_back({});
  }

  Progress next(Pull& pull) override {
    const Progress filled = fill(pull);
    if (filled != Progress::kElement) return filled;
    // Each epoch has numbers of its own.
    while (slices_.size() > 1 && slices_.front().first == slices_.front().end) {
      for (int64_t i = 0; i < slices_.front().epochs; ++i)
        numbers_ = numbers_of(next_seeds_());
      slices_.pop_front();
    }
    if (count_ == 0) return Progress::kEnd;
    Slice& slice = slices_.front();
    const uint64_t offset = numbers_.next() % uint64_t(slice.end - slice.first);
    Tensors& drawn = at(slice.first + int64_t(offset));
    Tensors& first = at(slice.first);
    Element element = std::move(drawn);
    drawn = std::move(first);
    first.clear();
    ++slice.first;
    --count_;
    return pull.give(std::move(element));
  }

 private:
  using Tensors = Element;
  // The elements of an epoch that are in the buffer, by their numbers.
  struct Slice {
    int64_t first = 0;
    int64_t end = 0;
    int64_t epochs = 1;  // of which all but the last were empty
  };

  static SeededNumbers numbers_of(const ShuffleSeeds& seeds) {
    return {seeds.seed, seeds.seed2};
  }
  Tensors& at(int64_t number) {
    const auto place = size_t(number % spec_.buffer_size);
    if (place >= buffer_.size()) buffer_.resize(place + 1);
    return buffer_[place];
  }

  // Until the buffer is full, or there is nothing more to put into it.
  Progress fill(Pull& pull) {
    while (!is_over_ && count_ < spec_.buffer_size) {
      if (!segment_.take_turn()) return Progress::kWait;
      if (stage_ == nullptr) {
        const Segment::Depth here(segment_, depth_);
        Result<StagePtr> stage = input_->start(segment_);
        if (!stage.ok()) {
          is_over_ = true;
          return pull.fail(std::move(stage).status());
        }
        stage_ = *std::move(stage);
        has_any_ = false;
      }
      const Progress progress = stage_->next(pull);
      if (progress == Progress::kWait || progress == Progress::kFailed)
        return progress;
      if (progress == Progress::kElement) {
        Slice& slice = slices_.back();
        at(slice.end++) = std::move(pull.element);
        ++count_;
        has_any_ = true;
        continue;
      }
      stage_ = nullptr;
      ++epoch_;
      is_over_ = spec_.epochs >= 0 ? epoch_ >= spec_.epochs : !has_any_;
      if (is_over_) continue;
      Slice& last = slices_.back();
      if (last.first == last.end && !has_any_)
        ++last.epochs;
      else
        slices_.push_back({last.end, last.end});
    }
    return Progress::kElement;
  }

  Segment& segment_;
  const int depth_ = segment_.depth();
  const DatasetRef input_;
  const ShuffleSpec spec_;
  const NextSeeds next_seeds_;
  SeededNumbers numbers_;
  StagePtr stage_;  // of the present epoch
  bool has_any_ = false;
  int64_t epoch_ = 0;
  bool is_over_ = false;
  std::deque<Slice> slices_;
  std::vector<Tensors> buffer_;  // a ring
  int64_t count_ = 0;            // of elements in it
};

// What all iterations of one pipeline share: each epoch gets the next seeds.
struct EpochSeeds {
  std::mutex mutex;
  Ref<SeedGenerator> generator;  // null at first
};

ShuffleSeeds seeds_for(Pipeline& pipeline, const Dataset& self,
                       const SeedSpec& spec) {
  if (spec.generator) {
    const auto source = pipeline.source(Ref<SharedSource>(spec.generator));
    return static_cast<SeedGenerator&>(*source).next(pipeline);
  }
  const auto shared = pipeline.shared_of<EpochSeeds>(&self);
  const std::lock_guard lock(shared->mutex);
  if (!shared->generator)
    shared->generator = make_ref_counted<SeedGenerator>(spec.seeds, spec.drawn,
                                                        spec.reshuffles);
  return shared->generator->next(pipeline);
}

Status check_usable(const SeedSpec& spec) {
  return spec.generator ? spec.generator->ended() : Status();
}

int64_t shuffled_cardinality(int64_t cardinality, int64_t epochs) {
  if (cardinality == 0 || epochs == 0) return 0;
  if (epochs < 0) return kInfiniteCardinality;
  if (cardinality < 0) return cardinality;
  return checked_multiply(cardinality, epochs).value_or(kUnknownCardinality);
}

Result<DatasetParts> shuffled(const DatasetRef& input, ShuffleSpec spec) {
  return DatasetParts{
      shuffled_cardinality(input->cardinality(), spec.epochs),
      [=](Segment& segment, const Dataset& self) -> Result<StagePtr> {
        TAGFLOW_RETURN_IF_ERROR(check_usable(spec.seeds));
        return StagePtr(std::make_unique<ShuffleStage>(
            segment, input, spec,
            [&segment, self = DatasetRef(&self), seeds = spec.seeds] {
              return seeds_for(segment.pipeline(), *self, seeds);
            }));
      },
      input->spec().types};
}

// The generator of an input, or null if that is a dummy.
Result<Ref<SeedGenerator>> generator_input(const DatasetArgs& args, int input) {
  const Tensor& handle = args.context().input(input);
  if (handle.dtype() == DataType::kResource && handle.num_elements() == 1 &&
      handle.data<ResourceHandle>()->get() == nullptr)
    return Ref<SeedGenerator>();
  TAGFLOW_ASSIGN(SeedGenerator * generator,
                 handle_input<SeedGenerator>(args.context(), input));
  return Ref<SeedGenerator>(generator);
}

// `seeds`: the first of the two inputs that are seeds, if any are.
// `has_generator`: the last input is one, or a dummy.
Result<SeedSpec> seed_spec(const DatasetArgs& args, std::optional<int> seeds,
                           bool has_generator, bool reshuffles) {
  SeedSpec spec;
  spec.reshuffles = reshuffles;
  if (seeds) {
    TAGFLOW_ASSIGN(spec.seeds.seed, args.number(*seeds, "seed"));
    TAGFLOW_ASSIGN(spec.seeds.seed2, args.number(*seeds + 1, "seed2"));
  }
  if (has_generator) {
    TAGFLOW_ASSIGN(spec.generator, generator_input(args, args.from_end(1)));
  }
  if (!spec.generator && are_drawn(spec.seeds)) {
    TAGFLOW_ASSIGN(spec.drawn, DrawnSeeds::of_node(args.context()));
  }
  return spec;
}

enum class Shuffle : uint8_t { kSeeds, kGenerator, kBoth };

template <Shuffle kKind, bool kRepeats>
Result<DatasetParts> shuffle_dataset(const DatasetArgs& args) {
  TAGFLOW_ASSIGN(const DatasetRef input, args.dataset(0));
  ShuffleSpec spec;
  TAGFLOW_ASSIGN(spec.buffer_size, args.number(1, "buffer_size"));
  // As many elements as there are.
  if (spec.buffer_size == kUnknownCardinality)
    spec.buffer_size = std::numeric_limits<int64_t>::max();
  if (spec.buffer_size < 1)
    return args.context().fail("buffer_size must be positive, but is {}",
                               spec.buffer_size);
  if constexpr (kRepeats) {
    TAGFLOW_ASSIGN(spec.epochs, args.number(4, "count"));
    if (spec.epochs < 1 && spec.epochs != -1)
      return args.context().fail("count must be positive, or -1, but is {}",
                                 spec.epochs);
  }
  TAGFLOW_ASSIGN(
      spec.seeds,
      seed_spec(args,
                kKind == Shuffle::kGenerator ? std::nullopt : std::optional(2),
                kKind != Shuffle::kSeeds,
                args.attr("reshuffle_each_iteration", true)));
  return shuffled(input, spec);
}

// --- Numbers ----------------------------------------------------------------

class RandomStage final : public Stage {
 public:
  explicit RandomStage(const ShuffleSeeds& seeds)
      : numbers_(seeds.seed, seeds.seed2) {}

  Progress next(Pull& pull) override {
    return pull.give({Tensor::scalar(int64_t{numbers_.next()})});
  }

 private:
  SeededNumbers numbers_;
};

template <bool kHasGenerator>
Result<DatasetParts> random_dataset(const DatasetArgs& args) {
  TAGFLOW_ASSIGN(const SeedSpec spec,
                 seed_spec(args, 0, kHasGenerator,
                           args.attr("rerandomize_each_iteration", false)));
  return DatasetParts{
      kInfiniteCardinality,
      [=](Segment& segment, const Dataset& self) -> Result<StagePtr> {
        TAGFLOW_RETURN_IF_ERROR(check_usable(spec));
        return StagePtr(std::make_unique<RandomStage>(
            seeds_for(segment.pipeline(), self, spec)));
      },
      std::vector{DataType::kInt64}};
}

// --- Generators -------------------------------------------------------------

// A handle of nothing: the dataset has a generator of its own.
class DummyHandleKernel final : public CheapKernel {
 public:
  explicit DummyHandleKernel(const KernelInfo&) {}
  Status compute(KernelContext& context) const override {
    return context.allocate_output(0, {}).status();
  }
  bool is_bookkeeping() const override { return true; }
};

class SeedGeneratorKernel final : public CheapKernel {
 public:
  explicit SeedGeneratorKernel(const KernelInfo& info) : resource_(info) {}

  Status compute(KernelContext& context) const override {
    const DatasetArgs args(context);
    ShuffleSeeds seeds;
    TAGFLOW_ASSIGN(seeds.seed, args.number(0, "seed"));
    TAGFLOW_ASSIGN(seeds.seed2, args.number(1, "seed2"));
    bool reshuffles = true;
    if (context.num_inputs() > 2) {
      TAGFLOW_ASSIGN(reshuffles, args.flag(2, "reshuffle"));
    }
    Ref<DrawnSeeds> drawn;
    if (are_drawn(seeds)) {
      TAGFLOW_ASSIGN(drawn, DrawnSeeds::of_node(context));
    }
    TAGFLOW_RETURN_IF_ERROR(resource_.set_handle(context, [&] {
      return Result<Ref<StateObject>>(Ref<StateObject>(
          make_ref_counted<SeedGenerator>(seeds, drawn, reshuffles)));
    }));
    return context.allocate_output(1, {}).status();
  }
  bool is_bookkeeping() const override { return true; }

 private:
  const ResourceOp resource_;
};

}  // namespace

void register_dataset_shuffle_kernels(KernelRegistry& registry) {
  add_dataset(registry, "ShuffleDataset",
              shuffle_dataset<Shuffle::kSeeds, false>);
  add_dataset(registry, "ShuffleDatasetV2",
              shuffle_dataset<Shuffle::kGenerator, false>);
  add_dataset(registry, "ShuffleDatasetV3",
              shuffle_dataset<Shuffle::kBoth, false>);
  add_dataset(registry, "ShuffleAndRepeatDataset",
              shuffle_dataset<Shuffle::kSeeds, true>);
  add_dataset(registry, "ShuffleAndRepeatDatasetV2",
              shuffle_dataset<Shuffle::kBoth, true>);
  for (const char* op : {"RandomDataset", "ExperimentalRandomDataset"})
    add_dataset(registry, op, random_dataset<false>);
  add_dataset(registry, "RandomDatasetV2", random_dataset<true>);
  for (const char* op : {"DummySeedGenerator", "DummyMemoryCache"})
    registry.add<DummyHandleKernel>(op);
  for (const char* op :
       {"AnonymousSeedGenerator", "AnonymousRandomSeedGenerator"})
    registry.add<SeedGeneratorKernel>(op);
}

}  // namespace tagflow::devices
