#include "devices/random_key.h"

#include "devices/threefry.h"

namespace tagflow::devices {

namespace {

uint64_t to_word(const ThreefryWords& words) {
  return words[0] | uint64_t{words[1]} << 32;
}

class KeyStates {
 public:
  void fold(uint64_t word) {
    const ThreefryWords block{uint32_t(word), uint32_t(word >> 32)};
    first_ = threefry2x32(first_, block);
    second_ = threefry2x32(second_, block);
  }
  void fold(std::string_view text) {
    fold(text.size());
    while (!text.empty()) {
      const std::string_view part = text.substr(0, 8);
      uint64_t word = 0;
      for (size_t i = 0; i < part.size(); ++i)
        word |= uint64_t{uint8_t(part[i])} << (8 * i);
      fold(word);
      text.remove_prefix(part.size());
    }
  }
  RandomKey key() const { return {to_word(first_), to_word(second_)}; }

 private:
  // Two arbitrary constants: digits of pi.
  ThreefryWords first_{0x243f6a88, 0x85a308d3};
  ThreefryWords second_{0x13198a2e, 0x03707344};
};

uint64_t seed_of(const graph::Node& node, std::string_view name) {
  const Result<int64_t> value = node.attr<int64_t>(name);
  return value.ok() ? uint64_t(*value) : 0;
}

}  // namespace

bool counts_runs(const graph::Node& node) {
  return node.op_def().is_stateful && node.attrs().contains("seed2");
}

RandomKey random_key(const KernelContext& context) {
  const graph::Node& node = context.node();
  const StepInfo& step = context.step();
  const uint64_t seed = seed_of(node, "seed");
  const uint64_t seed2 = seed_of(node, "seed2");
  KeyStates states;
  if (seed != 0 || seed2 != 0) {
    states.fold(1);
    states.fold(seed);
    states.fold(seed2);
  } else {
    states.fold(0);
    states.fold(step.seed);
    states.fold(node.name());
  }
  states.fold(step.random_runs == nullptr
                  ? 0
                  : uint64_t(step.random_runs->earlier_runs(node.name())));
  states.fold(context.tag().frame_hi);
  states.fold(context.tag().frame_lo);
  states.fold(uint64_t(context.tag().iteration));
  return states.key();
}

}  // namespace tagflow::devices
