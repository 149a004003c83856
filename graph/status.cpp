#include "graph/status.h"

#include <new>

#include "graph/fault.h"
#include "graph/status_text.h"

namespace tagflow {

std::string_view code_name(Code code) {
  switch (code) {
    case Code::kOk:
      return "OK";
    case Code::kCancelled:
      return "Cancelled";
    case Code::kUnknown:
      return "Unknown";
    case Code::kInvalidArgument:
      return "InvalidArgument";
    case Code::kDeadlineExceeded:
      return "DeadlineExceeded";
    case Code::kNotFound:
      return "NotFound";
    case Code::kAlreadyExists:
      return "AlreadyExists";
    case Code::kPermissionDenied:
      return "PermissionDenied";
    case Code::kResourceExhausted:
      return "ResourceExhausted";
    case Code::kFailedPrecondition:
      return "FailedPrecondition";
    case Code::kAborted:
      return "Aborted";
    case Code::kOutOfRange:
      return "OutOfRange";
    case Code::kUnimplemented:
      return "Unimplemented";
    case Code::kInternal:
      return "Internal";
    case Code::kUnavailable:
      return "Unavailable";
    case Code::kDataLoss:
      return "DataLoss";
    case Code::kUnauthenticated:
      return "Unauthenticated";
    case Code::kDeadlock:
      return "Deadlock";
  }
  return "Unknown";
}

// Shared by all: it needs no allocation, since its text is short, and is never
// destroyed, since errors may outlive static objects.
struct Status::Immortal {
  union {
    Rep rep;
  };
  Immortal() noexcept : rep{Code::kResourceExhausted, "out of memory"} {}
  ~Immortal() {}
};

Status Status::out_of_memory() noexcept {
  static Immortal immortal;
  const Status status(&immortal.rep);
  status.share();  // an extra owner, so that it is never freed
  return status;
}

Status::Status(Code code, std::string message) noexcept
    : rep_(new (std::nothrow) Rep{code, std::move(message)}) {
  assert(code != Code::kOk);
  if (rep_ == nullptr) *this = out_of_memory();
}

void Status::share() const noexcept {
  rep_->owners.fetch_add(1, std::memory_order_relaxed);
}

void Status::release() noexcept {
  if (rep_->owners.fetch_sub(1, std::memory_order_acq_rel) == 1) delete rep_;
}

std::string_view Status::message() const {
  return rep_ ? std::string_view(rep_->message) : std::string_view();
}

std::string Status::to_string() const {
  if (ok()) return "OK";
  return fmt::format("{}: {}", code_name(code()), shorten_message(message()));
}

BadResultAccess::BadResultAccess(const Status& status)
    : std::logic_error("no value: " + status.to_string()) {}

Status Status::with_prefix(std::string_view prefix) && noexcept {
  if (rep_ == nullptr) return {};
  try {
    // A single owner may change it.
    if (rep_->owners.load(std::memory_order_acquire) == 1) {
      rep_->message.insert(0, prefix);
      return std::move(*this);
    }
    std::string longer;
    longer.reserve(prefix.size() + rep_->message.size());
    longer.append(prefix).append(rep_->message);
    if (Rep* rep = new (std::nothrow) Rep{code(), std::move(longer)})
      return Status(rep);
  } catch (const std::exception&) {  // out of memory: no prefix
  }
  return std::move(*this);
}

Status vformat_error(Code code, fmt::string_view format,
                     fmt::format_args args) noexcept {
  try {
    return Status(code, fmt::vformat(format, args));
  } catch (...) {
    return current_fault();
  }
}

}  // namespace tagflow
