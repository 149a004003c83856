#include "graph/fault.h"

#include <cxxabi.h>

#include <cstdlib>
#include <exception>
#include <memory>
#include <new>
#include <stdexcept>
#include <typeinfo>

#include "graph/status_exception.h"

namespace tagflow {
namespace {

Status of_type(const std::type_info* type) noexcept {
  if (type == nullptr)
    return error(Code::kInternal, "unexpected exception of another language");
  const std::unique_ptr<char, void (*)(void*)> readable(
      abi::__cxa_demangle(type->name(), nullptr, nullptr, nullptr), std::free);
  return error(Code::kInternal, "unexpected exception of type {}",
               readable != nullptr ? readable.get() : type->name());
}

Status classify() {
  try {
    throw;
  } catch (const abi::__forced_unwind&) {
    throw;
  } catch (const std::bad_alloc&) {
    return Status::out_of_memory();
  } catch (const std::length_error&) {  // a container of more than any memory
    return Status::out_of_memory();
  } catch (const StatusException& thrown) {
    return thrown.status();
  } catch (const std::exception& thrown) {
    const char* what = thrown.what();
    return error(Code::kInternal, "unexpected exception: {}",
                 what != nullptr ? what : "");
  } catch (...) {
    return of_type(abi::__cxa_current_exception_type());
  }
}

}  // namespace

Status current_fault(std::string_view module) {
  Status fault = classify();
  if (module.empty()) return fault;
  try {
    return std::move(fault).with_prefix(fmt::format("[{}] ", module));
  } catch (const std::bad_alloc&) {
    return fault;
  }
}

}  // namespace tagflow
