#include "graph/op_registry.h"

#include <algorithm>
#include <cstdlib>
#include <initializer_list>
#include <mutex>

#include "graph/node_name.h"
#include "graph/status_exception.h"

namespace tagflow::graph {
namespace {

// Longer names are not compared: they are hardly typing errors.
constexpr size_t kMaxCompared = 256;

bool is_same_letter(char a, char b) {
  return std::tolower(static_cast<unsigned char>(a)) ==
         std::tolower(static_cast<unsigned char>(b));
}

// Edit distance in half steps: letters inserted, removed, replaced or swapped
// with the next one; a change of case counts half.
size_t distance(std::string_view a, std::string_view b) {
  // For the first i - 2, i - 1 and i letters of `a`.
  std::vector<size_t> before(b.size() + 1), last(b.size() + 1),
      row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = 2 * j;
  for (size_t i = 1; i <= a.size(); ++i) {
    std::swap(before, last);
    std::swap(last, row);
    row[0] = 2 * i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replace = a[i - 1] == b[j - 1]                 ? 0
                             : is_same_letter(a[i - 1], b[j - 1]) ? 1
                                                                  : 2;
      row[j] = std::min({last[j - 1] + replace, last[j] + 2, row[j - 1] + 2});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], before[j - 2] + 2);
    }
  }
  return row[b.size()];
}

// TensorFlow's ops that do not exist here, with advice.
struct Absent {
  std::initializer_list<std::string_view> starts;  // '$': the whole name
  std::string_view advice;
};

constexpr std::string_view kLmdb =
    "no dataset reads files of LMDB, as in TensorFlow 2.21; LMDBReader does";
// TensorFlow rejects these ops in graphs of version 16 or later, and those of
// the second generation in graphs of version 26 or later.
constexpr std::string_view kOldArrays =
    "TensorFlow 1 and later reject graphs with it; TensorArrayV3 and related "
    "ops have replaced it";

constexpr std::string_view kPython =
    "it calls Python code, which a graph does not have";
constexpr std::string_view kCsv =
    "TextLineDataset and DecodeCSV read files of CSV";

std::string_view advice_on(std::string_view op) {
  static const Absent kAbsent[] = {
      {{"LMDBDataset", "ExperimentalLMDBDataset"}, kLmdb},
      {{"TensorArray"}, kOldArrays},
      {{"GeneratorDataset", "PyFunc", "EagerPyFunc"}, kPython},
      {{"CSVDataset", "ExperimentalCSVDataset"}, kCsv},
  };
  for (const Absent& absent : kAbsent) {
    for (std::string_view start : absent.starts) {
      const bool whole = start.ends_with('$');
      if (whole) start.remove_suffix(1);
      if (whole ? op == start : op.starts_with(start)) return absent.advice;
    }
  }
  return {};
}

}  // namespace

std::string nearest_name(std::string_view wanted,
                         const std::vector<std::string>& names) {
  if (wanted.size() > kMaxCompared) return "";
  // Up to a third of the letters may be wrong.
  const size_t limit = std::max<size_t>(1, wanted.size() / 3) * 2;
  size_t best = limit + 1;
  const std::string* nearest = nullptr;
  for (const std::string& name : names) {
    const size_t shorter = std::min(name.size(), wanted.size());
    const size_t longer = std::max(name.size(), wanted.size());
    if (2 * (longer - shorter) >= best) continue;
    const size_t steps = distance(wanted, name);
    if (steps < best) {
      best = steps;
      nearest = &name;
    }
  }
  return nearest == nullptr ? "" : *nearest;
}

namespace {

// Whether two of these have one name.
template <class Named>
const std::string* repeated_name(const std::vector<Named>& all) {
  for (size_t i = 0; i < all.size(); ++i)
    for (size_t k = 0; k < i; ++k)
      if (all[i].name == all[k].name) return &all[i].name;
  return nullptr;
}

// Graph files and messages have these names; nodes are named after their ops.
Status check_names(const OpDef& def) {
  if (!check_node_name(def.name).ok())
    return invalid_argument("[ops] \"{}\" is not a valid name of an op",
                            def.name);
  for (const std::string* name :
       {repeated_name(def.inputs), repeated_name(def.outputs),
        repeated_name(def.attrs)})
    if (name != nullptr)
      return invalid_argument("[ops] op {} has \"{}\" twice", def.name, *name);
  return {};
}

}  // namespace

bool always_uses_files(const AttrMap&) { return true; }

Status OpRegistry::add(OpDef def, FileUse file_use) {
  // Passes would replace it by a node that has no kernel.
  if (def.is_fusible && has_own_ops_)
    return error(Code::kInvalidArgument,
                 "[ops] op {} cannot be fusible: only kernels of tagflow's own "
                 "ops can be fused",
                 def.name);
  if (!def.malformed.empty())
    return invalid_argument("[ops] op {}: malformed {}", def.name,
                            def.malformed);
  TAGFLOW_RETURN_IF_ERROR(check_names(def));
  std::unique_lock lock(mutex_);
  def.is_registered = true;
  auto owned = std::make_unique<const OpDef>(std::move(def));
  const std::string_view name = owned->name;
  if (ops_.contains(name))
    return error(Code::kAlreadyExists, "[ops] op {} is registered already",
                 name);
  if (file_use != nullptr) file_uses_.emplace(name, file_use);
  ops_.emplace(name, std::move(owned));
  return {};
}

void OpRegistry::add(OpDefBuilder builder, FileUse file_use) {
  const Status status = add(builder.build(), file_use);
  if (status.ok()) return;
  // Of a program or an op library, whose loader catches it.
  if (has_own_ops_) throw StatusException(status);
  fmt::print(stderr, "{}\n", status.to_string());
  std::abort();
}

const OpDef* OpRegistry::find_or_null(std::string_view name) const {
  std::shared_lock lock(mutex_);
  auto it = ops_.find(name);
  return it == ops_.end() ? nullptr : it->second.get();
}

bool OpRegistry::uses_files(std::string_view op, const AttrMap& attrs) const {
  std::shared_lock lock(mutex_);
  const auto it = file_uses_.find(op);
  return it != file_uses_.end() && it->second(attrs);
}

Result<const OpDef*> OpRegistry::find(std::string_view name) const {
  if (const OpDef* def = find_or_null(name)) return def;
  if (const std::string_view advice = advice_on(name); !advice.empty())
    return error(Code::kUnimplemented, "[ops] unknown op \"{}\": {}", name,
                 advice);
  const std::string nearest = nearest_name(name, names());
  return error(
      Code::kUnimplemented, "[ops] unknown op \"{}\"{}", name,
      nearest.empty() ? "" : fmt::format(", did you mean \"{}\"?", nearest));
}

std::vector<std::string> OpRegistry::names() const {
  std::shared_lock lock(mutex_);
  std::vector<std::string> names;
  names.reserve(ops_.size());
  for (const auto& [name, def] : ops_) names.emplace_back(name);
  std::ranges::sort(names);
  return names;
}

}  // namespace tagflow::graph
