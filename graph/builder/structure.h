// Structures: values made of Outputs, such as the state of a loop.
//
//   struct Cell {
//     Output c, h;
//     TAGFLOW_FIELDS(c, h)
//   };
//   struct State {
//     Output i;
//     std::vector<Cell> cells;
//     TAGFLOW_FIELDS(i, cells)
//   };
//
// A structure is an Output, a struct that lists its fields, a TensorArray, or
// one of Outputs, std::vector, std::array, std::pair, std::tuple and std::map
// (with string keys) of structures. Its Outputs are its leaves. Each has a
// path, which errors show: "cells[1].h" in a State.
#pragma once

#include <array>
#include <concepts>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "graph/builder/output.h"

// Declares the fields of a struct, in the order of the leaves.
#define TAGFLOW_FIELDS(...)                             \
  auto fields() { return std::tie(__VA_ARGS__); }       \
  auto fields() const { return std::tie(__VA_ARGS__); } \
  static constexpr std::string_view field_names() { return #__VA_ARGS__; }

namespace tagflow::graph {

struct Leaf {
  std::string path;
  Output output;
  // The handle of a TensorArray, which no loop or branch may change; otherwise
  // invalid.
  Output handle = {};
};

namespace structure {

// Item i of the list of a TAGFLOW_FIELDS.
std::string_view field_name(std::string_view names, size_t i);
std::string dotted(const std::string& path, std::string_view field);
std::string indexed(const std::string& path, size_t i);

// A struct with TAGFLOW_FIELDS.
template <class T>
concept HasFields = requires(T& value) {
  value.fields();
  T::field_names();
};
// A TensorArray: its flow is the leaf.
template <class T>
concept HasFlow = requires(const T& value, Output flow) {
  { value.handle() } -> std::convertible_to<Output>;
  { value.with_flow(flow) } -> std::same_as<T>;
};

template <class T>
struct Kind {
  static constexpr bool is_structure = HasFields<T> || HasFlow<T> ||
                                       std::same_as<T, Output> ||
                                       std::same_as<T, Outputs>;
  static constexpr bool is_tuple = false;
};
template <class... T>
struct Kind<std::tuple<T...>> {
  static constexpr bool is_structure = (Kind<T>::is_structure && ...);
  static constexpr bool is_tuple = true;
};
template <class A, class B>
struct Kind<std::pair<A, B>> : Kind<std::tuple<A, B>> {};
template <class T>
struct Kind<std::vector<T>> : Kind<T> {
  static constexpr bool is_tuple = false;
};
template <class T, size_t n>
struct Kind<std::array<T, n>> : Kind<std::vector<T>> {};
template <class T>
struct Kind<std::map<std::string, T>> : Kind<std::vector<T>> {};

// Calls visit(leaf) for each leaf. If `T` is not const, its Outputs are
// replaced by those that `visit` stores in the Leaf.
template <class T, class Visit>
void walk(T& value, const std::string& path, const Visit& visit) {
  using Plain = std::remove_const_t<T>;
  if constexpr (std::same_as<Plain, Output>) {
    Leaf leaf{path, value};
    visit(leaf);
    if constexpr (!std::is_const_v<T>) value = leaf.output;
  } else if constexpr (std::same_as<Plain, Outputs>) {
    std::vector<Output> list(value.begin(), value.end());
    walk(list, path, visit);
    if constexpr (!std::is_const_v<T>) value = std::move(list);
  } else if constexpr (HasFlow<Plain>) {
    Leaf leaf{path, value.flow(), value.handle()};
    visit(leaf);
    if constexpr (!std::is_const_v<T>) value = value.with_flow(leaf.output);
  } else if constexpr (HasFields<Plain>) {
    size_t i = 0;
    const auto one = [&](auto& field) {
      walk(field, dotted(path, field_name(Plain::field_names(), i++)), visit);
    };
    std::apply([&](auto&... field) { (one(field), ...); }, value.fields());
  } else if constexpr (Kind<Plain>::is_tuple) {
    size_t i = 0;
    std::apply(
        [&](auto&... item) { (walk(item, indexed(path, i++), visit), ...); },
        value);
  } else if constexpr (requires { typename Plain::mapped_type; }) {
    for (auto& [key, item] : value) walk(item, dotted(path, key), visit);
  } else {
    size_t i = 0;
    for (auto& item : value) walk(item, indexed(path, i++), visit);
  }
}

}  // namespace structure

template <class T>
concept Structure =
    structure::Kind<T>::is_structure && std::default_initializable<T>;

// The leaves of a structure, in order.
template <Structure T>
std::vector<Leaf> leaves_of(const T& value) {
  std::vector<Leaf> leaves;
  structure::walk(value, "", [&](Leaf& leaf) { leaves.push_back(leaf); });
  return leaves;
}

// The same structure with other Outputs as its leaves, in order; missing ones
// are invalid. A TensorArray keeps its handle.
template <Structure T>
T with_leaves(T value, const Outputs& outputs) {
  size_t i = 0;
  structure::walk(value, "", [&](Leaf& leaf) { leaf.output = outputs[i++]; });
  return value;
}

Outputs outputs_of(const std::vector<Leaf>& leaves);
// The first path of `leaves` that `others` lacks; empty if there is none.
std::string missing_path(const std::vector<Leaf>& leaves,
                         const std::vector<Leaf>& others);

}  // namespace tagflow::graph
