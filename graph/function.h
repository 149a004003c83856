// Functions of a graph's library: bodies that nodes call by name.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"
#include "graph/ref.h"

namespace tagflow::graph {

// A function as the file has it: kept, not expanded. In its nodes, an input
// is an argument's name, "node:output_name:index" or "^node"; attributes may
// be placeholders ("$T") for those of the caller.
struct FunctionDef {
  // Name, arguments, results, attributes; shape_fn is null.
  OpDef signature;
  std::vector<std::string> control_outputs;
  std::vector<NodeDef> nodes;
  // From a result's name to the body's output that gives it.
  std::map<std::string, std::string> ret;
  // From a control output's name to the body's node.
  std::map<std::string, std::string> control_ret;
  AttrMap attrs;
  // Of an argument, by its index.
  std::map<uint32_t, AttrMap> arg_attrs;
  std::map<uint32_t, uint32_t> resource_arg_unique_ids;

  const std::string& name() const { return signature.name; }
};

// The functions that attributes name, without those that their own do. Valid
// while the attributes are.
std::vector<const FunctionRef*> functions_of(const AttrMap& attrs);

// The same but for the shape function.
bool same_definition(const FunctionDef& a, const FunctionDef& b);

// The functions of one graph, by name. Functions are never changed, and removed
// by take_back() only: pointers live as long as a copy does. Copies share all
// until one is changed. Thread-compatible.
class FunctionLibrary {
 public:
  // AlreadyExists where another function has the name; no effect where the
  // same one is there already.
  Status add(FunctionDef function);
  // Null where there is none.
  const FunctionDef* find(std::string_view name) const;
  // Which function computes the gradient of `function`. AlreadyExists where
  // another was named.
  Status add_gradient(std::string function, std::string gradient);
  // Empty where none was named.
  std::string_view gradient_of(std::string_view function) const;
  // Adds all of `other`. AlreadyExists, and nothing added, on a conflict.
  Status merge(const FunctionLibrary& other);

  // What has been added so far.
  struct Mark {
    size_t functions = 0;
    size_t gradients = 0;
  };
  Mark mark() const { return {maps().order.size(), maps().named.size()}; }
  // Removes what was added since.
  void take_back(const Mark& mark);

  bool empty() const { return maps().functions.empty() && gradients().empty(); }
  size_t size() const { return maps().functions.size(); }
  // Sorted by name.
  std::vector<const FunctionDef*> functions() const;
  // Valid until one is added.
  std::span<const FunctionDef* const> in_order_added() const {
    return maps().order;
  }
  // From functions to their gradients.
  const std::map<std::string, std::string, std::less<>>& gradients() const {
    return maps().gradients;
  }

 private:
  struct Maps : RefCounted {
    Maps() = default;
    Maps(const Maps& other)
        : functions(other.functions),
          gradients(other.gradients),
          order(other.order),
          named(other.named) {}
    // No effect where it is there already.
    void add(std::shared_ptr<const FunctionDef> function);
    void add_gradient(const std::string& function, const std::string& gradient);

    std::map<std::string, std::shared_ptr<const FunctionDef>, std::less<>>
        functions;
    std::map<std::string, std::string, std::less<>> gradients;
    // As they were added; of gradients, the functions that have them.
    std::vector<const FunctionDef*> order;
    std::vector<std::string> named;
  };
  const Maps& maps() const;
  // To be changed: not shared.
  Maps& own();

  Ref<Maps> maps_;  // null: both are empty
};

// A name that is `name`, or begins with it, and that no function of the
// library, none of `taken` and no op has.
std::string free_function_name(const FunctionLibrary& library,
                               std::string_view name,
                               std::span<const std::string> taken = {});

}  // namespace tagflow::graph
