#include "graph/builder/variable_scope.h"

#include <map>
#include <set>

#include "graph/builder/ops_array.h"
#include "graph/builder/scope_access.h"
#include "graph/builder/variable_maker.h"
#include "graph/op_registry.h"

namespace tagflow::graph {

// The data shared by all scopes of a set.
struct VariableScope::Store {
  std::map<std::string, ScopedVariable, std::less<>> by_name;
  std::vector<std::string> in_order;  // without replaced ones
  std::map<std::string, std::vector<std::string>, std::less<>> collections;
  std::set<std::string> opened;  // names of scopes
};

namespace {

constexpr std::string_view kVariables = "variables";
constexpr std::string_view kTrainable = "trainable_variables";

std::string join(const std::string& scope, std::string_view name) {
  return scope.empty() ? std::string(name) : fmt::format("{}/{}", scope, name);
}

}  // namespace

VariableScope::VariableScope() : store_(std::make_shared<Store>()) {}

VariableScope VariableScope::sub_scope(std::string_view name) const {
  VariableScope scope = *this;
  scope.name_ = join(name_, name);
  store_->opened.insert(scope.name_);
  return scope;
}

VariableScope VariableScope::unique_scope(std::string_view name) const {
  std::string free(name);
  for (int i = 1; store_->opened.contains(join(name_, free)); ++i)
    free = fmt::format("{}_{}", name, i);
  return sub_scope(free);
}

VariableScope VariableScope::with_reuse(Reuse reuse) const {
  VariableScope scope = *this;
  scope.reuse_ = reuse;
  return scope;
}

VariableScope VariableScope::with_initializer(Initializer initializer) const {
  VariableScope scope = *this;
  scope.initializer_ = std::move(initializer);
  return scope;
}

VariableScope VariableScope::with_partitioner(Partitioner partitioner) const {
  VariableScope scope = *this;
  scope.partitioner_ = std::move(partitioner);
  return scope;
}

VariableScope VariableScope::with_values(ValueFn value) const {
  VariableScope scope = *this;
  scope.value_ = std::move(value);
  return scope;
}

ScopedVariable VariableScope::get(const Scope& s, std::string_view name,
                                  const Shape& shape,
                                  const VariableOptions& options) const {
  if (!s.ok()) return {};
  Result<ScopedVariable> variable =
      find_or_make(s, join(name_, name), shape, options);
  if (variable.ok()) return *std::move(variable);
  s.fail(std::move(variable).status());
  return {};
}

Result<ScopedVariable> VariableScope::find_or_make(
    const Scope& s, std::string name, const Shape& shape,
    VariableOptions options) const {
  if (Result<Shape> checked = Shape::make(shape.dims()); !checked.ok())
    return std::move(checked).status().with_prefix(
        fmt::format("[VariableScope::get] \"{}\": ", name));
  if (!options.initializer) options.initializer = initializer_;
  if (!options.partitioner) options.partitioner = partitioner_;
  const auto known = store_->by_name.find(name);
  if (known != store_->by_name.end()) {
    if (reuse_ == Reuse::kNever)
      return error(Code::kAlreadyExists,
                   "[VariableScope::get] \"{}\" exists already; a scope with "
                   "Reuse::kAlways or kAuto would give it",
                   name);
    TAGFLOW_RETURN_IF_ERROR(
        VariableMaker::check_same(known->second, shape, options));
    return known->second;
  }
  if (reuse_ == Reuse::kAlways) {
    std::vector<std::string> names;
    for (const auto& [other, unused] : store_->by_name) names.push_back(other);
    const std::string nearest = nearest_name(name, names);
    return error(
        Code::kNotFound,
        "[VariableScope::get] there is no variable \"{}\" to be reused{}", name,
        nearest.empty() ? "" : fmt::format("; did you mean \"{}\"?", nearest));
  }
  VariableMaker maker(s, name, shape, options);
  TAGFLOW_ASSIGN(ScopedVariable made,
                 value_ ? maker.make_value(value_) : maker.make());
  store_->by_name.emplace(name, made);
  if (value_) return made;
  store_->in_order.push_back(name);
  std::set<std::string> collections(options.collections.begin(),
                                    options.collections.end());
  collections.emplace(kVariables);
  if (options.trainable) collections.emplace(kTrainable);
  for (const std::string& collection : collections)
    store_->collections[collection].push_back(name);
  return made;
}

std::vector<ScopedVariable> VariableScope::collection(
    std::string_view name) const {
  std::vector<ScopedVariable> all;
  const auto found = store_->collections.find(name);
  if (found == store_->collections.end()) return all;
  for (const std::string& variable : found->second)
    all.push_back(store_->by_name.at(variable));
  return all;
}

std::vector<ScopedVariable> VariableScope::variables() const {
  return collection(kVariables);
}
std::vector<ScopedVariable> VariableScope::trainable_variables() const {
  return collection(kTrainable);
}

Output VariableScope::initialize(const Scope& s) const {
  Outputs all;
  for (const ScopedVariable& variable : variables())
    for (const VariablePart& part : variable.parts())
      all.push_back(part.initializer);
  return ops::group(s, all);
}

namespace {

// The entries of a checkpoint, in the order of the parts.
struct Entries {
  explicit Entries(const std::vector<ScopedVariable>& variables) {
    for (const ScopedVariable& variable : variables) {
      for (size_t i = 0; i < variable.parts().size(); ++i) {
        names.push_back(variable.name());
        slices.push_back(variable.shape_and_slice(i));
        dtypes.push_back(variable.dtype());
        parts.push_back(variable.parts()[i].variable);
      }
    }
  }
  bool check(const Scope& s, const char* what) const {
    if (parts.empty())
      s.fail(invalid_argument("[{}] there are no variables", what));
    return s.ok();
  }
  static Tensor vector_of(const std::vector<std::string>& texts) {
    return Tensor::of<std::string>({int64_t(texts.size())}, std::span(texts));
  }
  // The inputs of SaveV2 and RestoreV2.
  Inputs inputs(const Input& prefix) const {
    return {prefix, vector_of(names), vector_of(slices)};
  }

  std::vector<std::string> names, slices;
  std::vector<DataType> dtypes;
  std::vector<ops::Variable> parts;
};

}  // namespace

Output VariableScope::save(const Scope& s, const Input& prefix) const {
  const Entries entries(variables());
  if (!entries.check(s, "save")) return {};
  const Scope in = ScopeAccess::construct_scope(s, "save");
  Inputs inputs = entries.inputs(prefix);
  for (const ops::Variable& part : entries.parts)
    inputs.add(ops::read(in, part));
  return in.op("SaveV2", inputs, {{"dtypes", entries.dtypes}});
}

Output VariableScope::restore(const Scope& s, const Input& prefix) const {
  const Entries entries(variables());
  if (!entries.check(s, "restore")) return {};
  const Scope in = ScopeAccess::construct_scope(s, "restore");
  const OpResult tensors =
      in.op("RestoreV2", entries.inputs(prefix), {{"dtypes", entries.dtypes}});
  Outputs all;
  for (size_t i = 0; i < entries.parts.size(); ++i)
    all.push_back(ops::assign(in, entries.parts[i], tensors[int(i)]));
  return ops::group(in, all);
}

}  // namespace tagflow::graph
