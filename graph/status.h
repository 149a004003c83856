// Status and Result: how errors reach users, readers of files and peers.
//
// Every interface that a user, a file or a peer can reach returns a Status or a
// Result<T>. Exceptions are only for what leaves the process unusable. A
// message reads `[module|op] what happened`, with node names, shapes, dtypes,
// frames.
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

// Values up to kUnauthenticated are TensorFlow's error codes, so that recorded
// cases can be compared.
enum class Code : uint8_t {
  kOk = 0,                  // no error
  kCancelled = 1,           // the caller, or another error, stopped the step
  kUnknown = 2,             // an external error without a better code
  kInvalidArgument = 3,     // the request is invalid in any state
  kDeadlineExceeded = 4,    // the time-out of the run passed
  kNotFound = 5,            // a named thing (node, file, op) does not exist
  kAlreadyExists = 6,       // a thing to be created exists already
  kPermissionDenied = 7,    // the system refuses access
  kResourceExhausted = 8,   // memory, a limit or a quota is used up
  kFailedPrecondition = 9,  // not possible in the present state
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

// Success, or a code with a message. It is one pointer wide: success costs a
// null check. Copies share the message. Nothing here throws: if the memory for
// a message is exhausted, the error is out_of_memory() instead. Different
// objects may be used by different threads, including copies of one another.
class [[nodiscard]] Status {
 public:
  Status() = default;
  // REQUIRES: code != Code::kOk
  Status(Code code, std::string message) noexcept;
  // ResourceExhausted "out of memory"; allocates no memory itself.
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
  // The same code, with `prefix` before the message. The prefix is left out if
  // memory is exhausted. No effect on success.
  Status with_prefix(std::string_view prefix) && noexcept;

 private:
  struct Rep {
    Code code;
    std::string message;  // immutable once it is shared
    std::atomic<uint32_t> owners{1};
  };
  struct Immortal;
  explicit Status(Rep* rep) noexcept : rep_(rep) {}
  void share() const noexcept;
  void release() noexcept;

  Rep* rep_ = nullptr;
};

// A Status with the code and a fmt-formatted message; out_of_memory() if memory
// is exhausted.
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

// Thrown by value() if a Result is an error, with the error's text. The caller
// did not check the Result, which is a bug in the program.
class BadResultAccess : public std::logic_error {
 public:
  explicit BadResultAccess(const Status& status);
};

// A T, or the Status that says why there is none, as in std::expected.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::in_place, std::move(value)) {}
  // REQUIRES: !status.ok()
  Result(Status status) : status_(std::move(status)) { assert(!status_.ok()); }

  bool ok() const { return value_.has_value(); }
  explicit operator bool() const { return ok(); }
  // The error; OK if there is a value.
  Status status() const& { return status_; }
  Status status() && { return std::move(status_); }
  // The value; throws BadResultAccess if there is none, as do * and ->.
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

  // Two members instead of a std::variant, whose destructor call the compiler
  // does not inline: every token uses Results.
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
