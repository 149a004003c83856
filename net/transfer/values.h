// Values of feeds and fetches: in a message, or as objects beside it.
#pragma once

#include <cstddef>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "net/transfer/channel.h"
#include "net/transfer/object_tensor.h"
#include "net/wire/tensor.h"

namespace tagflow::net {

// What a message may have of tensors, in bytes; more are objects.
inline constexpr uint64_t kMostInlineBytes = uint64_t{512} << 10;

// Puts tensors into one message to the channel. Nothing goes before the message
// does: the receiver would keep objects that no message names.
// Thread-compatible.
class ValueSender {
 public:
  explicit ValueSender(Channel& channel) : channel_(channel) {}

  // Sets `value`, a std::variant, to the tensor or to its object.
  // Unimplemented naming the tensor if it cannot leave the process.
  template <class Value>
  Status put(const Tensor& tensor, std::string_view name, Value& value) {
    TAGFLOW_RETURN_IF_ERROR(check_sendable(tensor.dtype(), name));
    const uint64_t bytes = info_of(tensor).bytes;
    if (bytes <= kLargestInline && bytes <= left_) {
      left_ -= bytes;
      value = tensor;
      return {};
    }
    const ObjectId object = channel_.next_object();
    objects_.push_back(object_of(object, tensor));
    value = object;
    return {};
  }
  // Bytes of the object that the last put() has made. REQUIRES: it has
  uint64_t last_object_bytes() const { return objects_.back().begin.bytes; }
  // Sends the message, and the objects of its values; nothing if the message
  // cannot be a frame, which is an error. REQUIRES: it is called once.
  template <class Message>
  Status send(const Message& message) {
    TAGFLOW_RETURN_IF_ERROR(channel_.send(message));
    for (BulkLink::Object& object : objects_) channel_.send(std::move(object));
    return {};
  }

 private:
  Channel& channel_;
  uint64_t left_ = kMostInlineBytes;
  std::vector<BulkLink::Object> objects_;
};

// Calls then(Result<std::vector<std::pair<uint32_t, Tensor>>>), now or later,
// with the values of a message that have a tensor: index and value.
template <class Item, class Then>
void collect_values(TensorInputs& inputs, std::vector<Item> items, Then then) {
  std::vector<std::pair<uint32_t, Tensor>> values;
  std::vector<ObjectId> objects;
  std::vector<size_t> places;  // of the objects' values
  for (Item& item : items) {
    if (auto* tensor = std::get_if<Tensor>(&item.value)) {
      values.emplace_back(item.index, std::move(*tensor));
    } else if (const auto* object = std::get_if<ObjectId>(&item.value)) {
      places.push_back(values.size());
      values.emplace_back(item.index, Tensor());
      objects.push_back(*object);
    }
  }
  using Values = std::vector<std::pair<uint32_t, Tensor>>;
  if (objects.empty()) return then(Result<Values>(std::move(values)));
  inputs.take(std::move(objects),
              [then = std::move(then), values = std::move(values),
               places = std::move(places)](
                  Result<std::vector<Tensor>> tensors) mutable {
                if (!tensors.ok())
                  return then(Result<Values>(tensors.status()));
                for (size_t i = 0; i < places.size(); ++i)
                  values[places[i]].second = std::move((*tensors)[i]);
                then(Result<Values>(std::move(values)));
              });
}

// What collect_values() would wait for is not wanted: it is dropped when it
// comes.
template <class Item>
void forget_values(TensorInputs& inputs, const std::vector<Item>& items) {
  std::vector<ObjectId> objects;
  for (const Item& item : items)
    if (const auto* object = std::get_if<ObjectId>(&item.value))
      objects.push_back(*object);
  if (objects.empty()) return;
  inputs.take(std::move(objects), [](const Result<std::vector<Tensor>>&) {});
}

}  // namespace tagflow::net
