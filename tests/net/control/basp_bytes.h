// Messages of BASP as bytes, as a peer of CAF 0.17 writes them.
#pragma once

#include <caf/atom.hpp>
#include <caf/node_id.hpp>
#include <cstdint>
#include <string>
#include <string_view>

namespace tagflow::net::basp_bytes {

// The highest byte first.
template <class T>
std::string big(T value) {
  std::string bytes;
  for (int shift = int(sizeof(T)) * 8 - 8; shift >= 0; shift -= 8)
    bytes += char(uint64_t(value) >> shift);
  return bytes;
}

inline std::string text(std::string_view of) {
  std::string bytes;
  size_t size = of.size();
  for (; size > 127; size >>= 7) bytes += char(size | 128);
  return bytes + char(size) + std::string(of);
}

inline std::string atom(caf::atom_value value) { return big(uint64_t(value)); }

// A process of a machine of its own.
struct Node {
  uint32_t process = 1;

  caf::node_id id() const {
    caf::node_id::default_data::host_id_type host{};
    host.fill(7);
    return caf::make_node_id(process, host);
  }
  std::string bytes() const {
    return atom(caf::atom("default")) + big(process) + std::string(20, '\7');
  }
};

inline std::string header(uint8_t operation, uint8_t flags, size_t payload,
                          uint64_t data, uint64_t source, uint64_t dest) {
  return std::string{char(operation), 0, 0, char(flags)} +
         big(uint32_t(payload)) + big(data) + big(source) + big(dest);
}

struct Message {
  uint8_t operation = 0;
  uint8_t flags = 0;
  uint64_t data = 0;
  uint64_t source = 0, dest = 0;
  std::string payload;

  std::string head() const {
    return header(operation, flags, payload.size(), data, source, dest);
  }
  std::string bytes() const { return head() + payload; }
};

// What a direct message carries: no actors that it came by, and a tuple.
inline std::string tuple(std::string_view types, const std::string& values) {
  return std::string(1, '\0') + big(uint16_t{0}) +
         text("@<>" + std::string(types)) + values;
}
inline Message server_handshake(const Node& node, uint64_t actor) {
  return {.data = 3,
          .payload = node.bytes() + '\1' + text("generic-app") + big(actor) +
                     '\1' + text("a type")};
}
inline Message client_handshake(const Node& node, uint8_t flags = 0) {
  return {.operation = 1, .flags = flags, .payload = node.bytes()};
}
inline Message direct(uint64_t source, uint64_t dest, std::string payload) {
  return {.operation = 2,
          .data = 1,
          .source = source,
          .dest = dest,
          .payload = std::move(payload)};
}
inline Message monitor(const Node& source, const std::string& dest,
                       uint64_t actor) {
  return {.operation = 4, .dest = actor, .payload = source.bytes() + dest};
}
// Because of an error without a text.
inline Message down(const Node& source, const std::string& dest,
                    uint64_t actor) {
  return {.operation = 5,
          .source = actor,
          .payload = source.bytes() + dest + '\1' + atom(caf::atom("exit")) +
                     big(uint16_t{0}) + text("@<>")};
}

}  // namespace tagflow::net::basp_bytes
