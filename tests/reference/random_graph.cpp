#include "tests/reference/random_graph.h"

#include "tests/reference/random_program.h"

namespace tagflow::reference {

// splitmix64, by Sebastiano Vigna (public domain).
uint32_t SeededChoices::below(uint32_t n) {
  state_ += 0x9e3779b97f4a7c15;
  uint64_t z = state_;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  z ^= z >> 31;
  return uint32_t((z >> 32) * n >> 32);
}

uint32_t ByteChoices::below(uint32_t n) {
  if (n <= 1 || data_ == end_) return 0;
  uint32_t value = *data_++;
  if (n > 256 && data_ != end_) value = value << 8 | *data_++;
  return value % n;
}

Result<Case> random_graph(Choices& choices, const RandomOptions& options) {
  Case result;
  TAGFLOW_RETURN_IF_ERROR(RandomProgram(choices, options, result).build());
  return result;
}

Result<Case> random_graph(uint64_t seed, const RandomOptions& options) {
  SeededChoices choices(seed);
  return random_graph(choices, options);
}

}  // namespace tagflow::reference
