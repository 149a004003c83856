// Status and Result: how an error reaches the user, a file's reader or a peer.
//
// Every boundary that a user, a file or a peer can reach returns a Status or a
// Result<T>; exceptions are for what ends the process's usefulness. A message
// reads `[module|op] what happened`, with node names, shapes, dtypes, frames.
#pragma once

#include <fmt/format.h>

#include <atomic>
#include <cassert>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace tagflow {

// The values up to kUnauthenticated are those of TensorFlow's error codes, so
// that recorded cases can be judged by them.
enum class Code : uint8_t {
  kOk = 0,                  // no error
  kCancelled = 1,           // the caller, or another error, stopped the step
  kUnknown = 2,             // an error from outside without a better code
  kInvalidArgument = 3,     // the request is wrong whatever the state is
  kDeadlineExceeded = 4,    // the time-out of the run passed
  kNotFound = 5,            // a named thing (node, file, op) does not exist
  kAlreadyExists = 6,       // a thing to be created is there already
  kPermissionDenied = 7,    // the system refuses access
  kResourceExhausted = 8,   // memory, a limit or a quota is used up
  kFailedPrecondition = 9,  // the state is not one in which this can be done
  kAborted = 10,            // stopped by a conflict; trying again may help
  kOutOfRange = 11,         // past the valid range, e.g. the end of input
  kUnimplemented = 12,      // an op, kernel or feature does not exist
  kInternal = 13,           // an invariant of the engine is broken
  kUnavailable = 14,        // a peer cannot be reached
  kDataLoss = 15,           // stored or sent data is damaged
  kUnauthenticated = 16,    // a peer did not prove who it is
  kDeadlock = 64,           // the step can make no progress; lists who waits
};

// "InvalidArgument" for kInvalidArgument, and so on.
std::string_view code_name(Code code);

// Success, or a code with a message. One pointer wide: success costs a null
// check. Copies share the message. Nothing here throws: where there is no
// memory for a message, the error is out_of_memory() instead. Different objects
// may be used by different threads, copies of each other too.
class [[nodiscard]] Status {
 public:
  Status() = default;
  // REQUIRES: code != Code::kOk
  Status(Code code, std::string message) noexcept;
  // ResourceExhausted "out of memory", which needs none.
  static Status out_of_memory() noexcept;

  Status(const Status& other) noexcept : rep_(other.rep_) {
    if (rep_ != nullptr) share();
  }
  Status(Status&& other) noexcept : rep_(std::exchange(other.rep_, nullptr)) {}
  Status& operator=(Status other) noexcept {
    std::swap(rep_, other.rep_);
    return *this;
  }
  ~Status() {
    if (rep_ != nullptr) release();
  }

  bool ok() const { return rep_ == nullptr; }
  Code code() const { return rep_ ? rep_->code : Code::kOk; }
  // Empty on success.
  std::string_view message() const;
  // "InvalidArgument: [MatMul] ..." or "OK". May throw std::bad_alloc.
  std::string to_string() const;
  // The same code, with `prefix` put before the message, or without it where
  // there is no memory for it. No effect on success.
  Status with_prefix(std::string_view prefix) && noexcept;

 private:
  struct Rep {
    Code code;
    std::string message;  // never changed once it is shared
    std::atomic<uint32_t> owners{1};
  };
  struct Immortal;
  explicit Status(Rep* rep) noexcept : rep_(rep) {}
  void share() const noexcept;
  void release() noexcept;

  Rep* rep_ = nullptr;
};

// Status of the code with a fmt-formatted message; out_of_memory() where there
// is none for it.
Status vformat_error(Code code, fmt::string_view format,
                     fmt::format_args args) noexcept;

template <class... Args>
Status error(Code code, fmt::format_string<Args...> format, Args&&... args) {
  return vformat_error(code, format, fmt::make_format_args(args...));
}

template <class... Args>
Status invalid_argument(fmt::format_string<Args...> format, Args&&... args) {
  return vformat_error(Code::kInvalidArgument, format,
                       fmt::make_format_args(args...));
}

// Thrown by value() of a Result that is an error, whose text it carries: the
// caller did not ask first, which is a mistake in the program.
class BadResultAccess : public std::logic_error {
 public:
  explicit BadResultAccess(const Status& status);
};

// A T, or the Status that says why there is none. Like std::expected.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::in_place, std::move(value)) {}
  // REQUIRES: !status.ok()
  Result(Status status) : status_(std::move(status)) { assert(!status_.ok()); }

  bool ok() const { return value_.has_value(); }
  explicit operator bool() const { return ok(); }
  // The error; OK where there is a value.
  Status status() const& { return status_; }
  Status status() && { return std::move(status_); }
  // The value; as * and ->, throws BadResultAccess where there is none.
  T& value() & { return checked(*this); }
  const T& value() const& { return checked(*this); }
  T&& value() && { return std::move(checked(*this)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

 private:
  template <class Self>
  static auto& checked(Self& self) {
    if (!self.ok()) [[unlikely]]
      throw BadResultAccess(self.status_);
    return *self.value_;
  }

  // Two members instead of a std::variant, whose destructor is a call that the
  // compiler does not inline: results lie on the path of every token.
  std::optional<T> value_;
  Status status_;
};

}  // namespace tagflow

// Returns the Status of `expr` from the enclosing function if it is an error.
#define TAGFLOW_RETURN_IF_ERROR(expr)                                      \
  do {                                                                     \
    if (::tagflow::Status tagflow_status_ = (expr); !tagflow_status_.ok()) \
      return tagflow_status_;                                              \
  } while (false)

#define TAGFLOW_CONCAT_INNER(a, b) a##b
#define TAGFLOW_CONCAT(a, b) TAGFLOW_CONCAT_INNER(a, b)

// `TAGFLOW_ASSIGN(auto x, f());` declares x from a Result, or returns its
// error.
#define TAGFLOW_ASSIGN(declaration, expr)                                      \
  TAGFLOW_ASSIGN_INNER(TAGFLOW_CONCAT(tagflow_result_, __LINE__), declaration, \
                       expr)
#define TAGFLOW_ASSIGN_INNER(result, declaration, expr) \
  auto result = (expr);                                 \
  if (!result.ok()) return std::move(result).status();  \
  declaration = std::move(result).value()
