// Functions of a graph's library: subgraphs that nodes call by name.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/node.h"
#include "graph/ref.h"

namespace tagflow::graph {

// A function as it is in the file, not expanded. Inputs of its nodes are
// "argument_name", "node:output_name:index" or "^node". Attributes may be
// placeholders ("$T") for attributes of the caller.
struct FunctionDef {
  // Name, arguments, results, attributes. Its shape_fn is null.
  OpDef signature;
  std::vector<std::string> control_outputs;
  std::vector<NodeDef> nodes;
  // Maps a result's name to the output in the body that provides it.
  std::map<std::string, std::string> ret;
  // Maps a control output's name to a node of the body.
  std::map<std::string, std::string> control_ret;
  AttrMap attrs;
  // Attributes of arguments, by index.
  std::map<uint32_t, AttrMap> arg_attrs;
  std::map<uint32_t, uint32_t> resource_arg_unique_ids;

  const std::string& name() const { return signature.name; }
};

// The functions that attributes name, excluding those named by the attributes
// of these functions. The pointers are valid as long as `attrs`.
std::vector<const FunctionRef*> functions_of(const AttrMap& attrs);

// Whether all is equal except for the shape functions.
bool same_definition(const FunctionDef& a, const FunctionDef& b);

// The functions of one graph, by name. Functions are immutable, and only
// take_back() removes them: a pointer is valid as long as any copy of the
// library exists. Copies share their contents until one is changed.
// Thread-compatible.
class FunctionLibrary {
 public:
  // AlreadyExists if another function has the name; InvalidArgument if it has
  // none, or a text of its signature is malformed; no effect if the same
  // function is already present.
  Status add(FunctionDef function);
  // Null if there is none.
  const FunctionDef* find(std::string_view name) const;
  // Sets the function that computes the gradient of `function`. AlreadyExists
  // if another one is set.
  Status add_gradient(std::string function, std::string gradient);
  // Empty if none is set.
  std::string_view gradient_of(std::string_view function) const;
  // Adds all of `other`. On a conflict, AlreadyExists and nothing is added.
  Status merge(const FunctionLibrary& other);

  // Those of `functions`, which are in this library, with their gradients as
  // far as these are among them.
  FunctionLibrary subset(std::span<const FunctionDef* const> functions) const;

  // A state of the library, to which take_back() returns.
  struct Mark {
    size_t functions = 0;
    size_t gradients = 0;
  };
  Mark mark() const { return {maps().order.size(), maps().named.size()}; }
  // Removes everything that was added after the mark.
  void take_back(const Mark& mark);

  bool empty() const { return maps().functions.empty() && gradients().empty(); }
  size_t size() const { return maps().functions.size(); }
  // Sorted by name.
  std::vector<const FunctionDef*> functions() const;
  // Valid until a function is added.
  std::span<const FunctionDef* const> in_order_added() const {
    return maps().order;
  }
  // Maps functions to their gradients.
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
    // No effect if it is already present.
    void add(std::shared_ptr<const FunctionDef> function);
    void add_gradient(const std::string& function, const std::string& gradient);

    std::map<std::string, std::shared_ptr<const FunctionDef>, std::less<>>
        functions;
    std::map<std::string, std::string, std::less<>> gradients;
    // In the order added; `named` has the functions with gradients.
    std::vector<const FunctionDef*> order;
    std::vector<std::string> named;
  };
  const Maps& maps() const;
  // The maps for writing; copied first if they are shared.
  Maps& own();

  Ref<Maps> maps_;  // null: empty
};

// A name that is `name`, or begins with it, and is not the name of an op, of a
// function of the library, or of one of `taken`.
std::string free_function_name(const FunctionLibrary& library,
                               std::string_view name,
                               std::span<const std::string> taken = {});

}  // namespace tagflow::graph
