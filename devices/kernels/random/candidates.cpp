// UniformCandidateSampler, LogUniformCandidateSampler, AllCandidateSampler,
// FixedUnigramCandidateSampler, ComputeAccidentalHits: negative classes for
// training.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <mutex>
#include <unordered_map>
#include <unordered_set>

#include "devices/files/host_access.h"
#include "devices/kernels/random/numbers.h"
#include "devices/kernels/random/stream.h"
#include "devices/kernels/regular_file.h"

namespace tagflow::devices {

namespace {

// The distribution of classes of [0, range).
enum class Classes : uint8_t {
  kUniform,
  kLogUniform,  // class k with log((k + 2) / (k + 1)) / log(range + 1)
  kAll,         // no draw: class k is candidate k
  kWeighted,    // proportional to weights
};

// The maximum number of classes; more are rejected.
constexpr int64_t kMostClasses = int64_t{1} << 27;

// The weight of each class, from the last column of each line of a file.
Result<std::vector<double>> read_weights(const std::string& path) {
  if (is_irregular_file(path))
    return invalid_argument("\"{}\" is not a regular file", path);
  std::vector<double> weights;
  std::ifstream file(path);
  std::string line;
  while (int64_t(weights.size()) < kMostClasses && std::getline(file, line)) {
    const size_t comma = line.rfind(',');
    const char* text =
        line.c_str() + (comma == std::string::npos ? 0 : comma + 1);
    char* end = nullptr;
    weights.push_back(std::strtod(text, &end));
    if (end == text)
      return invalid_argument("line {} of \"{}\" does not end with a weight",
                              weights.size(), path);
  }
  if (weights.empty())
    return error(Code::kNotFound, "\"{}\" has no weights", path);
  return weights;
}

// Cumulative weights of the classes of a shard: class k has the interval
// between sums k and k + 1. Reserved classes have weight 0.
Result<std::vector<double>> cumulated_weights(const KernelInfo& info,
                                              std::span<const double> weights) {
  const auto distortion = double(attr_of<float>(info, "distortion"));
  const auto reserved = attr_of<int64_t>(info, "num_reserved_ids");
  const auto shards = attr_of<int64_t>(info, "num_shards");
  const auto shard = attr_of<int64_t>(info, "shard");
  const auto range = attr_of<int64_t>(info, "range_max");
  if (reserved < 0 || reserved > kMostClasses)
    return invalid_argument("num_reserved_ids {} is outside [0, {}]", reserved,
                            kMostClasses);
  if (shard >= shards)
    return invalid_argument("shard {} is not below num_shards {}", shard,
                            shards);
  if (shards > kMostClasses)
    return invalid_argument("num_shards {} is over {}", shards, kMostClasses);
  // As in TensorFlow: classes are those of the shard, and the first weight
  // belongs to the first number after the reserved ones of the shard.
  std::vector<double> sums = {0};
  // Stops as soon as it is clear that there are too many.
  for (int64_t id = shard; id < reserved && int64_t(sums.size()) - 1 <= range;
       id += shards)
    sums.push_back(0);
  auto id = int64_t(sums.size()) - 1;
  for (const double weight : weights) {
    if (!(weight >= 0))
      return invalid_argument("weight {} is {}, not a number of at least 0", id,
                              weight);
    const double power = std::pow(weight, distortion);
    if (!std::isfinite(power))
      return invalid_argument(
          "weight {} is {}, which has no finite power of {}", id, weight,
          distortion);
    if (id++ % shards == shard) sums.push_back(sums.back() + power);
  }
  if (int64_t(sums.size()) - 1 != range)
    return invalid_argument(
        "range_max is {}, but there are {} classes, of {} weights and {} "
        "reserved ones",
        range, sums.size() - 1, weights.size(), reserved);
  if (!(sums.back() > 0) || !std::isfinite(sums.back()))
    return invalid_argument(
        "no class can be drawn: all weights are 0, or their sum is not finite");
  return sums;
}

Status about(const graph::Node& node, Status status) {
  return std::move(status).with_prefix(
      fmt::format("[{}] node \"{}\": ", node.op(), node.name()));
}

class CandidateKernel : public Kernel {
 public:
  CandidateKernel(const KernelInfo& info, Classes classes,
                  std::vector<double> sums)
      : classes_(classes),
        sums_(std::move(sums)),
        per_row_(attr_of<int64_t>(info, "num_true")),
        count_(attr_of<int64_t>(info, "num_sampled")),
        range_(classes == Classes::kAll ? count_
                                        : attr_of<int64_t>(info, "range_max")),
        unique_(attr_of<bool>(info, "unique")) {}

  static Result<std::unique_ptr<Kernel>> make(const KernelInfo& info,
                                              Classes classes) {
    return std::unique_ptr<Kernel>(std::make_unique<CandidateKernel>(
        info, classes, std::vector<double>()));
  }
  static Result<std::unique_ptr<Kernel>> make_weighted(
      const KernelInfo& info, std::span<const double> weights) {
    auto sums = cumulated_weights(info, weights);
    if (!sums.ok()) return about(info.node(), std::move(sums).status());
    return std::unique_ptr<Kernel>(std::make_unique<CandidateKernel>(
        info, Classes::kWeighted, *std::move(sums)));
  }

  Status compute(KernelContext& context) const override {
    const Tensor& given = context.input(0);
    if (given.rank() != 2 || given.dim(1) != per_row_)
      return context.fail("true_classes must be a matrix of {} columns, got {}",
                          per_row_, given.describe());
    if (unique_ && count_ > range_)
      return context.fail(
          "num_sampled is {}, but there are only {} unique classes", count_,
          range_);
    if (unique_ && classes_ == Classes::kWeighted && count_ > drawable_)
      return context.fail(
          "num_sampled is {}, but only {} unique classes can be drawn", count_,
          drawable_);
    TAGFLOW_ASSIGN(Tensor * sampled, context.allocate_output(0, Shape{count_}));
    TAGFLOW_ASSIGN(Tensor * of_true, context.allocate_output(1, given.shape()));
    TAGFLOW_ASSIGN(Tensor * of_sampled,
                   context.allocate_output(2, Shape{count_}));
    auto* to = sampled->mutable_data<int64_t>();
    TAGFLOW_ASSIGN(const int64_t tries, sample(context, to));
    for (int64_t i = 0; i < given.num_elements(); ++i) {
      context.check_cancelled();
      const int64_t number = given.data<int64_t>()[i];
      if (classes_ != Classes::kAll && (number < 0 || number >= range_))
        return context.fail("true class {} is outside of [0, {})", number,
                            range_);
      of_true->mutable_data<float>()[i] = expected(number, tries);
    }
    for (int64_t i = 0; i < count_; ++i) {
      context.check_cancelled();
      of_sampled->mutable_data<float>()[i] = expected(to[i], tries);
    }
    return {};
  }

  double cost(const KernelContext& context) const override {
    return 200 + 20 * double(context.input(0).num_elements()) +
           100 * double(count_);
  }

 private:
  // Stores `count_` classes. Returns the number of draws that this took, which
  // is larger if classes must be unique.
  Result<int64_t> sample(const KernelContext& context, int64_t* to) const {
    if (classes_ == Classes::kAll) {
      for (int64_t i = 0; i < count_; ++i) to[i] = i;
      return count_;
    }
    TAGFLOW_ASSIGN(Philox stream,
                   random_stream(context, RandomSource::kNode, 1));
    std::unordered_set<int64_t> used;
    int64_t tries = 0;
    for (int64_t filled = 0; filled < count_; ++tries) {
      context.check_cancelled();
      if (tries == kMostTries)
        return error(Code::kResourceExhausted,
                     "[{}] {} of {} unique classes after {} draws",
                     context.node().op(), filled, count_, tries);
      const int64_t drawn = draw(stream.next());
      if (!unique_ || used.insert(drawn).second) to[filled++] = drawn;
    }
    return tries;
  }

  int64_t draw(const Philox::Block& block) const {
    if (classes_ == Classes::kUniform) {
      const uint64_t word = block[0] | uint64_t{block[1]} << 32;
      return int64_t(word % uint64_t(range_));
    }
    const double unit = unit_double(block[0], block[1]);
    if (classes_ == Classes::kWeighted) {
      // The last class with a weight whose interval begins at or below it.
      const auto above = std::ranges::upper_bound(sums_, unit * sums_.back());
      const auto end = std::ranges::lower_bound(sums_, sums_.back());
      return std::min(above, end) - sums_.begin() - 1;
    }
    const double value = std::exp(unit * std::log1p(double(range_)));
    // Rounding may reach the end.
    return std::min(int64_t(std::min(value, 9e18)) - 1, range_ - 1);
  }

  // The expected number of occurrences of a class among the candidates.
  float expected(int64_t number, int64_t tries) const {
    if (classes_ == Classes::kAll) return 1;
    const double chance = chance_of(number);
    if (tries == count_) return float(chance * double(count_));
    return float(-std::expm1(double(tries) * std::log1p(-chance)));
  }

  double chance_of(int64_t number) const {
    if (classes_ == Classes::kUniform) return 1 / double(range_);
    if (classes_ == Classes::kWeighted)
      return (sums_[size_t(number) + 1] - sums_[size_t(number)]) / sums_.back();
    return (std::log(double(number) + 2) - std::log(double(number) + 1)) /
           std::log1p(double(range_));
  }
  static int64_t count_drawable(const std::vector<double>& sums) {
    int64_t count = 0;
    for (size_t i = 1; i < sums.size(); ++i) count += sums[i] > sums[i - 1];
    return count;
  }

  static constexpr int64_t kMostTries = std::numeric_limits<int32_t>::max();

  Classes classes_;
  const std::vector<double> sums_;  // of weights below each; the total
  const int64_t drawable_ = count_drawable(sums_);  // classes with a weight
  int64_t per_row_, count_, range_;
  bool unique_;
};

// Weights from a file, which is read when the kernel first runs: by then it
// knows what its session may read.
class FileCandidateKernel : public Kernel {
 public:
  Status compute(KernelContext& context) const override {
    if (read() == nullptr) TAGFLOW_RETURN_IF_ERROR(read_file(context));
    return read()->compute(context);
  }

  double cost(const KernelContext& context) const override {
    const Kernel* const kernel = read();
    return kernel == nullptr ? kUnknownCost : kernel->cost(context);
  }

 private:
  const Kernel* read() const {
    const std::lock_guard lock(mutex_);
    return kernel_.get();
  }

  Status read_file(const KernelContext& context) const {
    const KernelInfo info(context.node());
    TAGFLOW_ASSIGN(const HostAccess* host, files_of(context));
    TAGFLOW_ASSIGN(
        const std::string path,
        host->path_to_read(attr_of<std::string>(info, "vocab_file")));
    Result<std::vector<double>> weights = read_weights(path);
    if (!weights.ok())
      return about(context.node(), std::move(weights).status());
    TAGFLOW_ASSIGN(auto kernel, CandidateKernel::make_weighted(info, *weights));
    const std::lock_guard lock(mutex_);
    // Another run may have been faster.
    if (kernel_ == nullptr) kernel_ = std::move(kernel);
    return {};
  }

  mutable std::mutex mutex_;
  mutable std::unique_ptr<const Kernel> kernel_;  // stays when it is there
};

Result<std::unique_ptr<Kernel>> make_unigram_kernel(const KernelInfo& info) {
  const auto listed = attr_of<std::vector<float>>(info, "unigrams");
  if (attr_of<std::string>(info, "vocab_file").empty())
    return CandidateKernel::make_weighted(
        info, std::vector<double>(listed.begin(), listed.end()));
  if (!listed.empty())
    return about(
        info.node(),
        invalid_argument("only one of vocab_file and unigrams may be given"));
  return std::unique_ptr<Kernel>(std::make_unique<FileCandidateKernel>());
}

// Sampled classes that are true ones of a row: the row, the candidate, and a
// weight that removes it from a sum of exponentials.
class AccidentalHitsKernel : public Kernel {
 public:
  explicit AccidentalHitsKernel(const KernelInfo& info)
      : per_row_(attr_of<int64_t>(info, "num_true")) {}

  Status compute(KernelContext& context) const override {
    const Tensor& given = context.input(0);
    const Tensor& sampled = context.input(1);
    if (given.rank() != 2 || given.dim(1) != per_row_)
      return context.fail("true_classes must be a matrix of {} columns, got {}",
                          per_row_, given.describe());
    if (sampled.rank() != 1)
      return context.fail("sampled_candidates must be a vector, got {}",
                          sampled.describe());
    if (given.dim(0) > std::numeric_limits<int32_t>::max())
      return context.fail("{} has too many rows for int32", given.describe());
    std::unordered_map<int64_t, int64_t> place;
    for (int64_t i = 0; i < sampled.dim(0); ++i) {
      context.check_cancelled();
      place[sampled.data<int64_t>()[i]] = i;
    }
    std::vector<std::pair<int32_t, int64_t>> hits;
    for (int64_t i = 0; i < given.num_elements(); ++i) {
      context.check_cancelled();
      if (const auto it = place.find(given.data<int64_t>()[i]);
          it != place.end())
        hits.emplace_back(int32_t(i / per_row_), it->second);
    }
    const Shape shape{int64_t(hits.size())};
    TAGFLOW_ASSIGN(Tensor * rows, context.allocate_output(0, shape));
    TAGFLOW_ASSIGN(Tensor * ids, context.allocate_output(1, shape));
    TAGFLOW_ASSIGN(Tensor * weights, context.allocate_output(2, shape));
    for (size_t i = 0; i < hits.size(); ++i) {
      rows->mutable_data<int32_t>()[i] = hits[i].first;
      ids->mutable_data<int64_t>()[i] = hits[i].second;
      weights->mutable_data<float>()[i] = -std::numeric_limits<float>::max();
    }
    return {};
  }

  double cost(const KernelContext& context) const override {
    return 200 + 50 * double(context.input(0).num_elements() +
                             context.input(1).num_elements());
  }

 private:
  int64_t per_row_;
};

}  // namespace

void register_random_candidate_kernels(KernelRegistry& registry) {
  registry.add<CandidateKernel>("UniformCandidateSampler", {},
                                Classes::kUniform);
  registry.add<CandidateKernel>("LogUniformCandidateSampler", {},
                                Classes::kLogUniform);
  registry.add<CandidateKernel>("AllCandidateSampler", {}, Classes::kAll);
  KernelDef unigram;
  unigram.op = "FixedUnigramCandidateSampler";
  unigram.factory = make_unigram_kernel;
  registry.add(std::move(unigram));
  registry.add<AccidentalHitsKernel>("ComputeAccidentalHits");
}

}  // namespace tagflow::devices
