// CTCGreedyDecoder and CTCBeamSearchDecoder: likely labels of sequences.
//
// The greedy one takes the likeliest class of each step. The other one keeps a
// *beam* of prefixes of labels, each with the probabilities to have been said
// so far with a blank, or with its last label, as the last class. A step adds
// to both, and grows each prefix by each label; the beam keeps the likeliest.
#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <unordered_map>
#include <vector>

#include "devices/counted_growth.h"
#include "devices/kernel_inputs.h"
#include "devices/kernel_registry.h"
#include "devices/kernels/recurrent/ctc.h"

namespace tagflow::devices {

namespace {

using Path = std::vector<int64_t>;

// Writes a path for each row as the outputs `first`, `first` + `stride` and
// `first` + 2 `stride`: a sparse tensor.
Status set_paths(KernelContext& context, const std::vector<Path>& paths,
                 int first, int stride) {
  int64_t count = 0, longest = 0;
  for (const Path& path : paths) {
    count += int64_t(path.size());
    longest = std::max(longest, int64_t(path.size()));
  }
  TAGFLOW_ASSIGN(Tensor * indices,
                 context.allocate_output(first, Shape{count, 2}));
  TAGFLOW_ASSIGN(Tensor * values,
                 context.allocate_output(first + stride, Shape{count}));
  TAGFLOW_ASSIGN(Tensor * shape,
                 context.allocate_output(first + 2 * stride, Shape{2}));
  auto* at = indices->mutable_data<int64_t>();
  auto* value = values->mutable_data<int64_t>();
  for (size_t row = 0; row < paths.size(); ++row)
    for (size_t i = 0; i < paths[row].size(); ++i) {
      *at++ = int64_t(row);
      *at++ = int64_t(i);
      *value++ = paths[row][i];
    }
  shape->mutable_data<int64_t>()[0] = int64_t(paths.size());
  shape->mutable_data<int64_t>()[1] = longest;
  return {};
}

template <class T>
class CtcGreedyKernel final : public Kernel {
 public:
  explicit CtcGreedyKernel(const KernelInfo& info)
      : merges_(attr_of<bool>(info, "merge_repeated")),
        blank_(attr_of<int64_t>(info, "blank_index")) {}

  Status compute(KernelContext& context) const override {
    TAGFLOW_ASSIGN(const CtcSizes sizes, ctc_sizes(context, 1, true));
    const int64_t blank = blank_ < 0 ? blank_ + sizes.classes : blank_;
    if (blank < 0 || blank >= sizes.classes)
      return context.fail("blank_index {} is outside [-{}, {})", blank_,
                          sizes.classes, sizes.classes);
    TAGFLOW_ASSIGN(Tensor * score,
                   context.allocate_output(3, Shape{sizes.batch, 1}));
    const T* const logits = context.input(0).data<T>();
    std::vector<Path> paths(static_cast<size_t>(sizes.batch));
    const double unit = double(sizes.steps) * double(sizes.classes);
    context.parallel_for(sizes.batch, unit, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        context.check_cancelled();
        T sum = 0;
        int64_t previous = -1;
        for (int64_t t = 0; t < sizes.lengths[row]; ++t) {
          const T* const from = logits + sizes.at(t, row);
          const int64_t likeliest =
              std::max_element(from, from + sizes.classes) - from;
          sum -= from[likeliest];
          if (likeliest != blank && !(merges_ && likeliest == previous))
            paths[size_t(row)].push_back(likeliest);
          previous = likeliest;
        }
        score->mutable_data<T>()[row] = sum;
      }
    });
    return set_paths(context, paths, 0, 1);
  }

  double cost(const KernelContext& context) const override {
    return 300 + double(context.input(0).num_elements());
  }

 private:
  const bool merges_;
  const int64_t blank_;
};

// The beam of one row, whose last class is the blank. It holds `width` prefixes
// at most. Prefixes are the nodes of a tree, whose root has no label; a parent
// stays as long as it has children, also beside the beam.
template <class T>
class CtcBeam {
 public:
  CtcBeam(int64_t width, int64_t classes)
      : width_(size_t(width)), classes_(classes) {
    nodes_.push_back({.label = -1, .now = {.whole = 0, .blank = 0}});
    push(0);
  }

  // ResourceExhausted if the memory's limit does not have its prefixes.
  Status step(const KernelContext& context, const T* logits) {
    const T sum = log_sum(logits, classes_);
    const std::vector<size_t> before = best(beam_.size());
    beam_.clear();
    for (const size_t at : before) nodes_[at].old = nodes_[at].now;
    for (const size_t at : before) {
      stay(nodes_[at], logits, sum);
      push(at);
    }
    for (const size_t at : before) {
      if (!may_enter(nodes_[at].old.whole)) continue;
      context.check_cancelled();
      TAGFLOW_RETURN_IF_ERROR(make_room_for(context));
      for (int32_t label = 0; label < classes_ - 1; ++label)
        grow(at, label, logits[label] - sum);
    }
    return {};
  }

  // The likeliest ones, `count` at most.
  std::vector<size_t> best(size_t count) const {
    std::vector<size_t> nodes;
    for (const Entry& entry : beam_)
      if (nodes.size() < count) nodes.push_back(entry.node);
    return nodes;
  }
  T score(size_t node) const { return nodes_[node].now.whole; }
  // Its labels; of equal neighbours one, if `merges`.
  Path path(size_t node, bool merges) const {
    Path labels;
    int32_t previous = -1;
    for (; nodes_[node].label >= 0; node = nodes_[node].parent) {
      const int32_t label = nodes_[node].label;
      if (!merges || label != previous) labels.push_back(label);
      previous = label;
    }
    std::ranges::reverse(labels);
    return labels;
  }

 private:
  static constexpr T kNone = -std::numeric_limits<T>::infinity();

  // Logarithms of probabilities.
  struct Chances {
    T whole = kNone, blank = kNone, label = kNone;
  };
  struct Node {
    size_t parent = 0;
    int32_t label = 0;
    size_t children = 0;
    Chances old = {}, now = {};  // after the last step, and after this one
    bool is_in_beam() const { return now.whole != kNone; }
  };
  // Equal ones are in the order of their arrival.
  struct Entry {
    T whole;
    int64_t arrival;
    size_t node;
    bool operator<(const Entry& other) const {
      return whole != other.whole ? whole > other.whole
                                  : arrival < other.arrival;
    }
  };

  // For all that a prefix grows. What enters in this step is in the beam, or
  // was dropped.
  Status make_room_for(const KernelContext& context) {
    const size_t wanted =
        nodes_.size() + std::min(width_, size_t(classes_)) - free_.size();
    if (wanted <= nodes_.capacity()) return {};
    const size_t places = std::max(wanted, 2 * nodes_.capacity());
    // A node, its places in the other containers, and in a list of those
    // before.
    constexpr size_t kPlace = sizeof(Node) + sizeof(Entry) + 2 * kNodeBytes +
                              sizeof(uint64_t) + 5 * sizeof(size_t);
    return grow_counted(
        context, charge_, places * kPlace, [] { return "the beam"; },
        [&] { nodes_.reserve(places); });
  }

  bool may_enter(T whole) const {
    return whole > kNone &&
           (beam_.size() < width_ || whole > std::prev(beam_.end())->whole);
  }

  void stay(Node& node, const T* logits, T sum) {
    if (node.label >= 0) {
      const Node& parent = nodes_[node.parent];
      if (parent.is_in_beam())
        node.now.label = log_add(node.now.label, node.label == parent.label
                                                     ? parent.old.blank
                                                     : parent.old.whole);
      node.now.label += logits[node.label] - sum;
    }
    node.now.blank = node.old.whole + logits[classes_ - 1] - sum;
    node.now.whole = log_add(node.now.blank, node.now.label);
  }

  void grow(size_t at, int32_t label, T score) {
    const uint64_t key = uint64_t(at) * uint64_t(classes_) + uint64_t(label);
    const auto known = children_.find(key);
    if (known != children_.end() && nodes_[known->second].is_in_beam()) return;
    const Chances& old = nodes_[at].old;
    const T chance =
        score + (label == nodes_[at].label ? old.blank : old.whole);
    if (!may_enter(chance)) {
      if (known != children_.end()) nodes_[known->second].old = {};
      return;
    }
    if (beam_.size() == width_) drop_last();
    size_t child = known == children_.end() ? 0 : known->second;
    if (known == children_.end()) {
      child = new_node({.parent = at, .label = label});
      children_.emplace(key, child);
      ++nodes_[at].children;
    }
    nodes_[child].now = {.whole = chance, .blank = kNone, .label = chance};
    push(child);
  }

  // Unless it has no chance, or its chances are not numbers.
  void push(size_t node) {
    Chances& now = nodes_[node].now;
    if (now.whole > kNone) {
      beam_.insert({now.whole, arrivals_++, node});
    } else {
      now = {};
    }
  }

  size_t new_node(const Node& node) {
    if (free_.empty()) {
      nodes_.push_back(node);
      return nodes_.size() - 1;
    }
    const size_t at = free_.back();
    free_.pop_back();
    nodes_[at] = node;
    return at;
  }

  // The last one leaves the beam, and the tree if it entered both in this step.
  void drop_last() {
    const auto last = std::prev(beam_.end());
    const size_t at = last->node;
    beam_.erase(last);
    Node& node = nodes_[at];
    node.now = {};
    if (node.children > 0 || node.label < 0 || node.old.whole != kNone) return;
    children_.erase(uint64_t(node.parent) * uint64_t(classes_) +
                    uint64_t(node.label));
    --nodes_[node.parent].children;
    free_.push_back(at);
  }

  const size_t width_;
  const int64_t classes_;
  std::vector<Node> nodes_;
  std::vector<size_t> free_;
  std::unordered_map<uint64_t, size_t> children_;  // by parent and label
  std::set<Entry> beam_;
  int64_t arrivals_ = 0;
  MemoryCharge charge_;
};

template <class T>
class CtcBeamKernel final : public Kernel {
 public:
  static Result<std::unique_ptr<Kernel>> make(const KernelInfo& info) {
    std::unique_ptr<CtcBeamKernel> kernel(new CtcBeamKernel(info));
    if (kernel->count_ > kernel->width_)
      return invalid_argument(
          "[{}] node \"{}\": {} paths are more than a beam of width {} has",
          info.node().op(), info.name(), kernel->count_, kernel->width_);
    return std::unique_ptr<Kernel>(std::move(kernel));
  }

  Status compute(KernelContext& context) const override {
    TAGFLOW_ASSIGN(const CtcSizes sizes, ctc_sizes(context, 1, true));
    const auto count = size_t(count_);
    TAGFLOW_ASSIGN(
        Tensor * scores,
        context.allocate_output(int(3 * count_), Shape{sizes.batch, count_}));
    std::vector<std::vector<Path>> paths(
        count, std::vector<Path>(size_t(sizes.batch)));
    for (int64_t row = 0; row < sizes.batch; ++row) {
      CtcBeam<T> beam(width_, sizes.classes);
      for (int64_t t = 0; t < sizes.lengths[row]; ++t)
        TAGFLOW_RETURN_IF_ERROR(
            beam.step(context, context.input(0).data<T>() + sizes.at(t, row)));
      const std::vector<size_t> best = beam.best(count);
      if (best.size() < count)
        return context.fail("row {} of the batch has {} paths, not {}", row,
                            best.size(), count);
      for (size_t i = 0; i < count; ++i) {
        paths[i][size_t(row)] = beam.path(best[i], merges_);
        scores->mutable_data<T>()[size_t(row) * count + i] =
            beam.score(best[i]);
      }
    }
    for (size_t i = 0; i < count; ++i)
      TAGFLOW_RETURN_IF_ERROR(
          set_paths(context, paths[i], int(i), int(count_)));
    return {};
  }

  double cost(const KernelContext& context) const override {
    return 1000 + 100 * double(std::min<int64_t>(width_, 1 << 20)) *
                      double(context.input(0).num_elements());
  }

 private:
  explicit CtcBeamKernel(const KernelInfo& info)
      : width_(attr_of<int64_t>(info, "beam_width")),
        count_(attr_of<int64_t>(info, "top_paths")),
        merges_(attr_of<bool>(info, "merge_repeated")) {}

  const int64_t width_, count_;
  const bool merges_;
};

template <class T>
void add_decoders(KernelRegistry& registry) {
  const DataType type = kDataTypeOf<T>;
  registry.add<CtcGreedyKernel<T>>("CTCGreedyDecoder", {{"T", {type}}});
  registry.add<CtcBeamKernel<T>>("CTCBeamSearchDecoder", {{"T", {type}}});
}

}  // namespace

void register_recurrent_ctc_decoder_kernels(KernelRegistry& registry) {
  add_decoders<float>(registry);
  add_decoders<double>(registry);
}

}  // namespace tagflow::devices
