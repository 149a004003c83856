// A client of HTTP for tests, which sees every byte.
#pragma once

#include <doctest/doctest.h>

#include <string>

#include "tests/net/link/loopback.h"

namespace tagflow::net::test {

inline std::string request_of(const std::string& path,
                              const std::string& method = "GET",
                              const std::string& fields = "") {
  return method + " " + path + " HTTP/1.1\r\nHost: localhost\r\n" + fields +
         "\r\n";
}

// An answer whose body ends where its head says, or with the connection.
struct Answer {
  std::string head;
  std::string body;

  int status() const {
    return head.starts_with("HTTP/1.1 ") ? std::stoi(head.substr(9)) : 0;
  }
  bool has(const std::string& line) const {
    return head.find("\r\n" + line + "\r\n") != head.npos;
  }
};

// Empty if the server closes before.
inline Answer read_answer(const Socket& socket, bool has_body = true) {
  Answer answer;
  while (!answer.head.ends_with("\r\n\r\n")) {
    const std::string byte = read_exactly(socket, 1);
    if (byte.empty()) return {};
    answer.head += byte;
  }
  const std::string field = "\r\nContent-Length: ";
  const size_t begin = answer.head.find(field);
  REQUIRE(begin != answer.head.npos);
  const size_t bytes = std::stoul(answer.head.substr(begin + field.size()));
  if (has_body) answer.body = read_exactly(socket, bytes);
  return answer;
}

// Whether the server closes the connection without another byte.
inline bool is_closed(const Socket& socket) {
  return read_to_end(socket).empty();
}

}  // namespace tagflow::net::test
