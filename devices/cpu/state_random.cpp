// The counters of random generators, in variables: RngSkip, RngReadAndSkip.
#include "devices/cpu/state_kernels.h"

namespace tagflow::devices {

namespace {

// The state of Philox: a counter of 128 bits, the low word first, and a key.
constexpr int64_t kPhiloxWords = 3;
constexpr int64_t kPhilox = 1;
// What one number asked for skips, as in TensorFlow.
constexpr uint64_t kCountersPerNumber = 256;

class RngSkipKernel final : public UpdateKernel {
 public:
  explicit RngSkipKernel(const KernelInfo&) {}

  Status claim(const KernelContext& context, StateClaim& claim) const override {
    return claim_variable(context, 0, StateLock::Mode::kExclusive, claim);
  }
  double cost(const KernelContext&) const override { return 0; }
  bool may_be_expensive() const override { return false; }

 protected:
  Status update(KernelContext& context) const override {
    TAGFLOW_ASSIGN(const int64_t algorithm,
                   index_scalar(context, 1, "algorithm"));
    if (algorithm != kPhilox)
      return context.fail("algorithm {} is unknown; 1 is Philox", algorithm);
    TAGFLOW_ASSIGN(const uint64_t delta, delta_of(context));
    TAGFLOW_ASSIGN(Variable * variable,
                   initialized_variable(context, 0, DataType::kInt64));
    const Tensor& state = variable->value();
    if (state.rank() != 1 || state.dim(0) < kPhiloxWords)
      return context.fail(
          "the state of Philox is a vector of at least {} words, the value of "
          "{} is {}",
          kPhiloxWords, variable->describe(), state.describe());
    if (context.num_outputs() > 0) {
      TAGFLOW_ASSIGN(Tensor * before,
                     context.allocate_output(0, {kPhiloxWords}));
      std::copy_n(state.data<int64_t>(), kPhiloxWords,
                  before->mutable_data<int64_t>());
    }
    TAGFLOW_ASSIGN(Tensor * changed, variable->change(context));
    auto* words = changed->mutable_data<int64_t>();
    const uint64_t low = uint64_t(words[0]) + delta * kCountersPerNumber;
    const bool carries = low < uint64_t(words[0]);
    words[0] = int64_t(low);
    words[1] = int64_t(uint64_t(words[1]) + (carries ? 1 : 0));
    return {};
  }

 private:
  static Result<uint64_t> delta_of(const KernelContext& context) {
    const Tensor& delta = context.input(2);
    if (!delta.is_scalar())
      return context.fail("delta must be a scalar, got {}", delta.describe());
    return delta.dtype() == DataType::kUInt64
               ? delta.scalar_value<uint64_t>()
               : uint64_t(delta.scalar_value<int64_t>());
  }
};

}  // namespace

void register_random_state_kernels(KernelRegistry& registry) {
  for (const char* op : {"RngSkip", "RngReadAndSkip"})
    registry.add<RngSkipKernel>(op);
}

}  // namespace tagflow::devices
