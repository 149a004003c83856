#include "graph/function.h"

#include <algorithm>

#include "graph/op_registry.h"

namespace tagflow::graph {
namespace {

bool same_signature(const OpDef& a, const OpDef& b) {
  return a.name == b.name && a.inputs == b.inputs && a.outputs == b.outputs &&
         a.attrs == b.attrs && a.is_stateful == b.is_stateful &&
         a.is_commutative == b.is_commutative &&
         a.allows_uninitialized_input == b.allows_uninitialized_input;
}

Status conflict(std::string_view name) {
  return error(Code::kAlreadyExists,
               "[function] another function is named \"{}\"", name);
}

Status gradient_conflict(std::string_view function, std::string_view there,
                         std::string_view wanted) {
  return error(Code::kAlreadyExists,
               "[function] \"{}\" has the gradient \"{}\", \"{}\" cannot be "
               "another",
               function, there, wanted);
}

}  // namespace

std::vector<const FunctionRef*> functions_of(const AttrMap& attrs) {
  std::vector<const FunctionRef*> functions;
  for (const auto& [name, value] : attrs) {
    if (const auto* one = value.get_if<FunctionRef>()) functions.push_back(one);
    if (const auto* list = value.get_if<std::vector<FunctionRef>>())
      for (const FunctionRef& function : *list) functions.push_back(&function);
  }
  return functions;
}

bool same_definition(const FunctionDef& a, const FunctionDef& b) {
  return same_signature(a.signature, b.signature) &&
         a.control_outputs == b.control_outputs && a.nodes == b.nodes &&
         a.ret == b.ret && a.control_ret == b.control_ret &&
         a.attrs == b.attrs && a.arg_attrs == b.arg_attrs &&
         a.resource_arg_unique_ids == b.resource_arg_unique_ids;
}

const FunctionLibrary::Maps& FunctionLibrary::maps() const {
  static const Ref<Maps> none = make_ref_counted<Maps>();
  return maps_ ? *maps_ : *none;
}

FunctionLibrary::Maps& FunctionLibrary::own() {
  if (!maps_) {
    maps_ = make_ref_counted<Maps>();
  } else if (!maps_->unique()) {
    maps_ = make_ref_counted<Maps>(*maps_);
  }
  return *maps_;
}

void FunctionLibrary::Maps::add(std::shared_ptr<const FunctionDef> function) {
  const std::string& name = function->name();
  const auto [it, is_new] = functions.try_emplace(name, std::move(function));
  if (!is_new) return;
  try {
    order.push_back(it->second.get());
  } catch (...) {
    functions.erase(it);
    throw;
  }
}

void FunctionLibrary::Maps::add_gradient(const std::string& function,
                                         const std::string& gradient) {
  const auto [it, is_new] = gradients.try_emplace(function, gradient);
  if (!is_new) return;
  try {
    named.push_back(function);
  } catch (...) {
    gradients.erase(it);
    throw;
  }
}

Status FunctionLibrary::add(FunctionDef function) {
  if (function.name().empty())
    return invalid_argument("[function] a function has no name");
  if (!function.signature.malformed.empty())
    return invalid_argument("[function] function {}: malformed {}",
                            function.name(), function.signature.malformed);
  if (const FunctionDef* there = find(function.name())) {
    if (same_definition(*there, function)) return {};
    return conflict(function.name());
  }
  own().add(std::make_shared<const FunctionDef>(std::move(function)));
  return {};
}

const FunctionDef* FunctionLibrary::find(std::string_view name) const {
  const auto it = maps().functions.find(name);
  return it == maps().functions.end() ? nullptr : it->second.get();
}

Status FunctionLibrary::add_gradient(std::string function,
                                     std::string gradient) {
  const auto it = gradients().find(function);
  if (it == gradients().end()) {
    own().add_gradient(function, gradient);
  } else if (it->second != gradient) {
    return gradient_conflict(function, it->second, gradient);
  }
  return {};
}

std::string_view FunctionLibrary::gradient_of(std::string_view function) const {
  const auto it = gradients().find(function);
  return it == gradients().end() ? std::string_view() : it->second;
}

Status FunctionLibrary::merge(const FunctionLibrary& other) {
  for (const auto& [name, function] : other.maps().functions) {
    const FunctionDef* there = find(name);
    if (there != nullptr && there != function.get() &&
        !same_definition(*there, *function))
      return conflict(name);
  }
  for (const auto& [name, gradient] : other.gradients()) {
    const auto it = gradients().find(name);
    if (it != gradients().end() && it->second != gradient)
      return gradient_conflict(name, it->second, gradient);
  }
  if (empty()) {
    maps_ = other.maps_;
    return {};
  }
  if (other.empty()) return {};
  Maps& mine = own();
  for (const auto& [name, function] : other.maps().functions)
    mine.add(function);
  for (const auto& [name, gradient] : other.gradients())
    mine.add_gradient(name, gradient);
  return {};
}

FunctionLibrary FunctionLibrary::subset(
    std::span<const FunctionDef* const> functions) const {
  FunctionLibrary part;
  if (functions.empty()) return part;
  Maps& made = part.own();
  for (const FunctionDef* function : functions)
    made.add(maps().functions.at(function->name()));
  for (const auto& [name, gradient] : gradients())
    if (part.find(name) != nullptr && part.find(gradient) != nullptr)
      made.add_gradient(name, gradient);
  return part;
}

void FunctionLibrary::take_back(const Mark& mark) {
  const Mark now = this->mark();
  if (now.functions == mark.functions && now.gradients == mark.gradients)
    return;
  Maps& mine = own();
  for (; mine.order.size() > mark.functions; mine.order.pop_back())
    mine.functions.erase(mine.functions.find(mine.order.back()->name()));
  for (; mine.named.size() > mark.gradients; mine.named.pop_back())
    mine.gradients.erase(mine.named.back());
}

std::vector<const FunctionDef*> FunctionLibrary::functions() const {
  std::vector<const FunctionDef*> all;
  all.reserve(size());
  for (const auto& [name, function] : maps().functions)
    all.push_back(function.get());
  return all;
}

std::string free_function_name(const FunctionLibrary& library,
                               std::string_view name,
                               std::span<const std::string> taken) {
  const auto is_taken = [&](const std::string& free) {
    return library.find(free) != nullptr ||
           std::ranges::find(taken, free) != taken.end() ||
           OpRegistry::global().find_or_null(free) != nullptr;
  };
  std::string free(name);
  for (int i = 1; is_taken(free); ++i) free = fmt::format("{}_{}", name, i);
  return free;
}

}  // namespace tagflow::graph
