// SavedContents: state beside variables that checkpoints keep.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "devices/kernel.h"
#include "devices/state/resource_manager.h"

namespace tagflow::devices {

// Note [Saved contents]
// A queue, a table, an accumulator, a staging area, a barrier, a reader or an
// iterator is saved as a list of tensors, the first of which has its numbers.
// Only the object that wrote them knows what they mean. They are packed into
// one tensor of strings, with the key before them, so that checkpoints and the
// links of a cluster need to know nothing of it.
//
// Only a node of the graph knows the settings of such an object. So a restore
// leaves the contents with the manager, and the object gets them when such a
// node makes it. Then nobody else knows it, and no operation waits in it.

// The interface of such objects.
class SavedContents {
 public:
  virtual ~SavedContents() = default;
  // The contents. REQUIRES: nobody changes them meanwhile.
  virtual Result<std::vector<Tensor>> save() const = 0;
  // Takes over contents that are saved. DataLoss if save() cannot have given
  // them; InvalidArgument if they are of an object with other settings. After
  // an error, it has some of them. REQUIRES: it was just made, and nobody else
  // uses it.
  virtual Status restore(const KernelContext& context,
                         std::span<const Tensor> saved) = 0;
};

// The error for contents that have not the form that save() gives them.
Status damaged_contents(const KernelContext& context);

// Reads contents front to back; each function returns damaged_contents() if
// there is something else, or nothing. Thread-compatible.
class ContentsReader {
 public:
  ContentsReader(const KernelContext& context, std::span<const Tensor> saved)
      : context_(context), left_(saved) {}

  // A vector of int64, which has at least so many.
  Result<std::vector<int64_t>> numbers(size_t least = 0);
  // So many tensors, which live as long as the contents.
  Result<std::span<const Tensor>> tensors(size_t count);
  // OK if all of them were read.
  Status end() const;

 private:
  const KernelContext& context_;
  std::span<const Tensor> left_;
};

// A vector of int64.
Tensor numbers_tensor(std::span<const int64_t> numbers);

// Packs contents, with their key, into a vector of strings. An invalid tensor
// stays invalid. Unimplemented for handles; ResourceExhausted for a tensor of
// 2 GiB or more.
Result<Tensor> pack_contents(const ResourceKey& key,
                             std::span<const Tensor> contents);
// The key in a packed tensor. DataLoss if it has none.
Result<ResourceKey> packed_key(const Tensor& packed);
// The contents in a packed tensor, in the memory of the context. DataLoss;
// ResourceExhausted.
Result<std::vector<Tensor>> unpack_contents(const KernelContext& context,
                                            const Tensor& packed);

}  // namespace tagflow::devices
