// StringToHashBucketFast, StringToHashBucketStrong, StringToHashBucket: the
// same numbers as in TensorFlow, on any machine.
#include <farmhash.h>

#include <bit>

#include "devices/kernel_inputs.h"
#include "devices/kernel_registry.h"
#include "devices/kernels/text/pieces.h"
#include "devices/murmur_hash.h"

namespace tagflow::devices {

namespace {

uint64_t murmur(const KernelContext& context, std::string_view text) {
  constexpr uint64_t kSeed = 0xDECAFCAFFE;
  MurmurHash hash(kSeed, text.size());
  for_pieces(context, text, [&](std::string_view piece) { hash.add(piece); });
  return hash.value();
}

// SipHash-2-4.
uint64_t sip_hash(const KernelContext& context, std::string_view text,
                  uint64_t key0, uint64_t key1) {
  uint64_t v0 = key0 ^ 0x736f6d6570736575, v1 = key1 ^ 0x646f72616e646f6d;
  uint64_t v2 = key0 ^ 0x6c7967656e657261, v3 = key1 ^ 0x7465646279746573;
  const auto rounds = [&](int count) {
    for (int i = 0; i < count; ++i) {
      v0 += v1;
      v1 = std::rotl(v1, 13) ^ v0;
      v0 = std::rotl(v0, 32);
      v2 += v3;
      v3 = std::rotl(v3, 16) ^ v2;
      v0 += v3;
      v3 = std::rotl(v3, 21) ^ v0;
      v2 += v1;
      v1 = std::rotl(v1, 17) ^ v2;
      v2 = std::rotl(v2, 32);
    }
  };
  const auto add = [&](uint64_t word) {
    v3 ^= word;
    rounds(2);
    v0 ^= word;
  };
  std::string_view rest;
  for_pieces(context, text, [&](std::string_view piece) {
    for (rest = piece; rest.size() >= 8; rest.remove_prefix(8))
      add(little_endian_word(rest));
  });
  add(little_endian_word(rest) | uint64_t(text.size()) << 56);
  v2 ^= 0xff;
  rounds(4);
  return v0 ^ v1 ^ v2 ^ v3;
}

enum class Hash : uint8_t { kFast, kStrong, kLegacy };

template <Hash kHash>
class HashBucketKernel : public Kernel {
 public:
  static Result<std::unique_ptr<Kernel>> make(const KernelInfo& info) {
    auto kernel = std::make_unique<HashBucketKernel>();
    kernel->buckets_ = uint64_t(attr_of<int64_t>(info, "num_buckets"));
    if (kHash == Hash::kStrong) {
      const auto key = attr_of<std::vector<int64_t>>(info, "key");
      if (key.size() != 2)
        return invalid_argument("[{}] key has {} elements, not 2",
                                info.node().op(), key.size());
      kernel->key0_ = uint64_t(key[0]);
      kernel->key1_ = uint64_t(key[1]);
    }
    return std::unique_ptr<Kernel>(std::move(kernel));
  }

  Status compute(KernelContext& context) const override {
    const Tensor& input = context.input(0);
    TAGFLOW_ASSIGN(Tensor * output, context.allocate_output(0, input.shape()));
    const auto* from = input.data<std::string>();
    auto* to = output->mutable_data<int64_t>();
    for (int64_t i = 0; i < input.num_elements(); ++i) {
      context.check_cancelled();
      to[i] = int64_t(hash(context, from[i]) % buckets_);
    }
    return {};
  }

  double cost(const KernelContext& context) const override {
    double cost = 100;
    for (const std::string& text : context.input(0).flat<std::string>())
      cost += 20 + double(text.size());
    return cost;
  }

 private:
  uint64_t hash(const KernelContext& context, const std::string& text) const {
    if (kHash == Hash::kStrong) return sip_hash(context, text, key0_, key1_);
    if (kHash == Hash::kLegacy) return murmur(context, text);
    return util::Fingerprint64(text.data(), text.size());
  }

  uint64_t buckets_ = 1, key0_ = 0, key1_ = 0;
};

}  // namespace

void register_text_hash_kernels(KernelRegistry& registry) {
  registry.add<HashBucketKernel<Hash::kFast>>("StringToHashBucketFast");
  registry.add<HashBucketKernel<Hash::kStrong>>("StringToHashBucketStrong");
  registry.add<HashBucketKernel<Hash::kLegacy>>("StringToHashBucket");
}

}  // namespace tagflow::devices
