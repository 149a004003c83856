#include "graph/write_error.h"

#include <cerrno>

namespace tagflow {

Code code_of_write(int number, Code other) {
  switch (number) {
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
    case EMFILE:
    case ENFILE:
    case ENOMEM:
      return Code::kResourceExhausted;
    default:
      return other;
  }
}

}  // namespace tagflow
