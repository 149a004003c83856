// WindowDataset and GroupByWindowDataset, whose windows are datasets.
#include <algorithm>
#include <deque>
#include <limits>
#include <map>

#include "devices/kernels/dataset/function_call.h"

namespace tagflow::devices {

namespace {

// Gives elements that exist, one by one.
class ListStage final : public Stage {
 public:
  explicit ListStage(std::shared_ptr<const std::vector<Element>> elements)
      : elements_(std::move(elements)) {}
  Progress next(Pull& pull) override {
    if (at_ == elements_->size()) return Progress::kEnd;
    return pull.give((*elements_)[at_++]);
  }

 private:
  const std::shared_ptr<const std::vector<Element>> elements_;
  size_t at_ = 0;
};

Result<Tensor> list_dataset(std::vector<Element> list_of, ElementSpec spec,
                            Allocator& allocator) {
  const auto elements =
      std::make_shared<const std::vector<Element>>(std::move(list_of));
  const auto count = int64_t(elements->size());
  auto list = make_ref_counted<Dataset>(
      "WindowDataset", "a window", std::move(spec),
      DatasetParts{count,
                   [elements](Segment&, const Dataset&) -> Result<StagePtr> {
                     return StagePtr(std::make_unique<ListStage>(elements));
                   }});
  TAGFLOW_ASSIGN(Tensor handle,
                 Tensor::allocate(DataType::kVariant, {}, allocator));
  *handle.mutable_data<Variant>() = Variant(std::move(list));
  return handle;
}

// --- Windows of fixed places ------------------------------------------------

struct WindowSpec {
  int64_t size = 1;
  int64_t shift = 1;
  int64_t stride = 1;
  bool drops_rest = false;
};

class WindowStage final : public Stage {
 public:
  WindowStage(Segment& segment, StagePtr input, const Dataset& elements,
              const WindowSpec& spec)
      : segment_(segment),
        input_(std::move(input)),
        elements_(&elements),
        spec_(spec) {}

  Progress next(Pull& pull) override {
    while (!is_over_ && (to_skip_ > 0 || held_.size() < span())) {
      if (!segment_.take_turn()) return Progress::kWait;
      const Progress progress = input_->next(pull);
      if (progress == Progress::kWait) return progress;
      // An error is a place of the windows that have it, and of no other.
      if (progress == Progress::kEnd)
        is_over_ = true;
      else if (to_skip_ > 0)
        --to_skip_;
      else if (progress == Progress::kFailed)
        held_.push_back({{}, std::move(pull.error)});
      else
        held_.push_back({std::move(pull.element), {}});
    }
    if (held_.empty() || (spec_.drops_rest && held_.size() < span()))
      return Progress::kEnd;
    Result<Element> window = make_window();
    const size_t gone = std::min<uint64_t>(held_.size(), uint64_t(spec_.shift));
    held_.erase(held_.begin(), held_.begin() + std::ptrdiff_t(gone));
    to_skip_ = spec_.shift - int64_t(gone);
    if (!window.ok()) return pull.fail(std::move(window).status());
    return pull.give(*std::move(window));
  }

 private:
  // The elements from the first to the last of a window.
  uint64_t span() const {
    return uint64_t(spec_.size - 1) * uint64_t(spec_.stride) + 1;
  }
  Result<Element> make_window() const {
    const ElementSpec& spec = elements_->spec();
    std::vector<std::vector<Element>> lists(spec.types.size());
    for (uint64_t i = 0; i < held_.size() && i < span();
         i += uint64_t(spec_.stride)) {
      const auto& [element, failed] = held_[i];
      TAGFLOW_RETURN_IF_ERROR(failed);
      if (element.size() != lists.size())
        return invalid_argument("an element has {} components, not {}",
                                element.size(), lists.size());
      for (size_t c = 0; c < lists.size(); ++c)
        lists[c].push_back({element[c]});
    }
    Element window;
    for (size_t c = 0; c < lists.size(); ++c) {
      ElementSpec its{{spec.types[c]}, {}};
      if (c < spec.shapes.size()) its.shapes.push_back(spec.shapes[c]);
      TAGFLOW_ASSIGN(Tensor handle,
                     list_dataset(std::move(lists[c]), std::move(its),
                                  segment_.pipeline().allocator()));
      window.push_back(std::move(handle));
    }
    return window;
  }

  Segment& segment_;
  const StagePtr input_;
  const DatasetRef elements_;
  const WindowSpec spec_;
  std::deque<std::pair<Element, Status>> held_;
  int64_t to_skip_ = 0;  // elements between two windows
  bool is_over_ = false;
};

Result<DatasetParts> window_dataset(const DatasetArgs& args) {
  TAGFLOW_ASSIGN(const DatasetRef input, args.dataset(0));
  WindowSpec spec;
  TAGFLOW_ASSIGN(spec.size, args.at_least(1, 1, "size"));
  TAGFLOW_ASSIGN(spec.shift, args.at_least(1, 2, "shift"));
  TAGFLOW_ASSIGN(spec.stride, args.at_least(1, 3, "stride"));
  TAGFLOW_ASSIGN(spec.drops_rest, args.flag(4, "drop_remainder"));
  const auto span = checked_multiply(spec.size - 1, spec.stride);
  if (!span || *span == std::numeric_limits<int64_t>::max())
    return args.context().fail("size {} with stride {} is too large", spec.size,
                               spec.stride);
  int64_t cardinality = input->cardinality();
  if (cardinality >= 0) {
    const int64_t firsts = spec.drops_rest ? cardinality - *span : cardinality;
    cardinality = firsts <= 0 ? 0 : (firsts - 1) / spec.shift + 1;
  }
  return DatasetParts{
      cardinality,
      [=](Segment& segment, const Dataset&) -> Result<StagePtr> {
        TAGFLOW_ASSIGN(StagePtr stage, input->start(segment));
        return StagePtr(std::make_unique<WindowStage>(segment, std::move(stage),
                                                      *input, spec));
      },
      std::vector<DataType>(input->spec().types.size(), DataType::kVariant)};
}

// --- Windows of a key -------------------------------------------------------

struct GroupSpec {
  CapturedFunction key;     // of an element
  CapturedFunction size;    // of the windows of a key
  CapturedFunction reduce;  // makes a dataset of a key and a window
};

// Collects elements by their keys. When a key has as many as its windows have,
// these are a window, and the elements of the dataset that is made of it are
// next. After the end of the input, the windows of all keys are as they are, in
// the order of the keys.
class GroupByWindowStage final : public Stage {
 public:
  GroupByWindowStage(Segment& segment, const Dataset& dataset,
                     const Dataset& elements, CallEach keys, StageFunction size,
                     StageFunction reduce)
      : segment_(segment),
        dataset_(&dataset),
        elements_(&elements),
        keys_(std::move(keys)),
        size_(std::move(size)),
        reduce_(std::move(reduce)) {}

  Progress next(Pull& pull) override {
    const Segment::Depth here(segment_, depth_);
    Progress progress = Progress::kEnd;
    do {
      if (!segment_.take_turn()) return Progress::kWait;
      progress = step(pull);
    } while (progress == Progress::kEnd && !is_over_);
    return progress;
  }

 private:
  // What is to be done for key_.
  enum class Doing : uint8_t {
    kCollect,  // the next element is taken
    kAdd,      // element_ is added to its window
    kReduce,   // the window is full
    kGive,     // reduced_ has its elements
  };

  // An answer of next(), or kEnd if there is none yet.
  Progress step(Pull& pull) {
    switch (doing_) {
      case Doing::kCollect:
        return collect(pull);
      case Doing::kAdd:
        return add(pull);
      case Doing::kReduce:
        return reduce(pull);
      case Doing::kGive:
        break;
    }
    const Progress progress = reduced_->next(pull);
    if (progress == Progress::kFailed) return failed(pull, pull.error);
    if (progress == Progress::kEnd) {
      reduced_ = nullptr;
      doing_ = Doing::kCollect;
    }
    return progress;
  }

  Progress collect(Pull& pull) {
    if (!has_input_ended_) {
      bool was_called = false;
      const Progress progress = keys_.next(pull, &was_called, &element_);
      if (progress == Progress::kFailed && was_called)
        return failed(pull, pull.error);
      if (progress == Progress::kElement) {
        const Result<int64_t> key = number_of(pull.element, "key_func");
        if (!key.ok()) return failed(pull, key.status());
        key_ = *key;
        doing_ = Doing::kAdd;
        return Progress::kEnd;
      }
      if (progress != Progress::kEnd) return progress;
      has_input_ended_ = true;
    }
    is_over_ = windows_.empty();
    if (is_over_) return Progress::kEnd;
    key_ = windows_.begin()->first;
    doing_ = Doing::kReduce;
    return Progress::kEnd;
  }

  Progress add(Pull& pull) {
    auto known = sizes_.find(key_);
    if (known == sizes_.end()) {
      if (call_ == nullptr) call_ = size_({Tensor::scalar(key_)});
      if (!call_->is_done()) return Progress::kWait;
      doing_ = Doing::kCollect;
      const Result<int64_t> size = size_result();
      if (!size.ok()) return failed(pull, size.status());
      known = sizes_.emplace(key_, *size).first;
    }
    std::vector<Element>& window = windows_[key_];
    window.push_back(std::exchange(element_, {}));
    // A window that could not be reduced may have more.
    doing_ = int64_t(window.size()) == known->second ? Doing::kReduce
                                                     : Doing::kCollect;
    return Progress::kEnd;
  }

  Progress reduce(Pull& pull) {
    if (call_ == nullptr) {
      Result<Tensor> window = list_dataset(windows_[key_], elements_->spec(),
                                           segment_.pipeline().allocator());
      if (!window.ok()) {
        doing_ = Doing::kCollect;
        return failed(pull, window.status());
      }
      call_ = reduce_({Tensor::scalar(key_), *std::move(window)});
    }
    if (!call_->is_done()) return Progress::kWait;
    doing_ = Doing::kCollect;
    const Result<Element> answer = std::exchange(call_, nullptr)->take();
    // As in TensorFlow: an OutOfRange must not look like the end.
    if (!answer.ok())
      return failed(pull, error(Code::kInternal, "{}: {}",
                                code_name(answer.status().code()),
                                answer.status().message()));
    const Result<DatasetRef> reduced =
        dataset_result(*answer, dataset_->spec());
    if (!reduced.ok()) return failed(pull, reduced.status());
    Result<StagePtr> stage = (*reduced)->start(segment_);
    if (!stage.ok()) return failed(pull, stage.status());
    reduced_ = *std::move(stage);
    windows_.erase(key_);
    doing_ = Doing::kGive;
    return Progress::kEnd;
  }

  Result<int64_t> size_result() {
    TAGFLOW_ASSIGN(const Element answer, std::exchange(call_, nullptr)->take());
    TAGFLOW_ASSIGN(const int64_t size, number_of(answer, "window_size_func"));
    if (size < 1)
      return invalid_argument(
          "windows must have at least one element, but those of key {} have {}",
          key_, size);
    return size;
  }

  static Result<int64_t> number_of(const Element& results,
                                   std::string_view function) {
    if (results.size() != 1 || results[0].dtype() != DataType::kInt64 ||
        results[0].num_elements() != 1)
      return invalid_argument(
          "{} must return one int64, not {}", function,
          results.empty() ? "nothing" : results[0].describe());
    return *results[0].data<int64_t>();
  }

  Progress failed(Pull& pull, const Status& status) const {
    return pull.fail(Status(status).with_prefix(dataset_->prefix()));
  }

  Segment& segment_;
  const int depth_ = segment_.depth();
  const DatasetRef dataset_;
  const DatasetRef elements_;
  CallEach keys_;
  const StageFunction size_;
  const StageFunction reduce_;
  Doing doing_ = Doing::kCollect;
  CallPtr call_;  // null: no call of size_ or reduce_ is open
  Element element_;
  int64_t key_ = 0;
  StagePtr reduced_;
  std::map<int64_t, int64_t> sizes_;
  std::map<int64_t, std::vector<Element>> windows_;
  bool has_input_ended_ = false;
  bool is_over_ = false;
};

Result<DatasetParts> group_by_window_dataset(const DatasetArgs& args) {
  TAGFLOW_ASSIGN(const DatasetRef input, args.dataset(0));
  GroupSpec spec;
  int first = 1;
  for (const auto& [function, name] :
       {std::pair(&spec.key, "key_func"),
        std::pair(&spec.reduce, "reduce_func"),
        std::pair(&spec.size, "window_size_func")}) {
    const std::string types = fmt::format("T{}_other_arguments", name);
    TAGFLOW_ASSIGN(*function, args.function(name, first, types));
    first += args.list_size(types);
  }
  return DatasetParts{
      input->cardinality() == kInfiniteCardinality ? kInfiniteCardinality
                                                   : kUnknownCardinality,
      [=](Segment& segment, const Dataset& self) -> Result<StagePtr> {
        TAGFLOW_ASSIGN(
            StageFunction key,
            StageFunction::make(segment, spec.key, input->spec().types.size()));
        TAGFLOW_ASSIGN(StageFunction size,
                       StageFunction::make(segment, spec.size, 1));
        TAGFLOW_ASSIGN(StageFunction reduce,
                       StageFunction::make(segment, spec.reduce, 2));
        TAGFLOW_ASSIGN(StagePtr stage, input->start(segment));
        return StagePtr(std::make_unique<GroupByWindowStage>(
            segment, self, *input, CallEach(std::move(stage), std::move(key)),
            std::move(size), std::move(reduce)));
      }};
}

}  // namespace

void register_dataset_window_kernels(KernelRegistry& registry) {
  add_dataset(registry, "WindowDataset", window_dataset);
  for (const char* op :
       {"GroupByWindowDataset", "ExperimentalGroupByWindowDataset"})
    add_dataset(registry, op, group_by_window_dataset);
}

}  // namespace tagflow::devices
