// FlatMapDataset, InterleaveDataset and ParallelInterleaveDataset: datasets
// that a function makes of elements, merged in a fixed order.
#include <algorithm>
#include <deque>

#include "devices/kernels/dataset/function_call.h"

namespace tagflow::devices {

namespace {

// A dataset that a call of the function gives, once the call is done.
class Stream {
 public:
  // Elements are made ahead, up to `ahead`; 0: none is.
  Stream(CallPtr call, size_t ahead) : call_(std::move(call)), ahead_(ahead) {}
  explicit Stream(Status failed) : failed_(std::move(failed)) {}

  // Begins to make elements ahead as soon as the dataset is there.
  void begin(Segment& segment, const ElementSpec& spec) {
    if (call_ == nullptr || !call_->is_done()) return;
    Result<Element> answer = std::exchange(call_, nullptr)->take();
    if (!answer.ok()) {
      failed_ = std::move(answer).status();
      return;
    }
    Result<DatasetRef> dataset = dataset_result(*answer, spec);
    if (!dataset.ok()) {
      failed_ = std::move(dataset).status();
      return;
    }
    auto start = [dataset = *std::move(dataset)](Segment& its) {
      return dataset->start(its);
    };
    if (ahead_ > 0) {
      stage_ = std::make_unique<AheadStage>(segment, std::move(start), ahead_);
      return;
    }
    Result<StagePtr> stage = start(segment);
    if (stage.ok())
      stage_ = *std::move(stage);
    else
      failed_ = std::move(stage).status();
  }

  // Whether it has no elements, but an error, which it gives once.
  bool has_failed() const { return call_ == nullptr && stage_ == nullptr; }
  Progress next(Segment& segment, const ElementSpec& spec, Pull& pull) {
    begin(segment, spec);
    if (call_ != nullptr) return Progress::kWait;
    if (stage_ != nullptr) return stage_->next(pull);
    // It gives its error once, and is over.
    return failed_.ok() ? Progress::kEnd
                        : pull.fail(std::exchange(failed_, {}));
  }

 private:
  CallPtr call_;
  size_t ahead_ = 0;
  StagePtr stage_;
  Status failed_;
};

struct InterleaveSpec {
  int64_t cycle_length = 1;
  int64_t block_length = 1;
  int64_t calls = 0;  // open at once; 0: one stream after the other
  int64_t ahead = 0;  // elements of each stream
};

// Takes `block_length` elements of each of `cycle_length` streams in turn. The
// place of a stream that has ended is taken by the next one when it is its
// turn. So the order depends on the elements only; what runs ahead is the calls
// that make the next streams, and the streams themselves.
class InterleaveStage final : public Stage {
 public:
  InterleaveStage(Segment& segment, const Dataset& dataset, StagePtr input,
                  StageFunction function, const InterleaveSpec& spec)
      : segment_(segment),
        dataset_(&dataset),
        input_(std::move(input)),
        function_(std::move(function)),
        spec_(spec) {}

  Progress next(Pull& pull) override {
    for (;;) {
      if (!segment_.take_turn()) return Progress::kWait;
      const Segment::Depth here(segment_, depth_);
      look_ahead();
      const auto at = places_.find(place_);
      if (at != places_.end()) {
        Stream& stream = at->second;
        const Progress progress = stream.next(segment_, dataset_->spec(), pull);
        if (progress == Progress::kWait) return progress;
        if (progress == Progress::kFailed) {
          pull.error = std::move(pull.error).with_prefix(dataset_->prefix());
          // As in TensorFlow, an error has no place in the order, unless
          // streams run ahead.
          if (spec_.calls == 0) {
            if (stream.has_failed()) places_.erase(at);
            return progress;
          }
        }
        if (progress != Progress::kEnd) {
          if (++in_block_ == spec_.block_length) go_on();
          return progress;
        }
        places_.erase(at);
        go_on();
        continue;
      }
      if (coming_.empty() && !is_over_) {
        const Progress progress = read_input(pull);
        if (progress == Progress::kWait) return progress;
      }
      if (!coming_.empty()) {
        places_.emplace(place_, std::move(coming_.front()));
        coming_.pop_front();
      } else if (places_.empty()) {
        return Progress::kEnd;
      } else {
        // To the next place that is taken: there may be many others.
        const auto next = places_.lower_bound(place_);
        in_block_ = 0;
        place_ = (next == places_.end() ? places_.begin() : next)->first;
      }
    }
  }

 private:
  void go_on() {
    in_block_ = 0;
    place_ = (place_ + 1) % spec_.cycle_length;
  }
  Progress read_input(Pull& pull) {
    const Progress progress = input_->next(pull);
    if (progress == Progress::kEnd)
      is_over_ = true;
    else if (progress == Progress::kFailed)
      coming_.emplace_back(std::move(pull.error));
    else if (progress == Progress::kElement)
      coming_.emplace_back(function_(std::move(pull.element)),
                           size_t(spec_.ahead));
    return progress;
  }
  void look_ahead() {
    if (spec_.calls == 0) return;
    Pull pull;
    while (!is_over_ && int64_t(coming_.size()) < spec_.calls)
      if (!segment_.take_turn() || read_input(pull) == Progress::kWait) break;
    const ElementSpec& spec = dataset_->spec();
    for (Stream& stream : coming_) stream.begin(segment_, spec);
    for (auto& [place, stream] : places_) stream.begin(segment_, spec);
  }

  Segment& segment_;
  const int depth_ = segment_.depth();
  const DatasetRef dataset_;
  const StagePtr input_;
  const StageFunction function_;
  const InterleaveSpec spec_;
  // By place. Only those that are taken: cycle_length may be huge.
  std::map<int64_t, Stream> places_;
  std::deque<Stream> coming_;  // the next ones
  int64_t place_ = 0;
  int64_t in_block_ = 0;
  bool is_over_ = false;
};

// A negative number is for the pipeline to choose.
Result<DatasetParts> interleaved(const DatasetRef& input,
                                 const CapturedFunction& function,
                                 const InterleaveSpec& spec) {
  return DatasetParts{
      kUnknownCardinality,
      [=](Segment& segment, const Dataset& self) -> Result<StagePtr> {
        InterleaveSpec chosen = spec;
        const int workers = segment.pipeline().parallelism();
        if (chosen.cycle_length < 0) chosen.cycle_length = workers;
        if (chosen.calls != 0)
          chosen.calls = segment.pipeline().open_calls(chosen.calls);
        TAGFLOW_ASSIGN(
            StageFunction calls,
            StageFunction::make(segment, function, input->spec().types.size()));
        TAGFLOW_ASSIGN(StagePtr stage, input->start(segment));
        return StagePtr(std::make_unique<InterleaveStage>(
            segment, self, std::move(stage), std::move(calls), chosen));
      }};
}

Result<DatasetParts> flat_map_dataset(const DatasetArgs& args) {
  TAGFLOW_ASSIGN(const DatasetRef input, args.dataset(0));
  TAGFLOW_ASSIGN(const CapturedFunction function, args.function("f", 1));
  return interleaved(input, function, {});
}

// `after`: how many inputs follow block_length.
Result<InterleaveSpec> interleave_spec(const DatasetArgs& args, int after) {
  InterleaveSpec spec;
  TAGFLOW_ASSIGN(spec.cycle_length,
                 args.number(args.from_end(after + 2), "cycle_length"));
  if (spec.cycle_length == 0 || spec.cycle_length < -1)
    return args.context().fail("cycle_length must be positive, but is {}",
                               spec.cycle_length);
  TAGFLOW_ASSIGN(spec.block_length,
                 args.at_least(1, args.from_end(after + 1), "block_length"));
  return spec;
}

Result<DatasetParts> interleave_dataset(const DatasetArgs& args) {
  TAGFLOW_ASSIGN(const DatasetRef input, args.dataset(0));
  TAGFLOW_ASSIGN(const CapturedFunction function, args.function("f", 1));
  TAGFLOW_ASSIGN(const InterleaveSpec spec, interleave_spec(args, 0));
  return interleaved(input, function, spec);
}

// The buffers of streams are small: each may hold large elements.
int64_t elements_ahead(int64_t wanted) {
  constexpr int64_t kMost = 16;
  return std::clamp<int64_t>(wanted, 1, kMost);
}

template <int kAfter>
Result<DatasetParts> parallel_interleave_dataset(const DatasetArgs& args) {
  TAGFLOW_ASSIGN(const DatasetRef input, args.dataset(0));
  TAGFLOW_ASSIGN(const CapturedFunction function, args.function("f", 1));
  TAGFLOW_ASSIGN(InterleaveSpec spec, interleave_spec(args, kAfter));
  TAGFLOW_ASSIGN(spec.calls, args.parallel_calls(args.from_end(1)));
  int64_t ahead = spec.block_length;
  if (kAfter > 1) {
    TAGFLOW_ASSIGN(const int64_t wanted,
                   args.number(args.from_end(3), "buffer_output_elements"));
    if (wanted > 0) ahead = wanted;
  }
  spec.ahead = elements_ahead(ahead);
  return interleaved(input, function, spec);
}

// That of tf.data.experimental.parallel_interleave.
template <int kAfter>
Result<DatasetParts> legacy_interleave_dataset(const DatasetArgs& args) {
  TAGFLOW_ASSIGN(const DatasetRef input, args.dataset(0));
  TAGFLOW_ASSIGN(const CapturedFunction function, args.function("f", 1));
  TAGFLOW_ASSIGN(InterleaveSpec spec, interleave_spec(args, kAfter));
  TAGFLOW_RETURN_IF_ERROR(
      args.at_least(1, args.from_end(kAfter + 2), "cycle_length").status());
  TAGFLOW_ASSIGN(const int64_t ahead,
                 args.at_least(1, args.from_end(2), "buffer_output_elements"));
  TAGFLOW_RETURN_IF_ERROR(
      args.at_least(0, args.from_end(1), "prefetch_input_elements").status());
  spec.calls = spec.cycle_length;
  spec.ahead = elements_ahead(ahead);
  return interleaved(input, function, spec);
}

}  // namespace

void register_dataset_interleave_kernels(KernelRegistry& registry) {
  add_dataset(registry, "FlatMapDataset", flat_map_dataset);
  add_dataset(registry, "InterleaveDataset", interleave_dataset);
  add_dataset(registry, "ParallelInterleaveDatasetV2",
              parallel_interleave_dataset<1>);
  add_dataset(registry, "ParallelInterleaveDatasetV3",
              parallel_interleave_dataset<1>);
  add_dataset(registry, "ParallelInterleaveDatasetV4",
              parallel_interleave_dataset<3>);
  add_dataset(registry, "ParallelInterleaveDataset",
              legacy_interleave_dataset<3>);
  add_dataset(registry, "ExperimentalParallelInterleaveDataset",
              legacy_interleave_dataset<3>);
  add_dataset(registry, "LegacyParallelInterleaveDatasetV2",
              legacy_interleave_dataset<2>);
}

}  // namespace tagflow::devices
