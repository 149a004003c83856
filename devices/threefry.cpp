#include "devices/threefry.h"

#include <bit>

namespace tagflow::devices {

ThreefryWords threefry2x32(const ThreefryWords& key,
                           const ThreefryWords& block) {
  constexpr int kRotations[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
  const uint32_t keys[3] = {key[0], key[1], 0x1bd11bda ^ key[0] ^ key[1]};
  uint32_t x = block[0] + keys[0], y = block[1] + keys[1];
  // The key is added again after every four of the twenty rounds.
  for (uint32_t part = 0; part < 5; ++part) {
    for (int rotation : kRotations[part % 2]) {
      x += y;
      y = std::rotl(y, rotation) ^ x;
    }
    x += keys[(part + 1) % 3];
    y += keys[(part + 2) % 3] + part + 1;
  }
  return {x, y};
}

}  // namespace tagflow::devices
